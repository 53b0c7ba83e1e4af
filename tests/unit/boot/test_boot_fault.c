/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory runs out, or a thread cannot be started, at every place in turn: the rank
 * concerned says so, the others hear of it, and nothing hangs, crashes or leaks. */
#include "ranks.h"

#include <unistd.h>

#include "util/fault.h"

#define NRANKS 3

struct job {
	tutti_unique_id id;
	struct tti_boot *local[NRANKS];
	bool is_local;
	_Atomic int nlost;
};

static void on_lost(void *self, const struct tti_failure *failure)
{
	struct job *job = self;

	(void)failure;
	job->nlost++;
}

static tutti_status live(struct rank *rank)
{
	struct job *job = rank->arg;
	const struct tti_watch_events events = { job, on_lost, NULL, NULL, NULL };
	const struct tti_failure failure = { .status = TUTTI_EPEER,
					     .failed_rank = -1,
					     .text = "enough" };
	uint32_t words[NRANKS] = { 0 };
	const int next = (rank->rank + 1) % NRANKS;

	if (job->is_local)
		rank->boot = job->local[rank->rank];
	else
		TTI_TRY(rank_connect(rank, &job->id, 1, 400, NULL));
	TTI_TRY(tti_boot_all_gather(rank->boot, words, sizeof(*words)));
	TTI_TRY(tti_boot_broadcast(rank->boot, 1, words, sizeof(words)));
	TTI_TRY(tti_watch_start(rank->boot, &events));
	tti_watch_ask(rank->boot, next);
	if (rank->rank == 0)
		tti_watch_notify(rank->boot, &failure);
	for (int i = 0; i < 1000 && !job->nlost; i++)
		usleep(1000);
	return TUTTI_OK;
}

static tutti_status live_and_close(struct rank *rank)
{
	const tutti_status status = live(rank);
	char text[sizeof(rank->text)];

	(void)snprintf(text, sizeof(text), "%s", tti_error_text());
	tti_boot_close(rank->boot);
	tti_error_set(text);
	return status;
}

/* Returns whether all went well. */
static bool once(const char *point, int pass, bool local)
{
	struct rank_thread threads[NRANKS] = { 0 };
	struct job job = { .is_local = local };
	char list[32];
	bool good = true;

	(void)snprintf(list, sizeof(list), "%s:%d", point, pass);
	tti_fault_set(list);
	if ((local ? tti_boot_local_create(NRANKS, NULL, job.local)
		   : tti_boot_id_create(&job.id)) != TUTTI_OK) {
		tti_fault_set(NULL);
		return false;
	}

	const int64_t start_ns = tti_now_ns();

	ranks_start(threads, NRANKS, live_and_close, &job);
	ranks_join(threads, NRANKS);
	tti_fault_set(NULL);
	assert_in_range((tti_now_ns() - start_ns) / TTI_NS_PER_MS, 0, 30000);
	for (int i = 0; i < NRANKS; i++) {
		good = good && threads[i].rank.status == TUTTI_OK;
		if (threads[i].rank.status != TUTTI_OK && threads[i].rank.text[0] == '\0')
			fail_msg("%s: rank %d failed without a word", list, i);
	}
	return good;
}

static void every_pass(const char *point, int most, int step, bool local)
{
	int nbad = 0;

	for (int pass = 1; pass <= most; pass += step)
		nbad += !once(point, pass, local);
	assert_true(nbad > 0);
}

static void memory(void **state)
{
	(void)state;
	/* All of them take half a minute. */
	every_pass("mem", 90, getenv("TEST_ALL") ? 1 : 5, false);
}

static void threads(void **state)
{
	(void)state;
	every_pass("thread", 4, 1, false);
}

static void local_memory(void **state)
{
	(void)state;
	every_pass("mem", 14, 1, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory),
		cmocka_unit_test(threads),
		cmocka_unit_test(local_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
