/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/handoff/handoff_work.h"
#include "plan/plan_words.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"

/* By any method, the data of a rank has to come from the sources over the wires that there are. So
 * no more of the vector gets there than the maximum flow (Ford and Fulkerson), found by Dinic's
 * method over the graphs of the nodes of sources and of that rank, whose NICs reach each other
 * freely. If a source is the only one with a part, no more than its part comes from it: the arc
 * from the start to that source carries that share of the vector, so the value depends on itself.
 * Each cut that is too small gives the next value, until no cut is. */

#define FREE 1e15 /* GB/s of what never limits */

struct arc {
	uint32_t to, back; /* back: the arc in the other direction */
	double room;
};

/* A wire, or an arc whose capacity is a share of the vector. */
struct wire {
	uint32_t arc, node, link; /* link NONE: none; node of nodes[] */
	double gbps, part;
};

struct flow {
	const struct tti_hand_work *work;
	struct tti_arena arena; /* of one question */
	uint32_t nvertices, start, end, fabric;
	uint32_t *base;         /* of each node: its first vertex, NONE: not in */
	TTI_VEC(uint32_t) from; /* of each arc */
	TTI_VEC(struct arc) arcs;
	TTI_VEC(struct wire) wires;
	uint32_t *first, *list; /* arcs by the vertex that they leave */
	uint32_t *level, *next, *queue;
	bool failed;
	double value; /* of the vector, GB/s */
	/* The least cut of all so far. */
	double best, best_part;
	TTI_VEC(struct wire) cut;
};

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "bound of a handoff: out of memory");
}

/* -- The network ------------------------------------------------------------------- */

static uint32_t add_arc(struct flow *f, uint32_t from, uint32_t to, double room)
{
	const uint32_t at = (uint32_t)f->arcs.n;

	f->failed |= !tti_vec_push(&f->arcs, ((struct arc){ to, at + 1, room })) ||
		     !tti_vec_push(&f->arcs, ((struct arc){ from, at, 0 })) ||
		     !tti_vec_push(&f->from, from) || !tti_vec_push(&f->from, to);
	return at;
}

static void add_wire(struct flow *f, uint32_t from, uint32_t to, struct wire wire)
{
	wire.arc = add_arc(f, from, to, 0);
	f->failed |= !tti_vec_push(&f->wires, wire);
}

static void add_node(struct flow *f, uint32_t index)
{
	const struct tti_hand_node *node = &f->work->nodes[index];
	const struct tti_graph *graph = node->job->routes->paths->graph;
	const uint32_t base = f->nvertices;

	f->base[index] = base;
	f->nvertices += graph->nnodes;
	for (uint32_t i = 0; i < graph->nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[i];
		const bool limits =
			link->type != TTI_LINK_LOC || (double)link->bw_gbps < TTI_LOC_GBPS;

		add_wire(f, base + link->from, base + link->to,
			 (struct wire){ .node = index,
					.link = i,
					.gbps = limits ? (double)link->bw_gbps : FREE });
	}
	for (uint32_t i = 0; i < node->job->nnets; i++) {
		add_arc(f, base + node->job->nets[i], f->fabric, FREE);
		add_arc(f, f->fabric, base + node->job->nets[i], FREE);
	}
}

static uint32_t vertex_of(const struct flow *f, uint32_t rank)
{
	const struct tti_hand_node *node = tti_hand_node_of(f->work, rank);

	return f->base[f->work->node_of[rank]] + node->ends[f->work->end_of[rank]];
}

static void add_sources(struct flow *f)
{
	const struct tti_handoff_job *handoff = f->work->handoff;

	for (uint32_t i = 0; i < handoff->nfrom; i++)
		add_wire(f, f->start, vertex_of(f, handoff->from[i]),
			 (struct wire){ .link = TTI_HAND_NONE,
					.gbps = handoff->from_sharded ? 0 : FREE,
					.part = handoff->from_sharded ? 1.0 / handoff->nfrom : 0 });
}

/* To one rank all of the vector, or to all of them their parts. */
static void add_receivers(struct flow *f, uint32_t rank)
{
	const struct tti_handoff_job *handoff = f->work->handoff;

	if (!handoff->to_sharded)
		add_arc(f, vertex_of(f, rank), f->end, FREE);
	for (uint32_t i = 0; i < handoff->nto && handoff->to_sharded; i++)
		add_wire(f, vertex_of(f, handoff->to[i]), f->end,
			 (struct wire){ .link = TTI_HAND_NONE, .part = 1.0 / handoff->nto });
}

