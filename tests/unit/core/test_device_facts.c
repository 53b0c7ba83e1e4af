/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks make of each other's facts: GPUs by number, places, lanes of one shape, who reaches whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/device/facts.h"
#include "core/init/peer_info.h"
#include "unit/util/child.h"
#include "util/error.h"
#include "util/mem.h"

#define N 6

/* Ranks 0, 1, 2 with GPUs A, A, B of one host; 3 without; 4, 5 with one GPU each of hosts of their
 * own. */
static struct tti_device_fact *make_facts(void)
{
	static const char gpus[N] = { 'A', 'A', 'B', 0, 'A', 'C' };
	static const uint64_t hosts[N] = { 10, 10, 10, 10, 11, 12 };
	struct tti_device_fact *facts = tti_calloc(N, sizeof(*facts));

	assert_non_null(facts);
	for (int rank = 0; rank < N; rank++) {
		facts[rank] = (struct tti_device_fact){ .ordinal = gpus[rank] ? 0 : -1 };
		if (!gpus[rank])
			continue;
		facts[rank].uuid[3] = (uint8_t)gpus[rank];
		facts[rank].host = hosts[rank];
		facts[rank].process = 100 + (uint64_t)rank;
		facts[rank].nresident = 132;
		facts[rank].at_most = (struct tti_lane_shape){ .nslots = 4,
							       .slot_bytes = 65536,
							       .word_bytes = 2048 };
	}
	return facts;
}

static struct tti_devices *make(struct tti_device_fact *facts)
{
	struct tti_devices *devices = NULL;

	assert_int_equal(tti_devices_create(facts, N, &devices), TUTTI_OK);
	return devices;
}

static void ranks_have_places(void **state)
{
	static const int places[N] = { 0, 1, 2, -1, 0, 0 };
	struct tti_devices *devices = make(make_facts());

	(void)state;
	assert_int_equal(devices->ndevices, 5);
	assert_int_equal(devices->nhere, 3);
	assert_memory_equal(devices->place, places, sizeof(places));
	assert_true(tti_devices_near(devices, 0, 2));
	assert_false(tti_devices_near(devices, 0, 0));
	assert_false(tti_devices_near(devices, 0, 3));
	assert_false(tti_devices_near(devices, 0, 4)); /* its GPU has the same id, elsewhere */
	tti_devices_free(devices);
}

static void reach_is_mutual(void **state)
{
	struct tti_devices *devices = make(make_facts());

	(void)state;
	assert_false(tti_devices_reach(devices, 0, 1));
	tti_devices_set_reach(devices, 0, 1);
	assert_false(tti_devices_reach(devices, 0, 1));
	assert_false(tti_devices_reach(devices, 1, 0));
	tti_devices_set_reach(devices, 1, 0);
	assert_true(tti_devices_reach(devices, 0, 1));
	assert_true(tti_devices_reach(devices, 1, 0));
	assert_false(tti_devices_reach(devices, 0, 2));
	assert_false(tti_devices_find_all_mapped(devices, N));
	assert_true(tti_devices_find_all_mapped(devices, 1));
	tti_devices_free(devices);
}

static void all_are_mapped_if_every_two_are(void **state)
{
	struct tti_device_fact *facts = make_facts();
	struct tti_devices *devices;

	(void)state;
	for (int rank = 0; rank < N; rank++) {
		facts[rank] = facts[0];
		facts[rank].process = (uint64_t)rank;
	}
	devices = make(facts);
	for (int a = 0; a < N; a++)
		for (int b = 0; b < N; b++)
			if (a != b) {
				assert_false(tti_devices_find_all_mapped(devices, N));
				tti_devices_set_reach(devices, a, b);
			}
	assert_true(tti_devices_find_all_mapped(devices, N));
	tti_devices_free(devices);
}

