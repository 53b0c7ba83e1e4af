/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of handoffs: any sides, hosts and counts; proven by the checker, and held
 * against what the contract says by code that shares nothing with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/check.h"
#include "coll/handoff.h"
#include "support/sanitizer.h"
#include "util/error.h"

#define MOST 33

/* Everything of one handoff, all ranks'. */
struct scene {
	int n;
	int host_of[MOST];
	int from_ranks[MOST], to_ranks[MOST];
	struct tti_handoff_door doors[MOST];
	struct tti_handoff handoff;
	struct tti_handoff_pairs pairs;
	struct tti_handoff_chunks chunks;
	struct tti_program prog[MOST];
	size_t count;
};

static void release(struct scene *s)
{
	for (int rank = 0; rank < s->n; rank++)
		tti_program_release(&s->prog[rank]);
	tti_handoff_pairs_release(&s->pairs);
	tti_handoff_chunks_release(&s->chunks);
}

static void describe(const struct scene *s)
{
	fprintf(stderr, "count %zu, hosts", s->count);
	for (int rank = 0; rank < s->n; rank++)
		fprintf(stderr, " %d", s->host_of[rank]);
	fprintf(stderr, "; from%s", s->handoff.from.sharded ? " parts" : "");
	for (int i = 0; i < s->handoff.from.n; i++)
		fprintf(stderr, " %d", s->from_ranks[i]);
	fprintf(stderr, "; to%s", s->handoff.to.sharded ? " parts" : "");
	for (int i = 0; i < s->handoff.to.n; i++)
		fprintf(stderr, " %d", s->to_ranks[i]);
	fprintf(stderr, "; pairs");
	for (size_t i = 0; i < s->pairs.list.n; i++)
		fprintf(stderr, " %d>%d*%u", s->pairs.list.at[i].from, s->pairs.list.at[i].to,
			s->pairs.list.at[i].share);
	fprintf(stderr, "\n");
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

			range_of(s, &s->handoff.from, rank, &in, &in_end);
			range_of(s, &s->handoff.to, rank, &out, &out_end);
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
	if (tti_handoff_cut(&s->handoff, &s->pairs, s->count, 16, &s->chunks) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	for (int rank = 0; rank < s->n; rank++)
		if (tti_handoff_program(&s->handoff, &s->pairs, &s->chunks, rank, &s->prog[rank]) !=
		    TUTTI_OK) {
			describe(s);
			fail_msg("%s", tti_error_text());
		}
}

static void prove(struct scene *s)
{
	build(s);
	for (int slots = 1; slots <= 2; slots++)
		if (tti_program_check(s->prog, s->n, slots) != TUTTI_OK) {
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
	int nhosts;

	*s = (struct scene){ .n = 1 + draw(&seed, MOST), .count = counts[draw(&seed, 9)] };
	nhosts = 1 + draw(&seed, s->n < 6 ? s->n : 6);
	for (int rank = 0; rank < s->n; rank++)
		s->host_of[rank] = draw(&seed, nhosts);
	s->handoff = (struct tti_handoff){ .n = s->n, .host_of = s->host_of };
	draw_side(&seed, s->n, s->from_ranks, &s->handoff.from);
	draw_side(&seed, s->n, s->to_ranks, &s->handoff.to);
	for (int rank = 0; rank < s->n; rank++)
		s->doors[rank] = (struct tti_handoff_door){ (uint8_t)draw(&seed, 3),
							    (uint8_t)draw(&seed, 3) };
	if (draw(&seed, 2))
		s->handoff.doors = s->doors;
	if (draw(&seed, 8) == 0)
		return; /* no pairs: only where none are needed, see below */
	assert_int_equal(tti_handoff_pair_up(&s->handoff, draw(&seed, 4) == 0, &s->pairs),
			 TUTTI_OK);
	for (size_t i = 0; i < s->pairs.list.n; i++)
		s->pairs.list.at[i].share = (uint32_t)(1 + draw(&seed, 4));
}

static void any(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= (SANITIZED ? 300 : 3000); seed++) {
		struct scene s;

		draw_scene(&s, seed);
		if (tti_handoff_pairs_check(&s.handoff, &s.pairs) == TUTTI_OK) {
			prove(&s);
		} else {
			assert_int_equal(s.pairs.list.n, 0);
			assert_non_null(strstr(tti_error_text(), "nobody sends"));
		}
		release(&s);
	}
}

/* -- Known ---------------------------------------------------------------------------- */

/* `hosts` hosts of four ranks; a side is some neighbouring ranks. */
static void set_up(struct scene *s, int hosts, int from, int nfrom, int to, int nto)
{
	*s = (struct scene){ .n = 4 * hosts, .count = 1000 };
	for (int rank = 0; rank < s->n; rank++)
		s->host_of[rank] = rank / 4;
	for (int i = 0; i < nfrom; i++)
		s->from_ranks[i] = from + i;
	for (int i = 0; i < nto; i++)
		s->to_ranks[i] = to + i;
	s->handoff = (struct tti_handoff){
		.n = s->n,
		.host_of = s->host_of,
		.from = { s->from_ranks, nfrom, 0 },
		.to = { s->to_ranks, nto, 0 },
	};
}

static void pair_up(struct scene *s, bool is_short)
{
	assert_int_equal(tti_handoff_pair_up(&s->handoff, is_short, &s->pairs), TUTTI_OK);
}

static void assert_pairs(const struct scene *s, const int (*want)[2], size_t n)
{
	assert_int_equal(s->pairs.list.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(s->pairs.list.at[i].from, want[i][0]);
		assert_int_equal(s->pairs.list.at[i].to, want[i][1]);
	}
}

/* Four to four: four pairs, a quarter each, and each to the other three. */
static void two_hosts(void **state)
{
	static const int want[][2] = { { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } };
	struct scene s;
	int depth;

	(void)state;
	set_up(&s, 2, 0, 4, 4, 4);
	pair_up(&s, false);
	assert_pairs(&s, want, 4);
	prove(&s);
	assert_int_equal(s.chunks.list.n, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(s.chunks.list.at[i].first, i * 1000 / 4 / 16 * 16);
		assert_int_equal(s.prog[i].steps.n, 1);
		assert_int_equal(s.prog[4 + i].steps.n, 1 + 3 + 3);
	}
	assert_int_equal(tti_handoff_depth(&s.handoff, &s.pairs, &depth), TUTTI_OK);
	assert_int_equal(depth, 2);
	release(&s);
}

/* Ranks 2, 3 and 7 are farther from their NICs than others of their hosts, so there are two
 * pairs; those of one NIC meet. */
static void beside_nics(void **state)
{
	static const struct tti_handoff_door doors[] = { { 1, 5 }, { 0, 5 }, { 0, 9 }, { 1, 9 },
							 { 0, 3 }, { 0, 3 }, { 1, 3 }, { 1, 4 } };
	static const int want[][2] = { { 1, 4 }, { 0, 6 } }, far[][2] = { { 2, 4 }, { 3, 6 } };
	struct scene s;

	(void)state;
	set_up(&s, 2, 0, 4, 4, 4);
	s.handoff.doors = doors;
	pair_up(&s, false);
	assert_pairs(&s, want, 2);
	prove(&s);
	release(&s);
	/* Of those that there are the nearest are near. */
	set_up(&s, 2, 2, 2, 4, 4);
	s.handoff.doors = doors;
	pair_up(&s, false);
	assert_pairs(&s, far, 2);
	prove(&s);
	release(&s);
}

static void one_source(void **state)
{
	static const int want[][2] = { { 2, 4 } };
	struct scene s;

	(void)state;
	set_up(&s, 2, 2, 1, 4, 4);
	pair_up(&s, false);
	assert_pairs(&s, want, 1);
	prove(&s);
	assert_int_equal(s.chunks.list.n, 1);
	release(&s);
}

/* Hosts behind each other; sources on two hosts have a chain each, and take turns. */
static void chains(void **state)
{
	static const int one[][2] = {
		{ 0, 4 }, { 1, 5 }, { 4, 8 }, { 5, 9 }, { 6, 10 }, { 7, 11 }
	};
	static const int two[][2] = { { 2, 8 },  { 4, 9 },  { 3, 10 }, { 5, 11 },
				      { 2, 12 }, { 4, 13 }, { 3, 14 }, { 5, 15 } };
	struct scene s;

	(void)state;
	set_up(&s, 3, 0, 2, 4, 8);
	pair_up(&s, false);
	assert_pairs(&s, one, 6);
	prove(&s);
	assert_int_equal(s.chunks.list.n, 4);
	release(&s);
	set_up(&s, 4, 2, 4, 8, 8);
	pair_up(&s, false);
	assert_pairs(&s, two, 8);
	prove(&s);
	release(&s);
}

/* Five hosts in three rounds, in place of a chain of five. */
static void short_ones(void **state)
{
	static const int want[][2] = { { 0, 4 }, { 0, 8 }, { 4, 12 }, { 0, 16 }, { 4, 20 } };
	struct scene s;
	int depth;

	(void)state;
	set_up(&s, 6, 0, 4, 4, 20);
	pair_up(&s, true);
	assert_pairs(&s, want, 5);
	prove(&s);
	assert_int_equal(s.chunks.list.n, 1);
	assert_int_equal(tti_handoff_depth(&s.handoff, &s.pairs, &depth), TUTTI_OK);
	assert_int_equal(depth, 3);
	release(&s);
}

/* All have a part, all get the whole: hosts stand in a ring, each sends what it gets. */
static void parts_of_all(void **state)
{
	int sent[3] = { 0 };
	struct scene s;

	(void)state;
	set_up(&s, 3, 0, 12, 0, 12);
	s.handoff.from.sharded = 1;
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
	s.handoff.from.sharded = s.handoff.to.sharded = 1;
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

/* A pair of share 4 and one of share 1: four fifths and one fifth. */
static void shares(void **state)
{
	struct scene s;

	(void)state;
	set_up(&s, 2, 0, 2, 4, 4);
	pair_up(&s, false);
	s.pairs.list.at[0].share = 4;
	prove(&s);
	assert_int_equal(s.chunks.list.n, 2);
	assert_int_equal(s.chunks.list.at[1].first, 800);
	release(&s);
}

static void assert_bad(struct scene *s, struct tti_handoff_pair pair, const char *text)
{
	const struct tti_handoff_pair good = s->pairs.list.at[1];

	s->pairs.list.at[1] = pair;
	assert_int_equal(tti_handoff_pairs_check(&s->handoff, &s->pairs), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), text))
		fail_msg("%s: no \"%s\"", tti_error_text(), text);
	s->pairs.list.at[1] = good;
	assert_int_equal(tti_handoff_pairs_check(&s->handoff, &s->pairs), TUTTI_OK);
}