/* Arcs by vertex. */
static void index_arcs(struct flow *f)
{
	f->first = tti_arena_alloc(&f->arena, (f->nvertices + 1) * sizeof(*f->first));
	f->list = tti_arena_alloc(&f->arena, f->arcs.n * sizeof(*f->list) + 1);
	f->level = tti_arena_alloc(&f->arena, 3 * (size_t)f->nvertices * sizeof(*f->level));
	if (!f->first || !f->list || !f->level || f->failed) {
		f->failed = true;
		return;
	}
	f->next = f->level + f->nvertices;
	f->queue = f->next + f->nvertices;
	for (size_t i = 0; i < f->from.n; i++)
		f->first[f->from.at[i] + 1]++;
	for (uint32_t i = 0; i < f->nvertices; i++)
		f->first[i + 1] += f->first[i];
	for (uint32_t i = 0; i < f->nvertices; i++)
		f->next[i] = f->first[i];
	for (size_t i = 0; i < f->from.n; i++)
		f->list[f->next[f->from.at[i]]++] = (uint32_t)i;
}

static bool build(struct flow *f, uint32_t rank)
{
	const struct tti_hand_work *work = f->work;

	f->arcs.n = f->from.n = f->wires.n = 0;
	f->start = 0;
	f->end = 1;
	f->fabric = 2;
	f->nvertices = 3;
	for (uint32_t i = 0; i < work->nnodes; i++) {
		f->base[i] = TTI_HAND_NONE;
		if (work->nodes[i].nfrom || work->handoff->to_sharded || work->node_of[rank] == i)
			add_node(f, i);
	}
	add_sources(f);
	add_receivers(f, rank);
	index_arcs(f);
	return !f->failed;
}

/* -- The greatest flow ------------------------------------------------------------- */

#define LEAST 1e-9

/* Distances from the start; whether the end is reached. */
static bool find_levels(struct flow *f)
{
	uint32_t n = 0;

	memset(f->level, 0xff, f->nvertices * sizeof(*f->level));
	f->level[f->start] = 0;
	f->queue[n++] = f->start;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = f->queue[i];

		for (uint32_t k = f->first[at]; k < f->first[at + 1]; k++) {
			const struct arc *arc = &f->arcs.at[f->list[k]];

			if (arc->room <= LEAST || f->level[arc->to] != TTI_HAND_NONE)
				continue;
			f->level[arc->to] = f->level[at] + 1;
			f->queue[n++] = arc->to;
		}
	}
	return f->level[f->end] != TTI_HAND_NONE;
}

/* One way along the levels, kept in queue[] as arcs; what it carries. */
static double find_way(struct flow *f, uint32_t *length)
{
	uint32_t at = f->start, n = 0;
	double least = INFINITY;

	while (at != f->end) {
		const struct arc *arc = NULL;

		for (; f->next[at] < f->first[at + 1]; f->next[at]++) {
			arc = &f->arcs.at[f->list[f->next[at]]];
			if (arc->room > LEAST && f->level[arc->to] == f->level[at] + 1)
				break;
			arc = NULL;
		}
		if (arc) {
			f->queue[n++] = f->list[f->next[at]];
			at = arc->to;
			continue;
		}
		if (n == 0)
			return 0;
		/* A dead end: back, and not here again. */
		at = f->from.at[f->queue[--n]];
		f->next[at]++;
	}
	for (uint32_t i = 0; i < n; i++)
		if (f->arcs.at[f->queue[i]].room < least)
			least = f->arcs.at[f->queue[i]].room;
	*length = n;
	return least;
}

static double greatest_flow(struct flow *f)
{
	double sum = 0, more;
	uint32_t n = 0;

	while (find_levels(f)) {
		memcpy(f->next, f->first, f->nvertices * sizeof(*f->next));
		while ((more = find_way(f, &n)) > 0) {
			sum += more;
			for (uint32_t i = 0; i < n; i++) {
				struct arc *arc = &f->arcs.at[f->queue[i]];

				arc->room -= more;
				f->arcs.at[arc->back].room += more;
			}
		}
	}
	return sum;
}

