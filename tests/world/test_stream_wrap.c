/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams over queues of the program: what is refused, what ends early, and each kind of work on them.
 * Each test is run for both ways of a queue: one whose functions wait, and one that is held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/queue.h"
#include "support/sanitizer.h"
#include "support/world.h"

/* A queue with a server of its own, its stream, and what keeps it back. */
struct place {
	struct server *server;
	struct queue *queue;
	tutti_stream_t stream;
	sem_t gate, at_gate;
};

static void open_place(struct place *place, bool is_held)
{
	place->server = server_create(1);
	place->queue = queue_create(place->server);
	sem_init(&place->gate, 0, 0);
	sem_init(&place->at_gate, 0, 0);
	CHECK_OK(tutti_stream_wrap(&place->stream, queue_ops(is_held), place->queue));
}

/* The status of the stream's end. */
static tutti_status close_place(struct place *place)
{
	const tutti_status st = tutti_stream_destroy(place->stream);

	queue_free(place->queue);
	server_free(place->server);
	sem_destroy(&place->gate);
	sem_destroy(&place->at_gate);
	return st;
}

static void await(sem_t *what)
{
	while (sem_wait(what) != 0)
		;
}

static void stay_at_gate(void *arg)
{
	struct place *place = arg;

	CHECK(sem_post(&place->at_gate) == 0);
	await(&place->gate);
}

static void open_gate(struct place *place)
{
	CHECK(sem_post(&place->gate) == 0);
}

/* What is queued behind it stays there until the gate is opened. */
static void keep_back(struct place *place)
{
	queue_add(place->queue, stay_at_gate, place);
	await(&place->at_gate);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static void note(tutti_status status, void *arg)
{
	*(tutti_status *)arg = status;
}

#define NOT_TOLD ((tutti_status)77)

static void in_both_ways(int n, world_fn fn)
{
	const struct world world = { .n = n, .timeout_ms = 60000 };

	for (int is_held = 0; is_held < 2; is_held++) {
		bool held = is_held;

		assert_int_equal(world_run(&world, fn, &held), 0);
	}
}

/* -- Order ------------------------------------------------------------------------ */

/* The later call has its turn first, and works on what the earlier one gives. */
static void later_first(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct place first, second;
	int a = rank, b = -1, c = -1;

	open_place(&first, *(bool *)arg);
	open_place(&second, *(bool *)arg);
	keep_back(&first);
	CHECK_OK(tutti_all_reduce(&a, &b, 1, TUTTI_INT32, TUTTI_SUM, comm, first.stream));
	CHECK_OK(tutti_all_reduce(&b, &c, 1, TUTTI_INT32, TUTTI_SUM, comm, second.stream));
	nap();
	CHECK(tutti_stream_query(first.stream) == TUTTI_AGAIN);
	CHECK(tutti_stream_query(second.stream) == TUTTI_AGAIN);
	open_gate(&first);
	CHECK_OK(tutti_stream_synchronize(second.stream));
	CHECK(b == n * (n - 1) / 2 && c == n * b);
	CHECK_OK(close_place(&first));
	CHECK_OK(close_place(&second));
}

static void a_later_call_waits_for_an_earlier_one(void **state)
{
	(void)state;
	in_both_ways(3, later_first);
}

static void each_kind(tutti_comm_t comm, int rank, int n, void *arg)
{
	int a = rank, sum = -1, got = -1, put = rank, memory[4] = { -1, -1, -1, -1 };
	tutti_status told = NOT_TOLD;
	tutti_stream_t own;
	tutti_event_t event;
	tutti_window_t window;
	struct place place;

	open_place(&place, *(bool *)arg);
	CHECK_OK(tutti_stream_create(&own));
	CHECK_OK(tutti_event_create(&event));
	if (!CHECK_OK(tutti_window_create(comm, memory, sizeof(memory), &window)))
		return;
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_send(&a, 1, TUTTI_INT32, (rank + 1) % n, comm, place.stream));
	CHECK_OK(tutti_recv(&got, 1, TUTTI_INT32, (rank + n - 1) % n, comm, place.stream));
	CHECK_OK(tutti_group_end());
	/* There and back again. */
	CHECK_OK(tutti_event_record(event, place.stream));
	CHECK_OK(tutti_stream_wait_event(own, event));
	CHECK_OK(tutti_all_reduce(&got, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, own));
	CHECK_OK(tutti_event_record(event, own));
	CHECK_OK(tutti_stream_wait_event(place.stream, event));
	CHECK_OK(tutti_put(window, (rank + 1) % n, sizeof(int), &sum, sizeof(sum), place.stream));
	CHECK_OK(tutti_put(window, (rank + 1) % n, 0, &put, sizeof(put), place.stream));
	CHECK_OK(tutti_signal(window, (rank + 1) % n, place.stream));
	CHECK_OK(tutti_wait_signal(window, (rank + n - 1) % n, 1, place.stream));
	CHECK_OK(tutti_stream_call(place.stream, note, &told));
	CHECK_OK(tutti_event_record(event, place.stream));
	CHECK_OK(tutti_event_synchronize(event));
	CHECK(told == TUTTI_OK && got == (rank + n - 1) % n && sum == n * (n - 1) / 2);
	CHECK(memory[0] == (rank + n - 1) % n && memory[1] == sum);
	CHECK_OK(tutti_event_query(event));
	CHECK_OK(tutti_window_destroy(window));
	CHECK_OK(tutti_event_destroy(event));
	CHECK_OK(tutti_stream_destroy(own));
	CHECK_OK(close_place(&place));
}

