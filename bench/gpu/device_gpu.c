/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/cuda_memory.h"
#include "gpu/cuda_stream.h"
#include "runtime.h"
#include "support/device_memory.h"
#include "util/error.h"

/* How often a launch is looked after. */
#define LOOK_NS 50000

/* What the calls of a launch share with the host while they run. */
struct shared {
	struct tti_dev_control control;
	_Alignas(64) uint64_t done;
};

/* Of one launch at a time. */
struct turn {
	void *stream;
	struct shared *shared; /* [TTI_DEV_CALLS_MAX] */
	uint64_t shared_at;    /* as kernels reach it */
	bool is_taken;
};

static struct device_gpu gpu;
static struct turn turns[DEVICE_RANKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool reduces;
static struct {
	bool is_pinned;
	uint64_t at;
	void *alias;
	size_t nbytes;
} lent;

static void must(tutti_status status)
{
	if (status != TUTTI_OK)
		give_up("%s\n", tti_error_text());
}

const struct device_gpu *device_gpu_open(void)
{
	must(tti_gpu_open(0, &gpu.gpu));
	must(tti_kernels_get(gpu.gpu, &gpu.kernels));
	gpu.is_host = tti_gpu_driver_is_host(tti_gpu_driver_of(gpu.gpu));
	must(tti_gpu_stream_create(gpu.gpu, false, &gpu.stream));
	return &gpu;
}

uint32_t device_gpu_resident(uint32_t nthreads)
{
	uint32_t n = 0;

	must(tti_kernels_resident(gpu.kernels, gpu.gpu, nthreads, &n));
	return n;
}

/* -- Memory ------------------------------------------------------------------------------ */

void device_gpu_lend(bool is_pinned, size_t nbytes)
{
	if (lent.is_pinned) {
		tti_gpu_pinned_free(gpu.gpu, lent.alias);
	} else if (lent.nbytes > 0) {
		tti_gpu_free(gpu.gpu, lent.at);
		free(lent.alias);
	}
	lent.is_pinned = is_pinned;
	lent.nbytes = nbytes;
	if (is_pinned) {
		must(tti_gpu_pinned_alloc(gpu.gpu, nbytes, &lent.alias, &lent.at));
	} else {
		must(tti_gpu_alloc(gpu.gpu, nbytes, &lent.at));
		lent.alias = malloc(nbytes);
		if (!lent.alias)
			give_up("out of memory\n");
	}
	device_memory_lend(lent.at, lent.alias, nbytes);
}

void device_gpu_upload(const struct device_bed *bed)
{
	if (!lent.is_pinned)
		must(tti_gpu_write(gpu.gpu, lent.at, lent.alias, device_memory_used(bed->memory)));
}

void device_gpu_download(const struct device_bed *bed)
{
	if (!lent.is_pinned)
		must(tti_gpu_read(gpu.gpu, lent.alias, lent.at, device_memory_used(bed->memory)));
}

/* -- Launches ------------------------------------------------------------------------------ */

static struct turn *take_turn(void)
{
	struct turn *turn = turns;

	pthread_mutex_lock(&lock);
	while (turn->is_taken)
		turn++;
	turn->is_taken = true;
	if (!turn->stream) {
		void *shared;

		must(tti_gpu_stream_create(gpu.gpu, false, &turn->stream));
		must(tti_gpu_pinned_alloc(gpu.gpu, TTI_DEV_CALLS_MAX * sizeof(struct shared),
					  &shared, &turn->shared_at));
		turn->shared = shared;
	}
	pthread_mutex_unlock(&lock);
	memset(turn->shared, 0, TTI_DEV_CALLS_MAX * sizeof(struct shared));
	return turn;
}

static void give_back(struct turn *turn)
{
	pthread_mutex_lock(&lock);
	turn->is_taken = false;
	pthread_mutex_unlock(&lock);
}

static void point(const struct turn *turn, struct tti_dev_launch *launch)
{
	for (uint32_t i = 0; i < launch->ncalls; i++) {
		const uint64_t at = turn->shared_at + i * sizeof(struct shared);

		launch->call[i].control = at + offsetof(struct shared, control);
		launch->call[i].done = at + offsetof(struct shared, done);
	}
}

/* What the bed knows of a launch, and the other way round. */
static void compare_notes(const struct turn *turn, const struct tti_dev_launch *launch)
{
	for (uint32_t i = 0; i < launch->ncalls; i++) {
		struct shared *shared = &turn->shared[i];
		struct tti_dev_control *control = device_memory_view(launch->call[i].control);
		const uint32_t stop = __atomic_load_n(&control->stop, __ATOMIC_RELAXED);

		__atomic_store_n(&shared->control.stop, stop, __ATOMIC_RELAXED);
		memcpy(&control->progress, &shared->control.progress, sizeof(control->progress));
		control->report = shared->control.report;
	}
}

void device_gpu_expect(bool calls_reduce)
{
	reduces = calls_reduce;
}

static void put(const struct tti_dev_launch *launch, uint32_t nthreads, void *stream)
{
	must(tti_kernels_launch(gpu.kernels, gpu.gpu, reduces ? launch->call[0].type : -1, launch,
				nthreads, stream));
}

static void await(const struct turn *turn, const struct tti_dev_launch *launch)
{
	const struct timespec nap = { .tv_nsec = LOOK_NS };
	tutti_status status;

	while ((status = tti_gpu_stream_query(gpu.gpu, turn->stream)) == TUTTI_AGAIN) {
		if (!lent.is_pinned)
			compare_notes(turn, launch);
		(void)nanosleep(&nap, NULL);
	}
	must(status);
}

tutti_status device_gpu_run(const struct tti_dev_launch *launch, const struct tti_dev_host *host)
{
	struct turn *turn = take_turn();
	struct tti_dev_launch shared = *launch;

	if (!lent.is_pinned)
		point(turn, &shared);
	put(&shared, host->nthreads, turn->stream);
	await(turn, launch);
	for (uint32_t i = 0; i < launch->ncalls && !lent.is_pinned; i++)
		*(uint64_t *)device_memory_view(launch->call[i].done) = turn->shared[i].done;
	if (!lent.is_pinned)
		compare_notes(turn, launch);
	give_back(turn);
	return TUTTI_OK;
}

/* -- Launches of others ------------------------------------------------------------------- */

void device_gpu_share(struct tti_dev_launch *launch)
{
	struct turn *turn = take_turn();

	point(turn, launch);
	give_back(turn);
}

bool device_gpu_is_done(const struct tti_dev_launch *launch)
{
	bool done = true;

	for (uint32_t i = 0; i < launch->ncalls; i++)
		done &= turns[0].shared[i].done >> 8 == launch->call[i].done_value &&
			device_has_done((enum tti_dev_result)(turns[0].shared[i].done & 0xff));
	return done;
}
