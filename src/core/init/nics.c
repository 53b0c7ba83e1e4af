/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/nics.h"

#include <string.h>

#include "core/init/comm_job.h"
#include "plan/connect/nic_affinity.h"
#include "plan/connect/nic_pairs.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "the NICs of ranks: out of memory");
}

static const struct tti_host_info *info_of(const struct tti_host_classes *hosts, uint32_t rank)
{
	return &hosts->info[hosts->leader[rank]];
}

/* The index of a node's NET in the info of its leader. */
static uint8_t index_of_net(const struct tti_job_node *node, const struct tti_host_info *info,
			    uint32_t net)
{
	const struct tti_graph *graph = node->routes->paths->graph;

	for (uint32_t i = 0; i < info->nnets && i < TTI_HOST_NETS; i++)
		if (graph->nodes[node->nets[net]].element == info->nets[i])
			return (uint8_t)i;
	return TTI_NIC_NONE;
}

/* A node for nic_affinity.h; without NICs if they have no names here. */
static bool fill(const struct tti_job_node *node, const struct tti_host_info *info,
		 struct tti_arena *arena, struct tti_nic_affinity_node *out)
{
	uint64_t *rail = tti_arena_alloc(arena, node->nnets * sizeof(*rail) + 1);

	*out = (struct tti_nic_affinity_node){ .routes = node->routes,
					       .members = node->members,
					       .nranks = node->nranks,
					       .rail = rail };
	if (!rail)
		return false;
	if (info->nnets == TTI_HOST_ANY_NET)
		return true;
	out->nets = node->nets;
	out->nnets = node->nnets;
	for (uint32_t net = 0; net < node->nnets; net++) {
		const uint8_t at = index_of_net(node, info, net);

		rail[net] = at == TTI_NIC_NONE ? 0 : info->rail[at];
	}
	return true;
}

static void write_order(const struct tti_job_node *node, const struct tti_host_info *info,
			const uint32_t *order, struct tti_nic_order *out)
{
	for (uint32_t i = 0; i < node->nranks; i++)
		for (uint32_t k = 0; k < node->nnets && k < TTI_HOST_NETS; k++)
			out[node->ranks[i]].at[k] =
				index_of_net(node, info, order[i * node->nnets + k]);
}

tutti_status tti_nics_deal(const struct tti_comm_job *job, const struct tti_host_classes *hosts,
			   struct tti_nic_order *order_out, bool *some_out)
{
	const uint32_t nnodes = job->job.nnodes;
	struct tti_arena arena = { NULL };
	struct tti_nic_affinity_node *nodes = tti_arena_alloc(&arena, nnodes * sizeof(*nodes));
	uint32_t **order = NULL;
	tutti_status st = nodes ? TUTTI_OK : no_memory();

	*some_out = false;
	memset(order_out, TTI_NIC_NONE, job->job.nranks * sizeof(*order_out));
	for (uint32_t i = 0; i < nnodes && st == TUTTI_OK; i++) {
		const struct tti_job_node *node = &job->job.nodes[i];

		if (!fill(node, info_of(hosts, node->ranks[0]), &arena, &nodes[i]))
			st = no_memory();
		*some_out |= nodes[i].nnets > 1;
	}
	if (st == TUTTI_OK && *some_out)
		st = tti_nic_affinity_assign(nodes, nnodes, &arena, &order);
	for (uint32_t i = 0; i < nnodes && st == TUTTI_OK; i++) {
		const struct tti_job_node *node = &job->job.nodes[i];

		if (*some_out && nodes[i].nnets > 0)
			write_order(node, info_of(hosts, node->ranks[0]), order[i], order_out);
	}
	tti_arena_release(&arena);
	return st;
}

/* A bond is one interface of several NICs. */
static bool is_named(const struct tti_nic_names *names, const char *name)
{
	for (int i = 0; i < names->n; i++)
		if (strcmp(names->name[i], name) == 0)
			return true;
	return false;
}

void tti_nics_name(const struct tti_host_classes *hosts, int rank,
		   const struct tti_nic_order *order, struct tti_nic_names *out)
{
	const struct tti_host_info *info = info_of(hosts, (uint32_t)rank);

	*out = (struct tti_nic_names){ .n = 0 };
	for (int k = 0; k < TTI_HOST_NETS; k++) {
		const uint8_t at = order->at[k];
		char name[TTI_HOST_IFNAME];

		if (at >= TTI_HOST_NETS || at >= info->nnets)
			continue;
		memcpy(name, info->ifname[at], sizeof(name));
		name[sizeof(name) - 1] = '\0';
		if (name[0] && !is_named(out, name))
			memcpy(out->name[out->n++], name, sizeof(name));
	}
}

/* -- What the plan says -------------------------------------------------------------- */

static const struct tti_job_node *node_of_rank(const struct tti_comm_job *job, uint32_t rank)
{
	for (uint32_t i = 0; i < job->job.nnodes; i++)
		for (uint32_t k = 0; k < job->job.nodes[i].nranks; k++)
			if (job->job.nodes[i].ranks[k] == rank)
				return &job->job.nodes[i];
	return NULL;
}

/* A plan from a file only has names. */
static uint8_t locate(const struct tti_job_node *node, const struct tti_host_info *info,
		      const char *name)
{
	const uint32_t found = tti_graph_find(node->routes->paths->graph, TTI_NODE_NET, name);

	for (uint32_t net = 0; net < node->nnets && info->nnets != TTI_HOST_ANY_NET; net++)
		if (node->nets[net] == found)
			return index_of_net(node, info, net);
	return TTI_NIC_NONE;
}

