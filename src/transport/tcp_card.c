/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp_card.h"

#include <endian.h>
#include <string.h>

#define VERSION 1

static const uint8_t magic[4] = { 't', 't', 'c', 'p' };

size_t tti_tcp_card_bytes(const struct tti_tcp_card *card)
{
	return TTI_TCP_CARD_HEAD + card->naddrs * TTI_TCP_CARD_ADDR;
}

void tti_tcp_card_put(const struct tti_tcp_card *card, struct tti_card *out)
{
	const uint32_t slot_bytes = htole32(card->slot_bytes);
	const uint16_t slots = htole16(card->slots);
	uint8_t *at = out->bytes;

	memset(out, 0, sizeof(*out));
	memcpy(at, magic, sizeof(magic));
	at[4] = VERSION;
	at[5] = (uint8_t)card->naddrs;
	memcpy(at + 6, &card->port, 2);
	memcpy(at + 8, &slot_bytes, 4);
	memcpy(at + 12, &slots, 2);
	at += TTI_TCP_CARD_HEAD;
	for (size_t i = 0; i < card->naddrs; i++, at += TTI_TCP_CARD_ADDR) {
		const uint32_t scope = htole32(card->addr[i].scope);

		at[0] = (uint8_t)card->addr[i].family;
		memcpy(at + 4, &scope, 4);
		memcpy(at + 8, card->addr[i].ip, 16);
	}
}

static tutti_status refuse(struct tti_tcp_fault *fault, const char *field, uint64_t value,
			   uint64_t most)
{
	*fault = (struct tti_tcp_fault){ field, value, most };
	return TUTTI_EPROTO;
}

static bool all_zero(const uint8_t *bytes, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

static tutti_status get_addrs(const uint8_t *at, struct tti_tcp_card *out,
			      struct tti_tcp_fault *fault)
{
	for (size_t i = 0; i < out->naddrs; i++, at += TTI_TCP_CARD_ADDR) {
		uint32_t scope;

		if (at[0] != 4 && at[0] != 6)
			return refuse(fault, "family of an address", at[0], 6);
		memcpy(&scope, at + 4, 4);
		out->addr[i].family = at[0];
		out->addr[i].port = out->port;
		out->addr[i].scope = le32toh(scope);
		memcpy(out->addr[i].ip, at + 8, 16);
	}
	return TUTTI_OK;
}

tutti_status tti_tcp_card_get(const uint8_t *bytes, size_t nbytes, struct tti_tcp_card *out,
			      struct tti_tcp_fault *fault)
{
	memset(out, 0, sizeof(*out));
	if (nbytes < TTI_TCP_CARD_HEAD)
		return refuse(fault, "size", nbytes, TTI_CARD_BYTES);
	if (all_zero(bytes, TTI_TCP_CARD_HEAD))
		return TUTTI_OK;
	if (memcmp(bytes, magic, sizeof(magic)))
		return refuse(fault, "magic", bytes[0], magic[0]);
	if (bytes[4] != VERSION)
		return refuse(fault, "version", bytes[4], VERSION);
	if (bytes[5] > TTI_IFACE_MOST)
		return refuse(fault, "number of addresses", bytes[5], TTI_IFACE_MOST);
	out->naddrs = bytes[5];
	if (tti_tcp_card_bytes(out) > nbytes)
		return refuse(fault, "size", nbytes, TTI_CARD_BYTES);
	memcpy(&out->port, bytes + 6, 2);
	memcpy(&out->slot_bytes, bytes + 8, 4);
	memcpy(&out->slots, bytes + 12, 2);
	out->slot_bytes = le32toh(out->slot_bytes);
	out->slots = le16toh(out->slots);
	if (out->naddrs && (!out->slots || out->slots > TTI_TCP_SLOTS_MOST))
		return refuse(fault, "slots", out->slots, TTI_TCP_SLOTS_MOST);
	if (out->naddrs && !out->slot_bytes)
		return refuse(fault, "slot_bytes", 0, UINT32_MAX);
	return get_addrs(bytes + TTI_TCP_CARD_HEAD, out, fault);
}
