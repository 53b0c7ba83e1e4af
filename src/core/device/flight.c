/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/flight.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/call/args.h"
#include "core/comm.h"
#include "core/device/circle.h"
#include "device/flatten.h"
#include "gpu/cuda_memory.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"

/* How often the progress of a kernel is looked at, and whether its device works. */
#define LOOK_NS    (1 * TTI_NS_PER_MS)
#define EXAMINE_NS (500 * TTI_NS_PER_MS)

/* -- What the kernel says ------------------------------------------------------------- */

static _Atomic uint32_t *word32(uint32_t *word)
{
	return (_Atomic uint32_t *)word;
}

static uint64_t last_word(const struct tti_flights *flights)
{
	return atomic_load_explicit((_Atomic uint64_t *)flights->words->host, memory_order_acquire);
}

uint64_t tti_flights_ended(const struct tti_flights *flights)
{
	return last_word(flights) >> 8;
}

/* Whether the kernel has ended, and with what result. */
static bool kernel_has_ended(const struct tti_flight *flight, enum tti_dev_result *result)
{
	const uint64_t word = last_word(flight->comm->device->flights);

	/* A later one may have ended since, which it only does if this one has ended well. */
	*result = word >> 8 == flight->number ? (enum tti_dev_result)(word & 0xff) : TTI_DEV_DONE;
	return word >> 8 >= flight->number;
}

bool tti_flight_has_mismatch(const struct tti_device *device, struct tti_job *job)
{
	struct tti_dev_report *report = &device->control->report;

	if (atomic_load_explicit(word32(&report->result), memory_order_acquire) != TTI_DEV_MISMATCH)
		return false;
	job->status = TUTTI_EMISMATCH;
	job->mismatch_peer = report->peer;
	job->mismatch_tag = report->tag;
	job->mismatch_bytes = report->nbytes;
	return true;
}

int tti_flight_waits_for(const struct tti_device *device, uint64_t *where)
{
	uint64_t first = UINT64_MAX;
	int peer = -1;

	*where = 0;
	for (uint32_t block = 0; block < device->shape.nblocks; block++) {
		struct tti_dev_progress *at = &device->control->progress[block];
		const uint32_t waits_for =
			atomic_load_explicit(word32(&at->waits_for), memory_order_relaxed);
		const uint64_t operation =
			atomic_load_explicit(word32(&at->operation), memory_order_relaxed);
		const uint64_t round =
			atomic_load_explicit(word32(&at->round), memory_order_relaxed);

		if (waits_for == 0)
			continue;
		*where += (round << 32) + (operation << 8) + block + 1;
		/* The block that is behind the others holds them up, not the other way round. */
		if ((round << 32 | operation) < first) {
			first = round << 32 | operation;
			peer = (int)waits_for - 1;
		}
	}
	return peer;
}

bool tti_flight_has_looked(struct tti_device *device, int peer)
{
	uint32_t looks[TTI_DEV_BLOCKS_MAX];

	memcpy(looks, device->looked, sizeof(looks));
	for (uint32_t block = 0; device->control && block < device->shape.nblocks; block++) {
		struct tti_dev_progress *at = &device->control->progress[block];

		if (atomic_load_explicit(word32(&at->waits_for), memory_order_relaxed) !=
		    (uint32_t)peer + 1)
			continue;
		looks[block] = atomic_load_explicit(word32(&at->looks), memory_order_relaxed);
		if (looks[block] == device->looked[block])
			return false;
	}
	memcpy(device->looked, looks, sizeof(looks));
	return true;
}

