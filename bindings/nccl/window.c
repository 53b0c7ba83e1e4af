/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows, and signals between the ranks of a communicator.
 *
 * Signals of NCCL belong to a communicator, those of Tutti to a window. So with the first window
 * that is registered another one of no bytes is made, for signals alone. A put has arrived before
 * the signal that follows it is sent.
 *
 * Deregistering waits for no rank, since one thread may do it for several. What Tutti has of a
 * window stays until the communicator is gone. */
#include "binding.h"

#include <stdint.h>
#include <stdlib.h>

struct ncclWindow_vidmem {
	struct ncclWindow_vidmem *next; /* of the communicator */
	ncclComm_t comm;
	void *base;
	size_t nbytes;
	tutti_window_t window; /* NULL: not yet */
	tutti_reg_t reg;       /* NULL: none */
	bool is_over;          /* it was deregistered */
};

/* -- Windows ------------------------------------------------------------------------------ */

/* Signal s of context c is Tutti's c * rma_signals + s. */
static tutti_status create_signals(ncclComm_t comm)
{
	const int nsignals = comm->rma_signals * comm->rma_contexts;
	tutti_window_config config = TUTTI_WINDOW_CONFIG_INIT;

	config.signals = nsignals > 0 ? nsignals : 1;
	return tutti_window_create_config(comm->comm, NULL, 0, &config, &comm->signals);
}

static ncclResult_t create_now(void *work)
{
	ncclWindow_t window = work;
	const ncclComm_t comm = window->comm;
	void *const memory = tti_nccl_reach_of(comm, window->base);
	tutti_status status = TUTTI_OK;

	if (!comm->signals)
		status = create_signals(comm);
	/* If ranks are threads, collectives and puts then use the memory in place. */
	if (status == TUTTI_OK && window->nbytes > 0)
		status = tutti_register(comm->comm, memory, window->nbytes, &window->reg);
	if (status == TUTTI_OK)
		status = tutti_window_create(comm->comm, memory, window->nbytes, &window->window);
	return tti_nccl_report(comm, status);
}

/* It stays in the list of its communicator as a window that was never made. */
static void create_never(void *work)
{
	ncclWindow_t window = work;

	window->is_over = true;
}

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *memory, size_t nbytes,
				     ncclWindow_t *out, int flags)
{
	const int known = NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING;
	ncclResult_t result = tti_nccl_comm_check(comm);
	ncclWindow_t window;

	if (result != ncclSuccess)
		return result;
	if (!out || (!memory && nbytes > 0))
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "%zu bytes at %p cannot be a window, or the window is NULL",
				     nbytes, memory);
	if (flags & (NCCL_WIN_GIN_ONLY | NCCL_WIN_CFT_COUNTED))
		return tti_nccl_fail(comm, ncclInvalidUsage,
				     "flags are 0x%x: windows for kernels alone need a GPU",
				     (unsigned)flags);
	if (flags & ~known)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "flags are 0x%x, of which 0x%x is known", (unsigned)flags,
				     (unsigned)known);
	result = tti_nccl_look(comm, "ncclCommWindowRegister", "buff", nbytes > 0 ? memory : NULL);
	if (result != ncclSuccess)
		return result;
	window = calloc(1, sizeof(*window));
	if (!window)
		return tti_nccl_fail(comm, ncclSystemError, "a window: out of memory");
	*window = (struct ncclWindow_vidmem){
		.next = comm->windows, .comm = comm, .base = memory, .nbytes = nbytes
	};
	comm->windows = window;
	result = tti_nccl_job_add(
		&(struct tti_nccl_job){ TTI_NCCL_WINDOW, comm, create_now, create_never, window });
	if (result == ncclSuccess)
		*out = window;
	else
		window->is_over = true;
	return result;
}
ALSO_NAMED(ncclCommWindowRegister);

/* Whether it is a window of the communicator, and can be used. */
static ncclResult_t check_window(ncclComm_t comm, ncclWindow_t window)
{
	const struct ncclWindow_vidmem *found = comm->windows;

	while (found && found != window)
		found = found->next;
	if (!found || found->is_over)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "%p is no window of the communicator", (void *)window);
	return ncclSuccess;
}

