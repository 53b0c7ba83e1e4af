/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases that UCC's own tests try, of the calls that there are here: teams of many sizes over
 * one job, one call at a time and one on every team at once, persistent, in place, roots, types,
 * each algorithm on odd numbers of ranks, sets of ranks with a stride, memory of two kinds,
 * timeouts. A team is a communicator split off. docs/testing.md says which of theirs is where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/rows.h"
#include "support/sanitizer.h"
#include "support/world.h"
#include "tutti/insight.h"

#define JOB (SANITIZED ? 6 : 16)

/* -- Rows ---------------------------------------------------------------------------------- */

/* clang-format off */
#define END   ROW_END
/* Where all is slow, shorter. */
#define LONG   (SANITIZED ? 512 : 8192)
#define LONGER (SANITIZED ? 2048 : 65536)
#define BOTH  .out_of_place = true, .in_place = true, .type = ROW_IN_TURN, .op = ROW_IN_TURN
#define NEW   .out_of_place = true, .type = ROW_IN_TURN

static const struct row rows[] = {
	{ "allgather", TUTTI_ALL_GATHER, { 0 }, { 1, 3, LONG, END }, BOTH, .plans = true },
	{ "allgatherv", TUTTI_ALL_GATHER_V, { 0 }, { 1, 3, LONG, END }, BOTH,
	  .spread = CALL_ODD },
	{ "allreduce", TUTTI_ALL_REDUCE, { 0 }, { 4, 256, LONGER, END }, BOTH, .plans = true },
	{ "alltoall", TUTTI_ALL_TO_ALL, { 0 }, { 1, 3, LONG, END }, NEW, .plans = true },
	{ "alltoallv", TUTTI_ALL_TO_ALL_V, { 0 }, { 1, 3, LONG, END }, NEW, .spread = CALL_ODD },
	{ "barrier", TUTTI_BARRIER, { 0 }, { 0, END }, NEW, .plans = true },
	{ "bcast", TUTTI_BROADCAST, { 0 }, { 1, 3, LONGER, END }, .in_place = true,
	  .type = ROW_IN_TURN, .roots = ROW_ROOTS_0_1, .plans = true },
	{ "gather", TUTTI_GATHER, { 0 }, { 1, 3, LONG, END }, BOTH, .roots = ROW_ROOTS_0_1,
	  .plans = true },
	{ "gatherv", TUTTI_GATHER_V, { 0 }, { 1, 3, LONG, END }, BOTH, .roots = ROW_ROOTS_0_1,
	  .spread = CALL_ODD },
	{ "reduce", TUTTI_REDUCE, { 0 }, { 4, 256, LONGER, END }, BOTH, .plans = true },
	{ "reduce_scatter", TUTTI_REDUCE_SCATTER, { 0 }, { 4, 123, 256, LONGER / 16, END }, BOTH,
	  .plans = true },
	{ "reduce_scatterv", TUTTI_REDUCE_SCATTER_V, { 0 }, { 4, 123, LONGER, END }, BOTH,
	  .spread = CALL_CHUNKS },
	{ "scatter", TUTTI_SCATTER, { 0 }, { 1, 3, LONG, END }, BOTH, .roots = ROW_ROOTS_0_1,
	  .plans = true },
	{ "scatterv", TUTTI_SCATTER_V, { 0 }, { 1, 3, LONG, END }, BOTH, .roots = ROW_ROOTS_0_1,
	  .spread = CALL_ODD },
};
/* clang-format on */
#define NROWS (sizeof(rows) / sizeof(rows[0]))

/* -- Teams --------------------------------------------------------------------------------- */

/* Of the first ranks of the job; the last is of all of them, the other way round. */
static const int team_sizes[] = { 1, 2, SANITIZED ? 4 : 8, SANITIZED ? 5 : 11, JOB, JOB };
#define NTEAMS (sizeof(team_sizes) / sizeof(team_sizes[0]))

/* The ranks named, in that order; NULL on all others. */
static tutti_comm_t split_off(tutti_comm_t job, int rank, const int *ranks, int n)
{
	tutti_comm_t team = NULL;
	int place = 0;

	while (place < n && ranks[place] != rank)
		place++;
	CHECK_OK(tutti_comm_split(job, place < n ? 0 : TUTTI_NOCOLOR, place, &team, NULL));
	return team;
}

