/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators whose ranks have GPUs: how they are made, what ranks agree on, lanes, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>

#include "core/call/args.h"
#include "core/comm_error.h"
#include "core/device/facts.h"
#include "gpu/cuda_memory.h"
#include "ranks.h"
#include "tutti/inspect.h"

static const char *const nothing[] = { NULL };

static void inside(const struct ranks *ranks, struct tti_comm **comms)
{
	for (int rank = 0; rank < ranks->n; rank++)
		comms[rank] = ranks_inside(ranks->comm[rank]);
}

static void assert_says(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("\"%s\" is not in \"%s\"", what, text);
}

/* -- Which device ------------------------------------------------------------------------ */

static void no_device_no_cuda(void)
{
	static const int devices[] = { NO_DEVICE, NO_DEVICE };
	struct ranks ranks;
	int device = 7;

	ranks_make(&ranks, 2, devices, false);
	assert_int_equal(tutti_comm_device(ranks.comm[1], &device), TUTTI_OK);
	assert_int_equal(device, NO_DEVICE);
	assert_null(ranks_inside(ranks.comm[0])->devices);
	ranks_end(&ranks);
	/* The library of the driver was not even loaded. */
	assert_null(dlopen(getenv("TUTTI_CUDA_LIB"), RTLD_NOW | RTLD_NOLOAD));
}

static void a_job_without_devices_makes_no_call_of_cuda(void **state)
{
	(void)state;
	in_child(no_device_no_cuda, nothing);
}

static void the_variable_is_for_ranks_that_name_none(void)
{
	static const int devices[] = { NO_DEVICE, 2, NO_DEVICE };
	struct ranks ranks;

	ranks_make(&ranks, 3, devices, false);
	for (int rank = 0; rank < 3; rank++) {
		int device = 7;

		assert_int_equal(tutti_comm_device(ranks.comm[rank], &device), TUTTI_OK);
		assert_int_equal(device, rank == 1 ? 2 : 1);
	}
	ranks_end(&ranks);
}

