/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of calls whose streams are wrapped queues: ranks make calls on three communicators in one
 * order, each on streams of its own choice. The queues run them as their servers draw it, beside work of
 * the program; calls of a communicator keep their order all the same, and nothing waits for ever.
 * TEST_SEED (1) tries others, TEST_ROUNDS makes more of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support/queue.h"
#include "support/sanitizer.h"
#include "support/world.h"

#define RANKS   4
#define COMMS   3
#define STREAMS 3 /* two of queues and one of its own */
#define CALLS   16
#define MOST    2000
#define ROUNDS  (SANITIZED ? 40 : 200)

static unsigned roll(uint64_t *dice, unsigned sides)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*dice >> 33) % sides;
}

struct game {
	uint64_t seed;
	int rounds;
	bool is_held;
	struct server *shared; /* of all queues of all ranks; NULL: each has one of its own */
};

enum { ALL_REDUCE, BROADCAST, SEND_RECV, GROUP, PLAN, KINDS };

struct call {
	int kind, comm, root;
	size_t count;
	int in[MOST], out[MOST], in2[2], out2[2];
	tutti_persistent_t plan;
	int told; /* by the function behind it, if there is one */
};

struct rank {
	int rank, n;
	uint64_t what, how; /* dice: alike on all ranks, its own */
	tutti_comm_t comms[COMMS];
	struct server *servers[2];
	struct queue *queues[2];
	tutti_stream_t streams[STREAMS];
	tutti_event_t event;
	struct call calls[CALLS];
};

static void nap(void *arg)
{
	(void)arg;
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

static void note(tutti_status status, void *arg)
{
	CHECK(status == TUTTI_OK);
	++*(int *)arg;
}

/* -- One call ------------------------------------------------------------------------- */

static tutti_status group(struct rank *me, struct call *call, tutti_comm_t comm,
			  tutti_stream_t stream)
{
	tutti_comm_t other = me->comms[(call->comm + 1) % COMMS];

	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_send(call->in, call->count, TUTTI_INT32, (me->rank + 1) % me->n, comm,
			    stream));
	CHECK_OK(tutti_recv(call->out, call->count, TUTTI_INT32, (me->rank + me->n - 1) % me->n,
			    comm, stream));
	CHECK_OK(tutti_all_reduce(call->in2, call->out2, 2, TUTTI_INT32, TUTTI_SUM, other, stream));
	return tutti_group_end();
}

static tutti_status plan(struct call *call, tutti_comm_t comm, tutti_stream_t stream)
{
	tutti_call what = TUTTI_CALL_INIT;

	what.coll = TUTTI_ALL_REDUCE;
	what.send = call->in;
	what.recv = call->out;
	what.count = call->count;
	what.type = TUTTI_INT32;
	what.op = TUTTI_SUM;
	CHECK_OK(tutti_persistent_create(&what, comm, &call->plan));
	return tutti_persistent_start(call->plan, stream);
}

static tutti_status make_call(struct rank *me, struct call *call, tutti_stream_t stream)
{
	tutti_comm_t comm = me->comms[call->comm];

	switch (call->kind) {
	case ALL_REDUCE:
		return tutti_all_reduce(call->in, call->out, call->count, TUTTI_INT32, TUTTI_SUM,
					comm, stream);
	case BROADCAST:
		return tutti_broadcast(call->in, call->out, call->count, TUTTI_INT32, call->root,
				       comm, stream);
	case SEND_RECV:
		return tutti_send_recv(call->in, call->count, (me->rank + 1) % me->n, call->out,
				       call->count, (me->rank + me->n - 1) % me->n, TUTTI_INT32,
				       comm, stream);
	case GROUP:
		return group(me, call, comm, stream);
	default:
		return plan(call, comm, stream);
	}
}

/* The same on all ranks. Making a plan waits for the calls before, of its communicator alone. */
static void draw(struct rank *me, struct call *call, int number)
{
	call->kind = (int)roll(&me->what, KINDS);
	call->comm = (int)roll(&me->what, COMMS);
	call->root = (int)roll(&me->what, (unsigned)me->n);
	call->count = 1 + roll(&me->what, roll(&me->what, 4) == 0 ? MOST : 20);
	call->told = 1;
	call->plan = NULL;
	for (size_t i = 0; i < call->count; i++) {
		call->in[i] = (me->rank + 1) * (int)(i % 7 + 1) + number;
		call->out[i] = -1;
	}
	call->in2[0] = call->in2[1] = me->rank + number;
}

static void check(const struct rank *me, const struct call *call, int number)
{
	const int n = me->n;
	const int from = call->kind == BROADCAST ? call->root : (me->rank + n - 1) % n;
	size_t wrong = 0;

	for (size_t i = 0; i < call->count; i++) {
		const int factor = (int)(i % 7 + 1);
		const int want = call->kind == ALL_REDUCE || call->kind == PLAN
					 ? n * (n + 1) / 2 * factor + n * number
					 : (from + 1) * factor + number;

		wrong += call->out[i] != want;
	}
	CHECK(wrong == 0 && call->told == 1);
	if (call->kind == GROUP)
		CHECK(call->out2[0] == n * (n - 1) / 2 + n * number &&
		      call->out2[1] == call->out2[0]);
}