/* What a rank has of all teams; `comm` is NULL where it is in none. */
static void make_teams(tutti_comm_t job, int rank, struct caller teams[NTEAMS])
{
	for (size_t t = 0; t < NTEAMS; t++) {
		const int n = team_sizes[t];
		int ranks[JOB];

		for (int i = 0; i < n; i++)
			ranks[i] = t + 1 == NTEAMS ? n - 1 - i : i;
		teams[t] = (struct caller){ .comm = split_off(job, rank, ranks, n), .n = n };
		if (!teams[t].comm)
			continue;
		CHECK_OK(tutti_comm_rank(teams[t].comm, &teams[t].rank));
		CHECK(teams[t].rank == (t + 1 == NTEAMS ? n - 1 - rank : rank));
	}
}

static void drop_teams(struct caller teams[NTEAMS])
{
	for (size_t t = 0; t < NTEAMS; t++) {
		caller_release(&teams[t]);
		CHECK_OK(tutti_comm_destroy(teams[t].comm));
	}
}

static void each_alone(tutti_comm_t job, int rank, int n, void *arg)
{
	struct caller teams[NTEAMS];

	(void)n;
	(void)arg;
	make_teams(job, rank, teams);
	for (size_t t = 0; t < NTEAMS; t++)
		if (teams[t].comm)
			rows_run(rows, NROWS, NULL, &teams[t]);
	drop_teams(teams);
}

static void single(void **state)
{
	const struct world world = { .n = JOB, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, each_alone, NULL), 0);
}

/* -- One call on every team at once --------------------------------------------------------- */

static void all_at_once(struct caller teams[NTEAMS], const struct row *row, int count,
			bool in_place, unsigned turn)
{
	struct call calls[NTEAMS];

	for (size_t t = 0; t < NTEAMS; t++) {
		const tutti_type type = (tutti_type)((turn + t) % TUTTI_TYPE_COUNT);

		calls[t] = (struct call){ .coll = row->coll,
					  .type = type,
					  .op = numbers_op_for(type, (int)(turn % NUMBERS_OPS)),
					  .count = (size_t)count,
					  .root = row->roots && team_sizes[t] > 1 ? 1 : 0,
					  .spread = row->spread,
					  .in_place = in_place,
					  .seed = turn };
		if (teams[t].comm)
			caller_prepare(&teams[t], &calls[t]);
	}
	CHECK_OK(tutti_group_start());
	for (size_t t = 0; t < NTEAMS; t++)
		if (teams[t].comm)
			CHECK_OK(caller_make(&teams[t]));
	if (!CHECK_OK(tutti_group_end()))
		return;
	for (size_t t = 0; t < NTEAMS; t++)
		if (teams[t].comm && !caller_check(&teams[t]))
			fprintf(stderr, "  %s on all teams\n", row->what);
}

static void every_row_at_once(tutti_comm_t job, int rank, int n, void *arg)
{
	struct caller teams[NTEAMS];
	unsigned turn = 0;

	(void)n;
	(void)arg;
	make_teams(job, rank, teams);
	for (size_t r = 0; r < NROWS; r++)
		for (const int *count = rows[r].counts; *count != END; count++)
			for (int way = 0; way < 2; way++)
				if (way ? rows[r].in_place : rows[r].out_of_place)
					all_at_once(teams, &rows[r], *count, way == 1, turn++);
	drop_teams(teams);
}

static void multiple(void **state)
{
	const struct world world = { .n = JOB, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, every_row_at_once, NULL), 0);
}

/* -- Each algorithm, on odd numbers of ranks ------------------------------------------------ */

/* clang-format off */
#define ODD   (SANITIZED ? 5 : 15)
#define LARGE (SANITIZED ? 4096 : 65536), (SANITIZED ? 5567 : 123567)

