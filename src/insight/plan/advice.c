/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "insight/plan/plan_report.h"
#include "plan/plan_words.h"
#include "plan/search/lp.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* The bandwidth of a ring in the order of ranks, as many libraries run it: a step to a rank on
 * another node goes over the network. Each step may take any NIC. The best choice is found as the
 * channels of a plan are, here with one column for each choice, so that the figure is fair.
 *
 * One node after the other: each has its own links, and the weakest sets the pace. */

/* The steps of one node: from member to member, in from the network, out to it. */
struct steps {
	TTI_VEC(uint64_t) hops; /* from << 32 | to */
	TTI_VEC(uint32_t) in, out;
};

struct order {
	const struct tti_report *report;
	uint32_t *next; /* the rank behind each */
};

/* -- What one node can carry ------------------------------------------------------------ */

struct pool {
	const struct tti_loads *loads;
	const struct steps *steps;
	TTI_VEC(struct tti_load) column;
};

static double price_of(const struct pool *pool, const struct tti_hop *hop, const double *prices)
{
	double sum = 0;

	for (uint32_t i = hop->first; i < hop->first + hop->n; i++)
		sum += (double)pool->loads->loads[i].amount * prices[pool->loads->loads[i].row];
	return hop->bw_gbps > 0 ? sum : INFINITY;
}

static bool take(struct pool *pool, const struct tti_hop *hop)
{
	for (uint32_t i = hop->first; i < hop->first + hop->n; i++)
		if (!tti_vec_push(&pool->column, pool->loads->loads[i]))
			return false;
	return true;
}

/* The cheapest NIC for a member; the turn decides between equals, so that the first
 * column spreads. */
static double take_net(struct pool *pool, const struct tti_hop *hops, uint32_t member,
		       uint32_t turn, const double *prices)
{
	const uint32_t n = pool->loads->n, nnets = pool->loads->nnets;
	double best = INFINITY;
	uint32_t chosen = 0;

	for (uint32_t i = 0; i < nnets; i++) {
		const uint32_t net = (i + turn) % nnets;
		const double price = price_of(pool, &hops[net * n + member], prices);

		if (price < best - 1e-12) {
			best = price;
			chosen = net;
		}
	}
	if (isfinite(best) && !take(pool, &hops[chosen * n + member]))
		return NAN;
	return best;
}

/* The cheapest way to take all steps once; INFINITY: there is none, NAN: no memory. */
static double cheapest(struct pool *pool, const double *prices)
{
	const struct tti_loads *loads = pool->loads;
	double sum = 0;

	pool->column.n = 0;
	for (size_t i = 0; i < pool->steps->hops.n; i++) {
		const uint64_t step = pool->steps->hops.at[i];
		const struct tti_hop *hop = tti_hop(loads, (uint32_t)(step >> 32), (uint32_t)step);

		sum += price_of(pool, hop, prices);
		if (!take(pool, hop))
			return NAN;
	}
	for (size_t i = 0; i < pool->steps->in.n; i++)
		sum += take_net(pool, loads->in, pool->steps->in.at[i], (uint32_t)i, prices);
	for (size_t i = 0; i < pool->steps->out.n; i++)
		sum += take_net(pool, loads->out, pool->steps->out.at[i], (uint32_t)i, prices);
	return sum;
}

#define MOST_ROUNDS 500
#define CLOSE       1e-4

static tutti_status generate(struct pool *pool, struct tti_lp *lp, double *gbps_out)
{
	double *prices = tti_calloc(pool->loads->nrows, sizeof(*prices));
	double cost, bound = INFINITY;
	tutti_status st = TUTTI_OK;

	if (!prices)
		return tti_fail(TUTTI_ENOMEM, "advice: out of memory");
	for (uint32_t row = 0; row < pool->loads->nrows; row++)
		prices[row] = 1e-3 / pool->loads->capacity[row];
	*gbps_out = 0;
	for (int round = 0; st == TUTTI_OK && round < MOST_ROUNDS; round++) {
		cost = cheapest(pool, prices);
		if (isnan(cost))
			st = tti_fail(TUTTI_ENOMEM, "advice: out of memory");
		if (isnan(cost) || isinf(cost) || pool->column.n == 0)
			break;
		if (round > 0)
			bound = fmin(bound, *gbps_out / cost);
		if (*gbps_out >= bound * (1 - CLOSE))
			break;
		st = tti_lp_add(lp, pool->column.at, pool->column.n);
		if (st == TUTTI_OK)
			st = tti_lp_solve(lp, gbps_out);
		memcpy(prices, tti_lp_prices(lp), pool->loads->nrows * sizeof(*prices));
	}
	tti_free(prices);
	return st;
}

