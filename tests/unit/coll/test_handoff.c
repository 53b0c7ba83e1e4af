/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of handoffs, planned for hosts of which nothing is known: any sides, hosts and counts;
 * proven by the checker, and held against what the contract says by code that shares nothing
 * with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/algorithms/handoff.h"
#include "coll/check/check.h"
#include "core/init/comm_job.h"
#include "plan/handoff/handoff.h"
#include "support/sanitizer.h"
#include "util/error.h"
#include "util/mem.h"

#define MOST 33

/* Everything of one handoff, all ranks'. */
struct scene {
	int n;
	int host_of[MOST];
	int from_ranks[MOST], to_ranks[MOST];
	struct tti_handoff_call call;
	struct tti_handoff_shape *shape;
	size_t nbytes;
	int depth;
	struct tti_handoff_chunks chunks;
	struct tti_program prog[MOST];
	size_t count;
};

static void release(struct scene *s)
{
	for (int rank = 0; rank < s->n; rank++)
		tti_program_release(&s->prog[rank]);
	tti_free(s->shape);
	tti_handoff_chunks_release(&s->chunks);
}

static void describe(const struct scene *s)
{
	fprintf(stderr, "count %zu, hosts", s->count);
	for (int rank = 0; rank < s->n; rank++)
		fprintf(stderr, " %d", s->host_of[rank]);
	fprintf(stderr, "; from%s", s->call.from.sharded ? " parts" : "");
	for (int i = 0; i < s->call.from.n; i++)
		fprintf(stderr, " %d", s->from_ranks[i]);
	fprintf(stderr, "; to%s", s->call.to.sharded ? " parts" : "");
	for (int i = 0; i < s->call.to.n; i++)
		fprintf(stderr, " %d", s->to_ranks[i]);
	fprintf(stderr, "\n");
}

/* The shape of the plan for these hosts. */
static void make_shape(const struct tti_handoff_call *call, const int *host_of, bool is_short,
		       struct tti_handoff_shape **out, size_t *nbytes)
{
	struct tti_handoff_job job = { .from = (const uint32_t *)call->from.ranks,
				       .to = (const uint32_t *)call->to.ranks,
				       .nfrom = (uint32_t)call->from.n,
				       .nto = (uint32_t)call->to.n,
				       .from_sharded = tti_handoff_is_sharded(&call->from),
				       .to_sharded = tti_handoff_is_sharded(&call->to),
				       .is_short = is_short };
	struct tti_handoff_plan *plan = NULL;
	struct tti_comm_job hosts;

