/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/wait.h"

#define STEPS 500

/* A port that leads to a peer and counts how often somebody sleeps on it. */
struct bed {
	struct tti_port port;
	int sleeps;
	int64_t longest_ns;
};

static void sleep_on(struct tti_port *port, int64_t timeout_ns)
{
	struct bed *bed = (struct bed *)port;

	bed->sleeps++;
	if (bed->longest_ns < timeout_ns)
		bed->longest_ns = timeout_ns;
}

static const struct tti_sleep_ops sleep_ops = { .wait = sleep_on };
static const struct tti_transport bedroom = { .name = "bed", .sleep = &sleep_ops };

static int sleeps_of(const _Atomic int *awaited, struct bed *bed)
{
	static const uint8_t port_of[2] = { 0, 0 };
	const struct tti_engine_config config = {
		.n = 2,
		.ports = { &bed->port },
		.nports = 1,
		.port_of = port_of,
		.spin_rounds = 2 * STEPS,
	};
	struct tti_wait wait = { 0 };
	struct tti_engine engine;

	*bed = (struct bed){ .port = { .transport = &bedroom, .nranks = 2 } };
	assert_int_equal(tti_engine_init(&engine, &config), TUTTI_OK);
	tti_wait_beside(awaited);
	for (int i = 0; i < STEPS; i++)
		assert_int_equal(tti_wait_step(&wait, &engine, 1, true), TUTTI_AGAIN);
	tti_wait_beside(NULL);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_a_computation_every_wait_sleeps),
		cmocka_unit_test(who_is_awaited_spins_as_any_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
