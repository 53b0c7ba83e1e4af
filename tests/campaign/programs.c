/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of random programs of calls, on devices of the driver on host memory or on memory of the host.
 *
 *     campaign_programs devices|hosts SEED SECONDS [ROUNDS]
 *
 * The first round is that of SEED, each next one that of one more; it ends after SECONDS or ROUNDS,
 * whatever comes first. One line for each:
 *
 *     round SEED KIND RANKS STEPS RESULT
 *
 * RESULT is ok, failed or hang: no rank has taken a step for DEADLINE_NS. Lines that begin with "#"
 * say where ranks are, and at which step each of them was. TEST_STEPS sets how many steps there are,
 * TEST_TRACE lets each rank tell its steps. Exit status 1: something was wrong. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "campaign/player.h"
#include "support/sanitizer.h"
#include "support/world.h"

#define DEADLINE_NS (INT64_C(60000000000) * (TTI_SANITIZED ? 5 : 1))

static struct shared {
	tutti_unique_id id;
	_Atomic int has_id;
	_Atomic int step[PROGRAM_RANKS], kind[PROGRAM_RANKS];
} * shared;

static struct program drawn;
static uint64_t seed;
static int nsteps;

/* -- A thread, with its ranks -------------------------------------------------------------- */

struct crew {
	pthread_t thread;
	int first, n; /* ranks */
};

static bool all_is_well(const struct crew *crew, int step)
{
	if (world_failures() == 0)
		return true;
	fprintf(stderr, "# rank %d, before the end of step %d\n", crew->first, step);
	fflush(NULL);
	_exit(1); /* others may wait for this rank for ever */
}

static void make_comms(const struct crew *crew, tutti_comm_t *comms)
{
	if (crew->n > 1)
		CHECK_OK(tutti_group_start());
	for (int i = 0; i < crew->n; i++) {
		const int rank = crew->first + i;
		tutti_config config = TUTTI_CONFIG_INIT;

		config.device = drawn.setting.device[rank];
		CHECK_OK(tutti_comm_init_rank_config(&comms[i], drawn.setting.n, shared->id, rank,
						     &config));
	}
	if (crew->n > 1)
		CHECK_OK(tutti_group_end());
}

static void trace(const struct crew *crew, int step, const struct step *what)
{
	char text[200] = "";

	for (int i = 0; i < crew->n; i++) {
		shared->kind[crew->first + i] = (int)what->kind;
		shared->step[crew->first + i] = step;
	}
	if (!getenv("TEST_TRACE"))
		return;
	fprintf(stderr, "rank %d, step %d: %s, communicator %d, child %d, how %d, graph %d\n",
		crew->first, step, step_names[what->kind], what->comm, what->child, (int)what->how,
		what->graph);
	for (int i = 0; i < what->nitems; i++) {
		if (!what->item[i].is_exchange)
			call_print(&what->item[i].call, text, sizeof(text));
		fprintf(stderr, "    %s%s on %d\n", what->is_group ? "grouped " : "",
			what->item[i].is_exchange ? "messages" : text, what->item[i].comm);
	}
}

static void *run_crew(void *self)
{
	const struct crew *crew = self;
	struct program program = drawn;
	struct player *players = calloc((size_t)crew->n, sizeof(*players));
	tutti_comm_t comms[PROGRAM_RANKS] = { NULL };
	struct step step;

	make_comms(crew, comms);
	all_is_well(crew, -1);
	for (int i = 0; i < crew->n; i++)
		player_init(&players[i], &program, crew->first + i, seed, comms[i]);
	for (int i = 0; i < nsteps && all_is_well(crew, i); i++) {
		program_next(&program, &step);
		trace(crew, i, &step);
		players_do(players, crew->n, &step);
	}
	all_is_well(crew, nsteps);
	players_end(players, crew->n);
	for (int i = 0; i < crew->n; i++) {
		shared->step[crew->first + i]++;
		player_release(&players[i]);
	}
	all_is_well(crew, nsteps + 1);
	free(players);
	return NULL;
}

/* -- A process -------------------------------------------------------------------------------- */