/* A look, once in a while, at whom the call waits for. */
static void look(struct tti_flight *flight, struct tti_job *job, bool has_ended)
{
	const int64_t now = tti_now_ns();
	uint64_t where = 0;
	int peer = -1;

	if (now - flight->looked_ns < LOOK_NS)
		return;
	flight->looked_ns = now;
	if (!has_ended)
		peer = tti_flight_waits_for(flight->comm->device, &where);
	else if (flight->has_messages)
		peer = flight->proxy.waiting_on;
	job->waiting_on = peer;
	if (peer < 0)
		job->waits_since_ns = 0;
	else if (job->waits_since_ns == 0 || where != flight->where)
		job->waits_since_ns = now;
	flight->where = where;
	if (has_ended || now - flight->examined_ns < EXAMINE_NS)
		return;
	if (flight->examined_ns)
		job->status = tti_gpu_health(flight->comm->device->gpu);
	if (job->status >= 0 && job->waits_since_ns && now - job->waits_since_ns >= EXAMINE_NS)
		job->status = tti_circle_check(flight, now - job->waits_since_ns);
	job->status = job->status == TUTTI_OK ? TUTTI_AGAIN : job->status;
	flight->examined_ns = now;
}

static void land_well(struct tti_job *job, enum tti_dev_result result)
{
	job->status = TUTTI_OK;
	job->program.is_memory = result == TTI_DEV_DIRECT;
	job->program.begins = false;
}

static bool poll_flight(struct tti_job *job)
{
	struct tti_flight *flight = job->self;
	enum tti_dev_result result = TTI_DEV_DONE;
	/* First: what it sent before its end is moved below. */
	const bool has_ended = flight->is_captured || kernel_has_ended(flight, &result);
	const bool moved = flight->has_messages && tti_proxy_poll(&flight->proxy, job);

	if (job->status != TUTTI_AGAIN || tti_flight_has_mismatch(flight->comm->device, job))
		return moved;
	if (has_ended && result == TTI_DEV_STOPPED)
		job->status = TUTTI_EABORTED;
	else if (has_ended && (!flight->has_messages || tti_proxy_is_done(&flight->proxy)))
		land_well(job, result);
	else if (moved)
		job->waits_since_ns = 0;
	else
		look(flight, job, has_ended);
	return moved;
}

struct tti_flight *tti_flight_of(const struct tti_job *job)
{
	return job->poll == poll_flight ? job->self : NULL;
}

/* -- Buffers ----------------------------------------------------------------------------- */

tutti_status tti_device_check_buffer(const struct tti_device *device, const char *call,
				     const char *which, uintptr_t buffer, size_t nbytes)
{
	struct tti_gpu_pointer at;
	char what[80];

	(void)snprintf(what, sizeof(what), "the %s buffer of %s", which, call);
	TTI_TRY(tti_gpu_buffer(device->gpu, (const void *)buffer, nbytes, what, &at));
	if (at.at == buffer)
		return TUTTI_OK;
	return tti_fail(TUTTI_EUNSUPPORTED,
			"%s at %p has another address, 0x%" PRIx64
			", for device %d: allocate it by cudaHostAlloc() or cudaMalloc()",
			what, (void *)buffer, at.at, device->ordinal);
}

/* -- The start ------------------------------------------------------------------------------ */

tutti_status tti_flights_create(struct tti_device *device)
{
	struct tti_flights *flights = tti_zalloc(sizeof(*flights));

	if (!flights)
		return tti_fail(TUTTI_ENOMEM, "calls on device %d: out of memory", device->ordinal);
	pthread_mutex_init(&flights->lock, NULL);
	tti_cond_init(&flights->news);
	flights->end = &flights->first;
	device->flights = flights;
	return TUTTI_OK;
}

tutti_status tti_flights_make_ready(struct tti_device *device)
{
	struct tti_flights *flights = device->flights;

	if (flights->words)
		return TUTTI_OK;
	TTI_TRY(tti_device_room_take(device, sizeof(uint64_t), true, &flights->words));
	*(uint64_t *)flights->words->host = 0;
	return TUTTI_OK;
}

