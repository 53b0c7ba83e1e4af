/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks with GPUs in processes of their own: lanes by file descriptors and by older handles, peers that
 * GPUs do not reach, the death of a rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "core/device/facts.h"
#include "ranks.h"
#include "tutti/inspect.h"

#define N 3

static const int devices[N] = { 0, 1, 0 };
static const char *const nothing[] = { NULL };
static const char *const by_ipc[] = { "TUTTI_CUDA_SHARE=ipc", NULL };

static void assert_ways(const struct tti_comm *comm, enum tti_device_way way)
{
	for (int peer = 0; peer < comm->n; peer++)
		assert_int_equal(comm->device->peers[peer].way,
				 peer == comm->rank ? TTI_DEVICE_SELF : way);
	assert_int_equal(comm->devices->all_mapped, way == TTI_DEVICE_MAPPED);
}

static void make_lanes(const struct process *process)
{
	const tutti_status status = ranks_connect(process->inside);

	if (status != TUTTI_OK)
		fail_msg("rank %d: %d, %s", process->rank, status, tutti_last_error(NULL));
}

static void write_and_look(const struct process *process)
{
	assert_ways(process->inside, TTI_DEVICE_MAPPED);
	make_lanes(process);
	ranks_write_lanes(process->inside);
	process_meet(process);
	ranks_look_at_lanes(process->inside);
	process_meet(process);
}

static void lanes_between_processes_carry_what_is_written(void **state)
{
	(void)state;
	processes_run(&(struct processes){ .n = N,
					   .devices = devices,
					   .variables = nothing,
					   .victim = -1,
					   .fn = write_and_look });
	processes_run(&(struct processes){ .n = N,
					   .devices = devices,
					   .variables = by_ipc,
					   .victim = -1,
					   .fn = write_and_look });
}

static void look_at_pinned(const struct process *process)
{
	assert_ways(process->inside, TTI_DEVICE_PINNED);
	make_lanes(process);
	assert_true(process->inside->device->has_proxy);
	process_meet(process);
}

/* TUTTI_HOST_ID differs, so no rank believes to reach the memory of another. */
static void ranks_of_other_hosts_go_by_the_proxy(void **state)
{
	(void)state;
	processes_run(&(struct processes){ .n = N,
					   .devices = devices,
					   .variables = nothing,
					   .own_variable = "TUTTI_HOST_ID",
					   .victim = -1,
					   .fn = look_at_pinned });
}

/* Ranks 0 and 2 have one GPU, and between it and that of rank 1 the driver lies. */
static void look_at_refused(const struct process *process)
{
	const struct tti_comm *comm = process->inside;
	tutti_comm_t dup;
	char *plan;

	for (int a = 0; a < N; a++)
		for (int b = 0; b < N; b++) {
			const bool lies = a != b && (a == 1 || b == 1);

			assert_int_equal(tti_devices_is_refused(comm->devices, a, b), lies);
			assert_int_equal(tti_devices_reach(comm->devices, a, b), a != b && !lies);
		}
	assert_false(comm->devices->all_mapped);
	make_lanes(process);
	ranks_write_lanes(comm);
	process_meet(process);
	ranks_look_at_lanes(comm);

	assert_int_equal(tutti_comm_plan(process->comm, 0, &plan), TUTTI_OK);
	assert_non_null(strstr(plan, "the link between the GPUs of ranks 0 and 1 was refused"));
	assert_non_null(strstr(plan, "the link between the GPUs of ranks 1 and 2 was refused"));
	assert_null(strstr(plan, "ranks 0 and 2"));
	free(plan);

	assert_int_equal(tutti_comm_dup(process->comm, &dup, NULL), TUTTI_OK);
	assert_true(tti_devices_is_refused(ranks_inside(dup)->devices, 0, 1));
	assert_true(tti_devices_reach(ranks_inside(dup)->devices, 0, 2));
	assert_int_equal(tutti_comm_destroy(dup), TUTTI_OK);
	process_meet(process);
}

static void a_link_that_lies_is_refused_and_named(void **state)
{
	static const char *const by_fd[] = { "TUTTI_CUDAHOST_LIE=0-1", NULL };
	static const char *const lie_by_ipc[] = { "TUTTI_CUDAHOST_LIE=0-1", "TUTTI_CUDA_SHARE=ipc",
						  NULL };

	(void)state;
	for (int ipc = 0; ipc < 2; ipc++)
		processes_run(&(struct processes){ .n = N,
						   .devices = devices,
						   .variables = ipc ? lie_by_ipc : by_fd,
						   .victim = -1,
						   .fn = look_at_refused });
}

/* Rank 0 ends while the others still write to it. */
static void end_early(const struct process *process)
{
	make_lanes(process);
	process_meet(process);
	if (process->rank == 0)
		return;
	(void)usleep(300000);
	assert_int_equal(ranks_write_to(process->inside, 0), TUTTI_OK);
}

static void a_rank_may_end_before_the_others(void **state)
{
	(void)state;
	for (int ipc = 0; ipc < 2; ipc++)
		processes_run(&(struct processes){ .n = N,
						   .devices = devices,
						   .variables = ipc ? by_ipc : nothing,
						   .victim = -1,
						   .fn = end_early });
}

static void lose_one(const struct process *process)
{
	tutti_status status = TUTTI_OK;

	make_lanes(process);
	process_meet(process);
	if (process->rank == 1)
		process_die(process);
	for (int ms = 0; status == TUTTI_OK && ms < 60000; ms++) {
		assert_int_equal(tutti_comm_get_async_error(process->comm, &status), TUTTI_OK);
		(void)usleep(1000);
	}
	assert_int_equal(status, TUTTI_EPEER);
	assert_true(ranks_are_stopped(process->inside));
}

static void a_death_stops_the_kernels_of_the_others(void **state)
{
	(void)state;
	for (int ipc = 0; ipc < 2; ipc++)
		processes_run(&(struct processes){ .n = N,
						   .devices = devices,
						   .variables = ipc ? by_ipc : nothing,
						   .victim = 1,
						   .fn = lose_one });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_between_processes_carry_what_is_written),
		cmocka_unit_test(ranks_of_other_hosts_go_by_the_proxy),
		cmocka_unit_test(a_link_that_lies_is_refused_and_named),
		cmocka_unit_test(a_rank_may_end_before_the_others),
		cmocka_unit_test(a_death_stops_the_kernels_of_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
