/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "boot/boot.h"
#include "core/comm.h"
#include "core/device/flight.h"
#include "device/kernels.h"
#include "gpu/cuda_stream.h"
#include "util/error.h"
#include "util/mem.h"

/* From flights to launches.
 *
 * The kernels of one communicator run one after the other, whatever their streams: lanes and scratch
 * are theirs in turn. In one stream that is so by itself; a stream that is not the one of the launch
 * before waits for the word that its kernel writes at its end. That stream itself is not touched: it may be
 * gone, or captured by now, and what others have put into it since may wait for this launch. In a
 * capture a word of a launch would be waited for at each repetition, so there only launches of the same
 * capture are ordered, by an event. */

/* Launches of the process, which tell those of one launch from others of its stream. */
static _Atomic uint64_t launches;

/* Launches of several communicators at a time. */
struct batch {
	const struct tti_flight_stream *stream; /* NULL: the library's */
	struct tti_job *job[TTI_DEV_CALLS_MAX];
	struct tti_dev_launch launch;
};

static struct tti_device *device_of(const struct tti_flight *flight)
{
	return flight->comm->device;
}

/* -- Lanes -------------------------------------------------------------------------------- */

static void connect(struct tti_job *const *jobs, const struct tti_args *const *args, int n)
{
	struct tti_device_need *needs = NULL;
	int nneeds = 0;

	for (int i = 0; i < n; i++) {
		struct tti_flight *flight = tti_flight_of(jobs[i]);

		if (!flight || jobs[i]->status != TUTTI_AGAIN || tti_flight_has_lanes(flight))
			continue;
		if (!needs)
			needs = tti_calloc((size_t)n, sizeof(*needs));
		if (!needs) {
			jobs[i]->status =
				tti_fail(TUTTI_ENOMEM, "lanes of %d calls: out of memory", n);
			continue;
		}
		needs[nneeds] = (struct tti_device_need){ .comm = flight->comm, .args = args[i] };
		needs[nneeds].npeers = tti_flight_peers(flight, &needs[nneeds].peers);
		nneeds++;
	}
	if (nneeds > 0)
		tti_device_connect(needs, nneeds);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < nneeds; k++)
			if (tti_flight_of(jobs[i]) && needs[k].status != TUTTI_OK &&
			    tti_flight_of(jobs[i])->comm == needs[k].comm)
				jobs[i]->status = needs[k].status;
	tti_free(needs);
}

/* -- The order of launches ---------------------------------------------------------------- */

/* Whether the launch before has ended: then nothing waits for it. */
static bool is_idle(const struct tti_flights *flights)
{
	return !flights->has_last || tti_flights_ended(flights) >= flights->last_number;
}

/* After the launch before, if that is in another stream. `capture`: of the stream. */
static tutti_status come_after(struct tti_flights *flights, struct tti_gpu *gpu,
			       const struct tti_gpu_capture *capture, void *stream)
{
	if (capture->is_active) {
		if (flights->capture != capture->id || flights->captured_last == stream)
			return TUTTI_OK;
		return tti_gpu_event_await(gpu, flights->captured_event, stream);
	}
	if (flights->last == stream || is_idle(flights))
		return TUTTI_OK;
	return tti_gpu_word_await(gpu, flights->words->host_at,
				  (uint32_t)(flights->last_number << 8), stream);
}

/* What is launched next in another stream comes after this. */
static tutti_status note_last(struct tti_flight *flight, const struct tti_gpu_capture *capture,
			      void *stream)
{
	struct tti_device *device = device_of(flight);
	struct tti_flights *flights = device->flights;

	if (!capture->is_active) {
		flights->has_last = true;
		flights->last = stream;
		flights->last_number = flight->number;
		return TUTTI_OK;
	}
	flights->capture = capture->id;
	flights->captured_last = stream;
	if (!flights->captured_event)
		TTI_TRY(tti_gpu_event_create(device->gpu, &flights->captured_event));
	return tti_gpu_event_record(device->gpu, flights->captured_event, stream);
}

/* -- Streams of the program --------------------------------------------------------------- */

