/* SPDX-License-Identifier: BSD-3-Clause */
/* The interpreter of device programs, on threads of the host: results, words, and how calls end that
 * cannot be done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/program.h"
#include "support/device_bed.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "util/error.h"

#define RANKS 8

/* A call of all ranks. */
struct play {
	struct device_bed bed;
	struct tti_compiled prog[RANKS];
	struct tti_dev_call call[RANKS];
	uint64_t input[RANKS], output[RANKS];
	size_t count;
};

struct what {
	const char *algorithm;
	size_t count, slice; /* elements */
};

static void compile(const struct tti_algorithm *algo, int n, int rank, struct tti_compiled *out)
{
	const struct tti_program_spec spec = { .rank = rank, .n = n };
	struct tti_program prog;

	assert_int_equal(tti_program_build(algo, &spec, &prog), TUTTI_OK);
	assert_int_equal(tti_compile(&prog, out), TUTTI_OK);
	tti_program_release(&prog);
}

/* What rank has at an element: sums of them are exact. */
static float value(int rank, size_t i)
{
	return (float)(i % 1021) + (float)(1000 * rank);
}

static void fill(struct play *play, int rank)
{
	float *input, *output;

	play->input[rank] = device_alloc(&play->bed, play->count * sizeof(float));
	play->output[rank] = device_alloc(&play->bed, play->count * sizeof(float));
	input = device_view(&play->bed, play->input[rank]);
	output = device_view(&play->bed, play->output[rank]);
	for (size_t i = 0; i < play->count; i++) {
		input[i] = value(rank, i);
		output[i] = -1;
	}
}

static void begin(struct play *play, const struct device_config *config, const struct what *what)
{
	const struct tti_algorithm *algo = tti_algorithm_find(TUTTI_ALL_REDUCE, what->algorithm);
	struct device_config with = *config;

	assert_non_null(algo);
	with.slot_bytes =
		device_slot_bytes(what->slice * sizeof(float), sizeof(float), with.nblocks);
	device_bed_init(&play->bed, &with);
	play->count = what->count;
	for (int rank = 0; rank < config->n; rank++) {
		const size_t nchunks = (compile(algo, config->n, rank, &play->prog[rank]),
					(size_t)play->prog[rank].nchunks);
		struct device_work work = {
			.prog = &play->prog[rank],
			.type = TUTTI_FLOAT32,
			.op = TUTTI_SUM,
			.slice_bytes = what->slice * sizeof(float),
			.tag = 0x1234,
		};

		fill(play, rank);
		work.layout = (struct tti_layout){
			.input = (const void *)(uintptr_t)play->input[rank],
			.output = (void *)(uintptr_t)play->output[rank],
			.type_size = sizeof(float),
			.parts = (int)nchunks,
			.chunk_count = (what->count + nchunks - 1) / nchunks,
			.row_count = what->count,
		};
		device_call_make(&play->bed, rank, &work, &play->call[rank]);
	}
}

static void end(struct play *play)
{
	for (int rank = 0; rank < play->bed.config.n; rank++)
		tti_compiled_release(&play->prog[rank]);
	device_bed_release(&play->bed);
}

static size_t count_wrong(const struct play *play)
{
	const int n = play->bed.config.n;
	size_t wrong = 0;

	for (int rank = 0; rank < n; rank++) {
		const float *output = device_view(&play->bed, play->output[rank]);

		for (size_t i = 0; i < play->count; i++)
			wrong += output[i] !=
				 (float)n * value(0, i) + 1000 * (float)(n * (n - 1) / 2);
	}
	return wrong;
}

static void try(const struct device_config *config, const struct what *what)
{
	struct play *play = calloc(1, sizeof(*play));
	enum device_end how;
	size_t wrong;

	assert_non_null(play);
	begin(play, config, what);
	how = device_run(&play->bed, play->call, 1);
	wrong = how == DEVICE_DONE ? count_wrong(play) : 0;
	if (how != DEVICE_DONE || wrong > 0 || !device_bed_is_clean(&play->bed)) {
		fprintf(stderr, "%s, %zu elements in slices of %zu: end %d, %zu wrong\n",
			what->algorithm, what->count, what->slice, how, wrong);
		device_bed_print(&play->bed, stderr);
		fail();
	}
	end(play);
	free(play);
}

/* -- Results --------------------------------------------------------------------------------- */

static const char *const algorithms[] = { "ring", "direct", "exchange", "double_tree",
					  "recursive_doubling" };

#define NALGORITHMS (sizeof(algorithms) / sizeof(algorithms[0]))

static void try_all(bool words)
{
	static const struct what sizes[] = { { .count = 1, .slice = 64 },
					     { .count = 1000, .slice = 37 } };

	for (size_t a = 0; a < NALGORITHMS; a++)
		for (int n = 1; n <= RANKS; n++)
			for (uint32_t i = 0; i < 8; i++) {
				struct what what = sizes[i / 4];

				what.algorithm = algorithms[a];
				try(&(struct device_config){ .n = n,
							     .nblocks = 1 + i % 2,
							     .nthreads = i / 2 % 2 ? 4 : 1,
							     .nslots = 1 + (uint32_t)n % 3,
							     .words = words,
							     .is_guarded = i % 3 == 0 },
				    &what);
			}
}

static void all_ranks_have_the_sum(void **state)
{
	(void)state;
	try_all(false);
}

static void words_give_the_same(void **state)
{
	(void)state;
	try_all(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_have_the_sum),
		cmocka_unit_test(words_give_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
