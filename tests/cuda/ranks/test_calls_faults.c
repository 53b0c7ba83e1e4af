/* SPDX-License-Identifier: BSD-3-Clause */
/* One call of the driver, or one allocation of the host, fails, each in turn, while two ranks use devices
 * for windows, operators of the program, messages, groups and graphs. Then every rank has an error with a
 * text, or a right result; nobody waits for ever, and nothing is left.
 *   TEST_CASES  calls of each kind of work that fail; "all": every one
 *   TEST_CASE   the one that fails; TEST_WORK: the kind of work, by its name */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "faults.h"
#include "gpu.h"
#include "gpu/cuda_stream.h"
#include "ranks.h"
#include "util/error.h"
#include "util/fault.h"

#define N      2
#define COUNT  3000
#define NBYTES (COUNT * sizeof(uint32_t))
#define SAMPLE "8"

/* Ten times what the slowest machine needs for one call that fails. */
#define PATIENCE_S 60

/* A rank at work. */
struct side {
	int rank, peer;
	tutti_comm_t comm;
	tutti_stream_t over; /* NULL: calls are done when they return */
	struct gpu_buffer own, other, got;
	struct gpu_stream stream;
	bool is_wrong; /* no call has failed, but the result is not right */
	tutti_status status;
	char text[512];
};

static uint32_t value_of(int rank, uint32_t i)
{
	return i * 3 + (uint32_t)rank * 1000;
}

static void fill(const struct gpu_buffer *buffer, int rank)
{
	for (uint32_t i = 0; i < COUNT; i++)
		((uint32_t *)(void *)buffer->view)[i] = value_of(rank, i);
}

/* What fill() has written, summed over all ranks and times as much. */
static bool is_sum(const struct gpu_buffer *buffer, uint32_t times)
{
	for (uint32_t i = 0; i < COUNT; i++)
		if (((const uint32_t *)(const void *)buffer->view)[i] !=
		    (value_of(0, i) + value_of(1, i)) * times)
			return false;
	return true;
}

static bool is_of(const struct gpu_buffer *buffer, int rank)
{
	for (uint32_t i = 0; i < COUNT; i++)
		if (((const uint32_t *)(const void *)buffer->view)[i] != value_of(rank, i))
			return false;
	return true;
}

/* What is in the stream is done. The text of what the communicator was lost by is its own. */
static tutti_status await(struct side *side)
{
	tutti_status lost;

	if (side->over)
		TTI_TRY(tutti_stream_synchronize(side->over));
	TTI_TRY(tutti_comm_get_async_error(side->comm, &lost));
	if (lost != TUTTI_OK)
		(void)snprintf(side->text, sizeof(side->text), "%s", tutti_last_error(side->comm));
	return lost;
}

/* A call has failed: the peer may wait for what this rank does not do any more. */
static void give_up(struct side *side)
{
	if (!side->comm)
		return;
	if (!side->text[0])
		(void)snprintf(side->text, sizeof(side->text), "%s", tutti_last_error(NULL));
	(void)tutti_comm_abort(side->comm);
	side->comm = NULL;
}

static tutti_status sum(const struct side *side, const struct gpu_buffer *buffer, tutti_op op)
{
	return tutti_all_reduce(buffer->memory, buffer->memory, COUNT, TUTTI_UINT32, op, side->comm,
				side->over);
}

/* -- Windows -------------------------------------------------------------------------------- */

static tutti_status put_and_get(struct side *side, tutti_window_t window)
{
	memset(side->got.view, 0, NBYTES);
	TTI_TRY(tutti_put(window, side->peer, 0, side->own.memory, NBYTES, side->over));
	TTI_TRY(tutti_signal(window, side->peer, side->over));
	TTI_TRY(tutti_wait_signal(window, side->peer, 1, side->over));
	TTI_TRY(tutti_get(window, side->peer, 0, side->got.memory, NBYTES, side->over));
	TTI_TRY(tutti_window_flush(window, -1, side->over));
	TTI_TRY(await(side));
	side->is_wrong |= !is_of(&side->got, side->rank) || !is_of(&side->other, side->peer);
	return TUTTI_OK;
}

static tutti_status use_window(struct side *side)
{
	tutti_window_t window;
	tutti_status st, ended;

	fill(&side->own, side->rank);
	TTI_TRY(tutti_window_create(side->comm, side->other.memory, NBYTES, &window));
	st = put_and_get(side, window);
	if (st != TUTTI_OK)
		give_up(side);
	ended = tutti_window_destroy(window);
	return st == TUTTI_OK ? ended : st;
}

/* -- Operators whose function is the program's ------------------------------------------------ */