/* A graph repeats what devices do. What hosts do is repeated by calls alone. */
static tutti_status check_capture(const struct tti_comm *comm,
				  const struct tti_flight_stream *stream)
{
	const struct tti_devices *devices = comm->devices;
	struct tti_gpu_capture capture;
	int host = 0;

	if (devices->ndevices == comm->n)
		return TUTTI_OK;
	TTI_TRY(tti_gpu_capture(comm->device->gpu, stream->cuda, &capture));
	if (!capture.is_active)
		return TUTTI_OK;
	while (devices->fact[host].ordinal >= 0)
		host++;
	return tti_fail(TUTTI_EUNSUPPORTED,
			"a call on a stream that is captured, of a communicator whose rank %d has "
			"no device: a graph would not repeat what that rank does; call outside "
			"of a capture, or give all ranks a device",
			host);
}

tutti_status tti_flight_check_stream(struct tti_comm *comm, const struct tti_flight_stream *stream)
{
	struct tti_flights *flights = comm->device->flights;

	TTI_TRY(check_capture(comm, stream));
	if (flights->has_checked && flights->checked == stream->cuda)
		return TUTTI_OK;
	TTI_TRY(tti_gpu_stream_check(comm->device->gpu, stream->cuda));
	flights->has_checked = true;
	flights->checked = stream->cuda;
	return TUTTI_OK;
}

/* -- One launch --------------------------------------------------------------------------- */

static tutti_status find_stream(struct tti_flight *flight, const struct tti_flight_stream *given,
				struct tti_gpu_capture *capture, void **out)
{
	struct tti_flights *flights = device_of(flight)->flights;
	struct tti_gpu *gpu = device_of(flight)->gpu;

	*capture = (struct tti_gpu_capture){ 0 };
	if (given) {
		*out = given->cuda;
		return tti_gpu_capture(gpu, given->cuda, capture);
	}
	if (!flights->stream)
		TTI_TRY(tti_gpu_stream_create(gpu, true, &flights->stream));
	*out = flights->stream;
	return TUTTI_OK;
}

static uint32_t noperands_of(const struct tti_flight *flight)
{
	const uint32_t main = (uint32_t)flight->main.program->flat->noperands;
	const uint32_t other =
		flight->fallback.program ? (uint32_t)flight->fallback.program->flat->noperands : 0;

	return main > other ? main : other;
}

/* Before the kernel. `given`: a stream of the program, whose flights wait for others. */
static tutti_status get_ready(struct tti_flight *flight, const struct tti_gpu_capture *capture,
			      const struct tti_flight_stream *given, void *stream)
{
	struct tti_device *device = device_of(flight);

	flight->main.call.lanes = flight->fallback.call.lanes = device->lanes_at;
	flight->main.call.control = device->control_at;
	flight->main.call.state = device->state_at;
	if (capture->is_active)
		TTI_TRY(tti_flight_capture(flight, capture));
	if (!given)
		return TUTTI_OK;
	TTI_TRY(come_after(device->flights, device->gpu, capture, stream));
	/* Where graphs have messages for the proxy, too, the host has to know which comes first. */
	if (!flight->has_messages &&
	    !(device->has_proxy && atomic_load(&device->flights->ncaptured) > 0))
		return TUTTI_OK;
	TTI_TRY(tti_gpu_call(device->gpu, tti_landing_begins, flight, stream));
	flight->is_called = true;
	return TUTTI_OK;
}

