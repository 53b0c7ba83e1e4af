/* SPDX-License-Identifier: BSD-3-Clause */
/* The API of pings: both ranks get the same figures, over memory and over TCP; pairs side by
 * side; what cannot be measured is refused; other calls go on before and after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "core/comm.h"
#include "support/sanitizer.h"
#include "support/world.h"
#include "tutti/insight.h"

#define MOST_RANKS 8

/* What each rank saw of its ping. */
static struct tutti_ping_measure seen[MOST_RANKS];

static struct tutti_ping_options short_ping(void)
{
	struct tutti_ping_options options = TUTTI_PING_OPTIONS_INIT;

	/* Enough of it even where who measures does not get a core at once. */
	options.seconds = SANITIZED ? 0.4 : 0.15;
	return options;
}

static void check_figures(const struct tutti_ping_measure *m)
{
	CHECK(m->measured);
	CHECK(m->round_trips > 0);
	CHECK(m->rtt_least_us > 0 && m->rtt_least_us <= m->rtt_us);
	CHECK(m->rtt_us <= m->rtt_p99_us);
	CHECK(m->ab_gbps > 0 && m->ab_gbps < 1000);
	CHECK(m->ba_gbps > 0 && m->ba_gbps < 1000);
	CHECK(m->both_ab_gbps > 0 && m->both_ba_gbps > 0);
}

static void check_findings(tutti_ping_t ping)
{
	struct tutti_ping_finding finding = TUTTI_PING_FINDING_INIT;
	const int n = tutti_ping_finding_count(ping);

	for (int i = 0; i < n; i++) {
		CHECK_OK(tutti_ping_get_finding(ping, i, &finding));
		CHECK(finding.what[0] && finding.remedy[0] && finding.rule[0]);
		CHECK(!strcmp(finding.severity, "error") || !strcmp(finding.severity, "warning") ||
		      !strcmp(finding.severity, "info"));
	}
	CHECK(tutti_ping_get_finding(ping, n, &finding) == TUTTI_EINVAL);
}

static void check_add(tutti_comm_t comm, int n)
{
	int one = 1, sum = 0;

	CHECK_OK(tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL));
	CHECK(sum == n);
}

static void ping_pairs(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct tutti_ping_options options = short_ping();
	const char *const transport = arg;
	struct tutti_lane lane = TUTTI_LANE_INIT;
	tutti_ping_t ping;

	check_add(comm, n);
	/* Each pair names its ranks in the same order, the higher one leads. */
	if (!CHECK_OK(tutti_ping(comm, rank | 1, rank & ~1, &options, &ping)))
		return;
	seen[rank] = (struct tutti_ping_measure)TUTTI_PING_MEASURE_INIT;
	CHECK_OK(tutti_ping_get_measure(ping, -1, &seen[rank]));
	check_figures(&seen[rank]);
	CHECK(tutti_ping_lane_count(ping) >= 1);
	CHECK_OK(tutti_ping_get_lane(ping, 0, rank & 1, &lane));
	CHECK(lane.up);
	CHECK(!strcmp(lane.local_nic, "memory") == !strcmp(transport, "shm"));
	check_findings(ping);
	CHECK(tutti_ping_get_lane(ping, -1, 0, &lane) == TUTTI_EINVAL);
	CHECK(tutti_ping_get_lane(ping, 99, 0, &lane) == TUTTI_EINVAL);
	tutti_ping_free(ping);
	check_add(comm, n);
}

static void both_get_the_same(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (int t = 0; t < 2; t++) {
		for (int n = 2; n <= 4; n += 2) {
			const struct world world = { .n = n, .transport = transports[t] };

			assert_int_equal(world_run(&world, ping_pairs, (void *)transports[t]), 0);
			for (int rank = 0; rank < n; rank += 2)
				assert_memory_equal(&seen[rank], &seen[rank + 1], sizeof(*seen));
		}
	}
}