tutti_status tti_nics_locate(const struct tti_comm_job *job, const struct tti_host_classes *hosts,
			     const struct tti_plan *plan, uint8_t **at_out, uint32_t *n_out)
{
	uint32_t n = 0;

	*n_out = 0;
	for (uint32_t i = 0; i < plan->nnodes; i++)
		n += plan->nodes[i].nnets;
	*at_out = tti_alloc(n + 1);
	if (!*at_out)
		return no_memory();
	for (uint32_t i = 0; i < plan->nnodes; i++) {
		const struct tti_plan_node *node = &plan->nodes[i];
		const struct tti_job_node *here = node_of_rank(job, node->ranks[0]);
		const struct tti_host_info *info = info_of(hosts, node->ranks[0]);

		for (uint32_t net = 0; net < node->nnets; net++) {
			const uint8_t at = locate(here, info, node->nets[net]);

			if (at == TTI_NIC_NONE)
				tti_log(TTI_LOG_INFO, TTI_PLAN,
					"NIC %s of the plan is none that rank %u uses: what should "
					"go by it goes by others",
					node->nets[net], node->ranks[0]);
			(*at_out)[(*n_out)++] = at;
		}
	}
	return TUTTI_OK;
}

static const char *name_at(const struct tti_plan *plan, const struct tti_host_classes *hosts,
			   const uint8_t *at, uint32_t rank, uint32_t net)
{
	const struct tti_host_info *info = info_of(hosts, rank);
	uint8_t slot;

	for (uint32_t node = 0; node < plan->ranks[rank].node; node++)
		at += plan->nodes[node].nnets;
	slot = at[net];
	return slot < TTI_HOST_NETS && slot < info->nnets && info->ifname[slot][0]
		       ? info->ifname[slot]
		       : NULL;
}

static tutti_status make_room(struct tti_nic_wires *wires, uint32_t n)
{
	*wires = (struct tti_nic_wires){
		.peer = tti_calloc(n + 1, sizeof(*wires->peer)),
		.share = tti_calloc(n + 1, sizeof(*wires->share)),
	};
	if (wires->peer && wires->share)
		return TUTTI_OK;
	tti_nics_unwire(wires);
	return no_memory();
}

/* Two NICs of the plan may be one interface: a bond. */
static void add_share(struct tti_nic_wires *wires, int peer, const char *near, const char *far,
		      double gbps)
{
	struct tti_lane_share one = { .share = gbps };

	memcpy(one.local_nic, near, sizeof(one.local_nic) - 1);
	memcpy(one.remote_nic, far, sizeof(one.remote_nic) - 1);
	for (int i = wires->n; i-- > 0 && wires->peer[i] == peer;)
		if (strcmp(wires->share[i].local_nic, one.local_nic) == 0 &&
		    strcmp(wires->share[i].remote_nic, one.remote_nic) == 0) {
			wires->share[i].share += gbps;
			return;
		}
	wires->peer[wires->n] = peer;
	wires->share[wires->n++] = one;
}

tutti_status tti_nics_wire(const struct tti_plan *plan, const struct tti_host_classes *hosts,
			   const uint8_t *at, int rank, struct tti_nic_wires *out)
{
	struct tti_nic_pairs wires;
	tutti_status st = tti_nic_pairs_of_plan(plan, (uint32_t)rank, &wires);

	*out = (struct tti_nic_wires){ .n = 0 };
	if (st == TUTTI_OK)
		st = make_room(out, wires.n);
	for (uint32_t i = 0; i < wires.n && st == TUTTI_OK; i++) {
		const struct tti_nic_pair *wire = &wires.at[i];
		const char *near = name_at(plan, hosts, at, (uint32_t)rank, wire->near);
		const char *far = name_at(plan, hosts, at, wire->peer, wire->far);

		if (near && far)
			add_share(out, (int)wire->peer, near, far, wire->out_gbps);
	}
	tti_nic_pairs_release(&wires);
	return st;
}

tutti_status tti_nics_rewire(const struct tti_nic_wires *wires, const int *ranks, int n,
			     struct tti_nic_wires *out)
{
	*out = (struct tti_nic_wires){ .n = 0 };
	if (!wires->n)
		return TUTTI_OK;
	TTI_TRY(make_room(out, (uint32_t)wires->n));
	for (int rank = 0; rank < n; rank++)
		for (int i = 0; i < wires->n; i++) {
			if (wires->peer[i] != ranks[rank])
				continue;
			out->peer[out->n] = rank;
			out->share[out->n++] = wires->share[i];
		}
	return TUTTI_OK;
}

tutti_status tti_nics_copy(const struct tti_nic_names *names, struct tti_nic_names **out)
{
	*out = NULL;
	if (!names || names->n == 0)
		return TUTTI_OK;
	*out = tti_alloc(sizeof(**out));
	if (!*out)
		return tti_fail(TUTTI_ENOMEM, "names of NICs: out of memory");
	**out = *names;
	return TUTTI_OK;
}

void tti_nics_unwire(struct tti_nic_wires *wires)
{
	tti_free(wires->peer);
	tti_free(wires->share);
	*wires = (struct tti_nic_wires){ .n = 0 };
}

void tti_nics_assign(const struct tti_nic_wires *wires, struct tti_port *port,
		     const uint8_t *port_of, uint8_t number)
{
	for (int i = 0, end; port->transport->assign && i < wires->n; i = end) {
		end = i + 1;
		while (end < wires->n && wires->peer[end] == wires->peer[i])
			end++;
		if (port_of[wires->peer[i]] == number)
			port->transport->assign(port, wires->peer[i], &wires->share[i], end - i);
	}
}
