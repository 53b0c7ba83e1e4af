/* SPDX-License-Identifier: BSD-3-Clause */
/* Every call of the driver fails in turn, while communicators of ranks with GPUs are made, get lanes and
 * end: an error with a text, and nothing is left.
 *   TEST_EACH  every call; else some of those of two ranks, as a rank that fails waits for news, and fewer
 *              under sanitizers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

#include "core/call/args.h"
#include "faults.h"
#include "gpu.h"
#include "ranks.h"
#include "support/sanitizer.h"
#include "util/fault.h"

static tutti_status connected[RANKS_MOST];

static void connect_one(tutti_comm_t comm, int rank)
{
	connected[rank] = ranks_connect(ranks_inside(comm));
	if (connected[rank] != TUTTI_OK)
		assert_true(strlen(tutti_last_error(NULL)) > 0);
}

/* What came of it: whether a rank had an error. */
static bool live(int n, const int *devices)
{
	struct ranks ranks;
	bool failed;

	ranks_make(&ranks, n, devices, true);
	failed = ranks.status[0] != TUTTI_OK;
	for (int rank = 0; rank < n; rank++)
		assert_true(ranks.status[rank] == TUTTI_OK || strlen(ranks.text[rank]) > 0);
	if (!failed) {
		ranks_do(&ranks, connect_one);
		for (int rank = 0; rank < n; rank++)
			failed |= connected[rank] != TUTTI_OK;
	}
	ranks_end(&ranks);
	return failed;
}

/* One of `step` calls. */
static void fail_each(int n, const int *devices, int error, unsigned step)
{
	int nfailed = 0;

	if (getenv("TEST_EACH"))
		step = 1;
	else if (SANITIZED)
		step = 2 * step + 1;
	assert_false(live(n, devices));
	faults_keep();
	for (uint64_t skipped = 0;; skipped += step) {
		const uint64_t before = faults_calls();

		faults_set(skipped, error);
		nfailed += live(n, devices);
		faults_none();
		faults_assert_nothing_held(skipped);
		/* The call that was to fail did not come. */
		if (faults_calls() - before <= skipped)
			break;
	}
	/* What is released is tried again, and what is only asked has another way. */
	print_message("%d ranks, error %d: %d lives had an error\n", n, error, nfailed);
	assert_true(nfailed > (SANITIZED ? 4 : 10));
}

static void one_rank(void **state)
{
	static const int devices[] = { 1 };

	(void)state;
	fail_each(1, devices, UNKNOWN, 1);
	assert_false(live(1, devices));
}

static void two_ranks_of_one_gpu(void **state)
{
	static const int devices[] = { 0, 0 };

	(void)state;
	fail_each(2, devices, OUT_OF_MEMORY, 9);
	assert_false(live(2, devices));
}

static void ranks_of_two_gpus(void **state)
{
	static const int devices[] = { 0, 1 };

	(void)state;
	fail_each(2, devices, UNKNOWN, 4);
	assert_false(live(2, devices));
}

/* -- Registered memory ------------------------------------------------------------------------- */

#define COUNT 200000

static struct ranks summing;
static struct gpu_buffer buffers[RANKS_MOST];

/* Whoever is not reached makes all go by slots. */
static void register_and_sum(tutti_comm_t comm, int rank)
{
	const int n = summing.n;
	uint32_t *view = (uint32_t *)(void *)buffers[rank].view;
	tutti_reg_t reg = NULL;
	tutti_status status;

	for (uint32_t i = 0; i < COUNT; i++)
		view[i] = i + (uint32_t)rank;
	status = tutti_register(comm, buffers[rank].memory, buffers[rank].nbytes, &reg);
	if (status == TUTTI_OK)
		status = tutti_all_reduce(buffers[rank].memory, buffers[rank].memory, COUNT,
					  TUTTI_UINT32, TUTTI_SUM, comm, NULL);
	for (uint32_t i = 0; i < COUNT && status == TUTTI_OK; i++)
		if (view[i] != i * (uint32_t)n + (uint32_t)(n * (n - 1) / 2))
			abort();
	connected[rank] = status;
	if (status != TUTTI_OK && strlen(tutti_last_error(NULL)) == 0)
		abort();
	if (tutti_deregister(comm, reg) != TUTTI_OK)
		abort();
	/* What fails before the call has its number the others do not hear of. */
	if (status != TUTTI_OK) {
		summing.comm[rank] = NULL;
		(void)tutti_comm_abort(comm);
	}
}

/* One of `step` calls that a registration and a sum make fails. */
static void registered_memory(void **state)
{
	static const int devices[] = { 0, 1 };
	const unsigned step = getenv("TEST_EACH") ? 1 : SANITIZED ? 11 : 3;
	int nfailed = 0;
	uint64_t skipped = 0, made;

	(void)state;
	for (int rank = 0; rank < 2; rank++)
		gpu_alloc(&buffers[rank], devices[rank], COUNT * sizeof(uint32_t));
	do {
		const uint64_t before = faults_calls();
		uint64_t begun;

		ranks_make(&summing, 2, devices, false);
		/* Lanes are there: calls of those have failed above. */
		ranks_do(&summing, connect_one);
		begun = faults_calls();
		faults_set(skipped, UNKNOWN);
		ranks_do(&summing, register_and_sum);
		faults_none();
		made = faults_calls() - begun;
		nfailed += connected[0] != TUTTI_OK || connected[1] != TUTTI_OK;
		/* A rank that has no error has no reason for one later. */
		if (connected[0] == TUTTI_OK && connected[1] == TUTTI_OK)
			ranks_do(&summing, register_and_sum);
		ranks_end(&summing);
		assert_true(begun > before);
		skipped += step;
	} while (made > skipped - step);
	print_message("%d sums had an error\n", nfailed);
	assert_true(nfailed > 0);
	for (int rank = 0; rank < 2; rank++)
		gpu_free(&buffers[rank]);
	faults_assert_nothing_held(skipped);
}

/* One rank, while allocations fail; whether something failed. */
static bool live_with(const char *fault)
{
	const struct tti_args args = { .coll = TUTTI_BARRIER };
	struct tti_device_need need = { .args = &args, .status = TUTTI_EINTERNAL };
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm;

	config.device = 1;
	tti_fault_set(fault);
	if (tutti_comm_init_all(&comm, 1, &config) == TUTTI_OK) {
		need.comm = ranks_inside(comm);
		tti_device_connect(&need, 1);
		(void)tutti_comm_destroy(comm);
	}
	tti_fault_set(NULL);
	return need.status != TUTTI_OK;
}

/* Memory of the host that is not there: every allocation in turn. */
static void allocations_of_the_host(void **state)
{
	char fault[32];
	int passed = 0, nfailed = 0;

	(void)state;
	assert_false(live_with(NULL));
	faults_keep();
	/* The last ones are past the end. */
	for (int count = 1; passed < 5; count++) {
		(void)snprintf(fault, sizeof(fault), "mem:%d", count);
		passed = live_with(fault) ? 0 : passed + 1;
		nfailed += passed == 0;
		faults_assert_nothing_held((uint64_t)count);
	}
	print_message("%d lives lacked memory of the host\n", nfailed);
	assert_true(nfailed > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rank),
		cmocka_unit_test(two_ranks_of_one_gpu),
		cmocka_unit_test(ranks_of_two_gpus),
		cmocka_unit_test(registered_memory),
		cmocka_unit_test(allocations_of_the_host),
	};

	faults_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