/* -- A schedule -------------------------------------------------------------------------- */

/* What is no call of all ranks: each rank does something else. */
static void disturb(struct rank *me, int stream)
{
	const unsigned what = roll(&me->how, 8);

	if (what == 0 && stream < 2)
		queue_add(me->queues[stream], nap, NULL);
	if (what == 1)
		CHECK_OK(tutti_event_record(me->event, me->streams[stream]));
	/* The event was recorded earlier than what is queued behind it. */
	if (what == 2)
		CHECK_OK(tutti_stream_wait_event(me->streams[stream], me->event));
	if (what == 3)
		CHECK_OK(tutti_stream_synchronize(me->streams[roll(&me->how, STREAMS)]));
}

static void play(struct rank *me)
{
	for (int i = 0; i < CALLS; i++) {
		struct call *call = &me->calls[i];
		const int stream = (int)roll(&me->how, STREAMS + 1);
		const tutti_stream_t on = stream < STREAMS ? me->streams[stream] : NULL;

		draw(me, call, i);
		CHECK_OK(make_call(me, call, on));
		if (!on)
			continue;
		if (roll(&me->how, 3) == 0) {
			call->told = 0;
			CHECK_OK(tutti_stream_call(on, note, &call->told));
		}
		disturb(me, stream);
	}
	for (int i = 0; i < CALLS; i++)
		CHECK_OK(tutti_persistent_destroy(me->calls[i].plan));
	for (int i = 0; i < STREAMS; i++)
		CHECK_OK(tutti_stream_synchronize(me->streams[i]));
	for (int i = 0; i < CALLS; i++)
		check(me, &me->calls[i], i);
}

static void begin(struct rank *me, const struct game *game)
{
	for (int i = 0; i < 2; i++) {
		if (!game->shared)
			me->servers[i] = server_create(me->how + (unsigned)i);
		me->queues[i] = queue_create(game->shared ? game->shared : me->servers[i]);
		CHECK_OK(tutti_stream_wrap(&me->streams[i], queue_ops(game->is_held),
					   me->queues[i]));
	}
	CHECK_OK(tutti_stream_create(&me->streams[2]));
	CHECK_OK(tutti_event_create(&me->event));
	for (int i = 1; i < COMMS; i++)
		CHECK_OK(tutti_comm_dup(me->comms[0], &me->comms[i], NULL));
}

static void end(struct rank *me)
{
	for (int i = 1; i < COMMS; i++)
		CHECK_OK(tutti_comm_destroy(me->comms[i]));
	CHECK_OK(tutti_event_destroy(me->event));
	for (int i = 0; i < STREAMS; i++)
		CHECK_OK(tutti_stream_destroy(me->streams[i]));
	for (int i = 0; i < 2; i++) {
		queue_free(me->queues[i]);
		if (me->servers[i])
			server_free(me->servers[i]);
	}
}

static void one_rank(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct game *game = arg;
	struct rank *me = calloc(1, sizeof(*me));

	if (!CHECK(me != NULL))
		return;
	me->rank = rank;
	me->n = n;
	me->what = game->seed;
	me->how = game->seed * 977 + (unsigned)rank + 1;
	me->comms[0] = comm;
	begin(me, game);
	for (int i = 0; i < game->rounds && world_failures() == 0; i++)
		play(me);
	end(me);
	free(me);
}

static void any_schedule(bool is_held, bool is_shared)
{
	/* A deadlock is an error of the call. */
	const struct world world = { .n = RANKS, .timeout_ms = 60000 };
	const char *seed = getenv("TEST_SEED"), *rounds = getenv("TEST_ROUNDS");
	struct game game = { .seed = seed ? strtoull(seed, NULL, 10) : 1,
			     .rounds = rounds ? atoi(rounds) : ROUNDS,
			     .is_held = is_held };

	if (is_shared)
		game.shared = server_create(game.seed);
	if (world_run(&world, one_rank, &game) > 0)
		fail_msg("TEST_SEED=%llu", (unsigned long long)game.seed);
	if (is_shared)
		server_free(game.shared);
}

static void queues_wait_in_their_functions(void **state)
{
	(void)state;
	any_schedule(false, false);
}

static void queues_are_held(void **state)
{
	(void)state;
	any_schedule(true, false);
}

/* As a GPU may have it. */
static void queues_are_held_and_share_a_thread(void **state)
{
	(void)state;
	any_schedule(true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_wait_in_their_functions),
		cmocka_unit_test(queues_are_held),
		cmocka_unit_test(queues_are_held_and_share_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