static const struct row algorithm_rows[] = {
	{ "allreduce", TUTTI_ALL_REDUCE, { ODD }, { 8, ODD, LARGE, END }, BOTH },
	{ "allreduce, odd rings", TUTTI_ALL_REDUCE, { 3, 7, 13 }, { 273, 546, 819, END }, BOTH },
	{ "allreduce, again", TUTTI_ALL_REDUCE, { 8 }, { 1024, END }, BOTH, .plans = true },
	{ "allgather", TUTTI_ALL_GATHER, { 5 }, { 1, 3, LONG, END }, BOTH },
	{ "allgatherv", TUTTI_ALL_GATHER_V, { 5 }, { 1, 3, LONG, END }, BOTH, .spread = CALL_ODD },
	{ "bcast", TUTTI_BROADCAST, { ODD, 16 }, { 8, 65536, END }, NEW, .in_place = true,
	  .roots = ROW_ROOTS_0_1 },
	{ "reduce", TUTTI_REDUCE, { ODD }, { 5, 256, LONGER, END }, BOTH },
	{ "reduce_scatter", TUTTI_REDUCE_SCATTER, { ODD }, { 4369, 8237, END }, BOTH },
	{ "reduce_scatterv", TUTTI_REDUCE_SCATTER_V, { ODD }, { LARGE, END }, BOTH,
	  .spread = CALL_CHUNKS },
	{ "alltoallv", TUTTI_ALL_TO_ALL_V, { ODD }, { 8, 1024, END }, NEW, .spread = CALL_ODD },
	{ "alltoall", TUTTI_ALL_TO_ALL, { ODD }, { 1, 3, 512, END }, NEW },
	{ "gather", TUTTI_GATHER, { ODD }, { 1, 3, 512, END }, BOTH, .roots = ROW_ROOTS_0_1 },
	{ "scatter", TUTTI_SCATTER, { ODD }, { 1, 3, 512, END }, BOTH, .roots = ROW_ROOTS_0_1 },
};
/* clang-format on */
#define NALGORITHM_ROWS (sizeof(algorithm_rows) / sizeof(algorithm_rows[0]))

static void algorithm_rows_of(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct caller caller = { .comm = comm, .rank = rank, .n = n };

	(void)arg;
	rows_run(algorithm_rows, NALGORITHM_ROWS, NULL, &caller);
	caller_release(&caller);
}

/* What keeps an order, and is taken where buffers are not registered. */
static const char *second(tutti_collective coll)
{
	return coll == TUTTI_BROADCAST || coll == TUTTI_REDUCE || coll == TUTTI_GATHER ||
			       coll == TUTTI_SCATTER
		       ? ",flat"
		       : ",direct";
}

/* The algorithm of that number of each collective; another one where an order is to be kept. */
static bool pin(char *out, size_t size, int index)
{
	size_t at = 0;

	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++) {
		const char *name = tutti_algorithm_name((tutti_collective)coll, index);

		if (name)
			at += (size_t)snprintf(
				out + at, size - at, "%s%s:%s%s", at ? ";" : "",
				tutti_collective_name((tutti_collective)coll), name,
				strcmp(name, "direct") == 0 || strcmp(name, "flat") == 0 ? ""
				: coll == TUTTI_BARRIER                                  ? ""
				: strcmp(name, "memory") == 0 ? second((tutti_collective)coll)
				: coll == TUTTI_REDUCE        ? ",flat"
				: operation_of((tutti_collective)coll)->reduces ? ",direct"
										: "");
	}
	return at > 0;
}

static void algorithms(void **state)
{
	static const int numbers[] = { 3, 5, 7, 8, 13, 15, 16 };
	char algo[512];

	(void)state;
	for (int index = 0; pin(algo, sizeof(algo), index); index++)
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			const struct world world = { .n = numbers[i],
						     .transport = "shm",
						     .algo = algo };

			if (SANITIZED && numbers[i] > 5)
				continue;
			if (world_run(&world, algorithm_rows_of, NULL) > 0)
				fail_msg("%d ranks, %s", numbers[i], algo);
		}
}

/* -- Sets of ranks -------------------------------------------------------------------------- */

