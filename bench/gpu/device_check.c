/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"
#include "support/device_trial.h"
#include "support/reference.h"
#include "support/shapes.h"

/* For all lanes and buffers of a trial. */
#define AREA_BYTES ((size_t)256 << 20)

/* A trial of one drawn algorithm. */
static struct trial trial;
static struct device_trial on_gpu;

static uint64_t draw(uint64_t *random, uint64_t n)
{
	return next_random(random) % n;
}

/* -- One trial ------------------------------------------------------------------------------ */

static const struct tti_algorithm *draw_algorithm(uint64_t *random)
{
	const struct tti_algorithm *algo = NULL;

	while (!algo) {
		const tutti_collective coll =
			(tutti_collective)draw(random, TUTTI_COLLECTIVE_COUNT);
		int n = 0;

		while (tti_algorithm_at(coll, n))
			n++;
		if (n > 0)
			algo = tti_algorithm_at(coll, (int)draw(random, (uint64_t)n));
	}
	return algo;
}

static struct trial_config draw_trial(const struct device_gpu *gpu, uint64_t seed)
{
	uint64_t random = seed;
	const int most = gpu->is_host ? 4 : 12;
	struct trial_config config = {
		.algo = draw_algorithm(&random),
		.n = 1 + (int)draw(&random, (uint64_t)most),
		.shape = (int)draw(&random, SHAPE_KINDS + 1) - 1,
		.split = { .parts = 1 + (int)draw(&random, 3), .stripes = (int)draw(&random, 3) },
		.has_any_bits = true,
		.refuses = draw(&random, 3) == 0,
		.seed = seed,
	};

	if (config.algo->needs_memory) {
		config.shape = -1;
		config.split.stripes = 0;
	}
	/* A barrier has no buffers that could be out of reach, of a send nobody but the sender asks, and
	 * what a handoff touches its caller knows. */
	if (config.algo->coll == TUTTI_BARRIER || config.algo->coll == TUTTI_SEND_RECV ||
	    config.algo->coll == TUTTI_HANDOFF)
		config.refuses = false;
	if (tti_collective_is_rooted(config.algo->coll))
		config.root = (int)draw(&random, (uint64_t)config.n);
	return config;
}

/* As many blocks as can be resident, and threads as a GPU has them. */
static struct device_config draw_device(const struct device_gpu *gpu, int n, uint64_t seed)
{
	uint64_t random = seed * 31 + 7;
	struct device_config config;

	device_draw(&config, n, seed);
	config.is_guarded = true;
	config.run = device_gpu_run;
	if (gpu->is_host)
		return config;
	config.nthreads = 32u << draw(&random, 5);
	config.nblocks = 1 + (uint32_t)draw(&random, 8);
	while (config.nblocks > 1 &&
	       config.nblocks * (uint32_t)n > device_gpu_resident(config.nthreads))
		config.nblocks--;
	return config;
}

/* Whether the GPU has left the same bytes as the engine; if not it is said on stderr. */
static bool try_one(const struct trial_config *config, const struct device_config *device)
{
	const struct bed_config bed = device_plain_bed(
		config->n, config->algo->needs_memory ? 256 : (size_t)64 << config->seed % 8);
	enum device_end end = DEVICE_ENDED;
	bool right;

	trial_init(&trial, config, &bed);
	right = trial_run(&trial);
	if (right) {
		device_trial_init(&on_gpu, &trial, device);
		device_gpu_expect(tti_collective_reduces(config->algo->coll));
		device_gpu_upload(&on_gpu.bed);
		end = device_run(&on_gpu.bed, on_gpu.call, TRIAL_CALLS);
		device_gpu_download(&on_gpu.bed);
		right = end == DEVICE_DONE && device_trial_is_right(&on_gpu);
		if (!right) {
			(void)fprintf(stderr, "%s%s\n", end == DEVICE_STUCK ? "stuck " : "",
				      on_gpu.wrong);
			device_bed_print(&on_gpu.bed, stderr);
			trial_print(&trial);
		}
		device_trial_release(&on_gpu);
	}
	trial_release(&trial);
	return right;
}

/* -- Until the time is over -------------------------------------------------------------------- */

int device_check(const struct device_gpu *gpu, double seconds, uint64_t seed)
{
	const double until = now_us() + seconds * 1e6;
	int ntrials = 0, nwrong = 0;

	/* A stretch with memory of the GPU, and one with pinned memory, of which more are made. */
	for (int stretch = 0; stretch < 4 && nwrong == 0; stretch++) {
		const double end = until - seconds * 1e6 * (3 - stretch) / 4;

		device_gpu_lend(stretch % 2, AREA_BYTES);
		for (bool first = true; (first || now_us() < end) && nwrong == 0; first = false) {
			const struct trial_config config = draw_trial(gpu, seed);
			const struct device_config device = draw_device(gpu, config.n, seed);

			nwrong += !try_one(&config, &device);
			if (nwrong)
				(void)fprintf(stderr, "seed %" PRIu64 "\n", seed);
			ntrials++;
			seed++;
		}
	}
	report("drawn", "drawn calls whose bytes were compared with the host's",
	       (double)ntrials * TRIAL_CALLS, "-");
	report("drawn", "of them wrong", nwrong, "-");
	return nwrong ? 1 : 0;
}

/* -- Each kernel once ---------------------------------------------------------------------------- */

/* Calls of one way, with the types and operators from `pair` on. */
static bool try_kernel(const struct device_gpu *gpu, const struct tti_algorithm *algo, bool words,
		       int n, int pair)
{
	const struct trial_config config = {
		.algo = algo,
		.n = n,
		.shape = -1,
		.split = { .parts = 1 },
		.pair = pair,
		.has_any_bits = true,
		.seed = 5 + (uint64_t)pair,
	};
	struct device_config device = draw_device(gpu, n, config.seed);

	device.words = words;
	if (!gpu->is_host)
		device.nthreads = 64;
	device.nblocks = 2;
	return try_one(&config, &device);
}

int device_every(const struct device_gpu *gpu, bool is_small)
{
	static const struct {
		tutti_collective coll;
		const char *name;
		bool words;
	} ways[] = {
		{ TUTTI_ALL_REDUCE, "exchange", true }, { TUTTI_ALL_REDUCE, "ring", false },
		{ TUTTI_ALL_REDUCE, "direct", false },  { TUTTI_ALL_REDUCE, "memory", false },
		{ TUTTI_BROADCAST, "chain", false },    { TUTTI_BROADCAST, "chain", true },
		{ TUTTI_BROADCAST, "memory", false },
	};
	int nlaunches = 0, nwrong = 0, op;
	tutti_type type;

	device_gpu_lend(false, AREA_BYTES);
	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
		const struct tti_algorithm *algo =
			tti_algorithm_find(ways[way].coll, ways[way].name);
		/* What is only moved has one kernel for all types. */
		const int npairs =
			tti_collective_reduces(ways[way].coll) ? trial_pair(0, &type, &op) : 1;

		for (int pair = 1; pair <= npairs && nwrong == 0;
		     pair += TRIAL_CALLS * (is_small ? 6 : 1)) {
			nwrong += !try_kernel(gpu, algo, ways[way].words, is_small ? 2 : 4, pair);
			nlaunches += TRIAL_CALLS;
		}
	}
	report("every", "launches", nlaunches, "-");
	report("every", "wrong ones", nwrong, "-");
	return nwrong ? 1 : 0;
}
