/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: their end, and questions. handle.c has their handles, make.c how they are made. */
#include "binding.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void tti_nccl_comm_free(ncclComm_t comm)
{
	atomic_store(&comm->is_alive, 0);
	tti_nccl_windows_free(comm);
	tti_nccl_streams_release(comm);
	tti_nccl_ops_free(comm);
	tti_nccl_handle_bury(comm);
}

/* tutti_comm_finalize() would wait for all ranks, but one thread may end the communicators of
 * several one after the other. tutti_comm_destroy() waits only until what was sent is taken. */
ncclResult_t tti_nccl_comm_finalize(ncclComm_t comm)
{
	const ncclResult_t result = tti_nccl_comm_check(comm);
	struct tti_nccl_rescuer rescuer;
	tutti_status status;

	if (result != ncclSuccess)
		return result;
	comm->is_finalized = true;
	tti_nccl_let_go(comm);
	tti_nccl_streams_rescue(comm);
	if (comm->is_nonblocking && tti_nccl_streams_query(comm) == TUTTI_AGAIN)
		return ncclInProgress;
	tti_nccl_rescuer_begin(&rescuer, comm);
	tti_nccl_streams_wait(comm);
	tti_nccl_rescuer_end(&rescuer);
	status = tutti_comm_get_async_error(comm->comm, &status) == TUTTI_OK ? status : TUTTI_OK;
	return tti_nccl_result(status);
}

/* Whether this call is the one that ends it. */
static bool is_first_to_end(ncclComm_t comm)
{
	int is_alive;

	pthread_mutex_lock(&comm->lock);
	is_alive = atomic_exchange(&comm->is_alive, 0);
	pthread_mutex_unlock(&comm->lock);
	return is_alive;
}

/* Free the handle, too. A communicator that could not be made has nothing else. */
static ncclResult_t end(ncclComm_t comm, tutti_status (*end_in_tutti)(tutti_comm_t))
{
	ncclResult_t result = ncclSuccess;
	struct tti_nccl_rescuer rescuer;

	if (!atomic_load(&comm->is_alive) || comm->failed == ncclSuccess)
		result = tti_nccl_comm_ask(comm);
	if (result != ncclSuccess || !is_first_to_end(comm))
		return result;
	tti_nccl_rescuer_begin(&rescuer, comm);
	result = tti_nccl_report(comm, end_in_tutti(comm->comm));
	tti_nccl_rescuer_end(&rescuer);
	tti_nccl_let_go(comm);
	tti_nccl_comm_free(comm);
	return result;
}

ncclResult_t tti_nccl_comm_destroy(ncclComm_t comm)
{
	return end(comm, tutti_comm_destroy);
}

ncclResult_t tti_nccl_comm_abort(ncclComm_t comm)
{
	return end(comm, tutti_comm_abort);
}

/* In a group these wait for its calls. */
struct ending {
	ncclComm_t comm;
	ncclResult_t (*how)(ncclComm_t comm);
};

static ncclResult_t run_ending(void *work)
{
	const struct ending ending = *(struct ending *)work;

	free(work);
	return ending.how(ending.comm);
}

static ncclResult_t end_later(ncclComm_t comm, ncclResult_t (*how)(ncclComm_t))
{
	struct tti_nccl_job job = { TTI_NCCL_LATER, comm, run_ending, free, NULL };
	struct ending *ending;

	if (!tti_nccl_in_group())
		return how(comm);
	job.work = ending = calloc(1, sizeof(*ending));
	if (ending)
		*ending = (struct ending){ comm, how };
	return tti_nccl_job_add(&job);
}

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
	return end_later(comm, tti_nccl_comm_finalize);
}
ALSO_NAMED(ncclCommFinalize);

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
	return comm ? end_later(comm, tti_nccl_comm_destroy) : ncclSuccess;
}
ALSO_NAMED(ncclCommDestroy);

ncclResult_t pncclCommAbort(ncclComm_t comm)
{
	return comm ? end_later(comm, tti_nccl_comm_abort) : ncclSuccess;
}
ALSO_NAMED(ncclCommAbort);

ncclResult_t pncclCommRevoke(ncclComm_t comm, int flags)
{
	const ncclResult_t result = tti_nccl_comm_check(comm);

	if (result != ncclSuccess)
		return result;
	if (flags != NCCL_REVOKE_DEFAULT)
		return tti_nccl_fail(comm, ncclInvalidArgument, "flags are %d: only 0 is known",
				     flags);
	tti_nccl_let_go(comm);
	return tti_nccl_report(comm, tutti_comm_revoke(comm->comm));
}
ALSO_NAMED(ncclCommRevoke);

