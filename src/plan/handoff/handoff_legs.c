/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "plan/connect/nic_affinity.h"
#include "plan/handoff/handoff_work.h"
#include "util/error.h"

/* -- Options and legs -------------------------------------------------------------- */

bool tti_hand_add_atom(struct tti_hand_work *work, const struct tti_hand_atom *atom)
{
	struct tti_hand_option *option = &work->options.at[work->options.n - 1];

	option->n++;
	return tti_vec_push(&work->atoms, *atom);
}

bool tti_hand_begin_option(struct tti_hand_work *work, double gbps)
{
	const struct tti_hand_option option = { (uint32_t)work->atoms.n, 0, gbps };

	work->legs.at[work->legs.n - 1].n++;
	return tti_vec_push(&work->options, option);
}

bool tti_hand_begin_leg(struct tti_hand_work *work, uint32_t to, uint32_t depth)
{
	const struct tti_hand_leg leg = { to, (uint32_t)work->options.n, 0, depth };

	return tti_vec_push(&work->legs, leg);
}

/* A leg into which nothing needs to come is none. */
void tti_hand_end_leg(struct tti_hand_work *work)
{
	const struct tti_hand_leg *leg = &work->legs.at[work->legs.n - 1];

	if (leg->n > 0 && work->options.at[leg->first].n > 0)
		return;
	work->options.n = leg->first;
	work->legs.n--;
}

/* -- Rails ------------------------------------------------------------------------- */

static const char *net_name(const struct tti_hand_node *node, uint32_t net)
{
	return node->job->routes->paths->graph->nodes[node->job->nets[net]].full_name;
}

bool tti_hand_is_straight(const struct tti_hand_node *a, uint32_t net,
			  const struct tti_hand_node *b, uint32_t other)
{
	const struct tti_nic_affinity_node one = { .nnets = a->job->nnets, .rail = a->job->rail };
	const struct tti_nic_affinity_node two = { .nnets = b->job->nnets, .rail = b->job->rail };

	if (tti_nic_affinity_share_rails(&one, &two))
		return one.rail[net] == two.rail[other];
	for (uint32_t i = 0; i < b->job->nnets; i++)
		if (!strcmp(net_name(a, net), net_name(b, i)))
			return i == other;
	return net == other;
}

/* -- NICs of both sides, one to one ------------------------------------------------ */

struct nic {
	const struct tti_hand_node *node;
	const struct tti_hand_gateways *gateways;
	uint32_t net, partners, turn;
	double left; /* of what it brings, not yet matched */
};

struct match {
	uint32_t out, in; /* of the lists below */
	double gbps;
	bool straight;
};

struct matching {
	TTI_VEC(struct nic) out, in;
	TTI_VEC(struct match) list;
};

static void matching_release(struct matching *m)
{
	tti_vec_release(&m->out);
	tti_vec_release(&m->in);
	tti_vec_release(&m->list);
}

static bool add_nics(const struct tti_hand_node *node, const struct tti_hand_gateways *gateways,
		     struct matching *m, bool outwards)
{
	bool good = true;

	for (uint32_t net = 0; net < node->job->nnets; net++) {
		const struct nic nic = { node, gateways, net, 0, 0, gateways->gbps[net] };

		if (gateways->gbps[net] > 0)
			good = good &&
			       (outwards ? tti_vec_push(&m->out, nic) : tti_vec_push(&m->in, nic));
	}
	return good;
}

static double sum_of(const struct nic *nics, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += nics[i].left;
	return sum;
}

static void scale(struct nic *nics, size_t n, double by)
{
	for (size_t i = 0; i < n && by < 1; i++)
		nics[i].left *= by;
}

static bool match(struct matching *m, size_t out, size_t in, double least)
{
	struct nic *a = &m->out.at[out], *b = &m->in.at[in];
	const struct match one = { (uint32_t)out, (uint32_t)in,
				   a->left < b->left ? a->left : b->left,
				   tti_hand_is_straight(a->node, a->net, b->node, b->net) };

	if (one.gbps <= least)
		return true;
	a->left -= one.gbps;
	b->left -= one.gbps;
	a->partners++;
	b->partners++;
	return tti_vec_push(&m->list, one);
}

