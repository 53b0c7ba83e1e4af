/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory programs: all of the library's are proven, in place and not, and broken ones are
 * refused, for the right reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/check/check.h"
#include "coll/check/check_set.h"
#include "coll/files/text.h"
#include "support/sanitizer.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

#define RANKS 33

/* -- Building ---------------------------------------------------------------------- */

/* Which ranks are in place. */
enum places { NONE, ALL, MIXED, PLACES };

static bool is_in_place(enum places places, int rank, uint64_t seed)
{
	return places == ALL ||
	       (places == MIXED && tti_hash_combine(seed, (uint64_t)rank) >> 32 & 1);
}

static void build(const struct tti_algorithm *algo, int parts, int n, int root, enum places places,
		  uint64_t seed, struct tti_program *prog)
{
	for (int rank = 0; rank < n; rank++) {
		const struct tti_program_spec spec = { .split = { parts, 0 },
						       .rank = rank,
						       .n = n,
						       .root = root,
						       .in_place =
							       is_in_place(places, rank, seed) };

		assert_int_equal(tti_program_build(algo, &spec, &prog[rank]), TUTTI_OK);
	}
}

static void release(struct tti_program *prog, int n)
{
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
}

static const struct tti_algorithm *memory_of(int coll)
{
	return tti_algorithm_find((tutti_collective)coll, "memory");
}

/* -- Proofs ------------------------------------------------------------------------ */

static void prove(const struct tti_algorithm *algo, int parts, int n, int root, enum places places)
{
	struct tti_program prog[RANKS];

	build(algo, parts, n, root, places, (uint64_t)(n * 31 + root), prog);
	if (tti_program_check(prog, n, 1, algo->order) != TUTTI_OK)
		fail_msg("%s memory, %d ranks, root %d, parts %d, places %d: %s",
			 tutti_collective_name(algo->coll), n, root, parts, places,
			 tti_error_text());
	release(prog, n);
}

static void all_are_proven(void **state)
{
	int found = 0;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++) {
		const struct tti_algorithm *algo = memory_of(coll);

		/* Every collective that has algorithms has it among them. */
		assert_int_equal(algo != NULL, tti_algorithm_at((tutti_collective)coll, 0) != NULL);
		if (!algo)
			continue;
		found++;
		assert_true(algo->needs_memory);
		assert_int_equal(algo->order, tti_collective_takes_op(algo->coll)
						      ? TTI_ORDER_ONE_PASS
						      : TTI_ORDER_ANY);
		for (int n = 1; n <= RANKS; n += SANITIZED && n > 5 ? 9 : 1)
			for (int places = NONE; places < PLACES; places++) {
				prove(algo, 1, n, 0, (enum places)places);
				prove(algo, 2, n, n / 2, (enum places)places);
				prove(algo, 1, n, n - 1, (enum places)places);
			}
	}
	assert_int_equal(found, 11);
}

/* All other algorithms, where ranks are in place. */
static void messages_are_proven_in_place(void **state)
{
	const struct tti_algorithm *algo;
	struct tti_program prog[RANKS];

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= RANKS; n += SANITIZED && n > 5 ? 9 : 4)
				for (int places = ALL; places < PLACES; places++) {
					build(algo, 1, n, n / 2, (enum places)places, 5, prog);
					if (tti_program_check(prog, n, 1, TTI_ORDER_ANY) !=
					    TUTTI_OK)
						fail_msg("%s %s, %d ranks in place: %s",
							 tutti_collective_name(algo->coll),
							 algo->name, n, tti_error_text());
					release(prog, n);
				}
}

/* The pairwise exchange sends first where it is in place, so it needs no scratch; without the
 * edges from what is sent to what is received there it is refused. */
static void in_place_edges_are_looked_at(void **state)
{
	const struct tti_algorithm *algo = tti_algorithm_find(TUTTI_ALL_TO_ALL, "direct");
	struct tti_program prog[4];
	struct tti_compiled c;
	int dropped = 0;

	(void)state;
	build(algo, 1, 4, 0, ALL, 0, prog);
	assert_int_equal(tti_compile(&prog[1], &c), TUTTI_OK);
	assert_int_equal(c.nscratch, 0);
	assert_int_equal(tti_check_in_place(&prog[1], &c), TUTTI_OK);
	for (int o = 0; o < c.nopers; o++) {
		if (!c.oper[o].nsucc)
			continue;
		c.oper[o].nsucc--;
		assert_int_equal(tti_check_in_place(&prog[1], &c), TUTTI_EINVAL);
		assert_non_null(strstr(tti_error_text(), "is written in place, where step"));
		c.oper[o].nsucc++;
		dropped++;
	}
	assert_int_equal(dropped, 3);
	/* Out of place nothing is shared. */
	prog[1].in_place = false;
	assert_int_equal(tti_check_in_place(&prog[1], &c), TUTTI_OK);
	tti_compiled_release(&c);
	release(prog, 4);
}