/* -- Its value --------------------------------------------------------------------- */

static void set_rooms(struct flow *f)
{
	for (size_t i = 0; i < f->arcs.n; i += 2) {
		f->arcs.at[i].room = FREE;
		f->arcs.at[i + 1].room = 0;
	}
	for (size_t i = 0; i < f->wires.n; i++) {
		const struct wire *wire = &f->wires.at[i];

		f->arcs.at[wire->arc].room = wire->gbps + wire->part * f->value;
	}
}

static bool is_cut(const struct flow *f, const struct wire *wire)
{
	return f->level[f->from.at[wire->arc]] != TTI_HAND_NONE &&
	       f->level[f->arcs.at[wire->arc].to] == TTI_HAND_NONE;
}

/* The capacity of the cut: in GB/s, and as a part of the vector. */
static double measure_cut(struct flow *f, double *part)
{
	double gbps = 0;

	*part = 0;
	f->cut.n = 0;
	for (size_t i = 0; i < f->wires.n; i++) {
		if (!is_cut(f, &f->wires.at[i]))
			continue;
		gbps += f->wires.at[i].gbps;
		*part += f->wires.at[i].part;
		f->failed |= !tti_vec_push(&f->cut, f->wires.at[i]);
	}
	return gbps;
}

/* How fast all of the vector can get to a rank (or to all of them), at most. */
static tutti_status find_value(struct flow *f, double upto)
{
	double gbps, part;

	f->value = upto;
	for (;;) {
		set_rooms(f);
		if (greatest_flow(f) >= f->value * (1 - 1e-9))
			return TUTTI_OK;
		gbps = measure_cut(f, &part);
		if (f->failed)
			return no_memory();
		if (gbps / (1 - part) >= f->value * (1 - 1e-9))
			return TUTTI_OK;
		f->value = gbps / (1 - part);
		f->best_part = 1 - part;
	}
}

/* -- Words ------------------------------------------------------------------------- */

static const struct tti_hand_node *node_of_wire(const struct flow *f, const struct wire *wire)
{
	return &f->work->nodes[wire->node];
}

static const struct tti_topo_link *link_of_wire(const struct flow *f, const struct wire *wire)
{
	return &node_of_wire(f, wire)->job->routes->paths->graph->links[wire->link];
}

/* Whether all that is cut are cables, all of nodes that send, or of one that receives. */
static bool are_cables(const struct flow *f, bool outwards)
{
	for (size_t i = 0; i < f->cut.n; i++) {
		const struct wire *wire = &f->cut.at[i];

		if (wire->link == TTI_HAND_NONE)
			continue;
		if (link_of_wire(f, wire)->type != TTI_LINK_NET)
			return false;
		const struct tti_graph *graph = node_of_wire(f, wire)->job->routes->paths->graph;

		if ((graph->nodes[link_of_wire(f, wire)->to].type == TTI_NODE_NET) != outwards)
			return false;
	}
	return true;
}

static void say_node(const struct tti_hand_node *node, struct tti_strbuf *out)
{
	tti_words_text(node->job->name && node->job->name[0] ? node->job->name : "the node", out);
}

/* "the NICs out of node0: mlx5_0-1" */
static void say_cables(const struct flow *f, bool outwards, struct tti_strbuf *out)
{
	uint32_t last = TTI_HAND_NONE;

	for (size_t i = 0; i < f->cut.n; i++) {
		const char *names[64];
		size_t n = 0;

		if (f->cut.at[i].link == TTI_HAND_NONE || f->cut.at[i].node == last)
			continue;
		tti_strbuf_add(out, last == TTI_HAND_NONE ? "the NICs " : " and ");
		tti_strbuf_add(out, outwards ? "out of " : "into ");
		last = f->cut.at[i].node;
		for (size_t k = i; k < f->cut.n && n < 64; k++) {
			const struct wire *wire = &f->cut.at[k];

			if (wire->link == TTI_HAND_NONE || wire->node != last)
				continue;
			names[n++] = node_of_wire(f, wire)
					     ->job->routes->paths->graph
					     ->nodes[outwards ? link_of_wire(f, wire)->to
							      : link_of_wire(f, wire)->from]
					     .name;
		}
		say_node(&f->work->nodes[last], out);
		tti_strbuf_add(out, ": ");
		tti_words_names(names, n, out);
	}
}

