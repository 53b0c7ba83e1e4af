/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/circle.h"

#include "core/comm.h"
#include "core/device/flight.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/params.h"

/* CUDA's name of a stream that each thread has for itself. */
#define PER_THREAD ((void *)2)

/* All communicators of the process that have let flights go. */
static struct {
	pthread_mutex_t lock;
	struct tti_flights *first;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

void tti_circle_join(struct tti_comm *comm)
{
	struct tti_flights *flights = comm->device->flights;

	pthread_mutex_lock(&all.lock);
	flights->of = comm;
	flights->next = all.first;
	all.first = flights;
	pthread_mutex_unlock(&all.lock);
}

void tti_circle_leave(struct tti_comm *comm)
{
	struct tti_flights **at = &all.first;

	pthread_mutex_lock(&all.lock);
	while (*at && *at != comm->device->flights)
		at = &(*at)->next;
	if (*at)
		*at = (*at)->next;
	pthread_mutex_unlock(&all.lock);
}

/* The kernel of a rank that is the next to end. */
struct place {
	const struct tti_comm *comm;
	void *stream;    /* NULL in an empty place, too */
	uint64_t launch; /* 0: there is none */
};

static struct place place_of(struct tti_flights *flights)
{
	struct place place = { .comm = flights->of };
	const struct tti_flight *flight;

	pthread_mutex_lock(&flights->lock);
	flight = flights->now;
	if (!flight && flights->first && flights->first->kind == TTI_LANDING_ONCE)
		flight = flights->first->flight;
	if (flight && tti_flights_ended(flights) < flight->number) {
		place.stream = flight->stream;
		place.launch = flight->launch;
	}
	pthread_mutex_unlock(&flights->lock);
	return place;
}

static int message_of(const struct tti_flights *flights)
{
	uint64_t where;

	return tti_flight_waits_for(flights->of->device, &where);
}

/* Whose kernel a kernel that does not run is behind; -1: nobody's that is known. One that waits for a message
 * runs, so all others of its stream are behind it, but for those of its own launch. */
static int ahead_of(const struct place *place)
{
	if (place->launch == 0 || place->stream == PER_THREAD)
		return -1;
	for (struct tti_flights *other = all.first; other; other = other->next) {
		struct place ahead;

		if (!tti_flights_are_of_one(other->of, place->comm) || message_of(other) < 0)
			continue;
		ahead = place_of(other);
		if (ahead.launch && ahead.launch != place->launch &&
		    ahead.stream == place->stream &&
		    ahead.comm->device->ordinal == place->comm->device->ordinal)
			return ahead.comm->rank;
	}
	return -1;
}

static struct tti_flights *find(const struct tti_comm *comm, int rank)
{
	struct tti_flights *flights = all.first;

	while (flights && (flights->of->rank != rank || !tti_flights_are_of_one(flights->of, comm)))
		flights = flights->next;
	return flights;
}

/* Follow who waits for whom from `comm` on; whether that leads back, by way of a stream in which the
 * kernel of rank *behind is behind that of *ahead. Under the lock. */
static bool is_circle(const struct tti_comm *comm, int *behind, int *ahead)
{
	int rank = comm->rank;

	*behind = -1;
	for (int hops = 0; hops < comm->n && rank >= 0; hops++) {
		struct tti_flights *flights = find(comm, rank);
		int next;

		if (!flights)
			return false;
		next = message_of(flights);
		if (next < 0) {
			const struct place place = place_of(flights);

			next = ahead_of(&place);
			*behind = rank;
			*ahead = next;
		}
		if (next == comm->rank)
			return *behind >= 0;
		rank = next;
	}
	return false;
}

/* -- More kernels than a GPU runs ----------------------------------------------------------- */

static bool is_on(struct tti_flights *flights, const struct tti_comm *comm, struct place *out)
{
	*out = place_of(flights);
	return out->launch && flights->of->device->ordinal == comm->device->ordinal;
}

/* Whether a kernel listed before it is in the same stream: of the two only one runs at a time. */
static bool is_counted(const struct tti_flights *flights, const struct place *place)
{
	for (struct tti_flights *other = all.first; other != flights; other = other->next) {
		struct place at;

		if (is_on(other, place->comm, &at) && at.stream == place->stream &&
		    at.launch != place->launch)
			return true;
	}
	return false;
}

/* Blocks of kernels of the GPU that have not ended and that nothing orders. Under the lock. */
static uint32_t count_blocks(const struct tti_comm *comm)
{
	uint32_t nblocks = 0;

	for (struct tti_flights *flights = all.first; flights; flights = flights->next) {
		struct place place;

		if (is_on(flights, comm, &place) && !is_counted(flights, &place))
			nblocks += flights->of->device->shape.nblocks;
	}
	return nblocks;
}

/* Events may order them, which nobody can see, so it is no error. */
static void warn_of_crowd(const struct tti_comm *comm, uint32_t nblocks)
{
	const uint32_t most = comm->devices->fact[comm->rank].nresident;

	if (nblocks <= most || comm->device->flights->has_warned)
		return;
	comm->device->flights->has_warned = true;
	tti_log(TTI_LOG_WARN, TTI_CORE,
		"kernels of calls of this process on GPU %d have %u blocks, and it runs %u at a "
		"time: rank %d may wait for one that does not run, for ever; let streams order "
		"calls of several communicators, on all ranks alike, or lower TUTTI_CUDA_BLOCKS",
		comm->device->ordinal, nblocks, most, comm->rank);
}

/* -- A look ----------------------------------------------------------------------------------- */

tutti_status tti_circle_check(const struct tti_flight *flight, int64_t waited_ns)
{
	const struct tti_comm *comm = flight->comm;
	uint64_t before, after;
	int behind, ahead = -1;
	uint32_t nblocks;
	bool found;

	(void)tti_flight_waits_for(comm->device, &before);
	pthread_mutex_lock(&all.lock);
	found = is_circle(comm, &behind, &ahead);
	nblocks = count_blocks(comm);
	pthread_mutex_unlock(&all.lock);
	/* What it waited for may have come meanwhile. */
	(void)tti_flight_waits_for(comm->device, &after);
	if (!found || before != after) {
		if (waited_ns >= tti_params()->stall_ms * TTI_NS_PER_MS)
			warn_of_crowd(comm, nblocks);
		return TUTTI_OK;
	}
	return tti_fail(
		TUTTI_EUSAGE,
		"the kernel of rank %d is behind that of rank %d in one stream, which waits "
		"for it: give the ranks streams of their own, or put their calls into one "
		"group (tutti_group_start())",
		behind, ahead);
}
