/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the engine rely on: the mock transport delivers what it was given, in order
 * and when it is told to, and the tracing decorator finds each breach of the contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/lossy.h"
#include "support/mock.h"
#include "support/reference.h"
#include "support/trace.h"

#define SLOT 64

/* Two ranks, a link from the first to the second. */
struct pair {
	struct mock *mock;
	struct tti_port *port[2];
	struct trace *trace[2];
	struct tti_link *out, *in;
};

static struct tti_link *link_to(struct tti_port *port, int peer)
{
	struct tti_link *link = NULL;

	while (port->transport->connect(port, peer, &link) == TUTTI_AGAIN)
		;
	assert_non_null(link);
	return link;
}

static void set_up(struct pair *pair, enum mock_pace pace, bool has_progress)
{
	const struct mock_config config = {
		.n = 3,
		.slot_bytes = SLOT,
		.slots = 2,
		.pace = pace,
		.seed = 3,
		.fans = true,
		.sends = true,
		.has_progress = has_progress,
	};

	*pair = (struct pair){ .mock = mock_create(&config) };
	for (int rank = 0; rank < 2; rank++) {
		pair->port[rank] = mock_port(pair->mock, rank);
		pair->trace[rank] = trace_create(pair->port[rank]);
	}
	pair->out = link_to(pair->port[0], 1);
	pair->in = link_to(pair->port[1], 0);
}

static void tear_down(struct pair *pair)
{
	for (int rank = 0; rank < 2; rank++)
		trace_free(pair->trace[rank]);
	mock_free(pair->mock);
}

static bool send_one(struct tti_link *link, uint64_t number)
{
	const size_t nbytes = sizeof(number) + number % 40;
	void *room = link->ops->reserve(link, nbytes, 0);

	if (!room)
		return false;
	memcpy(room, &number, sizeof(number));
	link->ops->commit(link, nbytes, number);
	return true;
}

static bool receive_one(struct tti_link *link, uint64_t number)
{
	uint64_t tag, got;
	size_t nbytes;
	const void *data = link->ops->peek(link, &nbytes, &tag);

	if (!data)
		return false;
	memcpy(&got, data, sizeof(got));
	assert_int_equal(got, number);
	assert_int_equal(tag, number);
	assert_int_equal(nbytes, sizeof(number) + number % 40);
	link->ops->release(link);
	return true;
}

static void messages_come_in_order_at_every_pace(void **state)
{
	struct pair pair;

	(void)state;
	for (int pace = 0; pace < MOCK_PACES; pace++)
		for (int progress = 0; progress < 2; progress++) {
			uint64_t sent = 0, received = 0;

			set_up(&pair, (enum mock_pace)pace, progress);
			while (received < 200) {
				if (sent < 200)
					sent += send_one(pair.out, sent);
				if (progress)
					pair.port[0]->transport->progress(pair.port[0]);
				received += receive_one(pair.in, received);
				mock_tick(pair.mock);
				assert_true(sent - received <= 2);
			}
			assert_true(mock_is_quiet(pair.mock));
			assert_int_equal(mock_sent(pair.mock, 0, 1), 200);
			assert_int_equal(trace_received(pair.trace[1], 0), 200);
			assert_null(trace_breach(pair.trace[0]));
			assert_null(trace_breach(pair.trace[1]));
			assert_int_equal(mock_breaches(pair.mock), 0);
			tear_down(&pair);
		}
}

static void nothing_arrives_before_a_tick(void **state)
{
	struct pair pair;

	(void)state;
	set_up(&pair, MOCK_RANDOM, false);
	assert_true(send_one(pair.out, 0));
	assert_true(send_one(pair.out, 1));
	assert_false(send_one(pair.out, 2));
	assert_false(receive_one(pair.in, 0));
	assert_true(mock_flush(pair.mock));
	assert_true(receive_one(pair.in, 0));
	assert_false(send_one(pair.out, 2));
	assert_true(mock_flush(pair.mock));
	assert_true(send_one(pair.out, 2));
	tear_down(&pair);
}

