/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/device_trial.h"

#include <stdlib.h>
#include <string.h>

#include "engine/executable.h"
#include "support/reference.h"

static uint64_t draw(uint64_t *random, uint64_t n)
{
	return next_random(random) % n;
}

void device_draw(struct device_config *out, int n, uint64_t seed)
{
	static const uint32_t slots[] = { 1, 2, 8 };
	uint64_t random = seed * 17 + 3;

	*out = (struct device_config){ .n = n };
	out->nblocks = 1 + (uint32_t)draw(&random, 4);
	out->nthreads = draw(&random, 2) ? 4 : 1;
	out->nslots = slots[draw(&random, 3)];
	out->words = draw(&random, 2);
	out->is_guarded = draw(&random, 2);
	/* Numbers of words begin anew after 2^32. */
	out->carried = draw(&random, 3) ? 0 : UINT32_MAX - draw(&random, 5);
	out->per_launch = draw(&random, 2) ? TTI_DEV_CALLS_MAX : 1 + (int)draw(&random, 4);
}

struct bed_config device_plain_bed(int n, size_t slot_bytes)
{
	return (struct bed_config){ .n = n,
				    .mock = { .slot_bytes = slot_bytes,
					      .inline_bytes = 32,
					      .slots = 4,
					      .pace = MOCK_AT_ONCE,
					      .memory = TTI_REACH_MAPPED },
				    .order = BED_IN_TURN,
				    .cache_bytes = (size_t)1 << 30,
				    .seed = 1 };
}

/* -- One call of one rank -------------------------------------------------------------------- */

/* A copy of a rank's memory as it was before the call, at any element of a line. */
static uint64_t place_memory(struct device_trial *out, int rank, int at)
{
	const struct trial_call *call = &out->trial->call[at];
	const size_t size = tutti_type_size(call->type);
	const size_t shift = (call->tag >> rank % 32) % (16 / size) * size;
	const uint64_t memory = device_alloc(&out->bed, call->nbytes[rank] + shift) + shift;

	if (call->nbytes[rank] > 0)
		memcpy(device_view(&out->bed, memory), call->before[rank], call->nbytes[rank]);
	return memory;
}

/* Where what lies at `at` in the memory of a rank lies on its GPU. */
static uintptr_t there(const struct device_trial *out, int rank, int at, const void *what)
{
	return what ? (uintptr_t)out->memory[at][rank] + (uintptr_t)what -
			       (uintptr_t)out->trial->call[at].memory[rank]
		    : 0;
}

static size_t slice_of(const struct trial *trial, int at)
{
	const struct trial_call *call = &trial->call[at];
	const size_t size = tutti_type_size(call->type);

	/* Memory programs choose; some rounds are wanted. */
	if (trial->config.algo->needs_memory)
		return (call->chunk_count / (1 + call->tag % 5) + 1) * size;
	return call->slice_bytes;
}

/* Extents of a memory program for the slice of the device. */
static struct tti_extent *cut_anew(const struct trial *trial, int at)
{
	const struct trial_call *call = &trial->call[at];
	struct tti_extent *extents = calloc((size_t)trial->nchunks, sizeof(*extents));
	size_t slice = slice_of(trial, at) / tutti_type_size(call->type), rounds;

	if (!extents)
		abort();
	slice = slice > call->chunk_count ? call->chunk_count : slice;
	rounds = slice ? (call->chunk_count + slice - 1) / slice : 1;
	memcpy(extents, call->extents, (size_t)trial->nchunks * sizeof(*extents));
	for (int chunk = 0; chunk < trial->nchunks; chunk++)
		extents[chunk].slice = (extents[chunk].count + rounds - 1) / rounds;
	return extents;
}

/* What each peer is told of the buffers of a rank. */
static void tell(const struct device_trial *out, int rank, int at, struct device_work *work,
		 struct tti_dev_buffers *told)
{
	const struct trial *trial = out->trial;
	const struct trial_call *call = &trial->call[at];
	const bool by_row = call->is_uneven && trial->config.algo->coll == TUTTI_ALL_GATHER;
	const int parts = trial->nchunks / trial->config.n;

	for (int peer = 0; peer < trial->config.n; peer++) {
		told[peer].input = call->send[rank].nbytes ? (uintptr_t)work->layout.input : 0;
		told[peer].output = call->recv[rank].nbytes ? (uintptr_t)work->layout.output : 0;
		if (trial_refuses(trial, rank, at))
			told[peer] = (struct tti_dev_buffers){ .input = TTI_DEV_UNREACHED };
	}
	work->by_row = by_row ? parts : 0;
	work->told = told;
}