static tutti_status take(struct tti_comm *comm, struct tti_flight **out)
{
	struct tti_flights *flights = comm->device->flights;
	struct tti_flight *flight;

	TTI_TRY(tti_flights_make_ready(comm->device));
	tti_flights_reap(flights);
	flight = flights->free;
	if (flight)
		flights->free = flight->next;
	else
		flight = tti_zalloc(sizeof(*flight));
	if (!flight)
		return tti_fail(TUTTI_ENOMEM, "calls on device %d: out of memory",
				comm->device->ordinal);
	flight->comm = comm;
	flight->flights = flights;
	flight->number = ++flights->number;
	*out = flight;
	return TUTTI_OK;
}

static void drop_part(struct tti_device *device, struct tti_flight_part *part)
{
	if (part->program)
		tti_device_program_drop(device, part->program);
	if (part->extents)
		tti_device_room_put(device, part->extents);
}

/* It holds nothing any more, but for memory that the next one uses. */
static void put(struct tti_flight *flight)
{
	struct tti_device *device = flight->comm->device;
	const struct tti_flight kept = { .proxy = flight->proxy,
					 .messages = flight->messages,
					 .nmessages = flight->nmessages };

	drop_part(device, &flight->main);
	drop_part(device, &flight->fallback);
	tti_free(flight->peers);
	for (int i = 0; i < flight->shown.nargs; i++)
		tti_args_drop(&flight->shown.args[i]);
	tti_free(flight->shown.args);
	*flight = kept;
	flight->next = device->flights->free;
	device->flights->free = flight;
}

void tti_flight_release(struct tti_flight *flight)
{
	tti_proxy_release(&flight->proxy);
	for (int i = 0; i < flight->shown.nargs; i++)
		tti_args_drop(&flight->shown.args[i]);
	tti_free(flight->shown.args);
	tti_free(flight->messages);
	tti_free(flight->peers);
	tti_free(flight);
}

void tti_flights_reap(struct tti_flights *flights)
{
	struct tti_flight *over;

	pthread_mutex_lock(&flights->lock);
	over = flights->over;
	flights->over = NULL;
	pthread_mutex_unlock(&flights->lock);
	while (over) {
		struct tti_flight *next = over->next;

		put(over);
		over = next;
	}
}

/* Chunks that have lengths of their own, where the kernel reads them; *longest is the most elements
 * of a block. */
static tutti_status set_extents(struct tti_device *device, struct tti_flight_part *part,
				const struct tti_layout *layout, size_t nchunks, size_t *longest)
{
	struct tti_dev_extent *extents;

	TTI_TRY(tti_device_room_take(device, nchunks * sizeof(*extents), true, &part->extents));
	extents = part->extents->host;
	for (size_t i = 0; i < nchunks; i++) {
		const struct tti_extent *at = &layout->extents[i];

		extents[i] = (struct tti_dev_extent){ .first = at->first,
						      .to = at->to,
						      .count = at->count,
						      .slice = at->slice,
						      .tag = at->tag };
		if (at->slice > *longest)
			*longest = at->slice;
	}
	part->call.extents = part->extents->host_at;
	return TUTTI_OK;
}

static tutti_status set_layout(struct tti_device *device, struct tti_flight_part *part,
			       const struct tti_layout *layout, size_t nchunks, size_t slice_bytes)
{
	struct tti_dev_call *call = &part->call;
	const size_t most = layout->chunk_count ? layout->chunk_count : 1;
	size_t slice = slice_bytes / layout->type_size;

	slice = slice == 0 ? 1 : slice < most ? slice : most;
	call->nrounds = layout->by_chunk
				? 1
				: (int32_t)(layout->chunk_count > slice
						    ? (layout->chunk_count + slice - 1) / slice
						    : 1);
	if (layout->extents)
		TTI_TRY(set_extents(device, part, layout, nchunks, &slice));
	call->slice = slice;
	call->by_chunk = layout->by_chunk;
	call->input = (uintptr_t)layout->input;
	call->output = (uintptr_t)layout->output;
	call->chunk_count = layout->chunk_count;
	call->row_count = layout->row_count;
	call->in_stride = layout->in_stride;
	call->out_stride = layout->out_stride;
	call->paired = layout->paired;
	call->parts = layout->parts;
	call->type_size = (int32_t)layout->type_size;
	return TUTTI_OK;
}

