/* SPDX-License-Identifier: BSD-3-Clause */
/* kill -9 of a rank that is being measured: the other one is told who is gone, soon. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/crew.h"
#include "tutti/insight.h"

static tutti_status ping_each_other(struct crew *crew, int rank, tutti_comm_t comm)
{
	struct tutti_ping_options options = TUTTI_PING_OPTIONS_INIT;
	tutti_ping_t ping;
	tutti_status status;

	(void)crew;
	(void)rank;
	options.seconds = 0.2;
	status = tutti_ping(comm, 0, 1, &options, &ping);
	if (status == TUTTI_OK)
		tutti_ping_free(ping);
	return status;
}

/* At several moments, so that latency, each direction and both at once are hit. */
static void the_dead_one_is_named(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };
	static const int after_us[] = { 20000, 70000, 120000, 170000 };

	(void)state;
	for (int run = 0; run < 8; run++) {
		struct crew *crew = crew_create(2, transports[run % 2], ping_each_other);
		const int victim = run / 2 % 2;
		const struct crew_rank *other = &crew->rank[!victim];
		int64_t killed_ns;

		assert_int_equal(crew_start(crew), 0);
		crew_nap_us(after_us[run / 2]);
		killed_ns = crew_now_ns();
		kill(crew->rank[victim].pid, SIGKILL);
		assert_int_equal(crew_wait(crew, 60000, victim), 0);
		assert_int_equal(other->status, TUTTI_EPEER);
		assert_true(other->failed_ns - killed_ns < INT64_C(20000000000));
		assert_true(other->done);
		assert_non_null(strstr(other->text, victim ? "rank 1" : "rank 0"));
		crew_free(crew);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dead_one_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
