/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/handoff/handoff_work.h"

#include <string.h>

#include "util/error.h"

/* The most gateways of a node: each is a stripe, and many stripes are no faster. */
#define MOST_GATEWAYS 16

tutti_status tti_hand_no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "plan of a handoff: out of memory");
}

const struct tti_hop *tti_hand_hop_out(const struct tti_hand_work *work, uint32_t rank,
				       uint32_t net)
{
	return tti_hop_out(tti_hand_node_of(work, rank)->loads, net, work->end_of[rank]);
}

const struct tti_hop *tti_hand_hop_in(const struct tti_hand_work *work, uint32_t rank, uint32_t net)
{
	return tti_hop_in(tti_hand_node_of(work, rank)->loads, net, work->end_of[rank]);
}

const struct tti_hop *tti_hand_hop(const struct tti_hand_work *work, uint32_t from, uint32_t to)
{
	return tti_hop(tti_hand_node_of(work, from)->loads, work->end_of[from], work->end_of[to]);
}

/* -- Sides ------------------------------------------------------------------------- */

static tutti_status read_side(const struct tti_hand_work *work, const char *name,
			      const uint32_t *ranks, uint32_t n, bool *is_on)
{
	const uint32_t nranks = work->handoff->job->nranks;

	if (n == 0)
		return tti_fail(TUTTI_EINVAL, "side '%s' of a handoff has no ranks", name);
	for (uint32_t i = 0; i < n; i++) {
		if (ranks[i] >= nranks)
			return tti_fail(TUTTI_EINVAL,
					"side '%s' of a handoff has rank %u: there are %u ranks",
					name, ranks[i], nranks);
		if (is_on[ranks[i]])
			return tti_fail(TUTTI_EINVAL, "rank %u is on side '%s' of a handoff twice",
					ranks[i], name);
		is_on[ranks[i]] = true;
	}
	return TUTTI_OK;
}

/* Find the node of each rank, and list the nodes with ranks of either side, in the order of the
 * job. */
static void place_ranks(struct tti_hand_work *work)
{
	const struct tti_plan_job *job = work->handoff->job;

	for (uint32_t i = 0; i < job->nnodes; i++) {
		const struct tti_job_node *node = &job->nodes[i];
		bool takes_part = false;

		for (uint32_t k = 0; k < node->nranks; k++) {
			const uint32_t rank = node->ranks[k];

			work->node_of[rank] = work->nnodes;
			work->place_of[rank] = k;
			takes_part |= work->is_from[rank] || work->is_to[rank];
		}
		if (!takes_part)
			continue;
		work->nodes[work->nnodes].node = i;
		work->nodes[work->nnodes++].job = node;
	}
}

static void add_to_nodes(struct tti_hand_work *work)
{
	const struct tti_handoff_job *handoff = work->handoff;

	for (uint32_t i = 0; i < handoff->nfrom; i++) {
		struct tti_hand_node *node = tti_hand_node_of(work, handoff->from[i]);

		node->from[node->nfrom++] = handoff->from[i];
	}
	for (uint32_t i = 0; i < handoff->nto; i++) {
		struct tti_hand_node *node = tti_hand_node_of(work, handoff->to[i]);

		node->to[node->nto++] = handoff->to[i];
	}
}

/* -- Ends: where ranks live -------------------------------------------------------- */

static void add_end(struct tti_hand_work *work, struct tti_hand_node *node, uint32_t rank)
{
	const uint32_t at = node->job->members[work->place_of[rank]];
	uint32_t end = 0;

	while (end < node->nends && node->ends[end] != at)
		end++;
	if (end == node->nends) {
		node->ends[end] = at;
		node->ranks[end] = rank;
		node->nends++;
	}
	node->wants[end] |= work->is_to[rank];
	work->end_of[rank] = end;
}

static bool same_ends(const struct tti_hand_node *a, const struct tti_hand_node *b)
{
	return a->job->routes == b->job->routes && a->nends == b->nends &&
	       a->job->nnets == b->job->nnets &&
	       !memcmp(a->ends, b->ends, a->nends * sizeof(*a->ends)) &&
	       (a->job->nnets == 0 ||
		!memcmp(a->job->nets, b->job->nets, a->job->nnets * sizeof(*a->job->nets)));
}

/* Nodes alike load alike links, each its own. */
static tutti_status load_node(struct tti_hand_work *work, struct tti_hand_node *node)
{
	const struct tti_members members = { .routes = node->job->routes,
					     .nodes = node->ends,
					     .n = node->nends,
					     .nets = node->job->nets,
					     .nnets = node->job->nnets };

	for (struct tti_hand_node *other = work->nodes; other < node; other++)
		if (same_ends(other, node))
			node->loads = other->loads;
	if (!node->loads) {
		TTI_TRY(tti_loads_build(&members, &node->loads));
		node->owns_loads = true;
	}
	node->first_row = work->nrows;
	work->nrows += node->loads->nrows;
	return TUTTI_OK;
}