static struct device_work work_of(const struct device_trial *out, int rank, int at)
{
	const struct trial *trial = out->trial;
	const struct trial_call *call = &trial->call[at];
	const struct tti_reducer *reducer = &call->reducer[rank];
	struct device_work work = {
		.prog = &trial->bound[rank]->prog,
		.layout = call->layout[rank],
		.type = call->type,
		.op = call->op < TUTTI_OP_COUNT ? (tutti_op)call->op : TUTTI_SUM,
		.divisor = reducer->divisor,
		.scalar = reducer->scalars ? reducer->scalars->bytes : NULL,
		.slice_bytes = slice_of(trial, at),
		.tag = call->tag,
	};

	work.layout.input = (const void *)there(out, rank, at, work.layout.input);
	work.layout.output = (void *)there(out, rank, at, work.layout.output);
	return work;
}

static void make_call(struct device_trial *out, int rank, int at)
{
	const struct trial *trial = out->trial;
	const bool in_memory = trial->config.algo->needs_memory;
	struct device_work work = work_of(out, rank, at), other = work;
	struct tti_dev_buffers told[DEVICE_RANKS];
	struct tti_extent *extents = NULL;

	if (in_memory) {
		tell(out, rank, at, &work, told);
		other.prog = &trial->other[rank]->prog;
		other.layout = trial_other_layout(trial, rank, at);
		other.layout.input = work.layout.input;
		other.layout.output = work.layout.output;
		other.slice_bytes = TRIAL_OTHER_SLICE;
		other.tag++;
		work.fallback = trial->call[at].is_uneven ? NULL : &other;
	}
	if (in_memory && trial->call[at].is_uneven) {
		extents = cut_anew(trial, at);
		work.layout.extents = extents;
	}
	device_call_make(&out->bed, rank, &work, &out->call[at * trial->config.n + rank]);
	free(extents);
}

/* -- All ------------------------------------------------------------------------------------- */

void device_trial_init(struct device_trial *out, const struct trial *trial,
		       const struct device_config *config)
{
	struct device_config with = *config;

	*out = (struct device_trial){ .trial = trial };
	with.slot_bytes = device_slot_bytes(TRIAL_OTHER_SLICE, 1, with.nblocks);
	for (int at = 0; at < TRIAL_CALLS && !trial->config.algo->needs_memory; at++) {
		const struct trial_call *call = &trial->call[at];
		const uint32_t needed = device_slot_bytes(
			call->slice_bytes, tutti_type_size(call->type), with.nblocks);

		with.slot_bytes = needed > with.slot_bytes ? needed : with.slot_bytes;
	}
	device_bed_init(&out->bed, &with);
	for (int at = 0; at < TRIAL_CALLS; at++)
		for (int rank = 0; rank < trial->config.n; rank++) {
			out->memory[at][rank] = place_memory(out, rank, at);
			make_call(out, rank, at);
		}
}

void device_trial_release(struct device_trial *trial)
{
	device_bed_release(&trial->bed);
}

static bool is_same(struct device_trial *out, int rank, int at)
{
	const struct trial_call *call = &out->trial->call[at];
	const char *got = device_view(&out->bed, out->memory[at][rank]), *want = call->memory[rank];

	if (memcmp(got, want, call->nbytes[rank]) == 0)
		return true;
	for (size_t i = 0; i < call->nbytes[rank] && !out->wrong[0]; i++)
		if (got[i] != want[i])
			snprintf(out->wrong, sizeof(out->wrong),
				 "call %d, rank %d, byte %zu of %zu is %02x, the engine's %02x", at,
				 rank, i, call->nbytes[rank], (unsigned char)got[i],
				 (unsigned char)want[i]);
	return false;
}

bool device_trial_is_right(struct device_trial *trial)
{
	bool right = true;

	for (int at = 0; at < TRIAL_CALLS; at++)
		for (int rank = 0; rank < trial->trial->config.n; rank++)
			right &= is_same(trial, rank, at);
	if (!device_bed_is_clean(&trial->bed)) {
		snprintf(trial->wrong, sizeof(trial->wrong),
			 "something was written between what was allocated");
		right = false;
	}
	return right;
}

bool device_trial_run(const struct trial *trial, const struct device_config *config,
		      struct device_outcome *out)
{
	struct device_trial *on = malloc(sizeof(*on));
	enum device_end end;
	bool right;

	if (!on)
		abort();
	device_trial_init(on, trial, config);
	end = device_run(&on->bed, on->call, TRIAL_CALLS);
	right = end == DEVICE_DONE && device_trial_is_right(on);
	if (!right) {
		fprintf(stderr, "%s%s\n",
			end == DEVICE_STUCK  ? "stuck "
			: end != DEVICE_DONE ? "failed "
					     : "",
			on->wrong);
		device_bed_print(&on->bed, stderr);
		trial_print(trial);
	}
	if (out)
		*out = (struct device_outcome){ .read = on->bed.traffic.read,
						.written = on->bed.traffic.written };
	device_trial_release(on);
	free(on);
	return right;
}
