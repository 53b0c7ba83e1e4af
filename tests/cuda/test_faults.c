/* SPDX-License-Identifier: BSD-3-Clause */
/* Each call of the driver fails in turn: what is done says so or goes on, and leaves nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/fake_kernels.h"
#include "device/kernels.h"
#include "engine/host_abi.h"
#include "gpu/cuda_memory.h"
#include "gpu/cuda_stream.h"
#include "gpu/cuda_turn.h"
#include "util/error.h"
#include "util/params.h"

#define NBYTES          ((size_t)100000)
/* Numbers of CUDA. */
#define UNKNOWN         999
#define ILLEGAL_ADDRESS 700

/* What the driver on host memory has beside CUDA's functions. */
static struct {
	uint64_t (*calls)(void);
	void (*fail_calls)(uint64_t skipped, uint64_t n, int error);
	void (*held)(struct tti_cuda_held *out);
} host;

static struct tti_gpu_driver *driver;

static int begin(void **state)
{
	struct tti_kernels *kernels;
	struct tti_gpu *gpu;

	(void)state;
	if (tti_gpu_driver(&driver) != TUTTI_OK)
		return 1;
	*(void **)&host.calls = tti_gpu_driver_symbol(driver, "tti_cuda_calls");
	*(void **)&host.fail_calls = tti_gpu_driver_symbol(driver, "tti_cuda_fail_calls");
	*(void **)&host.held = tti_gpu_driver_symbol(driver, "tti_cuda_held");
	/* Kernels are loaded once, and stay. */
	if (!host.calls || !host.fail_calls || !host.held || tti_gpu_open(0, &gpu) != TUTTI_OK ||
	    tti_kernels_get(gpu, &kernels) != TUTTI_OK)
		return 1;
	tti_gpu_close(gpu);
	return 0;
}

/* -- All of it ------------------------------------------------------------------------ */

/* NULL and 0: not made yet. */
struct things {
	struct tti_gpu *gpu, *other;
	struct tti_gpu_memory *memory, *seen, *same, *wrapped;
	uint64_t at, pinned_at, pages_at;
	void *pinned, *pages, *stream, *event;
	bool is_pinned;
};

static void release(struct things *things)
{
	tti_gpu_stream_destroy(things->gpu, things->stream);
	tti_gpu_event_destroy(things->gpu, things->event);
	if (things->is_pinned)
		tti_gpu_unpin(things->gpu, things->pages);
	if (things->pages)
		munmap(things->pages, NBYTES);
	tti_gpu_pinned_free(things->gpu, things->pinned);
	tti_gpu_memory_free(things->wrapped);
	tti_gpu_memory_free(things->same);
	tti_gpu_memory_free(things->seen);
	tti_gpu_memory_free(things->memory);
	tti_gpu_free(things->gpu, things->at);
	tti_gpu_close(things->other);
	tti_gpu_close(things->gpu);
}

static tutti_status make_memory(struct things *things)
{
	struct tti_gpu *const gpu = things->gpu;
	struct tti_gpu_pointer pointer;
	struct tti_gpu_name name;
	char text[4];

	TTI_TRY(tti_gpu_alloc(gpu, NBYTES, &things->at));
	TTI_TRY(tti_gpu_zero(gpu, things->at, NBYTES));
	TTI_TRY(tti_gpu_memory_create(gpu, NBYTES, &things->memory));
	TTI_TRY(tti_gpu_memory_export(things->memory, &name));
	TTI_TRY(tti_gpu_memory_import(things->other, &name, &things->seen));
	TTI_TRY(tti_gpu_memory_import(gpu, &name, &things->same));
	TTI_TRY(tti_gpu_memory_wrap(gpu, things->memory->at, &things->wrapped));
	TTI_TRY(tti_gpu_memory_export(things->wrapped, &name));
	TTI_TRY(tti_gpu_write(gpu, things->memory->at, "abc", 4));
	TTI_TRY(tti_gpu_read(gpu, text, things->memory->at, 4));
	TTI_TRY(tti_gpu_pinned_alloc(gpu, NBYTES, &things->pinned, &things->pinned_at));
	things->pages =
		mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TTI_TRY(tti_gpu_pin(gpu, things->pages, NBYTES, &things->pages_at));
	things->is_pinned = true;
	return tti_gpu_buffer(gpu, (void *)(uintptr_t)things->at, NBYTES, "input", &pointer);
}

static void nothing(void *arg)
{
	(void)arg;
}

static tutti_status take_a_turn(void *stream)
{
	struct tti_gpu_turns *turns;
	tutti_status st;
	void *event;

	TTI_TRY(tti_gpu_turns_open(stream, &turns));
	st = tti_gpu_turn_add(turns, &event);
	if (st == TUTTI_OK) {
		st = tti_gpu_turn_await(turns, event);
		tti_gpu_turn_end(turns);
	}
	tti_gpu_turns_close(turns);
	return st;
}

