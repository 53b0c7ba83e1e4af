/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_ID_H
#define TTI_BOOT_ID_H

/* The unique id in bytes. Plain values; threads: any.
 *
 *     0          8         9       10     12          44       45            124
 *     | TUTTI-ID | version | flags | port | secret 32 | nbytes | addresses   | check |
 */

#include <stddef.h>
#include <stdint.h>

#include "boot/boot.h"
#include "boot/net/iface.h"

enum tti_id_flag {
	TTI_ID_BY_HAND = 1, /* from an address: rank 0 serves it      */
	TTI_ID_OPEN = 2,    /* its secret is derived from the address */
};

/* Without a network its only address is TTI_ADDR_UNIX, for ranks of that host. */
struct tti_id {
	unsigned flags;
	uint8_t secret[TTI_SECRET_BYTES];
	struct tti_addr addrs[TTI_IFACE_MOST]; /* with the port */
	size_t naddrs;
};

void tti_id_encode(const struct tti_id *id, tutti_unique_id *out);

/* TUTTI_EINVAL: the text says what is wrong with it. */
TUTTI_CHECKED tutti_status tti_id_decode(const tutti_unique_id *in, struct tti_id *out);

#endif