static void auto_deals_them_out(void)
{
	static const int devices[] = { NO_DEVICE, NO_DEVICE, 0, NO_DEVICE, NO_DEVICE };
	static const int expected[] = { 0, 1, 0, 3, 0 };
	struct ranks ranks;

	ranks_make(&ranks, 5, devices, false);
	for (int rank = 0; rank < 5; rank++)
		assert_int_equal(tti_device_ordinal(ranks_inside(ranks.comm[rank])),
				 expected[rank]);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

static void no_number_is_refused(void)
{
	static const int devices[] = { NO_DEVICE, 0 };
	struct ranks ranks;

	ranks_make(&ranks, 2, devices, true);
	assert_int_equal(ranks.status[0], TUTTI_EINVAL);
	assert_says(ranks.text[0], "TUTTI_CUDA_DEVICE is \"first\"");
	assert_says(ranks.text[1], "TUTTI_CUDA_DEVICE is \"first\"");
}

static void the_variable_names_devices(void **state)
{
	(void)state;
	in_child(the_variable_is_for_ranks_that_name_none,
		 (const char *const[]){ "TUTTI_CUDA_DEVICE=1", NULL });
	in_child(auto_deals_them_out, (const char *const[]){ "TUTTI_CUDA_DEVICE=auto", NULL });
	in_child(no_number_is_refused, (const char *const[]){ "TUTTI_CUDA_DEVICE=first", NULL });
}

/* -- What is missing ------------------------------------------------------------------------ */

/* All ranks get the error of rank 1, also rank 0, which has no device. */
static void refused(int device, tutti_status status, const char *what)
{
	const int devices[] = { NO_DEVICE, device, 0 };
	struct ranks ranks;

	ranks_make(&ranks, 3, devices, true);
	assert_int_equal(ranks.status[0], status);
	for (int rank = 0; rank < 3; rank++)
		assert_says(ranks.text[rank], what);
	assert_says(ranks.text[0], "rank 1: ");
	ranks_assert_nothing_held();
}

static void no_such_device(void)
{
	refused(7, TUTTI_EINVAL, "GPU 7: there are 0..3");
}

static void no_driver(void)
{
	refused(0, TUTTI_EINVAL, "/nonexistent/libcuda.so");
}

static void no_kernels(void)
{
	refused(0, TUTTI_EUNSUPPORTED, "/nonexistent/kernels");
}

static void what_is_missing_is_an_error_on_all_ranks(void **state)
{
	(void)state;
	in_child(no_such_device, nothing);
	in_child(no_driver,
		 (const char *const[]){ "TUTTI_CUDA_LIB=/nonexistent/libcuda.so", NULL });
	in_child(no_kernels,
		 (const char *const[]){ "TUTTI_CUDA_KERNELS=/nonexistent/kernels", NULL });
}

/* -- What they agree on ---------------------------------------------------------------------- */

static void devices_of_all_ranks_reach_each_other(void **state)
{
	static const int devices[] = { 0, 1, 0 };
	struct tti_comm *comms[3];
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 3, devices, false);
	inside(&ranks, comms);
	for (int rank = 0; rank < 3; rank++) {
		const struct tti_lane_shape *shape = &comms[rank]->devices->shape;

		assert_true(comms[rank]->devices->all_mapped);
		assert_int_equal(comms[rank]->slot_bytes,
				 (size_t)shape->nblocks * shape->slot_bytes);
		for (int peer = 0; peer < 3; peer++)
			assert_int_equal(comms[rank]->device->peers[peer].way,
					 peer == rank ? TTI_DEVICE_SELF : TTI_DEVICE_MAPPED);
		/* No call was made, so nothing was taken of the GPU. */
		assert_int_equal(comms[rank]->device->device_bytes, 0);
	}
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

static void ranks_without_a_device_agree_with_those_that_have_one(void **state)
{
	static const int devices[] = { 0, NO_DEVICE, 2, NO_DEVICE };
	struct tti_comm *comms[4];
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 4, devices, false);
	inside(&ranks, comms);
	for (int rank = 0; rank < 4; rank++) {
		assert_false(comms[rank]->devices->all_mapped);
		assert_int_equal(comms[rank]->devices->ndevices, 2);
		assert_memory_equal(&comms[rank]->devices->shape, &comms[0]->devices->shape,
				    sizeof(struct tti_lane_shape));
		assert_int_equal(comms[rank]->slot_bytes, comms[0]->slot_bytes);
		assert_true(comms[rank]->slot_bytes <= comms[rank]->host_slot_bytes);
		assert_true(comms[rank]->slot_bytes <=
			    (size_t)comms[rank]->devices->shape.nblocks *
				    comms[rank]->devices->shape.slot_bytes);
	}
	assert_null(comms[1]->device);
	assert_int_equal(comms[0]->device->peers[2].way, TTI_DEVICE_MAPPED);
	assert_int_equal(comms[0]->device->peers[1].way, TTI_DEVICE_PINNED);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

static void without_peer_access(void)
{
	static const int devices[] = { 0, 1, 2 };
	struct tti_comm *comms[3];
	struct ranks ranks;

	ranks_make(&ranks, 3, devices, false);
	inside(&ranks, comms);
	assert_int_equal(comms[0]->device->peers[1].way, TTI_DEVICE_PINNED);
	assert_int_equal(comms[1]->device->peers[0].way, TTI_DEVICE_PINNED);
	assert_int_equal(comms[0]->device->peers[2].way, TTI_DEVICE_MAPPED);
	assert_int_equal(comms[2]->device->peers[1].way, TTI_DEVICE_MAPPED);
	for (int rank = 0; rank < 3; rank++) {
		assert_false(comms[rank]->devices->all_mapped);
		assert_false(tti_devices_is_refused(comms[rank]->devices, 0, 1));
		/* The proxy cuts what is longer than a slot of the link. */
		assert_int_equal(comms[rank]->slot_bytes,
				 (size_t)comms[rank]->devices->shape.nblocks *
					 comms[rank]->devices->shape.slot_bytes);
		assert_true(comms[rank]->slot_bytes > comms[rank]->host_slot_bytes);
	}
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

static void gpus_without_access_go_by_the_host(void **state)
{
	(void)state;
	in_child(without_peer_access,
		 (const char *const[]){ "TUTTI_CUDAHOST_NO_PEER=0-1", "TUTTI_CUDA_SLOT=1M", NULL });
}

/* -- Lanes ----------------------------------------------------------------------------------- */

static void connect_all(tutti_comm_t comm, int rank)
{
	struct tti_comm *in = ranks_inside(comm);

	(void)rank;
	if (in->device)
		assert_int_equal(ranks_connect(in), TUTTI_OK);
}

static void what_is_written_into_lanes_arrives(void **state)
{
	static const int devices[] = { 0, 1, 2, 0 };
	struct tti_comm *comms[4];
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 4, devices, false);
	inside(&ranks, comms);
	ranks_do(&ranks, connect_all);
	ranks_check_lanes(comms, 4);
	assert_true(comms[0]->device->device_bytes >
		    3 * tti_lanes_bytes(&comms[0]->devices->shape));
	assert_int_equal(comms[0]->device->has_proxy, 0);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

/* The kernel's end is that of the proxy. */
static void check_pinned(const struct tti_comm *comm, int peer)
{
	const struct tti_device_peer *to = &comm->device->peers[peer];

	assert_true(to->is_connected);
	assert_non_null(to->pinned);
	for (uint32_t block = 0; block < comm->devices->shape.nblocks; block++) {
		assert_int_equal(to->out[block].nslots, comm->devices->shape.nslots);
		assert_int_equal(*(uint64_t *)(uintptr_t)to->out[block].full, 0);
		assert_true(to->out[block].slots != to->in[block].slots);
	}
}

static void other_peers_have_lanes_in_pinned_memory(void **state)
{
	static const int devices[] = { 1, NO_DEVICE, 1 };
	struct tti_comm *comms[3];
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 3, devices, false);
	inside(&ranks, comms);
	ranks_do(&ranks, connect_all);
	ranks_check_lanes(comms, 3);
	check_pinned(comms[0], 1);
	check_pinned(comms[2], 1);
	assert_true(comms[0]->device->has_proxy);
	assert_true(tti_device_is_connected(comms[0]->device, (const int32_t[]){ 1, 2 }, 2));
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

/* Ranks of one thread make lanes at the same time. */
static void one_thread_connects_several_ranks(void **state)
{
	static const int devices[] = { 0, 2 };
	static const int32_t peer_of[] = { 1, 0 };
	const struct tti_args args = { .coll = TUTTI_BARRIER };
	struct tti_device_need needs[2];
	struct tti_comm *comms[2];
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 2, devices, false);
	inside(&ranks, comms);
	for (int again = 0; again < 2; again++) {
		for (int rank = 0; rank < 2; rank++)
			needs[rank] = (struct tti_device_need){ .comm = comms[rank],
								.args = &args,
								.peers = &peer_of[rank],
								.npeers = 1 };
		tti_device_connect(needs, 2);
		assert_int_equal(needs[0].status, TUTTI_OK);
		assert_int_equal(needs[1].status, TUTTI_OK);
	}
	ranks_check_lanes(comms, 2);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

/* A rank that ends first takes nothing away that kernels of others still write to. */
static void lanes_outlive_the_rank_that_ends_first(void **state)
{
	static const int devices[] = { 0, 0 };
	struct tti_comm *comms[2];
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 2, devices, false);
	inside(&ranks, comms);
	ranks_do(&ranks, connect_all);
	ranks_check_lanes(comms, 2);
	assert_int_equal(tutti_comm_destroy(ranks.comm[0]), TUTTI_OK);
	ranks.comm[0] = NULL;
	assert_int_equal(ranks_write_to(comms[1], 0), TUTTI_OK);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

/* What is told grows with lanes, and an older program gets what it knows of. */
static void memory_is_told(void **state)
{
	static const int devices[] = { 0, NO_DEVICE, 1 };
	tutti_memory_use use = TUTTI_MEMORY_USE_INIT, older;
	const struct tti_device *device;
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 3, devices, false);
	device = ranks_inside(ranks.comm[0])->device;
	assert_int_equal(tutti_comm_memory(ranks.comm[0], &use), TUTTI_OK);
	assert_int_equal(use.device_bytes, 0);
	ranks_do(&ranks, connect_all);
	assert_int_equal(tutti_comm_memory(ranks.comm[0], &use), TUTTI_OK);
	assert_int_equal(use.size, sizeof(use));
	assert_true(use.device_bytes >= device->peers[2].own->nbytes);
	assert_true(use.pinned_bytes >= 2 * tti_lanes_bytes(&device->shape));
	assert_int_equal(tutti_comm_memory(ranks.comm[1], &use), TUTTI_OK);
	assert_int_equal(use.device_bytes, 0);

	memset(&older, 0x55, sizeof(older));
	older.size = offsetof(tutti_memory_use, pinned_bytes);
	assert_int_equal(tutti_comm_memory(ranks.comm[2], &older), TUTTI_OK);
	assert_true(older.device_bytes > 0 && older.device_bytes < 1ULL << 40);
	assert_int_equal(older.pinned_bytes >> 56, 0x55);
	older.size = 3;
	assert_int_equal(tutti_comm_memory(ranks.comm[2], &older), TUTTI_EINVAL);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

/* -- Children ---------------------------------------------------------------------------------- */

static void make_children(tutti_comm_t comm, int rank)
{
	tutti_config other = TUTTI_CONFIG_INIT;
	tutti_comm_t split = NULL, dup = NULL;
	int device = 7;

	assert_int_equal(tutti_comm_dup(comm, &dup, NULL), TUTTI_OK);
	assert_int_equal(tutti_comm_device(dup, &device), TUTTI_OK);
	assert_int_equal(device, rank % 2);
	assert_int_equal(ranks_connect(ranks_inside(dup)), TUTTI_OK);

	/* Of the odd ranks, in reverse order. */
	assert_int_equal(tutti_comm_split(comm, rank % 2 ? 1 : TUTTI_NOCOLOR, -rank, &split, NULL),
			 TUTTI_OK);
	if (rank % 2) {
		const struct tti_comm *in = ranks_inside(split);

		assert_int_equal(in->n, 2);
		assert_true(in->devices->all_mapped);
		assert_int_equal(in->device->ordinal, 1);
		assert_int_equal(in->device->peers[1 - in->rank].way, TTI_DEVICE_MAPPED);
	}
	assert_int_equal(tutti_comm_destroy(split), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(dup), TUTTI_OK);

	other.device = 1 - rank % 2;
	assert_int_equal(tutti_comm_dup(comm, &dup, &other), TUTTI_EINVAL);
	other.device = rank % 2;
	assert_int_equal(tutti_comm_dup(comm, &dup, &other), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(dup), TUTTI_OK);
}

static void children_keep_the_device(void **state)
{
	static const int devices[] = { 0, 1, 0, 1 };
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 4, devices, false);
	ranks_do(&ranks, make_children);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

static void shrink_one(tutti_comm_t comm, int rank)
{
	const int gone = 0;
	tutti_comm_t made;
	int device;

	if (rank == gone)
		return;
	assert_int_equal(tutti_comm_shrink(comm, &gone, 1, &made, NULL, TUTTI_SHRINK_DEFAULT),
			 TUTTI_OK);
	assert_int_equal(tutti_comm_device(made, &device), TUTTI_OK);
	assert_int_equal(device, rank);
	assert_int_equal(ranks_connect(ranks_inside(made)), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(made), TUTTI_OK);
}

static void a_shrunk_one_keeps_them_too(void **state)
{
	static const int devices[] = { NO_DEVICE, 1, 2 };
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 3, devices, false);
	ranks_do(&ranks, shrink_one);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

/* -- Limits and failures ------------------------------------------------------------------------- */

/* For its own reason, or that of the other rank, which was first. */
static void connect_and_fail(tutti_comm_t comm, int rank)
{
	const tutti_status status = ranks_connect(ranks_inside(comm));

	(void)rank;
	if (status != TUTTI_ENOMEM && status != TUTTI_EPEER)
		fail_msg("%d", status);
	assert_says(tutti_last_error(NULL), "TUTTI_CUDA_MEMORY");
}

static void more_than_the_budget(void)
{
	static const int devices[] = { 0, 1 };
	struct ranks ranks;

	ranks_make(&ranks, 2, devices, false);
	ranks_do(&ranks, connect_and_fail);
	assert_true(ranks_inside(ranks.comm[0])->device->device_bytes <= 100 << 10);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

static void within_the_budget(void)
{
	static const int devices[] = { 0, 1 };
	struct ranks ranks;

	ranks_make(&ranks, 2, devices, false);
	ranks_do(&ranks, connect_all);
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

static void memory_is_taken_within_the_budget(void **state)
{
	(void)state;
	in_child(more_than_the_budget,
		 (const char *const[]){ "TUTTI_CUDA_MEMORY=100K", "TUTTI_CUDA_BLOCKS=4", NULL });
	in_child(within_the_budget,
		 (const char *const[]){ "TUTTI_CUDA_MEMORY=8M", "TUTTI_CUDA_BLOCKS=4", NULL });
}

static void a_failure_stops_kernels(void **state)
{
	static const int devices[] = { 0, 1 };
	struct tti_comm *comms[2];
	struct ranks ranks;

	(void)state;
	ranks_make(&ranks, 2, devices, false);
	inside(&ranks, comms);
	ranks_do(&ranks, connect_all);
	assert_false(ranks_are_stopped(comms[0]));
	tti_comm_mark_failed(comms[0], TUTTI_EPEER, "a test");
	assert_true(ranks_are_stopped(comms[0]));
	assert_false(ranks_are_stopped(comms[1]));
	ranks_end(&ranks);

	/* Also where the failure comes first. */
	ranks_make(&ranks, 2, devices, false);
	inside(&ranks, comms);
	tti_comm_mark_failed(comms[0], TUTTI_EPEER, "a test");
	assert_true(ranks_connect(comms[0]) != TUTTI_OK);
	assert_true(ranks_are_stopped(comms[0]));
	ranks_end(&ranks);
	ranks_assert_nothing_held();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_without_devices_makes_no_call_of_cuda),
		cmocka_unit_test(the_variable_names_devices),
		cmocka_unit_test(what_is_missing_is_an_error_on_all_ranks),
		cmocka_unit_test(memory_is_taken_within_the_budget),
		cmocka_unit_test(gpus_without_access_go_by_the_host),
		/* From here on this process has a driver, which its children could not use. */
		cmocka_unit_test(devices_of_all_ranks_reach_each_other),
		cmocka_unit_test(ranks_without_a_device_agree_with_those_that_have_one),
		cmocka_unit_test(what_is_written_into_lanes_arrives),
		cmocka_unit_test(other_peers_have_lanes_in_pinned_memory),
		cmocka_unit_test(one_thread_connects_several_ranks),
		cmocka_unit_test(lanes_outlive_the_rank_that_ends_first),
		cmocka_unit_test(memory_is_told),
		cmocka_unit_test(children_keep_the_device),
		cmocka_unit_test(a_shrunk_one_keeps_them_too),
		cmocka_unit_test(a_failure_stops_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
