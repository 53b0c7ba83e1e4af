/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_CARD_H
#define TTI_TRANSPORT_TCP_CARD_H

/* What a TCP port tells the ports of its peers: where it listens, its slots, its NICs and their
 * addresses.
 *
 *      0                 4        5        6                 8
 *      +-----------------+--------+--------+-----------------+
 *    0 | "ttcp"          | version| naddrs | port (network)  |
 *      +-----------------+--------+--------+--------+--------+
 *    8 | slot_bytes      | slots           | nnics  | 0      |
 *      +-----------------+-----------------+--------+--------+
 *   16 | nnics of: name[15], kind, index (32), mbps (32), mtu (16), port (network)
 *      | naddrs of: family (4, 6), NIC, bits of the network, 0, ip[4 or 16] (network)
 *
 * Little endian but where it says network. The port of a NIC is that of a socket which takes only
 * what comes in by this NIC; 0: there is none. Addresses are in the order in which to try them. A
 * card of zeros is that of a rank that TCP cannot reach. Pure functions; any thread. */

#include "boot/net/iface.h"
#include "transport/tcp/tcp_wire.h"
#include "transport/transport.h"

#define TTI_TCP_CARD_HEAD 16
#define TTI_TCP_CARD_NIC  28
#define TTI_TCP_CARD_IPV4 8
#define TTI_TCP_CARD_IPV6 20
#define TTI_TCP_CARD_DOWN 0x80 /* in `kind`: has no carrier now */

/* As many as there is room for. */
#define TTI_TCP_NICS_MOST \
	((TTI_CARD_BYTES - TTI_TCP_CARD_HEAD) / (TTI_TCP_CARD_NIC + TTI_TCP_CARD_IPV4))
#define TTI_TCP_ADDRS_MOST 32

struct tti_tcp_nic {
	struct tti_iface is;
	uint16_t port; /* network order */
};

struct tti_tcp_card {
	uint32_t slot_bytes;
	uint16_t slots;
	uint16_t port; /* network order */
	size_t nnics, naddrs;
	struct tti_tcp_nic nic[TTI_TCP_NICS_MOST];
	struct tti_addr addr[TTI_TCP_ADDRS_MOST]; /* with the port */
	uint8_t nic_of[TTI_TCP_ADDRS_MOST], prefix[TTI_TCP_ADDRS_MOST];
};

/* The bytes of a card that are used. */
size_t tti_tcp_card_bytes(const struct tti_tcp_card *card);

/* Put as many NICs and addresses into a card as fit: first one of each family for every NIC, then
 * further ones. Addresses of interfaces whose names no card can have are removed. */
TUTTI_CHECKED tutti_status tti_tcp_card_fill(struct tti_tcp_card *card, struct tti_ifaces *ifaces);

void tti_tcp_card_put(const struct tti_tcp_card *card, struct tti_card *out);

/* TUTTI_EPROTO: no card; *fault says which field. */
TUTTI_CHECKED tutti_status tti_tcp_card_get(const uint8_t *bytes, size_t nbytes,
					    struct tti_tcp_card *out, struct tti_tcp_fault *fault);

/* How many of its addresses, from the first on, to try: those of NICs that ran when the card was
 * made; all where no plain NIC did, as one may by now. */
size_t tti_tcp_card_offered(const struct tti_tcp_card *card);

/* 1 + the number of the NIC that has this address, 0: none. */
uint8_t tti_tcp_card_nic_of(const struct tti_tcp_card *card, const struct tti_addr *addr);

#endif