/* All of one GPU, with kernels of one type. */
static tutti_status launch_all(struct batch *batch, int n)
{
	const struct tti_flight_stream *given = batch->stream;
	struct tti_flight *first = tti_flight_of(batch->job[0]);
	struct tti_device *device = device_of(first);
	struct tti_gpu_capture capture;
	uint64_t launch;
	void *stream;

	batch->launch.ncalls = (uint32_t)n;
	batch->launch.nblocks = device->shape.nblocks;
	batch->launch.noperands = 0;
	TTI_TRY(find_stream(first, given, &capture, &stream));
	for (int i = 0; i < n; i++) {
		struct tti_flight *flight = tti_flight_of(batch->job[i]);
		const uint32_t noperands = noperands_of(flight);

		TTI_TRY(get_ready(flight, &capture, given, stream));
		batch->launch.call[i] = flight->main.call;
		batch->launch.call[TTI_DEV_CALLS_MAX + i] = flight->fallback.call;
		if (noperands > batch->launch.noperands)
			batch->launch.noperands = noperands;
	}
	TTI_TRY(tti_kernels_launch(device->kernels, device->gpu, first->type, &batch->launch,
				   device->nthreads, stream));
	launch = atomic_fetch_add(&launches, 1) + 1;
	for (int i = 0; i < n; i++) {
		struct tti_flight *flight = tti_flight_of(batch->job[i]);

		flight->is_launched = true;
		flight->stream = stream;
		flight->launch = launch;
	}
	for (int i = 0; given && i < n; i++)
		TTI_TRY(note_last(tti_flight_of(batch->job[i]), &capture, stream));
	return TUTTI_OK;
}

static bool may_share(const struct tti_flight *a, const struct tti_flight *b)
{
	return a->type == b->type && device_of(a)->ordinal == device_of(b)->ordinal &&
	       device_of(a)->shape.nblocks == device_of(b)->shape.nblocks &&
	       device_of(a)->nthreads == device_of(b)->nthreads && a->comm != b->comm;
}

static bool is_ready(const struct tti_job *job)
{
	const struct tti_flight *flight = tti_flight_of(job);

	return flight && job->status == TUTTI_AGAIN && !flight->is_launched;
}

static void launch_batch(struct batch *batch, int n)
{
	const tutti_status st = launch_all(batch, n);

	for (int i = 0; i < n && st != TUTTI_OK; i++)
		batch->job[i]->status = st;
}

bool tti_flights_are_of_one(const struct tti_comm *a, const struct tti_comm *b)
{
	return memcmp(tti_boot_secret(a->boot), tti_boot_secret(b->boot), TTI_SECRET_BYTES) == 0;
}

static bool has_rank_of(struct tti_job *const *jobs, int n, const struct tti_job *job)
{
	for (int i = 0; i < n; i++)
		if (tti_flights_are_of_one(tti_flight_of(jobs[i])->comm, tti_flight_of(job)->comm))
			return true;
	return false;
}

/* Jobs from `first` on that go into one launch. In a stream none of a communicator is launched before one of another
 * that is listed before it: the kernels would wait for each other if another rank has the two in two streams. */
static int gather(struct tti_job *const *jobs, int first, int n,
		  const struct tti_flight_stream *const *streams, struct tti_job **out)
{
	bool is_passed = false;
	int nout = 0;

	for (int k = first; k < n && nout < TTI_DEV_CALLS_MAX; k++) {
		if (!is_ready(jobs[k]) || (streams && streams[first]->cuda != streams[k]->cuda))
			continue;
		if (k > first && !may_share(tti_flight_of(jobs[first]), tti_flight_of(jobs[k])))
			is_passed = streams != NULL;
		else if (!is_passed || has_rank_of(out, nout, jobs[k]))
			out[nout++] = jobs[k];
	}
	return nout;
}

void tti_flights_launch(struct tti_job *const *jobs, const struct tti_args *const *args, int n,
			const struct tti_flight_stream *const *streams)
{
	struct batch batch;

	/* What graphs repeat has no number, but messages that are on their way. */
	for (int i = 0; i < n && !streams; i++)
		if (is_ready(jobs[i]))
			tti_flights_await(tti_flight_of(jobs[i])->comm);
	connect(jobs, args, n);
	for (int i = 0; i < n; i++)
		if (is_ready(jobs[i])) {
			const tutti_status st = tti_flight_set_proxy(tti_flight_of(jobs[i]));

			if (st != TUTTI_OK)
				jobs[i]->status = st;
		}
	for (int i = 0; i < n; i++) {
		int nbatch;

		if (!is_ready(jobs[i]))
			continue;
		batch.stream = streams ? streams[i] : NULL;
		nbatch = gather(jobs, i, n, streams, batch.job);
		launch_batch(&batch, nbatch);
	}
}
