/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel may let a process wait for seconds for the list of its NICs, while others make or remove some.
 * Ranks that wait for a missing one are told of it in time all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <ifaddrs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "boot/boot.h"
#include "util/error.h"

#define TIMEOUT_MS 12000
/* More than a rank waits, behind its time limit, for the root's word, and less than the root looks ahead. */
#define SLOW_S     4

static pthread_t fast; /* the thread of the rank itself */
static atomic_int nslow;

/* In place of the system's. */
int getifaddrs(struct ifaddrs **out);
int getifaddrs(struct ifaddrs **out)
{
	int (*real)(struct ifaddrs **);
	const struct timespec pause = { .tv_sec = SLOW_S };

	*(void **)&real = dlsym(RTLD_NEXT, "getifaddrs");
	if (!pthread_equal(pthread_self(), fast)) {
		nslow++;
		(void)nanosleep(&pause, NULL);
	}
	return real(out);
}

static void a_slow_look_delays_no_word(void **state)
{
	struct tti_boot_config config = { .nranks = 2, .nids = 1, .timeout_ms = TIMEOUT_MS };
	struct tti_boot *boot = NULL;
	tutti_unique_id id;

	(void)state;
	fast = pthread_self();
	config.ids = &id;
	assert_int_equal(tti_boot_id_create(&id), TUTTI_OK);
	assert_int_equal(tti_boot_connect(&config, &boot), TUTTI_ETIMEOUT);
	assert_int_equal(nslow, 1);
	if (!strstr(tti_error_text(), "rank 1 of 2 did not come"))
		fail_msg("%s", tti_error_text());
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_slow_look_delays_no_word) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