/* The options of the first rank count; a limit of bytes ends a measurement early. */
static void limited_ping(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct tutti_ping_options options = TUTTI_PING_OPTIONS_INIT;
	struct tutti_ping_measure m = TUTTI_PING_MEASURE_INIT;
	struct timespec begin, end;
	tutti_ping_t ping;

	(void)n;
	(void)arg;
	options.seconds = rank == 0 ? 2 : 600;
	options.bytes = rank == 0 ? 100000 : 0;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!CHECK_OK(tutti_ping(comm, 0, 1, &options, &ping)))
		return;
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK(end.tv_sec - begin.tv_sec < 100);
	CHECK_OK(tutti_ping_get_measure(ping, -1, &m));
	check_figures(&m);
	tutti_ping_free(ping);
}

static void limits_are_kept(void **state)
{
	(void)state;
	for (int t = 0; t < 2; t++) {
		const struct world world = { .n = 2, .transport = t ? "tcp" : "shm" };

		assert_int_equal(world_run(&world, limited_ping, NULL), 0);
	}
}

static void refuse(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct tutti_ping_options options = TUTTI_PING_OPTIONS_INIT;
	struct tutti_lane lanes[2] = { TUTTI_LANE_INIT, TUTTI_LANE_INIT };
	const char *transport = NULL;
	tutti_ping_t ping;
	int count = 7;

	(void)arg;
	CHECK(tutti_ping(comm, rank, rank, NULL, &ping) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "to itself"));
	CHECK(tutti_ping(comm, (rank + 1) % n, (rank + 2) % n, NULL, &ping) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "only these two"));
	CHECK(tutti_ping(comm, rank, n, NULL, &ping) == TUTTI_EINVAL);
	CHECK(tutti_ping(comm, -1, rank, NULL, &ping) == TUTTI_EINVAL);
	CHECK(tutti_ping(comm, 0, 1, NULL, NULL) == TUTTI_EINVAL);
	CHECK(tutti_ping(NULL, 0, 1, NULL, &ping) == TUTTI_EINVAL);
	options.seconds = 0;
	CHECK(tutti_ping(comm, rank, (rank + 1) % n, &options, &ping) == TUTTI_EINVAL);
	options.size = 3;
	CHECK(tutti_ping(comm, rank, (rank + 1) % n, &options, &ping) == TUTTI_EINVAL);
	CHECK_OK(tutti_group_start());
	CHECK(tutti_ping(comm, rank, (rank + 1) % n, NULL, &ping) == TUTTI_EUSAGE);
	CHECK_OK(tutti_group_end());

	CHECK(tutti_comm_lanes(comm, rank, lanes, 2, &count) == TUTTI_EINVAL);
	CHECK(tutti_comm_lanes(comm, n, lanes, 2, &count) == TUTTI_EINVAL);
	CHECK(tutti_comm_lanes(comm, (rank + 1) % n, NULL, 2, &count) == TUTTI_EINVAL);
	CHECK(tutti_comm_lanes(comm, (rank + 1) % n, lanes, 2, NULL) == TUTTI_EINVAL);
	CHECK(count == 7);
	lanes[0].size = 0;
	CHECK(tutti_comm_lanes(comm, (rank + 1) % n, lanes, 2, &count) == TUTTI_EINVAL);
	CHECK(tutti_comm_transport(comm, n, &transport) == TUTTI_EINVAL);
	CHECK(tutti_comm_transport(comm, rank, NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_comm_transport(comm, rank, &transport));
	CHECK(!strcmp(transport, "self"));
	CHECK_OK(tutti_comm_transport(comm, (rank + 1) % n, &transport));
	CHECK(!strcmp(transport, "shm"));
	check_add(comm, n);
}

static void nonsense_is_refused(void **state)
{
	const struct world world = { .n = 3, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, refuse, NULL), 0);
	tutti_ping_free(NULL);
	assert_int_equal(tutti_ping_lane_count(NULL), 0);
	assert_int_equal(tutti_ping_finding_count(NULL), 0);
}

