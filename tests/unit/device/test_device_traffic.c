/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that kernels read and write. An operation that receives, reduces, keeps and sends on does it in
 * one pass: each source is read once, each result is written once, and what nobody reads is not kept.
 * The interpreter counts; here the same is worked out of the steps of the program, and of the
 * algorithm by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/device_bed.h"
#include "support/sanitizer.h"
#include "util/error.h"

#define RANKS 8
/* Of each chunk, in elements of a byte; a multiple of all parts. */
#define CHUNK 96

struct counted {
	uint64_t read, written; /* chunks, of all ranks */
};

static void build(const struct tti_algorithm *algo, int n, struct tti_program *prog)
{
	for (int rank = 0; rank < n; rank++) {
		const struct tti_program_spec spec = { .rank = rank, .n = n };

		assert_int_equal(tti_program_build(algo, &spec, &prog[rank]), TUTTI_OK);
	}
}

static void make_call(struct device_bed *bed, const struct tti_program *prog,
		      const struct tti_compiled *compiled, struct tti_dev_call *out)
{
	const tutti_collective coll = prog->coll;
	const size_t nchunks = (size_t)prog->nchunks;
	const size_t rows = tti_collective_is_by_rank(coll) ? (size_t)prog->n : 1;
	const size_t row = nchunks / rows * CHUNK;
	const struct tti_dev_buffers own = { device_alloc(bed, nchunks * CHUNK),
					     device_alloc(bed, nchunks * CHUNK) };
	struct tti_dev_buffers told[RANKS];
	struct device_work work = { .prog = compiled,
				    .type = TUTTI_UINT8,
				    .op = TUTTI_SUM,
				    .slice_bytes = CHUNK,
				    .tag = 7 };

	work.layout = (struct tti_layout){
		.input = (const void *)(uintptr_t)own.input,
		.output = (void *)(uintptr_t)own.output,
		.type_size = 1,
		.parts = (int)(nchunks / rows),
		.chunk_count = CHUNK,
		.row_count = row,
		.in_stride = tti_collective_sends_rows(coll) ? row : 0,
		.out_stride = tti_collective_gets_rows(coll) ? row : 0,
	};
	for (int peer = 0; peer < prog->n; peer++)
		told[peer] = own;
	if (compiled->is_memory)
		work.told = told;
	device_call_make(bed, prog->rank, &work, out);
}

/* What device programs read and write, counted in chunks. `slots` 1: nothing is sent on in the pass
 * that receives it. */
static struct counted run(const struct tti_algorithm *algo, int n, uint32_t nslots, bool words)
{
	const struct device_config config = { .n = n,
					      .nblocks = 2,
					      .nthreads = 2,
					      .nslots = nslots,
					      .slot_bytes = device_slot_bytes(CHUNK, 1, 2),
					      .words = words,
					      .in_turns = true };
	struct tti_program prog[RANKS];
	struct tti_compiled compiled[RANKS];
	struct tti_dev_call call[RANKS];
	struct device_bed bed;
	struct counted out;

	build(algo, n, prog);
	device_bed_init(&bed, &config);
	for (int rank = 0; rank < n; rank++) {
		assert_int_equal(tti_compile(&prog[rank], &compiled[rank]), TUTTI_OK);
		make_call(&bed, &prog[rank], &compiled[rank], &call[rank]);
	}
	assert_int_equal(device_run(&bed, call, 1), DEVICE_DONE);
	out = (struct counted){ bed.traffic.read, bed.traffic.written };
	assert_int_equal(out.read % CHUNK, 0);
	assert_int_equal(out.written % CHUNK, 0);
	for (int rank = 0; rank < n; rank++) {
		tti_compiled_release(&compiled[rank]);
		tti_program_release(&prog[rank]);
	}
	device_bed_release(&bed);
	return (struct counted){ out.read / CHUNK, out.written / CHUNK };
}

static struct counted run_named(tutti_collective coll, const char *name, int n)
{
	const struct tti_algorithm *algo = tti_algorithm_find(coll, name);

	assert_non_null(algo);
	return run(algo, n, 2, n % 2);
}

/* Of each rank: n - 1 chunks are received to be reduced, with the own one of each; n - 1 to be kept.
 * What goes on to the next rank is written there in the same pass, and the first chunk is sent by
 * itself. Of what is reduced only the last chunk, which is complete, is kept. */
