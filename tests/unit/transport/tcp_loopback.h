/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_TRANSPORT_TCP_LOOPBACK_H
#define TESTS_UNIT_TRANSPORT_TCP_LOOPBACK_H

/* Ranks at addresses that a test chooses, and sockets that are none of theirs. */
#include "unit/transport/tcp_world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static inline struct tti_tcp_port *inside(struct world *world, int rank)
{
	return tti_tcp_port_of(world->port[rank]);
}

static inline struct tti_tcp_card read_card(const struct world *world, int rank)
{
	struct tti_tcp_card card;
	struct tti_tcp_fault fault;

	assert_int_equal(tti_tcp_card_get(world->card[rank].bytes, TTI_CARD_BYTES, &card, &fault),
			 TUTTI_OK);
	return card;
}

static inline struct tti_addr loopback(int family, uint16_t port)
{
	struct tti_addr addr = { .family = (uint16_t)family, .port = port };

	if (family == 4)
		memcpy(addr.ip, (const uint8_t[4]){ 127, 0, 0, 1 }, 4);
	else
		addr.ip[15] = 1;
	return addr;
}

/* The ranks are to be found at loopback addresses of one family only. */
static inline void move_to_loopback(struct world *world, int family)
{
	for (int rank = 0; rank < world->n; rank++) {
		struct tti_tcp_card card = read_card(world, rank);

		card.naddrs = 1;
		card.addr[0] = loopback(family, card.port);
		card.prefix[0] = 8;
		tti_tcp_card_put(&card, &world->card[rank]);
	}
}

/* A listening socket that is none of ours; its port in network order. */
static inline int strange_listener(uint16_t *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr = { htonl(0x7f000001) } };
	socklen_t size = sizeof(addr);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, size), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
	*port = addr.sin_port;
	return fd;
}

static inline void talks(struct world *world, int a, int b)
{
	assert_true(put(world->link[a][b], 300, 1));
	assert_true(put(world->link[b][a], 8, 2));
	take_soon(world, world->link[b][a], 300, 1);
	take_soon(world, world->link[a][b], 8, 2);
}

#endif