/* -- Questions ------------------------------------------------------------------------- */

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
	ncclResult_t result;
	tutti_status status;

	if (comm && atomic_load(&comm->is_alive) && !comm->comm && out) {
		*out = comm->failed != ncclSuccess ? comm->failed : ncclInProgress;
		return ncclSuccess;
	}
	result = tti_nccl_comm_ask(comm);
	if (result != ncclSuccess)
		return result;
	if (!out)
		return tti_nccl_fail(comm, ncclInvalidArgument, "the result is NULL");
	result = tti_nccl_report(comm, tutti_comm_get_async_error(comm->comm, &status));
	if (result != ncclSuccess)
		return result;
	if (status == TUTTI_OK && comm->is_finalized)
		status = tti_nccl_streams_query(comm);
	*out = tti_nccl_result(status);
	return ncclSuccess;
}
ALSO_NAMED(ncclCommGetAsyncError);

/* What a question needs besides the communicator: where the answer goes. */
static ncclResult_t check_question(ncclComm_t comm, const void *out)
{
	const ncclResult_t result = tti_nccl_comm_ask(comm);

	if (result == ncclSuccess && !out)
		return tti_nccl_fail(comm, ncclInvalidArgument, "the result is NULL");
	return result;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *out)
{
	const ncclResult_t result = check_question(comm, out);

	return result == ncclSuccess ? tti_nccl_report(comm, tutti_comm_count(comm->comm, out))
				     : result;
}
ALSO_NAMED(ncclCommCount);

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *out)
{
	const ncclResult_t result = check_question(comm, out);

	return result == ncclSuccess ? tti_nccl_report(comm, tutti_comm_rank(comm->comm, out))
				     : result;
}
ALSO_NAMED(ncclCommUserRank);

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *out)
{
	const ncclResult_t result = check_question(comm, out);

	if (result == ncclSuccess)
		*out = comm->device;
	return result;
}
ALSO_NAMED(ncclCommCuDevice);

ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags)
{
	const ncclResult_t result = tti_nccl_comm_check(comm);

	if (result == ncclSuccess && flags != NCCL_SUSPEND_MEM)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "flags are %d: only NCCL_SUSPEND_MEM is known", flags);
	return result;
}
ALSO_NAMED(ncclCommSuspend);

ncclResult_t pncclCommResume(ncclComm_t comm)
{
	return tti_nccl_comm_check(comm);
}
ALSO_NAMED(ncclCommResume);

/* None of it can be suspended. */
ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *out)
{
	ncclResult_t result = check_question(comm, out);
	tutti_memory_use use = TUTTI_MEMORY_USE_INIT;

	if (result != ncclSuccess)
		return result;
	if ((unsigned)stat > ncclStatGpuMemTotal)
		return tti_nccl_fail(comm, ncclInvalidArgument, "there is no statistic %d",
				     (int)stat);
	result = tti_nccl_report(comm, tutti_comm_memory(comm->comm, &use));
	if (result == ncclSuccess)
		*out = stat == ncclStatGpuMemPersist || stat == ncclStatGpuMemTotal
			       ? use.device_bytes
			       : 0;
	return result;
}
ALSO_NAMED(ncclCommMemStats);

ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *out)
{
	ncclCommProperties_t properties = NCCL_COMM_PROPERTIES_INITIALIZER;
	const size_t begin = offsetof(ncclCommProperties_t, rank);
	ncclResult_t result = check_question(comm, out);
	size_t nbytes;

	if (result != ncclSuccess)
		return result;
	if (out->magic != NCCL_API_MAGIC || out->size <= begin)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "the properties have magic 0x%x and %zu bytes: begin with "
				     "NCCL_COMM_PROPERTIES_INITIALIZER",
				     out->magic, out->size);
	result = tti_nccl_report(comm, tutti_comm_rank(comm->comm, &properties.rank));
	if (result == ncclSuccess)
		result = tti_nccl_report(comm, tutti_comm_count(comm->comm, &properties.nRanks));
	if (result != ncclSuccess)
		return result;
	properties.cudaDev = properties.nvmlDev = comm->device;
	properties.nLsaTeams = properties.nRanks;
	properties.hostRmaSupport = true;
	nbytes = out->size < sizeof(properties) ? out->size : sizeof(properties);
	memcpy((char *)out + begin, (const char *)&properties + begin, nbytes - begin);
	return ncclSuccess;
}
ALSO_NAMED(ncclCommQueryProperties);