static void add(void *inout, const void *in, size_t count, tutti_type type, void *arg)
{
	uint32_t *to = inout;
	const uint32_t *from = in;

	(void)type;
	(void)arg;
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
}

static tutti_status reduce_by_function(struct side *side)
{
	tutti_status st, ended;
	tutti_op op;

	fill(&side->own, side->rank);
	TTI_TRY(tutti_op_create(&op, add, NULL, 1, side->comm));
	st = sum(side, &side->own, op);
	if (st == TUTTI_OK)
		st = sum(side, &side->own, TUTTI_SUM);
	if (st == TUTTI_OK)
		st = sum(side, &side->own, op);
	if (st == TUTTI_OK)
		st = await(side);
	side->is_wrong |= st == TUTTI_OK && !is_sum(&side->own, N * N);
	ended = tutti_op_destroy(op, side->comm);
	return st == TUTTI_OK ? ended : st;
}

/* -- Messages ---------------------------------------------------------------------------------- */

/* Both ranks send first. */
static tutti_status exchange(struct side *side, tutti_channel_t channel, size_t nbytes)
{
	tutti_message_info info = { 0 };
	tutti_request_t request;

	memset(side->got.view, 0, NBYTES);
	TTI_TRY(tutti_message_isend(channel, side->own.memory, nbytes, side->peer, 5, &request));
	TTI_TRY(tutti_message_recv(channel, side->got.memory, nbytes, side->peer, 5, &info));
	TTI_TRY(tutti_message_wait(channel, request, -1, NULL));
	side->is_wrong |= info.bytes != nbytes ||
			  *(uint32_t *)(void *)side->got.view != value_of(side->peer, 0) ||
			  (nbytes == NBYTES && !is_of(&side->got, side->peer));
	return TUTTI_OK;
}

static tutti_status send_messages(struct side *side)
{
	tutti_channel_t channel;
	tutti_status st;

	fill(&side->own, side->rank);
	TTI_TRY(tutti_channel_create(side->comm, &channel));
	st = exchange(side, channel, 4);
	if (st == TUTTI_OK)
		st = exchange(side, channel, NBYTES);
	if (st != TUTTI_OK)
		give_up(side);
	(void)tutti_channel_destroy(channel);
	return st;
}

/* -- Groups -------------------------------------------------------------------------------------- */

static tutti_status add_all(const struct side *side)
{
	TTI_TRY(tutti_send(side->own.memory, COUNT, TUTTI_UINT32, side->peer, side->comm,
			   side->over));
	TTI_TRY(tutti_recv(side->got.memory, COUNT, TUTTI_UINT32, side->peer, side->comm,
			   side->over));
	TTI_TRY(sum(side, &side->other, TUTTI_SUM));
	return tutti_all_to_all(side->own.memory, side->own.memory, COUNT / N, TUTTI_UINT32,
				side->comm, side->over);
}

static tutti_status call_group(struct side *side)
{
	tutti_status added, ended;

	fill(&side->own, side->rank);
	fill(&side->other, side->rank);
	TTI_TRY(tutti_group_start());
	added = add_all(side);
	ended = tutti_group_end();
	TTI_TRY(added);
	TTI_TRY(ended);
	TTI_TRY(await(side));
	side->is_wrong |= !is_of(&side->got, side->peer) || !is_sum(&side->other, 1);
	return TUTTI_OK;
}

/* -- Graphs ---------------------------------------------------------------------------------------- */

/* Functions of CUDA that the program calls. */
static struct {
	int (*begin)(void *stream, int mode);
	int (*end)(void *stream, void **graph);
	int (*instantiate)(void **exec, void *graph, unsigned long long flags);
	int (*destroy)(void *graph);
	int (*launch)(void *exec, void *stream);
	int (*destroy_exec)(void *exec);
} cuda;

static void find_functions(void)
{
	static const struct {
		const char *name;
		void *at;
	} functions[] = {
		{ "cuStreamBeginCapture_v2", &cuda.begin },
		{ "cuStreamEndCapture", &cuda.end },
		{ "cuGraphInstantiateWithFlags", &cuda.instantiate },
		{ "cuGraphDestroy", &cuda.destroy },
		{ "cuGraphLaunch", &cuda.launch },
		{ "cuGraphExecDestroy", &cuda.destroy_exec },
	};
	struct tti_gpu_driver *driver;

	assert_int_equal(tti_gpu_driver(&driver), TUTTI_OK);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *found = tti_gpu_driver_symbol(driver, functions[i].name);

		assert_non_null(found);
		memcpy(functions[i].at, &found, sizeof(found));
	}
}

/* The program makes a call that was told to fail again. */
#define CUDA(call) ((call) != 0 && (call) != 0)