/* All NICs of both sides by their speed: those of one rail with each other, and what is left
 * in order. */
static bool match_all(struct matching *m)
{
	const double out = sum_of(m->out.at, m->out.n), in = sum_of(m->in.at, m->in.n);
	const double least = 1e-6 * (out < in ? out : in);
	bool good = true;

	scale(m->out.at, m->out.n, in / out);
	scale(m->in.at, m->in.n, out / in);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < m->out.n; i++)
			for (size_t k = 0; k < m->in.n && good; k++)
				if (round ||
				    tti_hand_is_straight(m->out.at[i].node, m->out.at[i].net,
							 m->in.at[k].node, m->in.at[k].net))
					good = match(m, i, k, least);
	return good;
}

static uint32_t count_gateways(const struct nic *nic)
{
	return nic->gateways->first[nic->net + 1] - nic->gateways->first[nic->net];
}

/* As many of its gateways as each of its partners may have. */
static uint32_t gateways_each(const struct nic *nic)
{
	const uint32_t each = count_gateways(nic) / nic->partners;

	return each ? each : 1;
}

static uint32_t next_gateway(struct nic *nic)
{
	const uint32_t at = nic->gateways->first[nic->net] + nic->turn++ % count_gateways(nic);

	return nic->gateways->at[at].rank;
}

/* Two NICs with as many gateways on both sides: an option whose ways carry alike. */
static bool add_match(struct tti_hand_work *work, struct matching *m, const struct match *one)
{
	struct nic *a = &m->out.at[one->out], *b = &m->in.at[one->in];
	const uint32_t least =
		gateways_each(a) < gateways_each(b) ? gateways_each(a) : gateways_each(b);
	const uint32_t n = work->handoff->is_short ? 1 : least;

	if (!tti_hand_begin_option(work, one->gbps))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct tti_hand_atom atom = { .from = next_gateway(a),
						    .to = next_gateway(b),
						    .net_out = a->net,
						    .net_in = b->net,
						    .part = TTI_HANDOFF_WHOLE,
						    .weight = 1.0 / n,
						    .straight = one->straight,
						    .spreads = true };

		if (!tti_hand_add_atom(work, &atom))
			return false;
	}
	return true;
}

/* From some nodes to one. */
static tutti_status add_remote_leg(struct tti_hand_work *work, uint32_t *const *senders,
				   uint32_t nsenders, uint32_t to, uint32_t depth)
{
	const struct tti_hand_node *node = &work->nodes[to];
	struct matching m = { 0 };
	bool good = tti_hand_begin_leg(work, to, depth) && add_nics(node, &node->in, &m, false);
	tutti_status st = TUTTI_OK;

	for (uint32_t i = 0; i < nsenders && good; i++)
		good = add_nics(&work->nodes[(*senders)[i]], &work->nodes[(*senders)[i]].out, &m,
				true);
	if (good && (m.out.n == 0 || m.in.n == 0))
		st = tti_fail(TUTTI_EPLAN,
			      "node %s has no NIC that leads to a rank of the handoff, so nothing "
			      "gets %s it",
			      tti_hand_node_name(m.in.n ? &work->nodes[**senders] : node),
			      m.in.n ? "out of" : "into");
	if (good && st == TUTTI_OK)
		good = match_all(&m);
	for (size_t i = 0; i < m.list.n && good && st == TUTTI_OK; i++)
		if (i == 0 || !work->handoff->is_short)
			good = add_match(work, &m, &m.list.at[i]);
	matching_release(&m);
	return good ? st : tti_hand_no_memory();
}

/* -- Whole vectors: chains of nodes ------------------------------------------------ */

static double out_gbps(const struct tti_hand_node *node)
{
	double sum = 0;

	for (uint32_t net = 0; net < node->job->nnets; net++)
		sum += node->out.gbps[net];
	return sum;
}

/* The node that can pass on most comes first, so that the last node, which passes nothing on, is
 * the one that could pass on least. */