	assert_int_equal(tti_comm_job_of_wiring(NULL, host_of, call->n, &hosts), TUTTI_OK);
	job.job = &hosts.job;
	if (tti_handoff_plan_make(&job, &plan) != TUTTI_OK ||
	    tti_handoff_shape_of_plan(&job, plan, out, nbytes) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	tti_handoff_plan_free(plan);
	tti_comm_job_release(&hosts);
}

static int place_on(const tutti_side *side, int rank)
{
	for (int i = 0; i < side->n; i++)
		if (side->ranks[i] == rank)
			return i;
	return -1;
}

/* What of the vector a rank has on a side: [*first, *end). */
static void range_of(const struct scene *s, const tutti_side *side, int rank, size_t *first,
		     size_t *end)
{
	const int place = place_on(side, rank);

	*first = 0;
	*end = place < 0 ? 0 : s->count;
	if (place < 0 || !side->sharded)
		return;
	for (int i = 0; i < place; i++)
		*first += s->count / (size_t)side->n + ((size_t)i < s->count % (size_t)side->n);
	*end = *first + s->count / (size_t)side->n + ((size_t)place < s->count % (size_t)side->n);
}

/* Chunks lie one after the other, and what a rank has or gets is made of whole ones. */
static void check_ranges(const struct scene *s)
{
	size_t at = 0;

	for (size_t c = 0; c < s->chunks.list.n; c++) {
		const struct tti_handoff_chunk *chunk = &s->chunks.list.at[c];

		assert_int_equal(chunk->first, at);
		at += chunk->count;
		for (int rank = 0; rank < s->n; rank++) {
			size_t in, in_end, out, out_end;
			bool has, gets;

			range_of(s, &s->call.from, rank, &in, &in_end);
			range_of(s, &s->call.to, rank, &out, &out_end);
			has = tti_chunk_is_input(&s->prog[rank], (int)c);
			gets = tti_chunk_is_output(&s->prog[rank], (int)c);
			if (chunk->count == 0)
				continue;
			assert_int_equal(has, chunk->first >= in && at <= in_end);
			assert_int_equal(gets, chunk->first >= out && at <= out_end);
			assert_true(gets || at <= out || chunk->first >= out_end);
		}
	}
	assert_int_equal(at, s->count);
}

/* Into each host a chunk comes once if a rank there shall have it and none has, else not. */
static void check_crossings(const struct scene *s)
{
	for (size_t c = 0; c < s->chunks.list.n; c++) {
		int needs[MOST] = { 0 }, has[MOST] = { 0 }, came[MOST] = { 0 };

		for (int rank = 0; rank < s->n; rank++) {
			has[s->host_of[rank]] |= tti_chunk_is_input(&s->prog[rank], (int)c);
			needs[s->host_of[rank]] |= tti_chunk_is_output(&s->prog[rank], (int)c);
			for (size_t i = 0; i < s->prog[rank].steps.n; i++) {
				const struct tti_step *step = &s->prog[rank].steps.at[i];

				came[s->host_of[rank]] +=
					step->kind == TTI_RECV && step->chunk == (int)c &&
					s->host_of[step->peer] != s->host_of[rank];
			}
		}
		for (int host = 0; host < s->n; host++)
			assert_int_equal(came[host], needs[host] && !has[host]);
	}
}

static void build(struct scene *s)
{
	if (tti_handoff_shape_check(&s->call, s->shape, s->nbytes, &s->depth) != TUTTI_OK ||
	    tti_handoff_split(&s->call, s->shape, s->count, 16, &s->chunks) != TUTTI_OK) {
		describe(s);
		fail_msg("%s", tti_error_text());
	}
	for (int rank = 0; rank < s->n; rank++)
		assert_int_equal(
			tti_handoff_program(&s->call, s->shape, &s->chunks, rank, &s->prog[rank]),
			TUTTI_OK);
}

static void prove(struct scene *s)
{
	build(s);
	for (int slots = 1; slots <= 2; slots++)
		if (tti_program_check(s->prog, s->n, slots, TTI_ORDER_ANY) != TUTTI_OK) {
			describe(s);
			fail_msg("%s", tti_error_text());
		}
	check_ranges(s);
	check_crossings(s);
}

/* -- Drawn --------------------------------------------------------------------------- */

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
	int nhosts, lowest[MOST];

	*s = (struct scene){ .n = 1 + draw(&seed, MOST), .count = counts[draw(&seed, 9)] };
	nhosts = 1 + draw(&seed, s->n < 6 ? s->n : 6);
	for (int host = 0; host < nhosts; host++)
		lowest[host] = -1;
	for (int rank = 0; rank < s->n; rank++) {
		const int host = draw(&seed, nhosts);

		lowest[host] = lowest[host] < 0 ? rank : lowest[host];
		s->host_of[rank] = lowest[host];
	}
	s->call.n = s->n;
	draw_side(&seed, s->n, s->from_ranks, &s->call.from);
	draw_side(&seed, s->n, s->to_ranks, &s->call.to);
	make_shape(&s->call, s->host_of, draw(&seed, 4) == 0, &s->shape, &s->nbytes);
}

static void any(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= (SANITIZED ? 150 : 1500); seed++) {
		struct scene s;

		draw_scene(&s, seed);
		prove(&s);
		release(&s);
	}
}

/* -- Known ---------------------------------------------------------------------------- */

