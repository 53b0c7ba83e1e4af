/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams that a job holds: nothing behind it runs, who waits is told why, and it goes on later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <stdatomic.h>

#include "engine/device.h"
#include "engine/event.h"
#include "engine/stream.h"

static _Atomic int is_over, nrun, result;

static int ask(void *arg)
{
	(void)arg;
	return atomic_load(&is_over);
}

static int hold(void *arg)
{
	(void)arg;
	atomic_store(&result, tti_cuda_stream_hold(TTI_CUDA_ELAUNCH, "rank 3 has died", ask, NULL));
	return 0;
}

static int count(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nrun, 1);
	return 0;
}

static void push(struct tti_cuda_stream *stream, int (*run)(void *))
{
	assert_int_equal(tti_cuda_stream_push(stream, &(struct tti_cuda_job){ .run = run }), 0);
}

static void who_waits_is_told(int got)
{
	assert_int_equal(got, TTI_CUDA_ELAUNCH);
	assert_non_null(strstr(tti_cuda_error_text(), "rank 3 has died"));
}

static void a_held_stream_tells_and_goes_on(void **state)
{
	struct tti_cuda_stream *held, *other, *behind;
	struct tti_cuda_event *event;

	(void)state;
	assert_int_equal(tti_cuda_stream_create(TTI_CUDA_STREAM_NON_BLOCKING, 0, &held), 0);
	assert_int_equal(tti_cuda_stream_create(TTI_CUDA_STREAM_NON_BLOCKING, 0, &other), 0);
	assert_int_equal(tti_cuda_stream_create(TTI_CUDA_STREAM_NON_BLOCKING, 0, &behind), 0);
	assert_int_equal(tti_cuda_event_create(0, &event), 0);
	push(held, hold);
	push(held, count);
	assert_int_equal(tti_cuda_event_record(event, held), 0);
	assert_int_equal(tti_cuda_event_await(event, behind), 0);
	push(behind, count);
	who_waits_is_told(tti_cuda_stream_synchronize(held));
	who_waits_is_told(tti_cuda_event_synchronize(event));
	who_waits_is_told(tti_cuda_stream_synchronize(behind));
	who_waits_is_told(tti_cuda_device_synchronize(0));
	assert_int_equal(tti_cuda_stream_query(held), TTI_CUDA_ENOTREADY);
	assert_int_equal(tti_cuda_event_query(event), TTI_CUDA_ENOTREADY);
	push(other, count);
	assert_int_equal(tti_cuda_stream_synchronize(other), 0);
	assert_int_equal(atomic_load(&nrun), 1);

	/* What was told is past once it is over. */
	atomic_store(&is_over, 1);
	while (tti_cuda_stream_query(behind) == TTI_CUDA_ENOTREADY)
		;
	assert_int_equal(tti_cuda_stream_synchronize(held), 0);
	assert_int_equal(tti_cuda_stream_synchronize(behind), 0);
	assert_int_equal(tti_cuda_device_synchronize(0), 0);
	assert_int_equal(atomic_load(&nrun), 3);
	assert_int_equal(atomic_load(&result), 0);
	assert_int_equal(tti_cuda_event_destroy(event), 0);
	assert_int_equal(tti_cuda_stream_destroy(held), 0);
	assert_int_equal(tti_cuda_stream_destroy(other), 0);
	assert_int_equal(tti_cuda_stream_destroy(behind), 0);
}

static void only_a_job_can_hold(void **state)
{
	(void)state;
	assert_int_equal(tti_cuda_stream_hold(TTI_CUDA_ELAUNCH, "", ask, NULL), TTI_CUDA_EPOOL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_held_stream_tells_and_goes_on),
		cmocka_unit_test(only_a_job_can_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