/* The one element of a pre-multiplied sum: as it is now, or, where the kernel reaches it, as it is when
 * the kernel begins. */
static tutti_status set_scalar(struct tti_gpu *gpu, const struct tti_operator *custom,
			       struct tti_dev_call *call)
{
	const size_t size = tutti_type_size(custom->type);
	struct tti_gpu_pointer at = { .kind = TTI_GPU_PAGEABLE };

	call->has_scalar = 1;
	if (custom->later)
		TTI_TRY(tti_gpu_pointer(gpu, custom->later, &at));
	if (at.kind == TTI_GPU_PAGEABLE) {
		memcpy(call->scalar, custom->later ? custom->later : custom->scalars.bytes, size);
		return TUTTI_OK;
	}
	TTI_TRY(tti_gpu_buffer(gpu, custom->later, size, "the scalar of an operator", &at));
	call->scalar_at = at.at;
	return TUTTI_OK;
}

static tutti_status set_operator(struct tti_flight *flight, struct tti_dev_call *call,
				 const struct tti_args *args)
{
	flight->type = -1;
	call->type = TUTTI_UINT8;
	if (!args || !tti_collective_takes_op(args->coll))
		return TUTTI_OK;
	flight->type = call->type = (int32_t)args->type;
	call->op = (int32_t)tti_op_base(args->op);
	if (call->op == TUTTI_AVG)
		call->divisor = flight->comm->n;
	if (!args->custom)
		return TUTTI_OK;
	call->op = TUTTI_SUM;
	return set_scalar(flight->comm->device->gpu, args->custom, call);
}

/* Short messages go as words, where lanes have any. */
static bool goes_by_words(const struct tti_comm *comm, const struct tti_dev_call *call)
{
	const struct tti_lane_shape *shape = &comm->devices->shape;

	return !call->by_chunk && call->slice * (uint64_t)call->type_size <=
					  (uint64_t)shape->nblocks * shape->word_bytes;
}

tutti_status tti_flight_fill(struct tti_flight *flight, struct tti_flight_part *part,
			     struct tti_executable *executable, const struct tti_layout *layout,
			     const struct tti_args *args, size_t slice_bytes, uint64_t tag)
{
	const struct tti_compiled *compiled = tti_executable_compiled(executable);
	struct tti_device *device = flight->comm->device;
	struct tti_dev_call *call = &part->call;
	const struct tti_dev_program *flat;
	uint64_t slice_of_call;

	TTI_TRY(tti_device_program(device, executable, compiled, &part->program));
	TTI_TRY(set_layout(device, part, layout, (size_t)compiled->nchunks, slice_bytes));
	TTI_TRY(set_operator(flight, call, args));
	flat = part->program->flat;
	slice_of_call = call->slice * (uint64_t)call->type_size;
	call->program = part->program->room->at;
	call->done = device->flights->words->host_at;
	call->done_value = flight->number;
	call->window = tti_dev_window(flat);
	call->part_bytes = tti_dev_part_bytes(slice_of_call, device->shape.nblocks);
	call->words = !flat->is_memory && goes_by_words(flight->comm, call);
	call->tag = tag;
	return tti_device_scratch(device,
				  tti_dev_scratch_bytes(flat, slice_of_call, device->shape.nblocks),
				  &call->scratch);
}

