/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that a stream calls at their turn: order, the status of each call, what they may do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "support/world.h"

#define MANY 100000

/* What a function was told. */
struct told {
	int *counter; /* functions before this one */
	int when;
	tutti_status status;
	char text[200];
};

static void note(tutti_status status, void *arg)
{
	struct told *told = arg;

	told->status = status;
	told->when = (*told->counter)++;
	(void)snprintf(told->text, sizeof(told->text), "%s", tutti_last_error(NULL));
}

/* A stream that waits until it is let go: what is queued meanwhile is queued together. */
static void hold(tutti_status status, void *gate)
{
	CHECK(status == TUTTI_OK);
	CHECK(sem_wait(gate) == 0);
}

static void count(tutti_status status, void *counter)
{
	CHECK(status == TUTTI_OK);
	++*(int *)counter;
}

/* -- The status of each ------------------------------------------------------------- */

#define CALLS 20

static void follow_each(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct told told[CALLS];
	int in = rank, out[CALLS], counter = 0;
	tutti_stream_t stream;

	(void)arg;
	if (!CHECK_OK(tutti_stream_create(&stream)))
		return;
	for (int i = 0; i < CALLS; i++) {
		told[i].counter = &counter;
		CHECK_OK(tutti_all_reduce(&in, &out[i], 1, TUTTI_INT32, TUTTI_SUM, comm, stream));
		CHECK_OK(tutti_stream_call(stream, note, &told[i]));
	}
	CHECK_OK(tutti_stream_synchronize(stream));
	CHECK(counter == CALLS);
	for (int i = 0; i < CALLS; i++)
		CHECK(told[i].when == i && told[i].status == TUTTI_OK && !*told[i].text &&
		      out[i] == n * (n - 1) / 2);
	CHECK_OK(tutti_stream_destroy(stream));
}

static void each_call_is_followed(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (int t = 0; t < 2; t++) {
		const struct world world = { .n = 3, .transport = transports[t] };

		assert_int_equal(world_run(&world, follow_each, NULL), 0);
	}
}

/* Of three calls the second is another one on each rank, the third is of another communicator; the
 * fourth finds the first communicator lost. */
static void fail_in_the_middle(tutti_comm_t comm, int rank, int n, void *arg)
{
	int in = 1, out = 0, counter = 0;
	struct told told[6];
	tutti_stream_t stream;
	tutti_comm_t other;
	sem_t gate;

	(void)arg;
	sem_init(&gate, 0, 0);
	if (!CHECK_OK(tutti_comm_dup(comm, &other, NULL)) ||
	    !CHECK_OK(tutti_stream_create(&stream)))
		return;
	for (int i = 0; i < 6; i++)
		told[i].counter = &counter;
	CHECK_OK(tutti_stream_call(stream, hold, &gate));
	CHECK_OK(tutti_barrier(comm, stream));
	CHECK_OK(tutti_stream_call(stream, note, &told[0]));
	CHECK_OK(tutti_all_reduce(&in, &out, 1, rank == 0 ? TUTTI_INT32 : TUTTI_FLOAT32, TUTTI_SUM,
				  comm, stream));
	CHECK_OK(tutti_stream_call(stream, note, &told[1]));
	CHECK_OK(tutti_stream_call(stream, note, &told[2]));
	CHECK_OK(tutti_all_reduce(&in, &out, 1, TUTTI_INT32, TUTTI_SUM, other, stream));
	CHECK_OK(tutti_stream_call(stream, note, &told[3]));
	/* Two calls: the first that failed is told. */
	CHECK_OK(tutti_barrier(comm, stream));
	CHECK_OK(tutti_barrier(other, stream));
	CHECK_OK(tutti_stream_call(stream, note, &told[4]));
	CHECK_OK(tutti_barrier(other, stream));
	CHECK_OK(tutti_stream_call(stream, note, &told[5]));
	CHECK(sem_post(&gate) == 0);
	CHECK(tutti_stream_synchronize(stream) == TUTTI_EMISMATCH);
	CHECK(strstr(tutti_last_error(NULL), "all_reduce"));
	for (int i = 0; i < 6; i++) {
		const bool failed = i == 1 || i == 4;

		CHECK(told[i].when == i);
		CHECK(told[i].status == (failed ? TUTTI_EMISMATCH : TUTTI_OK));
		CHECK(failed ? strstr(told[i].text, "all_reduce") != NULL : !*told[i].text);
	}
	CHECK(out == n);
	CHECK(tutti_stream_destroy(stream) == TUTTI_EMISMATCH);
	CHECK_OK(tutti_comm_destroy(other));
	sem_destroy(&gate);
}