/* A broadcast among `size` ranks from `start` on, every `stride`th; root is one of the job. */
static const struct set {
	int root, start, stride, size;
	size_t count;
} sets[] = {
	{ 0, 0, 1, 16, 8 },      { 0, 0, 2, 8, 6 },       { 3, 3, 8, 2, 65530 },
	{ 2, 1, 1, 2, 65531 },   { 0, 0, 1, 2, 8 },       { 3, 3, 4, 2, 1024 },
	{ 7, 3, 4, 2, 1023 },    { 3, 11, -8, 2, 65530 }, { 11, 11, -8, 2, 65531 },
	{ 5, 7, -2, 2, 123456 }, { 7, 7, -2, 2, 123455 }, { 0, 0, 1, 4, 1337 },
	{ 2, 0, 2, 4, 64 },      { 6, 0, 3, 3, 1335 },    { 4, 7, -1, 6, 18 },
};
#define NSETS (sizeof(sets) / sizeof(sets[0]))

static struct call call_of_set(const struct set *set)
{
	return (struct call){ .coll = TUTTI_BROADCAST,
			      .type = TUTTI_INT8,
			      .count = set->count,
			      .root = (set->root - set->start) / set->stride,
			      .in_place = true };
}

static struct caller caller_of_set(tutti_comm_t job, int rank, const struct set *set)
{
	int ranks[16];

	for (int i = 0; i < set->size; i++)
		ranks[i] = set->start + i * set->stride;
	struct caller caller = { .comm = split_off(job, rank, ranks, set->size), .n = set->size };

	if (caller.comm)
		CHECK_OK(tutti_comm_rank(caller.comm, &caller.rank));
	return caller;
}

/* One after the other, then all together. */
static void broadcasts(tutti_comm_t job, int rank, int n, void *arg)
{
	struct caller callers[NSETS];
	struct call calls[NSETS];

	(void)n;
	(void)arg;
	for (size_t s = 0; s < NSETS; s++) {
		callers[s] = caller_of_set(job, rank, &sets[s]);
		calls[s] = call_of_set(&sets[s]);
		if (callers[s].comm)
			caller_run(&callers[s], &calls[s]);
	}
	for (size_t s = 0; s < NSETS; s++)
		if (callers[s].comm)
			caller_prepare(&callers[s], &calls[s]);
	CHECK_OK(tutti_group_start());
	for (size_t s = 0; s < NSETS; s++)
		if (callers[s].comm)
			CHECK_OK(caller_make(&callers[s]));
	CHECK_OK(tutti_group_end());
	for (size_t s = 0; s < NSETS; s++) {
		if (callers[s].comm)
			caller_check(&callers[s]);
		caller_release(&callers[s]);
		CHECK_OK(tutti_comm_destroy(callers[s].comm));
	}
}

static void active_sets(void **state)
{
	static const char *const algos[] = { "broadcast:binomial", "broadcast:double_tree" };

	(void)state;
	for (int i = 0; i < (SANITIZED ? 1 : 2); i++) {
		const struct world world = { .n = 16, .transport = "shm", .algo = algos[i] };

		assert_int_equal(world_run(&world, broadcasts, NULL), 0);
	}
}

/* all_reduce and all_gather of a few numbers among some ranks in some order. */
static void some_ranks(tutti_comm_t job, int rank, int n, void *arg)
{
	static const int subsets[][17] = {
		{ 2, 1, 0 },
		{ 2, 2, 3 },
		{ 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
		{ 9, 0, 1, 2, 3, 4, 5, 6, 7, 8 },
		{ 7, 15, 14, 13, 12, 11, 10, 9 },
		{ 5, 0, 2, 4, 6, 8 },
	};

	(void)n;
	(void)arg;
	for (size_t s = 0; s < sizeof(subsets) / sizeof(subsets[0]); s++) {
		struct caller caller = { .n = subsets[s][0] };
		struct call call = { .type = TUTTI_INT32, .count = 4, .seed = s };

		caller.comm = split_off(job, rank, subsets[s] + 1, caller.n);
		if (!caller.comm)
			continue;
		CHECK_OK(tutti_comm_rank(caller.comm, &caller.rank));
		CHECK(subsets[s][1 + caller.rank] == rank);
		call.coll = TUTTI_ALL_REDUCE;
		caller_run(&caller, &call);
		call.coll = TUTTI_ALL_GATHER;
		caller_run(&caller, &call);
		caller_release(&caller);
		CHECK_OK(tutti_comm_destroy(caller.comm));
	}
}

static void subsets(void **state)
{
	const struct world world = { .n = 16, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, some_ranks, NULL), 0);
}

