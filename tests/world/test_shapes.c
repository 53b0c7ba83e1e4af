/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives over a given shape: programs laid over rings in any order, any trees and
 * groups move the right data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/comm.h"
#include "core/handle.h"
#include "support/calls.h"
#include "support/sanitizer.h"
#include "support/shapes.h"
#include "support/world.h"

#if SANITIZED
static const size_t counts[] = { 0, 5, 4097, 30001 };
#else
static const size_t counts[] = { 0, 1, 7, 100, 1000, 4097, 65536, 300001 };
#endif
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

struct laid {
	const struct tti_algorithm *algo;
	enum shape_kind kind;
	uint64_t seed;
};

/* That the programs that ran, one for each cut, have the chunks that the shape makes. */
static void check_chunks(const struct tti_comm *comm, const struct laid *laid, int root)
{
	const struct tti_programs *programs = &comm->programs;

	CHECK(programs->kept.n >= 1);
	for (size_t i = 0; i < programs->kept.n; i++) {
		const struct tti_program_key *key = programs->kept.at[i].key;
		const struct tti_program_spec how = { .shape = comm->shape,
						      .split = key->split,
						      .rank = comm->rank,
						      .n = comm->n,
						      .root = root };
		struct tti_program prog = { 0 };

		CHECK(key->algo == laid->algo);
		if (key->root != root)
			continue;
		if (!CHECK_OK(tti_program_build(laid->algo, &how, &prog)))
			return;
		CHECK(tti_executable_nchunks(programs->kept.at[i].executable) == prog.nchunks);
		tti_program_release(&prog);
	}
}

static void calls_over_a_shape(tutti_comm_t handle, int rank, int n, void *arg)
{
	static const tutti_type types[] = { TUTTI_FLOAT32, TUTTI_INT8, TUTTI_FLOAT64 };
	static const tutti_op ops[] = { TUTTI_SUM, TUTTI_MAX, TUTTI_MIN };
	const struct laid *laid = arg;
	const tutti_collective coll = laid->algo->coll;
	const bool rooted = coll == TUTTI_BROADCAST || coll == TUTTI_REDUCE;
	struct tti_comm *comm = NULL;

	if (!CHECK_OK(tti_handle_enter(handle, &comm)))
		return;
	/* The communicator frees it, and what its init may have given it goes now. */
	tti_shape_free(comm->shape);
	comm->shape = shape_draw(n, laid->kind, laid->seed);
	for (size_t c = 0; c < NCOUNTS; c++) {
		const struct call call = { .coll = coll,
					   .type = types[c % 3],
					   .op = (int)ops[(c + laid->seed) % 3],
					   .count = counts[c],
					   .root = (int)((c + laid->seed) % (uint64_t)n),
					   .in_place = (c + laid->seed) % 2 };

		call_and_check(&call, handle, rank, n, NULL);
		check_chunks(comm, laid, rooted ? call.root : 0);
	}
	tti_handle_leave(handle);
}

static bool reads_shape(const struct tti_algorithm *algo)
{
	static const char *const names[] = { "ring",
					     "chain",
					     "binomial",
					     "double_tree",
					     "recursive_doubling",
					     "hierarchical",
					     "hierarchical_doubling",
					     "ordered" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(algo->name, names[i]) == 0)
			return true;
	return false;
}

static void run_all(const char *transport, int n, uint64_t seed)
{
	struct laid laid = { .seed = seed };

	for (int coll = 0; coll < TUTTI_SEND_RECV; coll++)
		for (int a = 0; (laid.algo = tti_algorithm_at((tutti_collective)coll, a)); a++) {
			char pin[128];
			const struct world world = { .n = n, .transport = transport, .algo = pin };

			if (!reads_shape(laid.algo))
				continue;
			snprintf(pin, sizeof(pin), "%s:%s",
				 tutti_collective_name((tutti_collective)coll), laid.algo->name);
			laid.kind = (enum shape_kind)(laid.seed++ % SHAPE_KINDS);
			if (world_run(&world, calls_over_a_shape, &laid) > 0)
				fail_msg("%s over %s, %d ranks, kind %d, seed %d", pin, transport,
					 n, laid.kind, (int)laid.seed - 1);
		}
}

static void shm(void **state)
{
	static const int ranks[] = { 1, 3, 5, 8 };

	(void)state;
	for (size_t r = 0; r < sizeof(ranks) / sizeof(ranks[0]); r++)
		for (uint64_t seed = 1; seed <= (SANITIZED ? 1 : 2); seed++)
			run_all("shm", ranks[r], seed);
}

static void tcp(void **state)
{
	(void)state;
	run_all("tcp", SANITIZED ? 3 : 6, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shm),
		cmocka_unit_test(tcp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