static void a_failure_is_told_once(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, fail_in_the_middle, NULL), 0);
}

static void functions_run_after_an_abort(void **state)
{
	struct told told[3];
	tutti_comm_t comms[2];
	tutti_stream_t stream;
	int value = 0, counter = 0;

	(void)state;
	assert_int_equal(tutti_comm_init_all(comms, 2, NULL), TUTTI_OK);
	assert_int_equal(tutti_stream_create(&stream), TUTTI_OK);
	/* Rank 1 never sends. */
	for (int i = 0; i < 3; i++) {
		told[i].counter = &counter;
		assert_int_equal(tutti_recv(&value, 1, TUTTI_INT32, 1, comms[0], stream), TUTTI_OK);
		assert_int_equal(tutti_stream_call(stream, note, &told[i]), TUTTI_OK);
	}
	assert_int_equal(tutti_stream_query(stream), TUTTI_AGAIN);
	assert_int_equal(tutti_comm_abort(comms[0]), TUTTI_OK);
	assert_int_equal(tutti_stream_synchronize(stream), TUTTI_EABORTED);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(told[i].when, i);
		assert_int_equal(told[i].status, TUTTI_EABORTED);
		assert_non_null(strstr(told[i].text, "aborted"));
	}
	assert_int_equal(tutti_stream_destroy(stream), TUTTI_EABORTED);
	tutti_comm_destroy(comms[1]);
	assert_int_equal(world_failures(), 0);
}

/* -- None is lost ------------------------------------------------------------------- */

static void *open_gate(void *gate)
{
	CHECK(sem_post(gate) == 0);
	return NULL;
}

struct chain {
	tutti_stream_t stream;
	int left, done;
};

static void queue_again(tutti_status status, void *arg)
{
	struct chain *chain = arg;

	CHECK(status == TUTTI_OK);
	chain->done++;
	if (chain->left-- > 0)
		CHECK_OK(tutti_stream_call(chain->stream, queue_again, chain));
}

/* Those that are queued, and those that these queue meanwhile. */
static void destroy_runs_them(void **state)
{
	struct chain chain = { .left = 50 };
	tutti_stream_t stream;
	pthread_t thread;
	int counter = 0;
	sem_t gate;

	(void)state;
	sem_init(&gate, 0, 0);
	assert_int_equal(tutti_stream_create(&stream), TUTTI_OK);
	chain.stream = stream;
	assert_int_equal(tutti_stream_call(stream, hold, &gate), TUTTI_OK);
	assert_int_equal(tutti_stream_call(stream, queue_again, &chain), TUTTI_OK);
	for (int i = 0; i < 100; i++)
		assert_int_equal(tutti_stream_call(stream, count, &counter), TUTTI_OK);
	assert_int_equal(pthread_create(&thread, NULL, open_gate, &gate), 0);
	assert_int_equal(tutti_stream_destroy(stream), TUTTI_OK);
	pthread_join(thread, NULL);
	assert_int_equal(counter, 100);
	assert_int_equal(chain.done, 51);
	assert_int_equal(tutti_stream_call(stream, count, &counter), TUTTI_EUSAGE);
	assert_int_equal(tutti_stream_destroy(stream), TUTTI_EUSAGE);
	assert_int_equal(counter, 100);
	sem_destroy(&gate);
	assert_int_equal(world_failures(), 0);
}

static void many(void **state)
{
	tutti_stream_t stream;
	int counter = 0;

	(void)state;
	assert_int_equal(tutti_stream_create(&stream), TUTTI_OK);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(tutti_stream_call(stream, count, &counter), TUTTI_OK);
	assert_int_equal(tutti_stream_synchronize(stream), TUTTI_OK);
	assert_int_equal(counter, MANY);
	assert_int_equal(tutti_stream_destroy(stream), TUTTI_OK);
}

/* Threads that queue on the same streams: of each its functions run in its order. */
#define THREADS 4
#define STREAMS 3
#define EACH    3000

struct mark {
	struct sender *from;
	int stream, number;
};

struct sender {
	const tutti_stream_t *streams;
	pthread_t thread;
	struct mark marks[EACH];
	int next[STREAMS]; /* only its stream's thread looks at one */
};

