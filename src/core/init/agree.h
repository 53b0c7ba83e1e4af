/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_AGREE_H
#define TTI_CORE_AGREE_H

/* One plan for all ranks: rank 0 makes it of the topologies of all hosts, or reads it
 * from TUTTI_PLAN_FILE, and all others receive its text. Nothing of it is computed twice,
 * so that processors that round otherwise cannot disagree; what each rank makes of the
 * text (its shape) is compared by its hash.
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

/* Not where there is nothing to choose: one host with one NUMA node, and nobody names a
 * topology or a plan. The same on all ranks. */
bool tti_needs_plan(const struct tti_peers *peers, int nhosts);

/* host_of[rank]: the lowest rank of its host; topology_ns: when the topologies were
 * together. Every error is that of all ranks. */
TUTTI_CHECKED tutti_status tti_agree_on_plan(const struct tti_peers *peers, const int *host_of,
					     int nhosts, struct tti_agreed *out,
					     int64_t *topology_ns);
void tti_agreed_release(struct tti_agreed *agreed);

/* Where the topology in use is to be written and nothing is planned: only look. */
TUTTI_CHECKED tutti_status tti_dump_topology(const struct tti_peers *peers);

/* -- agreed_show.c ------------------------------------------------------------------ */

/* In one line: "6 ranks on 3 nodes, ring 1.2 GB/s of at most 1.2 (...), ...". */
void tti_agreed_sum_up(const struct tti_agreed *agreed, struct tti_strbuf *out);
/* All of it, as text or as JSON that tti_plan_read() reads. */
TUTTI_CHECKED tutti_status tti_agreed_print(const struct tti_agreed *agreed, bool json,
					    struct tti_strbuf *out);
/* The same of a communicator that was made of another: it has no plan of its own but the shape
 * of the other's, NULL if there is nothing to choose. As JSON null. */
TUTTI_CHECKED tutti_status tti_derived_print(const struct tti_shape *shape, int n, bool json,
					     struct tti_strbuf *out);

#endif
