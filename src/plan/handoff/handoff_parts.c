/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/connect/nic_affinity.h"
#include "plan/handoff/handoff_work.h"
#include "util/error.h"

/* If a side is sharded, each part goes its own way: a part that only one rank has goes from that
 * rank to each node in turn, a part that only one rank shall have goes straight to it. */

struct parts {
	struct tti_hand_work *work;
	uint32_t *net_out, *net_in; /* of each rank: the NIC that is its own */
	uint32_t *order, norder;    /* nodes that receive                    */
	uint32_t turn;
};

/* Its own NIC for each rank of a side on a node. */
static tutti_status deal(struct parts *p, const struct tti_hand_node *node, const uint32_t *ranks,
			 uint32_t n, uint32_t *net)
{
	struct tti_hand_work *work = p->work;
	uint32_t *members = tti_arena_alloc(&work->arena, n * sizeof(*members) + 1), **order;
	const struct tti_nic_affinity_node lanes = { .routes = node->job->routes,
						     .members = members,
						     .nranks = n,
						     .nets = node->job->nets,
						     .nnets = node->job->nnets };

	if (!members)
		return tti_hand_no_memory();
	for (uint32_t i = 0; i < n; i++)
		members[i] = node->ends[work->end_of[ranks[i]]];
	TTI_TRY(tti_nic_affinity_assign(&lanes, 1, &work->arena, &order));
	for (uint32_t i = 0; i < n; i++)
		net[ranks[i]] = lanes.nnets ? order[0][(size_t)i * lanes.nnets] : TTI_NO_NET;
	return TUTTI_OK;
}

static tutti_status parts_init(struct parts *p, struct tti_hand_work *work)
{
	const uint32_t nranks = work->handoff->job->nranks;

	*p = (struct parts){ .work = work };
	p->net_out = tti_arena_alloc(&work->arena, 2 * (size_t)nranks * sizeof(*p->net_out));
	p->order = tti_arena_alloc(&work->arena, work->nnodes * sizeof(*p->order));
	if (!p->net_out || !p->order)
		return tti_hand_no_memory();
	p->net_in = p->net_out + nranks;
	p->norder = tti_hand_list_remote(work, true, p->order);
	for (uint32_t i = 0; i < work->nnodes; i++) {
		const struct tti_hand_node *node = &work->nodes[i];

		TTI_TRY(deal(p, node, node->from, node->nfrom, p->net_out));
		TTI_TRY(deal(p, node, node->to, node->nto, p->net_in));
	}
	return TUTTI_OK;
}

/* A gateway of a node, of the NIC on one rail with another where there is one, in turn. */
static bool find_gateway(const struct tti_hand_node *node, const struct tti_hand_gateways *gateways,
			 const struct tti_hand_node *other, uint32_t net, uint32_t turn,
			 struct tti_hand_gateway *out)
{
	const uint32_t n = gateways->first[node->job->nnets];

	for (uint32_t i = 0; other && net != TTI_NO_NET && i < n; i++) {
		*out = gateways->at[(turn + i) % n];
		if (tti_hand_is_straight(other, net, node, out->net))
			return true;
	}
	if (n)
		*out = gateways->at[turn % n];
	return n > 0;
}

static tutti_status no_way(const struct parts *p, uint32_t from, uint32_t to)
{
	return tti_fail(TUTTI_EPLAN,
			"nothing leads from rank %u on node %s to rank %u on node %s: a NIC is "
			"missing",
			from, tti_hand_node_name(tti_hand_node_of(p->work, from)), to,
			tti_hand_node_name(tti_hand_node_of(p->work, to)));
}

static tutti_status add_part(struct parts *p, struct tti_hand_atom atom)
{
	const struct tti_hand_node *a = tti_hand_node_of(p->work, atom.from);
	const struct tti_hand_node *b = tti_hand_node_of(p->work, atom.to);

	if (a == b) {
		atom.net_out = atom.net_in = TTI_NO_NET;
		atom.straight = true;
	} else if (atom.net_out == TTI_NO_NET || atom.net_in == TTI_NO_NET) {
		return no_way(p, atom.from, atom.to);
	} else {
		atom.straight = tti_hand_is_straight(a, atom.net_out, b, atom.net_in);
	}
	return tti_hand_add_atom(p->work, &atom) ? TUTTI_OK : tti_hand_no_memory();
}

/* A part that one rank has, to all of a node: from that rank, or from the node before. */
static tutti_status bring_part(struct parts *p, uint32_t part, const struct tti_hand_node *before,
			       uint32_t to)
{
	const struct tti_handoff_job *handoff = p->work->handoff;
	const struct tti_hand_node *node = &p->work->nodes[to];
	struct tti_hand_gateway out = { handoff->from[part], p->net_out[handoff->from[part]] };
	struct tti_hand_gateway in = { handoff->to[0], TTI_NO_NET };

	if (before && !find_gateway(before, &before->relay, NULL, 0, part, &out))
		out = (struct tti_hand_gateway){ before->to[0], TTI_NO_NET };
	if (!find_gateway(node, &node->in, tti_hand_node_of(p->work, out.rank), out.net, part, &in))
		in.rank = node->to[0];
	return add_part(p, (struct tti_hand_atom){ .from = out.rank,
						   .to = in.rank,
						   .net_out = out.net,
						   .net_in = in.net,
						   .part = part,
						   .weight = 1.0 / handoff->nfrom,
						   .spreads = true });
}

