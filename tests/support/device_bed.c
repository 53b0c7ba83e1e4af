/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/device_bed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "device/lanes.h"
#include "support/device_memory.h"
#include "support/device_turns.h"
#include "support/sanitizer.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"

/* Calls of these tests take milliseconds. */
#define DEADLINE_MS (TTI_SANITIZED ? 300000 : 60000)
/* How often the launches are looked after. */
#define WATCH_NS    (2 * TTI_NS_PER_MS)

static void must(tutti_status st)
{
	if (st == TUTTI_OK)
		return;
	fprintf(stderr, "%s\n", tti_error_text());
	abort();
}

/* -- Memory ---------------------------------------------------------------------------------- */

uint64_t device_alloc(struct device_bed *bed, size_t nbytes)
{
	return device_memory_alloc(bed->memory, nbytes);
}

void *device_view(const struct device_bed *bed, uint64_t address)
{
	return bed->config.is_guarded ? device_memory_view(address) : (void *)(uintptr_t)address;
}

static uint64_t copy_of(struct device_bed *bed, const void *data, size_t nbytes)
{
	const uint64_t address = device_alloc(bed, nbytes);

	if (nbytes > 0)
		memcpy(device_view(bed, address), data, nbytes);
	return address;
}

struct tti_dev_control *device_control(const struct device_bed *bed, int rank)
{
	return device_view(bed, bed->control[rank]);
}

void device_bed_init(struct device_bed *bed, const struct device_config *config)
{
	*bed = (struct device_bed){ .config = *config };
	bed->memory = device_memory_create(config->is_guarded);
	for (int rank = 0; rank < config->n; rank++) {
		bed->lanes[rank] = device_alloc(bed, sizeof(struct tti_dev_lane) * 2 *
							     (size_t)config->n * config->nblocks);
		bed->control[rank] = device_alloc(bed, sizeof(struct tti_dev_control));
		bed->state[rank] = device_alloc(bed, sizeof(struct tti_dev_state));
		bed->done[rank] = device_alloc(bed, sizeof(uint64_t));
	}
}

bool device_bed_is_clean(const struct device_bed *bed)
{
	return device_memory_is_clean(bed->memory);
}

void device_bed_release(struct device_bed *bed)
{
	device_memory_free(bed->memory);
	free(bed->fallback);
	*bed = (struct device_bed){ 0 };
}

/* -- Lanes ----------------------------------------------------------------------------------- */

uint32_t device_slot_bytes(size_t slice_bytes, size_t type_size, uint32_t nblocks)
{
	size_t most = sizeof(struct tti_dev_buffers);

	/* A shorter piece may have a longer part, as parts begin on 16 bytes. */
	for (size_t nbytes = type_size; nbytes <= slice_bytes; nbytes += type_size)
		for (size_t block = 0; block < nblocks; block++) {
			const size_t count = nbytes / type_size;
			const size_t first = count * block / nblocks * type_size / 16 * 16;
			const size_t next = count * (block + 1) / nblocks * type_size / 16 * 16;
			const size_t part = (block + 1 == nblocks ? nbytes : next) - first;

			most = part > most ? part : most;
		}
	return (uint32_t)((most + 15) / 16 * 16);
}

static struct tti_dev_lane *lane_at(const struct device_bed *bed, int rank, uint32_t block,
				    int peer, bool is_send)
{
	struct tti_dev_lane *lanes = device_view(bed, bed->lanes[rank]);

	return &lanes[(size_t)block * 2 * (size_t)bed->config.n + 2 * (size_t)peer + is_send];
}

/* The lane of one block in one direction, each part of it in memory of its own. */
static struct tti_dev_lane make_lane(struct device_bed *bed)
{
	const struct device_config *config = &bed->config;
	const uint32_t word_bytes =
		config->words ? config->slot_bytes + (uint32_t)sizeof(struct tti_dev_head) : 0;

	return (struct tti_dev_lane){
		.slots = device_alloc(bed, (size_t)config->nslots * config->slot_bytes),
		.heads = device_alloc(bed, config->nslots * sizeof(struct tti_dev_head)),
		.words =
			word_bytes ? device_alloc(bed, (size_t)2 * config->nslots * word_bytes) : 0,
		.full = device_alloc(bed, sizeof(uint64_t)),
		.freed = device_alloc(bed, sizeof(uint64_t)),
		.nslots = config->nslots,
		.slot_bytes = config->slot_bytes,
		.word_bytes = word_bytes,
	};
}