static void what_is_unsent_does_not_arrive(void **state)
{
	struct pair pair;

	(void)state;
	set_up(&pair, MOCK_ONE_BY_ONE, true);
	assert_true(send_one(pair.out, 0));
	for (int i = 0; i < 20; i++)
		assert_false(mock_tick(pair.mock));
	assert_true(pair.port[0]->unsent > 0);
	while (pair.port[0]->unsent > 0)
		pair.port[0]->transport->progress(pair.port[0]);
	while (!mock_tick(pair.mock))
		;
	assert_true(receive_one(pair.in, 0));
	tear_down(&pair);
}

static void what_is_written_after_a_commit_does_not_arrive(void **state)
{
	struct pair pair;
	uint64_t tag;
	size_t nbytes;
	char *room;
	const char *data;

	(void)state;
	set_up(&pair, MOCK_AT_ONCE, false);
	room = pair.out->ops->reserve(pair.out, 4, 0);
	memcpy(room, "good", 4);
	pair.out->ops->commit(pair.out, 4, 1);
	memcpy(room, "late", 4);
	data = pair.in->ops->peek(pair.in, &nbytes, &tag);
	assert_memory_equal(data, "good", 4);
	pair.in->ops->release(pair.in);
	assert_memory_not_equal(data, "good", 4);
	assert_null(trace_breach(pair.trace[0]));
	tear_down(&pair);
}

/* -- Breaches: of each the trace of rank `found` says so --------------------------------------- */

static void write_too_far(struct pair *pair)
{
	char *room = pair->out->ops->reserve(pair->out, 4, 0);

	memcpy(room, "12345", 5);
	pair->out->ops->commit(pair->out, 4, 1);
}

static void commit_nothing(struct pair *pair)
{
	pair->out->ops->commit(pair->out, 4, 1);
}

static void commit_more(struct pair *pair)
{
	assert_non_null(pair->out->ops->reserve(pair->out, 4, 0));
	pair->out->ops->commit(pair->out, 8, 1);
}

static void reserve_too_much(struct pair *pair)
{
	assert_null(pair->out->ops->reserve(pair->out, SLOT + 1, 0));
}

static void release_nothing(struct pair *pair)
{
	assert_true(send_one(pair->out, 0));
	pair->in->ops->release(pair->in);
}

static void change_a_message(struct pair *pair)
{
	uint64_t tag;
	size_t nbytes;
	const void *data;

	assert_true(send_one(pair->out, 0));
	data = pair->in->ops->peek(pair->in, &nbytes, &tag);
	memset((void *)(uintptr_t)data, 9, nbytes);
	pair->in->ops->release(pair->in);
}

static void use_what_is_closed(struct pair *pair)
{
	const struct tti_link_ops *ops = pair->out->ops;

	pair->port[0]->transport->close(pair->out);
	pair->out->ops = ops;
	ops->reserve(pair->out, 4, 0);
}

static void fan_out_over_a_reserved_slot(struct pair *pair)
{
	struct tti_link *links[2] = { pair->out, link_to(pair->port[0], 2) };
	const struct tti_fanout_ops *fanout = pair->port[0]->transport->fanout;

	assert_non_null(pair->out->ops->reserve(pair->out, 4, 0));
	assert_non_null(fanout->reserve(pair->port[0], links, 2, 4));
	fanout->commit(pair->port[0], links, 2, 4, 1);
}

