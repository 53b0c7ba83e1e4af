/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp_card.h"

#include <string.h>

#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/wire.h"

#define VERSION    2
#define NAME_BYTES 15

static const uint8_t magic[4] = { 't', 't', 'c', 'p' };

static size_t addr_bytes(const struct tti_addr *addr)
{
	return addr->family == 4 ? TTI_TCP_CARD_IPV4 : TTI_TCP_CARD_IPV6;
}

size_t tti_tcp_card_bytes(const struct tti_tcp_card *card)
{
	size_t bytes = TTI_TCP_CARD_HEAD + card->nnics * TTI_TCP_CARD_NIC;

	for (size_t i = 0; i < card->naddrs; i++)
		bytes += addr_bytes(&card->addr[i]);
	return bytes;
}

size_t tti_tcp_card_offered(const struct tti_tcp_card *card)
{
	bool has_nic = false;
	size_t n = 0;

	for (; n < card->naddrs && card->nic[card->nic_of[n]].is.running; n++)
		has_nic |= card->nic[card->nic_of[n]].is.kind == TTI_IFACE_NIC;
	return has_nic ? n : card->naddrs;
}

uint8_t tti_tcp_card_nic_of(const struct tti_tcp_card *card, const struct tti_addr *addr)
{
	for (size_t i = 0; i < card->naddrs; i++) {
		if (card->addr[i].family == addr->family &&
		    memcmp(card->addr[i].ip, addr->ip, sizeof(addr->ip)) == 0)
			return (uint8_t)(1 + card->nic_of[i]);
	}
	return 0;
}

/* How many bytes of a name, which is shown, can disturb no terminal. */
static size_t plain_bytes(const void *name)
{
	const uint8_t *at = name;
	size_t n = 0;

	while (n < NAME_BYTES && at[n] > ' ' && at[n] < 127)
		n++;
	return n;
}

/* -- Filling --------------------------------------------------------------- */

static size_t bytes_of(const struct tti_ifaces *ifaces, const bool *take)
{
	size_t bytes = TTI_TCP_CARD_HEAD;
	bool seen[256] = { false };

	for (size_t i = 0; i < ifaces->addr.n; i++) {
		const struct tti_iface_addr *at = &ifaces->addr.at[i];

		if (!take[i])
			continue;
		bytes += addr_bytes(&at->addr) + (seen[at->iface] ? 0 : TTI_TCP_CARD_NIC);
		seen[at->iface] = true;
	}
	return bytes;
}

/* Number of the NIC in the card, where it is put if it is new. */
static uint8_t nic_in(struct tti_tcp_card *card, const struct tti_iface *iface)
{
	size_t i = 0;

	while (i < card->nnics && card->nic[i].is.index != iface->index)
		i++;
	if (i == card->nnics)
		card->nic[card->nnics++] = (struct tti_tcp_nic){ .is = *iface };
	return (uint8_t)i;
}

/* Interfaces have names that no card can have: Linux forbids few bytes only. */
static void leave_out(struct tti_ifaces *ifaces)
{
	bool out[256] = { false };
	size_t n = 0;

	for (size_t i = 0; i < ifaces->iface.n; i++) {
		const struct tti_iface *iface = &ifaces->iface.at[i];

		out[i] = !iface->name[0] || iface->name[plain_bytes(iface->name)];
		if (out[i])
			tti_log(TTI_LOG_WARN, TTI_TCP,
				"interface number %u takes no part in TCP: its name is not plain "
				"ASCII; rename it, or exclude it with TUTTI_SOCKET_IFNAME",
				iface->index);
	}
	for (size_t i = 0; i < ifaces->addr.n; i++) {
		if (!out[ifaces->addr.at[i].iface])
			ifaces->addr.at[n++] = ifaces->addr.at[i];
	}
	ifaces->addr.n = n;
}

