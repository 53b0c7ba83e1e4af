/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "coll/algorithms.h"

/* Algorithms of one collective stand together, in the order they are shown. */
static const struct tti_algorithm table[] = {
	{ .name = "exchange",
	  .coll = TUTTI_ALL_REDUCE,
	  .emit = tti_exchange_all_reduce,
	  .help = "everything to everybody, one hop; a few bytes in shared memory",
	  .order = TTI_ORDER_ONE_PASS },
	{ .name = "direct",
	  .coll = TUTTI_ALL_REDUCE,
	  .emit = tti_direct_all_reduce,
	  .help = "every rank reduces one part and sends it to all; shared memory",
	  .order = TTI_ORDER_ONE_PASS },
	{ .name = "ring",
	  .coll = TUTTI_ALL_REDUCE,
	  .emit = tti_ring_all_reduce,
	  .help = "least bytes per rank, two neighbours, 2(n-1) hops; large" },
	{ .name = "recursive_doubling",
	  .coll = TUTTI_ALL_REDUCE,
	  .emit = tti_recursive_doubling_all_reduce,
	  .help = "log2 n swaps of everything; small" },
	{ .name = "double_tree",
	  .coll = TUTTI_ALL_REDUCE,
	  .emit = tti_double_tree_all_reduce,
	  .help = "two trees, half the data each, 2 log2 n hops; medium to large, many ranks" },
	{ .name = "hierarchical",
	  .coll = TUTTI_ALL_REDUCE,
	  .emit = tti_hierarchical_all_reduce,
	  .help = "inside groups, stripes as rings between them; several hosts, large" },
	{ .name = "hierarchical_doubling",
	  .coll = TUTTI_ALL_REDUCE,
	  .emit = tti_hierarchical_doubling_all_reduce,
	  .help = "inside groups, log2 swaps between them; several hosts, medium" },
	{ .name = "flat",
	  .coll = TUTTI_BROADCAST,
	  .emit = tti_flat_broadcast,
	  .help = "root to all at once; shared memory" },
	{ .name = "binomial",
	  .coll = TUTTI_BROADCAST,
	  .emit = tti_binomial_broadcast,
	  .help = "log2 n hops; small" },
	{ .name = "chain",
	  .coll = TUTTI_BROADCAST,
	  .emit = tti_chain_broadcast,
	  .help = "rank to rank, block after block; large" },
	{ .name = "double_tree",
	  .coll = TUTTI_BROADCAST,
	  .emit = tti_double_tree_broadcast,
	  .help = "down two trees, half the data each; medium to large, many ranks" },
	{ .name = "hierarchical",
	  .coll = TUTTI_BROADCAST,
	  .emit = tti_hierarchical_broadcast,
	  .help = "inside groups, stripes as chains between them; several hosts" },
	{ .name = "flat",
	  .coll = TUTTI_REDUCE,
	  .emit = tti_flat_reduce,
	  .help = "all to root, reduced in one pass; shared memory",
	  .order = TTI_ORDER_ONE_PASS },
	{ .name = "binomial",
	  .coll = TUTTI_REDUCE,
	  .emit = tti_binomial_reduce,
	  .help = "log2 n hops; small" },
	{ .name = "chain",
	  .coll = TUTTI_REDUCE,
	  .emit = tti_chain_reduce,
	  .help = "rank to rank, block after block; large" },
	{ .name = "double_tree",
	  .coll = TUTTI_REDUCE,
	  .emit = tti_double_tree_reduce,
	  .help = "up two trees, half the data each; medium to large, many ranks" },
	{ .name = "hierarchical",
	  .coll = TUTTI_REDUCE,
	  .emit = tti_hierarchical_reduce,
	  .help = "inside groups, lanes as chains between them; several hosts" },
	{ .name = "ring",
	  .coll = TUTTI_ALL_GATHER,
	  .emit = tti_ring_all_gather,
	  .help = "two neighbours, n-1 hops; large" },
	{ .name = "direct",
	  .coll = TUTTI_ALL_GATHER,
	  .emit = tti_direct_all_gather,
	  .help = "own part to all at once; shared memory" },
	{ .name = "bruck",
	  .coll = TUTTI_ALL_GATHER,
	  .emit = tti_bruck_all_gather,
	  .help = "ceil(log2 n) rounds; small" },
	{ .name = "hierarchical",
	  .coll = TUTTI_ALL_GATHER,
	  .emit = tti_hierarchical_all_gather,
	  .help = "inside groups, lanes as rings between them; several hosts" },
	{ .name = "ring",
	  .coll = TUTTI_REDUCE_SCATTER,
	  .emit = tti_ring_reduce_scatter,
	  .help = "two neighbours, n-1 hops; large" },
	{ .name = "direct",
	  .coll = TUTTI_REDUCE_SCATTER,
	  .emit = tti_direct_reduce_scatter,
	  .help = "every part straight to its owner, reduced in one pass; shared memory",
	  .order = TTI_ORDER_ONE_PASS },
	{ .name = "hierarchical",
	  .coll = TUTTI_REDUCE_SCATTER,
	  .emit = tti_hierarchical_reduce_scatter,
	  .help = "inside groups, stripes as rings between them; several hosts" },
	{ .name = "dissemination",
	  .coll = TUTTI_BARRIER,
	  .emit = tti_dissemination_barrier,
	  .help = "ceil(log2 n) rounds of empty messages" },
	{ .name = "exchange",
	  .coll = TUTTI_BARRIER,
	  .emit = tti_exchange_barrier,
	  .help = "empty message to everybody; few ranks in shared memory" },
};

#define TABLE_ROWS (sizeof(table) / sizeof(table[0]))

const struct tti_algorithm *tti_algorithm_at(tutti_collective coll, int index)
{
	for (size_t i = 0; i < TABLE_ROWS; i++)
		if (table[i].coll == coll && index >= 0 && index-- == 0)
			return &table[i];
	return NULL;
}

const struct tti_algorithm *tti_algorithm_find(tutti_collective coll, const char *name)
{
	for (size_t i = 0; i < TABLE_ROWS; i++)
		if (table[i].coll == coll && strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}
