/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that their maker runs, among those of the engine: they end as they say, and by whatever
 * ends a job; and a wait counts from when the job began to wait for a peer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/bed.h"
#include "util/clock.h"
#include "util/error.h"

struct runner {
	struct bed bed;
	struct tti_job job[2];
	int polls, moves, ends_at;
	int64_t since_ns; /* what the jobs say, and what was heard */
	int heard, heard_peer;
	int64_t heard_ns;
	tutti_status answer;
};

static tutti_status on_wait(void *self, int64_t since_ns, int peer)
{
	struct runner *runner = self;

	runner->heard++;
	runner->heard_ns = since_ns;
	runner->heard_peer = peer;
	return runner->answer;
}

static bool poll(struct tti_job *job)
{
	struct runner *runner = job->self;

	runner->polls++;
	job->waits_since_ns = runner->since_ns;
	job->waiting_on = 1;
	if (runner->polls == runner->ends_at)
		job->status = TUTTI_OK;
	return runner->polls <= runner->moves;
}

static void begin(struct runner *runner, int njobs)
{
	const struct bed_config config = { .n = 2, .mock = { .slot_bytes = 64, .slots = 2 } };

	*runner = (struct runner){ .answer = TUTTI_EREVOKED };
	bed_init(&runner->bed, &config);
	for (int i = 0; i < njobs; i++) {
		struct tti_engine *engine = &runner->bed.engine[i];

		engine->config.events = (struct tti_engine_events){ runner, on_wait };
		tti_job_polled(&runner->job[i], engine, poll, runner);
	}
}

static tutti_status wait_for(struct runner *runner, int njobs)
{
	struct tti_job *const jobs[] = { &runner->job[0], &runner->job[1] };

	return tti_job_wait(jobs, njobs);
}

static void a_job_ends_as_it_says(void **state)
{
	static struct runner runner;

	(void)state;
	for (int moves = 0; moves <= 200; moves += 100) {
		begin(&runner, 1);
		runner.moves = moves;
		runner.ends_at = 150;
		assert_int_equal(wait_for(&runner, 1), TUTTI_OK);
		assert_int_equal(runner.polls, 150);
		assert_int_equal(runner.bed.engine[0].waiting_on, -1);
		bed_release(&runner.bed);
	}
}

static void a_stop_ends_it(void **state)
{
	static struct runner runner;

	(void)state;
	begin(&runner, 2);
	atomic_store(&runner.bed.stop, 1);
	assert_int_equal(wait_for(&runner, 2), TUTTI_EABORTED);
	assert_int_equal(runner.job[1].status, TUTTI_EABORTED);
	bed_release(&runner.bed);
}

static void a_wait_counts_from_when_it_began(void **state)
{
	static struct runner runner;

	(void)state;
	begin(&runner, 1);
	runner.since_ns = tti_now_ns() - 77 * TTI_NS_PER_MS;
	assert_int_equal(wait_for(&runner, 1), TUTTI_EREVOKED);
	assert_int_equal(runner.heard, 1);
	assert_int_equal(runner.heard_peer, 1);
	assert_true(runner.heard_ns == runner.since_ns);
	bed_release(&runner.bed);
}

static void who_works_waits_for_nobody(void **state)
{
	static struct runner runner;
	int64_t began_ns;

	(void)state;
	begin(&runner, 1);
	began_ns = tti_now_ns();
	assert_int_equal(wait_for(&runner, 1), TUTTI_EREVOKED);
	assert_int_equal(runner.heard_peer, -1);
	/* It is asked some time after it began. */
	assert_true(runner.heard_ns - began_ns >= 40 * TTI_NS_PER_MS);
	bed_release(&runner.bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_ends_as_it_says),
		cmocka_unit_test(a_stop_ends_it),
		cmocka_unit_test(a_wait_counts_from_when_it_began),
		cmocka_unit_test(who_works_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
