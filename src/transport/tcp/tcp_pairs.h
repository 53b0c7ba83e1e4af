/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_PAIRS_H
#define TTI_TRANSPORT_TCP_PAIRS_H

/* Which NIC of this host talks to which one of a peer. Pure functions: a callback asks what only
 * the kernel knows.
 *
 *     cards of both  ->  tti_tcp_ways_find()  ->  way[mine][theirs], with addresses
 *     way            ->  tti_tcp_pairs_add()  ->  pairs, one lane or several each
 *
 * A NIC that reaches one of the other side is in at least one pair. NICs are paired one to one as
 * far as possible: in the same network before over a router, then of like speed, of the same name,
 * in the same place. NICs that are left over are dealt out evenly. */

#include "transport/tcp/tcp_card.h"

/* Best first. */
enum tti_tcp_way_kind {
	TTI_TCP_WAY_NETWORK = 1, /* the same network on both ends                   */
	TTI_TCP_WAY_ROUTE,       /* over a router                                   */
	TTI_TCP_WAY_LINK,        /* link-local IPv6: unknown before it is tried     */
};
#define TTI_TCP_WAY_NONE 0

struct tti_tcp_way {
	uint8_t kind;
	uint8_t from, to; /* numbers of the addresses in the cards */
};

struct tti_tcp_ways {
	struct tti_tcp_way at[TTI_TCP_NICS_MOST][TTI_TCP_NICS_MOST]; /* [mine][theirs] */
};

/* Whether packets from one address to another over a router leave by NIC `index`, if bound to this
 * NIC. */
typedef bool tti_tcp_leaves(void *context, const struct tti_addr *from, const struct tti_addr *to,
			    uint32_t index);

/* `only`: the number of the one NIC of mine to look at, -1: all. NICs that cannot help have no way:
 * loopback; bridges and link-local addresses, as long as there are others; NICs too slow to add
 * anything. */
void tti_tcp_ways_find(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs, int only,
		       tti_tcp_leaves *leaves, void *context, struct tti_tcp_ways *out);

struct tti_tcp_pair {
	uint8_t mine, theirs; /* numbers of NICs in the cards */
};

/* Add the missing pairs to pair[0 .. n-1], up to `most` in all; returns how many there are now.
 * `order` says in which order NICs of mine are taken (nnics numbers). */
size_t tti_tcp_pairs_add(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs,
			 const struct tti_tcp_ways *ways, const uint8_t *order,
			 struct tti_tcp_pair *pair, size_t n, size_t most);

#endif