static void check_order(tutti_status status, void *arg)
{
	const struct mark *mark = arg;

	CHECK(status == TUTTI_OK && mark->from->next[mark->stream]++ == mark->number);
}

static void *send_many(void *self)
{
	struct sender *sender = self;

	for (int i = 0; i < EACH; i++) {
		sender->marks[i] = (struct mark){ sender, i % STREAMS, i / STREAMS };
		CHECK_OK(tutti_stream_call(sender->streams[i % STREAMS], check_order,
					   &sender->marks[i]));
		if (i % 500 == 0)
			CHECK_OK(tutti_stream_synchronize(sender->streams[i % STREAMS]));
	}
	return NULL;
}

static void from_many_threads(void **state)
{
	static struct sender senders[THREADS];
	tutti_stream_t streams[STREAMS];

	(void)state;
	for (int i = 0; i < STREAMS; i++)
		assert_int_equal(tutti_stream_create(&streams[i]), TUTTI_OK);
	for (int i = 0; i < THREADS; i++) {
		senders[i].streams = streams;
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_many, &senders[i]),
				 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(senders[i].thread, NULL);
	for (int i = 0; i < STREAMS; i++)
		assert_int_equal(tutti_stream_destroy(streams[i]), TUTTI_OK);
	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k < STREAMS; k++)
			assert_int_equal(senders[i].next[k], EACH / STREAMS);
	assert_int_equal(world_failures(), 0);
}

/* -- What a function may do ------------------------------------------------------------ */

/* Calls that are queued by the function of the one before. */
struct queuing {
	tutti_comm_t comm;
	tutti_stream_t stream, other;
	int value, left;
};

static void queue_calls(tutti_status status, void *arg)
{
	struct queuing *queuing = arg;

	CHECK(status == TUTTI_OK);
	if (queuing->left-- == 0)
		return;
	CHECK_OK(tutti_all_reduce(&queuing->value, &queuing->value, 1, TUTTI_INT32, TUTTI_MAX,
				  queuing->comm, queuing->stream));
	CHECK_OK(tutti_stream_call(queuing->stream, queue_calls, queuing));
}

/* The last call of the function before is done: this one waits for nothing but the other ranks. */
static void call_at_once(tutti_status status, void *arg)
{
	struct queuing *queuing = arg;

	CHECK(status == TUTTI_OK);
	CHECK(tutti_stream_query(queuing->stream) == TUTTI_AGAIN);
	CHECK_OK(tutti_stream_synchronize(queuing->other));
	CHECK_OK(tutti_all_reduce(&queuing->value, &queuing->value, 1, TUTTI_INT32, TUTTI_SUM,
				  queuing->comm, NULL));
}

static void queue_from_functions(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct queuing queuing = { .comm = comm, .value = rank, .left = 100 };

	(void)arg;
	if (!CHECK_OK(tutti_stream_create(&queuing.stream)) ||
	    !CHECK_OK(tutti_stream_create(&queuing.other)))
		return;
	CHECK_OK(tutti_stream_call(queuing.stream, queue_calls, &queuing));
	/* Also those that are queued meanwhile. */
	CHECK_OK(tutti_stream_synchronize(queuing.stream));
	CHECK(queuing.left == -1 && queuing.value == n - 1);
	CHECK_OK(tutti_stream_call(queuing.stream, call_at_once, &queuing));
	CHECK_OK(tutti_stream_destroy(queuing.stream));
	CHECK(queuing.value == n * (n - 1));
	CHECK_OK(tutti_stream_destroy(queuing.other));
}

static void functions_may_queue(void **state)
{
	const struct world world = { .n = 3 };

	(void)state;
	assert_int_equal(world_run(&world, queue_from_functions, NULL), 0);
}

/* All that a function could wait with, for what is queued behind it. */
struct things {
	tutti_comm_t comm;
	tutti_stream_t stream;
	tutti_event_t event;
	tutti_persistent_t plan;
	tutti_window_t window;
	void *memory;
	int a, b;
	sem_t gate;
};

#define REFUSED(call) \
	CHECK((call) == TUTTI_EUSAGE && strstr(tutti_last_error(NULL), "tutti_stream_call()"))

