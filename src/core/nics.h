/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_NICS_H
#define TTI_CORE_NICS_H

/* Which NICs each rank should use first, where hosts have several: dealt out by rank 0
 * (plan/lanes.h), told to all, and by each rank to its TCP port.
 *
 * Threads: one at a time. */

#include "core/topo_exchange.h"

struct tti_comm_job;

/* The NICs of one rank in order, as indices into the card of its host's leader. */
struct tti_nic_order {
	uint8_t at[TTI_CARD_NETS]; /* TTI_NIC_NONE: no more */
};
#define TTI_NIC_NONE UINT8_MAX

struct tti_nic_names {
	char name[TTI_CARD_NETS][TTI_CARD_IFNAME];
	int n;
};

/* order_out[n], by rank. *some_out: there is a host with two NICs or more. */
TUTTI_CHECKED tutti_status tti_nics_deal(const struct tti_comm_job *job,
					 const struct tti_views *views,
					 struct tti_nic_order *order_out, bool *some_out);

/* The interfaces of a rank in that order, each once. */
void tti_nics_name(const struct tti_views *views, int rank, const struct tti_nic_order *order,
		   struct tti_nic_names *out);

#endif
