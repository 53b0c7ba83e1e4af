/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that are threads of one process: they need no launcher and no network.
 * The threads take turns in telling all others their number.
 *
 * Run:    ./02_threads [THREADS]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <tutti/tutti.h>

#define COUNT       4096
#define MAX_THREADS 64

struct worker {
	pthread_t thread;
	tutti_comm_t comm; /* each thread has a communicator handle of its own */
	int nranks;
	int failed;
};

/* Broadcast from `root` and check what came. */
static int one_turn(tutti_comm_t comm, int rank, int root)
{
	int data[COUNT];

	for (int i = 0; i < COUNT; i++)
		data[i] = rank == root ? root * COUNT + i : -1;

	/* In place: the same address as send and receive buffer. */
	if (tutti_broadcast(data, data, COUNT, TUTTI_INT32, root, comm, NULL) != TUTTI_OK) {
		fprintf(stderr, "rank %d: %s\n", rank, tutti_last_error(comm));
		return 1;
	}
	for (int i = 0; i < COUNT; i++)
		if (data[i] != root * COUNT + i)
			return 1;
	return 0;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	int rank;

	worker->failed = tutti_comm_rank(worker->comm, &rank) != TUTTI_OK;
	for (int root = 0; root < worker->nranks && !worker->failed; root++)
		worker->failed = one_turn(worker->comm, rank, root);

	if (worker->failed) {
		/* The other threads must not wait for this one for ever. */
		tutti_comm_abort(worker->comm);
		return NULL;
	}
	/* Each rank frees its own handle; that waits for no other rank. */
	worker->failed = tutti_comm_destroy(worker->comm) != TUTTI_OK;
	return NULL;
}

int main(int argc, char **argv)
{
	const int nranks = argc > 1 ? atoi(argv[1]) : 4;
	struct worker workers[MAX_THREADS];
	tutti_comm_t comms[MAX_THREADS];
	int failed = 0;

	if (nranks < 1 || nranks > MAX_THREADS) {
		fprintf(stderr, "usage: %s [THREADS], 1 to %d\n", argv[0], MAX_THREADS);
		return 2;
	}

	/* One call makes the handles of all ranks. */
	if (tutti_comm_init_all(comms, nranks, NULL) != TUTTI_OK) {
		fprintf(stderr, "tutti_comm_init_all: %s\n", tutti_last_error(NULL));
		return 1;
	}

	for (int i = 0; i < nranks; i++) {
		workers[i].comm = comms[i];
		workers[i].nranks = nranks;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
			fprintf(stderr, "cannot start thread %d\n", i);
			return 1;
		}
	}
	for (int i = 0; i < nranks; i++) {
		pthread_join(workers[i].thread, NULL);
		failed += workers[i].failed;
	}
	printf("%d threads, %d broadcasts: %s\n", nranks, nranks, failed ? "WRONG" : "right");
	return failed != 0;
}