static tutti_status use_streams(struct things *things)
{
	struct tti_dev_launch launch = { .ncalls = 1, .nblocks = 1 };
	struct tti_gpu *const gpu = things->gpu;
	struct tti_gpu_capture capture;
	struct tti_kernels *kernels;

	TTI_TRY(tti_gpu_stream_create(gpu, true, &things->stream));
	TTI_TRY(tti_gpu_event_create(gpu, &things->event));
	TTI_TRY(tti_gpu_stream_check(gpu, things->stream));
	TTI_TRY(tti_gpu_capture(gpu, things->stream, &capture));
	TTI_TRY(tti_gpu_copy(gpu, things->at, things->memory->at, NBYTES, things->stream));
	TTI_TRY(tti_gpu_call(gpu, nothing, NULL, things->stream));
	launch.call[0].done = things->pinned_at;
	TTI_TRY(tti_kernels_get(gpu, &kernels));
	TTI_TRY(tti_kernels_launch(kernels, gpu, -1, &launch, 1, things->stream));
	TTI_TRY(tti_gpu_event_record(gpu, things->event, things->stream));
	TTI_TRY(tti_gpu_event_await(gpu, things->event, things->stream));
	TTI_TRY(take_a_turn(things->stream));
	return tti_gpu_stream_wait(gpu, things->stream);
}

static tutti_status do_all(void)
{
	struct things things = { .gpu = NULL };
	tutti_status status = tti_gpu_open(0, &things.gpu);

	if (status != TUTTI_OK)
		return status;
	status = tti_gpu_open(1, &things.other);
	if (status == TUTTI_OK)
		status = make_memory(&things);
	if (status == TUTTI_OK)
		status = use_streams(&things);
	if (status == TUTTI_OK)
		status = tti_gpu_health(things.gpu);
	release(&things);
	return status;
}

/* -- Tests ---------------------------------------------------------------------------- */

static void nothing_is_held(uint64_t call, const struct tti_cuda_held *before)
{
	static const struct tti_gpu_held none = { .libraries = 1 };
	struct tti_cuda_held theirs;
	struct tti_gpu_held own;

	tti_gpu_held(&own);
	host.held(&theirs);
	if (memcmp(&own, &none, sizeof(own)) != 0)
		fail_msg("call %llu: gpus %d memories %d maps %d fds %d pinned %d streams %d "
			 "events %d",
			 (unsigned long long)call, own.gpus, own.memories, own.maps, own.fds,
			 own.pinned, own.streams, own.events);
	if (before && memcmp(&theirs, before, sizeof(theirs)) != 0)
		fail_msg("call %llu: of the driver allocations %llu host %llu registered %llu "
			 "pieces %llu reserved %llu maps %llu streams %llu events %llu contexts "
			 "%llu",
			 (unsigned long long)call, (unsigned long long)theirs.allocations,
			 (unsigned long long)theirs.host, (unsigned long long)theirs.registered,
			 (unsigned long long)theirs.pieces, (unsigned long long)theirs.reserved,
			 (unsigned long long)theirs.maps, (unsigned long long)theirs.streams,
			 (unsigned long long)theirs.events, (unsigned long long)theirs.contexts);
}

static uint64_t count_calls(struct tti_cuda_held *before)
{
	uint64_t first;

	assert_int_equal(do_all(), TUTTI_OK);
	host.held(before);
	first = host.calls();
	assert_int_equal(do_all(), TUTTI_OK);
	nothing_is_held(0, before);
	return host.calls() - first;
}

static void any_call_may_fail_once(void **state)
{
	struct tti_cuda_held before;
	const uint64_t ncalls = count_calls(&before);
	uint64_t told = 0;

	(void)state;
	assert_true(ncalls > 100);
	for (uint64_t call = 0; call < ncalls; call++) {
		tutti_status status;

		tti_error_set("");
		host.fail_calls(call, 1, UNKNOWN);
		status = do_all();
		host.fail_calls(0, 0, 0);
		nothing_is_held(call, &before);
		if (status == TUTTI_OK)
			continue; /* it was made again, or its answer was not needed */
		told++;
		assert_true(status < 0);
		if (!strstr(tti_error_text(), "(999)"))
			fail_msg("call %llu: \"%s\"", (unsigned long long)call, tti_error_text());
	}
	/* Most are seen: those that release are made once more. */
	assert_true(told > ncalls / 2);
	assert_int_equal(do_all(), TUTTI_OK);
}

/* As of a device that broke: nothing hangs, and nothing is counted as ours. The driver keeps what it
 * was not asked to release, so this is a process of its own, which ends without a look at that. */
static void break_device(void **state)
{
	struct tti_cuda_held before;
	const uint64_t ncalls = count_calls(&before);

	(void)state;
	for (uint64_t call = 0; call < ncalls; call += 3) {
		tutti_status status;

		host.fail_calls(call, UINT64_MAX, ILLEGAL_ADDRESS);
		status = do_all();
		host.fail_calls(0, 0, 0);
		nothing_is_held(call, NULL);
		/* What only releases cannot fail. */
		assert_true(status == TUTTI_ESYS || status == TUTTI_OK);
	}
}

static void all_calls_may_fail_from_one_on(void **state)
{
	const pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		execl("/proc/self/exe", "test_faults", "broken", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_call_may_fail_once),
		cmocka_unit_test(all_calls_may_fail_from_one_on),
	};
	const struct CMUnitTest broken[] = { cmocka_unit_test(break_device) };

	(void)argv;
	if (argc > 1)
		_exit(cmocka_run_group_tests(broken, begin, NULL) != 0);
	return cmocka_run_group_tests(tests, begin, NULL);
}