static void each_kind_of_work(void **state)
{
	(void)state;
	in_both_ways(3, each_kind);
}

/* Who waits elsewhere can say so; it changes nothing but how threads wait. */
static void waits_elsewhere(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct place place;
	int sum = -1;

	open_place(&place, *(bool *)arg);
	for (int i = 0; i < 50; i++) {
		CHECK_OK(tutti_all_reduce(&rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm,
					  place.stream));
		CHECK_OK(tutti_stream_add_waiters(place.stream, 1));
		queue_wait(place.queue);
		CHECK_OK(tutti_stream_add_waiters(place.stream, -1));
		CHECK(sum == n * (n - 1) / 2);
		sum = -1;
	}
	CHECK_OK(close_place(&place));
}

static void the_queue_may_be_waited_for(void **state)
{
	(void)state;
	in_both_ways(3, waits_elsewhere);
}

/* -- What a queue refuses ------------------------------------------------------------ */

#define REFUSED(call) \
	CHECK((call) == TUTTI_ESYS && strstr(tutti_last_error(NULL), "push() returned 7"))

struct things {
	tutti_comm_t comm, other;
	struct place full, good;
	tutti_event_t pending, event;
	tutti_persistent_t plan;
	tutti_window_t window;
	int a, b, c, memory;
	tutti_status told;
};

static void refuse_all(struct things *t)
{
	queue_refuse(t->full.queue, 7);
	REFUSED(tutti_all_reduce(&t->a, &t->c, 1, TUTTI_INT32, TUTTI_SUM, t->comm, t->full.stream));
	REFUSED(tutti_stream_call(t->full.stream, note, &t->told));
	REFUSED(tutti_event_record(t->event, t->full.stream));
	REFUSED(tutti_stream_wait_event(t->full.stream, t->pending));
	REFUSED(tutti_persistent_start(t->plan, t->full.stream));
	CHECK_OK(tutti_persistent_wait(t->plan));
	REFUSED(tutti_put(t->window, 0, 0, &t->a, sizeof(t->a), t->full.stream));
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_barrier(t->comm, t->full.stream));
	CHECK_OK(tutti_barrier(t->other, t->full.stream));
	CHECK_OK(tutti_barrier(t->comm, t->full.stream));
	REFUSED(tutti_group_end());
	CHECK_OK(tutti_event_query(t->event));
	queue_refuse(t->full.queue, 0);
}

static void refuse_in_function(tutti_status status, void *arg)
{
	CHECK(status == TUTTI_OK);
	refuse_all(arg);
}

/* A call is queued before those that are refused, and has not come to its turn: nothing waits for
 * it. Afterwards all goes on. */