tutti_status tti_tcp_card_fill(struct tti_tcp_card *card, struct tti_ifaces *ifaces)
{
	size_t most;
	bool *take;

	leave_out(ifaces);
	most = ifaces->addr.n < TTI_TCP_ADDRS_MOST ? ifaces->addr.n : TTI_TCP_ADDRS_MOST;
	take = tti_calloc(ifaces->addr.n + 1, sizeof(*take));

	card->nnics = card->naddrs = 0;
	if (!take)
		return tti_fail(TUTTI_ENOMEM, "%zu addresses", ifaces->addr.n);
	for (; most > 0; most--) {
		(void)tti_iface_choose(ifaces->addr.at, ifaces->addr.n, most, take);
		if (bytes_of(ifaces, take) <= TTI_CARD_BYTES)
			break;
	}
	for (size_t i = 0; i < ifaces->addr.n && most > 0; i++) {
		const struct tti_iface_addr *at = &ifaces->addr.at[i];

		if (!take[i])
			continue;
		card->addr[card->naddrs] = at->addr;
		card->addr[card->naddrs].port = card->port;
		card->prefix[card->naddrs] = at->prefix;
		card->nic_of[card->naddrs++] = nic_in(card, &ifaces->iface.at[at->iface]);
	}
	tti_free(take);
	return TUTTI_OK;
}

/* -- As bytes -------------------------------------------------------------- */

static void put_nic(uint8_t *at, const struct tti_tcp_nic *nic)
{
	memcpy(at, nic->is.name, plain_bytes(nic->is.name));
	at[15] = nic->is.kind | (nic->is.running ? 0 : TTI_TCP_CARD_DOWN);
	tti_wire_put32(at + 16, nic->is.index);
	tti_wire_put32(at + 20, nic->is.mbps);
	tti_wire_put16(at + 24, nic->is.mtu);
	memcpy(at + 26, &nic->port, 2);
}

