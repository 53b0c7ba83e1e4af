/* SPDX-License-Identifier: BSD-3-Clause */
/* Handoffs where every rank reaches the buffers of all: any sides and counts, in place and not,
 * are proven by the checker, and the chunks are held against what the contract says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coll/algorithms/handoff.h"
#include "coll/check/check.h"
#include "support/sanitizer.h"
#include "util/error.h"

#define MOST 17
#define LINE 16

struct scene {
	int from_ranks[MOST], to_ranks[MOST];
	struct tti_handoff_call call;
	size_t count;
	struct tti_handoff_chunks chunks;
	struct tti_program prog[MOST];
};

static void build(struct scene *s)
{
	assert_int_equal(tti_handoff_split(&s->call, NULL, s->count, LINE, &s->chunks), TUTTI_OK);
	for (int rank = 0; rank < s->call.n; rank++)
		assert_int_equal(
			tti_handoff_program(&s->call, NULL, &s->chunks, rank, &s->prog[rank]),
			TUTTI_OK);
}

static void release(struct scene *s)
{
	for (int rank = 0; rank < s->call.n; rank++)
		tti_program_release(&s->prog[rank]);
	tti_handoff_chunks_release(&s->chunks);
}

static int draw(unsigned *seed, int below)
{
	return rand_r(seed) % below;
}

/* Some ranks in any order. */
static void draw_side(unsigned *seed, int n, int *ranks, tutti_side *side)
{
	int all[MOST];

	for (int i = 0; i < n; i++)
		all[i] = i;
	*side = (tutti_side){ ranks, 1 + draw(seed, n), draw(seed, 2) };
	for (int i = 0; i < side->n; i++) {
		const int k = i + draw(seed, n - i), rank = all[k];

		all[k] = all[i];
		ranks[i] = rank;
	}
}

static void draw_scene(struct scene *s, unsigned seed)
{
	static const size_t counts[] = { 0, 1, 2, 7, 33, 100, 1000, 4099, 1 << 20 };

	*s = (struct scene){ .count = counts[draw(&seed, 9)] };
	s->call.n = 1 + draw(&seed, MOST);
	draw_side(&seed, s->call.n, s->from_ranks, &s->call.from);
	draw_side(&seed, s->call.n, s->to_ranks, &s->call.to);
	build(s);
	for (int rank = 0; rank < s->call.n; rank++)
		s->prog[rank].in_place = draw(&seed, 2);
}

/* What of the vector a rank has on a side: [*first, *end). */
static void range_of(const struct scene *s, const tutti_side *side, int rank, size_t *first,
		     size_t *end)
{
	*first = *end = 0;
	for (int i = 0; i < side->n; i++) {
		size_t length = s->count;

		if (side->ranks[i] != rank)
			continue;
		if (side->sharded)
			tutti_part(s->count, side->n, i, first, &length);
		*end = *first + length;
	}
}

/* Chunks lie one after the other; what a rank has or gets is made of whole ones; and no rank
 * moves more than its even part and a line. */
static void check_chunks(const struct scene *s)
{
	size_t at = 0, moves[MOST] = { 0 };

	for (size_t c = 0; c < s->chunks.list.n; c++) {
		const struct tti_handoff_chunk *chunk = &s->chunks.list.at[c];
		const size_t end = at + chunk->count;

		assert_int_equal(chunk->first, at);
		assert_true(chunk->count > 0 || s->count == 0);
		assert_in_range(chunk->at, 0, s->call.n - 1);
		moves[chunk->at] += chunk->count;
		for (int rank = 0; rank < s->call.n && chunk->count > 0; rank++) {
			size_t in, in_end, out, out_end;

			range_of(s, &s->call.from, rank, &in, &in_end);
			range_of(s, &s->call.to, rank, &out, &out_end);
			assert_int_equal(tti_chunk_is_input(&s->prog[rank], (int)c),
					 at >= in && end <= in_end);
			assert_int_equal(tti_chunk_is_output(&s->prog[rank], (int)c),
					 at >= out && end <= out_end);
			assert_true(end <= out || at >= out || out == out_end);
		}
		at = end;
	}
	assert_int_equal(at, s->count);
	for (int rank = 0; rank < s->call.n; rank++)
		assert_true(moves[rank] <= s->count / (size_t)s->call.n + LINE);
}

/* What a rank both has and gets, nobody else writes there; and each chunk is read by others once
 * at most. */
