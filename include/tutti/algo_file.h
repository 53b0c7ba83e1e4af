/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_ALGO_FILE_H
#define TUTTI_ALGO_FILE_H

/* Files with algorithms of the user's, for TUTTI_ALGO_FILE: what tools ask about them. Threads:
 * any. */

#include <stddef.h>
#include <stdint.h>

#include "tutti/inspect.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a file does. Sizes are in bytes, of the vector: what is received for all_gather and gather,
 * else what is sent. */
typedef struct tutti_algo_report {
	size_t size; /* sizeof(tutti_algo_report) */
	char name[64];
	tutti_collective collective;
	int nranks, root, nchunks;
	size_t min_bytes, max_bytes;               /* the sizes that it is for, inclusive     */
	size_t steps, most_steps;                  /* of all ranks, and of the one with most  */
	int links;                                 /* from one rank to another, of all ranks  */
	uint64_t most_sent_bytes, most_link_bytes; /* by one rank, over one link, for `nbytes` */
	double predicted_us; /* all ranks on one host, each on a core, its steps one after the
				other: an estimate from the constants of TUTTI_TUNE_FILE */
} tutti_algo_report;
/* clang-format off */
#define TUTTI_ALGO_REPORT_INIT { sizeof(tutti_algo_report), "", TUTTI_ALL_REDUCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Prove the algorithm in a `text` of `text_bytes`, with a 0 behind it: MSCCL's XML, or what
 * tutti_program_print() prints. Messages call it `name`. *out says what it does for a vector of
 * `nbytes`. *link_bytes_out has the bytes from each rank to each, [from * nranks + to], to be freed
 * with free(). TUTTI_EINVAL: wrong, with line and reason. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_algo_file_check(const char *text, size_t text_bytes,
							   const char *name, size_t nbytes,
							   tutti_algo_report *out,
							   uint64_t **link_bytes_out);

#ifdef __cplusplus
}
#endif

#endif
