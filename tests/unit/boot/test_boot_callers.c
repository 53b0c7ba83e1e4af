/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that wait in a call of some ask who has not come: three ranks of one process, whose mail is
 * delivered at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <time.h>

#include "boot/base.h"
#include "boot/family/dispatcher.h"
#include "boot/watch/callers.h"
#include "boot/watch/watch.h"
#include "util/error.h"

#define N          3
#define CONTEXT    77
#define TIMEOUT_MS 5000

static const int all[N] = { 0, 1, 2 }, some[] = { 2, 0 };

struct ranks {
	struct tti_boot *boots[N];
	struct tti_callers *callers[N];
};

static int begin(void **state)
{
	static struct ranks ranks;
	const struct tti_watch_events events = { 0 };

	if (tti_boot_local_create(N, NULL, ranks.boots) != TUTTI_OK)
		return 1;
	for (int rank = 0; rank < N; rank++)
		if (tti_watch_start(ranks.boots[rank], &events) != TUTTI_OK ||
		    tti_callers_create(ranks.boots[rank], CONTEXT, &ranks.callers[rank]) !=
			    TUTTI_OK)
			return 1;
	*state = &ranks;
	return 0;
}

static int end(void **state)
{
	struct ranks *ranks = *state;

	for (int rank = 0; rank < N; rank++)
		tti_callers_free(ranks->callers[rank]);
	for (int rank = 0; rank < N; rank++)
		tti_boot_close(ranks->boots[rank]);
	return 0;
}

static void enter(struct ranks *ranks, int rank, const int *list, int n, int tag,
		  struct tti_group_call *call)
{
	*call = (struct tti_group_call){ .tag = tag, .n = n, .ranks = list };
	assert_int_equal(tti_callers_enter(ranks->callers[rank], call), TUTTI_OK);
}

/* As often as it takes until others are asked, and asked again. */
static tutti_status wait_for(struct ranks *ranks, int rank, struct tti_group_call *call, int peer)
{
	const struct timespec nap = { .tv_nsec = 30 * 1000 * 1000 };
	tutti_status st = TUTTI_AGAIN;

	for (int i = 0; i < 30 && st == TUTTI_AGAIN; i++) {
		st = tti_callers_wait(ranks->callers[rank], call, peer, false, TIMEOUT_MS);
		nanosleep(&nap, NULL);
	}
	return st;
}

/* The same of rank 0, while rank 1, for which it waits, does so, too: who has not for a second says
 * nothing of it. */
static tutti_status wait_for_waiter(struct ranks *ranks, struct tti_group_call calls[N])
{
	const struct timespec nap = { .tv_nsec = 30 * 1000 * 1000 };
	tutti_status st = TUTTI_AGAIN;

	for (int i = 0; i < 30 && st == TUTTI_AGAIN; i++) {
		assert_int_equal(
			tti_callers_wait(ranks->callers[1], &calls[1], 2, false, TIMEOUT_MS),
			TUTTI_AGAIN);
		st = tti_callers_wait(ranks->callers[0], &calls[0], 1, false, TIMEOUT_MS);
		nanosleep(&nap, NULL);
	}
	return st;
}

static void has_text(const char *text)
{
	if (!strstr(tti_error_text(), text))
		fail_msg("no \"%s\" in \"%s\"", text, tti_error_text());
}

static void contexts_are_alike(void **state)
{
	struct ranks *ranks = *state;
	struct tti_group_call a, b, again, other;

	enter(ranks, 0, all, N, 1, &a);
	enter(ranks, 1, all, N, 1, &b);
	assert_true(a.context == b.context);
	enter(ranks, 0, all, N, 2, &other);
	assert_true(other.context != a.context);
	again = (struct tti_group_call){ .tag = 1, .n = 2, .ranks = some };
	assert_int_equal(tti_callers_enter(ranks->callers[0], &again), TUTTI_EUSAGE);
	tti_callers_leave(ranks->callers[0], &a);
	enter(ranks, 0, all, N, 1, &again);
	assert_true(again.context != a.context);
	tti_callers_leave(ranks->callers[0], &again);
	tti_callers_leave(ranks->callers[0], &other);
	tti_callers_leave(ranks->callers[1], &b);
}

