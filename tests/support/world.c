/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/comm.h"
#include "core/handle.h"

static _Atomic int failures;

bool world_failed(const char *file, int line, const char *what, const char *more)
{
	if (atomic_fetch_add(&failures, 1) < 20)
		fprintf(stderr, "%s:%d: %s (%s)\n", file, line, what, more);
	return false;
}

int world_failures(void)
{
	return atomic_load(&failures);
}

bool world_await_call(tutti_comm_t handle)
{
	const struct timespec nap = { .tv_nsec = 1000 * 1000 };
	struct tti_comm *comm = NULL;
	bool running = false;

	if (tti_handle_enter(handle, &comm) != TUTTI_OK)
		return false;
	for (int i = 0; i < 30000 && !running; i++) {
		nanosleep(&nap, NULL);
		running = atomic_load(&comm->current.running) != 0;
	}
	tti_handle_leave(handle);
	return running;
}

struct member {
	pthread_t thread;
	const struct world *world;
	tutti_unique_id id;
	pthread_barrier_t *made;
	tutti_comm_t comm;
	int rank;
	world_fn fn;
	void *arg;
};

static void *member_thread(void *self)
{
	struct member *member = self;
	const struct world *world = member->world;
	tutti_config config = TUTTI_CONFIG_INIT;
	bool ok = true;

	config.transport = world->transport;
	config.algo = world->algo;
	config.timeout_ms = world->timeout_ms;
	config.reproducible = world->reproducible;
	if (world->devices)
		config.device = world->devices[member->rank];
	if (world->sockets || world->devices)
		ok = CHECK_OK(tutti_comm_init_rank_config(&member->comm, world->n, member->id,
							  member->rank, &config));
	/* What a rank does wrong on purpose is not to end the init of one that is still in it. */
	pthread_barrier_wait(member->made);
	if (!ok)
		return NULL;
	member->fn(member->comm, member->rank, world->n, member->arg);
	CHECK_OK(tutti_comm_destroy(member->comm));
	return NULL;
}

static bool prepare(const struct world *world, struct member *members)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t *comms;
	bool ok;

	if (world->sockets || world->devices)
		return CHECK_OK(tutti_get_unique_id(&members[0].id));
	comms = calloc((size_t)world->n, sizeof(*comms));
	config.transport = world->transport;
	config.algo = world->algo;
	config.timeout_ms = world->timeout_ms;
	config.reproducible = world->reproducible;
	ok = CHECK_OK(tutti_comm_init_all(comms, world->n, &config));
	for (int rank = 0; ok && rank < world->n; rank++)
		members[rank].comm = comms[rank];
	free(comms);
	return ok;
}

int world_run(const struct world *world, world_fn fn, void *arg)
{
	struct member *members = calloc((size_t)world->n, sizeof(*members));
	const int before = atomic_load(&failures);
	pthread_barrier_t made;
	pthread_attr_t attr;

	pthread_barrier_init(&made, NULL, (unsigned)world->n);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 512 * 1024);
	if (prepare(world, members)) {
		for (int rank = 0; rank < world->n; rank++) {
			members[rank].world = world;
			members[rank].id = members[0].id;
			members[rank].made = &made;
			members[rank].rank = rank;
			members[rank].fn = fn;
			members[rank].arg = arg;
			if (pthread_create(&members[rank].thread, &attr, member_thread,
					   &members[rank]) != 0)
				abort();
		}
		for (int rank = 0; rank < world->n; rank++)
			pthread_join(members[rank].thread, NULL);
	}
	pthread_attr_destroy(&attr);
	pthread_barrier_destroy(&made);
	free(members);
	return atomic_load(&failures) - before;
}

int world_sum_over(tutti_comm_t comm, int value)
{
	int sum = -1;

	CHECK_OK(tutti_all_reduce(&value, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL));
	return sum;
}

void world_check_place(tutti_comm_t comm, int rank, int n)
{
	int out = -1;

	CHECK_OK(tutti_comm_rank(comm, &out));
	CHECK(out == rank);
	CHECK_OK(tutti_comm_count(comm, &out));
	CHECK(out == n);
}

void world_check_large(tutti_comm_t comm, int n)
{
	const size_t count = 300001;
	float *data = calloc(count, sizeof(*data));
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++)
		data[i] = (float)(i % 7);
	CHECK_OK(tutti_all_reduce(data, data, count, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	for (size_t i = 0; i < count; i++)
		wrong += data[i] != (float)(i % 7) * (float)n;
	CHECK(wrong == 0);
	free(data);
}