static void check_steps(const struct scene *s)
{
	for (size_t c = 0; c < s->chunks.list.n; c++) {
		int gets = 0;

		for (int rank = 0; rank < s->call.n; rank++)
			for (size_t i = 0; i < s->prog[rank].steps.n; i++) {
				const struct tti_step *step = &s->prog[rank].steps.at[i];

				if (tti_step_is_sync(step->kind) || step->chunk != (int)c)
					continue;
				gets += step->kind == TTI_GET;
				if (step->kind == TTI_PUT)
					assert_false(
						tti_chunk_is_input(&s->prog[step->peer], (int)c));
			}
		assert_in_range(gets, 0, 1);
	}
}

static void any(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= (SANITIZED ? 200 : 2000); seed++) {
		struct scene s;

		draw_scene(&s, seed);
		if (tti_program_check(s.prog, s.call.n, 1, TTI_ORDER_ANY) != TUTTI_OK)
			fail_msg("seed %u: %s", seed, tti_error_text());
		check_chunks(&s);
		check_steps(&s);
		release(&s);
	}
}

static void set_up(struct scene *s, int n, int from, int nfrom, int to, int nto)
{
	*s = (struct scene){ .count = 1 << 16 };
	for (int i = 0; i < nfrom; i++)
		s->from_ranks[i] = from + i;
	for (int i = 0; i < nto; i++)
		s->to_ranks[i] = to + i;
	s->call = (struct tti_handoff_call){ .n = n,
					     .from = { s->from_ranks, nfrom, 0 },
					     .to = { s->to_ranks, nto, 0 } };
	build(s);
}

static int count_of(const struct tti_program *prog, enum tti_step_kind kind)
{
	int n = 0;

	for (size_t i = 0; i < prog->steps.n; i++)
		n += prog->steps.at[i].kind == kind;
	return n;
}

/* Two replicas to three ranks of seven: all seven move a part, and both replicas are read. */
static void all_move(void **state)
{
	int read[MOST] = { 0 };
	struct scene s;

	(void)state;
	set_up(&s, 7, 0, 2, 2, 3);
	for (int rank = 0; rank < 7; rank++) {
		const struct tti_program *prog = &s.prog[rank];

		assert_int_equal(count_of(prog, TTI_GET), rank >= 2);
		assert_int_equal(count_of(prog, TTI_PUT), rank >= 2 && rank < 5 ? 2 : 3);
		assert_int_equal(count_of(prog, TTI_COPY), 0);
		for (size_t i = 0; i < prog->steps.n; i++)
			if (prog->steps.at[i].kind == TTI_GET)
				read[prog->steps.at[i].peer]++;
	}
	assert_int_equal(read[0], 3);
	assert_int_equal(read[1], 2);
	release(&s);
}

/* Who has nothing to do meets the others twice in a row: the first time alone says where buffers
 * are. */
static void without_work(void **state)
{
	struct tti_compiled compiled;
	struct scene s;

	(void)state;
	/* All who get it have it. */
	set_up(&s, 4, 0, 2, 0, 2);
	for (int rank = 0; rank < 4; rank++) {
		assert_int_equal(count_of(&s.prog[rank], TTI_GET), 0);
		assert_int_equal(count_of(&s.prog[rank], TTI_PUT), 0);
		assert_int_equal(tti_compile(&s.prog[rank], &compiled), TUTTI_OK);
		assert_int_equal(compiled.nopening, 2);
		assert_int_equal(compiled.nopers > 4, rank < 2);
		tti_compiled_release(&compiled);
	}
	assert_int_equal(tti_program_check(s.prog, 4, 1, TTI_ORDER_ANY), TUTTI_OK);
	release(&s);
}

/* What would be wrong is found: data that nobody brings, and a result that is still read. */
static void broken(void **state)
{
	struct scene s;

	(void)state;
	set_up(&s, 3, 0, 1, 1, 2);
	for (size_t i = 0; i < s.prog[0].steps.n; i++)
		if (s.prog[0].steps.at[i].kind == TTI_PUT)
			s.prog[0].steps.at[i].peer = 2;
	assert_int_equal(tti_program_check(s.prog, 3, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	release(&s);
	set_up(&s, 3, 0, 2, 1, 2);
	for (size_t i = 0; i < s.prog[0].steps.n; i++)
		if (s.prog[0].steps.at[i].kind == TTI_PUT)
			s.prog[0].steps.at[i].peer = 1;
	assert_int_equal(tti_program_check(s.prog, 3, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any),
		cmocka_unit_test(all_move),
		cmocka_unit_test(without_work),
		cmocka_unit_test(broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
