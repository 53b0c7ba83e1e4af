/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_CHOOSE_H
#define TTI_COLL_CHOOSE_H

/* Which algorithm, in which slices, for a call: a rule of the tuning file; else, between
 * hosts, the least time that plan/tune.h predicts, and on one host what was measured
 * best. Pure: the same on all ranks, as it looks at nothing that differs between
 * them. */

#include <stddef.h>

#include "coll/program.h"

struct tti_tune_machine; /* plan/tune.h */
struct tti_tune_table;

struct tti_choice_input {
	tutti_collective coll;
	int n;
	size_t nbytes;     /* of the whole vector: all_gather: received, reduce_scatter: sent */
	int nhosts;        /* 1: all ranks share memory                                      */
	int crowded;       /* some host has more ranks than cores                            */
	size_t slot_bytes; /* the smallest of the links'                                     */
	size_t inline_bytes;
	/* NULL: none. Hierarchical algorithms are taken where its groups are the hosts, or,
	 * on one host, sockets whose link would hold direct up. */
	const struct tti_shape *shape;
	/* What times are predicted from if its nodes are the hosts; else, and NULL, that is
	 * made of the shape, or of n and nhosts. */
	const struct tti_tune_machine *machine;
	const struct tti_tune_table *tune; /* NULL: tti_tune_defaults() */
};

struct tti_choice {
	const struct tti_algorithm *algo;
	size_t slice_bytes; /* per step, <= slot_bytes */
};

/* `pin` is TUTTI_ALGO ("all_reduce:ring;broadcast:chain,binomial", a list is an
 * order of preference, ^ excludes) or NULL; `slice` TUTTI_SLICE or 0. TUTTI_EINVAL
 * names what is wrong with the pin. */
TUTTI_CHECKED tutti_status tti_choose(const struct tti_choice_input *input, const char *pin,
				      size_t slice, struct tti_choice *out);

#endif