/* What is left of the messages that were there before. */
static void age_lane(const struct device_bed *bed, struct tti_dev_lane *lane)
{
	const uint64_t carried = bed->config.carried;

	lane->seq = lane->known = carried;
	*(uint64_t *)device_view(bed, lane->full) = carried;
	*(uint64_t *)device_view(bed, lane->freed) = carried;
	/* Words of numbers that do not come next. */
	if (lane->words && carried > 0 && !bed->config.is_unwritten)
		memset(device_view(bed, lane->words), 0x77,
		       (size_t)2 * lane->nslots * lane->word_bytes);
}

/* Both directions between two ranks, as they lie in one piece of memory of each (device/lanes.h), or
 * each part by itself. */
static void connect_two(struct device_bed *bed, int a, int b)
{
	const struct tti_lane_shape shape = { .nblocks = bed->config.nblocks,
					      .nslots = bed->config.nslots,
					      .slot_bytes = bed->config.slot_bytes,
					      .word_bytes = bed->config.words
								    ? bed->config.slot_bytes
								    : 0 };
	const bool is_whole = bed->config.is_guarded;
	const uint64_t at_a = is_whole ? device_alloc(bed, tti_lanes_bytes(&shape)) : 0;
	const uint64_t at_b = is_whole ? device_alloc(bed, tti_lanes_bytes(&shape)) : 0;

	for (uint32_t block = 0; block < bed->config.nblocks; block++)
		for (int back = 0; back < 2; back++) {
			const int from = back ? b : a, to = back ? a : b;
			const uint64_t of_from = back ? at_b : at_a, of_to = back ? at_a : at_b;
			struct tti_dev_lane *out = lane_at(bed, from, block, to, true);
			struct tti_dev_lane *in = lane_at(bed, to, block, from, false);

			*out = is_whole ? tti_lane_out(&shape, block, of_from, of_to)
					: make_lane(bed);
			*in = is_whole ? tti_lane_in(&shape, block, of_to, of_from) : *out;
			age_lane(bed, out);
			age_lane(bed, in);
		}
}

static void connect_all(struct device_bed *bed, int rank, const struct tti_compiled *prog)
{
	for (int32_t i = 0; i < prog->nqueues; i++) {
		const int peer = prog->queue[i].peer;

		if (!lane_at(bed, rank, 0, peer, true)->slots)
			connect_two(bed, rank, peer);
	}
}

/* -- Calls ----------------------------------------------------------------------------------- */

static int32_t rounds_of(size_t count, size_t slice)
{
	return count > slice ? (int32_t)((count + slice - 1) / slice) : 1;
}

static uint64_t make_extents(struct device_bed *bed, const struct device_work *work,
			     uint64_t *longest_slice)
{
	const size_t nchunks = (size_t)work->prog->nchunks;
	struct tti_dev_extent *extents = calloc(nchunks, sizeof(*extents));
	uint64_t address;

	if (!extents)
		abort();
	for (size_t i = 0; i < nchunks; i++) {
		const struct tti_extent *extent = &work->layout.extents[i];

		extents[i] = (struct tti_dev_extent){ .first = extent->first,
						      .to = extent->to,
						      .count = extent->count,
						      .slice = extent->slice,
						      .tag = extent->tag };
		if (extent->slice > *longest_slice)
			*longest_slice = extent->slice;
	}
	address = copy_of(bed, extents, nchunks * sizeof(*extents));
	free(extents);
	return address;
}

static void set_layout(struct device_bed *bed, const struct device_work *work,
		       struct tti_dev_call *call)
{
	const struct tti_layout *layout = &work->layout;
	size_t slice = work->slice_bytes / layout->type_size;

	if (slice > layout->chunk_count)
		slice = layout->chunk_count;
	call->slice = slice ? slice : 1;
	call->nrounds = layout->by_chunk ? 1 : rounds_of(layout->chunk_count, call->slice);
	if (layout->extents && layout->by_chunk)
		call->slice = 1;
	if (layout->extents)
		call->extents = make_extents(bed, work, &call->slice);
	call->by_chunk = layout->by_chunk;
	call->chunk_count = layout->chunk_count;
	call->row_count = layout->row_count;
	call->in_stride = layout->in_stride;
	call->out_stride = layout->out_stride;
	call->paired = layout->paired;
	call->parts = layout->parts;
	call->input = (uintptr_t)layout->input;
	call->output = (uintptr_t)layout->output;
	call->type_size = (int32_t)layout->type_size;
}