/* Ranks of `to` stand for their ends before others. */
static tutti_status find_ends(struct tti_hand_work *work, struct tti_hand_node *node)
{
	for (uint32_t i = 0; i < node->nto; i++)
		add_end(work, node, node->to[i]);
	for (uint32_t i = 0; i < node->nfrom; i++)
		add_end(work, node, node->from[i]);
	return load_node(work, node);
}

/* -- Gateways ---------------------------------------------------------------------- */

/* Looking for the gateways of one direction. */
struct search {
	const struct tti_hand_work *work;
	const struct tti_hand_node *node;
	const uint32_t *ranks;
	uint32_t n;
	bool outwards;
	uint8_t *level;  /* of each NIC: how near the nearest rank is */
	uint32_t *count; /* ... and how many gateways it has             */
	uint32_t *net;   /* of each rank: its NIC                     */
	uint32_t most;   /* gateways of a NIC                            */
};

static const struct tti_hop *hop_of(const struct search *s, uint32_t index, uint32_t net)
{
	return s->outwards ? tti_hand_hop_out(s->work, s->ranks[index], net)
			   : tti_hand_hop_in(s->work, s->ranks[index], net);
}

static double cable_gbps(const struct tti_hand_node *node, uint32_t net, bool outwards)
{
	const struct tti_graph *graph = node->job->routes->paths->graph;
	const uint32_t at = node->job->nets[net], nic = graph->nodes[at].parent;
	const struct tti_topo_link *link = outwards ? tti_graph_link(graph, nic, at, TTI_LINK_NET)
						    : tti_graph_link(graph, at, nic, TTI_LINK_NET);

	return link ? (double)link->bw_gbps : 0;
}

static void find_levels(const struct search *s)
{
	for (uint32_t net = 0; net < s->node->job->nnets; net++) {
		s->level[net] = TTI_PATH_NET;
		for (uint32_t i = 0; i < s->n; i++) {
			const struct tti_hop *hop = hop_of(s, i, net);

			if (hop->bw_gbps > 0 && hop->type < s->level[net])
				s->level[net] = hop->type;
		}
	}
}

static bool sits_beside(const struct search *s, uint32_t index, uint32_t net)
{
	const struct tti_hop *hop = hop_of(s, index, net);

	return s->level[net] < TTI_PATH_NET && hop->bw_gbps > 0 && hop->type == s->level[net];
}

static uint32_t count_choices(const struct search *s, uint32_t index)
{
	uint32_t n = 0;

	for (uint32_t net = 0; net < s->node->job->nnets; net++)
		n += sits_beside(s, index, net);
	return n;
}

/* The NIC beside a rank that has fewest for its speed. */
static uint32_t choose_net(const struct search *s, uint32_t index)
{
	uint32_t best = TTI_HAND_NONE;
	double least = 0;

	for (uint32_t net = 0; net < s->node->job->nnets; net++) {
		const double load = (s->count[net] + 1) / cable_gbps(s->node, net, s->outwards);

		if (!sits_beside(s, index, net) || s->count[net] == s->most)
			continue;
		if (best == TTI_HAND_NONE || load < least * (1 - 1e-9)) {
			best = net;
			least = load;
		}
	}
	return best;
}

/* The rank with the fewest NICs to choose from chooses first. */
static void choose(const struct search *s)
{
	const uint32_t nnets = s->node->job->nnets;

	for (uint32_t i = 0; i < s->n; i++)
		s->net[i] = TTI_HAND_NONE;
	for (uint32_t choices = 1; choices <= nnets; choices++)
		for (uint32_t i = 0; i < s->n; i++) {
			if (count_choices(s, i) != choices)
				continue;
			s->net[i] = choose_net(s, i);
			if (s->net[i] != TTI_HAND_NONE)
				s->count[s->net[i]]++;
		}
}

/* A NIC that nobody chose is that of the first rank beside it, too. */
static void list_gateways(const struct search *s, struct tti_hand_gateways *out)
{
	uint32_t n = 0;

	for (uint32_t net = 0; net < s->node->job->nnets; net++) {
		const double cable = cable_gbps(s->node, net, s->outwards);
		double most = 0;

		out->first[net] = n;
		for (uint32_t i = 0; i < s->n; i++) {
			const bool idle = s->count[net] == 0 && n == out->first[net];

			if (!sits_beside(s, i, net) || !(s->net[i] == net || idle))
				continue;
			out->at[n++] = (struct tti_hand_gateway){ s->ranks[i], net };
			if ((double)hop_of(s, i, net)->bw_gbps > most)
				most = (double)hop_of(s, i, net)->bw_gbps;
		}
		out->gbps[net] = most < cable ? most : cable;
	}
	out->first[s->node->job->nnets] = n;
}