/* INFINITY: the node has no part in it. */
static tutti_status carry(const struct tti_job_node *node, bool nets, const struct steps *steps,
			  double *gbps_out)
{
	const struct tti_members members = { node->routes, node->members,          node->nranks,
					     node->nets,   nets ? node->nnets : 0, 0 };
	struct pool pool = { .steps = steps };
	struct tti_loads *loads = NULL;
	struct tti_lp *lp = NULL;
	tutti_status st = tti_loads_build(&members, &loads);

	*gbps_out = INFINITY;
	pool.loads = loads;
	if (st == TUTTI_OK && loads->nrows > 0) {
		st = tti_lp_create(loads->capacity, loads->nrows, &lp);
		if (st == TUTTI_OK)
			st = generate(&pool, lp, gbps_out);
	}
	tti_lp_free(lp);
	tti_vec_release(&pool.column);
	tti_loads_free(loads);
	return st;
}

/* -- The steps of each node --------------------------------------------------------------- */

static tutti_status find_steps(const struct order *order, uint32_t node, struct steps *out)
{
	const struct tti_plan *plan = order->report->plan;
	bool good = true;

	out->hops.n = out->in.n = out->out.n = 0;
	for (uint32_t rank = 0; rank < plan->nranks && plan->nranks > 1; rank++) {
		const struct tti_plan_rank *from = &plan->ranks[rank],
					   *to = &plan->ranks[order->next[rank]];

		if (from->node == node && to->node == node)
			good &= tti_vec_push(&out->hops, (uint64_t)from->member << 32 | to->member);
		else if (from->node == node)
			good &= tti_vec_push(&out->out, from->member);
		else if (to->node == node)
			good &= tti_vec_push(&out->in, to->member);
	}
	return good ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "advice: out of memory");
}

static bool same_steps(const struct steps *a, const struct steps *b)
{
	return a->hops.n == b->hops.n && a->in.n == b->in.n && a->out.n == b->out.n &&
	       (a->hops.n == 0 ||
		memcmp(a->hops.at, b->hops.at, a->hops.n * sizeof(*a->hops.at)) == 0) &&
	       (a->in.n == 0 || memcmp(a->in.at, b->in.at, a->in.n * sizeof(*a->in.at)) == 0) &&
	       (a->out.n == 0 || memcmp(a->out.at, b->out.at, a->out.n * sizeof(*a->out.at)) == 0);
}

static void release_steps(struct steps *steps)
{
	tti_vec_release(&steps->hops);
	tti_vec_release(&steps->in);
	tti_vec_release(&steps->out);
}

/* The bandwidth of a ring in this order. Consecutive nodes with the same steps are judged once. */
static tutti_status judge(const struct order *order, double *gbps_out)
{
	const struct tti_plan *plan = order->report->plan;
	const struct tti_plan_job *job = order->report->job;
	struct steps steps[2] = { { { 0 }, { 0 }, { 0 } } };
	tutti_status st = TUTTI_OK;

	*gbps_out = INFINITY;
	for (uint32_t node = 0; st == TUTTI_OK && node < plan->nnodes; node++) {
		struct steps *this = &steps[node % 2];
		double gbps = INFINITY;

		st = find_steps(order, node, this);
		if (st == TUTTI_OK && node > 0 &&
		    plan->nodes[node].kind == plan->nodes[node - 1].kind &&
		    same_steps(this, &steps[(node + 1) % 2]))
			continue;
		if (st == TUTTI_OK)
			st = carry(&job->nodes[node], plan->nnodes > 1, this, &gbps);
		*gbps_out = fmin(*gbps_out, gbps);
	}
	release_steps(&steps[0]);
	release_steps(&steps[1]);
	return st;
}

/* -- Orders ------------------------------------------------------------------------------ */

static void order_by_rank(const struct order *order)
{
	const uint32_t n = order->report->plan->nranks;

	for (uint32_t rank = 0; rank < n; rank++)
		order->next[rank] = (rank + 1) % n;
}

