/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_AGREE_H
#define TTI_CORE_INIT_AGREE_H

/* One plan for all ranks: rank 0 makes it from the topologies of all hosts, or reads it from
 * TUTTI_PLAN_FILE, and the others receive its text. Only rank 0 computes it, so processors that
 * round differently cannot disagree. Each rank makes the shape from the text; ranks compare its
 * hash.
 *
 * Owner: tti_agreed_release(). Threads: one at a time; any may read what came out. */

#include "core/init/nics.h"
#include "util/strbuf.h"

struct tti_plan;
struct tti_shape;

struct tti_agreed {
	struct tti_plan *plan;      /* NULL: nothing to choose, ranks go by number */
	struct tti_shape *shape;    /* of the plan; NULL without one               */
	struct tti_nic_names nics;  /* which this rank should use first; none: as they come */
	struct tti_nic_wires wires; /* by which it talks to neighbours in channels */
	struct tti_wiring *wiring;  /* NULL: nothing was detected */
};

/* Whether there is anything to plan: not on one host with one NUMA node, unless a rank names a
 * topology or a plan. The same on all ranks. */
bool tti_needs_plan(const struct tti_peers *peers, int nhosts);

/* host_of[rank]: the lowest rank of its host; topology_ns: when the topologies were gathered.
 * All ranks have the same status. */
TUTTI_CHECKED tutti_status tti_agree_on_plan(const struct tti_peers *peers, const int *host_of,
					     int nhosts, struct tti_agreed *out,
					     int64_t *topology_ns);
void tti_agreed_release(struct tti_agreed *agreed);

/* Nothing is planned, but a rank wants the topology in use in a file: detect. */
TUTTI_CHECKED tutti_status tti_dump_topology(const struct tti_peers *peers);

/* -- agreed_show.c ------------------------------------------------------------------ */

/* In one line: "6 ranks on 3 nodes, ring 1.2 GB/s of at most 1.2 (...), ...". */
void tti_agreed_sum_up(const struct tti_agreed *agreed, struct tti_strbuf *out);
/* All of it, as text or as JSON that tti_plan_read() reads. */
TUTTI_CHECKED tutti_status tti_agreed_print(const struct tti_agreed *agreed, bool json,
					    struct tti_strbuf *out);
/* The same for a communicator that was made of another one: it has no plan, but a shape, NULL if
 * there was nothing to plan. Its JSON is null. */
TUTTI_CHECKED tutti_status tti_derived_print(const struct tti_shape *shape, int n, bool json,
					     struct tti_strbuf *out);

#endif
