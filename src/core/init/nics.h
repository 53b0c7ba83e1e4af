/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_NICS_H
#define TTI_CORE_NICS_H

/* Which NICs ranks use, where hosts have several. Rank 0 finds out which interfaces the NICs of the
 * plan are, and deals them out to ranks (plan/connect/nic_affinity.h); all are told. Between two ranks that a
 * channel of the plan connects, data goes by the NICs of the channels (plan/connect/nic_pairs.h), between
 * others by those that are first in the order of either.
 *
 * Threads: one at a time. */

#include "core/init/host_classes.h"
#include "transport/transport.h"

struct tti_comm_job;
struct tti_plan;

/* The NICs of one rank in order, as indices into the info of its host's leader. */
struct tti_nic_order {
	uint8_t at[TTI_HOST_NETS]; /* TTI_NIC_NONE: no more */
};
#define TTI_NIC_NONE UINT8_MAX

struct tti_nic_names {
	char name[TTI_HOST_NETS][TTI_HOST_IFNAME];
	int n;
};

/* order_out[n], by rank. *some_out: there is a host with two NICs or more. */
TUTTI_CHECKED tutti_status tti_nics_deal(const struct tti_comm_job *job,
					 const struct tti_host_classes *hosts,
					 struct tti_nic_order *order_out, bool *some_out);

/* The interfaces of a rank in that order, each once. */
void tti_nics_name(const struct tti_host_classes *hosts, int rank,
		   const struct tti_nic_order *order, struct tti_nic_names *out);

/* A copy, which is the caller's to free; of NULL, or of none, NULL. */
TUTTI_CHECKED tutti_status tti_nics_copy(const struct tti_nic_names *names,
					 struct tti_nic_names **out);

/* Of each NIC of the plan, node after node, which one of the info of its host's leader it is;
 * TTI_NIC_NONE: none that its host uses. */
TUTTI_CHECKED tutti_status tti_nics_locate(const struct tti_comm_job *job,
					   const struct tti_host_classes *hosts,
					   const struct tti_plan *plan, uint8_t **at_out,
					   uint32_t *n_out);

/* By which interfaces one rank talks to its neighbours in the channels of a plan. */
struct tti_nic_wires {
	int n;
	int *peer; /* [n], ascending: a peer has several */
	struct tti_lane_share *share;
};

/* `at`: of tti_nics_locate(). What is not located is left out. tti_nics_unwire(), also after a
 * failure. */
TUTTI_CHECKED tutti_status tti_nics_wire(const struct tti_plan *plan,
					 const struct tti_host_classes *hosts, const uint8_t *at,
					 int rank, struct tti_nic_wires *out);
/* The same for a communicator of some of its ranks: ranks[i] is the number there of rank i. */
TUTTI_CHECKED tutti_status tti_nics_rewire(const struct tti_nic_wires *wires, const int *ranks,
					   int n, struct tti_nic_wires *out);
void tti_nics_unwire(struct tti_nic_wires *wires);

/* Tell a port that can choose: what goes to peers of that port. port_of[rank]: which one they are
 * reached by, this one is number `port`. */
void tti_nics_assign(const struct tti_nic_wires *wires, struct tti_port *port,
		     const uint8_t *port_of, uint8_t number);

#endif
