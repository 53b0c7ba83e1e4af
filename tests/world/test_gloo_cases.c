/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases that Gloo's own tests try, of the calls that there are here: how many ranks, how
 * much, which roots, in place, what times out, what ends while others wait. docs/testing.md says
 * which of theirs is where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/rows.h"
#include "support/sanitizer.h"
#include "support/world.h"

/* -- Every size on every number of ranks ------------------------------------------------- */

/* clang-format off */
#define END            ROW_END
#define ONE_TO_FIFTEEN { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }
#define TWO_TO_NINE    { 2, 3, 4, 5, 6, 7, 8, 9 }
#define FOLDED         { 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 24, 32 }
#define FEW            { 1, 2, 4, 7 }
#define TENS           { 0, 1, 10, 100, 1000, 10000, END }
#define TENS_FROM_4    { 4, 100, 1000, 10000, END }
#define TENS_WITH_4    { 0, 4, 100, 1000, 10000, END }

static const struct row rows[] = {
	{ "allreduce, ring", TUTTI_ALL_REDUCE, ONE_TO_FIFTEEN, TENS_WITH_4,
	  .type = TUTTI_FLOAT32, .in_place = true, .algo = "ring" },
	{ "allreduce, chunked ring", TUTTI_ALL_REDUCE, ONE_TO_FIFTEEN, TENS_WITH_4,
	  .type = TUTTI_FLOAT32, .in_place = true, .algo = "direct" },
	{ "allreduce, halving and doubling", TUTTI_ALL_REDUCE, FOLDED, { 0, 1, 64, 1000, END },
	  .type = TUTTI_FLOAT32, .in_place = true, .algo = "recursive_doubling" },
	{ "allreduce, cubes of 2, 3 and 4", TUTTI_ALL_REDUCE, { 1, 2, 3, 4, 8, 9, 16, 27 },
	  { 0, 1, 64, 1000, END }, .type = TUTTI_FLOAT32, .in_place = true, .algo = "double_tree" },
	{ "allreduce, half precision", TUTTI_ALL_REDUCE, { 4 }, { 1024, END },
	  .type = TUTTI_FLOAT16, .in_place = true, .algo = "ring" },
	{ "allreduce, product", TUTTI_ALL_REDUCE, { 2 }, { 1, END },
	  .type = TUTTI_FLOAT32, .op = TUTTI_PROD, .in_place = true },
	{ "allreduce, function of the caller", TUTTI_ALL_REDUCE, FEW, TENS,
	  .type = TUTTI_UINT64, .op = NUMBERS_XOR, .in_place = true, .out_of_place = true },
	{ "allgather, ring", TUTTI_ALL_GATHER, TWO_TO_NINE, TENS_WITH_4,
	  .type = TUTTI_FLOAT32, .out_of_place = true, .algo = "ring" },
	{ "allgather", TUTTI_ALL_GATHER, FEW, TENS_WITH_4,
	  .type = TUTTI_UINT64, .out_of_place = true },
	{ "allgatherv", TUTTI_ALL_GATHER_V, FEW, { 0, 1, 10, 100, 1000, END }, .type = TUTTI_UINT64,
	  .roots = ROW_EVERY_ROOT, .spread = CALL_RISING, .out_of_place = true },
	{ "alltoall", TUTTI_ALL_TO_ALL, FEW, TENS_FROM_4,
	  .type = TUTTI_UINT64, .out_of_place = true },
	{ "alltoallv", TUTTI_ALL_TO_ALL_V, FEW, TENS_FROM_4,
	  .type = TUTTI_UINT64, .spread = CALL_RISING, .out_of_place = true },
	{ "barrier", TUTTI_BARRIER, ONE_TO_FIFTEEN, { 0, END }, .out_of_place = true },
	{ "broadcast", TUTTI_BROADCAST, { 2, 3, 4, 5 }, TENS_FROM_4,
	  .type = TUTTI_FLOAT32, .roots = ROW_EVERY_ROOT, .in_place = true },
	{ "broadcast, in place or not", TUTTI_BROADCAST, FEW, { 1, 10, 100, END },
	  .type = TUTTI_UINT64, .roots = ROW_EVERY_ROOT, .in_place = true, .out_of_place = true },
	{ "gather", TUTTI_GATHER, FEW, TENS_FROM_4,
	  .type = TUTTI_UINT64, .roots = ROW_EVERY_ROOT, .out_of_place = true },
	{ "gatherv", TUTTI_GATHER_V, FEW, { 1, 10, 100, 1000, END }, .type = TUTTI_UINT64,
	  .roots = ROW_EVERY_ROOT, .spread = CALL_RISING, .out_of_place = true },
	{ "reduce", TUTTI_REDUCE, FEW, TENS, .type = TUTTI_UINT64, .op = NUMBERS_XOR,
	  .roots = ROW_EVERY_ROOT, .in_place = true, .out_of_place = true },
	{ "reduce_scatter", TUTTI_REDUCE_SCATTER_V, FOLDED, TENS_FROM_4,
	  .type = TUTTI_FLOAT32, .spread = CALL_CHUNKS, .in_place = true },
	{ "reduce_scatter, half precision", TUTTI_REDUCE_SCATTER_V, { 4 }, { 1024, END },
	  .type = TUTTI_FLOAT16, .spread = CALL_CHUNKS, .in_place = true },
	{ "scatter", TUTTI_SCATTER, FEW, { 1, 10, 100, END },
	  .type = TUTTI_UINT64, .roots = ROW_EVERY_ROOT, .out_of_place = true },
};
/* clang-format on */
#define NROWS (sizeof(rows) / sizeof(rows[0]))