static void look_at_lanes(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct tutti_lane lanes[2] = { TUTTI_LANE_INIT, TUTTI_LANE_INIT };
	const int tcp = !strcmp(arg, "tcp");
	const int peer = (rank + 1) % n;
	int count = -1;

	CHECK_OK(tutti_comm_lanes(comm, peer, lanes, 2, &count));
	CHECK(count == !tcp);
	check_add(comm, n);
	CHECK_OK(tutti_comm_lanes(comm, peer, lanes, 2, &count));
	CHECK(count >= 1);
	CHECK(lanes[0].up && lanes[0].size == sizeof(lanes[0]));
	CHECK(tcp || !strcmp(lanes[0].local_nic, "memory"));
	CHECK_OK(tutti_comm_lanes(comm, peer, NULL, 0, &count));
	CHECK(count >= 1);
	/* A program that was built when the struct was shorter. */
	lanes[0].size = offsetof(struct tutti_lane, remote_nic);
	memset(lanes[0].remote_nic, 'x', sizeof(lanes[0].remote_nic));
	CHECK_OK(tutti_comm_lanes(comm, peer, lanes, 1, &count));
	CHECK(lanes[0].remote_nic[0] == 'x');
	check_add(comm, n);
}

static void lanes_are_told(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (int t = 0; t < 2; t++) {
		const struct world world = { .n = 2, .transport = transports[t] };

		assert_int_equal(world_run(&world, look_at_lanes, (void *)transports[t]), 0);
	}
}

/* One pings, the other does something else: both are told, nobody waits. */
static void ping_or_send(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_ping_t ping;
	int value = 0;

	(void)n;
	(void)arg;
	if (rank == 0)
		CHECK(tutti_ping(comm, 0, 1, NULL, &ping) == TUTTI_EMISMATCH);
	else
		CHECK(tutti_send(&value, 1, TUTTI_INT32, 0, comm, NULL) == TUTTI_OK);
	CHECK(tutti_barrier(comm, NULL) == TUTTI_EMISMATCH);
	CHECK(strstr(tutti_last_error(comm), "ping(rank 1)"));
}

static void other_calls_do_not_match(void **state)
{
	(void)state;
	for (int t = 0; t < 2; t++) {
		const struct world world = { .n = 2, .transport = t ? "tcp" : "shm" };

		assert_int_equal(world_run(&world, ping_or_send, NULL), 0);
	}
}

/* One leaves in the middle of it: the other is told by name. */
static void ping_or_abort(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct tutti_ping_options options = TUTTI_PING_OPTIONS_INIT;
	tutti_ping_t ping;

	(void)n;
	(void)arg;
	options.seconds = 3000;
	CHECK(tutti_ping(comm, 0, 1, &options, &ping) == (rank ? TUTTI_EPEER : TUTTI_EABORTED));
	CHECK(rank == 0 || strstr(tutti_last_error(comm), "rank 0 aborted"));
}

struct aborted {
	tutti_comm_t comm;
	int rank;
	pthread_t thread;
};

static void *aborted_main(void *self)
{
	struct aborted *one = self;

	ping_or_abort(one->comm, one->rank, 2, NULL);
	return NULL;
}

static void an_abort_ends_it(void **state)
{
	(void)state;
	for (int t = 0; t < 2; t++) {
		tutti_config config = TUTTI_CONFIG_INIT;
		struct aborted ranks[2] = { { .rank = 0 }, { .rank = 1 } };
		tutti_comm_t comms[2];

		config.transport = t ? "tcp" : "shm";
		assert_int_equal(tutti_comm_init_all(comms, 2, &config), TUTTI_OK);
		for (int rank = 0; rank < 2; rank++) {
			ranks[rank].comm = comms[rank];
			assert_int_equal(pthread_create(&ranks[rank].thread, NULL, aborted_main,
							&ranks[rank]),
					 0);
		}
		for (int rank = 0; rank < 2; rank++)
			assert_true(world_await_call(comms[rank]));
		assert_int_equal(tutti_comm_abort(comms[0]), TUTTI_OK);
		for (int rank = 0; rank < 2; rank++)
			pthread_join(ranks[rank].thread, NULL);
		assert_int_equal(tutti_comm_destroy(comms[1]), TUTTI_OK);
		assert_int_equal(world_failures(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_get_the_same),        cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(nonsense_is_refused),      cmocka_unit_test(lanes_are_told),
		cmocka_unit_test(other_calls_do_not_match), cmocka_unit_test(an_abort_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