void tti_tcp_card_put(const struct tti_tcp_card *card, struct tti_card *out)
{
	uint8_t *at = out->bytes;

	memset(out, 0, sizeof(*out));
	memcpy(at, magic, sizeof(magic));
	at[4] = VERSION;
	at[5] = (uint8_t)card->naddrs;
	memcpy(at + 6, &card->port, 2);
	tti_wire_put32(at + 8, card->slot_bytes);
	tti_wire_put16(at + 12, card->slots);
	at[14] = (uint8_t)card->nnics;
	at += TTI_TCP_CARD_HEAD;
	for (size_t i = 0; i < card->nnics; i++, at += TTI_TCP_CARD_NIC)
		put_nic(at, &card->nic[i]);
	for (size_t i = 0; i < card->naddrs; i++, at += addr_bytes(&card->addr[i - 1])) {
		at[0] = (uint8_t)card->addr[i].family;
		at[1] = card->nic_of[i];
		at[2] = card->prefix[i];
		memcpy(at + 4, card->addr[i].ip, card->addr[i].family == 4 ? 4 : 16);
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

static tutti_status get_nics(const uint8_t *at, struct tti_tcp_card *out,
			     struct tti_tcp_fault *fault)
{
	for (size_t i = 0; i < out->nnics; i++, at += TTI_TCP_CARD_NIC) {
		struct tti_iface *nic = &out->nic[i].is;
		const uint8_t kind = at[15] & (uint8_t)~TTI_TCP_CARD_DOWN;
		const size_t n = plain_bytes(at);

		if (!n || !all_zero(at + n, NAME_BYTES - n))
			return refuse(fault, "name of a NIC", at[0], 126);
		if (kind > TTI_IFACE_LOOPBACK)
			return refuse(fault, "kind of a NIC", kind, TTI_IFACE_LOOPBACK);
		memcpy(nic->name, at, NAME_BYTES);
		nic->kind = kind;
		nic->running = !(at[15] & TTI_TCP_CARD_DOWN);
		nic->index = tti_wire_get32(at + 16);
		nic->mbps = tti_wire_get32(at + 20);
		nic->mtu = tti_wire_get16(at + 24);
		memcpy(&out->nic[i].port, at + 26, 2);
	}
	return TUTTI_OK;
}

static bool is_of_a_link(const struct tti_addr *addr)
{
	return addr->family == 6 && addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80;
}

static tutti_status get_addr(const uint8_t *at, size_t left, struct tti_tcp_card *out, size_t i,
			     struct tti_tcp_fault *fault)
{
	struct tti_addr *addr = &out->addr[i];

	if (left < TTI_TCP_CARD_IPV4)
		return refuse(fault, "size", left, TTI_CARD_BYTES);
	if (at[0] != 4 && at[0] != 6)
		return refuse(fault, "family of an address", at[0], 6);
	if (at[1] >= out->nnics)
		return refuse(fault, "NIC of an address", at[1], out->nnics);
	if (at[2] > (at[0] == 4 ? 32 : 128))
		return refuse(fault, "network of an address", at[2], at[0] == 4 ? 32 : 128);
	addr->family = at[0];
	if (left < addr_bytes(addr))
		return refuse(fault, "size", left, TTI_CARD_BYTES);
	addr->port = out->port;
	out->nic_of[i] = at[1];
	out->prefix[i] = at[2];
	memcpy(addr->ip, at + 4, addr->family == 4 ? 4 : 16);
	memcpy(addr->ifname, out->nic[at[1]].is.name, IFNAMSIZ);
	if (is_of_a_link(addr))
		addr->scope = out->nic[at[1]].is.index;
	return TUTTI_OK;
}

static tutti_status get_head(const uint8_t *bytes, size_t nbytes, struct tti_tcp_card *out,
			     struct tti_tcp_fault *fault)
{
	if (memcmp(bytes, magic, sizeof(magic)))
		return refuse(fault, "magic", bytes[0], magic[0]);
	if (bytes[4] != VERSION)
		return refuse(fault, "version", bytes[4], VERSION);
	if (bytes[5] > TTI_TCP_ADDRS_MOST)
		return refuse(fault, "number of addresses", bytes[5], TTI_TCP_ADDRS_MOST);
	if (bytes[14] > TTI_TCP_NICS_MOST)
		return refuse(fault, "number of NICs", bytes[14], TTI_TCP_NICS_MOST);
	out->naddrs = bytes[5];
	out->nnics = bytes[14];
	if (TTI_TCP_CARD_HEAD + out->nnics * TTI_TCP_CARD_NIC > nbytes)
		return refuse(fault, "size", nbytes, TTI_CARD_BYTES);
	memcpy(&out->port, bytes + 6, 2);
	out->slot_bytes = tti_wire_get32(bytes + 8);
	out->slots = tti_wire_get16(bytes + 12);
	if (out->naddrs && (!out->slots || out->slots > TTI_TCP_SLOTS_MOST))
		return refuse(fault, "slots", out->slots, TTI_TCP_SLOTS_MOST);
	if (out->naddrs && !out->slot_bytes)
		return refuse(fault, "slot_bytes", 0, UINT32_MAX);
	return TUTTI_OK;
}

tutti_status tti_tcp_card_get(const uint8_t *bytes, size_t nbytes, struct tti_tcp_card *out,
			      struct tti_tcp_fault *fault)
{
	size_t at = TTI_TCP_CARD_HEAD;

	memset(out, 0, sizeof(*out));
	if (nbytes < TTI_TCP_CARD_HEAD)
		return refuse(fault, "size", nbytes, TTI_CARD_BYTES);
	if (all_zero(bytes, TTI_TCP_CARD_HEAD))
		return TUTTI_OK;
	TTI_TRY(get_head(bytes, nbytes, out, fault));
	TTI_TRY(get_nics(bytes + at, out, fault));
	at += out->nnics * TTI_TCP_CARD_NIC;
	for (size_t i = 0; i < out->naddrs; i++) {
		TTI_TRY(get_addr(bytes + at, nbytes - at, out, i, fault));
		at += addr_bytes(&out->addr[i]);
	}
	return TUTTI_OK;
}