/* What is captured makes the graph; NULL: a call has failed, and with it perhaps the capture. */
static void *capture(const struct side *side, tutti_status *out)
{
	void *graph = NULL, *exec = NULL;

	if (CUDA(cuda.begin(side->stream.cuda, 1)))
		abort();
	*out = sum(side, &side->own, TUTTI_SUM);
	if (*out == TUTTI_OK)
		*out = tutti_all_to_all(side->own.memory, side->got.memory, COUNT / N, TUTTI_UINT32,
					side->comm, side->over);
	if (CUDA(cuda.end(side->stream.cuda, &graph)) && *out == TUTTI_OK)
		abort();
	if (!graph)
		return NULL;
	if (CUDA(cuda.instantiate(&exec, graph, 0)) || CUDA(cuda.destroy(graph)))
		abort();
	return exec;
}

static tutti_status launch(struct side *side, void *exec)
{
	for (int times = 0; times < 2; times++)
		if (CUDA(cuda.launch(exec, side->stream.cuda)))
			abort();
	if (tti_gpu_stream_wait(side->stream.gpu, side->stream.cuda) != TUTTI_OK)
		gpu_stream_wait(&side->stream);
	TTI_TRY(await(side));
	side->is_wrong |= !is_sum(&side->own, N);
	return TUTTI_OK;
}

static tutti_status repeat_graph(struct side *side)
{
	tutti_status st;
	void *exec;

	fill(&side->own, side->rank);
	/* It makes lanes. */
	memset(side->other.view, 0, NBYTES);
	TTI_TRY(sum(side, &side->other, TUTTI_SUM));
	exec = capture(side, &st);
	/* A graph without its peer's would wait for the peer, until that has ended its communicator. */
	if (st == TUTTI_OK)
		st = tutti_barrier(side->comm, NULL);
	if (st == TUTTI_OK)
		st = launch(side, exec);
	if (st != TUTTI_OK)
		give_up(side);
	if (exec && CUDA(cuda.destroy_exec(exec)))
		abort();
	return st;
}

/* -- One call that fails ----------------------------------------------------------------------------- */

static const struct work {
	const char *name;
	tutti_status (*run)(struct side *side);
	bool in_stream;
	int devices[N];
} works[] = {
	{ "window", use_window, false, { 0, 1 } },
	{ "window in a stream", use_window, true, { 0, 1 } },
	{ "window by messages", use_window, true, { 2, NO_DEVICE } },
	{ "function", reduce_by_function, false, { 0, 1 } },
	{ "function in a stream", reduce_by_function, true, { 1, 1 } },
	{ "function with the host", reduce_by_function, true, { 0, NO_DEVICE } },
	{ "messages", send_messages, false, { 0, 1 } },
	{ "group", call_group, false, { 0, 1 } },
	{ "group in a stream", call_group, true, { 1, 1 } },
	{ "graph", repeat_graph, true, { 0, 1 } },
};
#define WORKS (sizeof(works) / sizeof(works[0]))

static const struct work *now;
static struct side sides[N];
static uint64_t failing;

static void say_where(int signal)
{
	char text[160];
	const int n = snprintf(text, sizeof(text), "%s waits for ever after call %llu\n", now->name,
			       (unsigned long long)failing);

	(void)signal;
	(void)!write(2, text, (size_t)n);
	abort();
}

/* The rank ends its communicator itself: calls of the driver fail there, too. */
static void work_and_end(tutti_comm_t comm, int rank)
{
	struct side *side = &sides[rank];
	tutti_status ended = TUTTI_OK;

	side->comm = comm;
	side->text[0] = '\0';
	side->is_wrong = false;
	tutti_status st = now->run(side);

	if (st != TUTTI_OK)
		give_up(side);
	if (side->over)
		ended = gpu_stream_close(&side->stream);
	side->status = st == TUTTI_OK ? ended : st;
	if (side->comm)
		(void)tutti_comm_destroy(side->comm);
}

static void prepare(struct side *side, int rank)
{
	const int device = now->devices[rank];

	side->rank = rank;
	side->peer = 1 - rank;
	gpu_alloc(&side->own, device, NBYTES);
	gpu_alloc(&side->other, device, NBYTES);
	gpu_alloc(&side->got, device, NBYTES);
	side->over = NULL;
	if (now->in_stream && device >= 0) {
		gpu_stream_open(&side->stream, &side->own);
		side->over = side->stream.tutti;
	}
}

static void release(struct side *side)
{
	gpu_free(&side->own);
	gpu_free(&side->other);
	gpu_free(&side->got);
}

