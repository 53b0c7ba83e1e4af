/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_CHOOSE_H
#define TTI_COLL_CHOOSE_H

/* Which algorithm, in which slices, for a call. Pure: the same on all ranks, as
 * it looks at nothing that differs between them. */

#include <stddef.h>

#include "coll/program.h"

/* What messages cost; 0: what is usual. Between groups of the shape (hosts; without a
 * shape every host is one), and inside one. */
struct tti_choice_costs {
	double local_ns, remote_ns; /* of one hop                                    */
	double local_gbps;          /* of one rank, to others of its group           */
	double remote_gbps;         /* of all ranks of a group together, to another one */
};

struct tti_choice_input {
	tutti_collective coll;
	int n;
	size_t nbytes;     /* of the whole vector: all_gather: received, reduce_scatter: sent */
	int nhosts;        /* 1: all ranks share memory                                      */
	int crowded;       /* some host has more ranks than cores                            */
	size_t slot_bytes; /* the smallest of the links'                                     */
	size_t inline_bytes;
	const struct tti_shape *shape; /* NULL: none */
	struct tti_choice_costs costs;
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
