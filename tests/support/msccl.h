/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_MSCCL_H
#define TESTS_SUPPORT_MSCCL_H

/* Algorithms as MSCCL's tools would write them, made here. */

#include <stdbool.h>

#include "tutti/inspect.h"

enum msccl_kind {
	MSCCL_RING,         /* s, rrs, rrcs, rcs, rrc, r: each channel its own part       */
	MSCCL_ALL_PAIRS,    /* all_reduce through scratch: s, r, re with dependencies     */
	MSCCL_EXCHANGE,     /* all_reduce: everything to everybody into scratch, then re  */
	MSCCL_HALVING,      /* all_reduce of 2^k ranks: halves into scratch, then doubled */
	MSCCL_HIERARCHICAL, /* all_reduce: pairs in groups, rings between them            */
	MSCCL_CHAIN,        /* broadcast, reduce: rank to rank from or to the root        */
	MSCCL_KINDS,
};

struct msccl_spec {
	enum msccl_kind kind;
	tutti_collective coll;
	int n, channels, root;
	int group; /* hierarchical: ranks of a group, of which n is a multiple */
	bool in_place;
	long long min_bytes, max_bytes;
};

/* Whether there is such a file. */
bool msccl_exists(const struct msccl_spec *spec);
/* Its text, freed with free(). */
char *msccl_text(const struct msccl_spec *spec);

#endif