/* -- Broken by hand ---------------------------------------------------------------- */

static void drop(struct tti_program *prog, size_t index)
{
	struct tti_step *step = &prog->steps.at[index];

	memmove(step, step + 1, (prog->steps.n - index - 1) * sizeof(*step));
	prog->steps.n--;
}

/* The `k`-th step of a kind between a rank and a peer. */
static size_t find(const struct tti_program *prog, enum tti_step_kind kind, int peer, int k)
{
	size_t at = 0;

	while (prog->steps.at[at].kind != kind || prog->steps.at[at].peer != peer || k-- > 0)
		at++;
	return at;
}

static bool has(const struct tti_program *prog, enum tti_step_kind kind, int peer, int k)
{
	for (size_t at = 0; at < prog->steps.n; at++)
		k -= prog->steps.at[at].kind == kind && prog->steps.at[at].peer == peer;
	return k < 0;
}

static void must_be_refused(const struct tti_program *prog, int n, const char *why)
{
	if (tti_program_check(prog, n, 1, TTI_ORDER_ANY) == TUTTI_OK)
		fail_msg("%s of %d ranks is accepted: %s", tutti_collective_name(prog->coll), n,
			 why);
	assert_non_null(strstr(tti_error_text(), "rank "));
}

/* Every message says something that no other does: without it, and without the wait for it, some
 * access is too early or too late. */
static void no_notify_is_too_many(void **state)
{
	struct tti_program prog[5];

	(void)state;
	/* A handoff meets all ranks, whatever they touch. */
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int n = 2; memory_of(coll) && coll != TUTTI_HANDOFF && n <= 5; n++)
			for (int from = 0; from < n; from++)
				for (int to = 0; to < n; to++)
					for (int k = 0; from != to && k < 2; k++) {
						build(memory_of(coll), 1, n, 1, MIXED, 3, prog);
						/* Of some there is one, or none. */
						if (!has(&prog[from], TTI_NOTIFY, to, k)) {
							release(prog, n);
							continue;
						}
						drop(&prog[from],
						     find(&prog[from], TTI_NOTIFY, to, k));
						must_be_refused(prog, n, "a notify is missing");
						drop(&prog[to], find(&prog[to], TTI_WAIT, from, k));
						must_be_refused(prog, n, "no notify, no wait");
						release(prog, n);
					}
}

/* What one step does no other does. */
static void no_step_is_too_many(void **state)
{
	struct tti_program prog[4];
	int tried = 0;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int rank = 0; memory_of(coll) && rank < 4; rank++)
			for (size_t i = 0;; i++, tried++) {
				const int parts = 1 + (int)(i % 2);
				struct tti_step *step;

				build(memory_of(coll), parts, 4, 2, (enum places)(i % 3), i, prog);
				if (i >= prog[rank].steps.n) {
					release(prog, 4);
					break;
				}
				step = &prog[rank].steps.at[i];
				if (!tti_step_is_sync(step->kind)) {
					step->chunk = (step->chunk + 1) % prog[rank].nchunks;
					must_be_refused(prog, 4, "another chunk");
					step->chunk = (step->chunk + prog[rank].nchunks - 1) %
						      prog[rank].nchunks;
				}
				if (step->kind != TTI_COPY) {
					const int peer = step->peer;

					step->peer = (peer + 1) % 4;
					must_be_refused(prog, 4, "another peer");
					step->peer = peer;
				}
				drop(&prog[rank], i);
				must_be_refused(prog, 4, "a step is missing");
				release(prog, 4);
			}
	assert_true(tried > 300);
}

