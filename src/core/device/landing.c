/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/call/call.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/circle.h"
#include "core/device/flight.h"
#include "core/device/lend.h"
#include "core/device/open.h"
#include "core/sequence.h"
#include "core/stall.h"
#include "engine/wait.h"
#include "gpu/cuda_stream.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"

/* The thread of a communicator that waits for kernels in streams of the program, and moves their
 * messages: for one flight after the other, in the order of calls. Where all peers are reached by
 * the kernel itself it only looks whether something is wrong, so it sleeps for long. */

#define NAP_NS      (2 * TTI_NS_PER_MS)
/* How often it looks whether a device works on which nothing begins, and at kernels that graphs
 * repeat. */
#define PATIENCE_NS (500 * TTI_NS_PER_MS)
#define OVERVIEW_NS (20 * TTI_NS_PER_MS)

/* -- The list ------------------------------------------------------------------------------ */

/* Under the lock. */
static void append(struct tti_flights *flights, struct tti_landing *landing)
{
	landing->next = NULL;
	*flights->end = landing;
	flights->end = &landing->next;
	flights->nlandings++;
	pthread_cond_broadcast(&flights->news);
}

void tti_landing_begins(void *arg)
{
	struct tti_flight *flight = arg;
	struct tti_flights *flights = flight->flights;
	struct tti_landing *landing = NULL;

	if (flight->is_captured)
		landing = tti_zalloc(sizeof(*landing));
	pthread_mutex_lock(&flights->lock);
	if (flights->is_closed) {
		tti_free(landing);
	} else {
		flights->has_lost |= flight->is_captured && !landing;
		flight->order = ++flights->nbegun;
		atomic_fetch_add(&flight->begun, 1);
		if (landing) {
			*landing = (struct tti_landing){ .comm = flight->comm,
							 .flight = flight,
							 .order = flight->order,
							 .kind = TTI_LANDING_REPEATED };
			append(flights, landing);
		}
		pthread_cond_broadcast(&flights->news);
	}
	pthread_mutex_unlock(&flights->lock);
}

/* -- Graphs ---------------------------------------------------------------------------------- */

/* The graph is gone, and all that was made of it. A thread of the driver. */
static void forget(void *arg)
{
	struct tti_flight *flight = arg;
	struct tti_flights *flights = flight->flights;
	struct tti_device *orphan = NULL;
	bool is_closed;

	pthread_mutex_lock(&flights->lock);
	is_closed = flights->is_closed;
	flight->gone.comm = flight->comm;
	flight->gone.flight = flight;
	flight->gone.kind = TTI_LANDING_GONE;
	if (!is_closed)
		append(flights, &flight->gone);
	else if (atomic_fetch_sub(&flights->ncaptured, 1) == 1)
		orphan = flights->orphan;
	pthread_mutex_unlock(&flights->lock);
	if (is_closed)
		tti_flight_release(flight);
	if (orphan)
		tti_device_bury(orphan);
}

tutti_status tti_flight_capture(struct tti_flight *flight, const struct tti_gpu_capture *capture)
{
	struct tti_flights *flights = flight->flights;
	tutti_status st;

	flight->is_captured = true;
	flight->main.call.done = 0;
	for (int i = 0; i < 2; i++)
		if (flight->lent[i])
			tti_lent_capture(flight->comm, flight->lent[i]);
	atomic_fetch_add(&flights->ncaptured, 1);
	st = tti_gpu_capture_keep(flight->comm->device->gpu, capture, forget, flight);
	if (st == TUTTI_OK)
		return st;
	atomic_fetch_sub(&flights->ncaptured, 1);
	flight->is_captured = false;
	return st;
}

void tti_flight_let_go(struct tti_flight *flight, const struct tti_job *job,
		       const struct tti_flight_told *told)
{
	struct tti_flights *flights = flight->comm->device->flights;

	flight->job = *job;
	flight->told = *told;
	if (told->begins)
		told->begins(told->self);
	flight->landing.comm = flight->comm;
	flight->landing.flight = flight;
	flight->landing.kind = flight->is_captured ? TTI_LANDING_RECORDED : TTI_LANDING_ONCE;
	pthread_mutex_lock(&flights->lock);
	append(flights, &flight->landing);
	pthread_mutex_unlock(&flights->lock);
}