/* -- Teams come and go ---------------------------------------------------------------------- */

/* Several at a time, of drawn sizes; they know who they are, are used, and go in an order of
 * their own. */
static void come_and_go(tutti_comm_t job, int rank, int n, void *arg)
{
	struct caller teams[4];
	uint64_t random = 7;

	(void)arg;
	for (size_t t = 0; t < 4; t++) {
		const int size = 2 + (int)((random = numbers_mix(random)) % (uint64_t)(n - 1));
		int first[16], count = 0;

		for (int i = 0; i < size; i++)
			first[i] = i;
		teams[t] = (struct caller){ .comm = split_off(job, rank, first, size), .n = size };
		if (!teams[t].comm)
			continue;
		CHECK_OK(tutti_comm_count(teams[t].comm, &count));
		CHECK_OK(tutti_comm_rank(teams[t].comm, &teams[t].rank));
		CHECK(count == size && teams[t].rank == rank);
	}
	for (size_t i = 0; i < 4; i++) {
		const struct call call = { .coll = TUTTI_ALL_REDUCE,
					   .type = TUTTI_INT32,
					   .count = 9 };
		struct caller *team = &teams[(3 * i + 2) % 4];

		if (team->comm)
			caller_run(team, &call);
		caller_release(team);
		CHECK_OK(tutti_comm_destroy(team->comm));
	}
}

static void teams(void **state)
{
	const struct world world = { .n = 16 };

	(void)state;
	assert_int_equal(world_run(&world, come_and_go, NULL), 0);
}

/* -- Memory of two kinds -------------------------------------------------------------------- */

/* The root's buffers are registered, those of others are not. */
static void two_kinds(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const tutti_collective colls[] = { TUTTI_REDUCE, TUTTI_GATHER, TUTTI_SCATTER,
						  TUTTI_GATHER_V, TUTTI_SCATTER_V };

	(void)arg;
	for (size_t i = 0; i < 2 * sizeof(colls) / sizeof(colls[0]); i++) {
		const struct call call = { .coll = colls[i / 2],
					   .type = TUTTI_INT64,
					   .count = 8192,
					   .spread = CALL_ODD,
					   .in_place = i % 2 };
		void *memory = NULL;

		if (rank == 0)
			CHECK_OK(tutti_mem_alloc(&memory, call_bytes(&call, n), comm));
		call_and_check(&call, comm, rank, n, memory);
		CHECK_OK(tutti_mem_free(memory, comm));
	}
}

static void asymmetric_memory(void **state)
{
	const struct world world = { .n = 8, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, two_kinds, NULL), 0);
}

/* -- Timeouts ------------------------------------------------------------------------------- */

struct late {
	bool comes;
	_Atomic int over; /* ranks that have given up */
};

/* All but rank 0 call; it comes late, or not before they have given up. */
static void come_late(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct late *late = arg;
	const struct timespec while_ms = { .tv_nsec = 200 * 1000 * 1000 };

	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK_OK(tutti_comm_set_timeout(comm, late->comes ? 60000 : 2000));
	if (rank == 0) {
		do
			nanosleep(&while_ms, NULL);
		while (!late->comes && atomic_load(&late->over) < n - 1);
	}
	if (rank > 0 || late->comes) {
		const tutti_status st = tutti_barrier(comm, NULL);

		CHECK(st == (late->comes ? TUTTI_OK : TUTTI_ETIMEOUT));
	}
	atomic_fetch_add(&late->over, 1);
}

static void timeouts(void **state)
{
	(void)state;
	for (int comes = 0; comes < 2; comes++) {
		const struct world world = { .n = 4, .timeout_ms = 60000 };
		struct late late = { .comes = comes };

		assert_int_equal(world_run(&world, come_late, &late), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single),     cmocka_unit_test(multiple),
		cmocka_unit_test(algorithms), cmocka_unit_test(active_sets),
		cmocka_unit_test(subsets),    cmocka_unit_test(teams),
		cmocka_unit_test(timeouts),   cmocka_unit_test(asymmetric_memory),
	};

	/* What times out is not worth a warning each. */
	setenv("TUTTI_DEBUG", "NONE", 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
