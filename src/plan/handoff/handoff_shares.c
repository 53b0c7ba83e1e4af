/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/handoff/handoff_pack.h"

#include <stdio.h>

#include "plan/plan_words.h"

#define LEAST_SHARE 1e-9

/* The share of each atom, and of each tree and part. */
struct shares {
	double *atom;
	TTI_VEC(struct tti_handoff_tree) trees;
	TTI_VEC(uint32_t) shape;
};

static bool add_share(struct shares *shares, uint32_t shape, uint32_t part, double share)
{
	const struct tti_handoff_tree tree = { .part = part, .share = share };

	for (size_t i = 0; i < shares->trees.n; i++)
		if (shares->shape.at[i] == shape && shares->trees.at[i].part == part) {
			shares->trees.at[i].share += share;
			return true;
		}
	return tti_vec_push(&shares->shape, shape) && tti_vec_push(&shares->trees, tree);
}

static bool share_column(const struct tti_hand_packing *p, const struct tti_hand_column *column,
			 double weight, struct shares *shares)
{
	const struct tti_hand_work *work = p->work;
	uint32_t tree = 0;
	bool good = true;

	for (size_t i = 0; i < work->legs.n; i++) {
		const struct tti_hand_option *option = &work->options.at[column->option[i]];

		for (uint32_t k = 0; k < option->n && good; k++) {
			const struct tti_hand_atom *atom = &work->atoms.at[option->first + k];

			shares->atom[option->first + k] += weight * atom->weight;
			if (atom->spreads)
				good = add_share(shares, column->tree[tree++], atom->part,
						 weight * atom->weight);
		}
	}
	return good;
}

static void take_way(const struct tti_hand_atom *atom, double share, double gbps,
		     struct tti_handoff_plan *plan)
{
	plan->ways[plan->nways++] = (struct tti_handoff_way){ .from = atom->from,
							      .to = atom->to,
							      .net_out = atom->net_out,
							      .net_in = atom->net_in,
							      .part = atom->part,
							      .straight = atom->straight,
							      .share = share,
							      .gbps = share * gbps };
}

/* Ways of a leg by the nodes that they come from. */
static void take_leg(const struct tti_hand_packing *p, const struct tti_hand_leg *leg,
		     const struct shares *shares, struct tti_handoff_plan *plan)
{
	const struct tti_hand_work *work = p->work;

	for (uint32_t from = 0; from < work->nnodes; from++) {
		struct tti_handoff_leg out = { .from_node = work->nodes[from].node,
					       .to_node = work->nodes[leg->to].node,
					       .first = plan->nways };

		for (uint32_t i = leg->first; i < leg->first + leg->n; i++) {
			const struct tti_hand_option *option = &work->options.at[i];

			for (uint32_t k = option->first; k < option->first + option->n; k++) {
				const struct tti_hand_atom *atom = &work->atoms.at[k];

				if (work->node_of[atom->from] != from || atom->from == atom->to ||
				    shares->atom[k] < LEAST_SHARE)
					continue;
				take_way(atom, shares->atom[k], plan->gbps, plan);
				out.share += shares->atom[k];
			}
		}
		out.n = plan->nways - out.first;
		out.gbps = out.share * plan->gbps;
		if (out.n)
			plan->legs[plan->nlegs++] = out;
	}
}

/* As ranks, the root first. */
static bool take_tree(const struct tti_hand_packing *p, const struct tti_hand_shape *shape,
		      const struct tti_handoff_tree *from, struct tti_handoff_plan *plan)
{
	const struct tti_hand_node *node = &p->work->nodes[shape->node];
	struct tti_handoff_tree *out = &plan->trees[plan->ntrees];
	uint32_t *room = tti_arena_alloc(&plan->arena, 2 * node->nends * sizeof(*room));
	uint32_t *end = tti_arena_alloc(&p->work->arena, node->nends * sizeof(*end));

	if (!room || !end)
		return false;
	*out = *from;
	out->node = node->node;
	out->ranks = room;
	out->parent = room + node->nends;
	end[0] = shape->root;
	out->n = 1;
	for (uint32_t i = 0; i < out->n; i++) {
		for (uint32_t k = 0; k < node->nends; k++) {
			if (shape->parent[k] != end[i])
				continue;
			end[out->n] = k;
			out->parent[out->n++] = i;
		}
	}
	out->parent[0] = UINT32_MAX;
	for (uint32_t i = 0; i < out->n; i++)
		out->ranks[i] = node->ranks[end[i]];
	plan->ntrees += out->n > 1;
	return true;
}

