/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/nics.h"

#include <string.h>

#include "core/comm_job.h"
#include "plan/lanes.h"
#include "util/error.h"
#include "util/mem.h"

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "the NICs of ranks: out of memory");
}

static const struct tti_topo_card *card_of(const struct tti_views *views, uint32_t rank)
{
	return &views->cards[views->leader[rank]];
}

/* Which of its leader's NICs a NET of a node is. */
static uint8_t index_on_card(const struct tti_job_node *node, const struct tti_topo_card *card,
			     uint32_t net)
{
	const struct tti_graph *graph = node->routes->paths->graph;

	for (uint32_t i = 0; i < card->nnets && i < TTI_CARD_NETS; i++)
		if (graph->nodes[node->nets[net]].element == card->nets[i])
			return (uint8_t)i;
	return TTI_NIC_NONE;
}

/* A node as lanes.h wants it; one whose NICs have no names here is left without. */
static bool fill(const struct tti_job_node *node, const struct tti_topo_card *card,
		 struct tti_arena *arena, struct tti_lanes_node *out)
{
	uint64_t *rail = tti_arena_alloc(arena, node->nnets * sizeof(*rail) + 1);

	*out = (struct tti_lanes_node){ .routes = node->routes,
					.members = node->members,
					.nranks = node->nranks,
					.rail = rail };
	if (!rail)
		return false;
	if (card->nnets == TTI_CARD_ANY_NET)
		return true;
	out->nets = node->nets;
	out->nnets = node->nnets;
	for (uint32_t net = 0; net < node->nnets; net++) {
		const uint8_t at = index_on_card(node, card, net);

		rail[net] = at == TTI_NIC_NONE ? 0 : card->rail[at];
	}
	return true;
}

static void write_order(const struct tti_job_node *node, const struct tti_topo_card *card,
			const uint32_t *order, struct tti_nic_order *out)
{
	for (uint32_t i = 0; i < node->nranks; i++)
		for (uint32_t k = 0; k < node->nnets && k < TTI_CARD_NETS; k++)
			out[node->ranks[i]].at[k] =
				index_on_card(node, card, order[i * node->nnets + k]);
}

tutti_status tti_nics_deal(const struct tti_comm_job *job, const struct tti_views *views,
			   struct tti_nic_order *order_out, bool *some_out)
{
	const uint32_t nnodes = job->job.nnodes;
	struct tti_arena arena = { NULL };
	struct tti_lanes_node *nodes = tti_arena_alloc(&arena, nnodes * sizeof(*nodes));
	uint32_t **order = NULL;
	tutti_status st = nodes ? TUTTI_OK : no_memory();

	*some_out = false;
	memset(order_out, TTI_NIC_NONE, job->job.nranks * sizeof(*order_out));
	for (uint32_t i = 0; i < nnodes && st == TUTTI_OK; i++) {
		const struct tti_job_node *node = &job->job.nodes[i];

		if (!fill(node, card_of(views, node->ranks[0]), &arena, &nodes[i]))
			st = no_memory();
		*some_out |= nodes[i].nnets > 1;
	}
	if (st == TUTTI_OK && *some_out)
		st = tti_lanes_assign(nodes, nnodes, &arena, &order);
	for (uint32_t i = 0; i < nnodes && st == TUTTI_OK; i++) {
		const struct tti_job_node *node = &job->job.nodes[i];

		if (*some_out && nodes[i].nnets > 0)
			write_order(node, card_of(views, node->ranks[0]), order[i], order_out);
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

void tti_nics_name(const struct tti_views *views, int rank, const struct tti_nic_order *order,
		   struct tti_nic_names *out)
{
	const struct tti_topo_card *card = card_of(views, (uint32_t)rank);

	*out = (struct tti_nic_names){ .n = 0 };
	for (int k = 0; k < TTI_CARD_NETS; k++) {
		const uint8_t at = order->at[k];
		char name[TTI_CARD_IFNAME];

		if (at >= TTI_CARD_NETS || at >= card->nnets)
			continue;
		memcpy(name, card->ifname[at], sizeof(name));
		name[sizeof(name) - 1] = '\0';
		if (name[0] && !is_named(out, name))
			memcpy(out->name[out->n++], name, sizeof(name));
	}
}