void tti_flights_count(struct tti_comm *comm, struct tti_landing *landing)
{
	struct tti_flights *flights = comm->device->flights;

	*landing = (struct tti_landing){ .comm = comm, .kind = TTI_LANDING_COUNTED };
	pthread_mutex_lock(&flights->lock);
	append(flights, landing);
	pthread_mutex_unlock(&flights->lock);
}

void tti_flights_await(struct tti_comm *comm)
{
	struct tti_flights *flights = comm->device->flights;

	pthread_mutex_lock(&flights->lock);
	while (flights->nlandings > 0)
		pthread_cond_wait(&flights->news, &flights->lock);
	pthread_mutex_unlock(&flights->lock);
}

/* Blocks say so before they look at `stop` (tti_dev_store_and_load_32()). */
static bool is_running(const struct tti_device *device)
{
	for (uint32_t block = 0; block < device->shape.nblocks; block++)
		if (__atomic_load_n(&device->control->runs[block], __ATOMIC_SEQ_CST))
			return true;
	return false;
}

void tti_flights_end_graphs(struct tti_comm *comm)
{
	const struct timespec nap = { .tv_nsec = TTI_NS_PER_MS };
	struct tti_device *device = comm->device;
	uint32_t none = 0;

	if (!device || atomic_load(&device->flights->ncaptured) == 0)
		return;
	(void)__atomic_compare_exchange_n(&device->control->stop, &none, TTI_DEV_STOP_NEXT, false,
					  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	while (is_running(device) && tti_gpu_health(device->gpu) == TUTTI_OK)
		(void)nanosleep(&nap, NULL);
	tti_flights_await(comm);
}

/* -- One flight ------------------------------------------------------------------------------ */

/* Wait for the job as for any other, and say what came of it. */
static tutti_status wait_for(struct tti_flight *flight, struct tti_job *job)
{
	struct tti_job *const jobs[] = { job };
	const _Atomic int *before = NULL;
	tutti_status st = job->status;

	tti_call_show(flight->comm, &flight->shown);
	if (st == TUTTI_AGAIN) {
		if (!flight->has_messages) {
			before = tti_wait_set_background(flight->told.awaited);
			job->nap_ns = NAP_NS;
		}
		st = tti_job_wait(jobs, 1);
		if (!flight->has_messages)
			(void)tti_wait_set_background(before);
	}
	return tti_call_finish(flight->comm, flight->shown.args, flight->shown.nargs, job, st);
}

/* To the thread that makes calls. */
static void give_back(struct tti_flights *flights, struct tti_flight *flight)
{
	pthread_mutex_lock(&flights->lock);
	flight->next = flights->over;
	flights->over = flight;
	flights->now = NULL;
	pthread_mutex_unlock(&flights->lock);
}

static void land_once(struct tti_flight *flight)
{
	struct tti_comm *comm = flight->comm;
	struct tti_flights *flights = comm->device->flights;
	const struct tti_flight_told told = flight->told;
	const tutti_status st = wait_for(flight, &flight->job);

	if (st != TUTTI_OK)
		tti_comm_note(comm, st);
	tti_flight_await(flight);
	give_back(flights, flight);
	if (told.landed)
		told.landed(told.self, st);
}

/* A graph runs the flight once more. */
static void land_repeated(struct tti_flight *flight)
{
	struct tti_job job = flight->job;
	tutti_status st = tti_flight_set_proxy(flight);

	if (st == TUTTI_OK)
		st = tti_comm_async_error(flight->comm);
	job.status = st == TUTTI_OK ? TUTTI_AGAIN : st;
	st = wait_for(flight, &job);
	if (st != TUTTI_OK)
		tti_comm_note(flight->comm, st);
}

static void land(struct tti_landing *landing)
{
	struct tti_comm *comm = landing->comm;
	struct tti_flight *flight = landing->flight;
	const enum tti_landing_kind kind = landing->kind;

	if (kind == TTI_LANDING_REPEATED || kind == TTI_LANDING_COUNTED)
		tti_free(landing);
	switch (kind) {
	case TTI_LANDING_ONCE:
		land_once(flight);
		break;
	case TTI_LANDING_RECORDED:
		if (flight->told.landed)
			flight->told.landed(flight->told.self, TUTTI_OK);
		break;
	case TTI_LANDING_REPEATED:
		land_repeated(flight);
		break;
	case TTI_LANDING_COUNTED:
		tti_sequence_done(comm);
		break;
	case TTI_LANDING_GONE:
		atomic_fetch_sub(&flight->flights->ncaptured, 1);
		give_back(flight->flights, flight);
		break;
	}
}

/* -- What graphs repeat without the host ------------------------------------------------- */

/* Since when some kernel waits at one place, and where. */
struct overview {
	int64_t since_ns;
	uint64_t where;
};

/* A kernel that a graph repeats waits though all of its messages were handed to links. What a link has lost
 * is sent again by nobody else, and the peer may be the one that this kernel waits for, over others. */
static void tend_links(struct tti_comm *comm)
{
	uint64_t where;

	if (comm->device->has_proxy && tti_flight_waits_for(comm->device, &where) >= 0)
		tti_engine_progress(&comm->engine);
}

/* Nothing is in the list. A kernel that waits for long, or has found a mismatch, is one that a graph
 * repeats. Which call that is the host does not know: texts name the last one. */
static void look_around(struct tti_comm *comm, struct overview *overview)
{
	struct tti_job job = { .status = TUTTI_AGAIN, .mismatch_peer = -1 };
	tutti_status st = TUTTI_OK;
	uint64_t where;
	int peer;

	if (!tti_sequence_is_idle(comm) || atomic_load(&comm->async_error))
		return;
	tend_links(comm);
	peer = tti_flight_waits_for(comm->device, &where);
	if (peer < 0) {
		overview->since_ns = 0;
	} else if (overview->since_ns == 0 || where != overview->where) {
		overview->since_ns = tti_now_ns();
		overview->where = where;
	}
	if (tti_flight_has_mismatch(comm->device, &job))
		st = tti_stall_settle(comm, TUTTI_EMISMATCH, job.mismatch_peer);
	else if (overview->since_ns)
		st = tti_stall_on_wait(comm, overview->since_ns, peer);
	if (st != TUTTI_OK)
		tti_comm_note(comm, tti_stall_settle(comm, st, -1));
}

/* -- The thread ------------------------------------------------------------------------------ */

/* Whether it can be waited for: its stream has come to it, if that is known. */
static bool is_due(const struct tti_landing *landing)
{
	return landing->kind != TTI_LANDING_ONCE || !landing->flight->is_called ||
	       atomic_load(&landing->flight->begun) > 0;
}

/* The next of the list; NULL: there is none now. A call may be behind a graph in its stream, so what a
 * graph has repeated before the call began goes before it. Under the lock. */
static struct tti_landing *take_next(struct tti_flights *flights)
{
	struct tti_landing **at = &flights->first, *landing = *at;

	if (landing && landing->kind == TTI_LANDING_ONCE && landing->flight->is_called) {
		const bool is_now = is_due(landing);
		const uint64_t order = is_now ? landing->flight->order : UINT64_MAX;

		while (*at && ((*at)->kind != TTI_LANDING_REPEATED || (*at)->order > order))
			at = &(*at)->next;
		if (!*at && is_now)
			at = &flights->first;
	}
	landing = *at;
	if (!landing)
		return NULL;
	*at = landing->next;
	if (!landing->next)
		flights->end = at;
	if (landing->kind == TTI_LANDING_ONCE)
		flights->now = landing->flight;
	return landing;
}

/* The first of the list waits for its stream. On a device that has failed it would for ever. Takes
 * the lock away for a while. */
static void await_stream(struct tti_comm *comm)
{
	struct tti_flights *flights = comm->device->flights;
	struct tti_flight *flight = flights->first->flight;
	const bool has_captured = atomic_load(&flights->ncaptured) > 0;
	tutti_status st;

	if (!flight->is_shown) {
		flight->is_shown = true;
		pthread_mutex_unlock(&flights->lock);
		tti_call_show(comm, &flight->shown);
		pthread_mutex_lock(&flights->lock);
		return;
	}
	tti_cond_wait_until(&flights->news, &flights->lock,
			    tti_now_ns() + (has_captured ? OVERVIEW_NS : PATIENCE_NS));
	if (!flights->first || is_due(flights->first))
		return;
	pthread_mutex_unlock(&flights->lock);
	if (has_captured)
		tend_links(comm);
	st = tti_gpu_health(comm->device->gpu);
	pthread_mutex_lock(&flights->lock);
	if (st != TUTTI_OK) {
		flight->job.status = st;
		flight->is_called = false;
	}
}

/* Nothing is in the list. Takes the lock away for a while. */
static void await_news(struct tti_comm *comm, struct overview *overview)
{
	struct tti_flights *flights = comm->device->flights;

	if (atomic_load(&flights->ncaptured) == 0) {
		pthread_cond_wait(&flights->news, &flights->lock);
		return;
	}
	tti_cond_wait_until(&flights->news, &flights->lock, tti_now_ns() + OVERVIEW_NS);
	if (flights->first)
		return;
	/* It uses links: a call of the host waits for it as for a flight. */
	flights->nlandings++;
	pthread_mutex_unlock(&flights->lock);
	look_around(comm, overview);
	pthread_mutex_lock(&flights->lock);
	if (--flights->nlandings == 0)
		pthread_cond_broadcast(&flights->news);
}

/* Takes the lock away for a while. */
static void tell_of_loss(struct tti_comm *comm)
{
	struct tti_flights *flights = comm->device->flights;

	flights->has_lost = false;
	pthread_mutex_unlock(&flights->lock);
	tti_comm_notify_failure(comm, TUTTI_EPEER, comm->rank,
				"a graph repeats a call, and there is no memory to note that");
	pthread_mutex_lock(&flights->lock);
}

static void *run(void *self)
{
	struct tti_comm *comm = self;
	struct tti_flights *flights = comm->device->flights;
	struct overview overview = { 0 };

	tti_thread_low_latency();
	pthread_mutex_lock(&flights->lock);
	while (flights->first || !flights->is_closing) {
		struct tti_landing *landing = take_next(flights);

		if (flights->has_lost)
			tell_of_loss(comm);
		if (landing) {
			pthread_mutex_unlock(&flights->lock);
			land(landing);
			pthread_mutex_lock(&flights->lock);
			if (--flights->nlandings == 0)
				pthread_cond_broadcast(&flights->news);
		} else if (flights->first) {
			await_stream(comm);
		} else {
			await_news(comm, &overview);
		}
	}
	pthread_mutex_unlock(&flights->lock);
	return NULL;
}

tutti_status tti_flights_prepare(struct tti_comm *comm)
{
	struct tti_flights *flights = comm->device->flights;
	tutti_status st;

	TTI_TRY(tti_flights_make_ready(comm->device));
	if (flights->has_thread)
		return TUTTI_OK;
	st = tti_thread_start(&flights->thread, "tutti-device", run, comm);
	flights->has_thread = st == TUTTI_OK;
	if (st == TUTTI_OK)
		tti_circle_join(comm);
	return st;
}

static void free_all(struct tti_flight *flight)
{
	while (flight) {
		struct tti_flight *next = flight->next;

		tti_flight_release(flight);
		flight = next;
	}
}

/* What graphs have said since the thread has ended; they say no more. */
static void drain(struct tti_flights *flights)
{
	struct tti_landing *landing;

	pthread_mutex_lock(&flights->lock);
	flights->is_closed = true;
	landing = flights->first;
	flights->first = NULL;
	pthread_mutex_unlock(&flights->lock);
	while (landing) {
		struct tti_landing *next = landing->next;

		if (landing->kind == TTI_LANDING_GONE) {
			atomic_fetch_sub(&flights->ncaptured, 1);
			tti_flight_release(landing->flight);
		} else {
			tti_free(landing);
		}
		landing = next;
	}
}

void tti_flights_close(struct tti_comm *comm)
{
	struct tti_flights *flights = comm->device ? comm->device->flights : NULL;

	if (!flights)
		return;
	tti_circle_leave(comm);
	pthread_mutex_lock(&flights->lock);
	flights->is_closing = true;
	pthread_cond_broadcast(&flights->news);
	pthread_mutex_unlock(&flights->lock);
	if (flights->has_thread)
		pthread_join(flights->thread, NULL);
	drain(flights);
	tti_flights_reap(flights);
	free_all(flights->free);
	flights->free = NULL;
	tti_gpu_stream_destroy(comm->device->gpu, flights->stream);
	tti_gpu_event_destroy(comm->device->gpu, flights->captured_event);
}

bool tti_flights_free(struct tti_device *device)
{
	struct tti_flights *flights = device->flights;
	bool has_graphs;

	if (!flights)
		return true;
	pthread_mutex_lock(&flights->lock);
	has_graphs = atomic_load(&flights->ncaptured) > 0;
	flights->orphan = has_graphs ? device : NULL;
	pthread_mutex_unlock(&flights->lock);
	if (has_graphs)
		return false;
	pthread_cond_destroy(&flights->news);
	pthread_mutex_destroy(&flights->lock);
	tti_free(flights);
	device->flights = NULL;
	return true;
}
