/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_CARDS_H
#define TTI_TRANSPORT_TCP_CARDS_H

/* The cards of all ranks, as a port keeps them. The cards of one host differ only in the ports on
 * which its ranks listen: what they have in common is kept once, and the ports for each rank.
 *
 * Owner: tti_tcp_cards_release(). Threads: as the port. */

#include "transport/tcp/tcp_card.h"
#include "util/vec.h"

/* A card without ports. */
struct tti_tcp_cards_body {
	uint64_t hash;
	size_t nbytes;
	uint8_t *bytes;
};

/* Which body, and where the ports begin. */
struct tti_tcp_cards_place {
	uint32_t body, ports;
};

struct tti_tcp_cards {
	TTI_VEC(struct tti_tcp_cards_body) bodies;
	/* Rank by rank its own, then those of its NICs; in network order. */
	TTI_VEC(uint16_t) ports;
	TTI_VEC(struct tti_tcp_cards_place) of; /* [ranks] */
};

/* The card of the next rank, from 0 on. */
TUTTI_CHECKED tutti_status tti_tcp_cards_add(struct tti_tcp_cards *cards,
					     const struct tti_tcp_card *card);
/* A card of zeros: it was not added. */
void tti_tcp_cards_get(const struct tti_tcp_cards *cards, int rank, struct tti_tcp_card *out);
void tti_tcp_cards_release(struct tti_tcp_cards *cards);

#endif
