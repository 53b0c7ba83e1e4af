/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_PAIRS_H
#define TTI_TRANSPORT_TCP_PAIRS_H

/* Which NIC of this host is to talk to which one of a peer's. Pure functions: what only the
 * kernel knows is asked through a callback.
 *
 *     cards of both  ->  tti_tcp_ways_find()  ->  way[mine][theirs], with addresses
 *     way            ->  tti_tcp_pairs_add()  ->  pairs, one lane or several each
 *
 * A NIC that has a way to one of the other side is in at least one pair. NICs are paired one
 * to one as far as possible, in the same network before over a router, of like speed, then of
 * the same name, then in the same place; those left over are dealt out evenly. */

#include "transport/tcp/tcp_card.h"

/* Best first. */
enum tti_tcp_way_kind {
	TTI_TCP_WAY_NETWORK = 1, /* the same network on both ends                   */
	TTI_TCP_WAY_ROUTE,       /* over a router                                   */
	TTI_TCP_WAY_LINK,        /* IPv6 of a link: nobody knows before it is tried */
};
#define TTI_TCP_WAY_NONE 0

struct tti_tcp_way {
	uint8_t kind;
	uint8_t from, to; /* numbers of the addresses in the cards */
};

struct tti_tcp_ways {
	struct tti_tcp_way at[TTI_TCP_NICS_MOST][TTI_TCP_NICS_MOST]; /* [mine][theirs] */
};

/* Whether what goes from one address to another over a router leaves by NIC `index`, if it
 * is bound to this NIC. */
typedef bool tti_tcp_leaves(void *context, const struct tti_addr *from, const struct tti_addr *to,
			    uint32_t index);

/* `only`: number of the one NIC of mine that is looked at, -1: all. NICs that cannot help are
 * without a way: loopback; bridges, and links alone, as long as there are others; what is so slow
 * beside others that it adds nothing. */
void tti_tcp_ways_find(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs, int only,
		       tti_tcp_leaves *leaves, void *context, struct tti_tcp_ways *out);

struct tti_tcp_pair {
	uint8_t mine, theirs; /* numbers of NICs in the cards */
};

/* Add to pair[0 .. n-1] what is missing, up to `most` in all; returns how many there are now.
 * `order` says in which order mine are taken (nnics numbers). */
size_t tti_tcp_pairs_add(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs,
			 const struct tti_tcp_ways *ways, const uint8_t *order,
			 struct tti_tcp_pair *pair, size_t n, size_t most);

#endif