static void wait_for_itself(tutti_status status, void *arg)
{
	struct things *t = arg;
	tutti_persistent_t plan;

	CHECK(status == TUTTI_OK);
	CHECK(sem_wait(&t->gate) == 0);
	REFUSED(tutti_stream_synchronize(t->stream));
	REFUSED(tutti_stream_destroy(t->stream));
	REFUSED(tutti_event_synchronize(t->event));
	REFUSED(tutti_persistent_wait(t->plan));
	REFUSED(tutti_persistent_destroy(t->plan));
	REFUSED(tutti_persistent_create(&(tutti_call)TUTTI_CALL_INIT, t->comm, &plan));
	REFUSED(tutti_window_destroy(t->window));
	REFUSED(tutti_barrier(t->comm, NULL));
	REFUSED(tutti_send_recv(&t->a, 1, 0, &t->b, 1, 0, TUTTI_INT32, t->comm, NULL));
	REFUSED(tutti_mem_free(t->memory, t->comm));
	REFUSED(tutti_comm_finalize(t->comm));
	REFUSED(tutti_comm_destroy(t->comm));
	REFUSED(tutti_comm_abort(t->comm));
	CHECK(tutti_event_query(t->event) == TUTTI_AGAIN);
}

static void try_to_wait(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct things t = { .comm = comm, .a = rank };
	tutti_call call = TUTTI_CALL_INIT;

	(void)arg;
	sem_init(&t.gate, 0, 0);
	call.coll = TUTTI_ALL_REDUCE;
	call.send = &t.a;
	call.recv = &t.b;
	call.count = 1;
	call.type = TUTTI_INT32;
	if (!CHECK_OK(tutti_stream_create(&t.stream)) || !CHECK_OK(tutti_event_create(&t.event)) ||
	    !CHECK_OK(tutti_persistent_create(&call, comm, &t.plan)) ||
	    !CHECK_OK(tutti_mem_alloc(&t.memory, 64, comm)) ||
	    !CHECK_OK(tutti_window_create(comm, t.memory, 64, &t.window)))
		return;
	CHECK_OK(tutti_stream_call(t.stream, wait_for_itself, &t));
	CHECK_OK(tutti_persistent_start(t.plan, t.stream));
	CHECK_OK(tutti_put(t.window, rank, 0, &t.a, sizeof(t.a), t.stream));
	CHECK_OK(tutti_event_record(t.event, t.stream));
	CHECK(sem_post(&t.gate) == 0);
	CHECK_OK(tutti_event_synchronize(t.event));
	CHECK_OK(tutti_persistent_destroy(t.plan));
	CHECK(t.b == n * (n - 1) / 2);
	CHECK_OK(tutti_window_destroy(t.window));
	CHECK_OK(tutti_mem_free(t.memory, comm));
	CHECK_OK(tutti_event_destroy(t.event));
	CHECK_OK(tutti_stream_destroy(t.stream));
	sem_destroy(&t.gate);
}

static void functions_cannot_wait_for_themselves(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, try_to_wait, NULL), 0);
}

/* What a function does on its stream while that is being destroyed. */
struct last_words {
	tutti_stream_t stream;
	tutti_event_t event;
	sem_t begin, recorded, end;
	int counter;
};

static void record_last(tutti_status status, void *arg)
{
	struct last_words *last = arg;

	CHECK(status == TUTTI_OK);
	CHECK(sem_wait(&last->begin) == 0);
	CHECK_OK(tutti_event_record(last->event, last->stream));
	REFUSED(tutti_event_synchronize(last->event));
	CHECK(sem_post(&last->recorded) == 0);
	CHECK(sem_wait(&last->end) == 0);
}

static void *destroy_it(void *arg)
{
	struct last_words *last = arg;

	CHECK_OK(tutti_stream_destroy(last->stream));
	return NULL;
}

static int end_it(void *arg)
{
	struct last_words *last = arg;

	if (last->counter++ == 0)
		CHECK(sem_post(&last->end) == 0);
	return 0;
}