/* What graphs have outlived is freed by communicators that come later. */
static void free_buried(void)
{
	const struct timespec ms = { .tv_nsec = 1000 * 1000 };
	struct tti_gpu_held held;
	struct ranks ranks;

	tti_gpu_held(&held);
	while (held.gpus > 0) {
		ranks_make(&ranks, 1, (const int[]){ 0 }, false);
		ranks_end(&ranks);
		nanosleep(&ms, NULL);
		tti_gpu_held(&held);
	}
}

enum fault { DRIVER, MEMORY };

/* How many calls of the driver were made while one of them, or one allocation of the host, could fail;
 * `skipped` UINT64_MAX: none does. */
static uint64_t run(enum fault fault, uint64_t skipped, int *nfailed)
{
	char memory[32];
	struct ranks ranks;
	uint64_t before;
	bool has_failed = false;

	failing = skipped;
	(void)alarm(PATIENCE_S);
	for (int rank = 0; rank < N; rank++)
		prepare(&sides[rank], rank);
	ranks_make(&ranks, N, now->devices, false);
	before = faults_calls();
	(void)snprintf(memory, sizeof(memory), "mem:%llu", (unsigned long long)skipped + 1);
	if (skipped != UINT64_MAX && fault == DRIVER)
		faults_set(skipped, UNKNOWN);
	else if (skipped != UINT64_MAX)
		tti_fault_set(memory);
	ranks_do(&ranks, work_and_end);
	faults_none();
	tti_fault_set(NULL);
	before = faults_calls() - before;
	for (int rank = 0; rank < N; rank++) {
		const struct side *side = &sides[rank];

		if (side->is_wrong && side->status == TUTTI_OK)
			fail_msg("%s, call %llu failed: rank %d has a wrong result and no error",
				 now->name, (unsigned long long)skipped, rank);
		if (side->status != TUTTI_OK && !side->text[0])
			fail_msg("%s, call %llu failed: rank %d has error %d without a text",
				 now->name, (unsigned long long)skipped, rank, side->status);
		has_failed |= side->status != TUTTI_OK;
		release(&sides[rank]);
	}
	*nfailed += has_failed;
	free_buried();
	(void)alarm(0);
	return before;
}

/* Every `share`-th call of one kind of work; the first clean one also loads the kernels. */
static void fail_calls_of(const struct work *work, const char *asked)
{
	int nfailed = 0, ntried = 0;
	uint64_t ncalls, step, first = 0;

	now = work;
	(void)run(DRIVER, UINT64_MAX, &nfailed);
	faults_keep();
	ncalls = run(DRIVER, UINT64_MAX, &nfailed);
	faults_assert_nothing_held(UINT64_MAX);
	assert_int_equal(nfailed, 0);
	step = strcmp(asked, "all") == 0 ? 1 : ncalls / strtoull(asked, NULL, 10) + 1;
	if (getenv("TEST_CASE")) {
		first = strtoull(getenv("TEST_CASE"), NULL, 10);
		step = ncalls + 1;
	}
	for (uint64_t skipped = first; skipped < ncalls; skipped += step, ntried++) {
		(void)run(DRIVER, skipped, &nfailed);
		faults_assert_nothing_held(skipped);
	}
	print_message("%s: %d of %llu calls failed, %d with an error\n", work->name, ntried,
		      (unsigned long long)ncalls, nfailed);
	assert_true(getenv("TEST_CASE") || nfailed > 0);
}

static void each_call_fails_in_turn(void **state)
{
	const char *asked = getenv("TEST_CASES"), *only = getenv("TEST_WORK");

	(void)state;
	for (size_t i = 0; i < WORKS; i++)
		if (!only || strcmp(only, works[i].name) == 0)
			fail_calls_of(&works[i], asked ? asked : SAMPLE);
}

/* The last ones are past the end. */
static void each_allocation_fails_in_turn(void **state)
{
	const char *asked = getenv("TEST_CASES"), *only = getenv("TEST_WORK");
	const bool is_every = asked && strcmp(asked, "all") == 0;

	(void)state;
	for (size_t i = 0; i < WORKS; i++) {
		int nfailed = 0, passed = 0;
		uint64_t skipped = 0;

		now = &works[i];
		if (only && strcmp(only, now->name) != 0)
			continue;
		for (; passed < (is_every ? 20 : 2); skipped += is_every ? 1 : 40) {
			const int before = nfailed;

			(void)run(MEMORY, skipped, &nfailed);
			faults_assert_nothing_held(skipped);
			passed = nfailed > before ? 0 : passed + 1;
		}
		print_message("%s: %d of %llu allocations failed with an error\n", now->name,
			      nfailed, (unsigned long long)skipped);
		assert_true(nfailed > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_fails_in_turn),
		cmocka_unit_test(each_allocation_fails_in_turn),
	};

	(void)signal(SIGALRM, say_where);
	faults_begin();
	find_functions();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