/* Node after node, as the plan has them, each node's ranks as they are numbered. */
static void order_by_node(const struct order *order, const struct tti_plan_channel *ring)
{
	const struct tti_plan *plan = order->report->plan;
	uint32_t first = UINT32_MAX, last = UINT32_MAX;

	for (uint32_t i = 0; i < ring->nranks; i++) {
		const uint32_t node = plan->ranks[ring->ranks[i]].node;

		if (i > 0 && plan->ranks[ring->ranks[i - 1]].node == node)
			continue;
		for (uint32_t k = 0; k < plan->nodes[node].nranks; k++) {
			const uint32_t rank = plan->nodes[node].ranks[k];

			if (last != UINT32_MAX)
				order->next[last] = rank;
			first = first == UINT32_MAX ? rank : first;
			last = rank;
		}
	}
	order->next[last] = first;
}

/* How many steps leave a node, and how many leave a switch group, both known. */
static void count_steps(const struct order *order, uint32_t *nodes_out, uint32_t *groups_out)
{
	const struct tti_plan *plan = order->report->plan;
	const struct tti_job_node *nodes = order->report->job->nodes;

	*nodes_out = *groups_out = 0;
	for (uint32_t rank = 0; rank < plan->nranks; rank++) {
		const uint32_t from = plan->ranks[rank].node,
			       to = plan->ranks[order->next[rank]].node;

		*nodes_out += from != to;
		*groups_out += from != to && nodes[from].group != nodes[to].group;
	}
}

static bool has_groups(const struct tti_plan_job *job)
{
	for (uint32_t node = 0; node < job->nnodes; node++)
		if (job->nodes[node].group >= 0)
			return true;
	return false;
}

static tutti_status say_order(const struct order *order, const char *name, double best,
			      struct tti_strbuf *out)
{
	uint32_t nodes, groups;
	double gbps;
	char text[24];

	TTI_TRY(judge(order, &gbps));
	count_steps(order, &nodes, &groups);
	tti_gbps_words(isfinite(gbps) ? gbps : 0, text);
	tti_strbuf_addf(out, "  %-38s  %7s GB/s", name, text);
	if (gbps > 0 && isfinite(gbps))
		tti_strbuf_addf(out, "  the plan has %.2f times that", best / gbps);
	if (order->report->plan->nnodes > 1)
		tti_strbuf_addf(out, "; %u steps leave a node", nodes);
	if (has_groups(order->report->job))
		tti_strbuf_addf(out, ", %u a switch", groups);
	tti_strbuf_add(out, "\n");
	return TUTTI_OK;
}

/* A hostfile that deals ranks out node after node, in the order of the plan. */
static void say_hostfile(const struct tti_plan *plan, const struct tti_plan_channel *ring,
			 struct tti_strbuf *out)
{
	uint32_t count = 0;

	if (plan->nnodes == 1)
		return;
	tti_strbuf_add(out, "a hostfile that deals ranks out in that order\n");
	for (uint32_t i = 0; i < ring->nranks && count < 16; i++) {
		const uint32_t node = plan->ranks[ring->ranks[i]].node;

		if (i > 0 && plan->ranks[ring->ranks[i - 1]].node == node)
			continue;
		count++;
		tti_strbuf_add(out, "  ");
		tti_words_text(plan->nodes[node].name, out);
		tti_strbuf_addf(out, " slots=%u\n", plan->nodes[node].nranks);
	}
	if (count < plan->nnodes)
		tti_strbuf_addf(out, "  ... and so on for %u nodes\n", plan->nnodes);
}

tutti_status tti_plan_advise(const struct tti_report *report, struct tti_strbuf *out)
{
	const struct tti_plan_pattern *ring = tti_plan_pattern(report->plan, TTI_PATTERN_RING);
	struct order order = { report, NULL };
	char text[24];
	tutti_status st;

	if (!ring)
		return tti_fail(TUTTI_EINVAL, "advice on the order of ranks is about rings: plan "
					      "that pattern too");
	order.next = tti_calloc(report->plan->nranks, sizeof(*order.next));
	if (!order.next)
		return tti_fail(TUTTI_ENOMEM, "advice: out of memory");
	tti_gbps_words(ring->total_gbps, text);
	tti_strbuf_add(out, "rings of libraries that keep the order of ranks, at best\n");
	order_by_rank(&order);
	st = say_order(&order, "ranks as they are dealt out now", ring->total_gbps, out);
	if (st == TUTTI_OK) {
		order_by_node(&order, &ring->channels[0]);
		st = say_order(&order, "ranks node after node", ring->total_gbps, out);
	}
	tti_strbuf_addf(out, "  %-38s  %7s GB/s  whatever the order of ranks\n", "the plan", text);
	if (st == TUTTI_OK)
		say_hostfile(report->plan, &ring->channels[0], out);
	tti_free(order.next);
	return st;
}
