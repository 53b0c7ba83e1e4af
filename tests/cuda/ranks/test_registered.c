/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory of devices: kernels read and write it where it lies, in processes that share it
 * either way, and what is lent is taken back. The kernels count what they move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <unistd.h>

#include "core/comm.h"
#include "core/device/device.h"
#include "core/device/lend.h"
#include "device/kernels_host.h"
#include "gpu.h"
#include "gpu/cuda_memory.h"
#include "ranks.h"
#include "tutti/inspect.h"

#define N      3
#define COUNT  300000
#define NBYTES (COUNT * sizeof(uint32_t))

static const int devices[N] = { 0, 1, 0 };
static const char *const by_fd[] = { "TEST_MEMORY=fd", NULL };
static const char *const nothing[] = { NULL };
static const char *const by_ipc[] = { "TUTTI_CUDA_SHARE=ipc", NULL };
static const char *const without_vmm[] = { "TUTTI_CUDAHOST_VMM=0", NULL };
static const char *const *const ways[] = { by_fd, by_ipc, without_vmm };

#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* Bytes that kernels of this process have written. */
static uint64_t written(void)
{
	static void (*traffic)(uint64_t * read, uint64_t * written);
	uint64_t read_bytes, written_bytes;

	if (!traffic) {
		void *library = dlopen(getenv("TUTTI_CUDA_KERNELS"), RTLD_LAZY | RTLD_NOLOAD);
		void *symbol = library ? dlsym(library, TTI_KERNELS_HOST_TRAFFIC) : NULL;

		if (!symbol)
			abort();
		memcpy(&traffic, &symbol, sizeof(traffic));
	}
	traffic(&read_bytes, &written_bytes);
	return written_bytes;
}

/* What an all_reduce in `view` adds up to, where rank r has r + 1 + its number. */
static void fill(uint32_t *view, int rank)
{
	for (uint32_t i = 0; i < COUNT; i++)
		view[i] = (uint32_t)rank + 1 + i;
}

static void check(const uint32_t *view)
{
	for (uint32_t i = 0; i < COUNT; i++)
		if (view[i] != N * (N + 1) / 2 + N * i)
			fail_msg("element %u is %u", i, view[i]);
}

/* Sum in place; how much this process has written for it. */
static uint64_t sum(const struct process *process, const struct gpu_buffer *buffer)
{
	uint64_t before;

	fill((uint32_t *)(void *)buffer->view, process->rank);
	process_meet(process);
	gpu_wait_for_kernels(process->inside->device->gpu);
	before = written();
	assert_int_equal(tutti_all_reduce(buffer->memory, buffer->memory, COUNT, TUTTI_UINT32,
					  TUTTI_SUM, process->comm, NULL),
			 TUTTI_OK);
	gpu_wait_for_kernels(process->inside->device->gpu);
	check((uint32_t *)(void *)buffer->view);
	return written() - before;
}

/* Each rank writes its part to all: as many bytes as a buffer has. By slots all inputs are written
 * there, too. */
static bool is_direct(uint64_t nbytes)
{
	return nbytes < NBYTES + NBYTES / 8;
}

static int maps_held(void)
{
	struct tti_gpu_held held;

	tti_gpu_held(&held);
	return held.maps + held.memories;
}

static void register_and_sum(const struct process *process)
{
	struct gpu_buffer buffer;
	tutti_reg_t reg;
	char *plan;
	int before;

	gpu_alloc(&buffer, devices[process->rank], NBYTES);
	assert_false(is_direct(sum(process, &buffer)));
	before = maps_held();
	assert_int_equal(tutti_register(process->comm, buffer.memory, NBYTES, &reg), TUTTI_OK);
	for (int i = 0; i < 3; i++)
		assert_true(is_direct(sum(process, &buffer)));
	assert_int_equal(tti_lending_count(process->inside), 1);
	assert_int_equal(tutti_comm_plan(process->comm, 0, &plan), TUTTI_OK);
	assert_non_null(strstr(plan, "1 allocation of this rank is lent to the others"));
	free(plan);
	process_meet(process);
	assert_int_equal(tutti_deregister(process->comm, reg), TUTTI_OK);
	assert_int_equal(tti_lending_count(process->inside), 0);
	process_meet(process);
	assert_true(maps_held() <= before + 1); /* and scratch */
	assert_false(is_direct(sum(process, &buffer)));
	gpu_free(&buffer);
}