static tutti_status take_all(struct tti_hand_packing *p, struct shares *shares, double value,
			     struct tti_handoff_plan *plan)
{
	const struct tti_hand_work *work = p->work;
	const double *weights = tti_lp_weights(p->lp);
	bool good = true;

	plan->gbps = value;
	for (uint32_t i = 0; i < tti_lp_ncolumns(p->lp) && good; i++)
		if (weights[i] > 0)
			good = share_column(p, &p->columns.at[i], weights[i] / value, shares);
	plan->ways = tti_arena_alloc(&plan->arena, work->atoms.n * sizeof(*plan->ways));
	plan->legs =
		tti_arena_alloc(&plan->arena, work->legs.n * work->nnodes * sizeof(*plan->legs));
	plan->trees = tti_arena_alloc(&plan->arena, (shares->trees.n + 1) * sizeof(*plan->trees));
	if (!good || !plan->ways || !plan->legs || !plan->trees)
		return tti_hand_no_memory();
	for (size_t i = 0; i < work->legs.n; i++)
		take_leg(p, &work->legs.at[i], shares, plan);
	for (size_t i = 0; i < shares->trees.n && good; i++)
		if (shares->trees.at[i].share >= LEAST_SHARE)
			good = take_tree(p, &p->shapes.at[shares->shape.at[i]],
					 &shares->trees.at[i], plan);
	return good ? TUTTI_OK : tti_hand_no_memory();
}

tutti_status tti_hand_take(struct tti_hand_packing *p, double value, struct tti_handoff_plan *plan)
{
	struct shares shares = { .atom = tti_arena_alloc(&p->work->arena,
							 p->work->atoms.n * sizeof(double)) };
	const tutti_status st =
		shares.atom ? take_all(p, &shares, value, plan) : tti_hand_no_memory();

	tti_vec_release(&shares.trees);
	tti_vec_release(&shares.shape);
	return st;
}

/* -- Words ------------------------------------------------------------------------- */

static double share_of(const struct tti_hand_packing *p, const struct tti_hand_node *node,
		       uint32_t row)
{
	return p->price[node->first_row + row] * node->loads->capacity[row];
}

/* The link whose price counts most, and how many count as well. */
tutti_status tti_hand_say_limit(const struct tti_hand_packing *p, struct tti_handoff_plan *plan)
{
	const struct tti_hand_node *on = NULL;
	char link[TTI_LINK_WORDS], gbps[24], more[32] = "", text[TTI_LINK_WORDS + 160];
	double most = 1e-9;
	uint32_t at = 0, n = 0;

	for (uint32_t i = 0; i < p->work->nnodes; i++) {
		const struct tti_hand_node *node = &p->work->nodes[i];

		for (uint32_t row = 0; row < node->loads->nrows; row++) {
			n += share_of(p, node, row) > 1e-9;
			if (share_of(p, node, row) > most * (1 + 1e-9)) {
				most = share_of(p, node, row);
				on = node;
				at = row;
			}
		}
	}
	plan->limit = "";
	if (!on)
		return TUTTI_OK;
	tti_link_words(on->loads, at, link);
	tti_gbps_words(on->loads->capacity[at], gbps);
	if (n > 1)
		(void)snprintf(more, sizeof(more), ", and %u more", n - 1);
	(void)snprintf(text, sizeof(text), "%s of %.60s, %s GB/s%s", link, tti_hand_node_name(on),
		       gbps, more);
	plan->limit = tti_arena_strdup(&plan->arena, text);
	return plan->limit ? TUTTI_OK : tti_hand_no_memory();
}
