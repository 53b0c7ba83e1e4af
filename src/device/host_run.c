/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/host_run.h"

#include <stdbool.h>

#include "device/access.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"

TTI_DEV_FN bool tti_dev_goes_by_chunk(const struct tti_dev_env *env)
{
	return env->shared->call->by_chunk;
}

#include "device/run.h"

struct runner;

/* One thread of one block. */
struct host_thread {
	struct runner *runner;
	struct tti_dev_world world;
	struct tti_dev_shared *shared;
	uint32_t block;
	pthread_t thread;
};

struct runner {
	const struct tti_dev_launch *launch;
	const struct tti_dev_host *host;
	uint32_t nblocks; /* of all calls */
	struct tti_dev_host_block *block;
	char *shared; /* of each block, shared_bytes */
	size_t shared_bytes;
	struct host_thread *thread; /* [nblocks * nthreads] */
	/* Blocks wait for each other, so all threads begin, or none. */
	pthread_mutex_t lock;
	pthread_cond_t decided;
	bool begins, is_refused;
};

void tti_dev_host_thread(struct tti_dev_env *env, const struct tti_dev_launch *launch,
			 uint32_t block)
{
	tti_dev_run(env, launch, block);
}

static void run_thread(const struct host_thread *thread)
{
	const struct runner *runner = thread->runner;
	struct tti_dev_traffic *traffic = runner->host->traffic;
	struct tti_dev_env env = { .world = thread->world, .shared = thread->shared };

	tti_dev_run(&env, runner->launch, thread->block);
	if (traffic) {
		atomic_fetch_add_explicit(&traffic->read, env.world.read, memory_order_relaxed);
		atomic_fetch_add_explicit(&traffic->written, env.world.written,
					  memory_order_relaxed);
	}
}

static void *run(void *self)
{
	const struct host_thread *thread = self;
	struct runner *runner = thread->runner;
	bool runs;

	pthread_mutex_lock(&runner->lock);
	while (!runner->begins && !runner->is_refused)
		pthread_cond_wait(&runner->decided, &runner->lock);
	runs = runner->begins;
	pthread_mutex_unlock(&runner->lock);
	if (runs && runner->host->join)
		runner->host->join(runner->host->of);
	if (runs)
		run_thread(thread);
	return NULL;
}

static void decide(struct runner *runner, bool runs)
{
	pthread_mutex_lock(&runner->lock);
	runner->begins = runs;
	runner->is_refused = !runs;
	pthread_cond_broadcast(&runner->decided);
	pthread_mutex_unlock(&runner->lock);
}

/* Start all threads but the first, which is the caller's. */
static tutti_status run_all(struct runner *runner)
{
	const uint32_t n = runner->nblocks * runner->host->nthreads;
	uint32_t started = 1;
	tutti_status st = TUTTI_OK;

	for (; started < n && st == TUTTI_OK; started++)
		st = tti_thread_start(&runner->thread[started].thread, "tti-block", run,
				      &runner->thread[started]);
	if (st != TUTTI_OK)
		started--;
	decide(runner, st == TUTTI_OK);
	if (st == TUTTI_OK)
		run_thread(&runner->thread[0]);
	for (uint32_t i = 1; i < started; i++)
		pthread_join(runner->thread[i].thread, NULL);
	return st;
}

static void set_up(struct runner *runner)
{
	const uint32_t nthreads = runner->host->nthreads;

	for (uint32_t i = 0; i < 2 * runner->nblocks; i++)
		pthread_barrier_init(&runner->block[i / 2].barrier[i % 2], NULL, nthreads);
	for (uint32_t i = 0; i < runner->nblocks * nthreads; i++) {
		const uint32_t block = i / nthreads;

		runner->thread[i] = (struct host_thread){
			.runner = runner,
			.world = { .block = &runner->block[block],
				   .tid = i % nthreads,
				   .nthreads = nthreads,
				   .view = runner->host->view },
			.shared = (struct tti_dev_shared *)(runner->shared +
							    block * runner->shared_bytes),
			.block = block,
		};
	}
	pthread_mutex_init(&runner->lock, NULL);
	pthread_cond_init(&runner->decided, NULL);
}

static void tear_down(struct runner *runner)
{
	for (uint32_t i = 0; i < 2 * runner->nblocks; i++)
		pthread_barrier_destroy(&runner->block[i / 2].barrier[i % 2]);
	pthread_mutex_destroy(&runner->lock);
	pthread_cond_destroy(&runner->decided);
}

tutti_status tti_dev_host_run(const struct tti_dev_launch *launch, const struct tti_dev_host *host)
{
	struct runner runner = {
		.launch = launch,
		.host = host,
		.nblocks = launch->ncalls * launch->nblocks,
		.shared_bytes = tti_dev_shared_bytes(launch->noperands),
	};
	tutti_status st;

	runner.block = tti_calloc(runner.nblocks, sizeof(*runner.block));
	runner.shared = tti_calloc(runner.nblocks, runner.shared_bytes);
	runner.thread = tti_calloc((size_t)runner.nblocks * host->nthreads, sizeof(*runner.thread));
	if (runner.block && runner.shared && runner.thread) {
		set_up(&runner);
		st = run_all(&runner);
		tear_down(&runner);
	} else {
		st = tti_fail(TUTTI_ENOMEM, "a launch of %u blocks of %u threads: out of memory",
			      runner.nblocks, host->nthreads);
	}
	tti_free(runner.block);
	tti_free(runner.shared);
	tti_free(runner.thread);
	return st;
}
