/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t crew_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void crew_nap_us(int us)
{
	const struct timespec nap = { .tv_sec = us / 1000000,
				      .tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&nap, NULL);
}

struct crew *crew_create(int n, const char *transport,
			 tutti_status (*call)(struct crew *, int, tutti_comm_t))
{
	struct crew *crew = mmap(NULL, sizeof(*crew), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (crew == MAP_FAILED)
		abort();
	crew->n = n;
	crew->transport = transport;
	crew->call = call;
	return crew;
}

void crew_free(struct crew *crew)
{
	munmap(crew, sizeof(*crew));
}

static void keep_error(struct crew_rank *own, tutti_status status, tutti_comm_t comm)
{
	snprintf(own->text, sizeof(own->text), "%s", tutti_last_error(comm));
	atomic_store(&own->status, status);
	atomic_store(&own->failed_ns, crew_now_ns());
}

static void run_rank(struct crew *crew, int rank)
{
	struct crew_rank *own = &crew->rank[rank];
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm = NULL;
	tutti_status st = TUTTI_OK;

	if (crew->prepare)
		crew->prepare(crew, rank);
	if (rank == 0) {
		st = tutti_get_unique_id(&crew->id);
		atomic_store(&crew->has_id, 1);
	}
	while (!atomic_load(&crew->has_id))
		crew_nap_us(200);
	config.transport = crew->transport;
	config.timeout_ms = crew->timeout_ms;
	if (st == TUTTI_OK)
		st = tutti_comm_init_rank_config(&comm, crew->n, crew->id, rank, &config);
	if (st != TUTTI_OK) {
		keep_error(own, st, NULL);
		return;
	}
	atomic_store(&own->ready, 1);
	while (st == TUTTI_OK && !atomic_load(&crew->stop)) {
		st = crew->call(crew, rank, comm);
		if (st == TUTTI_OK)
			atomic_fetch_add(&own->calls, 1);
	}
	if (st != TUTTI_OK)
		keep_error(own, st, comm);
	tutti_comm_destroy(comm);
	atomic_store(&own->done, 1);
}

int crew_start(struct crew *crew)
{
	const int64_t deadline = crew_now_ns() + (int64_t)120 * 1000000000;

	for (int rank = 0; rank < crew->n; rank++) {
		const pid_t pid = fork();

		if (pid < 0)
			return -1;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			run_rank(crew, rank);
			/* Not exit(): the parent's buffers are not ours to flush. */
			_exit(atomic_load(&crew->rank[rank].done) ? 0 : 1);
		}
		crew->rank[rank].pid = pid;
	}
	for (int rank = 0; rank < crew->n; rank++)
		while (!atomic_load(&crew->rank[rank].ready)) {
			if (crew_now_ns() > deadline || atomic_load(&crew->rank[rank].status)) {
				fprintf(stderr, "rank %d did not come up: %s\n", rank,
					crew->rank[rank].text);
				return -1;
			}
			crew_nap_us(500);
		}
	return 0;
}

/* Whether it had to be killed. */
static bool end_rank(pid_t pid, int64_t deadline)
{
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (crew_now_ns() > deadline) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return true;
		}
		crew_nap_us(500);
	}
	return false;
}

int crew_wait(struct crew *crew, int timeout_ms, int except)
{
	const int64_t deadline = crew_now_ns() + (int64_t)timeout_ms * 1000000;
	int killed = 0;

	for (int rank = 0; rank < crew->n; rank++)
		if (rank != except)
			killed += end_rank(crew->rank[rank].pid, deadline);
	if (except >= 0)
		(void)end_rank(crew->rank[except].pid, 0);
	return killed;
}