static void run(void (*fn)(const struct process *process), const char *const *variables)
{
	processes_run(&(struct processes){
		.n = N, .devices = devices, .variables = variables, .victim = -1, .fn = fn });
}

static void registered_memory_is_used_in_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < WAYS; i++)
		run(register_and_sum, ways[i]);
}

/* A rank takes its registration back while kernels of the others, in other processes, wait for it. What
 * cudaMalloc() gave they could unmap only after their kernels, so they have not mapped it. */
static void take_back_while_others_wait(const struct process *process)
{
	const bool is_late = process->rank == N - 1;
	const bool is_shared = getenv("TEST_MEMORY") != NULL;
	struct gpu_buffer buffer;
	struct gpu_stream stream;
	tutti_reg_t reg;

	gpu_alloc(&buffer, devices[process->rank], NBYTES);
	gpu_stream_open(&stream, &buffer);
	assert_int_equal(tutti_register(process->comm, buffer.memory, NBYTES, &reg), TUTTI_OK);
	assert_int_equal(is_direct(sum(process, &buffer)), is_shared);
	fill((uint32_t *)(void *)buffer.view, process->rank);
	if (is_late) {
		process_meet(process);
		assert_int_equal(tutti_deregister(process->comm, reg), TUTTI_OK);
	}
	assert_int_equal(tutti_all_reduce(buffer.memory, buffer.memory, COUNT, TUTTI_UINT32,
					  TUTTI_SUM, process->comm, stream.tutti),
			 TUTTI_OK);
	if (!is_late)
		process_meet(process);
	gpu_stream_wait(&stream);
	check((uint32_t *)(void *)buffer.view);
	if (!is_late)
		assert_int_equal(tutti_deregister(process->comm, reg), TUTTI_OK);
	assert_int_equal(gpu_stream_close(&stream), TUTTI_OK);
	process_meet(process);
	gpu_free(&buffer);
}

static void nobody_waits_for_kernels_of_others(void **state)
{
	(void)state;
	run(take_back_while_others_wait, nothing);
	run(take_back_while_others_wait, by_fd);
}

/* Two buffers of one allocation, which the last rank does not register at first. */
static void register_some(const struct process *process)
{
	struct gpu_buffer buffer, half;
	tutti_reg_t reg[2] = { NULL, NULL };

	gpu_alloc(&buffer, devices[process->rank], 2 * NBYTES);
	half = buffer;
	half.memory += NBYTES;
	half.view += NBYTES;
	if (process->rank < N - 1)
		assert_int_equal(tutti_register(process->comm, buffer.memory, 2 * NBYTES, &reg[0]),
				 TUTTI_OK);
	assert_false(is_direct(sum(process, &buffer)));
	if (process->rank == N - 1)
		assert_int_equal(tutti_register(process->comm, buffer.memory, NBYTES, &reg[0]),
				 TUTTI_OK);
	assert_true(is_direct(sum(process, &buffer)));
	assert_false(is_direct(sum(process, &half)));
	if (process->rank == N - 1)
		assert_int_equal(tutti_register(process->comm, half.memory, NBYTES, &reg[1]),
				 TUTTI_OK);
	assert_true(is_direct(sum(process, &half)));
	/* What lies beside it is registered still. */
	assert_int_equal(tutti_deregister(process->comm, reg[1]), TUTTI_OK);
	assert_int_equal(tti_lending_count(process->inside), 1);
	assert_true(is_direct(sum(process, &buffer)));
	process_meet(process);
	/* The communicator takes back what is left. */
	gpu_free(&buffer);
}

static void all_ranks_have_to_register(void **state)
{
	(void)state;
	run(register_some, by_fd);
	run(register_some, without_vmm);
}

static void sum_allocated(const struct process *process)
{
	struct gpu_buffer buffer = { .nbytes = NBYTES };
	struct gpu_buffer other;
	void *memory;

	/* For where the host reaches it. */
	gpu_alloc(&other, devices[process->rank], 16);
	assert_int_equal(tutti_mem_alloc(&memory, NBYTES, process->comm), TUTTI_OK);
	gpu_view(&other, memory, &buffer);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(((uint32_t *)(void *)buffer.view)[i], 0);
	assert_true(is_direct(sum(process, &buffer)));
	assert_int_equal(tti_lending_count(process->inside), 1);
	process_meet(process);
	assert_int_equal(tutti_mem_free(memory, process->rank ? process->comm : NULL), TUTTI_OK);
	assert_int_equal(tti_lending_count(process->inside), 0);
	assert_int_equal(tutti_mem_free(memory, NULL), TUTTI_EINVAL);
	process_meet(process);
	gpu_free(&other);
}

