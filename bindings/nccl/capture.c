/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on streams, and calls that become a part of a graph because their stream is captured.
 *
 * A call takes its place in the order of its communicator when it is made. A call in a graph is
 * made at each launch, by the thread that launches, on the stream that the graph is launched on. So
 * all ranks that launch in the same order have the same order of calls. CUDA has no function for
 * that, so only Tutti's CUDA runtime on host memory, which has one, can do it. */
#include "binding.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a launch fails with: the number of cudaErrorUnknown. The text is in ncclGetLastError(). */
#define LAUNCH_FAILED 999

struct step {
	struct step *next;
	ncclComm_t comm;
	uint64_t serial; /* of the communicator, whose handle may be another's by now */
	ncclRedOp_t op;
	tutti_status (*run)(const void *work, tutti_stream_t over);
	max_align_t work[];
};

/* What one launch does, as a group if it is more than one call. */
struct replay {
	struct replay *next;
	cudaStream_t stream;
	struct step *first, **end;
};

/* The pending replays of this thread's group, one for each stream. */
static _Thread_local struct replay *pending;

/* -- Calls that fail ------------------------------------------------------------------------ */

/* What a stream waits for after a failure of one of these. */
struct looked {
	size_t n;
	ncclComm_t comms[];
};

static int one_goes_on(void *arg)
{
	const struct ncclComm *comm = arg;

	return !atomic_load(&comm->is_alive) || atomic_load(&comm->lets_go);
}

static int any_goes_on(void *arg)
{
	const struct looked *looked = arg;

	for (size_t i = 0; i < looked->n; i++)
		if (one_goes_on(looked->comms[i]))
			return 1;
	return 0;
}

/* The stream waits until ncclCommAbort(), as NCCL's kernels do, so that nothing uses data that the
 * call has not delivered. Threads that wait for the stream get an error, which NCCL does not give
 * them. */
static void hold_if_lost(tutti_status status, int (*goes_on)(void *), void *arg)
{
	char why[512];

	if (status > TUTTI_STATUS_LOST || status == TUTTI_EABORTED || status == TUTTI_EREVOKED)
		return;
	(void)snprintf(why, sizeof(why), "NCCL: %s; ncclCommAbort() lets the stream go on",
		       tutti_last_error(NULL));
	tti_nccl_hold(why, goes_on, arg);
}

static void look_behind_one(tutti_status status, void *arg)
{
	struct ncclComm *comm = arg;

	atomic_fetch_add(&comm->nholds, 1);
	hold_if_lost(status, one_goes_on, comm);
	atomic_fetch_sub(&comm->nholds, 1);
}

static void look_behind_some(tutti_status status, void *arg)
{
	struct looked *looked = arg;

	for (size_t i = 0; i < looked->n; i++)
		atomic_fetch_add(&looked->comms[i]->nholds, 1);
	hold_if_lost(status, any_goes_on, looked);
	for (size_t i = 0; i < looked->n; i++)
		atomic_fetch_sub(&looked->comms[i]->nholds, 1);
	free(looked);
}

void tti_nccl_let_go(ncclComm_t comm)
{
	const struct timespec nap = { .tv_nsec = 100000 };

	atomic_store(&comm->lets_go, 1);
	while (atomic_load(&comm->nholds) > 0)
		(void)nanosleep(&nap, NULL);
}

/* The communicators of the calls in the group of this thread, each once. */
struct called {
	ncclComm_t comm;
	tutti_stream_t over;
};

static _Thread_local struct {
	struct called *list;
	size_t n, room;
} called;

/* Without it only ncclCommGetAsyncError() tells the failure. */
static bool look(tutti_stream_t over, tutti_stream_fn fn, void *arg)
{
	if (tutti_stream_call(over, fn, arg) == TUTTI_OK)
		return true;
	(void)tti_nccl_take_trouble();
	tti_nccl_info("a failure would not hold its stream: %s", tutti_last_error(NULL));
	return false;
}

/* The communicators of the calls on the stream of the first one: the stream's status does not say
 * which of them failed. */
static void look_behind_stream(const struct called *first, size_t n)
{
	struct looked *looked = calloc(1, sizeof(*looked) + n * sizeof(ncclComm_t));

	if (!looked)
		return;
	for (size_t i = 0; i < n; i++)
		if (first[i].over == first->over)
			looked->comms[looked->n++] = first[i].comm;
	if (!look(first->over, look_behind_some, looked))
		free(looked);
}

/* Queued behind the call that was just made. */
static void look_later(ncclComm_t comm, tutti_stream_t over, bool is_grouped)
{
	if (!over || comm->has_kernels || !tti_nccl_can_hold())
		return;
	if (!is_grouped) {
		(void)look(over, look_behind_one, comm);
		return;
	}
	for (size_t i = 0; i < called.n; i++)
		if (called.list[i].comm == comm && called.list[i].over == over)
			return;
	if (called.n == called.room) {
		const size_t room = called.room ? 2 * called.room : 16;
		struct called *list = realloc(called.list, room * sizeof(*list));

		if (!list)
			return;
		called.list = list;
		called.room = room;
	}
	called.list[called.n++] = (struct called){ comm, over };
}

