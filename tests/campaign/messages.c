/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of random messages between ranks with two threads each, beside collectives of a third.
 *
 *     campaign_messages SEED SECONDS [ROUNDS]
 *
 * The first round is that of SEED, each next one that of one more; it ends after SECONDS or ROUNDS,
 * whatever comes first. What is sent follows from the seed, so that every receiver knows what has to
 * come. One line for each:
 *
 *     round SEED WORLD RANKS MESSAGES RESULT
 *
 * RESULT is ok, failed or hang. Lines that begin with "#" say what ranks saw. Exit status 1: something
 * was wrong. */
#include "campaign/lanes.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ELEMS  ((size_t)100000)
#define DEADLINE_NS INT64_C(180000000000)

struct shared {
	tutti_unique_id id;
	_Atomic int has_id;
	char text[TRAFFIC_N][RANK_TEXT];
};

/* -- A rank ---------------------------------------------------------------------------------- */

static bool call(struct rank *rank, int32_t *memory, size_t n, int step)
{
	bool right = true;
	tutti_status st;

	for (size_t i = 0; i < n; i++)
		memory[i] = (int32_t)i + rank->rank * step;
	st = tutti_all_reduce(memory, memory, n, TUTTI_INT32, TUTTI_SUM, rank->comm, NULL);
	if (st != TUTTI_OK)
		return rank_complain(rank, "all_reduce", st);
	for (size_t i = 0; i < n && right; i++)
		right = memory[i] ==
			(int32_t)i * traffic.n + step * traffic.n * (traffic.n - 1) / 2;
	return right || rank_complain(rank, "a wrong sum", TUTTI_OK);
}

/* On memory of the process, which has no communicator. */
static bool call_all(struct rank *rank, uint64_t seed)
{
	bool good = true;
	void *memory;
	tutti_status st = tutti_mem_alloc(&memory, MOST_ELEMS * sizeof(int32_t), NULL);

	if (st != TUTTI_OK)
		return rank_complain(rank, "mem_alloc", st);
	for (int step = 0; step < traffic.ncalls && good; step++)
		good = call(rank, memory, 1 + (size_t)draw(&seed, MOST_ELEMS), step);
	st = tutti_mem_free(memory, rank->comm);
	return good && (st == TUTTI_OK || rank_complain(rank, "mem_free", st));
}

static void count_awaited(struct rank *rank, struct lane *lanes)
{
	for (int source = 0; source < traffic.n; source++)
		for (int thread = 0; thread < TRAFFIC_THREADS; thread++)
			for (int i = 0; i < traffic.nsends[source][thread]; i++) {
				const struct message *message = &traffic.sends[source][thread][i];

				if (message->dest != rank->rank)
					continue;
				rank->awaited++;
				lanes[thread].nleft[message->tag % TRAFFIC_TAGS]++;
			}
}

/* Nothing is left to be received once all have sent. */
static bool is_empty(struct rank *rank)
{
	tutti_status st = tutti_barrier(rank->comm, NULL);

	if (st != TUTTI_OK)
		return rank_complain(rank, "barrier", st);
	st = tutti_message_probe(rank->channel, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, 0, NULL);
	return st == TUTTI_AGAIN || rank_complain(rank, "a message too many", st);
}

static bool exchange(struct rank *rank, uint64_t seed)
{
	struct lane lanes[TRAFFIC_THREADS] = { 0 };
	pthread_t threads[TRAFFIC_THREADS];
	bool good;

	count_awaited(rank, lanes);
	for (int i = 0; i < TRAFFIC_THREADS; i++) {
		lanes[i].rank = rank;
		lanes[i].thread = i;
		lanes[i].random = seed * 64 + (uint64_t)(rank->rank * TRAFFIC_THREADS + i);
		if (pthread_create(&threads[i], NULL, lane_run, &lanes[i]) != 0)
			abort();
	}
	good = call_all(rank, seed);
	for (int i = 0; i < TRAFFIC_THREADS; i++) {
		pthread_join(threads[i], NULL);
		good &= lanes[i].good;
	}
	return good && is_empty(rank);
}