static void allocated_memory_needs_no_registering(void **state)
{
	(void)state;
	run(sum_allocated, by_fd);
	run(sum_allocated, without_vmm);
}

/* A child has peers and registrations of its own, under other numbers. */
static void register_with_a_child(const struct process *process)
{
	struct process child = *process;
	struct gpu_buffer buffer;
	tutti_reg_t reg[2];

	gpu_alloc(&buffer, devices[process->rank], NBYTES);
	assert_int_equal(tutti_comm_split(process->comm, 0, -process->rank, &child.comm, NULL),
			 TUTTI_OK);
	child.inside = ranks_inside(child.comm);
	assert_int_equal(tutti_register(child.comm, buffer.memory, NBYTES, &reg[0]), TUTTI_OK);
	assert_true(is_direct(sum(&child, &buffer)));
	assert_false(is_direct(sum(process, &buffer)));
	assert_int_equal(tutti_register(process->comm, buffer.memory, NBYTES, &reg[1]), TUTTI_OK);
	assert_true(is_direct(sum(process, &buffer)));
	process_meet(process);
	assert_int_equal(tutti_comm_destroy(child.comm), TUTTI_OK);
	assert_true(is_direct(sum(process, &buffer)));
	assert_int_equal(tutti_deregister(process->comm, reg[1]), TUTTI_OK);
	gpu_free(&buffer);
}

static void children_have_registrations_of_their_own(void **state)
{
	(void)state;
	run(register_with_a_child, by_fd);
	run(register_with_a_child, by_ipc);
}

/* Two of them have nothing to do with the other one's end. */
static void end_early(const struct process *process)
{
	struct gpu_buffer buffer;
	tutti_reg_t reg;

	gpu_alloc(&buffer, devices[process->rank], NBYTES);
	assert_int_equal(tutti_register(process->comm, buffer.memory, NBYTES, &reg), TUTTI_OK);
	assert_true(is_direct(sum(process, &buffer)));
	process_meet(process);
	if (process->rank > 0)
		(void)usleep(200000);
	assert_int_equal(tutti_comm_finalize(process->comm), TUTTI_OK);
	assert_int_equal(tutti_deregister(process->comm, reg), TUTTI_OK);
	gpu_free(&buffer);
}

static void a_rank_may_end_before_the_others(void **state)
{
	(void)state;
	run(end_early, by_fd);
	run(end_early, without_vmm);
}

/* The others take back what they have lent to a rank that has died. */
static void lose_one(const struct process *process)
{
	tutti_status status = TUTTI_OK;
	struct gpu_buffer buffer;
	tutti_reg_t reg;

	gpu_alloc(&buffer, devices[process->rank], NBYTES);
	assert_int_equal(tutti_register(process->comm, buffer.memory, NBYTES, &reg), TUTTI_OK);
	assert_true(is_direct(sum(process, &buffer)));
	process_meet(process);
	if (process->rank == 1)
		process_die(process);
	while (status == TUTTI_OK)
		status = tutti_all_reduce(buffer.memory, buffer.memory, COUNT, TUTTI_UINT32,
					  TUTTI_SUM, process->comm, NULL);
	assert_int_equal(status, TUTTI_EPEER);
	assert_int_equal(tutti_deregister(process->comm, reg), TUTTI_OK);
	gpu_free(&buffer);
}

static void a_death_is_heard_of(void **state)
{
	(void)state;
	processes_run(&(struct processes){
		.n = N, .devices = devices, .variables = by_fd, .victim = 1, .fn = lose_one });
}

