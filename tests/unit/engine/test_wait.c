/* SPDX-License-Identifier: BSD-3-Clause */
/* How a wait goes on, with a clock, a yield and a transport of the test's own. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "engine/wait.h"
#include "util/clock.h"

#define STEPS 500
#define MS    TTI_NS_PER_MS

/* Time passes only by yields, and where a test says so. */
static int64_t now_ns = 1, yield_ns;
static int yields;

int clock_gettime(clockid_t clock, struct timespec *out)
{
	(void)clock;
	out->tv_sec = (time_t)(now_ns / 1000000000);
	out->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

int sched_yield(void)
{
	const uint64_t begin = tti_ticks();

	now_ns += yield_ns;
	/* Ticks may be the processor's own. */
	while (yield_ns && tti_ticks() - begin < (1 << 20))
		continue;
	yields++;
	return 0;
}

/* A port that leads to a peer and counts how often somebody sleeps on it. */
struct bed {
	struct tti_port port;
	int sleeps;
	int64_t longest_ns;
	uint32_t missing; /* of the last sleep, as the next one */
	const struct tti_link *awaited;
};

static void sleep_on(struct tti_port *port, int64_t timeout_ns)
{
	struct bed *bed = (struct bed *)port;

	bed->sleeps++;
	bed->missing = port->missing;
	bed->awaited = port->awaited;
	if (bed->longest_ns < timeout_ns)
		bed->longest_ns = timeout_ns;
}

static const struct tti_sleep_ops sleep_ops = { .wait = sleep_on };
static const struct tti_transport bedroom = { .name = "bed", .sleep = &sleep_ops };

static void prepare(struct bed *bed, struct tti_engine *engine, bool oversubscribed, int64_t spins)
{
	static const uint8_t port_of[2] = { 0, 0 };
	const struct tti_engine_config config = {
		.n = 2,
		.ports = { &bed->port },
		.nports = 1,
		.port_of = port_of,
		.oversubscribed = oversubscribed,
		.spin_rounds = spins,
	};

	*bed = (struct bed){ .port = { .transport = &bedroom, .nranks = 2 } };
	assert_int_equal(tti_engine_init(engine, &config), TUTTI_OK);
	yields = 0;
}

static void step(struct tti_wait *wait, struct tti_engine *engine, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(tti_wait_step(wait, engine, 1, true), TUTTI_AGAIN);
}

static int sleeps_of(const _Atomic int *awaited, struct bed *bed)
{
	struct tti_wait wait = { 0 };
	struct tti_engine engine;

	prepare(bed, &engine, false, 2 * STEPS);
	tti_wait_set_background(awaited);
	step(&wait, &engine, STEPS);
	tti_wait_set_background(NULL);
	tti_engine_release(&engine);
	return bed->sleeps;
}

static void beside_a_computation_every_wait_sleeps(void **state)
{
	_Atomic int awaited = 0;
	struct bed bed;

	(void)state;
	/* But the first, which looks at the clock. */
	assert_int_equal(sleeps_of(&awaited, &bed), STEPS - 1);
	assert_true(bed.longest_ns > 1000 * 1000);
}

static void who_is_awaited_spins_as_any_thread(void **state)
{
	_Atomic int awaited = 1;
	struct bed bed;

	(void)state;
	assert_int_equal(sleeps_of(&awaited, &bed), 0);
	assert_int_equal(sleeps_of(NULL, &bed), 0);
}

static void a_brief_wait_leaves_the_clock_to_the_step(void **state)
{
	_Atomic int awaited = 0;
	struct tti_wait wait = { 0 };
	struct tti_engine engine;
	struct bed bed;
	int brief = 0;

	(void)state;
	prepare(&bed, &engine, true, -1);
	while (brief < STEPS && tti_wait_briefly(&wait, &engine))
		brief++;
	assert_in_range(brief, 1, STEPS - 1);
	assert_int_equal(yields, brief);
	/* The clock is looked at, and then it may go on. */
	step(&wait, &engine, 1);
	assert_int_not_equal(wait.since_ns, 0);
	assert_true(tti_wait_briefly(&wait, &engine));
	/* Where the step would sleep, nothing is done. */
	yields = 0;
	tti_wait_set_background(&awaited);
	assert_false(tti_wait_briefly(&wait, &engine));
	tti_wait_set_background(NULL);
	assert_int_equal(yields, 0);
	tti_engine_release(&engine);
}

/* -- Dear yields ----------------------------------------------------------------- */

static void yields_are_expensive_if_too_many_are_long(void **state)
{
	struct tti_yields known = { 0 };

	(void)state;
	/* One in 80, however long, costs less than sleeping. */
	for (int i = 0; i < 1000; i++) {
		tti_yields_took(&known, (10 + i) * MS, 40 * MS, 80);
		assert_false(tti_yields_are_expensive(&known, (10 + i) * MS));
	}
	/* Nor is a yield long in which a peer computes. */
	for (int i = 0; i < 1000; i++) {
		tti_yields_took(&known, 1100 * MS, MS / 2, 0);
		assert_false(tti_yields_are_expensive(&known, 1100 * MS));
	}
	/* Three in a row are too many. */
	known = (struct tti_yields){ 0 };
	for (int i = 0; i < 3; i++) {
		assert_false(tti_yields_are_expensive(&known, 2000 * MS));
		tti_yields_took(&known, 2000 * MS, MS / 2 + 1, 0);
	}
	assert_true(tti_yields_are_expensive(&known, 2000 * MS));
	assert_true(tti_yields_are_expensive(&known, 2020 * MS - 1));
	assert_false(tti_yields_are_expensive(&known, 2020 * MS));
	assert_false(tti_yields_are_expensive(&known, 2021 * MS));
	/* And so is one in 51. */
	known = (struct tti_yields){ 0 };
	for (int i = 0; i < 5; i++) {
		assert_false(tti_yields_are_expensive(&known, 2000 * MS));
		tti_yields_took(&known, 2000 * MS, 4 * MS, 50);
	}
	assert_true(tti_yields_are_expensive(&known, 2000 * MS));
}

/* As long as a job beside stays, a yield a second is lost to finding out. */
static void dear_again_is_dear_for_longer(void **state)
{
	static const int64_t lasts[] = { 20, 40, 80, 160, 320, 640, 1000, 1000 };
	struct tti_yields known = { 0 };
	int64_t now = MS;

	(void)state;
	tti_yields_took(&known, now, 4 * MS, 0);
	tti_yields_took(&known, now, 4 * MS, 0);
	for (size_t i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++) {
		tti_yields_took(&known, now, 4 * MS, 30);
		assert_true(tti_yields_are_expensive(&known, now + lasts[i] * MS - 1));
		now += lasts[i] * MS;
		assert_false(tti_yields_are_expensive(&known, now));
		now += lasts[i] * MS - 1;
	}
	/* It was calm for as long as it was expensive. */
	now += MS;
	tti_yields_took(&known, now, 4 * MS, 30);
	assert_true(tti_yields_are_expensive(&known, now + 20 * MS - 1));
	assert_false(tti_yields_are_expensive(&known, now + 20 * MS));
	/* And short ones make up for what was lost. */
	tti_yields_took(&known, now + 20 * MS, 4 * MS, 1000);
	assert_false(tti_yields_are_expensive(&known, now + 20 * MS));
}

/* Each in a thread of its own, as what is known of yields is a thread's. */
static void *share_cores_beside_a_job(void *unused)
{
	struct tti_wait wait = { 0 };
	struct tti_engine engine;
	struct bed bed;

	prepare(&bed, &engine, true, -1);
	step(&wait, &engine, 3);
	assert_int_equal(yields, 3);
	assert_int_equal(bed.sleeps, 0);
	/* The clock is looked at first, then it sleeps, in this wait and in others. */
	step(&wait, &engine, 11);
	assert_int_equal(bed.sleeps, 10);
	wait = (struct tti_wait){ 0 };
	step(&wait, &engine, 11);
	assert_int_equal(bed.sleeps, 20);
	assert_int_equal(yields, 3);
	/* The job is still there after that time, which one long yield shows. */
	now_ns += 100 * MS;
	wait = (struct tti_wait){ 0 };
	step(&wait, &engine, 12);
	assert_int_equal(yields, 4);
	assert_int_equal(bed.sleeps, 30);
	/* It is over: back to yields, which are cheap. */
	now_ns += 200 * MS;
	yield_ns = 0;
	wait = (struct tti_wait){ 0 };
	step(&wait, &engine, STEPS);
	assert_int_equal(yields, 4 + STEPS);
	assert_int_equal(bed.sleeps, 30);
	/* A new one is noticed after a few. */
	yield_ns = 10000 * MS;
	wait = (struct tti_wait){ 0 };
	step(&wait, &engine, 20);
	assert_in_range(yields, 4 + STEPS + 3, 4 + STEPS + 5);
	assert_true(bed.sleeps > 40);
	tti_engine_release(&engine);
	return unused;
}

static void *have_cores_beside_a_job(void *unused)
{
	struct tti_wait wait = { 0 };
	struct tti_engine engine;
	struct bed bed;

	prepare(&bed, &engine, false, 0);
	step(&wait, &engine, 3);
	assert_int_equal(yields, 3);
	wait = (struct tti_wait){ 0 };
	step(&wait, &engine, STEPS);
	assert_int_equal(yields, 3);
	assert_int_equal(bed.sleeps, 0);
	now_ns += MS / 4;
	step(&wait, &engine, STEPS);
	assert_int_equal(yields, 3);
	assert_true(bed.sleeps > 0);
	tti_engine_release(&engine);
	return unused;
}

static void *yield_quietly(void *unused)
{
	struct tti_wait wait = { 0 };
	struct tti_engine engine;
	struct bed bed;

	prepare(&bed, &engine, true, -1);
	step(&wait, &engine, STEPS);
	assert_int_equal(yields, STEPS);
	assert_int_equal(bed.sleeps, 0);
	/* A long wait sleeps all the same. */
	now_ns += MS / 4;
	step(&wait, &engine, STEPS);
	assert_true(bed.sleeps > 0);
	tti_engine_release(&engine);
	return unused;
}

static void run(void *(*body)(void *), int64_t a_yield_ns)
{
	pthread_t thread;

	yield_ns = a_yield_ns;
	assert_int_equal(pthread_create(&thread, NULL, body, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	yield_ns = 0;
}

static void ranks_that_share_cores_sleep_while_yields_are_expensive(void **state)
{
	(void)state;
	run(share_cores_beside_a_job, 10000 * MS);
}

static void ranks_with_cores_of_their_own_spin_while_yields_are_expensive(void **state)
{
	(void)state;
	run(have_cores_beside_a_job, 10000 * MS);
}

static void cheap_yields_go_on(void **state)
{
	(void)state;
	run(yield_quietly, 0);
}

/* -- What ends a wait that sleeps --------------------------------------------------- */

static tutti_status never_mind(void *self, int64_t since_ns, int peer)
{
	int *const told = self;

	assert_true(since_ns > 0);
	assert_int_equal(peer, 1);
	return ++*told == 3 ? TUTTI_ETIMEOUT : TUTTI_OK;
}

static void abort_failure_and_deadline_end_a_wait_that_sleeps(void **state)
{
	_Atomic int awaited = 0, stop = 0;
	const struct tti_link link = { .peer = 1 };
	struct tti_wait wait = { 0 };
	struct tti_engine engine;
	struct bed bed;
	int told = 0;

	(void)state;
	prepare(&bed, &engine, false, -1);
	engine.config.stop = &stop;
	engine.config.events.self = &told;
	engine.config.events.on_wait = never_mind;
	tti_wait_set_background(&awaited);
	step(&wait, &engine, 10);
	assert_int_equal(bed.sleeps, 9);
	assert_int_equal(bed.missing, 0);
	wait.missing = 1;
	wait.awaited = &link;
	step(&wait, &engine, 1);
	assert_int_equal(bed.missing, 1);
	assert_ptr_equal(bed.awaited, &link);
	/* No sleep is so long that these are seen late. */
	assert_true(bed.longest_ns <= 5 * MS);
	stop = 1;
	assert_int_equal(tti_wait_step(&wait, &engine, 1, true), TUTTI_EABORTED);
	stop = 0;
	bed.port.failure = TUTTI_EPEER;
	assert_int_equal(tti_wait_step(&wait, &engine, 1, true), TUTTI_EPEER);
	bed.port.failure = TUTTI_OK;
	for (int i = 0; i < 2; i++) {
		now_ns += 60 * MS;
		step(&wait, &engine, 2);
	}
	assert_int_equal(told, 2);
	now_ns += 60 * MS;
	assert_int_equal(tti_wait_step(&wait, &engine, 1, true), TUTTI_ETIMEOUT);
	tti_wait_set_background(NULL);
	tti_engine_release(&engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_a_computation_every_wait_sleeps),
		cmocka_unit_test(who_is_awaited_spins_as_any_thread),
		cmocka_unit_test(a_brief_wait_leaves_the_clock_to_the_step),
		cmocka_unit_test(yields_are_expensive_if_too_many_are_long),
		cmocka_unit_test(dear_again_is_dear_for_longer),
		cmocka_unit_test(ranks_that_share_cores_sleep_while_yields_are_expensive),
		cmocka_unit_test(ranks_with_cores_of_their_own_spin_while_yields_are_expensive),
		cmocka_unit_test(cheap_yields_go_on),
		cmocka_unit_test(abort_failure_and_deadline_end_a_wait_that_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