static ncclResult_t take_back_now(void *work)
{
	ncclWindow_t window = work;
	const tutti_reg_t reg = window->reg;

	window->is_over = true;
	window->reg = NULL;
	return reg ? tti_nccl_report(window->comm, tutti_deregister(window->comm->comm, reg))
		   : ncclSuccess;
}

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
	ncclResult_t result = tti_nccl_comm_ask(comm);

	if (result != ncclSuccess || !window)
		return result;
	result = check_window(comm, window);
	if (result != ncclSuccess)
		return result;
	return tti_nccl_job_add(&(struct tti_nccl_job){ TTI_NCCL_LATER, comm, take_back_now,
							create_never, window });
}
ALSO_NAMED(ncclCommWindowDeregister);

ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **out)
{
	ncclResult_t result = tti_nccl_comm_ask(comm);

	if (result == ncclSuccess && !out)
		return tti_nccl_fail(comm, ncclInvalidArgument, "the result is NULL");
	if (result == ncclSuccess)
		result = check_window(comm, window);
	if (result == ncclSuccess)
		*out = window->base;
	return result;
}
ALSO_NAMED(ncclWinGetUserPtr);

/* After the end of its communicator a window waits for nobody. */
void tti_nccl_windows_free(ncclComm_t comm)
{
	while (comm->windows) {
		ncclWindow_t window = comm->windows;

		comm->windows = window->next;
		(void)tutti_window_destroy(window->window);
		free(window);
	}
	(void)tutti_window_destroy(comm->signals);
	comm->signals = NULL;
}

/* -- Puts and signals ----------------------------------------------------------------------- */

/* One call, or a wait for one of the given signals. */
struct transfer {
	ncclComm_t comm;
	cudaStream_t stream;
	int peer, signal;    /* Tutti's */
	ncclWindow_t window; /* of a put; NULL: a signal or a wait alone */
	size_t offset, nbytes;
	const void *from;
	uint64_t count; /* of a wait */
	bool is_wait;
};

static tutti_status transfer_on(const void *work, tutti_stream_t stream)
{
	const struct transfer *const self = work;
	const tutti_window_t signals = self->comm->signals;
	tutti_status status = TUTTI_OK;

	if (self->is_wait)
		return tutti_wait_signals(
			signals, &(tutti_signal_wait){ self->peer, self->signal, self->count }, 1,
			stream);
	if (self->window) {
		status = tutti_put(self->window->window, self->peer, self->offset, self->from,
				   self->nbytes, stream);
		if (status == TUTTI_OK)
			status = tutti_window_flush(self->window->window, self->peer, stream);
	}
	return status == TUTTI_OK ? tutti_signal_index(signals, self->peer, self->signal, stream)
				  : status;
}

static ncclResult_t transfer_now(void *work)
{
	const struct transfer self = *(struct transfer *)work;

	free(work);
	return tti_nccl_do(&(struct tti_nccl_action){ self.comm, self.stream, ncclSum, transfer_on,
						      &self, sizeof(self) });
}

static ncclResult_t add(const struct transfer *transfer)
{
	struct transfer *work = calloc(1, sizeof(*work));

	if (work)
		*work = *transfer;
	return tti_nccl_job_add(
		&(struct tti_nccl_job){ transfer->is_wait ? TTI_NCCL_WAIT : TTI_NCCL_PUT,
					transfer->comm, transfer_now, free, work });
}

/* Find the signal of a communicator that is asked for; *out is Tutti's number of it. */
static ncclResult_t find_signal(ncclComm_t comm, int signal, int context, unsigned int flags,
				int *out)
{
	const ncclResult_t result = tti_nccl_comm_check(comm);

	if (result != ncclSuccess)
		return result;
	if (flags != 0)
		return tti_nccl_fail(comm, ncclInvalidArgument, "flags are 0x%x: 0 is known",
				     flags);
	if (signal < 0 || signal >= comm->rma_signals || context < 0 ||
	    context >= comm->rma_contexts)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "signal %d of context %d: the communicator has %d signals in "
				     "each of %d contexts (numRmaSig, numRmaCtx of its config)",
				     signal, context, comm->rma_signals, comm->rma_contexts);
	if (!comm->signals)
		return tti_nccl_fail(comm, ncclInvalidUsage,
				     "there are no signals before all ranks have registered a "
				     "window: ncclCommWindowRegister()");
	*out = context * comm->rma_signals + signal;
	return ncclSuccess;
}

