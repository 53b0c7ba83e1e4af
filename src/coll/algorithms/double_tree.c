/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

#include "plan/connect/connect.h"

/* Trees: the data goes up and is reduced, or down, or both. Without a shape it is two
 * trees over all ranks, each for one half of the vector, so that a rank is an inner
 * node of at most one of them (plan/connect/connect.h): it receives and sends at most its share
 * of both, the bandwidth of a ring at the latency of a tree, 2 log2 n. A shape has any
 * number of trees, each for its share.
 *
 * Where there is a root each tree is taken up by it: the edges on the way from it to
 * the top turn round, all others stay. */

struct node {
	int parent; /* -1: none */
	TTI_VEC(int) children;
};

static int count_trees(const struct tti_program *prog)
{
	return prog->shape && prog->shape->ntrees ? (int)prog->shape->ntrees : 2;
}

static int share_of(const struct tti_program *prog, int tree)
{
	return prog->shape && prog->shape->ntrees ? (int)prog->shape->trees[tree].share : 1;
}

static int parent_of(const struct tti_program *prog, int tree, int rank)
{
	const uint32_t parent =
		prog->shape && prog->shape->ntrees
			? prog->shape->trees[tree].parent[rank]
			: tti_double_tree((uint32_t)prog->n, (uint32_t)rank, tree).parent;

	return parent == UINT32_MAX ? -1 : (int)parent;
}

static void add_child(struct tti_program *prog, struct node *node, int child)
{
	if (!tti_vec_push(&node->children, child))
		prog->failed = true;
}

/* Children as the tree stands, but for `without`. */
static void add_children(struct tti_program *prog, struct node *node, int tree, int without)
{
	if (prog->shape && prog->shape->ntrees) {
		for (int rank = 0; rank < prog->n; rank++)
			if (parent_of(prog, tree, rank) == prog->rank && rank != without)
				add_child(prog, node, rank);
		return;
	}
	const struct tti_tree_place at =
		tti_double_tree((uint32_t)prog->n, (uint32_t)prog->rank, tree);

	for (int i = 0; i < 2; i++)
		if (at.child[i] != UINT32_MAX && (int)at.child[i] != without)
			add_child(prog, node, (int)at.child[i]);
}

/* Where the program's rank hangs in a tree that is taken up by `root`; -1: as it is. */
static struct node find_node(struct tti_program *prog, int tree, int root)
{
	struct node node = { .parent = parent_of(prog, tree, prog->rank) };
	int at = root, below = -1;

	while (at >= 0 && at != prog->rank) {
		below = at;
		at = parent_of(prog, tree, at);
	}
	if (at < 0) {
		add_children(prog, &node, tree, -1);
		return node;
	}
	add_children(prog, &node, tree, below);
	if (node.parent >= 0)
		add_child(prog, &node, node.parent);
	node.parent = below;
	return node;
}

/* The parts of a tree are chunks in a row from `chunk` on. */
static void reduce_up(struct tti_program *prog, const struct node *node, int chunk, int share)
{
	for (int end = chunk + share; chunk < end; chunk++) {
		for (size_t i = 0; i < node->children.n; i++)
			tti_recv_reduce(prog, chunk, node->children.at[i],
					node->parent < 0 && i + 1 == node->children.n);
		if (node->parent >= 0)
			tti_send(prog, chunk, node->parent);
	}
}

static void broadcast_down(struct tti_program *prog, const struct node *node, int chunk, int share)
{
	for (int end = chunk + share; chunk < end; chunk++) {
		if (node->parent >= 0)
			tti_recv(prog, chunk, node->parent);
		for (size_t i = 0; i < node->children.n; i++)
			tti_send(prog, chunk, node->children.at[i]);
	}
}

/* One pass over all trees; how many chunks they have. */
static int pass(struct tti_program *prog, int root,
		void (*emit)(struct tti_program *, const struct node *, int, int))
{
	int chunk = 0;

	for (int tree = 0; tree < count_trees(prog); tree++) {
		struct node node = find_node(prog, tree, root);
		const int share = share_of(prog, tree);

		emit(prog, &node, chunk, share);
		chunk += share;
		tti_vec_release(&node.children);
	}
	return chunk;
}

void tti_double_tree_all_reduce(struct tti_program *prog)
{
	prog->nchunks = pass(prog, -1, reduce_up);
	pass(prog, -1, broadcast_down);
}

void tti_double_tree_broadcast(struct tti_program *prog)
{
	prog->nchunks = pass(prog, prog->root, broadcast_down);
}

void tti_double_tree_reduce(struct tti_program *prog)
{
	prog->nchunks = pass(prog, prog->root, reduce_up);
}