static void breaches_are_found(void **state)
{
	static const struct {
		void (*commit)(struct pair *pair);
		int found;
	} breaches[] = {
		{ commit_nothing, 0 },
		{ commit_more, 0 },
		{ reserve_too_much, 0 },
		{ release_nothing, 1 },
		{ change_a_message, 1 },
		{ use_what_is_closed, 0 },
		{ fan_out_over_a_reserved_slot, 0 },
	};
	struct pair pair;

	(void)state;
	for (size_t i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++) {
		set_up(&pair, MOCK_AT_ONCE, false);
		breaches[i].commit(&pair);
		assert_non_null(trace_breach(pair.trace[breaches[i].found]));
		assert_null(trace_breach(pair.trace[!breaches[i].found]));
		tear_down(&pair);
	}
	set_up(&pair, MOCK_AT_ONCE, false);
	write_too_far(&pair);
	assert_int_equal(mock_breaches(pair.mock), 1);
	tear_down(&pair);
}

/* -- Fan-outs, refusals -------------------------------------------------------------------------- */

static void a_shared_slot_is_free_when_all_have_read_it(void **state)
{
	struct pair pair;
	struct tti_link *links[2], *third;
	const struct tti_fanout_ops *fanout;

	(void)state;
	set_up(&pair, MOCK_AT_ONCE, false);
	links[0] = pair.out;
	links[1] = link_to(pair.port[0], 2);
	third = link_to(mock_port(pair.mock, 2), 0);
	fanout = pair.port[0]->transport->fanout;
	for (uint64_t i = 0; i < 2; i++) {
		void *room = fanout->reserve(pair.port[0], links, 2, sizeof(i) + i);

		assert_non_null(room);
		memcpy(room, &i, sizeof(i));
		fanout->commit(pair.port[0], links, 2, sizeof(i) + i, i);
	}
	assert_null(fanout->reserve(pair.port[0], links, 2, 8));
	assert_true(receive_one(pair.in, 0));
	assert_null(fanout->reserve(pair.port[0], links, 2, 8));
	assert_true(receive_one(third, 0));
	assert_non_null(fanout->reserve(pair.port[0], links, 2, 8));
	assert_true(receive_one(pair.in, 1));
	assert_true(receive_one(third, 1));
	assert_int_equal(trace_fans(pair.trace[0]), 2);
	assert_null(trace_breach(pair.trace[0]));
	tear_down(&pair);
}

static void a_lossy_port_refuses_and_loses_nothing(void **state)
{
	const struct mock_config config = { .n = 2, .slot_bytes = SLOT, .slots = 2, .fans = true };
	struct mock *mock = mock_create(&config);
	struct lossy *lossy[2];
	struct trace *trace[2];
	uint64_t sent = 0, received = 0, tries = 0;
	struct tti_link *out, *in;

	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		lossy[rank] = lossy_create(mock_port(mock, rank), 70, rank == 0, 5);
		trace[rank] = trace_create(mock_port(mock, rank));
	}
	assert_null(mock_port(mock, 0)->transport->fanout);
	assert_non_null(mock_port(mock, 1)->transport->fanout);
	out = link_to(mock_port(mock, 0), 1);
	in = link_to(mock_port(mock, 1), 0);
	for (; received < 100; tries++) {
		sent += send_one(out, sent);
		received += receive_one(in, received);
		assert_true(tries < 100 * 2 * (LOSSY_IN_A_ROW + 1));
	}
	assert_true(lossy_refused(lossy[0]) > 50 && lossy_refused(lossy[1]) > 50);
	for (int rank = 0; rank < 2; rank++) {
		assert_null(trace_breach(trace[rank]));
		trace_free(trace[rank]);
		lossy_free(lossy[rank]);
	}
	mock_free(mock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_in_order_at_every_pace),
		cmocka_unit_test(nothing_arrives_before_a_tick),
		cmocka_unit_test(what_is_unsent_does_not_arrive),
		cmocka_unit_test(what_is_written_after_a_commit_does_not_arrive),
		cmocka_unit_test(breaches_are_found),
		cmocka_unit_test(a_shared_slot_is_free_when_all_have_read_it),
		cmocka_unit_test(a_lossy_port_refuses_and_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
