/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/mock.h"

#include <stdlib.h>
#include <string.h>

#include "support/mock_net.h"
#include "util/error.h"

#define GUARD        64
#define GUARD_BYTE   0x5a
#define FRESH_BYTE   0xdb
#define RELEASE_BYTE 0xcd

static void idle(struct mock_port *port)
{
	if (port->mock->on_idle)
		port->mock->on_idle(port->mock->self, port->base.rank);
}

uint64_t mock_sent(const struct mock *mock, int from, int to)
{
	return mock->channels[from * mock->config.n + to].written;
}

void mock_refuse(struct mock *mock, int rank, int peer, tutti_status status)
{
	mock->ports[rank].links[peer].refusal = status;
}

int mock_breaches(const struct mock *mock)
{
	return mock->breaches;
}

void mock_on_idle(struct mock *mock, void (*fn)(void *self, int rank), void *self)
{
	mock->on_idle = fn;
	mock->self = self;
}

/* -- Slots ------------------------------------------------------------------------------------ */

static void fill(uint8_t *room, size_t nbytes)
{
	memset(room, FRESH_BYTE, nbytes);
	memset(room + nbytes, GUARD_BYTE, GUARD);
}

static void check_guard(struct mock *mock, const uint8_t *room, size_t nbytes)
{
	for (int i = 0; i < GUARD; i++)
		if (room[nbytes + (size_t)i] != GUARD_BYTE) {
			mock->breaches++;
			return;
		}
}

static bool has_credit(const struct mock *mock, const struct mock_channel *channel)
{
	return channel->written - channel->returned < (uint64_t)mock->config.slots;
}

static void put(struct mock_link *link, const void *data, size_t nbytes, uint64_t tag, int32_t fan)
{
	struct mock *mock = link->port->mock;
	struct mock_channel *channel = link->out;
	struct mock_slot *slot = mock_slot_of(mock, channel, channel->written);

	slot->at = data == slot->room && mock->config.one_copy ? slot->room : slot->copy;
	if (nbytes > 0 && data != slot->at)
		memcpy(slot->at, data, nbytes);
	slot->nbytes = nbytes;
	slot->tag = tag;
	slot->fan = fan;
	channel->written++;
	if (mock->config.has_progress)
		link->port->base.unsent += nbytes + 1;
	else
		channel->sent = channel->written;
	if (mock->config.pace == MOCK_AT_ONCE)
		mock_deliver(mock, channel);
}

static void *reserve(struct tti_link *base, size_t nbytes, size_t whole)
{
	struct mock_link *link = (struct mock_link *)base;
	struct mock *mock = link->port->mock;
	struct mock_channel *channel = link->out;
	uint8_t *room = mock_slot_of(mock, channel, channel->written)->room;

	if (nbytes > mock->config.slot_bytes) {
		mock->breaches++;
		return NULL;
	}
	(void)whole;
	if (!has_credit(mock, channel)) {
		idle(link->port);
		return NULL;
	}
	if (channel->reserved != nbytes + 1)
		fill(room, nbytes);
	channel->reserved = nbytes + 1;
	return room;
}

static void commit(struct tti_link *base, size_t nbytes, uint64_t tag)
{
	struct mock_link *link = (struct mock_link *)base;
	const uint8_t *room = mock_slot_of(link->port->mock, link->out, link->out->written)->room;

	check_guard(link->port->mock, room, nbytes);
	link->out->reserved = 0;
	put(link, room, nbytes, tag, -1);
}

static const void *peek(struct tti_link *base, size_t *nbytes, uint64_t *tag)
{
	struct mock_link *link = (struct mock_link *)base;
	const struct mock_slot *slot = mock_slot_of(link->port->mock, link->in, link->in->released);

	if (link->in->visible == link->in->released) {
		idle(link->port);
		return NULL;
	}
	*nbytes = slot->nbytes;
	*tag = slot->tag;
	return slot->at;
}

static void release(struct tti_link *base)
{
	struct mock_link *link = (struct mock_link *)base;
	struct mock *mock = link->port->mock;

	memset(mock_slot_of(mock, link->in, link->in->released)->at, RELEASE_BYTE,
	       mock->config.slot_bytes + GUARD);
	link->in->released++;
	if (mock->config.pace == MOCK_AT_ONCE)
		mock_deliver(mock, link->in);
}

static bool send(struct tti_link *base, const void *data, size_t nbytes, uint64_t tag)
{
	struct mock_link *link = (struct mock_link *)base;

	if (!has_credit(link->port->mock, link->out) || mock_draw(link->port->mock, 3) == 0)
		return false;
	link->out->reserved = 0;
	put(link, data, nbytes, tag, -1);
	return true;
}

static bool all_released(struct tti_link *base)
{
	const struct mock_link *link = (struct mock_link *)base;

	return link->out->written == link->out->returned;
}

/* -- Fan-outs ----------------------------------------------------------------------------------- */

static void *fan_reserve(struct tti_port *base, struct tti_link *const *links, int n, size_t nbytes)
{
	struct mock_port *port = (struct mock_port *)base;
	int32_t at = 0;

	while (at < port->mock->config.slots && port->fans[at].readers > 0)
		at++;
	for (int i = 0; i < n && at < port->mock->config.slots; i++)
		if (!has_credit(port->mock, ((struct mock_link *)links[i])->out))
			at = port->mock->config.slots;
	if (at == port->mock->config.slots) {
		idle(port);
		return NULL;
	}
	if (port->fan_reserved && port->fans[port->fan].readers == 0)
		at = port->fan;
	if (port->fan_reserved != nbytes + 1)
		fill(port->fans[at].room, nbytes);
	port->fan = at;
	port->fan_reserved = nbytes + 1;
	return port->fans[at].room;
}

