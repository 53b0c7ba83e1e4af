/* SPDX-License-Identifier: BSD-3-Clause */
/* kill -9 of any rank in the middle of any collective: every other rank returns
 * TUTTI_EPEER and can destroy its communicator. TEST_KILLS says how many random
 * runs (20). How soon they do is measured by scripts/campaign. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/crew.h"

#define MOST_COUNT (1 << 18)
/* Of the calls below: the ring of messages, and how many there are. */
#define RING       8
#define CALLS      10

static size_t count_in_use = 1;
static int coll_in_use;

static tutti_status any_call(struct crew *crew, int rank, tutti_comm_t comm)
{
	static float send[MOST_COUNT], recv[MOST_COUNT];
	const size_t part = count_in_use / (size_t)crew->n;

	switch (coll_in_use) {
	case 0:
		return tutti_all_reduce(send, recv, count_in_use, TUTTI_FLOAT32, TUTTI_SUM, comm,
					NULL);
	case 1:
		return tutti_broadcast(send, recv, count_in_use, TUTTI_FLOAT32, 0, comm, NULL);
	case 2:
		return tutti_all_gather(send, recv, part, TUTTI_FLOAT32, comm, NULL);
	case 3:
		return tutti_reduce_scatter(send, recv, part, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
	case 4:
		return tutti_reduce(send, recv, count_in_use, TUTTI_FLOAT32, TUTTI_SUM, 0, comm,
				    NULL);
	case 5:
		return tutti_all_to_all(send, recv, part, TUTTI_FLOAT32, comm, NULL);
	case 6:
		return tutti_gather(send, recv, part, TUTTI_FLOAT32, 0, comm, NULL);
	case 7:
		return tutti_scatter(send, recv, part, TUTTI_FLOAT32, 0, comm, NULL);
	case RING:
		return tutti_send_recv(send, count_in_use, (rank + 1) % crew->n, recv, count_in_use,
				       (rank + crew->n - 1) % crew->n, TUTTI_FLOAT32, comm, NULL);
	default:
		return tutti_barrier(comm, NULL);
	}
}

/* One run: start, let it run for some time, kill one. */
static void kill_one(int n, const char *transport, int victim, int after_us)
{
	struct crew *crew = crew_create(n, transport, any_call);
	int64_t killed_ns;

	assert_int_equal(crew_start(crew), 0);
	crew_nap_us(after_us);
	killed_ns = crew_now_ns();
	kill(crew->rank[victim].pid, SIGKILL);
	const int stuck = crew_wait(crew, 60000, victim);

	for (int rank = 0; rank < n; rank++) {
		const struct crew_rank *own = &crew->rank[rank];
		const int64_t took_ns = own->failed_ns - killed_ns;

		if (rank == victim)
			continue;
		if (own->status != TUTTI_EPEER || !own->done)
			fail_msg("n %d over %s, collective %d of %zu, rank %d killed after %d us: "
				 "rank %d has status %d after %.3f s, done %d, \"%s\"",
				 n, transport, coll_in_use, count_in_use, victim, after_us, rank,
				 own->status, (double)took_ns / 1e9, own->done, own->text);
	}
	assert_int_equal(stuck, 0);
	crew_free(crew);
}

static void random_kills(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };
	const char *asked = getenv("TEST_KILLS");
	const int runs = asked ? atoi(asked) : 20;
	unsigned seed = (unsigned)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	for (int run = 0; run < runs; run++) {
		const int n = 2 + (int)(rand_r(&seed) % 4);

		coll_in_use = (int)(rand_r(&seed) % CALLS);
		count_in_use = (size_t)1 << rand_r(&seed) % 19;
		kill_one(n, transports[rand_r(&seed) % 2],
			 (int)((unsigned)rand_r(&seed) % (unsigned)n),
			 (int)(rand_r(&seed) % 30000));
	}
}

static void first_and_last(void **state)
{
	(void)state;
	coll_in_use = 0;
	count_in_use = 1024;
	kill_one(4, "shm", 0, 5000);
	kill_one(4, "shm", 3, 5000);
	kill_one(4, "tcp", 0, 5000);
	kill_one(4, "tcp", 3, 5000);
}

/* A ring of short messages, of which one rank goes at once, soon, or later. */
static void rings(void **state)
{
	static const int after_us[] = { 0, 5000, 50000 };

	(void)state;
	coll_in_use = RING;
	for (int n = 2; n <= 4; n++)
		for (int i = 0; i < 3; i++) {
			count_in_use = i == 1 ? 250 : 1;
			kill_one(n, (n + i) % 2 ? "shm" : "tcp", 0, after_us[i]);
		}
}

/* Even ranks call over and over on a child; odd ranks wait for them on the parent. */
static tutti_status in_child(struct crew *crew, int rank, tutti_comm_t comm)
{
	static tutti_comm_t child;
	tutti_status st = TUTTI_OK;
	int one = 1;

	(void)crew;
	if (!child)
		st = tutti_comm_split(comm, rank % 2 ? TUTTI_NOCOLOR : 0, 0, &child, NULL);
	if (rank % 2)
		return st ? st : tutti_barrier(comm, NULL);
	if (st == TUTTI_OK)
		st = tutti_all_reduce(&one, &one, 1, TUTTI_INT32, TUTTI_SUM, child, NULL);
	if (st != TUTTI_OK)
		(void)tutti_comm_destroy(child);
	return st;
}

/* Rank 0 dies, and its neighbours in the ring are stopped. Ranks 2 and 4 hear of it in the child, and
 * leave the parent at once. They are all that rank 3 could hear of: it has to be told of the death, not
 * of ranks that left. */
static void who_leaves_tells_of_the_death(void **state)
{
	(void)state;
	for (int run = 0; run < 4; run++) {
		struct crew *crew = crew_create(6, run % 2 ? "shm" : "tcp", in_child);
		const struct crew_rank *own = &crew->rank[3];

		assert_int_equal(crew_start(crew), 0);
		while (crew->rank[2].calls < 100 || crew->rank[4].calls < 100)
			crew_nap_us(100);
		for (int rank = 1; rank <= 5; rank += 4)
			kill(crew->rank[rank].pid, SIGSTOP);
		kill(crew->rank[0].pid, SIGKILL);
		for (int i = 0; i < 60000 && !own->done; i++)
			crew_nap_us(1000);
		for (int rank = 1; rank <= 5; rank += 4)
			kill(crew->rank[rank].pid, SIGCONT);
		assert_int_equal(crew_wait(crew, 60000, 0), 0);
		if (own->status != TUTTI_EPEER || !strstr(own->text, "rank 0 "))
			fail_msg("run %d: rank 3 has status %d, \"%s\"", run, own->status,
				 own->text);
		crew_free(crew);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_and_last),
		cmocka_unit_test(rings),
		cmocka_unit_test(who_leaves_tells_of_the_death),
		cmocka_unit_test(random_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