static void all_rows(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct caller caller = { .comm = comm, .rank = rank, .n = n };

	rows_run(rows, NROWS, arg, &caller);
	caller_release(&caller);
}

/* No algorithm of a row is run by ranks that no row has. */
static bool is_any_for(int n, const char *algo)
{
	for (size_t r = 0; r < NROWS; r++)
		if (row_is_for(&rows[r], n, algo))
			return true;
	return false;
}

/* More ranks than this over TCP are many connections that say nothing new. */
#define MOST_TCP 9

static void results(void **state)
{
	static char *const algos[] = { NULL, "ring", "direct", "recursive_doubling",
				       "double_tree" };

	(void)state;
	for (int n = 1; n <= (SANITIZED ? 5 : 32); n++)
		for (size_t a = 0; a < sizeof(algos) / sizeof(algos[0]); a++)
			for (int tcp = 0; tcp < (n <= MOST_TCP ? 2 : 1); tcp++) {
				const struct world world = { .n = n,
							     .transport = tcp ? "tcp" : "shm",
							     .algo = algos[a] };

				if (is_any_for(n, algos[a]) &&
				    world_run(&world, all_rows, algos[a]) > 0)
					fail_msg("%d ranks over %s, %s", n, world.transport,
						 algos[a] ? algos[a] : "what is chosen");
			}
}

/* -- A barrier that one comes late to ------------------------------------------------------ */