static void bad_pairs(void **state)
{
	struct scene s;

	(void)state;
	set_up(&s, 4, 0, 3, 4, 8);
	pair_up(&s, false);
	assert_int_equal(s.pairs.list.n, 7);
	assert_bad(&s, (struct tti_handoff_pair){ 1, 16, 1 }, "no such rank");
	assert_bad(&s, (struct tti_handoff_pair){ -1, 5, 1 }, "no such rank");
	assert_bad(&s, (struct tti_handoff_pair){ 1, 3, 1 }, "shall get nothing");
	assert_bad(&s, (struct tti_handoff_pair){ 3, 5, 1 }, "never has the data");
	assert_bad(&s, (struct tti_handoff_pair){ 8, 5, 1 }, "is served later");
	assert_bad(&s, (struct tti_handoff_pair){ 6, 5, 1 }, "is served later");
	assert_bad(&s, (struct tti_handoff_pair){ 1, 9, 1 }, "do not stand together");
	assert_bad(&s, (struct tti_handoff_pair){ 1, 5, 0 }, "share of 0");
	assert_bad(&s, (struct tti_handoff_pair){ 1, 5, 64 }, "at most");
	s.pairs.list.n = 3;
	assert_int_equal(tti_handoff_pairs_check(&s.handoff, &s.pairs), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "nobody sends to the host of rank 8"));
	release(&s);
}