static void events_of_a_stream_that_ends(void **state)
{
	struct last_words last = { 0 };
	pthread_t thread;

	(void)state;
	sem_init(&last.begin, 0, 0);
	sem_init(&last.recorded, 0, 0);
	sem_init(&last.end, 0, 0);
	assert_int_equal(tutti_stream_create(&last.stream), TUTTI_OK);
	assert_int_equal(tutti_event_create(&last.event), TUTTI_OK);
	assert_int_equal(tutti_stream_call(last.stream, record_last, &last), TUTTI_OK);
	assert_int_equal(pthread_create(&thread, NULL, destroy_it, &last), 0);
	while (tutti_stream_query(last.stream) != TUTTI_EUSAGE)
		;
	sem_post(&last.begin);
	sem_wait(&last.recorded);
	tutti_set_interrupt(end_it, &last);
	assert_int_equal(tutti_event_synchronize(last.event), TUTTI_OK);
	tutti_set_interrupt(NULL, NULL);
	pthread_join(thread, NULL);
	assert_int_equal(tutti_event_destroy(last.event), TUTTI_OK);
	assert_int_equal(world_failures(), 0);
	sem_destroy(&last.begin);
	sem_destroy(&last.recorded);
	sem_destroy(&last.end);
}

/* What a function lets its thread ask does not end what the stream waits for. */
struct impatience {
	sem_t asked;
	int order;
};

static int stop_at_once(void *arg)
{
	struct impatience *me = arg;

	CHECK(sem_post(&me->asked) == 0);
	return 1;
}

static void be_impatient(tutti_status status, void *arg)
{
	CHECK(status == TUTTI_OK);
	tutti_set_interrupt(stop_at_once, arg);
}

static void come_after(tutti_status status, void *arg)
{
	struct impatience *me = arg;

	CHECK(status == TUTTI_OK && me->order == 1);
	tutti_set_interrupt(NULL, NULL);
	/* Who came too early leaves nobody waiting. */
	for (int i = 0; i < 3; i++)
		CHECK(sem_post(&me->asked) == 0);
}

static void come_first(tutti_status status, void *arg)
{
	struct impatience *me = arg;

	CHECK(status == TUTTI_OK);
	for (int i = 0; i < 3; i++)
		CHECK(sem_wait(&me->asked) == 0);
	me->order = 1;
}

static void a_wait_for_an_event_goes_on(void **state)
{
	struct impatience me = { .order = 0 };
	tutti_stream_t before, after;
	tutti_event_t event;

	(void)state;
	sem_init(&me.asked, 0, 0);
	assert_int_equal(tutti_stream_create(&before), TUTTI_OK);
	assert_int_equal(tutti_stream_create(&after), TUTTI_OK);
	assert_int_equal(tutti_event_create(&event), TUTTI_OK);
	assert_int_equal(tutti_stream_call(before, come_first, &me), TUTTI_OK);
	assert_int_equal(tutti_event_record(event, before), TUTTI_OK);
	assert_int_equal(tutti_stream_call(after, be_impatient, &me), TUTTI_OK);
	assert_int_equal(tutti_stream_wait_event(after, event), TUTTI_OK);
	assert_int_equal(tutti_stream_call(after, come_after, &me), TUTTI_OK);
	assert_int_equal(tutti_stream_synchronize(before), TUTTI_OK);
	assert_int_equal(tutti_stream_synchronize(after), TUTTI_OK);
	assert_int_equal(tutti_event_destroy(event), TUTTI_OK);
	assert_int_equal(tutti_stream_destroy(before), TUTTI_OK);
	assert_int_equal(tutti_stream_destroy(after), TUTTI_OK);
	assert_int_equal(world_failures(), 0);
	sem_destroy(&me.asked);
}

static void misuse(void **state)
{
	tutti_stream_t stream;
	int counter = 0;

	(void)state;
	assert_int_equal(tutti_stream_create(&stream), TUTTI_OK);
	assert_int_equal(tutti_stream_call(NULL, count, &counter), TUTTI_EINVAL);
	assert_int_equal(tutti_stream_call(stream, NULL, &counter), TUTTI_EINVAL);
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	assert_int_equal(tutti_stream_call(stream, count, &counter), TUTTI_EUSAGE);
	assert_int_equal(tutti_group_end(), TUTTI_EUSAGE);
	assert_int_equal(tutti_stream_destroy(stream), TUTTI_OK);
	assert_int_equal(counter, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_is_followed),
		cmocka_unit_test(a_failure_is_told_once),
		cmocka_unit_test(functions_run_after_an_abort),
		cmocka_unit_test(destroy_runs_them),
		cmocka_unit_test(many),
		cmocka_unit_test(from_many_threads),
		cmocka_unit_test(functions_may_queue),
		cmocka_unit_test(functions_cannot_wait_for_themselves),
		cmocka_unit_test(events_of_a_stream_that_ends),
		cmocka_unit_test(a_wait_for_an_event_goes_on),
		cmocka_unit_test(misuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