static bool run_rank(struct shared *shared, int number, uint64_t seed)
{
	struct rank rank = { .rank = number, .text = shared->text[number] };
	tutti_config config = TUTTI_CONFIG_INIT;
	struct held before;
	tutti_status st;
	bool good;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	world_enter(traffic.world, number);
	setenv("TUTTI_BOOT_TIMEOUT_MS", "60000", 1);
	before = held_first();
	config.transport = world_transport(traffic.world);
	if (number == 0)
		shared->has_id = tutti_get_unique_id(&shared->id) == TUTTI_OK ? 1 : -1;
	while (!shared->has_id)
		nap_us(100);
	st = tutti_comm_init_rank_config(&rank.comm, traffic.n, shared->id, number, &config);
	if (st != TUTTI_OK)
		return rank_complain(&rank, "init", st);
	st = tutti_channel_create(rank.comm, &rank.channel);
	good = st == TUTTI_OK ? exchange(&rank, seed) : rank_complain(&rank, "channel_create", st);
	st = tutti_channel_destroy(rank.channel);
	good = good && (st == TUTTI_OK || rank_complain(&rank, "channel_destroy", st));
	st = tutti_comm_destroy(rank.comm);
	good = good && (st == TUTTI_OK || rank_complain(&rank, "destroy", st));
	return good && held_no_more(&before, shared->text[number], sizeof(shared->text[0]));
}

/* -- The driver -------------------------------------------------------------------------------- */

/* Wait for all; false: one failed, or had to be killed, which is a hang. */
static bool await_all(const pid_t *pids, bool *hang)
{
	const int64_t deadline = now_ns() + DEADLINE_NS;
	bool good = true, gone[TRAFFIC_N] = { false };
	int left = traffic.n;

	while (left > 0) {
		for (int rank = 0; rank < traffic.n; rank++) {
			int ended;

			if (gone[rank] || waitpid(pids[rank], &ended, WNOHANG) <= 0)
				continue;
			gone[rank] = true;
			good &= ended == 0;
			left--;
		}
		for (int rank = 0; rank < traffic.n && now_ns() > deadline; rank++)
			if (!gone[rank]) {
				kill(pids[rank], SIGKILL);
				*hang = true;
			}
		nap_us(300);
	}
	return good;
}

static bool run_round(struct shared *shared, uint64_t seed)
{
	const int total = traffic_draw(seed);
	bool good, hang = false;
	pid_t pids[TRAFFIC_N];

	memset(shared, 0, sizeof(*shared));
	fflush(NULL);
	for (int rank = 0; rank < traffic.n; rank++) {
		pids[rank] = fork();
		if (pids[rank] < 0)
			abort();
		if (pids[rank] == 0)
			exit(run_rank(shared, rank, seed) ? 0 : 1);
	}
	good = await_all(pids, &hang);
	printf("round %llu %s %d %d %s\n", (unsigned long long)seed, world_names[traffic.world],
	       traffic.n, total,
	       hang   ? "hang"
	       : good ? "ok"
		      : "failed");
	for (int rank = 0; rank < traffic.n; rank++)
		if (*shared->text[rank])
			printf("# rank %d: %s\n", rank, shared->text[rank]);
	fflush(stdout);
	return good;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: campaign_messages SEED SECONDS [ROUNDS]\n");
		return 2;
	}

	const uint64_t first = strtoull(argv[1], NULL, 10);
	const uint64_t rounds = argc > 3 ? strtoull(argv[3], NULL, 10) : UINT64_MAX;
	const int64_t end_ns = now_ns() + (int64_t)(atof(argv[2]) * 1e9);
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good = true;

	if (shared == MAP_FAILED)
		return 2;
	for (uint64_t i = 0; i < rounds && now_ns() < end_ns; i++)
		good &= run_round(shared, first + i);
	return good ? 0 : 1;
}