static void fan_commit(struct tti_port *base, struct tti_link *const *links, int n, size_t nbytes,
		       uint64_t tag)
{
	struct mock_port *port = (struct mock_port *)base;
	struct mock_fan *fan = &port->fans[port->fan];

	check_guard(port->mock, fan->room, nbytes);
	port->fan_reserved = 0;
	fan->readers = n;
	for (int i = 0; i < n; i++)
		put((struct mock_link *)links[i], fan->room, nbytes, tag, port->fan);
}

static const struct tti_fanout_ops fanout_ops = { .reserve = fan_reserve, .commit = fan_commit };

/* -- Ports ------------------------------------------------------------------------------------- */

/* Asked several times, as links of a network are. */
static tutti_status mock_connect(struct tti_port *base, int peer, struct tti_link **out)
{
	struct mock_port *port = (struct mock_port *)base;

	if (port->mock->config.pace != MOCK_AT_ONCE && mock_draw(port->mock, 2))
		return TUTTI_AGAIN;
	if (port->links[peer].refusal != TUTTI_OK)
		return tti_fail_quiet(port->links[peer].refusal, "rank %d refuses rank %d", peer,
				      base->rank);
	*out = &port->links[peer].base;
	return TUTTI_OK;
}

static void mock_close(struct tti_link *link)
{
	(void)link;
}

static void mock_progress(struct tti_port *base)
{
	struct mock_port *port = (struct mock_port *)base;

	if (port->mock->config.pace == MOCK_AT_ONCE || mock_draw(port->mock, 2))
		mock_hand_over(port);
	if (port->mock->config.pace == MOCK_AT_ONCE)
		mock_tick(port->mock);
	idle(port);
}

/* Nobody sleeps: time means nothing here. */
static void mock_sleep(struct tti_port *base, int64_t timeout_ns)
{
	(void)timeout_ns;
	idle((struct mock_port *)base);
}

static const struct tti_sleep_ops sleep_ops = { .wait = mock_sleep };
static const struct tti_lane_ops lane_ops = { 0 };

static void init_port(struct mock *mock, int rank)
{
	const struct mock_config *config = &mock->config;
	struct mock_port *port = &mock->ports[rank];

	port->mock = mock;
	port->base.transport = &mock->transport;
	port->base.rank = rank;
	port->base.nranks = config->n;
	port->base.slot_bytes = config->slot_bytes;
	port->base.inline_bytes = config->inline_bytes;
	port->base.fans_short = config->fans_short;
	port->base.failed_peer = -1;
	port->base.plain = config->memory;
	port->links = calloc((size_t)config->n, sizeof(*port->links));
	port->fans = calloc((size_t)config->slots, sizeof(*port->fans));
	for (int i = 0; i < config->slots; i++)
		port->fans[i].room = malloc(config->slot_bytes + GUARD);
	for (int peer = 0; peer < config->n; peer++) {
		struct mock_link *link = &port->links[peer];

		link->base.ops = &mock->link_ops;
		link->base.peer = peer;
		link->port = port;
		link->out = &mock->channels[rank * config->n + peer];
		link->in = &mock->channels[peer * config->n + rank];
	}
}

static void init_channel(struct mock *mock, struct mock_channel *channel)
{
	channel->slot = calloc((size_t)mock->config.slots, sizeof(*channel->slot));
	channel->is_slow = mock_draw(mock, 3) == 0;
	for (int i = 0; i < mock->config.slots; i++) {
		channel->slot[i].room = calloc(1, mock->config.slot_bytes + GUARD);
		channel->slot[i].copy = malloc(mock->config.slot_bytes + GUARD);
		channel->slot[i].fan = -1;
	}
}

struct mock *mock_create(const struct mock_config *config)
{
	const size_t n = (size_t)config->n;
	struct mock *mock = calloc(1, sizeof(*mock));

	mock->config = *config;
	mock->random = config->seed;
	mock->transport = (struct tti_transport){
		.size = sizeof(struct tti_transport),
		.name = "mock",
		.piece_bytes = config->piece_bytes,
		.connect = mock_connect,
		.close = mock_close,
		.progress = config->has_progress ? mock_progress : NULL,
		.fanout = config->fans ? &fanout_ops : NULL,
		.sleep = &sleep_ops,
		.lanes = config->has_lanes ? &lane_ops : NULL,
		.memory = config->memory != TTI_REACH_SLOTS ? &mock_memory_ops : NULL,
	};
	mock->link_ops = (struct tti_link_ops){
		.reserve = reserve,
		.commit = commit,
		.peek = peek,
		.release = release,
		.send = config->sends ? send : NULL,
		.shares_slots = config->shares_slots,
		.all_released = all_released,
	};
	mock->channels = calloc(n * n, sizeof(*mock->channels));
	for (size_t i = 0; i < n * n; i++)
		init_channel(mock, &mock->channels[i]);
	mock->ports = calloc(n, sizeof(*mock->ports));
	for (int rank = 0; rank < config->n; rank++)
		init_port(mock, rank);
	return mock;
}

void mock_free(struct mock *mock)
{
	const struct mock_config *config = &mock->config;

	for (int i = 0; i < config->n * config->n; i++) {
		for (int s = 0; s < config->slots; s++) {
			free(mock->channels[i].slot[s].room);
			free(mock->channels[i].slot[s].copy);
		}
		free(mock->channels[i].slot);
	}
	for (int rank = 0; rank < config->n; rank++) {
		for (int i = 0; i < config->slots; i++)
			free(mock->ports[rank].fans[i].room);
		free(mock->ports[rank].fans);
		free(mock->ports[rank].links);
	}
	free(mock->channels);
	free(mock->ports);
	free(mock);
}

struct tti_port *mock_port(struct mock *mock, int rank)
{
	return &mock->ports[rank].base;
}
