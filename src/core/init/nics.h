/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_NICS_H
#define TTI_CORE_INIT_NICS_H

/* Which NICs ranks use, on hosts that have several. Rank 0 finds the interfaces of the plan's
 * NICs, deals them out to ranks (plan/connect/nic_affinity.h) and tells all. Data between two
 * ranks that a channel of the plan connects goes by the NICs of the channel
 * (plan/connect/nic_pairs.h); data between others by the first NICs in the order of either.
 *
 * Threads: one at a time. */

#include "core/init/host_classes.h"
#include "transport/transport.h"

struct tti_comm_job;
struct tti_plan;

/* The NICs of one rank in order: indices into the info of its host's leader. */
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

/* A copy, which the caller frees; NULL: there are no names. */
TUTTI_CHECKED tutti_status tti_nics_copy(const struct tti_nic_names *names,
					 struct tti_nic_names **out);

/* For each NIC of the plan, node after node, its index in the info of its host's leader;
 * TTI_NIC_NONE: its host does not use it. */
TUTTI_CHECKED tutti_status tti_nics_locate(const struct tti_comm_job *job,
					   const struct tti_host_classes *hosts,
					   const struct tti_plan *plan, uint8_t **at_out,
					   uint32_t *n_out);

/* The interfaces by which one rank talks to its neighbours in the channels of a plan. */
struct tti_nic_wires {
	int n;
	int *peer; /* [n], ascending: a peer has several */
	struct tti_lane_share *share;
};

/* `at`: of tti_nics_locate(); NICs that were not located are left out. tti_nics_unwire(), also
 * after a failure. */
TUTTI_CHECKED tutti_status tti_nics_wire(const struct tti_plan *plan,
					 const struct tti_host_classes *hosts, const uint8_t *at,
					 int rank, struct tti_nic_wires *out);
/* The same for a communicator of some of the ranks: its rank i is ranks[i]. */
TUTTI_CHECKED tutti_status tti_nics_rewire(const struct tti_nic_wires *wires, const int *ranks,
					   int n, struct tti_nic_wires *out);
void tti_nics_unwire(struct tti_nic_wires *wires);

/* Tell a port that can choose NICs which ones to use for its peers: those with port_of[rank] ==
 * `number`. */
void tti_nics_assign(const struct tti_nic_wires *wires, struct tti_port *port,
		     const uint8_t *port_of, uint8_t number);

#endif