static void set_variables(int process)
{
	char host[32];

	setenv("TUTTI_BOOT_TIMEOUT_MS", "600000", 1);
	setenv("TUTTI_CUDA_LIB", CUDA_LIB, 0);
	setenv("TUTTI_CUDA_KERNELS", CUDA_KERNELS, 0);
	setenv("TUTTI_CUDAHOST_GPUS", "4", 1);
	setenv("TUTTI_CUDAHOST_GUARD", "1", 1);
	for (int i = 0; drawn.setting.variables[i]; i++) {
		char text[80];
		char *value;

		(void)snprintf(text, sizeof(text), "%s", drawn.setting.variables[i]);
		value = strchr(text, '=');
		*value = '\0';
		setenv(text, value + 1, 0);
	}
	(void)snprintf(host, sizeof(host), "campaign-%d", process);
	if (drawn.setting.has_hosts)
		setenv("TUTTI_HOST_ID", host, 1);
}

static int run_process(int process)
{
	const struct setting *setting = &drawn.setting;
	struct crew crews[PROGRAM_RANKS] = { 0 };
	int ncrews = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	set_variables(process);
	if (process == 0)
		shared->has_id = tutti_get_unique_id(&shared->id) == TUTTI_OK ? 1 : -1;
	while (!shared->has_id)
		(void)usleep(100);
	for (int rank = 0; rank < setting->n; rank++) {
		if (setting->process[rank] != process)
			continue;
		if (ncrews == 0 || !setting->is_crowd[process])
			crews[ncrews++].first = rank;
		crews[ncrews - 1].n++;
	}
	for (int i = 0; i < ncrews; i++)
		if (pthread_create(&crews[i].thread, NULL, run_crew, &crews[i]) != 0)
			abort();
	for (int i = 0; i < ncrews; i++)
		pthread_join(crews[i].thread, NULL);
	return world_failures() == 0 ? 0 : 1;
}

/* -- The driver -------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static long steps_taken(void)
{
	long sum = 0;

	for (int rank = 0; rank < drawn.setting.n; rank++)
		sum += shared->step[rank];
	return sum;
}

/* Until all have ended, one has failed, or none goes on. */
static const char *await_all(void)
{
	int64_t since_ns = now_ns();
	long taken = 0;
	int ended, left = drawn.setting.nprocesses;
	pid_t pid;

	while (left > 0) {
		pid = waitpid(-1, &ended, WNOHANG);
		if (pid > 0 && ended != 0)
			return "failed";
		left -= pid > 0;
		if (pid > 0 || steps_taken() != taken)
			since_ns = now_ns();
		taken = steps_taken();
		if (now_ns() > since_ns + DEADLINE_NS)
			return "hang";
		(void)usleep(500);
	}
	return "ok";
}

static void describe(void)
{
	const struct setting *setting = &drawn.setting;

	printf("#");
	for (int i = 0; setting->variables[i]; i++)
		printf(" %s", setting->variables[i]);
	printf("%s\n", setting->has_hosts ? " a host for each process" : "");
	for (int rank = 0; rank < setting->n; rank++)
		printf("# rank %d: process %d%s, device %d, step %d: %s\n", rank,
		       setting->process[rank],
		       setting->is_crowd[setting->process[rank]] ? " of one thread" : "",
		       setting->device[rank], shared->step[rank], step_names[shared->kind[rank]]);
}

static bool run_round(const char *kind)
{
	pid_t pids[PROGRAM_RANKS];
	const char *result;

	memset(shared, 0, sizeof(*shared));
	program_init(&drawn, seed, strcmp(kind, "devices") == 0);
	fflush(NULL);
	for (int i = 0; i < drawn.setting.nprocesses; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			abort();
		if (pids[i] == 0)
			exit(run_process(i));
	}
	result = await_all();
	for (int i = 0; i < drawn.setting.nprocesses && strcmp(result, "ok") != 0; i++)
		kill(pids[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	printf("round %llu %s %d %d %s\n", (unsigned long long)seed, kind, drawn.setting.n, nsteps,
	       result);
	if (strcmp(result, "ok") != 0)
		describe();
	fflush(stdout);
	return strcmp(result, "ok") == 0;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: campaign_programs devices|hosts SEED SECONDS [ROUNDS]\n");
		return 2;
	}

	const uint64_t rounds = argc > 4 ? strtoull(argv[4], NULL, 10) : UINT64_MAX;
	const int64_t end_ns = now_ns() + (int64_t)(atof(argv[3]) * 1e9);
	const char *steps = getenv("TEST_STEPS");
	bool good = true;

	nsteps = steps ? atoi(steps) : SANITIZED ? 60 : 150;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 2;
	seed = strtoull(argv[2], NULL, 10);
	for (uint64_t i = 0; i < rounds && now_ns() < end_ns; i++, seed++)
		good &= run_round(argv[1]);
	return good ? 0 : 1;
}
