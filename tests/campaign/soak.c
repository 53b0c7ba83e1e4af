/* SPDX-License-Identifier: BSD-3-Clause */
/* Four ranks that make communicators, use them in every way, and destroy them, again and again in the
 * same processes: what they hold must not grow.
 *
 *     campaign_soak SEED SECONDS [CYCLES]
 *
 * A cycle is an init, every step of the deaths' places some times, and the end. It prints one line,
 * which ends in "ok" or "failed"; what failed follows. Exit status 1: something is. */
#include "campaign/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define N        4
/* Caches and arenas of the C library have grown by then. */
#define WARM     6
/* What may come and go, in kB. */
#define SLACK_KB 4096

static struct soak {
	tutti_unique_id id[2];
	_Atomic int made; /* ids; -1: it is over */
	_Atomic int ncycles;
	int seed;
	char text[N][300];
	long first_kb[N], last_kb[N];
} * soak;

static long held_kb(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size = 0, resident = 0;

	if (!file || fscanf(file, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static bool fail(int rank, const char *what, int cycle)
{
	snprintf(soak->text[rank], sizeof(soak->text[rank]), "rank %d, cycle %d, %s: %s", rank,
		 cycle, what, tutti_last_error(NULL));
	return false;
}

static bool use(struct actor *actor, int rank, int cycle)
{
	for (int i = 0; i < nplaces; i++) {
		actor->count = (size_t)1 << ((i + cycle + soak->seed) % 13);
		actor->count = actor->count < MOST_RANKS ? MOST_RANKS : actor->count;
		actor->root = (i + cycle + soak->seed) % N;
		for (int k = 0; k < 3 && places[i].kind == PLACE_CALLS; k++, actor->step++)
			if (places[i].step(actor) != TUTTI_OK || actor->wrong)
				return fail(rank, places[i].name, cycle);
	}
	return true;
}

static bool run_cycle(int rank, int cycle, const struct held *before)
{
	/* Shared memory within two hosts and TCP between them, and TCP alone. */
	static const char *const transports[] = { NULL, "tcp" };
	struct actor actor = { .rank = rank, .n = N };
	tutti_config config = TUTTI_CONFIG_INIT;
	bool good;

	config.transport = transports[cycle % 2];
	if (tutti_comm_init_rank_config(&actor.comm, N, soak->id[cycle % 2], rank, &config) !=
	    TUTTI_OK)
		return fail(rank, "init", cycle);
	good = use(&actor, rank, cycle);
	actor_release(&actor);
	return good && held_no_more(before, soak->text[rank], sizeof(soak->text[rank]));
}

/* Of rank 0: another cycle, or the end. */
static void lead(int cycle, int64_t end_ns, int most)
{
	const bool is_over = cycle >= most || (now_ns() >= end_ns && cycle > WARM);

	if (is_over || tutti_get_unique_id(&soak->id[cycle % 2]) != TUTTI_OK)
		soak->made = -1;
	else
		soak->made = cycle + 1;
}

static int run_rank(int rank, int64_t end_ns, int most)
{
	struct held before;
	int cycle = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("TUTTI_DEBUG", "NONE", 1);
	setenv("TUTTI_BOOT_TIMEOUT_MS", "60000", 1);
	setenv("TUTTI_HOST_ID", rank % 2 ? "odd" : "even", 1);
	before = held_first();
	for (;; cycle++) {
		if (rank == 0)
			lead(cycle, end_ns, most);
		while (soak->made >= 0 && soak->made <= cycle)
			nap_us(100);
		if (soak->made < 0)
			break;
		if (!run_cycle(rank, cycle, &before)) {
			soak->made = -1;
			return 1;
		}
		soak->last_kb[rank] = held_kb();
		if (cycle <= WARM)
			soak->first_kb[rank] = soak->last_kb[rank];
	}
	soak->ncycles = cycle;
	return 0;
}

int main(int argc, char **argv)
{
	const int most = argc > 3 ? atoi(argv[3]) : 1 << 30;
	const int64_t end_ns = now_ns() + (int64_t)((argc > 2 ? atof(argv[2]) : 10) * 1e9);
	bool good = true;
	pid_t pid[N];

	soak = mmap(NULL, sizeof(*soak), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (soak == MAP_FAILED || argc < 3)
		return 2;
	srand((unsigned)atoi(argv[1]));
	soak->seed = rand() % 1000;
	for (int rank = 0; rank < N; rank++) {
		pid[rank] = fork();
		if (pid[rank] == 0)
			exit(run_rank(rank, end_ns, most));
	}
	for (int rank = 0; rank < N; rank++) {
		int ended = 1;

		good &= waitpid(pid[rank], &ended, 0) == pid[rank] && ended == 0;
		if (soak->last_kb[rank] > soak->first_kb[rank] + SLACK_KB)
			snprintf(soak->text[rank], sizeof(soak->text[rank]),
				 "rank %d: %ld kB resident, %ld at first", rank,
				 soak->last_kb[rank], soak->first_kb[rank]);
		good &= !*soak->text[rank];
	}
	printf("soak %d cycles, %ld kB resident at first, %ld at the end, %s\n", soak->ncycles,
	       soak->first_kb[0], soak->last_kb[0], good ? "ok" : "failed");
	for (int rank = 0; rank < N; rank++)
		if (*soak->text[rank])
			printf("# %s\n", soak->text[rank]);
	return good ? 0 : 1;
}