static tutti_status find_gateways(struct tti_hand_work *work, const struct tti_hand_node *node,
				  const uint32_t *ranks, uint32_t n, bool outwards,
				  struct tti_hand_gateways *out)
{
	const size_t nnets = node->job->nnets;
	struct search s = {
		.work = work, .node = node, .ranks = ranks, .n = n, .outwards = outwards
	};

	s.level = tti_arena_alloc(&work->arena, nnets + 1);
	s.count = tti_arena_alloc(&work->arena, nnets * sizeof(*s.count) + 1);
	s.net = tti_arena_alloc(&work->arena, n * sizeof(*s.net) + 1);
	out->at = tti_arena_alloc(&work->arena, (n + nnets) * sizeof(*out->at) + 1);
	out->first = tti_arena_alloc(&work->arena, (nnets + 1) * sizeof(*out->first));
	out->gbps = tti_arena_alloc(&work->arena, nnets * sizeof(*out->gbps) + 1);
	if (!s.level || !s.count || !s.net || !out->at || !out->first || !out->gbps)
		return tti_hand_no_memory();
	s.most = nnets && nnets < MOST_GATEWAYS ? (uint32_t)(MOST_GATEWAYS / nnets) : 1;
	find_levels(&s);
	choose(&s);
	list_gateways(&s, out);
	return TUTTI_OK;
}

/* -- All of it --------------------------------------------------------------------- */

static tutti_status make_room(struct tti_hand_work *work)
{
	const struct tti_plan_job *job = work->handoff->job;
	const size_t n = job->nranks;

	work->nodes = tti_arena_alloc(&work->arena, job->nnodes * sizeof(*work->nodes));
	work->node_of = tti_arena_alloc(&work->arena, n * sizeof(*work->node_of));
	work->place_of = tti_arena_alloc(&work->arena, n * sizeof(*work->place_of));
	work->end_of = tti_arena_alloc(&work->arena, n * sizeof(*work->end_of));
	work->is_from = tti_arena_alloc(&work->arena, n);
	work->is_to = tti_arena_alloc(&work->arena, n);
	if (!work->nodes || !work->node_of || !work->place_of || !work->end_of || !work->is_from ||
	    !work->is_to)
		return tti_hand_no_memory();
	return TUTTI_OK;
}

static tutti_status make_lists(struct tti_hand_work *work)
{
	for (uint32_t i = 0; i < work->nnodes; i++) {
		struct tti_hand_node *node = &work->nodes[i];
		uint32_t *room = tti_arena_alloc(&work->arena,
						 4 * (size_t)node->job->nranks * sizeof(*room));

		node->wants = tti_arena_alloc(&work->arena, node->job->nranks);
		if (!room || !node->wants)
			return tti_hand_no_memory();
		node->from = room;
		node->to = node->from + node->job->nranks;
		node->ends = node->to + node->job->nranks;
		node->ranks = node->ends + node->job->nranks;
	}
	return TUTTI_OK;
}

tutti_status tti_hand_find_nodes(struct tti_hand_work *work)
{
	const struct tti_handoff_job *handoff = work->handoff;

	TTI_TRY(make_room(work));
	TTI_TRY(read_side(work, "from", handoff->from, handoff->nfrom, work->is_from));
	TTI_TRY(read_side(work, "to", handoff->to, handoff->nto, work->is_to));
	place_ranks(work);
	TTI_TRY(make_lists(work));
	add_to_nodes(work);
	for (uint32_t i = 0; i < work->nnodes; i++) {
		struct tti_hand_node *node = &work->nodes[i];

		TTI_TRY(find_ends(work, node));
		TTI_TRY(find_gateways(work, node, node->to, node->nto, true, &node->relay));
		node->out = node->relay;
		if (node->nfrom)
			TTI_TRY(find_gateways(work, node, node->from, node->nfrom, true,
					      &node->out));
		TTI_TRY(find_gateways(work, node, node->to, node->nto, false, &node->in));
	}
	return TUTTI_OK;
}

void tti_hand_release(struct tti_hand_work *work)
{
	for (uint32_t i = 0; i < work->nnodes; i++)
		if (work->nodes[i].owns_loads)
			tti_loads_free(work->nodes[i].loads);
	tti_vec_release(&work->atoms);
	tti_vec_release(&work->options);
	tti_vec_release(&work->legs);
	tti_arena_release(&work->arena);
}
