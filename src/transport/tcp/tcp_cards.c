/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp_cards.h"

#include <string.h>

#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

static tutti_status no_memory(const struct tti_tcp_cards *cards)
{
	return tti_fail(TUTTI_ENOMEM, "the TCP card of rank %zu: out of memory", cards->of.n);
}

static tutti_status add_body(struct tti_tcp_cards *cards, struct tti_tcp_cards_body body)
{
	uint8_t *copy = tti_alloc(body.nbytes);

	if (copy)
		memcpy(copy, body.bytes, body.nbytes);
	body.bytes = copy;
	if (copy && tti_vec_push(&cards->bodies, body))
		return TUTTI_OK;
	tti_free(copy);
	return no_memory(cards);
}

/* The number of the body that says the same, which is added if there is none. */
static tutti_status find_body(struct tti_tcp_cards *cards, const struct tti_tcp_card *card,
			      uint32_t *out)
{
	struct tti_tcp_card plain = *card;
	struct tti_tcp_cards_body body = { .nbytes = tti_tcp_card_bytes(card) };
	struct tti_card bytes;

	plain.port = 0;
	for (size_t i = 0; i < plain.nnics; i++)
		plain.nic[i].port = 0;
	tti_tcp_card_put(&plain, &bytes);
	body.bytes = bytes.bytes;
	body.hash = tti_hash_bytes(body.bytes, body.nbytes);
	/* Ranks of a host often follow each other. */
	for (size_t i = cards->bodies.n; i-- > 0;) {
		const struct tti_tcp_cards_body *at = &cards->bodies.at[i];

		*out = (uint32_t)i;
		if (at->hash == body.hash && at->nbytes == body.nbytes &&
		    memcmp(at->bytes, body.bytes, body.nbytes) == 0)
			return TUTTI_OK;
	}
	*out = (uint32_t)cards->bodies.n;
	return add_body(cards, body);
}

tutti_status tti_tcp_cards_add(struct tti_tcp_cards *cards, const struct tti_tcp_card *card)
{
	struct tti_tcp_cards_place place = { .ports = (uint32_t)cards->ports.n };
	bool good;

	TTI_TRY(find_body(cards, card, &place.body));
	good = tti_vec_push(&cards->ports, card->port);
	for (size_t i = 0; i < card->nnics && good; i++)
		good = tti_vec_push(&cards->ports, card->nic[i].port);
	return good && tti_vec_push(&cards->of, place) ? TUTTI_OK : no_memory(cards);
}

void tti_tcp_cards_get(const struct tti_tcp_cards *cards, int rank, struct tti_tcp_card *out)
{
	const struct tti_tcp_cards_body *body;
	const uint16_t *port;
	struct tti_tcp_fault fault;
	tutti_status status;

	memset(out, 0, sizeof(*out));
	if ((size_t)rank >= cards->of.n)
		return;
	body = &cards->bodies.at[cards->of.at[rank].body];
	port = &cards->ports.at[cards->of.at[rank].ports];
	status = tti_tcp_card_get(body->bytes, body->nbytes, out, &fault);
	tti_assert(status == TUTTI_OK); /* it was made of a card */
	out->port = *port++;
	for (size_t i = 0; i < out->nnics; i++)
		out->nic[i].port = *port++;
	for (size_t i = 0; i < out->naddrs; i++)
		out->addr[i].port = out->port;
}

void tti_tcp_cards_release(struct tti_tcp_cards *cards)
{
	for (size_t i = 0; i < cards->bodies.n; i++)
		tti_free(cards->bodies.at[i].bytes);
	tti_vec_release(&cards->bodies);
	tti_vec_release(&cards->ports);
	tti_vec_release(&cards->of);
}