/* Where in the order of nodes a part's way begins: behind the node that has it. So what many
 * nodes have goes round a ring, in which each sends as much as it gets. */
static uint32_t first_place(const struct parts *p, uint32_t home)
{
	for (uint32_t place = 0; place < p->norder; place++)
		if (p->order[place] == home)
			return (place + 1) % p->norder;
	return 0;
}

/* Parts to a node that shall have all of them. */
static tutti_status gather_parts(struct parts *p, uint32_t place)
{
	const struct tti_handoff_job *handoff = p->work->handoff;
	const uint32_t to = p->order[place];
	const uint32_t before = p->order[(place + p->norder - 1) % p->norder];

	for (uint32_t part = 0; part < handoff->nfrom; part++) {
		const uint32_t source = handoff->from[part], home = p->work->node_of[source];
		const bool is_first = place == first_place(p, home);

		if (home == to) {
			TTI_TRY(add_part(p, (struct tti_hand_atom){ .from = source,
								    .to = source,
								    .part = part,
								    .weight = 1.0 / handoff->nfrom,
								    .spreads = true }));
			continue;
		}
		TTI_TRY(bring_part(p, part, is_first ? NULL : &p->work->nodes[before], to));
	}
	return TUTTI_OK;
}

/* One part, that one rank alone shall have, of ranks that all have it. */
static tutti_status fetch_part(struct parts *p, uint32_t to, double weight)
{
	const struct tti_hand_node *node = tti_hand_node_of(p->work, to);
	struct tti_hand_atom atom = { .from = node->nfrom ? node->from[p->turn % node->nfrom] : 0,
				      .to = to,
				      .net_in = p->net_in[to],
				      .part = TTI_HANDOFF_WHOLE,
				      .weight = weight };
	const struct tti_hand_node *source;
	struct tti_hand_gateway out;
	uint32_t turn = p->turn++;

	if (node->nfrom)
		return add_part(p, atom);
	source = tti_hand_node_of(p->work, p->work->handoff->from[turn % p->work->handoff->nfrom]);
	if (!find_gateway(source, &source->out, node, atom.net_in, turn, &out))
		return no_way(p, source->from[0], to);
	atom.from = out.rank;
	atom.net_out = out.net;
	return add_part(p, atom);
}

/* The i-th of n equal parts against the k-th of m: how much of the vector both hold. */
static double overlap(uint32_t i, uint32_t n, uint32_t k, uint32_t m)
{
	const double begin = (double)i / n > (double)k / m ? (double)i / n : (double)k / m;
	const double end = (double)(i + 1) / n < (double)(k + 1) / m ? (double)(i + 1) / n
								     : (double)(k + 1) / m;

	return end - begin > 1e-12 ? end - begin : 0;
}

static tutti_status scatter_part(struct parts *p, uint32_t place)
{
	const struct tti_handoff_job *handoff = p->work->handoff;
	const uint32_t to = handoff->to[place];

	if (!handoff->from_sharded)
		return p->work->is_from[to] ? TUTTI_OK : fetch_part(p, to, 1.0 / handoff->nto);
	for (uint32_t part = 0; part < handoff->nfrom; part++) {
		const double weight = overlap(part, handoff->nfrom, place, handoff->nto);

		if (weight <= 0 || handoff->from[part] == to)
			continue;
		TTI_TRY(add_part(p,
				 (struct tti_hand_atom){ .from = handoff->from[part],
							 .to = to,
							 .net_out = p->net_out[handoff->from[part]],
							 .net_in = p->net_in[to],
							 .part = part,
							 .weight = weight }));
	}
	return TUTTI_OK;
}

tutti_status tti_hand_add_parts(struct tti_hand_work *work)
{
	const struct tti_handoff_job *handoff = work->handoff;
	struct parts p;

	TTI_TRY(parts_init(&p, work));
	for (uint32_t i = 0; i < p.norder; i++) {
		const uint32_t to = p.order[i];

		if (!tti_hand_begin_leg(work, to, handoff->to_sharded ? 1 : i + 1) ||
		    !tti_hand_begin_option(work, 1))
			return tti_hand_no_memory();
		if (!handoff->to_sharded)
			TTI_TRY(gather_parts(&p, i));
		for (uint32_t k = 0; k < handoff->nto && handoff->to_sharded; k++)
			if (work->node_of[handoff->to[k]] == to)
				TTI_TRY(scatter_part(&p, k));
		tti_hand_end_leg(work);
	}
	return TUTTI_OK;
}