ncclResult_t pncclPutSignal(const void *send, size_t count, ncclDataType_t type, int peer,
			    ncclWindow_t window, size_t offset, int signal, int context,
			    unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
	struct transfer put = { .comm = comm, .stream = stream, .peer = peer };
	ncclResult_t result = find_signal(comm, signal, context, flags, &put.signal);

	if (result == ncclSuccess)
		result = tti_nccl_check_type(comm, type);
	if (result == ncclSuccess)
		result = check_window(comm, window);
	if (result != ncclSuccess)
		return result;
	if (!window->window)
		return tti_nccl_fail(comm, ncclInvalidUsage,
				     "the window is made at the end of the group");
	if (__builtin_mul_overflow(count, tutti_type_size((tutti_type)type), &put.nbytes))
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "%zu elements are more than memory can hold", count);
	result = tti_nccl_look(comm, "ncclPutSignal", "localbuff", put.nbytes > 0 ? send : NULL);
	if (result != ncclSuccess)
		return result;
	put.window = window;
	put.offset = offset;
	put.from = tti_nccl_reach_of(comm, send);
	return add(&put);
}
ALSO_NAMED(ncclPutSignal);

ncclResult_t pncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm,
			 cudaStream_t stream)
{
	struct transfer work = { .comm = comm, .stream = stream, .peer = peer };
	const ncclResult_t result = find_signal(comm, signal, context, flags, &work.signal);

	return result == ncclSuccess ? add(&work) : result;
}
ALSO_NAMED(ncclSignal);

static ncclResult_t read_wait(ncclComm_t comm, cudaStream_t stream,
			      const ncclWaitSignalDesc_t *signal, int at, struct transfer *out)
{
	*out = (struct transfer){ .comm = comm,
				  .stream = stream,
				  .peer = signal->peer,
				  .count = (uint64_t)signal->opCnt,
				  .is_wait = true };
	if (signal->opCnt < 0)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "signals[%d].opCnt is %d: 0 or more", at, signal->opCnt);
	return find_signal(comm, signal->sigIdx, signal->ctx, 0, &out->signal);
}

ncclResult_t pncclWaitSignal(int nsignals, ncclWaitSignalDesc_t *signals, ncclComm_t comm,
			     cudaStream_t stream)
{
	ncclResult_t result = tti_nccl_comm_check(comm);
	struct transfer work;

	if (result == ncclSuccess && (nsignals < 0 || (nsignals > 0 && !signals)))
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "%d signals to wait for at %p: give 0 or more", nsignals,
				     (void *)signals);
	for (int at = 0; at < nsignals && result == ncclSuccess; at++)
		result = read_wait(comm, stream, &signals[at], at, &work);
	for (int at = 0; at < nsignals && result == ncclSuccess; at++) {
		result = read_wait(comm, stream, &signals[at], at, &work);
		if (result == ncclSuccess)
			result = add(&work);
	}
	return result;
}
ALSO_NAMED(ncclWaitSignal);

/* -- Addresses ------------------------------------------------------------------------------ */

/* Only for this rank's memory: Tutti does not say where that of another rank is. */
static ncclResult_t give_address(ncclWindow_t window, size_t offset, bool is_own, void **out)
{
	if (offset > window->nbytes)
		return tti_nccl_fail(window->comm, ncclInvalidArgument,
				     "offset %zu is beyond the window, which has %zu bytes", offset,
				     window->nbytes);
	*out = is_own ? (char *)window->base + offset : NULL;
	return ncclSuccess;
}

ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **out)
{
	int rank = 0, nranks = 0;
	ncclResult_t result;

	if (!window || !out)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "the window or the result is NULL");
	result = pncclCommUserRank(window->comm, &rank);
	if (result == ncclSuccess)
		result = pncclCommCount(window->comm, &nranks);
	if (result == ncclSuccess && (peer < 0 || peer >= nranks))
		return tti_nccl_fail(window->comm, ncclInvalidArgument, "peer is %d of %d ranks",
				     peer, nranks);
	return result == ncclSuccess ? give_address(window, offset, peer == rank, out) : result;
}
ALSO_NAMED(ncclGetPeerDevicePointer);

ncclResult_t pncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int rank, void **out)
{
	if (!window || !out)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "the window or the result is NULL");
	if (rank != 0)
		return tti_nccl_fail(window->comm, ncclInvalidArgument,
				     "rank is %d: ncclTeamLsa() has one, 0", rank);
	return give_address(window, offset, true, out);
}
ALSO_NAMED(ncclGetLsaDevicePointer);
