/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs over several blocks, and over chunks of uneven length: all messages as one program, as
 * the engine runs it, is proven. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/check/check.h"
#include "support/sanitizer.h"
#include "support/shapes.h"
#include "util/error.h"
#include "util/hash.h"

#define RANKS 20

static void build_split(const struct tti_algorithm *algo, const struct tti_shape *shape,
			struct tti_split split, int n, int root, struct tti_program *prog)
{
	for (int rank = 0; rank < n; rank++) {
		const struct tti_program_spec how = {
			.shape = shape, .split = split, .rank = rank, .n = n, .root = root
		};

		assert_int_equal(tti_program_build(algo, &how, &prog[rank]), TUTTI_OK);
	}
}

static void release(struct tti_program *prog, int n)
{
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
}

static void add_block(struct tti_program *out, struct tti_step step, int blocks, int block)
{
	step.chunk = step.chunk * blocks + block;
	assert_true(tti_vec_push(&out->steps, step));
}

/* A memory program, which is run by run: each goes block by block through all its steps. */
static void unroll_memory(const struct tti_program *prog, int blocks, struct tti_program *out)
{
	const struct tti_step *step = prog->steps.at;

	for (size_t first = 0, n; first < prog->steps.n; first += n) {
		const bool is_sync = tti_step_is_sync(step[first].kind);

		for (n = 1; !is_sync && first + n < prog->steps.n &&
			    !tti_step_is_sync(step[first + n].kind) &&
			    step[first + n].stage == step[first].stage;
		     n++)
			;
		if (is_sync)
			assert_true(tti_vec_push(&out->steps, step[first]));
		for (int block = 0; !is_sync && block < blocks; block++)
			for (size_t i = first; i < first + n; i++)
				add_block(out, step[i], blocks, block);
	}
}

/* The program as the engine runs it over several blocks, a stage `behind` blocks behind the
 * one before it: each chunk has become one for each block. */
static void unroll(const struct tti_program *prog, int blocks, int behind, struct tti_program *out)
{
	int last = 0;

	*out = *prog;
	memset(&out->steps, 0, sizeof(out->steps));
	memset(&out->ends, 0, sizeof(out->ends));
	for (size_t i = 0; i < prog->ends.n * (size_t)blocks; i++)
		assert_true(tti_vec_push(&out->ends, prog->ends.at[i / (size_t)blocks]));
	out->nchunks *= blocks;
	if (tti_program_is_memory(prog)) {
		unroll_memory(prog, blocks, out);
		return;
	}
	for (size_t i = 0; i < prog->steps.n; i++)
		if (prog->steps.at[i].stage > last)
			last = prog->steps.at[i].stage;
	for (int round = 0; round < blocks + behind * last; round++)
		for (size_t i = 0; i < prog->steps.n; i++) {
			struct tti_step step = prog->steps.at[i];
			const int block = round - behind * step.stage;

			if (block < 0 || block >= blocks)
				continue;
			step.stage = 0;
			add_block(out, step, blocks, block);
		}
}

static void prove_unrolled(const struct tti_algorithm *algo, const struct tti_shape *shape, int n,
			   int root, int blocks, int behind)
{
	struct tti_program prog[RANKS], unrolled[RANKS];

	build_split(algo, shape, (struct tti_split){ 1 + root % 2, root % 3 }, n, root, prog);
	for (int rank = 0; rank < n; rank++)
		unroll(&prog[rank], blocks, behind, &unrolled[rank]);
	if (tti_program_check(unrolled, n, 1, TTI_ORDER_ANY) != TUTTI_OK)
		fail_msg("%s %s, %d ranks, %u groups, root %d, %d blocks, %d behind: %s",
			 tutti_collective_name(algo->coll), algo->name, n, shape->ngroups, root,
			 blocks, behind, tti_error_text());
	release(unrolled, n);
	release(prog, n);
}

static void stages_of_blocks_overlap(void **state)
{
	const struct tti_algorithm *algo;
	uint64_t seed = 3;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		/* A barrier has no blocks. */
		for (int i = 0;
		     coll != TUTTI_BARRIER && (algo = tti_algorithm_at((tutti_collective)coll, i));
		     i++)
			for (int n = 1; n <= RANKS; n += SANITIZED && n > 4 ? 5 : 1) {
				const enum shape_kind kind =
					n % 4 ? SHAPE_GROUPS
					      : (enum shape_kind)(seed % SHAPE_KINDS);
				struct tti_shape *shape = shape_draw(n, kind, seed++);

				prove_unrolled(algo, shape, n, (int)(seed % (uint64_t)n), 5, 1);
				prove_unrolled(algo, shape, n, (int)(seed % (uint64_t)n), 3, 2);
				tti_shape_free(shape);
			}
}

/* -- Chunks of uneven length ------------------------------------------------------- */

#define PAIRS_RANKS 8
#define MESSAGES    4 /* of a chunk at most */

/* Where two ranks alone know how much goes between them, a chunk takes as many messages as its own
 * length makes, none if it is empty, and on each link chunk follows chunk: each is now a message
 * of its own. */
static void spread(const struct tti_program *prog, const int *first, struct tti_program *out)
{
	*out = *prog;
	memset(&out->steps, 0, sizeof(out->steps));
	out->coll = TUTTI_SEND_RECV;
	/* One more, as there may be none. */
	out->nchunks = first[prog->nchunks] + 1;
	for (size_t i = 0; i < prog->steps.n; i++) {
		struct tti_step step = prog->steps.at[i];
		const int chunk = step.chunk;

		for (step.chunk = first[chunk]; step.chunk < first[chunk + 1]; step.chunk++)
			assert_true(tti_vec_push(&out->steps, step));
	}
}

static void chunks_of_any_length_find_their_way(void **state)
{
	static const struct {
		tutti_collective coll;
		const char *name;
	} calls[] = { { TUTTI_ALL_TO_ALL, "direct" },
		      { TUTTI_GATHER, "flat" },
		      { TUTTI_SCATTER, "flat" } };
	struct tti_program prog[PAIRS_RANKS], spreads[PAIRS_RANKS];
	int first[PAIRS_RANKS * PAIRS_RANKS + 1] = { 0 };
	uint64_t random = 1;
	size_t messages = 0;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		const int call = round % 3, n = 1 + round % PAIRS_RANKS;

		build_split(tti_algorithm_find(calls[call].coll, calls[call].name), NULL,
			    (struct tti_split){ 0 }, n, round % n, prog);
		for (int chunk = 0; chunk < prog->nchunks; chunk++) {
			random = tti_hash_combine(random, (uint64_t)round);
			/* Many are empty. */
			first[chunk + 1] =
				first[chunk] +
				(random >> 60 & 1 ? (int)(random >> 40) % (MESSAGES + 1) : 0);
		}
		for (int rank = 0; rank < n; rank++) {
			spread(&prog[rank], first, &spreads[rank]);
			messages += spreads[rank].steps.n;
		}
		if (tti_program_check(spreads, n, MESSAGES, TTI_ORDER_ANY) != TUTTI_OK)
			fail_msg("%s, %d ranks, round %d: %s",
				 tutti_collective_name(calls[call].coll), n, round,
				 tti_error_text());
		release(spreads, n);
		release(prog, n);
	}
	assert_true(messages > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_of_blocks_overlap),
		cmocka_unit_test(chunks_of_any_length_find_their_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
