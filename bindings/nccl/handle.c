/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of communicators: created, checked, and kept when their communicators have ended. */
#include "binding.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Handles of communicators that ended, oldest first. The most recent ones are not used again, so
 * that a call on one of them is found. */
static struct {
	pthread_mutex_t lock;
	struct ncclComm *oldest, **end;
	int n;
} dead = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define KEEP 1024

static ncclComm_t reuse(void)
{
	ncclComm_t comm = NULL;

	pthread_mutex_lock(&dead.lock);
	if (dead.n > KEEP) {
		comm = dead.oldest;
		dead.oldest = comm->next;
		dead.n--;
	}
	pthread_mutex_unlock(&dead.lock);
	return comm;
}

ncclResult_t tti_nccl_comm_create(ncclComm_t *out)
{
	static _Atomic uint64_t serials;
	const bool has_kernels = tti_nccl_has_kernels();
	const int device = tti_nccl_current_device();
	ncclComm_t comm;

	/* Calls could not be queued on its streams, and nothing would tell memory of a GPU from
	 * other memory. */
	if (!has_kernels && !tti_nccl_has_runtime() && tti_nccl_gpu_is_in_use())
		return tti_nccl_fail(
			NULL, ncclInvalidUsage,
			"the process uses a GPU, and its CUDA runtime cannot be found: "
			"link it as a shared library (nvcc -cudart shared), or let Tutti move "
			"data by kernels (TUTTI_NCCL_KERNELS=1)");
	comm = reuse();
	if (!comm) {
		comm = calloc(1, sizeof(*comm));
		if (!comm)
			return tti_nccl_fail(NULL, ncclSystemError,
					     "a communicator: out of memory");
		(void)pthread_mutex_init(&comm->lock, NULL);
	}
	comm->comm = NULL;
	comm->failed = ncclSuccess;
	atomic_store(&comm->lets_go, 0);
	comm->device = device;
	comm->has_kernels = has_kernels;
	comm->serial = atomic_fetch_add(&serials, 1);
	if (tti_nccl_has_gpus() && !has_kernels)
		tti_nccl_gpu_prepare();
	comm->is_nonblocking = comm->is_finalized = comm->has_grow_id = false;
	comm->rma_signals = comm->rma_contexts = 1;
	atomic_store(&comm->is_alive, 1);
	tti_nccl_variables_tell();
	*out = comm;
	return ncclSuccess;
}

void tti_nccl_handle_bury(ncclComm_t comm)
{
	comm->next = NULL;
	pthread_mutex_lock(&dead.lock);
	if (dead.n++ == 0)
		dead.oldest = comm;
	else
		*dead.end = comm;
	dead.end = &comm->next;
	pthread_mutex_unlock(&dead.lock);
}

ncclResult_t tti_nccl_comm_ask(ncclComm_t comm)
{
	if (!comm)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "the communicator is NULL");
	if (!atomic_load(&comm->is_alive))
		return tti_nccl_fail(NULL, ncclInvalidUsage, "communicator %p was destroyed",
				     (void *)comm);
	if (comm->failed != ncclSuccess)
		return tti_nccl_fail(comm, ncclInvalidUsage, "the communicator could not be made");
	if (!comm->comm)
		return tti_nccl_fail(comm, ncclInvalidUsage,
				     "the communicator is made at the end of the group");
	return ncclSuccess;
}

ncclResult_t tti_nccl_comm_check(ncclComm_t comm)
{
	const ncclResult_t result = tti_nccl_comm_ask(comm);

	if (result == ncclSuccess && comm->is_finalized)
		return tti_nccl_fail(comm, ncclInvalidUsage,
				     "the communicator was finalized: it can only be destroyed");
	return result;
}