static void nap(int ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

/* Nobody leaves before the rank that is late; each is once. */
static void wait_for_late(tutti_comm_t comm, int rank, int n, void *arg)
{
	_Atomic int *came = arg;

	for (int late = 0; late < n; late++) {
		CHECK_OK(tutti_barrier(comm, NULL));
		if (rank == late) {
			nap(10);
			atomic_store(came, late + 1);
		}
		CHECK_OK(tutti_barrier(comm, NULL));
		CHECK(atomic_load(came) == late + 1);
	}
}

static void late_barriers(void **state)
{
	static const int numbers[] = { 1, 2, 4, 7 };

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (int tcp = 0; tcp < 2; tcp++) {
			const struct world world = { .n = numbers[i],
						     .transport = tcp ? "tcp" : "shm" };
			_Atomic int came = 0;

			assert_int_equal(world_run(&world, wait_for_late, &came), 0);
		}
}

/* -- Messages ------------------------------------------------------------------------------ */

/* To and from all others at once, from one array each at its place; then after a message
 * of nothing. */
static void all_to_all_by_messages(tutti_comm_t comm, int rank, int n, void *arg)
{
	int out[8], in[8];

	(void)arg;
	for (int empty = 0; empty < 2; empty++) {
		for (int peer = 0; peer < n; peer++) {
			out[peer] = rank * 100 + peer;
			in[peer] = -1;
		}
		CHECK_OK(tutti_group_start());
		for (int peer = 0; peer < n; peer++) {
			if (peer == rank)
				continue;
			if (empty) {
				CHECK_OK(tutti_recv(NULL, 0, TUTTI_INT32, peer, comm, NULL));
				CHECK_OK(tutti_send(NULL, 0, TUTTI_INT32, peer, comm, NULL));
			}
			CHECK_OK(tutti_recv(&in[peer], 1, TUTTI_INT32, peer, comm, NULL));
			CHECK_OK(tutti_send(&out[peer], 1, TUTTI_INT32, peer, comm, NULL));
		}
		CHECK_OK(tutti_group_end());
		for (int peer = 0; peer < n; peer++)
			CHECK(in[peer] == (peer == rank ? -1 : peer * 100 + rank));
	}
}

static void messages(void **state)
{
	(void)state;
	for (int n = 2; n <= 8; n++)
		for (int tcp = 0; tcp < 2; tcp++) {
			const struct world world = { .n = n, .transport = tcp ? "tcp" : "shm" };

			assert_int_equal(world_run(&world, all_to_all_by_messages, NULL), 0);
		}
}

/* -- What never comes ---------------------------------------------------------------------- */

struct lonely {
	struct call call;
	_Atomic bool over;
};

/* One call of everybody, then one of rank 0 alone, for which the other stays. */
static void alone(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct lonely *lonely = arg;
	const struct call *call = &lonely->call;
	struct caller caller = { .comm = comm, .rank = rank, .n = n };

	if (caller_run(&caller, call) == CALL_RIGHT && rank == 0) {
		caller_prepare(&caller, call);
		CHECK_OK(tutti_comm_set_timeout(comm, 2000));
		if (!CHECK(caller_make(&caller) == TUTTI_ETIMEOUT))
			fprintf(stderr, "  %s\n", tutti_collective_name(call->coll));
	}
	if (rank == 0)
		atomic_store(&lonely->over, true);
	while (!atomic_load(&lonely->over))
		nap(5);
	caller_release(&caller);
}

static void *alone_thread(void *lonely)
{
	const struct world world = { .n = 2, .transport = "tcp", .timeout_ms = 60000 };

	world_run(&world, alone, lonely);
	return NULL;
}

/* All at the same time. The root is who does not only send, as that may be over before the
 * other rank has come. */
static void timeouts(void **state)
{
	static const struct {
		tutti_collective coll;
		int root;
	} kinds[] = { { TUTTI_ALL_GATHER, 0 }, { TUTTI_ALL_GATHER_V, 0 },   { TUTTI_ALL_REDUCE, 0 },
		      { TUTTI_ALL_TO_ALL, 0 }, { TUTTI_ALL_TO_ALL_V, 0 },   { TUTTI_BARRIER, 0 },
		      { TUTTI_BROADCAST, 1 },  { TUTTI_GATHER, 0 },         { TUTTI_GATHER_V, 0 },
		      { TUTTI_REDUCE, 0 },     { TUTTI_REDUCE_SCATTER, 0 }, { TUTTI_SCATTER, 1 },
		      { TUTTI_SCATTER_V, 1 },  { TUTTI_SEND_RECV, 1 } };
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
	struct lonely lonely[KINDS] = { 0 };
	pthread_t threads[KINDS];
	const int before = world_failures();

	(void)state;
	for (int i = 0; i < KINDS; i++) {
		lonely[i].call = (struct call){ .coll = kinds[i].coll,
						.root = kinds[i].root,
						.type = TUTTI_INT32,
						.count = 1 };
		assert_int_equal(pthread_create(&threads[i], NULL, alone_thread, &lonely[i]), 0);
	}
	for (int i = 0; i < KINDS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(world_failures(), before);
}

/* -- Who goes ------------------------------------------------------------------------------ */

struct ending {
	int after_ms;
	size_t count;
};

/* A ring of messages without end, until rank 0 gives up. Its process would end like that:
 * tests/mp/test_death.c. */
static void ring_until_it_ends(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct ending *ending = arg;
	char out[1000] = { 0 }, in[1000];
	tutti_status st = TUTTI_OK;

	for (long i = 0; st == TUTTI_OK; i++) {
		if (rank == 0 && i == 3) {
			nap(ending->after_ms);
			CHECK_OK(tutti_comm_revoke(comm));
		}
		st = tutti_send_recv(out, ending->count, (rank + n - 1) % n, in, ending->count,
				     (rank + 1) % n, TUTTI_INT8, comm, NULL);
	}
	CHECK(st == TUTTI_EREVOKED);
}

static void endings(void **state)
{
	(void)state;
	for (int n = 2; n <= 4; n++)
		for (int k = 0; k < 12; k++) {
			struct ending ending = { .after_ms = (int[3]){ 0, 5, 50 }[k % 3],
						 .count = k / 3 % 2 ? 1000 : sizeof(float) };
			const struct world world = { .n = n, .transport = k < 6 ? "shm" : "tcp" };

			assert_int_equal(world_run(&world, ring_until_it_ends, &ending), 0);
		}
}

/* -- One-sided ----------------------------------------------------------------------------- */

static void refused(tutti_status st)
{
	CHECK(st == TUTTI_EINVAL);
}

/* All read all others; write their number to them; and nothing beyond. */
static void reads_and_writes(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t size = *(const size_t *)arg, far = 1000000000;
	const int next = (rank + 1) % n;
	tutti_window_t window = NULL;
	char *own = NULL, *copy = malloc(size + 1);

	CHECK_OK(tutti_mem_alloc((void **)&own, size + (size_t)n, comm));
	memset(own, rank + 1, size);
	CHECK_OK(tutti_window_create(comm, own, size + (size_t)n, &window));
	for (int peer = 0; peer < n; peer++) {
		const char number = (char)(rank + 1);

		memset(copy, 0, size);
		CHECK_OK(tutti_get(window, peer, 0, copy, size, NULL));
		for (size_t i = 0; i < size; i++)
			if (!CHECK(copy[i] == peer + 1))
				break;
		CHECK_OK(tutti_put(window, peer, size + (size_t)rank, &number, 1, NULL));
	}
	CHECK_OK(tutti_window_flush(window, -1, NULL));
	CHECK_OK(tutti_barrier(comm, NULL));
	for (int peer = 0; peer < n; peer++)
		CHECK(own[size + (size_t)peer] == peer + 1);
	refused(tutti_get(window, next, far, copy, 1, NULL));
	refused(tutti_get(window, next, 0, copy, far, NULL));
	refused(tutti_put(window, next, far, copy, 1, NULL));
	refused(tutti_put(window, next, 0, copy, far, NULL));
	CHECK_OK(tutti_window_destroy(window));
	CHECK_OK(tutti_mem_free(own, comm));
	free(copy);
}

static void windows(void **state)
{
	static const size_t sizes[] = { 0, 1024, 1000000 };

	(void)state;
	for (int n = 2; n <= 4; n += 2)
		for (size_t i = 0; i < 6; i++) {
			const struct world world = { .n = n, .transport = i < 3 ? "shm" : "tcp" };
			size_t size = sizes[i % 3];

			assert_int_equal(world_run(&world, reads_and_writes, &size), 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),  cmocka_unit_test(late_barriers),
		cmocka_unit_test(messages), cmocka_unit_test(timeouts),
		cmocka_unit_test(endings),  cmocka_unit_test(windows),
	};

	/* What is refused, and what ends, is not worth a warning each. */
	setenv("TUTTI_DEBUG", "NONE", 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
