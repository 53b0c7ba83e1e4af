/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks ask each other to do something: three ranks of one process, whose mail is delivered at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "boot/base.h"
#include "boot/family/dispatcher.h"
#include "boot/watch/requests.h"
#include "boot/watch/watch.h"

#define N       3
#define CONTEXT 78
#define BLOCKS  200 /* the request that waits until it may go on */

static struct tti_boot *boots[N];
static struct tti_requests *requests[N];
static _Atomic int stop, served[N];
static _Atomic bool may_go_on;

static void serve(void *self, int from, const uint8_t request[TTI_REQUEST_BYTES],
		  uint8_t answer[TTI_ANSWER_BYTES])
{
	const struct timespec nap = { .tv_nsec = 1000 * 1000 };
	const int rank = *(const int *)self;

	while (request[0] == BLOCKS && !may_go_on)
		nanosleep(&nap, NULL);
	served[rank]++;
	answer[0] = (uint8_t)(request[0] + 1);
	answer[1] = (uint8_t)from;
	answer[TTI_ANSWER_BYTES - 1] = (uint8_t)rank;
}

static void create(int rank)
{
	static const int ranks[N] = { 0, 1, 2 };
	const struct tti_requests_config config = { .boot = boots[rank],
						    .context = CONTEXT,
						    .serve = serve,
						    .self = (void *)(uintptr_t)&ranks[rank],
						    .stop = &stop };

	assert_int_equal(tti_requests_create(&config, &requests[rank]), TUTTI_OK);
}

static int begin(void **state)
{
	const struct tti_watch_events events = { 0 };

	(void)state;
	stop = 0;
	may_go_on = false;
	memset(served, 0, sizeof(served));
	memset(requests, 0, sizeof(requests));
	if (tti_boot_local_create(N, NULL, boots) != TUTTI_OK)
		return 1;
	for (int rank = 0; rank < N; rank++)
		if (tti_watch_start(boots[rank], &events) != TUTTI_OK)
			return 1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (int rank = 0; rank < N; rank++)
		tti_requests_free(requests[rank]);
	for (int rank = 0; rank < N; rank++)
		tti_boot_close(boots[rank]);
	return 0;
}

static void check_answer(const struct tti_errand *asked, int from, uint8_t was)
{
	assert_int_equal(asked->status, TUTTI_OK);
	assert_int_equal(asked->answer[0], was + 1);
	assert_int_equal(asked->answer[1], from);
	assert_int_equal(asked->answer[TTI_ANSWER_BYTES - 1], asked->peer);
}

static void all_that_are_asked_answer(void **state)
{
	(void)state;
	for (int rank = 0; rank < N; rank++)
		create(rank);
	for (int i = 0; i < 20; i++) {
		const int rank = i % N, a = (rank + 1) % N, b = (rank + 2) % N;
		struct tti_errand asked[] = { { .peer = a, .data = { (uint8_t)i } },
					      { .peer = b, .data = { (uint8_t)(i + 50) } } };

		tti_requests_ask(requests[rank], asked, 2, 0);
		check_answer(&asked[0], rank, (uint8_t)i);
		check_answer(&asked[1], rank, (uint8_t)(i + 50));
	}
	assert_int_equal(served[0] + served[1] + served[2], 40);
}

static void *go_on_late(void *arg)
{
	const struct timespec late = { .tv_sec = 2, .tv_nsec = 500 * 1000 * 1000 };

	(void)arg;
	nanosleep(&late, NULL);
	may_go_on = true;
	return NULL;
}

/* It is asked again and again, and does it once. */
static void what_takes_long_is_done_once(void **state)
{
	struct tti_errand asked = { .peer = 1, .data = { BLOCKS } };
	pthread_t thread;

	(void)state;
	create(0);
	create(1);
	assert_int_equal(pthread_create(&thread, NULL, go_on_late, NULL), 0);
	tti_requests_ask(requests[0], &asked, 1, 0);
	check_answer(&asked, 0, BLOCKS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(served[1], 1);
}

static void *create_late(void *arg)
{
	const struct timespec late = { .tv_nsec = 200 * 1000 * 1000 };

	(void)arg;
	nanosleep(&late, NULL);
	create(2);
	return NULL;
}

static void who_comes_late_answers_then(void **state)
{
	struct tti_errand asked = { .peer = 2, .data = { 7 } };
	pthread_t thread;

	(void)state;
	create(0);
	assert_int_equal(pthread_create(&thread, NULL, create_late, NULL), 0);
	tti_requests_ask(requests[0], &asked, 1, 0);
	check_answer(&asked, 0, 7);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void who_has_left_is_not_waited_for(void **state)
{
	struct tti_errand asked[] = { { .peer = 1, .data = { 1 } }, { .peer = 2, .data = { 2 } } };

	(void)state;
	for (int rank = 0; rank < N; rank++)
		create(rank);
	tti_requests_free(requests[2]);
	requests[2] = NULL;
	tti_requests_ask(requests[0], asked, 2, 0);
	check_answer(&asked[0], 0, 1);
	assert_int_equal(asked[1].status, TUTTI_EPEER);
	/* With its bootstrap. */
	tti_requests_free(requests[1]);
	requests[1] = NULL;
	tti_boot_close(boots[1]);
	boots[1] = NULL;
	tti_requests_ask(requests[0], asked, 1, 0);
	assert_int_equal(asked[0].status, TUTTI_EPEER);
}

static void *stop_late(void *arg)
{
	const struct timespec late = { .tv_nsec = 200 * 1000 * 1000 };

	(void)arg;
	nanosleep(&late, NULL);
	stop = 1;
	return NULL;
}

static void waits_end(void **state)
{
	struct tti_errand asked = { .peer = 1, .data = { 9 } };
	pthread_t thread;

	(void)state;
	create(0);
	tti_requests_ask(requests[0], &asked, 1, 50);
	assert_int_equal(asked.status, TUTTI_ETIMEOUT);
	assert_int_equal(pthread_create(&thread, NULL, stop_late, NULL), 0);
	tti_requests_ask(requests[0], &asked, 1, 0);
	assert_int_equal(asked.status, TUTTI_EABORTED);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_that_are_asked_answer, begin, end),
		cmocka_unit_test_setup_teardown(what_takes_long_is_done_once, begin, end),
		cmocka_unit_test_setup_teardown(who_comes_late_answers_then, begin, end),
		cmocka_unit_test_setup_teardown(who_has_left_is_not_waited_for, begin, end),
		cmocka_unit_test_setup_teardown(waits_end, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
