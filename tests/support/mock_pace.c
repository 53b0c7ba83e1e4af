/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives when: the part of the mock transport that decides. */
#include "support/mock_net.h"

static void see(struct mock_channel *channel, uint64_t count)
{
	channel->visible += count;
}

static void give_credit(struct mock *mock, struct mock_channel *channel, uint64_t count)
{
	for (; count > 0; count--, channel->returned++) {
		struct mock_slot *slot = mock_slot_of(mock, channel, channel->returned);

		if (slot->fan >= 0)
			mock->ports[(channel - mock->channels) / mock->config.n]
				.fans[slot->fan]
				.readers--;
		slot->fan = -1;
	}
}

bool mock_deliver(struct mock *mock, struct mock_channel *channel)
{
	const uint64_t messages = channel->sent - channel->visible,
		       credits = channel->released - channel->returned;

	see(channel, messages);
	give_credit(mock, channel, credits);
	return messages + credits > 0;
}

static bool deliver_some(struct mock *mock, struct mock_channel *channel)
{
	const uint64_t messages = mock_draw(mock, channel->sent - channel->visible + 1);
	const uint64_t credits = mock_draw(mock, channel->released - channel->returned + 1);

	see(channel, messages);
	give_credit(mock, channel, credits);
	return messages + credits > 0;
}

/* One message, or one credit, of the first link from a random one on that has any. */
static bool deliver_one(struct mock *mock, bool messages, bool credits)
{
	const int n = mock->config.n * mock->config.n;
	const int first = (int)mock_draw(mock, (uint64_t)n);

	for (int i = 0; i < n; i++) {
		struct mock_channel *channel = &mock->channels[(first + i) % n];

		if (messages && channel->sent > channel->visible) {
			see(channel, 1);
			return true;
		}
		if (credits && channel->released > channel->returned) {
			give_credit(mock, channel, 1);
			return true;
		}
	}
	return false;
}

static bool deliver_all(struct mock *mock, bool slow)
{
	bool moved = false;

	for (int i = 0; i < mock->config.n * mock->config.n; i++)
		if (mock->channels[i].is_slow <= slow)
			moved |= mock_deliver(mock, &mock->channels[i]);
	return moved;
}

static bool deliver_starved(struct mock *mock)
{
	bool moved = false;

	while (deliver_one(mock, true, false))
		moved = true;
	return deliver_one(mock, false, true) || moved;
}

bool mock_tick(struct mock *mock)
{
	bool moved = false;

	switch (mock->config.pace) {
	case MOCK_AT_ONCE:
		return deliver_all(mock, true);
	case MOCK_RANDOM:
		for (int i = 0; i < mock->config.n * mock->config.n; i++)
			moved |= mock_draw(mock, 2) && deliver_some(mock, &mock->channels[i]);
		return moved;
	case MOCK_ONE_BY_ONE:
		return mock_draw(mock, 2)
			       ? deliver_one(mock, true, true)
			       : deliver_one(mock, false, true) || deliver_one(mock, true, false);
	case MOCK_STARVED:
		return deliver_starved(mock);
	case MOCK_BURSTS:
		return mock_draw(mock, 12) == 0 && deliver_all(mock, true);
	case MOCK_LOPSIDED:
		return deliver_all(mock, false) || deliver_one(mock, true, true);
	}
	return false;
}

void mock_hand_over(struct mock_port *port)
{
	struct mock *mock = port->mock;

	for (int peer = 0; peer < mock->config.n; peer++)
		port->links[peer].out->sent = port->links[peer].out->written;
	port->base.unsent = 0;
}

bool mock_flush(struct mock *mock)
{
	for (int rank = 0; rank < mock->config.n; rank++)
		mock_hand_over(&mock->ports[rank]);
	return deliver_all(mock, true);
}

bool mock_is_quiet(const struct mock *mock)
{
	for (int i = 0; i < mock->config.n * mock->config.n; i++)
		if (mock->channels[i].written != mock->channels[i].released)
			return false;
	return true;
}