static void refuse_and_go_on(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct things t = { .comm = comm, .a = rank, .b = -1, .c = -1, .told = NOT_TOLD };
	const bool is_held = *(bool *)arg;
	tutti_call call = TUTTI_CALL_INIT;

	open_place(&t.full, is_held);
	open_place(&t.good, is_held);
	call.coll = TUTTI_BARRIER;
	if (!CHECK_OK(tutti_comm_dup(comm, &t.other, NULL)) ||
	    !CHECK_OK(tutti_persistent_create(&call, comm, &t.plan)) ||
	    !CHECK_OK(tutti_window_create(comm, &t.memory, sizeof(t.memory), &t.window)))
		return;
	CHECK_OK(tutti_event_create(&t.event));
	CHECK_OK(tutti_event_create(&t.pending));
	keep_back(&t.good);
	CHECK_OK(tutti_all_reduce(&t.a, &t.b, 1, TUTTI_INT32, TUTTI_SUM, comm, t.good.stream));
	CHECK_OK(tutti_event_record(t.pending, t.good.stream));
	refuse_all(&t);
	CHECK_OK(tutti_stream_query(t.full.stream));
	CHECK_OK(tutti_stream_call(t.full.stream, refuse_in_function, &t));
	CHECK_OK(tutti_stream_synchronize(t.full.stream));
	CHECK(t.b == -1);
	CHECK_OK(tutti_all_reduce(&t.a, &t.c, 1, TUTTI_INT32, TUTTI_MAX, comm, t.full.stream));
	CHECK_OK(tutti_persistent_start(t.plan, t.full.stream));
	open_gate(&t.good);
	CHECK_OK(tutti_persistent_wait(t.plan));
	CHECK(t.b == n * (n - 1) / 2 && t.c == n - 1 && t.told == NOT_TOLD);
	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK_OK(tutti_persistent_destroy(t.plan));
	CHECK_OK(tutti_window_destroy(t.window));
	CHECK_OK(tutti_event_destroy(t.event));
	CHECK_OK(tutti_event_destroy(t.pending));
	CHECK_OK(tutti_comm_destroy(t.other));
	CHECK_OK(close_place(&t.full));
	CHECK_OK(close_place(&t.good));
}

static void what_is_refused_changes_nothing(void **state)
{
	(void)state;
	tutti_log_errors(0);
	in_both_ways(2, refuse_and_go_on);
	tutti_log_errors(1);
}

struct freer {
	tutti_comm_t comm;
	void *memory;
	_Atomic bool is_back;
};

static void *free_memory(void *arg)
{
	struct freer *freer = arg;

	CHECK_OK(tutti_mem_free(freer->memory, freer->comm));
	atomic_store(&freer->is_back, true);
	return NULL;
}

/* Another thread waits for the calls that were made, while one more is refused again and again. */
static void refuse_beside_a_wait(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct place full, good;
	int sum = -1;

	open_place(&full, *(bool *)arg);
	open_place(&good, *(bool *)arg);
	queue_refuse(full.queue, 7);
	for (int i = 0; i < 20; i++) {
		struct freer freer = { .comm = comm };
		pthread_t thread;

		if (!CHECK_OK(tutti_mem_alloc(&freer.memory, 64, comm)))
			return;
		keep_back(&good);
		CHECK_OK(tutti_all_reduce(&rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm,
					  good.stream));
		if (!CHECK(pthread_create(&thread, NULL, free_memory, &freer) == 0))
			exit(1);
		for (int k = 0; k < 200; k++)
			REFUSED(tutti_barrier(comm, full.stream));
		open_gate(&good);
		while (!atomic_load(&freer.is_back))
			REFUSED(tutti_barrier(comm, full.stream));
		pthread_join(thread, NULL);
		CHECK(sum == n * (n - 1) / 2);
		CHECK_OK(tutti_barrier(comm, NULL));
	}
	CHECK_OK(close_place(&full));
	CHECK_OK(close_place(&good));
}

static void nobody_waits_for_what_is_refused(void **state)
{
	(void)state;
	tutti_log_errors(0);
	in_both_ways(2, refuse_beside_a_wait);
	tutti_log_errors(1);
}

/* -- The end ---------------------------------------------------------------------------- */