/* A table of what peers are told of one buffer. */
static uint64_t make_table(struct device_bed *bed, const struct tti_dev_buffers *told,
			   bool is_output)
{
	const size_t n = (size_t)bed->config.n;
	const uint64_t address = device_alloc(bed, n * sizeof(uint64_t));
	uint64_t *table = device_view(bed, address);

	for (size_t peer = 0; peer < n; peer++)
		table[peer] = is_output ? told[peer].output : told[peer].input;
	return address;
}

/* What peers are told, and room for what they say. */
static void set_buffers(struct device_bed *bed, const struct device_work *work,
			struct tti_dev_call *out)
{
	const struct tti_dev_buffers *own = &work->told[0];

	if (own->input == TTI_DEV_UNREACHED)
		out->inputs = TTI_DEV_UNREACHED;
	else if (own->input)
		out->inputs = make_table(bed, work->told, false);
	if (own->output)
		out->outputs = make_table(bed, work->told, true);
	out->by_row = work->by_row;
	out->told = device_alloc(bed, bed->config.nblocks * (size_t)bed->config.n *
					      sizeof(struct tti_dev_buffers));
}

/* Kept until it is launched with the call that it is for. */
static void keep_fallback(struct device_bed *bed, int rank, const struct device_work *work,
			  struct tti_dev_call *of)
{
	struct tti_dev_call fallback;

	device_call_make(bed, rank, work, &fallback);
	bed->fallback = realloc(bed->fallback, (bed->ncalls + 1) * sizeof(fallback));
	if (!bed->fallback)
		abort();
	bed->fallback[of->done_value] = fallback;
	of->has_fallback = 1;
}

bool device_has_done(enum tti_dev_result result)
{
	return result == TTI_DEV_DONE || result == TTI_DEV_DIRECT;
}

void device_launch_add(const struct device_bed *bed, const struct tti_dev_call *call,
		       struct tti_dev_launch *out)
{
	out->call[out->ncalls] = *call;
	if (call->has_fallback)
		out->call[TTI_DEV_CALLS_MAX + out->ncalls] = bed->fallback[call->done_value];
	out->ncalls++;
}

void device_call_make(struct device_bed *bed, int rank, const struct device_work *work,
		      struct tti_dev_call *out)
{
	struct tti_dev_program *prog = NULL;

	must(tti_dev_flatten(work->prog, &prog));
	connect_all(bed, rank, work->prog);
	*out = (struct tti_dev_call){
		.program = copy_of(bed, prog, prog->nbytes),
		.lanes = bed->lanes[rank],
		.control = bed->control[rank],
		.state = bed->state[rank],
		.done = bed->done[rank],
		.done_value = ++bed->ncalls,
		.tag = work->tag,
		.type = (int32_t)work->type,
		.op = (int32_t)work->op,
		.divisor = work->divisor,
		.words = bed->config.words && !work->prog->is_memory,
	};
	set_layout(bed, work, out);
	out->window = tti_dev_window(prog);
	out->part_bytes =
		tti_dev_part_bytes(out->slice * work->layout.type_size, bed->config.nblocks);
	out->scratch =
		device_alloc(bed, tti_dev_scratch_bytes(prog, out->slice * work->layout.type_size,
							bed->config.nblocks));
	if (prog->noperands > bed->noperands)
		bed->noperands = prog->noperands;
	tti_free(prog);
	if (work->scalar) {
		out->has_scalar = 1;
		memcpy(out->scalar, work->scalar, work->layout.type_size);
	}
	if (work->told)
		set_buffers(bed, work, out);
	if (work->fallback)
		keep_fallback(bed, rank, work->fallback, out);
}

/* -- Running --------------------------------------------------------------------------------- */

struct run {
	struct device_bed *bed;
	const struct tti_dev_call *call;
	int ncalls;
	void (*watch)(void *self, struct device_bed *bed);
	void *self;
	int64_t begun;
	int left; /* launches that run */
	/* In turns any of the stacks looks at them, which orders nothing unless one has failed. */
	_Atomic bool failed, is_late;
	pthread_mutex_t lock;
	pthread_cond_t ended;
};

/* Some ranks, which run in one launch. */
struct group {
	struct run *run;
	int first, n;
	int at; /* its next call, in turns */
	pthread_t thread;
};