static void refused(const char *text, const char *expected)
{
	struct tti_program *prog;
	tutti_status st;
	int n;

	if (tti_program_read(text, &prog, &n) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	st = tti_program_check(prog, n, 1, TTI_ORDER_ANY);
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
	tti_free(prog);
	if (!expected && st != TUTTI_OK)
		fail_msg("refused: %s", tti_error_text());
	if (expected && (st != TUTTI_EINVAL || !strstr(tti_error_text(), expected)))
		fail_msg("expected \"%s\", is \"%s\"", expected,
			 st == TUTTI_EINVAL ? tti_error_text() : "accepted");
}

#define GATHER_OF_2 "program gather algorithm test n 2 root 0 chunks 2\n"
#define SUM_OF_2    "program all_reduce algorithm test n 2 root 0 chunks 1\n"
#define SWAP_OF_2   "program all_to_all algorithm test n 2 root 0 chunks 4\n"
#define MEET_1      " notify to 1\n wait for 1\n"
#define MEET_0      " notify to 0\n wait for 0\n"

static void access_outside_a_program(void **state)
{
	(void)state;
	refused(GATHER_OF_2 "rank 0\n notify to 1\n copy chunk 0\n wait for 1\n"
			    "rank 1\n wait for 0\n put chunk 1 to 0\n notify to 0\n",
		NULL);
	refused(GATHER_OF_2 "rank 0\n copy chunk 0\n wait for 1\n"
			    "rank 1\n put chunk 1 to 0\n notify to 0\n",
		"rank 1, step 0: chunk 1 of rank 0 is written before any wait for that rank, which "
		"may not have begun");
	refused(GATHER_OF_2 "rank 0\n notify to 1\n copy chunk 0\n"
			    "rank 1\n wait for 0\n put chunk 1 to 0\n",
		"rank 0 ends without a wait for rank 1, step 1, which touches its memory");
	refused(GATHER_OF_2 "rank 0\n notify to 1\n copy chunk 0\n"
			    "rank 1\n wait for 0\n put chunk 1 to 0\n notify to 0\n",
		"rank 1, step 2: rank 0 is notified, which waits for only 0 notifies of rank 1");
	refused(GATHER_OF_2 "rank 0\n notify to 1\n copy chunk 0\n wait for 1\n wait for 1\n"
			    "rank 1\n wait for 0\n put chunk 1 to 0\n notify to 0\n",
		"rank 0, step 3: waits for rank 1, which sends only 1 notifies to rank 0");
	refused(GATHER_OF_2 "rank 0\n notify to 1\n copy chunk 0\n wait for 1\n"
			    "rank 1\n wait for 0\n put chunk 0 to 0\n notify to 0\n",
		"rank 1, step 1: chunk 0 is sent before it has a value");
	refused(GATHER_OF_2 "rank 0\n wait for 1\n notify to 1\n copy chunk 0\n wait for 1\n"
			    "rank 1\n wait for 0\n notify to 0\n put chunk 1 to 0\n notify to 0\n",
		"deadlock with 1 slot per link: rank 0, step 0 (wait), waits for rank 1 to notify "
		"it; rank 1, step 0 (wait), waits for rank 0 to notify it");
}

static void sums_that_are_not_right(void **state)
{
	(void)state;
	refused(SUM_OF_2 "rank 0\n" MEET_1 " get_reduce chunk 0 from 1\n put chunk 0 to 1\n" MEET_1
			 "rank 1\n" MEET_0 MEET_0,
		"rank 0, step 2: chunk 0 is complete but not marked final");
	refused(SUM_OF_2 "rank 0\n" MEET_1 " get_reduce chunk 0 from 1\n"
			 " get_reduce chunk 0 from 1 final\n put chunk 0 to 1\n" MEET_1
			 "rank 1\n" MEET_0 MEET_0,
		"rank 0, step 2: chunk 0 is complete but not marked final");
}

static void accesses_that_nothing_orders(void **state)
{
	(void)state;
	/* Both write rank 1's output. */
	refused(SUM_OF_2 "rank 0\n" MEET_1
			 " get_reduce chunk 0 from 1 final\n put chunk 0 to 1\n" MEET_1
			 "rank 1\n" MEET_0 " get_reduce chunk 0 from 0 final\n" MEET_0,
		"rank 0, step 3: chunk 0 of rank 1 is written while rank 1, step 2, may still "
		"write "
		"that memory");
	/* In place, what rank 0 reads is what rank 1 writes. */
	refused(SUM_OF_2 "rank 0\n" MEET_1 " get_reduce chunk 0 from 1 final\n" MEET_1
			 "rank 1\n" MEET_0 " get_reduce chunk 0 from 0 final\n" MEET_0,
		NULL);
	refused(SUM_OF_2 "rank 0\n" MEET_1 " get_reduce chunk 0 from 1 final\n" MEET_1
			 "rank 1 in_place\n" MEET_0 " get_reduce chunk 0 from 0 final\n" MEET_0,
		"rank 0, step 2: chunk 0 of rank 1 is read while rank 1, step 2, may still write "
		"that memory");
	refused(SUM_OF_2 "rank 0 in_place\n" MEET_1 " get_reduce chunk 0 from 1 final\n" MEET_1
			 "rank 1\n" MEET_0 " get_reduce chunk 0 from 0 final\n" MEET_0,
		"rank 0, step 2: chunk 0 of rank 0 is written while rank 1, step 2, may still read "
		"that memory");
	refused(SWAP_OF_2 "rank 0\n" MEET_1
			  " put chunk 1 to 1\n get chunk 2 from 1\n copy chunk 0\n" MEET_1
			  "rank 1\n" MEET_0 " copy chunk 3\n" MEET_0,
		NULL);
	refused(SWAP_OF_2 "rank 0\n" MEET_1
			  " put chunk 1 to 1\n get chunk 2 from 1\n copy chunk 0\n" MEET_1
			  "rank 1 in_place\n" MEET_0 " copy chunk 3\n" MEET_0,
		"rank 0, step 3: chunk 2 of rank 1 is read after chunk 1 was written to that "
		"memory, "
		"in place");
}

/* Messages, each read where its sender has it. */
static void messages_are_read(void **state)
{
	(void)state;
	refused("program send_recv algorithm test n 2 root 0 chunks 2\n"
		"rank 0\n" MEET_1 " get chunk 0 from 1\n notify to 1\n wait for 1\n"
		"rank 1\n" MEET_0 " get chunk 1 from 0\n notify to 0\n wait for 0\n",
		NULL);
	refused("program send_recv algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n wait for 1\n get chunk 0 from 1\nrank 1\n notify to 0\n",
		"rank 1 ends without a wait for rank 0, step 1, which touches its memory");
}

/* Where buffers are is said at the beginning, and to all: who has not heard that one is not reached
 * would do what the others do not. */
static void all_hear_where_buffers_are(void **state)
{
	(void)state;
	refused("program scatter algorithm test n 2 root 0 chunks 2\n"
		"rank 0\n copy chunk 0\n notify to 1\n wait for 1\n"
		"rank 1\n wait for 0\n get chunk 1 from 0\n notify to 0\n",
		"rank 1, step 0: a wait for rank 0, step 1: both must be of the first meeting of "
		"their rank, before it moves data, or neither");
	/* Rank 1 has nothing to do between two meetings: the first alone says it. */
	refused(SUM_OF_2 "rank 0\n" MEET_1
			 " get_reduce chunk 0 from 1 final\n put chunk 0 to 1\n" MEET_1
			 "rank 1\n" MEET_0 MEET_0,
		NULL);
	/* Rank 2 hears of rank 0 by way of rank 1. */
	refused("program broadcast algorithm test n 3 root 0 chunks 1\n"
		"rank 0\n notify to 1\n copy chunk 0\n wait for 1\n"
		"rank 1\n wait for 0\n notify to 2\n wait for 2\n"
		" get chunk 0 from 0\n notify to 2\n wait for 2\n notify to 0\n"
		"rank 2\n wait for 1\n notify to 1\n"
		" get chunk 0 from 0\n wait for 1\n notify to 1\n",
		"rank 2 moves data, or ends, without a wait for rank 0, whose memory is touched");
}

static void steps_that_make_no_sense(void **state)
{
	(void)state;
	refused("program broadcast algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n notify to 1\n copy chunk 0\n wait for 1\n"
		"rank 1\n wait for 0\n notify to 0\n",
		"rank 1: output chunk 0 is never written");
	refused("program reduce algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n" MEET_1 " get_reduce chunk 0 from 1 final\n put chunk 0 to 1\n" MEET_1
		"rank 1\n" MEET_0 MEET_0,
		"rank 0, step 3: chunk 0 is no output of rank 1");
	refused("program broadcast algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n" MEET_1 " copy chunk 0\n" MEET_1 "rank 1\n" MEET_0 MEET_0,
		"rank 1: output chunk 0 is never written");
	refused("program broadcast algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n copy chunk 0\n send chunk 0 to 1\nrank 1\n recv chunk 0 from 0\n notify "
		"to 0\n",
		"rank 1, step 0: chunk 0 is sent or received in a program that touches memory");
	refused("program broadcast algorithm test n 3 root 0 chunks 1\n"
		"rank 0\n copy chunk 0\n send chunk 0 to 1\nrank 1\n recv chunk 0 from 0\n"
		"rank 2\n get chunk 0 from 0\n",
		"rank 0 sends or receives chunks, while other ranks touch memory of their peers");
	refused("program barrier algorithm test n 3 root 0 chunks 1\n"
		"rank 0\n notify to 1\n wait for 2\n"
		"rank 1\n wait for 0\n notify to 2\nrank 2\n wait for 1\n notify to 0\n",
		"rank 1 ends without a wait for rank 2, directly or by way of others");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_proven),
		cmocka_unit_test(messages_are_proven_in_place),
		cmocka_unit_test(in_place_edges_are_looked_at),
		cmocka_unit_test(no_notify_is_too_many),
		cmocka_unit_test(no_step_is_too_many),
		cmocka_unit_test(access_outside_a_program),
		cmocka_unit_test(sums_that_are_not_right),
		cmocka_unit_test(accesses_that_nothing_orders),
		cmocka_unit_test(messages_are_read),
		cmocka_unit_test(all_hear_where_buffers_are),
		cmocka_unit_test(steps_that_make_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