/* A graph tells the addresses at each launch. */
static void repeat_a_graph(const struct process *process)
{
	struct gpu_buffer buffer;
	struct gpu_stream stream;
	tutti_reg_t reg;
	void *graph;

	gpu_alloc(&buffer, devices[process->rank], NBYTES);
	gpu_stream_open(&stream, &buffer);
	assert_true(tutti_register(process->comm, buffer.memory, NBYTES, &reg) == TUTTI_OK);
	assert_true(is_direct(sum(process, &buffer)));
	gpu_capture_begin(&stream);
	assert_int_equal(tutti_all_reduce(buffer.memory, buffer.memory, COUNT, TUTTI_UINT32,
					  TUTTI_SUM, process->comm, stream.tutti),
			 TUTTI_OK);
	graph = gpu_capture_end(&stream);
	assert_int_equal(tutti_deregister(process->comm, reg), TUTTI_OK);
	assert_int_equal(tti_lending_count(process->inside), 1);
	for (int i = 0; i < 3; i++) {
		uint64_t before;

		fill((uint32_t *)(void *)buffer.view, process->rank);
		process_meet(process);
		before = written();
		gpu_graph_launch(graph, &stream);
		gpu_stream_wait(&stream);
		check((uint32_t *)(void *)buffer.view);
		assert_true(is_direct(written() - before));
	}
	process_meet(process);
	gpu_graph_free(graph, &stream);
	assert_int_equal(gpu_stream_close(&stream), TUTTI_OK);
	assert_int_equal(tutti_comm_finalize(process->comm), TUTTI_OK);
	gpu_free(&buffer);
}

static void graphs_keep_what_they_use(void **state)
{
	(void)state;
	run(repeat_a_graph, by_fd);
}

/* Graphs of a child that ends on the ranks of `ended`, in bits, are launched by all. The ranks that end unmap
 * what the others have lent. Whoever is left has an error, nothing is touched, and all streams go on. */
static void outlive(const struct process *process, int ended)
{
	struct process child = *process;
	const bool ends = ended >> process->rank & 1;
	struct gpu_buffer buffer;
	struct gpu_stream stream;
	tutti_status status;
	tutti_reg_t reg;
	void *graph;

	gpu_alloc(&buffer, devices[process->rank], NBYTES);
	gpu_stream_open(&stream, &buffer);
	assert_int_equal(tutti_comm_split(process->comm, 0, process->rank, &child.comm, NULL),
			 TUTTI_OK);
	assert_int_equal(tutti_register(child.comm, buffer.memory, NBYTES, &reg), TUTTI_OK);
	assert_true(is_direct(sum(&child, &buffer)));
	gpu_capture_begin(&stream);
	assert_int_equal(tutti_all_reduce(buffer.memory, buffer.memory, COUNT, TUTTI_UINT32,
					  TUTTI_SUM, child.comm, stream.tutti),
			 TUTTI_OK);
	graph = gpu_capture_end(&stream);
	process_meet(process);
	if (ends)
		assert_int_equal(tutti_comm_destroy(child.comm), TUTTI_OK);
	fill((uint32_t *)(void *)buffer.view, process->rank);
	process_meet(process);
	gpu_graph_launch(graph, &stream);
	gpu_stream_wait(&stream);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(((uint32_t *)(void *)buffer.view)[i],
				 (uint32_t)process->rank + 1 + i);
	if (!ends) {
		assert_int_equal(tutti_comm_get_async_error(child.comm, &status), TUTTI_OK);
		assert_int_equal(status, TUTTI_EPEER);
		assert_int_equal(tutti_comm_destroy(child.comm), TUTTI_OK);
	}
	gpu_graph_free(graph, &stream);
	assert_int_equal(gpu_stream_close(&stream), TUTTI_OK);
	gpu_free(&buffer);
}

static void outlive_all(const struct process *process)
{
	outlive(process, (1 << N) - 1);
}

static void outlive_one(const struct process *process)
{
	outlive(process, 1 << 1);
}

static void graphs_of_ended_ranks_touch_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < WAYS; i++) {
		run(outlive_all, ways[i]);
		run(outlive_one, ways[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registered_memory_is_used_in_place),
		cmocka_unit_test(nobody_waits_for_kernels_of_others),
		cmocka_unit_test(all_ranks_have_to_register),
		cmocka_unit_test(allocated_memory_needs_no_registering),
		cmocka_unit_test(children_have_registrations_of_their_own),
		cmocka_unit_test(a_rank_may_end_before_the_others),
		cmocka_unit_test(a_death_is_heard_of),
		cmocka_unit_test(graphs_keep_what_they_use),
		cmocka_unit_test(graphs_of_ended_ranks_touch_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