/* `hosts` hosts of four ranks; a side is some neighbouring ranks. */
static void set_up(struct scene *s, int hosts, int from, int nfrom, int to, int nto)
{
	*s = (struct scene){ .n = 4 * hosts, .count = 1000 };
	for (int rank = 0; rank < s->n; rank++)
		s->host_of[rank] = rank / 4 * 4;
	for (int i = 0; i < nfrom; i++)
		s->from_ranks[i] = from + i;
	for (int i = 0; i < nto; i++)
		s->to_ranks[i] = to + i;
	s->call = (struct tti_handoff_call){
		.n = s->n,
		.from = { s->from_ranks, nfrom, 0 },
		.to = { s->to_ranks, nto, 0 },
	};
}

static void plan(struct scene *s, bool is_short)
{
	make_shape(&s->call, s->host_of, is_short, &s->shape, &s->nbytes);
}

static void assert_pairs(const struct scene *s, const int (*want)[2], size_t n)
{
	assert_int_equal(s->shape->nstripes, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(tti_handoff_stripes(s->shape)[i].from, want[i][0]);
		assert_int_equal(tti_handoff_stripes(s->shape)[i].to, want[i][1]);
	}
}

/* Four to four: four pairs, a quarter each, and each to the other three. */
static void two_hosts(void **state)
{
	static const int want[][2] = { { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } };
	struct scene s;

	(void)state;
	set_up(&s, 2, 0, 4, 4, 4);
	plan(&s, false);
	assert_pairs(&s, want, 4);
	prove(&s);
	assert_int_equal(s.chunks.list.n, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(s.chunks.list.at[i].first, i * 1000 / 4 / 16 * 16);
		assert_int_equal(s.prog[i].steps.n, 1);
		assert_int_equal(s.prog[4 + i].steps.n, 1 + 3 + 3);
	}
	assert_int_equal(s.depth, 2);
	release(&s);
}

static void one_source(void **state)
{
	static const int want[][2] = { { 2, 4 } };
	struct scene s;

	(void)state;
	set_up(&s, 2, 2, 1, 4, 4);
	plan(&s, false);
	assert_pairs(&s, want, 1);
	prove(&s);
	assert_int_equal(s.chunks.list.n, 1);
	release(&s);
}

/* Hosts behind each other; sources on two hosts have a chain each. */
static void chains(void **state)
{
	static const int one[][2] = {
		{ 0, 4 }, { 1, 5 }, { 4, 8 }, { 5, 9 }, { 6, 10 }, { 7, 11 }
	};
	static const int two[][2] = { { 2, 8 }, { 3, 9 }, { 4, 12 }, { 5, 13 } };
	struct scene s;

	(void)state;
	set_up(&s, 3, 0, 2, 4, 8);
	plan(&s, false);
	assert_pairs(&s, one, 6);
	prove(&s);
	assert_int_equal(s.chunks.list.n, 4);
	release(&s);
	set_up(&s, 4, 2, 4, 8, 8);
	plan(&s, false);
	assert_pairs(&s, two, 4);
	prove(&s);
	release(&s);
}

/* Five hosts in three rounds, in place of a chain of five. */
static void short_ones(void **state)
{
	static const int want[][2] = { { 0, 4 }, { 0, 8 }, { 4, 12 }, { 0, 16 }, { 4, 20 } };
	struct scene s;

	(void)state;
	set_up(&s, 6, 0, 4, 4, 20);
	plan(&s, true);
	assert_pairs(&s, want, 5);
	prove(&s);
	assert_int_equal(s.chunks.list.n, 1);
	assert_int_equal(s.depth, 3);
	release(&s);
}

/* All have a part, all get the whole: hosts stand in a ring, each sends what it gets. */
static void parts_of_all(void **state)
{
	int sent[3] = { 0 };
	struct scene s;

	(void)state;
	set_up(&s, 3, 0, 12, 0, 12);
	s.call.from.sharded = 1;
	plan(&s, false);
	prove(&s);
	for (int rank = 0; rank < s.n; rank++)
		for (size_t i = 0; i < s.prog[rank].steps.n; i++) {
			const struct tti_step *step = &s.prog[rank].steps.at[i];

			sent[rank / 4] += step->kind == TTI_SEND && step->peer / 4 != rank / 4;
		}
	for (int host = 0; host < 3; host++)
		assert_int_equal(sent[host], 8);
	release(&s);
}

