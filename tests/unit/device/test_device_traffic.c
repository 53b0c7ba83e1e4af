/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that kernels read and write. An operation that receives, reduces, keeps and sends on does it in
 * one pass: each source is read once, each result is written once, and what nobody reads is not kept.
 * The interpreter counts; what has to come out is worked out by hand for each algorithm (traffic.def),
 * and where nothing is sent on in the pass that receives it, out of the steps of the program. */
#include <math.h>
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

#define RANKS 16
/* Of each chunk, in elements of a byte; a multiple of all parts. */
#define CHUNK 96

/* Of all ranks. */
struct counted {
	double read, written;
};

/* -- What has to come out -------------------------------------------------------------------- */

/* What a call runs on: n ranks in `groups` of one size, of which a ring cuts rows into `parts`. */
struct setting {
	int n, groups, parts, root;
};

/* In numbers below n, bits that are set. */
static double bits_below(double n)
{
	int all = 0;

	for (unsigned i = 0; i < (unsigned)n; i++)
		all += __builtin_popcount(i);
	return all;
}

/* Recursive doubling among g, of which p are a power of two. Each of the p sends its vector, and then
 * rounds times reads its own sum and one that came, which is kept and, but for the last, goes on. Of
 * the others each sends its vector to one of the p and receives the result: that one has a sum more
 * and sends the last one as well. */
static struct counted swapped(double g)
{
	double p = 1, rounds = 0;

	for (; 2 * p <= g; p *= 2)
		rounds++;
	if (g == 1)
		return (struct counted){ 0, 0 };
	return (struct counted){ p * (1 + 2 * rounds) + (g - p) * (2 + 2 - 1),
				 p * 2 * rounds + (g - p) * (2 + 2) };
}

/* As the ring of all_reduce. */
static struct counted ringed(double g, double parts)
{
	if (g == 1)
		return (struct counted){ 0, 0 };
	return parts > 1 ? (struct counted){ 5 * (g - 1), 4 * (g - 1) }
			 : (struct counted){ 3 * g - 2, 3 * g - 2 };
}

/* In each of g groups of m: m - 1 of m parts of m vectors are sent; m inputs are reduced. */
static struct counted reduced_inside(double g, double m)
{
	return m > 1 ? (struct counted){ g * (m - 1 + m), g * (m - 1 + 1) }
		     : (struct counted){ 0, 0 };
}

/* In each group every part is read once to be sent to m - 1, who keep it. */
static struct counted given_inside(double g, double m)
{
	return m > 1 ? (struct counted){ g * m, g * 2 * (m - 1) } : (struct counted){ 0, 0 };
}

#define TRAFFIC(COLLECTIVE, algorithm, reads, writes)                                              \
	static struct counted of_##COLLECTIVE##_##algorithm(const struct setting *on)              \
	{                                                                                          \
		const double n = on->n, g = on->groups, m = n / g, k = on->parts, root = on->root; \
                                                                                                   \
		(void)n, (void)m, (void)k, (void)root;                                             \
		return (struct counted){ (reads), (writes) };                                      \
	}
#include "traffic.def"
#undef TRAFFIC

struct formula {
	tutti_collective coll;
	const char *algorithm;
	struct counted (*of)(const struct setting *on);
};

