/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_ROUTE_H
#define TTI_TRANSPORT_TCP_ROUTE_H

/* What the kernel's routing tables say, asked over netlink (RTM_GETROUTE): no packet is sent,
 * and an answer takes some microseconds. Rules by source address count, as a lane binds its
 * address. */

#include <stdbool.h>
#include <stdint.h>

#include "boot/net/iface.h"

struct tti_tcp_route {
	uint32_t index; /* of the interface by which it leaves */
	bool gateway;   /* by way of a router                  */
	bool local;     /* it does not leave this host         */
};

/* A socket for questions, or -1: the kernel takes none. */
int tti_tcp_route_open(void);

/* `index`: as if the socket were bound to this interface, 0: it is not. false: no route, or no
 * answer. */
bool tti_tcp_route_ask(int fd, const struct tti_addr *from, const struct tti_addr *to,
		       uint32_t index, struct tti_tcp_route *out);

/* A tti_tcp_leaves; context: const int *fd. Whether packets leave by that interface, by themselves
 * or, where they go to a router there, when bound. Without an answer: no. */
bool tti_tcp_route_leaves(void *fd, const struct tti_addr *from, const struct tti_addr *to,
			  uint32_t index);

#endif