/* Rank 0 waits for rank 1, and that for rank 2, which has not called, then with another tag. */
static void the_chain_ends_at_who_has_not_called(void **state)
{
	struct ranks *ranks = *state;
	struct tti_group_call calls[N];

	enter(ranks, 0, all, N, 1, &calls[0]);
	enter(ranks, 1, all, N, 1, &calls[1]);
	assert_int_equal(wait_for(ranks, 1, &calls[1], 2), TUTTI_AGAIN);
	assert_int_equal(wait_for_waiter(ranks, calls), TUTTI_AGAIN);
	assert_int_equal(tti_callers_wait(ranks->callers[0], &calls[0], 1, true, TIMEOUT_MS),
			 TUTTI_ETIMEOUT);
	has_text("of ranks 0, 1, 2 with tag 1: rank 2 has not called it within 5000 ms");
	enter(ranks, 2, all, N, 9, &calls[2]);
	assert_int_equal(wait_for(ranks, 1, &calls[1], 2), TUTTI_AGAIN);
	assert_int_equal(tti_callers_wait(ranks->callers[1], &calls[1], 2, true, TIMEOUT_MS),
			 TUTTI_ETIMEOUT);
	has_text("it is in one of these ranks with tag 9");
	for (int rank = 0; rank < N; rank++)
		tti_callers_leave(ranks->callers[rank], &calls[rank]);
}

/* Both sides hear of it, whoever asks. A rank that has been in the other's call waits: that one is about
 * to come. */
static void other_lists_clash(void **state)
{
	struct ranks *ranks = *state;
	const struct tti_boot_config config = { .timeout_ms = TIMEOUT_MS };
	struct tti_group_call a, b;
	struct tti_boot *was;

	enter(ranks, 0, all, N, 1, &a);
	enter(ranks, 2, some, 2, 1, &b);
	assert_int_equal(tti_boot_sub_create(ranks->boots[2], a.context, NULL, N, &config, &was),
			 TUTTI_OK);
	tti_boot_close(was);
	assert_int_equal(wait_for(ranks, 2, &b, 0), TUTTI_AGAIN);
	tti_callers_leave(ranks->callers[0], &a);
	enter(ranks, 0, all, N, 1, &a);
	assert_int_equal(wait_for(ranks, 2, &b, 0), TUTTI_EMISMATCH);
	has_text("rank 2 passes ranks 2, 0; rank 0 passes ranks 0, 1, 2");
	assert_int_equal(wait_for(ranks, 0, &a, 1), TUTTI_EMISMATCH);
	has_text("rank 2 passes ranks 2, 0; rank 0 passes ranks 0, 1, 2");
	tti_callers_leave(ranks->callers[0], &a);
	tti_callers_leave(ranks->callers[2], &b);
}

/* Rank 1, which is asked, says that it waits for what is no rank: nobody is asked next because of it. */
static void answers_name_ranks(void **state)
{
	static const int32_t wrong[] = { N, INT32_MAX, -2, INT32_MIN };
	struct ranks *ranks = *state;
	struct tti_group_call call;

	enter(ranks, 0, all, N, 1, &call);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct tti_caller_answer answer = { .context = call.context,
							  .has_it = 1,
							  .waits_on = wrong[i] };
		struct tti_mail letter = { .context = CONTEXT, .kind = TTI_MAIL_THERE };

		memcpy(letter.data, &answer, sizeof(answer));
		assert_int_equal(wait_for(ranks, 0, &call, 1), TUTTI_AGAIN);
		assert_int_equal(ranks->boots[1]->ops->mail(ranks->boots[1], 0, &letter,
							    TTI_MAIL_HEAD + sizeof(answer)),
				 TUTTI_OK);
		assert_int_equal(tti_callers_wait(ranks->callers[0], &call, 1, false, TIMEOUT_MS),
				 TUTTI_AGAIN);
		assert_int_equal(call.suspect, 1);
	}
	tti_callers_leave(ranks->callers[0], &call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(contexts_are_alike, begin, end),
		cmocka_unit_test_setup_teardown(the_chain_ends_at_who_has_not_called, begin, end),
		cmocka_unit_test_setup_teardown(other_lists_clash, begin, end),
		cmocka_unit_test_setup_teardown(answers_name_ranks, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
