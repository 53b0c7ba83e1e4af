/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_MOCK_NET_H
#define TESTS_SUPPORT_MOCK_NET_H

/* What the parts of the mock transport share. */

#include "support/mock.h"
#include "support/reference.h"

/* A slot on its way: the sender's room, the receiver's copy. */
struct mock_slot {
	uint8_t *room, *copy;
	uint8_t *at; /* where the receiver finds it: one of the two */
	size_t nbytes;
	uint64_t tag;
	int32_t fan; /* the shared slot that it was written in, -1: none */
};

/* One direction between two ranks. Counts of messages since the beginning; in this order none is
 * more than the one before: committed, handed over to the system, to be seen by the receiver,
 * released by it, and released as far as the sender knows. */
struct mock_channel {
	struct mock_slot *slot;
	uint64_t written, sent, visible, released, returned;
	size_t reserved; /* bytes + 1 of the room that is reserved, 0: none */
	bool is_slow;
};

/* A slot that several links share. */
struct mock_fan {
	uint8_t *room;
	int readers; /* that have not released it as far as the sender knows */
};

struct mock_link {
	struct tti_link base;
	struct mock_port *port;
	struct mock_channel *out, *in;
	tutti_status refusal; /* of connecting, TUTTI_OK: none */
};

struct mock_port {
	struct tti_port base;
	struct mock *mock;
	struct mock_link *links;
	struct mock_fan *fans;
	size_t fan_reserved; /* bytes + 1, 0: none */
	int32_t fan;         /* that is reserved   */
	tutti_status broken; /* of memory of others, TUTTI_OK: it is not */
	uint64_t reached;
};

struct mock {
	struct mock_config config;
	struct tti_transport transport;
	struct tti_link_ops link_ops;
	struct mock_port *ports;
	struct mock_channel *channels; /* [from * n + to] */
	uint64_t random;
	int breaches;
	void (*on_idle)(void *self, int rank);
	void *self;
};

static inline uint64_t mock_draw(struct mock *mock, uint64_t n)
{
	return next_random(&mock->random) % n;
}

static inline struct mock_slot *mock_slot_of(const struct mock *mock,
					     const struct mock_channel *channel, uint64_t count)
{
	return &channel->slot[count % (uint64_t)mock->config.slots];
}

/* All that is under way on a channel arrives; false: nothing is. */
bool mock_deliver(struct mock *mock, struct mock_channel *channel);
/* How memory of others is reached. */
extern const struct tti_memory_ops mock_memory_ops;
/* What a port has committed goes out. */
void mock_hand_over(struct mock_port *port);

#endif