/* Rank 1 leaves; rank 0 has calls under way and queued. */
static void leave(bool is_held, bool is_own_abort)
{
	tutti_status told[3] = { NOT_TOLD, NOT_TOLD, NOT_TOLD };
	const tutti_status want = is_own_abort ? TUTTI_EABORTED : TUTTI_EPEER;
	struct place places[2];
	tutti_comm_t comms[2];
	int value = 0;

	assert_int_equal(tutti_comm_init_all(comms, 2, NULL), TUTTI_OK);
	open_place(&places[0], is_held);
	open_place(&places[1], is_held);
	for (int i = 0; i < 3; i++) {
		const tutti_stream_t stream = places[i % 2].stream;

		CHECK_OK(tutti_recv(&value, 1, TUTTI_INT32, 1, comms[0], stream));
		CHECK_OK(tutti_stream_call(stream, note, &told[i]));
	}
	nap();
	CHECK_OK(tutti_comm_abort(comms[is_own_abort ? 0 : 1]));
	for (int i = 0; i < 2; i++) {
		CHECK(tutti_stream_synchronize(places[i].stream) == want);
		CHECK(close_place(&places[i]) == want);
	}
	for (int i = 0; i < 3; i++)
		CHECK(told[i] == want);
	tutti_comm_destroy(comms[is_own_abort ? 1 : 0]);
	assert_int_equal(world_failures(), 0);
}

static void an_abort_ends_what_is_queued(void **state)
{
	(void)state;
	leave(false, true);
	leave(true, true);
}

static void a_rank_that_leaves_ends_what_is_queued(void **state)
{
	(void)state;
	leave(false, false);
	leave(true, false);
}

/* A queue that comes to nothing any more calls what it has, after tutti_comm_revoke(). */
static void a_queue_ends(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_status told = NOT_TOLD;
	struct place place;
	int sum = -1;

	(void)n;
	open_place(&place, *(bool *)arg);
	if (rank == 0) {
		keep_back(&place);
		CHECK_OK(tutti_all_reduce(&rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm,
					  place.stream));
		CHECK_OK(tutti_stream_call(place.stream, note, &told));
		CHECK_OK(tutti_comm_revoke(comm));
		open_gate(&place);
		CHECK(tutti_stream_synchronize(place.stream) == TUTTI_EREVOKED);
		CHECK(told == TUTTI_EREVOKED);
		CHECK(close_place(&place) == TUTTI_EREVOKED);
	} else {
		CHECK(tutti_all_reduce(&rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL) ==
		      TUTTI_EREVOKED);
		CHECK_OK(close_place(&place));
	}
}

static void a_queue_may_end_early(void **state)
{
	(void)state;
	in_both_ways(3, a_queue_ends);
}

static void *open_later(void *place)
{
	nap();
	open_gate(place);
	return NULL;
}

static void queue_more(tutti_status status, void *arg)
{
	struct things *t = arg;

	CHECK(status == TUTTI_OK);
	if (t->a++ < 20)
		CHECK_OK(tutti_stream_call(t->full.stream, queue_more, t));
}

static void count(void *counter)
{
	++*(int *)counter;
}

/* It waits for what was queued, and for what that queues; the queue goes on. */
static void destroy_waits(bool is_held)
{
	struct things t = { .a = 0 };
	int counter = 0;
	pthread_t thread;

	open_place(&t.full, is_held);
	keep_back(&t.full);
	CHECK_OK(tutti_stream_call(t.full.stream, queue_more, &t));
	CHECK(pthread_create(&thread, NULL, open_later, &t.full) == 0);
	CHECK_OK(tutti_stream_destroy(t.full.stream));
	CHECK(t.a == 21);
	pthread_join(thread, NULL);
	CHECK(tutti_stream_call(t.full.stream, queue_more, &t) == TUTTI_EUSAGE);
	CHECK(tutti_stream_destroy(t.full.stream) == TUTTI_EUSAGE);
	queue_add(t.full.queue, count, &counter);
	queue_wait(t.full.queue);
	CHECK(counter == 1);
	/* Another stream may be made of it. */
	CHECK_OK(tutti_stream_wrap(&t.full.stream, queue_ops(is_held), t.full.queue));
	CHECK_OK(tutti_stream_call(t.full.stream, queue_more, &t));
	CHECK_OK(close_place(&t.full));
	assert_int_equal(t.a, 22);
	assert_int_equal(world_failures(), 0);
}

static void destroy_leaves_the_queue_alone(void **state)
{
	(void)state;
	destroy_waits(false);
	destroy_waits(true);
}