/* 2 parts into 3: cuts of both, each from its owner straight to whom it is for. */
static void parts_to_parts(void **state)
{
	static const struct {
		size_t first, count;
		int source, dest;
	} want[] = { { 0, 334, 0, 0 }, { 334, 166, 0, 1 }, { 500, 167, 1, 1 }, { 667, 333, 1, 2 } };
	struct scene s;

	(void)state;
	set_up(&s, 2, 0, 2, 4, 3);
	s.call.from.sharded = s.call.to.sharded = 1;
	plan(&s, false);
	assert_int_equal(s.shape->nstripes, 0);
	prove(&s);
	assert_int_equal(s.chunks.list.n, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct tti_handoff_chunk *chunk = &s.chunks.list.at[i];

		assert_int_equal(chunk->first, want[i].first);
		assert_int_equal(chunk->count, want[i].count);
		assert_int_equal(chunk->source, want[i].source);
		assert_int_equal(chunk->dest, want[i].dest);
	}
	release(&s);
}

/* 128 hosts of 8, everybody a part to everybody: programs of a few ranks, which must not take
 * the time that all of theirs together would. */
static void many_ranks(void **state)
{
	enum { N = SANITIZED ? 256 : 1024 };
	int *host_of = calloc(N, sizeof(*host_of)), *ranks = calloc(N, sizeof(*ranks));
	struct tti_handoff_call call = { .n = N };

	(void)state;
	for (int rank = 0; rank < N; rank++) {
		host_of[rank] = rank / 8 * 8;
		ranks[rank] = rank;
	}
	for (int sharded = 0; sharded < 4; sharded++) {
		struct tti_handoff_shape *shape = NULL;
		struct tti_handoff_chunks chunks;
		size_t nbytes = 0;

		call.from = (tutti_side){ ranks, N / 2, sharded & 1 };
		call.to = (tutti_side){ ranks + N / 4, 3 * (N / 4), sharded >> 1 };
		make_shape(&call, host_of, false, &shape, &nbytes);
		assert_int_equal(tti_handoff_split(&call, shape, 1 << 24, 16, &chunks), TUTTI_OK);
		for (int rank = 0; rank < N; rank += N / 2 - 1) {
			struct tti_program prog;

			assert_int_equal(tti_handoff_program(&call, shape, &chunks, rank, &prog),
					 TUTTI_OK);
			assert_int_equal(prog.ends.n, chunks.list.n);
			tti_program_release(&prog);
		}
		tti_handoff_chunks_release(&chunks);
		tti_free(shape);
	}
	free(host_of);
	free(ranks);
}

/* The checker sees what is wrong in such programs. */
static void wrong_programs(void **state)
{
	struct scene s;

	(void)state;
	set_up(&s, 2, 0, 4, 4, 4);
	plan(&s, false);
	build(&s);
	assert_int_equal(tti_program_check(s.prog, s.n, 1, TTI_ORDER_ANY), TUTTI_OK);
	s.prog[0].ends.at[0] &= (uint8_t)~TTI_END_INPUT;
	assert_int_equal(tti_program_check(s.prog, s.n, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	s.prog[0].ends.at[0] |= TTI_END_INPUT;
	s.prog[2].ends.at[1] |= TTI_END_OUTPUT | TTI_END_INPUT;
	assert_int_equal(tti_program_check(s.prog, s.n, 1, TTI_ORDER_ANY), TUTTI_OK);
	s.prog[2].ends.at[1] &= (uint8_t)~TTI_END_INPUT;
	assert_int_equal(tti_program_check(s.prog, s.n, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "never written"));
	s.prog[2].ends.at[1] |= TTI_END_INPUT;
	s.prog[4].steps.n--;
	assert_int_equal(tti_program_check(s.prog, s.n, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any),
		cmocka_unit_test(two_hosts),
		cmocka_unit_test(one_source),
		cmocka_unit_test(chains),
		cmocka_unit_test(short_ones),
		cmocka_unit_test(parts_of_all),
		cmocka_unit_test(parts_to_parts),
		cmocka_unit_test(wrong_programs),
		cmocka_unit_test(many_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
