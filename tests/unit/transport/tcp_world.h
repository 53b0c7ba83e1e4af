/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_TRANSPORT_TCP_WORLD_H
#define TESTS_UNIT_TRANSPORT_TCP_WORLD_H

/* Ranks for tests of the TCP transport: their ports in one process, driven by one
 * thread or by several. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "support/pattern.h"
#include "transport/tcp/tcp.h"
#include "util/clock.h"
#include "util/error.h"

#define WORLD_MOST 8

struct world {
	int n;
	uint8_t secret[32];
	struct tti_port_config config;
	struct tti_tcp_options options;
	struct tti_port *port[WORLD_MOST];
	struct tti_card card[WORLD_MOST];
	struct tti_link *link[WORLD_MOST][WORLD_MOST]; /* [rank][peer] */
};

/* Of worlds that are opened from now on. */
static bool world_encrypts;

static inline int world_encrypt(void **state)
{
	(void)state;
	world_encrypts = true;
	return 0;
}

static const struct tti_transport *const tcp = &tti_transport_tcp;

static inline void world_open(struct world *world, int n, int slots, size_t slot_bytes, int sockets)
{
	memset(world->link, 0, sizeof(world->link));
	world->n = n;
	for (size_t i = 0; i < sizeof(world->secret); i++)
		world->secret[i] = (uint8_t)(i * 7 + 1);
	world->config = (struct tti_port_config){
		.nranks = n,
		.secret = world->secret,
		.slots = slots,
		.slot_bytes = slot_bytes,
		.timeout_ms = 20000,
	};
	world->options = (struct tti_tcp_options){ .sockets = sockets,
						   .handshake_ms = 10000,
						   .encrypt = world_encrypts };
}

static inline void world_start(struct world *world)
{
	for (int rank = 0; rank < world->n; rank++) {
		world->config.rank = rank;
		assert_int_equal(tti_tcp_open(&world->config, &world->options, &world->port[rank],
					      &world->card[rank]),
				 TUTTI_OK);
	}
}

static inline void world_join(struct world *world)
{
	for (int rank = 0; rank < world->n; rank++) {
		uint64_t domain = 0;

		assert_int_equal(tcp->join(world->port[rank], world->card, &domain), TUTTI_OK);
		assert_int_equal(domain, 1);
	}
}

static inline void world_progress(struct world *world)
{
	for (int rank = 0; rank < world->n; rank++) {
		if (world->port[rank])
			tcp->progress(world->port[rank]);
	}
}

/* Connect a and b, both driven here. */
static inline void world_link(struct world *world, int a, int b)
{
	const int64_t deadline = tti_deadline(60000);
	tutti_status at_a, at_b;

	do {
		at_a = tcp->connect(world->port[a], b, &world->link[a][b]);
		at_b = tcp->connect(world->port[b], a, &world->link[b][a]);
		world_progress(world);
		assert_true(tti_now_ns() < deadline);
	} while (at_a == TUTTI_AGAIN || at_b == TUTTI_AGAIN);
	assert_int_equal(at_a, TUTTI_OK);
	assert_int_equal(at_b, TUTTI_OK);
}

/* Two linked ranks, the usual case. */
static inline void world_pair(struct world *world, int slots, size_t slot_bytes, int sockets)
{
	world_open(world, 2, slots, slot_bytes, sockets);
	world_start(world);
	world_join(world);
	world_link(world, 0, 1);
}

static inline void world_end(struct world *world)
{
	for (int rank = 0; rank < world->n; rank++) {
		for (int peer = 0; peer < world->n; peer++) {
			if (world->port[rank] && world->link[rank][peer])
				tcp->close(world->link[rank][peer]);
		}
	}
	for (int rank = 0; rank < world->n; rank++) {
		tcp->shutdown(world->port[rank]);
		world->port[rank] = NULL;
	}
}

static inline void check_filled(const void *data, size_t nbytes, uint64_t seed)
{
	const size_t agree = pattern_agrees(data, nbytes, seed);

	if (agree < nbytes)
		fail_msg("message %llu differs at byte %zu of %zu", (unsigned long long)seed, agree,
			 nbytes);
}

/* One message if there is credit. */
static inline bool put(struct tti_link *link, size_t nbytes, uint64_t seed)
{
	void *room = link->ops->reserve(link, nbytes, 0);

	if (!room)
		return false;
	assert_ptr_equal(room, link->ops->reserve(link, nbytes, 0));
	pattern_fill(room, nbytes, seed);
	link->ops->commit(link, nbytes, seed ^ 0xabcdef);
	return true;
}

/* Take one message if there is one and look whether it is message `seed`. */
static inline bool take(struct tti_link *link, size_t nbytes, uint64_t seed)
{
	size_t got;
	uint64_t tag;
	const void *data = link->ops->peek(link, &got, &tag);

	if (!data)
		return false;
	assert_int_equal(got, nbytes);
	assert_int_equal(tag, seed ^ 0xabcdef);
	check_filled(data, got, seed);
	link->ops->release(link);
	return true;
}

/* take() within a minute, driving all ports. */
static inline void take_soon(struct world *world, struct tti_link *link, size_t nbytes,
			     uint64_t seed)
{
	const int64_t deadline = tti_deadline(60000);

	while (!take(link, nbytes, seed)) {
		world_progress(world);
		assert_true(tti_now_ns() < deadline);
	}
}

#define assert_error_has(text)                                                       \
	do {                                                                         \
		if (!strstr(tti_error_text(), text))                                 \
			fail_msg("\"%s\" is not in \"%s\"", text, tti_error_text()); \
	} while (0)

#endif
