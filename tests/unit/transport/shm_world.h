/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TRANSPORT_SHM_WORLD_H
#define TESTS_TRANSPORT_SHM_WORLD_H

/* Ranks of the shm transport in one program, as threads or as processes. A check
 * that fails ends the program, so that no other rank waits for the one it hit. */

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/shm/shm.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/hash.h"

#define CHECK(condition)                                                                    \
	((condition) ? (void)0                                                              \
		     : (fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, \
				tti_error_text()),                                          \
			_exit(1)))

#define WORLD_MOST 1024

struct world {
	int n;
	size_t slot_bytes;
	int slots;
	int64_t timeout_ms;
	uint32_t start;
	bool own_join;   /* the body joins by itself */
	bool own_settle; /* the body settles by itself */
	enum tti_reach_wish reach;
	const struct tti_reach_figures *measured;
	void (*body)(struct world *world, struct tti_port *port);
	const char *host_id[WORLD_MOST];
	_Atomic int stop;
	uint8_t secret[WORLD_MOST][32];
	struct tti_card cards[WORLD_MOST];
	uint64_t domain[WORLD_MOST];
	pthread_barrier_t barrier;
};

struct world_rank {
	struct world *world;
	int rank;
	pthread_t thread;
};

static inline struct world *world_create(int n, void (*body)(struct world *, struct tti_port *))
{
	struct world *const world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t attr;

	CHECK(world != MAP_FAILED);
	world->n = n;
	world->slot_bytes = 16384;
	world->slots = 4;
	world->timeout_ms = 30000;
	world->body = body;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&world->barrier, &attr, (unsigned)n);
	return world;
}

static inline void world_free(struct world *world)
{
	pthread_barrier_destroy(&world->barrier);
	munmap(world, sizeof(*world));
}

static inline void world_sync(struct world *world)
{
	pthread_barrier_wait(&world->barrier);
}

static inline struct tti_port_config world_config(struct world *world, int rank)
{
	return (struct tti_port_config){
		.rank = rank,
		.nranks = world->n,
		.secret = world->secret[rank],
		.host_id = world->host_id[rank],
		.slot_bytes = world->slot_bytes,
		.slots = world->slots,
		.reach = world->reach,
		.measured = world->measured,
		.stop = &world->stop,
		.timeout_ms = world->timeout_ms,
	};
}

static inline void world_rank_run(struct world *world, int rank)
{
	const struct tti_port_config config = world_config(world, rank);
	struct tti_port *port = NULL;

	CHECK(tti_transport_shm.open(&config, &port, &world->cards[rank]) == TUTTI_OK);
	world_sync(world);
	if (!world->own_join) {
		CHECK(tti_transport_shm.join(port, world->cards, &world->domain[rank]) == TUTTI_OK);
		tti_shm_set_start(port, world->start);
		world_sync(world);
		if (!world->own_settle)
			CHECK(tti_transport_shm.settle(port) == TUTTI_OK);
	}
	if (world->body)
		world->body(world, port);
	tti_transport_shm.shutdown(port);
}

static inline void *world_thread(void *arg)
{
	struct world_rank *const self = arg;

	world_rank_run(self->world, self->rank);
	return NULL;
}

static inline void world_run_threads(struct world *world)
{
	struct world_rank *const ranks = calloc((size_t)world->n, sizeof(*ranks));
	pthread_attr_t attr;

	CHECK(ranks);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 512 * 1024);
	for (int rank = 0; rank < world->n; rank++) {
		ranks[rank] = (struct world_rank){ .world = world, .rank = rank };
		CHECK(!pthread_create(&ranks[rank].thread, &attr, world_thread, &ranks[rank]));
	}
	for (int rank = 0; rank < world->n; rank++)
		pthread_join(ranks[rank].thread, NULL);
	pthread_attr_destroy(&attr);
	free(ranks);
}

/* Two ranks, threads of this process, with nothing out of the ordinary. */
static inline void world_run_two(void (*body)(struct world *, struct tti_port *))
{
	struct world *const world = world_create(2, body);

	world_run_threads(world);
	world_free(world);
	tti_transport_shm.shutdown(NULL);
}

/* before: run in each process first, NULL: nothing. */
static inline void world_run_processes(struct world *world, void (*before)(struct world *, int))
{
	pid_t pids[WORLD_MOST];

	for (int rank = 0; rank < world->n; rank++) {
		pids[rank] = fork();
		CHECK(pids[rank] >= 0);
		if (pids[rank])
			continue;
		if (before)
			before(world, rank);
		world_rank_run(world, rank);
		_exit(0);
	}
	for (int rank = 0; rank < world->n; rank++) {
		int status = 0;

		CHECK(waitpid(pids[rank], &status, 0) == pids[rank]);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static inline int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n += !access(path, F_OK);
	}
	return n;
}

static inline void nap_ms(int ms)
{
	usleep((useconds_t)ms * 1000);
}

#endif