uint32_t tti_hand_list_remote(const struct tti_hand_work *work, bool all, uint32_t *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < work->nnodes; i++) {
		const struct tti_hand_node *node = &work->nodes[i];
		uint32_t at = n;

		if (node->nto == 0 || (node->nfrom && !all))
			continue;
		for (; at > 0 && out_gbps(&work->nodes[list[at - 1]]) < out_gbps(node); at--)
			list[at] = list[at - 1];
		list[at] = i;
		n++;
	}
	return n;
}

/* A node that holds the vector itself: from any of its sources. */
static bool add_local_leg(struct tti_hand_work *work, uint32_t index)
{
	const struct tti_hand_node *node = &work->nodes[index];
	bool missing = false;

	for (uint32_t i = 0; i < node->nto; i++)
		missing |= !work->is_from[node->to[i]];
	if (!missing)
		return true;
	if (!tti_hand_begin_leg(work, index, 0))
		return false;
	for (uint32_t i = 0; i < node->nfrom; i++) {
		const struct tti_hand_atom atom = { .from = node->from[i],
						    .to = node->from[i],
						    .net_out = TTI_NO_NET,
						    .net_in = TTI_NO_NET,
						    .part = TTI_HANDOFF_WHOLE,
						    .weight = 1,
						    .straight = true,
						    .spreads = true };

		if (!tti_hand_begin_option(work, 1) || !tti_hand_add_atom(work, &atom))
			return false;
	}
	return true;
}

/* Nodes that are served behind each other; from[]: who has it, of which each chain takes as many
 * as another. */
static tutti_status add_chains(struct tti_hand_work *work, uint32_t *from, uint32_t nfrom,
			       uint32_t *remote, uint32_t nremote)
{
	const uint32_t nchains = nfrom < nremote ? nfrom : nremote;

	for (uint32_t chain = 0; chain < nchains; chain++) {
		uint32_t *senders = from + (uint64_t)nfrom * chain / nchains;
		uint32_t nsenders =
			(uint32_t)(from + (uint64_t)nfrom * (chain + 1) / nchains - senders);
		uint32_t at = (uint32_t)((uint64_t)nremote * chain / nchains);
		const uint32_t end = (uint32_t)((uint64_t)nremote * (chain + 1) / nchains);

		for (uint32_t depth = 1; at < end; at++, depth++) {
			TTI_TRY(add_remote_leg(work, &senders, nsenders, remote[at], depth));
			senders = &remote[at];
			nsenders = 1;
		}
	}
	return TUTTI_OK;
}

/* Those that have it double with every round: nodes[0 .. n) do at first, the rest get it. */
static tutti_status add_tree(struct tti_hand_work *work, uint32_t *nodes, uint32_t n, uint32_t rest)
{
	const size_t first = work->legs.n;
	uint32_t have = n;

	for (uint32_t at = n; at < n + rest; at++) {
		uint32_t *sender, depth;

		if (at == 2 * have)
			have *= 2;
		sender = &nodes[at - have];
		depth = at - have < n ? 0 : work->legs.at[first + at - have - n].depth;
		TTI_TRY(add_remote_leg(work, &sender, 1, nodes[at], depth + 1));
	}
	return TUTTI_OK;
}

tutti_status tti_hand_add_chains(struct tti_hand_work *work)
{
	uint32_t *nodes = tti_arena_alloc(&work->arena, 2 * work->nnodes * sizeof(*nodes));
	uint32_t nsources = 0, nremote;

	if (!nodes)
		return tti_hand_no_memory();
	for (uint32_t i = 0; i < work->nnodes; i++)
		if (work->nodes[i].nfrom) {
			nodes[nsources++] = i;
			if (work->nodes[i].nto && !add_local_leg(work, i))
				return tti_hand_no_memory();
		}
	nremote = tti_hand_list_remote(work, false, nodes + nsources);
	return work->handoff->is_short
		       ? add_tree(work, nodes, nsources, nremote)
		       : add_chains(work, nodes, nsources, nodes + nsources, nremote);
}