static void look_behind_group(bool dropped)
{
	for (size_t i = 0; i < called.n && !dropped; i++) {
		bool is_first = true;

		for (size_t j = 0; j < i; j++)
			is_first &= called.list[j].over != called.list[i].over;
		if (is_first)
			look_behind_stream(&called.list[i], called.n - i);
	}
	free(called.list);
	called.list = NULL;
	called.n = called.room = 0;
}

/* -- Graphs --------------------------------------------------------------------------------- */

static bool has_comm(const struct step *step)
{
	return atomic_load(&step->comm->is_alive) && step->comm->serial == step->serial;
}

static void drop(void *arg)
{
	struct replay *replay = arg;

	while (replay->first) {
		struct step *step = replay->first;

		replay->first = step->next;
		if (has_comm(step))
			tti_nccl_op_let_go(step->comm, step->op);
		free(step);
	}
	free(replay);
}

static ncclResult_t run_step(const struct step *step, cudaStream_t stream, bool is_grouped)
{
	tutti_stream_t over = NULL;
	ncclResult_t result;

	if (!has_comm(step))
		return tti_nccl_fail(NULL, ncclInvalidUsage,
				     "a graph is launched, and its communicator %p was destroyed",
				     (void *)step->comm);
	result = tti_nccl_comm_check(step->comm);
	if (result == ncclSuccess)
		result = tti_nccl_stream_of(step->comm, stream, &over);
	if (result == ncclSuccess)
		result = tti_nccl_report(step->comm, step->run(step->work, over));
	if (result == ncclSuccess)
		look_later(step->comm, over, is_grouped);
	return result;
}

/* At each launch of the graph. */
static int launch(void *arg, void *stream)
{
	const struct replay *replay = arg;
	ncclResult_t result, one;

	if (!replay->first->next)
		return run_step(replay->first, stream, tti_nccl_in_group()) == ncclSuccess
			       ? 0
			       : LAUNCH_FAILED;
	result = tti_nccl_report(NULL, tutti_group_start());
	if (result != ncclSuccess)
		return LAUNCH_FAILED;
	for (const struct step *step = replay->first; step && result == ncclSuccess;
	     step = step->next)
		result = run_step(step, stream, true);
	one = tti_nccl_report(NULL, tutti_group_end());
	if (!tti_nccl_in_group())
		look_behind_group(one != ncclSuccess);
	return result == ncclSuccess && one == ncclSuccess ? 0 : LAUNCH_FAILED;
}

/* The graph owns it, or nobody does. */
static ncclResult_t give_to_graph(struct replay *replay)
{
	const ncclComm_t comm = replay->first->comm;
	const cudaStream_t stream = replay->stream;
	const int error = tti_nccl_capture(stream, launch, drop, replay);

	if (error < 0)
		return tti_nccl_fail(comm, ncclInvalidUsage,
				     "stream %p is captured: calls in captured graphs need Tutti's "
				     "CUDA runtime on host memory",
				     (void *)stream);
	if (error)
		return tti_nccl_fail(comm, ncclUnhandledCudaError,
				     "the CUDA runtime gave error %d for a call on stream %p, "
				     "which is captured",
				     error, (void *)stream);
	return ncclSuccess;
}

/* The pending replay of this thread's group on a captured stream. */
static struct replay *find_pending(cudaStream_t stream)
{
	struct replay **at = &pending;

	while (*at && (*at)->stream != stream)
		at = &(*at)->next;
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (*at) {
			(*at)->stream = stream;
			(*at)->end = &(*at)->first;
		}
	}
	return *at;
}

static ncclResult_t add_to_capture(const struct tti_nccl_action *action)
{
	struct step *step = calloc(1, sizeof(*step) + action->nbytes);
	struct replay *replay = step ? find_pending(action->stream) : NULL;
	ncclResult_t result;

	if (!replay) {
		free(step);
		return tti_nccl_fail(action->comm, ncclSystemError,
				     "a call that is captured: out of memory");
	}
	result = tti_nccl_op_hold(action->comm, action->op);
	if (result != ncclSuccess) {
		free(step);
		if (!tti_nccl_in_group())
			(void)tti_nccl_capture_end(true);
		return result;
	}
	step->comm = action->comm;
	step->serial = action->comm->serial;
	step->op = action->op;
	step->run = action->run;
	memcpy(step->work, action->work, action->nbytes);
	*replay->end = step;
	replay->end = &step->next;
	return tti_nccl_in_group() ? ncclSuccess : tti_nccl_capture_end(false);
}

ncclResult_t tti_nccl_capture_end(bool dropped)
{
	ncclResult_t result = ncclSuccess;

	look_behind_group(dropped);
	while (pending) {
		struct replay *replay = pending;

		pending = replay->next;
		replay->next = NULL;
		if (dropped || result != ncclSuccess || !replay->first)
			drop(replay);
		else
			result = give_to_graph(replay);
	}
	return result;
}

ncclResult_t tti_nccl_do(const struct tti_nccl_action *action)
{
	tutti_stream_t over = NULL;
	ncclResult_t result;

	/* A kernel is captured as any other. */
	if (!action->comm->has_kernels && tti_nccl_is_captured(action->stream))
		return add_to_capture(action);
	result = tti_nccl_stream_of(action->comm, action->stream, &over);
	if (result == ncclSuccess)
		result = tti_nccl_report(action->comm, action->run(action->work, over));
	if (result == ncclSuccess)
		look_later(action->comm, over, tti_nccl_in_group());
	return result;
}