static void a_ring_moves_the_least(void **state)
{
	(void)state;
	for (uint64_t n = 2; n <= RANKS; n++) {
		const struct counted all = run_named(TUTTI_ALL_REDUCE, "ring", (int)n);
		const struct counted gather = run_named(TUTTI_ALL_GATHER, "ring", (int)n);
		const struct counted scatter = run_named(TUTTI_REDUCE_SCATTER, "ring", (int)n);

		assert_int_equal(all.read, n * (1 + 2 * (n - 1) + (n - 1)));
		assert_int_equal(all.written, n * (2 * (n - 1) + 1 + (n - 1)));
		/* The own chunk is sent and kept; n - 1 come, and all but the last go on. */
		assert_int_equal(gather.read, n * n);
		assert_int_equal(gather.written, n * (2 + n - 1 + n - 2));
		assert_int_equal(scatter.read, n * (1 + 2 * (n - 1)));
		assert_int_equal(scatter.written, n * n);
	}
}

/* All inputs are read in one pass, and each byte is in a slot once. */
static void one_pass_reads_each_input_once(void **state)
{
	(void)state;
	for (uint64_t n = 2; n <= RANKS; n++) {
		const struct counted exchange = run_named(TUTTI_ALL_REDUCE, "exchange", (int)n);
		const struct counted direct = run_named(TUTTI_ALL_REDUCE, "direct", (int)n);

		/* The own vector is read for all peers at once, and once to be reduced. */
		assert_int_equal(exchange.read, n * (1 + n));
		assert_int_equal(exchange.written, n * (n - 1 + 1));
		/* n - 1 chunks go to their owners, who reduce theirs for all, and keep it. */
		assert_int_equal(direct.read, n * (n - 1 + n + n - 1));
		assert_int_equal(direct.written, n * (n - 1 + n + n - 1));
	}
}

/* Each input is read once, each output is written once, and nothing else is. */
static void memory_is_read_and_written_once(void **state)
{
	(void)state;
	for (uint64_t n = 2; n <= RANKS; n++) {
		const struct counted all = run_named(TUTTI_ALL_REDUCE, "memory", (int)n);
		const struct counted one = run_named(TUTTI_REDUCE, "memory", (int)n);

		assert_int_equal(all.read, n * n);
		assert_int_equal(all.written, n * n);
		assert_int_equal(one.read, n * n);
		assert_int_equal(one.written, n);
	}
}

/* -- Of any program --------------------------------------------------------------------------- */

/* What the steps read and write one by one: a value and what is combined with it, and the result. */
static struct counted steps_of(const struct tti_program *prog)
{
	struct counted all = { 0, 0 };

	for (size_t i = 0; i < prog->steps.n; i++) {
		const enum tti_step_kind kind = prog->steps.at[i].kind;

		all.read += kind == TTI_RECV_REDUCE ? 2 : 1;
		all.written++;
	}
	return all;
}

/* No pass does more than its steps do one by one, or than COPYs that compiling adds; and every message
 * is written once and read once at least. */
static void no_program_moves_more_than_its_steps(void **state)
{
	const struct tti_algorithm *algo;
	int fused = 0, whole = 0;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 2; n <= RANKS && !algo->needs_memory; n += 3) {
				struct counted sum = { 0, 0 }, one, two;
				struct tti_program prog[RANKS];
				uint64_t sends = 0, nchunks;

				if (coll == TUTTI_BARRIER || coll == TUTTI_ALL_TO_ALL ||
				    coll == TUTTI_HANDOFF || coll == TUTTI_SEND_RECV)
					continue;
				build(algo, n, prog);
				nchunks = (uint64_t)prog[0].nchunks;
				for (int rank = 0; rank < n; rank++) {
					const struct counted of = steps_of(&prog[rank]);

					sum.read += of.read;
					sum.written += of.written;
					for (size_t k = 0; k < prog[rank].steps.n; k++)
						sends += prog[rank].steps.at[k].kind == TTI_SEND;
					tti_program_release(&prog[rank]);
				}
				one = run(algo, n, 1, false);
				two = run(algo, n, 2, false);
				assert_true(one.read <= sum.read + (uint64_t)n * nchunks);
				assert_true(one.written <= sum.written + (uint64_t)n * nchunks);
				assert_true(two.read <= one.read && two.written <= one.written);
				assert_true(two.read >= sends && two.written >= sends);
				fused += two.read < one.read;
				whole++;
			}
	assert_true(fused > 5 && fused < whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_moves_the_least),
		cmocka_unit_test(one_pass_reads_each_input_once),
		cmocka_unit_test(memory_is_read_and_written_once),
		cmocka_unit_test(no_program_moves_more_than_its_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