/* By the row that it is in the loads of its node; a link that no route needs has none. */
static void say_link(const struct flow *f, const struct wire *wire, struct tti_strbuf *out)
{
	const struct tti_hand_node *node = node_of_wire(f, wire);
	const struct tti_graph *graph = node->job->routes->paths->graph;
	char words[TTI_LINK_WORDS], gbps[24];

	for (uint32_t row = 0; row < node->loads->nrows; row++)
		if (node->loads->link[row] == wire->link) {
			tti_link_words(node->loads, row, words);
			goto say;
		}
	(void)snprintf(words, sizeof(words), "%.40s to %.40s",
		       graph->nodes[link_of_wire(f, wire)->from].full_name,
		       graph->nodes[link_of_wire(f, wire)->to].full_name);
say:
	tti_gbps_words(wire->gbps, gbps);
	tti_words_text(words, out);
	tti_strbuf_addf(out, " %s GB/s of ", gbps);
	say_node(node, out);
}

static void say_cut(const struct flow *f, struct tti_strbuf *out)
{
	size_t n = 0;

	if (are_cables(f, true))
		say_cables(f, true, out);
	else if (are_cables(f, false))
		say_cables(f, false, out);
	else
		for (size_t i = 0; i < f->cut.n; i++) {
			if (f->cut.at[i].link == TTI_HAND_NONE || n++ >= 3)
				continue;
			tti_strbuf_add(out, n > 1 ? ", " : "");
			say_link(f, &f->cut.at[i], out);
		}
	if (n > 3)
		tti_strbuf_addf(out, " and %zu more links", n - 3);
	if (f->best_part < 1 - 1e-9)
		tti_strbuf_addf(out, ", which %.3g of the vector must pass", f->best_part);
}

/* -- All of it --------------------------------------------------------------------- */

/* Another node that is wired alike and has no source has as good a way to this place. */
static bool is_asked(const struct tti_hand_work *work, uint32_t rank, uint32_t upto)
{
	const struct tti_hand_node *node = tti_hand_node_of(work, rank);

	for (uint32_t i = 0; i < upto; i++) {
		const uint32_t other = work->handoff->to[i];
		const struct tti_hand_node *there = tti_hand_node_of(work, other);

		if (there == node && work->end_of[other] == work->end_of[rank])
			return true;
		if (there->nfrom == 0 && node->nfrom == 0 && there->loads == node->loads &&
		    work->end_of[other] == work->end_of[rank])
			return true;
	}
	return false;
}

static tutti_status ask(struct flow *f, uint32_t rank, struct tti_handoff_plan *plan)
{
	struct tti_strbuf words = { 0 };
	tutti_status st;

	st = build(f, rank) ? find_value(f, plan->bound_gbps) : no_memory();
	if (st == TUTTI_OK && f->value < plan->bound_gbps) {
		plan->bound_gbps = f->value;
		say_cut(f, &words);
		plan->bound = tti_arena_strdup(&plan->arena, words.text ? words.text : "");
		if (words.failed || !plan->bound)
			st = no_memory();
	}
	tti_strbuf_release(&words);
	tti_arena_release(&f->arena);
	return st;
}

tutti_status tti_hand_bound(struct tti_hand_work *work, struct tti_handoff_plan *plan)
{
	const struct tti_handoff_job *handoff = work->handoff;
	struct flow f = { .work = work };
	tutti_status st = TUTTI_OK;

	f.base = tti_arena_alloc(&work->arena, work->nnodes * sizeof(*f.base));
	if (!f.base)
		return no_memory();
	plan->bound_gbps = TTI_LOC_GBPS;
	plan->bound = "";
	for (uint32_t i = 0; i < handoff->nto && st == TUTTI_OK; i++) {
		const uint32_t rank = handoff->to[i];

		if (handoff->to_sharded ? i > 0
					: (work->is_from[rank] && !handoff->from_sharded) ||
						  is_asked(work, rank, i))
			continue;
		st = ask(&f, rank, plan);
	}
	tti_vec_release(&f.from);
	tti_vec_release(&f.arcs);
	tti_vec_release(&f.wires);
	tti_vec_release(&f.cut);
	return st;
}