/* What is not to be waited for in a function that the stream calls. */
static void wait_for_itself(tutti_status status, void *arg)
{
	struct things *t = arg;

	CHECK(status == TUTTI_OK);
	await(&t->full.gate);
	CHECK(tutti_stream_synchronize(t->full.stream) == TUTTI_EUSAGE);
	CHECK(tutti_stream_destroy(t->full.stream) == TUTTI_EUSAGE);
	CHECK(tutti_event_synchronize(t->event) == TUTTI_EUSAGE);
	CHECK(tutti_barrier(t->comm, NULL) == TUTTI_EUSAGE);
	CHECK_OK(tutti_stream_synchronize(t->good.stream));
}

static void try_to_wait(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct things t = { .comm = comm };

	(void)rank;
	(void)n;
	open_place(&t.full, *(bool *)arg);
	open_place(&t.good, *(bool *)arg);
	CHECK_OK(tutti_event_create(&t.event));
	CHECK_OK(tutti_stream_call(t.full.stream, wait_for_itself, &t));
	CHECK_OK(tutti_barrier(comm, t.full.stream));
	CHECK_OK(tutti_event_record(t.event, t.full.stream));
	open_gate(&t.full);
	CHECK_OK(tutti_event_synchronize(t.event));
	CHECK_OK(tutti_event_destroy(t.event));
	CHECK_OK(close_place(&t.full));
	CHECK_OK(close_place(&t.good));
}

static void functions_cannot_wait_for_themselves(void **state)
{
	(void)state;
	in_both_ways(2, try_to_wait);
}

/* -- Children and mistakes ------------------------------------------------------------------ */

/* A child that finds the queue in its memory, and goes on with it, runs nothing of its parent's. */
static void child_runs_nothing(bool is_held)
{
	tutti_status told = NOT_TOLD;
	struct place place;
	int status;
	pid_t child;

	open_place(&place, is_held);
	keep_back(&place);
	assert_int_equal(tutti_stream_call(place.stream, note, &told), TUTTI_OK);
	child = fork();
	if (child == 0) {
		while (queue_run_in_child(place.queue))
			;
		_exit(told != NOT_TOLD || tutti_stream_query(place.stream) != TUTTI_EUSAGE);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	open_gate(&place);
	assert_int_equal(close_place(&place), TUTTI_OK);
	assert_int_equal(told, TUTTI_OK);
}

static void children_run_nothing(void **state)
{
	(void)state;
	if (TTI_SANITIZED)
		skip(); /* ThreadSanitizer wants no threads where a process forks */
	child_runs_nothing(false);
	child_runs_nothing(true);
}

static void misuse(void **state)
{
	tutti_stream_ops ops = TUTTI_STREAM_OPS_INIT;
	tutti_stream_t stream;

	(void)state;
	assert_int_equal(tutti_stream_wrap(NULL, queue_ops(false), NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_stream_wrap(&stream, NULL, NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_stream_wrap(&stream, &ops, NULL), TUTTI_EINVAL);
	assert_non_null(strstr(tutti_last_error(NULL), "tutti_stream_create()"));
	ops = *queue_ops(false);
	ops.size = 8;
	assert_int_equal(tutti_stream_wrap(&stream, &ops, NULL), TUTTI_EINVAL);
	assert_non_null(strstr(tutti_last_error(NULL), "TUTTI_STREAM_OPS_INIT"));
	assert_int_equal(tutti_stream_add_waiters(NULL, 1), TUTTI_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_call_waits_for_an_earlier_one),
		cmocka_unit_test(each_kind_of_work),
		cmocka_unit_test(the_queue_may_be_waited_for),
		cmocka_unit_test(what_is_refused_changes_nothing),
		cmocka_unit_test(nobody_waits_for_what_is_refused),
		cmocka_unit_test(an_abort_ends_what_is_queued),
		cmocka_unit_test(a_rank_that_leaves_ends_what_is_queued),
		cmocka_unit_test(a_queue_may_end_early),
		cmocka_unit_test(destroy_leaves_the_queue_alone),
		cmocka_unit_test(functions_cannot_wait_for_themselves),
		cmocka_unit_test(children_run_nothing),
		cmocka_unit_test(misuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