static void the_least_of_all_counts(void **state)
{
	struct tti_device_fact *facts = make_facts();
	struct tti_devices *devices = make(facts);

	(void)state;
	/* Half of 132 multiprocessors, between the two ranks of GPU A. */
	assert_int_equal(devices->shape.nblocks, TTI_DEV_BLOCKS_MAX);
	tti_devices_free(devices);

	facts = make_facts();
	facts[1].nresident = facts[0].nresident = 40;
	facts[2].at_most.nslots = 3;
	facts[4].at_most.slot_bytes = 5001;
	facts[5].at_most.word_bytes = 100;
	devices = make(facts);
	assert_int_equal(devices->shape.nblocks, 10);
	assert_int_equal(devices->shape.nslots, 3);
	assert_int_equal(devices->shape.slot_bytes, 4992);
	assert_int_equal(devices->shape.word_bytes, 96);
	tti_devices_free(devices);

	facts = make_facts();
	facts[0].nresident = 2;
	facts[5].at_most.nblocks = 7;
	devices = make(facts);
	assert_int_equal(devices->shape.nblocks, 1);
	tti_devices_free(devices);
}

/* Blocks that are not resident would be waited for by those that are, for ever. */
static void no_more_blocks_than_the_gpu_runs_at_a_time(void **state)
{
	struct tti_device_fact *facts = make_facts();
	struct tti_devices *devices;

	(void)state;
	facts[0].nresident = facts[1].nresident = 40;
	for (int rank = 0; rank < N; rank++)
		facts[rank].at_most.nblocks = TTI_DEV_BLOCKS_MAX;
	devices = make(facts);
	assert_int_equal(devices->shape.nblocks, 20);
	tti_devices_free(devices);
}

static void a_gpu_has_a_block_for_each_of_its_ranks(void **state)
{
	struct tti_device_fact *facts = make_facts();
	struct tti_devices *devices = NULL;

	(void)state;
	facts[0].nresident = facts[1].nresident = 1;
	assert_int_equal(tti_devices_create(facts, N, &devices), TUTTI_EUNSUPPORTED);
	assert_null(devices);
	assert_non_null(strstr(tti_error_text(), "GPU 0 of rank 0 has 2 ranks"));
}

/* Ranks 0, 1 and 2 are of one process. */
static void warn(void)
{
	struct tti_device_fact *facts = make_facts();
	struct tti_devices *devices;

	facts[0].process = facts[1].process = facts[2].process;
	devices = make(facts);
	for (int rank = 0; rank < N; rank++)
		tti_devices_warn_of_variables(devices, rank, N);
	tti_devices_free(devices);
}

static void variables_of_cuda_that_hold_kernels_up_are_named(void **state)
{
	static const struct {
		const char *blocking, *connections, *text;
	} cases[] = {
		{ "CUDA_LAUNCH_BLOCKING=1", "X=",
		  "CUDA_LAUNCH_BLOCKING=1: a launch returns once its kernel has ended, and kernels "
		  "of ranks 0 and 1 (" },
		{ "CUDA_LAUNCH_BLOCKING=0", "X=", NULL },
		{ "X=", "CUDA_DEVICE_MAX_CONNECTIONS=3",
		  "2 ranks of this process share GPU 0, and CUDA has 3 connections" },
		{ "X=", "CUDA_DEVICE_MAX_CONNECTIONS=4", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const env[] = { cases[i].blocking, cases[i].connections, NULL };
		struct child child;

		child_run(&child, env, warn);
		assert_int_equal(child.status, 0);
		assert_int_equal(child.n, cases[i].text ? 1 : 0);
		if (cases[i].text)
			assert_non_null(strstr(child.messages[0], cases[i].text));
	}
}

static void gpus_are_dealt_out_on_each_host(void **state)
{
	static const int expected[N] = { 0, 1, 2, 0, 0, 5 };
	struct tti_peer_info info[N];

	(void)state;
	memset(info, 0, sizeof(info));
	for (int rank = 0; rank < N; rank++) {
		info[rank].host = rank == 4 ? 2 : 1;
		info[rank].device = TTI_AUTO_DEVICE;
	}
	info[5].device = 5;
	for (int rank = 0; rank < N; rank++)
		assert_int_equal(tti_device_choose(info, rank, 3), expected[rank]);
	assert_int_equal(tti_device_choose(info, 3, 0), 0); /* which is then not there */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_have_places),
		cmocka_unit_test(reach_is_mutual),
		cmocka_unit_test(all_are_mapped_if_every_two_are),
		cmocka_unit_test(the_least_of_all_counts),
		cmocka_unit_test(no_more_blocks_than_the_gpu_runs_at_a_time),
		cmocka_unit_test(a_gpu_has_a_block_for_each_of_its_ranks),
		cmocka_unit_test(variables_of_cuda_that_hold_kernels_up_are_named),
		cmocka_unit_test(gpus_are_dealt_out_on_each_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
