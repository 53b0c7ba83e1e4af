/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_CARD_H
#define TTI_TRANSPORT_TCP_CARD_H

/* What a TCP port tells the others' ports: where it listens, what its slots are.
 *
 *      0                 4        5        6                 8
 *      +-----------------+--------+--------+-----------------+
 *    0 | "ttcp"          | version| naddrs | port (network)  |
 *      +-----------------+--------+--------+-----------------+
 *    8 | slot_bytes      | slots           | 0               |
 *      +-----------------+-----------------+-----------------+
 *   16 | naddrs of: family (4, 6), 0, 0, 0, scope (32), ip[16] (network)
 *
 * Little endian but where it says network. A card of zeros is that of a rank that
 * cannot be reached by TCP. Pure functions; any thread. */

#include "boot/iface.h"
#include "transport/tcp_wire.h"
#include "transport/transport.h"

#define TTI_TCP_CARD_HEAD 16
#define TTI_TCP_CARD_ADDR 24
#define TTI_TCP_CARD_MOST (TTI_TCP_CARD_HEAD + TTI_IFACE_MOST * TTI_TCP_CARD_ADDR)

struct tti_tcp_card {
	uint32_t slot_bytes;
	uint16_t slots;
	uint16_t port; /* network order */
	size_t naddrs;
	struct tti_addr addr[TTI_IFACE_MOST]; /* with the port */
};

/* Bytes of it that are used: what need be kept. */
size_t tti_tcp_card_bytes(const struct tti_tcp_card *card);

void tti_tcp_card_put(const struct tti_tcp_card *card, struct tti_card *out);

/* TUTTI_EPROTO: no card; *fault says which field. */
TUTTI_CHECKED tutti_status tti_tcp_card_get(const uint8_t *bytes, size_t nbytes,
					    struct tti_tcp_card *out, struct tti_tcp_fault *fault);

#endif