static const struct formula formulas[] = {
#define TRAFFIC(COLLECTIVE, algorithm, reads, writes) \
	{ TUTTI_##COLLECTIVE, #algorithm, of_##COLLECTIVE##_##algorithm },
#include "traffic.def"
#undef TRAFFIC
};
#define NFORMULAS (sizeof(formulas) / sizeof(formulas[0]))

/* -- Counting -------------------------------------------------------------------------------- */

static void build(const struct tti_algorithm *algo, const struct setting *on,
		  const struct tti_shape *shape, struct tti_program *prog)
{
	for (int rank = 0; rank < on->n; rank++) {
		const struct tti_program_spec spec = { .shape = shape,
						       .split = { .parts = on->parts },
						       .rank = rank,
						       .n = on->n,
						       .root = on->root };

		assert_int_equal(tti_program_build(algo, &spec, &prog[rank]), TUTTI_OK);
	}
}

/* Rows in what the chunks of a program are. */
static size_t rows_of(const struct tti_program *prog)
{
	const size_t n = (size_t)prog->n;

	if (tti_collective_is_by_pair(prog->coll))
		return n * n;
	return tti_collective_is_by_rank(prog->coll) || prog->coll == TUTTI_SEND_RECV ? n : 1;
}

/* Chunks of a list have lengths of their own. */
static const struct tti_extent *list_of(int nchunks)
{
	static struct tti_extent extents[RANKS];

	for (int i = 0; i < nchunks; i++)
		extents[i] = (struct tti_extent){ .first = (size_t)i * CHUNK,
						  .to = (size_t)i * CHUNK,
						  .count = CHUNK,
						  .slice = CHUNK,
						  .tag = 9 };
	return extents;
}

static struct tti_layout layout_of(const struct tti_program *prog, bool is_memory,
				   const struct tti_dev_buffers *own)
{
	const tutti_collective coll = prog->coll;
	const size_t parts = (size_t)prog->nchunks / rows_of(prog);
	const size_t length = coll == TUTTI_BARRIER ? 0 : CHUNK, row = parts * length;
	struct tti_layout layout = {
		.input = (const void *)(uintptr_t)own->input,
		.output = (void *)(uintptr_t)own->output,
		.type_size = 1,
		.parts = (int)parts,
		.chunk_count = length,
		.row_count = row,
		.in_stride = tti_collective_sends_rows(coll) ? row : 0,
		.out_stride = tti_collective_gets_rows(coll) ? row : 0,
		.paired = tti_collective_is_by_pair(coll) ? (size_t)prog->n : 0,
	};

	if (coll == TUTTI_SEND_RECV) {
		layout.extents = list_of(prog->nchunks);
		layout.by_chunk = !is_memory;
	}
	return layout;
}

static void make_call(struct device_bed *bed, const struct tti_program *prog,
		      const struct tti_compiled *compiled, struct tti_dev_call *out)
{
	const size_t nbytes = (size_t)prog->nchunks * CHUNK;
	const struct tti_dev_buffers own = { device_alloc(bed, nbytes), device_alloc(bed, nbytes) };
	struct tti_dev_buffers told[RANKS];
	struct device_work work = { .prog = compiled,
				    .layout = layout_of(prog, compiled->is_memory, &own),
				    .type = TUTTI_UINT8,
				    .op = TUTTI_SUM,
				    .slice_bytes = CHUNK,
				    .tag = 7 };

	for (int peer = 0; peer < prog->n; peer++)
		told[peer] = own;
	if (compiled->is_memory)
		work.told = told;
	device_call_make(bed, prog->rank, &work, out);
}

/* What device programs read and write, in rows. With one slot nothing is sent on in the pass that
 * receives it. */
static struct counted run(const struct tti_program *prog, uint32_t nslots, bool words)
{
	const int n = prog->n;
	const struct device_config config = { .n = n,
					      .nblocks = 2,
					      .nthreads = 2,
					      .nslots = nslots,
					      .slot_bytes = device_slot_bytes(CHUNK, 1, 2),
					      .words = words,
					      .in_turns = true };
	const double row = (double)((size_t)prog->nchunks / rows_of(prog) * CHUNK);
	struct tti_compiled compiled[RANKS];
	struct tti_dev_call call[RANKS];
	struct device_bed bed;
	struct counted out;

	device_bed_init(&bed, &config);
	for (int rank = 0; rank < n; rank++) {
		assert_int_equal(tti_compile(&prog[rank], &compiled[rank]), TUTTI_OK);
		make_call(&bed, &prog[rank], &compiled[rank], &call[rank]);
	}
	assert_int_equal(device_run(&bed, call, 1), DEVICE_DONE);
	out = (struct counted){ (double)bed.traffic.read / row, (double)bed.traffic.written / row };
	for (int rank = 0; rank < n; rank++)
		tti_compiled_release(&compiled[rank]);
	device_bed_release(&bed);
	return out;
}

/* -- By formula ------------------------------------------------------------------------------ */

static bool is_same(double a, double b)
{
	return fabs(a - b) < 1e-9 * (1 + fabs(b));
}

/* Groups are of ranks in a row. */
static struct tti_shape *shape_of(const struct setting *on)
{
	struct tti_shape *shape = NULL;
	uint32_t group_of[RANKS];

	if (on->groups == 1)
		return NULL;
	for (int rank = 0; rank < on->n; rank++)
		group_of[rank] = (uint32_t)(rank / (on->n / on->groups));
	assert_int_equal(tti_shape_of_groups(group_of, (uint32_t)on->n, &shape), TUTTI_OK);
	return shape;
}

static void try(const struct formula *formula, const struct setting *on, bool words)
{
	const struct tti_algorithm *algo = tti_algorithm_find(formula->coll, formula->algorithm);
	const struct counted want = formula->of(on);
	struct tti_shape *shape = shape_of(on);
	struct tti_program prog[RANKS];
	struct counted got;

	assert_non_null(algo);
	build(algo, on, shape, prog);
	got = run(prog, 2, words);
	if (!is_same(got.read, want.read) || !is_same(got.written, want.written))
		fail_msg("%s %s, %d ranks in %d groups, %d parts, root %d, words %d: %g rows are "
			 "read and %g written, and %g and %g have to be",
			 tutti_collective_name(formula->coll), formula->algorithm, on->n,
			 on->groups, on->parts, on->root, words, got.read, got.written, want.read,
			 want.written);
	for (int rank = 0; rank < on->n; rank++)
		tti_program_release(&prog[rank]);
	tti_shape_free(shape);
}

static void every_algorithm_has_a_formula(void **state)
{
	const struct tti_algorithm *algo;
	size_t n = 0;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++, n++) {
			size_t at = 0;

			while (at < NFORMULAS && (formulas[at].coll != algo->coll ||
						  strcmp(formulas[at].algorithm, algo->name) != 0))
				at++;
			if (at == NFORMULAS)
				fail_msg("%s %s has none", tutti_collective_name(algo->coll),
					 algo->name);
		}
	assert_int_equal(n, NFORMULAS);
}