/* 512 hosts of 8, everybody a part to everybody: programs of a few ranks, which must not take
 * the time that all of theirs together would. */
static void many_ranks(void **state)
{
	enum { N = 4096 };
	int *host_of = calloc(N, sizeof(*host_of)), *ranks = calloc(N, sizeof(*ranks));
	struct tti_handoff handoff = { .n = N, .host_of = host_of };
	struct tti_handoff_pairs pairs = { 0 };

	(void)state;
	for (int rank = 0; rank < N; rank++) {
		host_of[rank] = rank / 8;
		ranks[rank] = rank;
	}
	for (int sharded = 0; sharded < 4; sharded++) {
		struct tti_handoff_chunks chunks;

		handoff.from = (tutti_side){ ranks, N / 2, sharded & 1 };
		handoff.to = (tutti_side){ ranks + N / 4, 3 * (N / 4), sharded >> 1 };
		assert_int_equal(tti_handoff_pair_up(&handoff, false, &pairs), TUTTI_OK);
		assert_int_equal(tti_handoff_cut(&handoff, &pairs, 1 << 24, 16, &chunks), TUTTI_OK);
		for (int rank = 0; rank < N; rank += 511) {
			struct tti_program prog;

			assert_int_equal(
				tti_handoff_program(&handoff, &pairs, &chunks, rank, &prog),
				TUTTI_OK);
			assert_int_equal(prog.ends.n, chunks.list.n);
			tti_program_release(&prog);
		}
		tti_handoff_chunks_release(&chunks);
		tti_handoff_pairs_release(&pairs);
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
	pair_up(&s, false);
	build(&s);
	assert_int_equal(tti_program_check(s.prog, s.n, 1), TUTTI_OK);
	s.prog[0].ends.at[0] &= (uint8_t)~TTI_END_INPUT;
	assert_int_equal(tti_program_check(s.prog, s.n, 1), TUTTI_EINVAL);
	s.prog[0].ends.at[0] |= TTI_END_INPUT;
	s.prog[2].ends.at[1] |= TTI_END_OUTPUT | TTI_END_INPUT;
	assert_int_equal(tti_program_check(s.prog, s.n, 1), TUTTI_OK);
	s.prog[2].ends.at[1] &= (uint8_t)~TTI_END_INPUT;
	assert_int_equal(tti_program_check(s.prog, s.n, 1), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "never written"));
	s.prog[2].ends.at[1] |= TTI_END_INPUT;
	s.prog[4].steps.n--;
	assert_int_equal(tti_program_check(s.prog, s.n, 1), TUTTI_EINVAL);
	release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any),
		cmocka_unit_test(two_hosts),
		cmocka_unit_test(beside_nics),
		cmocka_unit_test(one_source),
		cmocka_unit_test(chains),
		cmocka_unit_test(short_ones),
		cmocka_unit_test(parts_of_all),
		cmocka_unit_test(parts_to_parts),
		cmocka_unit_test(shares),
		cmocka_unit_test(bad_pairs),
		cmocka_unit_test(wrong_programs),
		cmocka_unit_test(many_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