tutti_status tti_flight_start(struct tti_comm *comm, struct tti_job *job,
			      struct tti_executable *executable, const struct tti_layout *layout,
			      const struct tti_args *args, size_t slice_bytes, uint64_t tag)
{
	struct tti_flight *flight = NULL;
	tutti_status st;

	TTI_TRY(take(comm, &flight));
	st = tti_flight_fill(flight, &flight->main, executable, layout, args, slice_bytes, tag);
	if (st != TUTTI_OK) {
		put(flight);
		return st;
	}
	tti_job_polled(job, &comm->engine, poll_flight, flight);
	if (tti_executable_compiled(executable)->nopers == 0)
		job->status = TUTTI_OK; /* nothing is to be done */
	return TUTTI_OK;
}

int tti_flight_peers(const struct tti_flight *flight, const int32_t **out)
{
	*out = flight->peers ? flight->peers : flight->main.program->peers;
	return flight->peers ? flight->npeers : flight->main.program->npeers;
}

bool tti_flight_has_lanes(const struct tti_flight *flight)
{
	const int32_t *peers;
	const int npeers = tti_flight_peers(flight, &peers);

	return tti_device_is_connected(flight->comm->device, peers, npeers);
}

/* -- Messages for the proxy ------------------------------------------------------------ */

static tutti_status need_messages(struct tti_flight *flight, int32_t n)
{
	if (n <= flight->nmessages)
		return TUTTI_OK;
	tti_free(flight->messages);
	flight->nmessages = 0;
	flight->messages = tti_calloc((size_t)n, sizeof(*flight->messages));
	if (!flight->messages)
		return tti_fail(TUTTI_ENOMEM, "%d queues of a call: out of memory", n);
	flight->nmessages = n;
	return TUTTI_OK;
}

tutti_status tti_flight_set_proxy(struct tti_flight *flight)
{
	const struct tti_dev_program *flat = flight->main.program->flat;
	const int32_t *lane_of = (const void *)((const char *)flat + flat->lane_of);
	struct tti_device *device = flight->comm->device;
	const struct tti_dev_extent *extents = NULL;

	flight->has_messages = false;
	if (!device->has_proxy)
		return TUTTI_OK;
	TTI_TRY(need_messages(flight, flat->nqueues));
	if (flight->main.call.by_chunk)
		extents = flight->main.extents->host;
	tti_proxy_count(flat, extents, flight->main.call.nrounds, flight->messages);
	tti_proxy_begin(&flight->proxy, &flight->comm->engine, device->shape.nblocks);
	for (int32_t i = 0; i < flat->nqueues; i++) {
		const bool is_send = lane_of[i] & 1;
		const struct tti_device_peer *peer = &device->peers[lane_of[i] / 2];

		if (peer->way != TTI_DEVICE_PINNED || flight->messages[i] == 0)
			continue;
		flight->has_messages = true;
		TTI_TRY(tti_proxy_add(&flight->proxy,
				      &(struct tti_proxy_queue){
					      .peer = lane_of[i] / 2,
					      .is_send = is_send,
					      .lanes = is_send ? peer->out : peer->in,
					      .left = flight->messages[i],
				      }));
	}
	return TUTTI_OK;
}

/* -- The end -------------------------------------------------------------------------------- */

static bool is_over(struct tti_flight *flight)
{
	if (flight->is_called && !flight->is_captured && atomic_load(&flight->begun) == 0)
		return false;
	return !flight->is_launched || flight->is_captured ||
	       tti_flights_ended(flight->comm->device->flights) >= flight->number;
}

void tti_flight_await(struct tti_flight *flight)
{
	const struct timespec nap = { .tv_nsec = 100 * 1000 };
	struct tti_gpu *gpu = flight->comm->device->gpu;
	int64_t examined_ns = tti_now_ns();

	while (!is_over(flight)) {
		nanosleep(&nap, NULL);
		if (tti_now_ns() - examined_ns < EXAMINE_NS)
			continue;
		/* A device that has failed runs nothing any more. */
		if (tti_gpu_health(gpu) != TUTTI_OK)
			break;
		examined_ns = tti_now_ns();
	}
}

void tti_flight_end(struct tti_flight *flight)
{
	tti_flight_await(flight);
	if (!flight->is_captured)
		put(flight);
}