void device_stop(struct device_bed *bed, int rank)
{
	__atomic_store_n(&device_control(bed, rank)->stop, 1, __ATOMIC_RELAXED);
}

static void stop_all(struct device_bed *bed)
{
	for (int rank = 0; rank < bed->config.n; rank++)
		device_stop(bed, rank);
}

/* What a rank has ended with; RUNS: with nothing, or with what is of another call. */
static enum tti_dev_result result_of(const struct device_bed *bed, int rank,
				     const struct tti_dev_call *call)
{
	const uint64_t *done = device_view(bed, bed->done[rank]);

	return *done >> 8 == call->done_value ? (enum tti_dev_result)(*done & 0xff) : TTI_DEV_RUNS;
}

/* A launch of a group's calls number `at`. */
static void prepare(const struct group *group, int at, struct tti_dev_launch *out)
{
	const struct device_bed *bed = group->run->bed;
	const struct tti_dev_call *call = &group->run->call[at * bed->config.n + group->first];

	*out = (struct tti_dev_launch){
		.nblocks = bed->config.nblocks,
		.noperands = (uint32_t)bed->noperands,
	};
	for (int i = 0; i < group->n; i++)
		device_launch_add(bed, &call[i], out);
}

/* That launch has ended; whether all its ranks have done their calls. */
static bool has_done(const struct group *group, int at)
{
	struct device_bed *bed = group->run->bed;
	const struct tti_dev_call *call = &group->run->call[at * bed->config.n + group->first];
	bool done = true;

	for (int i = 0; i < group->n; i++) {
		bed->result[group->first + i] = result_of(bed, group->first + i, &call[i]);
		done &= device_has_done(bed->result[group->first + i]);
	}
	return done;
}

static struct tti_dev_host host_of(struct device_bed *bed)
{
	return (struct tti_dev_host){
		.nthreads = bed->config.nthreads,
		.view = bed->config.is_guarded ? device_memory_view : NULL,
		.traffic = &bed->traffic,
	};
}

static void *run_group(void *self)
{
	struct group *group = self;
	struct run *run = group->run;
	const struct tti_dev_host host = host_of(run->bed);
	const device_run_fn runs = run->bed->config.run ? run->bed->config.run : tti_dev_host_run;
	struct tti_dev_launch launch;
	bool done = true;

	for (int at = 0; at < run->ncalls && done; at++) {
		prepare(group, at, &launch);
		must(runs(&launch, &host));
		done = has_done(group, at);
	}
	pthread_mutex_lock(&run->lock);
	run->left--;
	if (!done)
		run->failed = true;
	pthread_cond_signal(&run->ended);
	pthread_mutex_unlock(&run->lock);
	return NULL;
}

static bool has_report(const struct device_bed *bed)
{
	for (int rank = 0; rank < bed->config.n; rank++) {
		const struct tti_dev_report *report = &device_control(bed, rank)->report;

		if (!__atomic_load_n(&report->result, __ATOMIC_ACQUIRE))
			continue;
		/* What is read while others run is all there. */
		if (report->peer < 0 || report->peer >= bed->config.n)
			abort();
		return true;
	}
	return false;
}

/* Look after what runs. */
static void look_after(struct run *run)
{
	const int64_t most_ms =
		run->bed->config.deadline_ms ? run->bed->config.deadline_ms : DEADLINE_MS;
	const int64_t ran_ms = (tti_now_ns() - run->begun) / TTI_NS_PER_MS;

	if (run->failed || has_report(run->bed))
		stop_all(run->bed);
	if (run->watch)
		run->watch(run->self, run->bed);
	if (ran_ms > most_ms && !run->is_late) {
		device_bed_print(run->bed, stderr);
		run->is_late = true;
		stop_all(run->bed);
	}
	if (ran_ms > most_ms + DEADLINE_MS) {
		fprintf(stderr, "blocks do not end that were stopped\n");
		device_bed_print(run->bed, stderr);
		abort();
	}
}

static void run_on_threads(struct run *run, struct group *group, int ngroups)
{
	run->left = ngroups;
	for (int i = 0; i < ngroups; i++)
		must(tti_thread_start(&group[i].thread, "launch", run_group, &group[i]));
	pthread_mutex_lock(&run->lock);
	while (run->left > 0) {
		tti_cond_wait_until(&run->ended, &run->lock, tti_now_ns() + WATCH_NS);
		look_after(run);
	}
	pthread_mutex_unlock(&run->lock);
	for (int i = 0; i < ngroups; i++)
		pthread_join(group[i].thread, NULL);
}

