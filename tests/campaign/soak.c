/* SPDX-License-Identifier: BSD-3-Clause */
/* Four ranks that make communicators, use them in every way, and destroy them, again and again in the
 * same processes: what they hold must not grow.
 *
 *     campaign_soak SEED SECONDS [CYCLES]
 *
 * A cycle is an init, every step of the deaths' places some times, and the end. It prints one line,
 * which ends in "ok" or "failed"; what failed follows. Exit status 1: something is.
 *
 * What is resident of the heap of the C library says little: that follows from the most that a cycle
 * ever had at once and from the gaps around what is kept, and grows for thousands of cycles. So what
 * is in use there is counted, to the byte, and of all other memory what is resident. */
#include "campaign/ranks.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/sanitizer.h"

#define N    4
/* What is allocated once has been by then. */
#define WARM 6

/* Memory that the library keeps, with what the C library adds to it: of the last communicators
 * (core/handle.c) and streams (core/call/stream.c) that were destroyed. */
#define KEPT_COMMS        4097
#define KEPT_COMM_BYTES   48
#define COMMS_A_CYCLE     17
#define KEPT_STREAMS      1025
#define KEPT_STREAM_BYTES 256

/* What may come and go: in use of the heap, and resident elsewhere, as the stacks of threads are. A
 * leak of 1 KiB a cycle is seen after some 30. */
#define HEAP_SLACK_KB  16
#define OTHER_SLACK_KB 128

/* One heap for all threads, which keep nothing of it for themselves. */
#define TUNABLES "glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0"

struct memory {
	long heap_bytes; /* in use                              */
	long other_kb;   /* resident, but for what is in a file */
};

static struct soak {
	tutti_unique_id id[2];
	_Atomic int made; /* ids; -1: it is over */
	_Atomic int ncycles;
	int seed;
	char text[N][300];
	struct memory first[N], last[N];
} * soak;

/* Pages of no file, but for the heap's, and of memory that is shared. */
static long other_kb(void)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	const char *counted = NULL;
	char line[512];
	long sum = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (strchr("0123456789abcdef", *line))
			counted = strstr(line, "[heap]")   ? NULL
				  : strstr(line, "memfd:") ? "Rss:"
							   : "Anonymous:";
		else if (counted && !strncmp(line, counted, strlen(counted)))
			sum += atol(line + strlen(counted));
	}
	if (maps)
		fclose(maps);
	return sum;
}

static struct memory memory_now(void)
{
	const long other = other_kb();

	return (struct memory){ (long)mallinfo2().uordblks, other };
}

static long least(long a, long b)
{
	return a < b ? a : b;
}

/* What was destroyed in so many cycles and is kept. */
static long kept_bytes(int ncycles)
{
	return KEPT_COMM_BYTES * least(KEPT_COMMS, (long)COMMS_A_CYCLE * ncycles) +
	       KEPT_STREAM_BYTES * least(KEPT_STREAMS, ncycles);
}

static void check_memory(int rank)
{
	const struct memory first = soak->first[rank], last = soak->last[rank];
	const long may_kb = kept_bytes(soak->ncycles) / 1024 + HEAP_SLACK_KB;

	if (TTI_SANITIZED)
		return; /* they keep what is freed, and look for leaks themselves */
	if ((last.heap_bytes - first.heap_bytes) / 1024 > may_kb ||
	    last.other_kb - first.other_kb > OTHER_SLACK_KB)
		snprintf(soak->text[rank], sizeof(soak->text[rank]),
			 "rank %d: %ld kB of the heap, %ld at first, and %ld may come; %ld kB of "
			 "other memory, %ld at first, and %d may come",
			 rank, last.heap_bytes / 1024, first.heap_bytes / 1024, may_kb,
			 last.other_kb, first.other_kb, OTHER_SLACK_KB);
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
		soak->last[rank] = memory_now();
		if (cycle <= WARM)
			soak->first[rank] = soak->last[rank];
	}
	soak->ncycles = cycle;
	return 0;
}

int main(int argc, char **argv)
{
	const int most = argc > 3 ? atoi(argv[3]) : 1 << 30;
	const int64_t end_ns = now_ns() + (int64_t)((argc > 2 ? atof(argv[2]) : 10) * 1e9);
	const char *tunables = getenv("GLIBC_TUNABLES");
	bool good = true;
	pid_t pid[N];

	/* They are read when a program starts. */
	if (!tunables || strcmp(tunables, TUNABLES) != 0) {
		setenv("GLIBC_TUNABLES", TUNABLES, 1);
		execv("/proc/self/exe", argv);
	}
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
		if (!*soak->text[rank])
			check_memory(rank);
		good &= !*soak->text[rank];
	}
	printf("soak %d cycles, %ld kB of the heap at first, %ld at the end, %ld kB of other "
	       "memory at first, %ld at the end, %s\n",
	       soak->ncycles, soak->first[0].heap_bytes / 1024, soak->last[0].heap_bytes / 1024,
	       soak->first[0].other_kb, soak->last[0].other_kb, good ? "ok" : "failed");
	for (int rank = 0; rank < N; rank++)
		if (*soak->text[rank])
			printf("# %s\n", soak->text[rank]);
	return good ? 0 : 1;
}
