/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_PATTERN_H
#define TTI_PLAN_PATTERN_H

/* Patterns of channels. Threads: any. */

#include <stdbool.h>

/* X(name, text, NCCL's number): what a channel looks like in a node.
 *
 *     ring            NIC → a → b → ... → z → NIC; alone in the world: back to a, and
 *                     where that pays → NIC ~ NIC → between two members (detour.h)
 *     tree            NIC ⇄ root, a tree of any shape below it
 *     balanced-tree   the same, but a second member takes half of the NIC's traffic
 *     split-tree      from the NIC to the root, to the NIC from another
 *     nvls            a head per channel, which the switch links to all at once
 *     collnet-chain   as tree, the NIC reduces
 *     collnet-direct  a head per channel, linked to all others directly */
#define TTI_PATTERN_MAP(X)                   \
	X(RING, "ring", 4)                   \
	X(TREE, "tree", 3)                   \
	X(BALANCED_TREE, "balanced-tree", 1) \
	X(SPLIT_TREE, "split-tree", 2)       \
	X(NVLS, "nvls", 5)                   \
	X(COLLNET_CHAIN, "collnet-chain", 3) \
	X(COLLNET_DIRECT, "collnet-direct", 6)

enum tti_pattern {
#define X(name, text, nccl) TTI_PATTERN_##name,
	TTI_PATTERN_MAP(X)
#undef X
};
#define TTI_PATTERN_COUNT 7

const char *tti_pattern_name(enum tti_pattern pattern);
/* nvls, collnet-direct */
static inline bool tti_pattern_has_heads(enum tti_pattern pattern)
{
	return pattern == TTI_PATTERN_NVLS || pattern == TTI_PATTERN_COLLNET_DIRECT;
}
bool tti_pattern_parse(const char *text, enum tti_pattern *out);

#endif