/* -- In turns -------------------------------------------------------------------------------- */

static bool next_launch(void *self, int line, struct tti_dev_launch *out)
{
	struct group *group = (struct group *)self + line;

	if (group->at > 0 && !has_done(group, group->at - 1))
		group->run->failed = true;
	if (group->run->failed || group->at == group->run->ncalls)
		return false;
	prepare(group, group->at++, out);
	return true;
}

static void nobody_goes_on(void *self)
{
	look_after(((struct group *)self)->run);
}

static void run_in_turns(struct run *run, struct group *group, int ngroups)
{
	const struct device_turns turns = {
		.nlines = ngroups, .next = next_launch, .idle = nobody_goes_on, .self = group
	};
	const struct tti_dev_host host = host_of(run->bed);

	device_turns_run(&turns, &host);
}

enum device_end device_run_watched(struct device_bed *bed, const struct tti_dev_call *call,
				   int ncalls, void (*watch)(void *self, struct device_bed *bed),
				   void *self)
{
	const int most = bed->config.per_launch ? bed->config.per_launch : TTI_DEV_CALLS_MAX;
	struct run run = { .bed = bed,
			   .call = call,
			   .ncalls = ncalls,
			   .begun = tti_now_ns(),
			   .watch = watch,
			   .self = self };
	struct group group[DEVICE_RANKS];
	int ngroups = 0;

	pthread_mutex_init(&run.lock, NULL);
	tti_cond_init(&run.ended);
	for (int first = 0, n; first < bed->config.n; first += n) {
		n = bed->config.n - first < most ? bed->config.n - first : most;
		if (bed->config.missing > first && bed->config.missing < first + n)
			n = bed->config.missing - first;
		if (bed->config.missing == first && first > 0)
			n = 1;
		else
			group[ngroups++] = (struct group){ .run = &run, .first = first, .n = n };
	}
	(bed->config.in_turns ? run_in_turns : run_on_threads)(&run, group, ngroups);
	pthread_cond_destroy(&run.ended);
	pthread_mutex_destroy(&run.lock);
	return run.is_late ? DEVICE_STUCK : run.failed ? DEVICE_ENDED : DEVICE_DONE;
}

enum device_end device_run(struct device_bed *bed, const struct tti_dev_call *call, int ncalls)
{
	return device_run_watched(bed, call, ncalls, NULL, NULL);
}

/* -- What is left ---------------------------------------------------------------------------- */

static void print_report(const struct tti_dev_report *report, FILE *out)
{
	fprintf(out,
		"  a message of rank %d does not fit: tag %#" PRIx64 " and %" PRIu64
		" bytes, expected %#" PRIx64 " and %" PRIu64 "\n",
		report->peer, report->tag, report->nbytes, report->own_tag, report->own_nbytes);
}

void device_bed_print(const struct device_bed *bed, FILE *out)
{
	const struct device_config *config = &bed->config;

	fprintf(out,
		"device bed of %d ranks, %u blocks of %u threads, %u slots of %u bytes, words %d, "
		"guarded %d, %d in a launch, %" PRIu64 " messages before\n",
		config->n, config->nblocks, config->nthreads, config->nslots, config->slot_bytes,
		config->words, config->is_guarded, config->per_launch, config->carried);
	for (int rank = 0; rank < config->n; rank++) {
		const struct tti_dev_control *control = device_control(bed, rank);

		fprintf(out, "rank %d: result %d\n", rank, (int)bed->result[rank]);
		if (__atomic_load_n(&control->report.result, __ATOMIC_ACQUIRE))
			print_report(&control->report, out);
		for (uint32_t block = 0; block < config->nblocks; block++) {
			const struct tti_dev_progress *at = &control->progress[block];
			const uint32_t waits = __atomic_load_n(&at->waits_for, __ATOMIC_RELAXED);

			if (waits)
				fprintf(out,
					"  block %u waits for %s rank %u, operation %u, round %u\n",
					block,
					__atomic_load_n(&at->is_room, __ATOMIC_RELAXED)
						? "room at"
						: "a message of",
					waits - 1,
					__atomic_load_n(&at->operation, __ATOMIC_RELAXED),
					__atomic_load_n(&at->round, __ATOMIC_RELAXED));
		}
	}
}
