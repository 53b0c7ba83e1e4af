/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms.h"

/* Double binary tree (Sanders, Speck and Traeff, Parallel Computing 2009): two
 * trees over all ranks, each reduces and then broadcasts one half of the vector.
 * A rank is an inner node of at most one of them, so it receives and sends at most
 * its share of both: the bandwidth of a ring at the latency of a tree, 2 log2 n.
 *
 * Tree 0 is a search tree over the positions 0 .. n-1 whose leaves are the even
 * positions, here for n = 6:
 *
 *            3
 *          /   \
 *         1     5
 *        / \   /
 *       0   2 4
 *
 * Tree 1 is its mirror image if n is even, and else the same tree with all
 * positions shifted by one: either way inner nodes become leaves, as n is odd only
 * if the last position is a leaf too. The depth is floor(log2 n). */

struct tree_node {
	int parent, child[2]; /* ranks, -1: none */
};

/* Root of the tree over the positions lo .. lo+len-1, lo even; -1 if len is 0. An
 * odd position as near to the middle as possible, so that both sides begin with
 * an even one. */
static int tree_root(int lo, int len)
{
	if (len <= 1)
		return len ? lo : -1;
	return lo + (((len - 1) / 2) | 1);
}

static int position_of(int rank, int n, int tree)
{
	if (tree == 0 || rank < 0)
		return rank;
	return n % 2 ? (rank + 1) % n : n - 1 - rank;
}

static int rank_at(int position, int n, int tree)
{
	if (tree == 0 || position < 0)
		return position;
	return n % 2 ? tti_wrap(position - 1, n) : n - 1 - position;
}

static struct tree_node tree_find(int rank, int n, int tree)
{
	const int self = position_of(rank, n, tree);
	int lo = 0, len = n, parent = -1;
	int root = tree_root(lo, len);

	while (root != self) {
		parent = root;
		if (self < root) {
			len = root - lo;
		} else {
			len -= root + 1 - lo;
			lo = root + 1;
		}
		root = tree_root(lo, len);
	}
	return (struct tree_node){
		.parent = rank_at(parent, n, tree),
		.child = { rank_at(tree_root(lo, root - lo), n, tree),
			   rank_at(tree_root(root + 1, lo + len - root - 1), n, tree) },
	};
}

static void reduce_up(struct tti_program *prog, int tree)
{
	const struct tree_node node = tree_find(prog->rank, prog->n, tree);
	const bool is_root = node.parent < 0;

	if (node.child[0] >= 0)
		tti_recv_reduce(prog, tree, node.child[0], is_root && node.child[1] < 0);
	if (node.child[1] >= 0)
		tti_recv_reduce(prog, tree, node.child[1], is_root);
	if (!is_root)
		tti_send(prog, tree, node.parent);
}

static void broadcast_down(struct tti_program *prog, int tree)
{
	const struct tree_node node = tree_find(prog->rank, prog->n, tree);

	if (node.parent >= 0)
		tti_recv(prog, tree, node.parent);
	for (int i = 0; i < 2; i++)
		if (node.child[i] >= 0)
			tti_send(prog, tree, node.child[i]);
}

void tti_double_tree_all_reduce(struct tti_program *prog)
{
	prog->nchunks = 2;
	for (int tree = 0; tree < 2; tree++)
		reduce_up(prog, tree);
	for (int tree = 0; tree < 2; tree++)
		broadcast_down(prog, tree);
}
