/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that wait ask each other what they run. A handoff that is planned has stages, each a call of
 * its own: ranks may be at different ones. Where they do run different things, the text says what
 * differs, also if the words for their calls are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <semaphore.h>

#include "boot/watch/watch.h"
#include "core/call/args.h"
#include "core/comm.h"
#include "core/handle.h"
#include "core/handoff/sides.h"
#include "core/stall.h"
#include "support/world.h"

static struct tti_comm *comm_of(tutti_comm_t handle)
{
	struct tti_comm *comm = NULL;

	/* The test holds the handle until the ranks are done. */
	if (CHECK_OK(tti_handle_enter(handle, &comm)))
		tti_handle_leave(handle);
	return comm;
}

static tutti_status hand_over(tutti_comm_t handle, int *value)
{
	static const int both[] = { 0, 1 };
	const tutti_side from = { both, 1, 0 }, to = { both, 2, 0 };

	return tutti_handoff(value, value, 1, TUTTI_INT32, &from, &to, handle, NULL);
}

/* -- At different stages ------------------------------------------------------------------ */

/* Rank 1 waits for the first message of the plan, and does not look again before rank 0, which has
 * gone on, has asked it. */
struct hold {
	sem_t waits, asked;
	struct tti_comm *comm;
	struct tti_call seen[2];
};

static int hold_rank_1(void *arg)
{
	struct hold *hold = arg;

	sem_post(&hold->waits);
	sem_wait(&hold->asked);
	sem_post(&hold->asked); /* it is held once */
	return 0;
}

static int watch_rank_0(void *arg)
{
	struct hold *hold = arg;
	struct tti_comm *comm = hold->comm;
	bool answered;

	pthread_mutex_lock(&comm->lock);
	answered = comm->stall.suspect == 1 && comm->stall.answered;
	if (answered)
		hold->seen[1] = *comm->answer;
	pthread_mutex_unlock(&comm->lock);
	if (answered) {
		tti_stall_on_ask(comm, &hold->seen[0]);
		sem_post(&hold->asked);
	}
	return 0;
}

static void at_two_stages(tutti_comm_t handle, int rank, int n, void *arg)
{
	struct hold *hold = arg;
	int value = rank ? -1 : 7;

	(void)n;
	if (rank == 0) {
		hold->comm = comm_of(handle);
		sem_wait(&hold->waits);
	}
	tutti_set_interrupt(rank ? hold_rank_1 : watch_rank_0, hold);
	CHECK_OK(hand_over(handle, &value));
	tutti_set_interrupt(NULL, NULL);
	sem_post(&hold->asked); /* also if it failed */
	CHECK(value == 7);
	CHECK_OK(tutti_barrier(handle, NULL));
}

static void a_later_stage_is_no_mismatch(void **state)
{
	const struct world world = { .n = 2, .transport = "shm" };
	struct hold hold = { .comm = NULL };

	(void)state;
	sem_init(&hold.waits, 0, 0);
	sem_init(&hold.asked, 0, 0);
	assert_int_equal(world_run(&world, at_two_stages, &hold), 0);
	/* So it was. */
	assert_int_equal(hold.seen[0].stage, TTI_STAGE_PROOFS);
	assert_int_equal(hold.seen[1].stage, TTI_STAGE_DECISION);
	assert_true(hold.seen[0].seq == hold.seen[1].seq && hold.seen[1].running);
	assert_true(hold.seen[0].signature != hold.seen[1].signature);
	sem_destroy(&hold.waits);
	sem_destroy(&hold.asked);
}

/* -- What the words leave out --------------------------------------------------------------- */

/* What rank 1 would answer that ran the call of rank 0 otherwise. */
struct answer {
	void (*change)(struct tti_call *call);
	const char *text; /* NULL: it is no mismatch */
	struct tti_comm *comm;
	bool given;
	sem_t may_come;
};

static void another_stage(struct tti_call *call)
{
	call->signature ^= 1;
	call->stage++;
}

static void another_way(struct tti_call *call)
{
	call->signature ^= 1;
	(void)snprintf(call->way, sizeof(call->way), "pigeon");
}

static void another_choice(struct tti_call *call)
{
	call->signature ^= 1;
}

static void other_arguments(struct tti_call *call)
{
	call->signature ^= 1;
	call->name ^= 1;
	call->stage++;
}

static void another_call(struct tti_call *call)
{
	other_arguments(call);
	(void)snprintf(call->text, sizeof(call->text), "waltz()");
}

static int answer_rank_0(void *arg)
{
	struct answer *answer = arg;
	struct tti_comm *comm = answer->comm;
	struct tti_call call;
	bool asked;

	pthread_mutex_lock(&comm->lock);
	asked = comm->stall.suspect == 1;
	pthread_mutex_unlock(&comm->lock);
	if (!asked || answer->given)
		return 0;
	answer->given = true;
	tti_stall_on_ask(comm, &call);
	answer->change(&call);
	tti_stall_on_answer(comm, 1, &call);
	sem_post(&answer->may_come);
	return 0;
}

static void ask_in_vain(tutti_comm_t handle, int rank, int n, void *arg)
{
	struct answer *answer = arg;
	int value = 7;
	tutti_status st;

	(void)n;
	if (rank == 0) {
		answer->comm = comm_of(handle);
		tutti_set_interrupt(answer_rank_0, answer);
	} else {
		sem_wait(&answer->may_come);
	}
	st = hand_over(handle, &value);
	tutti_set_interrupt(NULL, NULL);
	if (rank == 0)
		sem_post(&answer->may_come); /* also if it failed */
	if (!answer->text) {
		CHECK_OK(st);
		CHECK_OK(tutti_barrier(handle, NULL));
	} else {
		CHECK(st == TUTTI_EMISMATCH);
		if (!CHECK(strstr(tutti_last_error(handle), answer->text)))
			fprintf(stderr, "  %s\n", tutti_last_error(handle));
	}
}

static void texts_name_what_differs(void **state)
{
	struct answer answers[] = {
		{ .change = another_stage },
		{ .change = another_way,
		  .text = "slots) to compare proofs of its plan, rank 1 by pigeon" },
		{ .change = another_choice,
		  .text = "but what they chose for other buffers comes to" },
		{ .change = other_arguments, .text = "but not all that it was passed is the same" },
		{ .change = another_call, .text = "from 0 to 0-1), rank 1 waltz()" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		const struct world world = { .n = 2, .transport = "shm" };

		sem_init(&answers[i].may_come, 0, 0);
		if (world_run(&world, ask_in_vain, &answers[i]) > 0)
			fail_msg("case %zu", i);
		assert_true(answers[i].given);
		sem_destroy(&answers[i].may_come);
	}
}

/* Sides of so many ranks that their text is cut. */
static void long_sides_differ_in_words(void **state)
{
	enum { MANY = 60 };
	char texts[2][TTI_SIDES_TEXT];
	int ranks[MANY];

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct tti_args args = { .coll = TUTTI_HANDOFF };
		const tutti_side side = { ranks, MANY, 0 };

		for (int i = 0; i < MANY; i++)
			ranks[i] = 2 * i;
		ranks[MANY - 1] += k;
		args.from = args.to = &side;
		assert_int_equal(tti_sides_keep(&args), TUTTI_OK);
		tti_sides_format(args.sides, texts[k], sizeof(texts[k]));
		tti_sides_drop(args.sides);
	}
	assert_non_null(strstr(texts[0], "... (60 ranks to 60)#"));
	assert_string_not_equal(texts[0], texts[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_stage_is_no_mismatch),
		cmocka_unit_test(texts_name_what_differs),
		cmocka_unit_test(long_sides_differ_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