/* All numbers of ranks, every way to make groups of one size of them, first and last roots. */
static void every_algorithm_moves_what_its_formula_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < NFORMULAS; i++)
		for (int n = 2; n <= (SANITIZED ? 9 : RANKS); n++)
			for (int groups = 1; groups <= n; groups++) {
				const struct setting on = { n, groups, 1, 0 },
						     last = { n, groups, 1, n - 1 };

				if (n % groups != 0)
					continue;
				try(&formulas[i], &on, false);
				try(&formulas[i], &on, true);
				if (tti_collective_is_rooted(formulas[i].coll))
					try(&formulas[i], &last, groups % 2);
			}
}

/* What a round of a ring carries in several parts is kept, and read again to be sent on. */
static void parts_of_a_ring_are_not_sent_on_at_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < NFORMULAS; i++)
		for (int n = 2; n <= 9; n++)
			for (int groups = 1; groups <= n; groups++) {
				const struct setting on = { n, groups, 2 + n % 2, 0 };
				const struct tti_algorithm *algo =
					tti_algorithm_find(formulas[i].coll, formulas[i].algorithm);

				if (n % groups == 0 && algo->traits & TTI_TRAIT_RING)
					try(&formulas[i], &on, n % 3 == 0);
			}
}

/* -- Step by step ---------------------------------------------------------------------------- */

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

/* With one slot no pass does more than its steps do one by one, or than COPYs that compiling adds; with
 * two it does no more than with one. */
static void no_program_moves_more_than_its_steps(void **state)
{
	int fused = 0, whole = 0;

	(void)state;
	for (size_t i = 0; i < NFORMULAS; i++)
		for (int n = 2; n <= 8; n += 3) {
			const struct setting on = { n, 1, 1, 0 };
			const struct tti_algorithm *algo =
				tti_algorithm_find(formulas[i].coll, formulas[i].algorithm);
			struct counted sum = { 0, 0 }, one, two;
			struct tti_program prog[RANKS];
			double parts;

			build(algo, &on, NULL, prog);
			parts = (double)((size_t)prog->nchunks / rows_of(prog));
			one = run(prog, 1, false);
			two = run(prog, 2, false);
			for (int rank = 0; rank < n; rank++) {
				const struct counted of = steps_of(&prog[rank]);

				sum.read += (of.read + prog->nchunks) / parts;
				sum.written += (of.written + prog->nchunks) / parts;
				tti_program_release(&prog[rank]);
			}
			assert_true(one.read <= sum.read && one.written <= sum.written);
			assert_true(two.read <= one.read && two.written <= one.written);
			fused += two.read < one.read;
			whole++;
		}
	assert_true(fused > 5 && fused < whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_algorithm_has_a_formula),
		cmocka_unit_test(every_algorithm_moves_what_its_formula_says),
		cmocka_unit_test(parts_of_a_ring_are_not_sent_on_at_once),
		cmocka_unit_test(no_program_moves_more_than_its_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
