/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_ALGO_FILES_H
#define TTI_COLL_ALGO_FILES_H

/* Algorithms that a user supplies: files of MSCCL's format (msccl.h), or of programs as
 * text (text.h). Each is for one collective, one number of ranks and, if the collective has one,
 * one root, and says for which sizes it is (text: any). An algorithm that cannot be proven
 * (check.h) is refused.
 *
 * Owner: tti_algo_files_free(). Threads: any may read. */

#include <stddef.h>
#include <stdint.h>

#include "coll/program.h"

struct tti_algo_file {
	struct tti_algorithm algo; /* of n ranks; borrows the name and the programs */
	struct tti_program *prog;  /* [n] */
	int n, root;
	size_t min_bytes, max_bytes; /* of the vector, both included                  */
	char path[];
};

struct tti_algo_files {
	TTI_VEC(struct tti_algo_file *) files;
};

/* One file, proven. TUTTI_EINVAL: line and reason. `text` of `nbytes` has a 0 behind it. */
TUTTI_CHECKED tutti_status tti_algo_file_read(const char *text, size_t nbytes, const char *path,
					      struct tti_algo_file **out);
void tti_algo_file_free(struct tti_algo_file *file);

/* The files of a list "a.xml:b.xml", in its order; an empty list gives none. Two may not
 * have one name for one collective and number of ranks. */
TUTTI_CHECKED tutti_status tti_algo_files_read(const char *list, struct tti_algo_files **out);
void tti_algo_files_free(struct tti_algo_files *files);

/* A hash of all of it, as ranks must agree on all of it. 0: no files. */
uint64_t tti_algo_files_hash(const struct tti_algo_files *files);

/* The first file for such a call; -1: none. files may be NULL. `root` matters only to collectives
 * that have one. */
int tti_algo_files_find(const struct tti_algo_files *files, tutti_collective coll, int n, int root,
			size_t nbytes);

#endif
