/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, and its registration with communicators. */
#include "binding.h"

#include <stdlib.h>

ncclResult_t pncclMemAlloc(void **out, size_t nbytes)
{
	const bool of_device = out && nbytes > 0 && tti_nccl_has_kernels();
	ncclResult_t result = ncclSuccess;
	const char *function;
	int error;

	if (of_device) {
		error = tti_nccl_device_alloc(out, nbytes, &function);
	} else {
		result = tti_nccl_report(NULL, tutti_mem_alloc(out, nbytes, NULL));
		if (result != ncclSuccess || nbytes == 0)
			return result;
		error = tti_nccl_adopt(*out, nbytes, &function);
	}
	if (error == 0)
		return ncclSuccess;
	if (!of_device)
		(void)tti_nccl_report(NULL, tutti_mem_free(*out, NULL));
	*out = NULL;
	return tti_nccl_fail(NULL, ncclUnhandledCudaError,
			     "%s gave error %d for %zu bytes of ncclMemAlloc()", function, error,
			     nbytes);
}
ALSO_NAMED(ncclMemAlloc);

ncclResult_t pncclMemFree(void *memory)
{
	int error = 0;

	if (memory && tti_nccl_device_free(memory, &error))
		return error ? tti_nccl_fail(NULL, ncclUnhandledCudaError,
					     "cudaFree() gave error %d for %p", error, memory)
			     : ncclSuccess;
	tti_nccl_disown(memory);
	return tti_nccl_report(NULL, tutti_mem_free(memory, NULL));
}
ALSO_NAMED(ncclMemFree);

/* A handle is one of these. It is registered by the end of the group at the latest. */
struct registration {
	ncclComm_t comm;
	void *memory;
	size_t nbytes;
	tutti_reg_t reg; /* NULL: not yet */
};

static ncclResult_t add_now(void *work)
{
	struct registration *self = work;

	return tti_nccl_report(self->comm,
			       tutti_register(self->comm->comm,
					      tti_nccl_reach_of(self->comm, self->memory),
					      self->nbytes, &self->reg));
}

/* The program still has the handle. */
static void forget(void *work)
{
	(void)work;
}

ncclResult_t pncclCommRegister(const ncclComm_t comm, void *memory, size_t nbytes, void **out)
{
	struct registration *self;
	ncclResult_t result = tti_nccl_comm_check(comm);

	if (result != ncclSuccess)
		return result;
	if (!memory || nbytes == 0 || !out)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "%zu bytes at %p cannot be registered, or the handle is NULL",
				     nbytes, memory);
	result = tti_nccl_look(comm, "ncclCommRegister", "buff", memory);
	if (result != ncclSuccess)
		return result;
	self = calloc(1, sizeof(*self));
	if (!self)
		return tti_nccl_fail(comm, ncclSystemError, "a registration: out of memory");
	*self = (struct registration){ comm, memory, nbytes, NULL };
	result = tti_nccl_job_add(
		&(struct tti_nccl_job){ TTI_NCCL_REGISTER, comm, add_now, forget, self });
	if (result != ncclSuccess)
		free(self);
	else
		*out = self;
	return result;
}
ALSO_NAMED(ncclCommRegister);

static ncclResult_t drop_now(void *work)
{
	struct registration *self = work;
	const ncclResult_t result =
		self->reg
			? tti_nccl_report(self->comm, tutti_deregister(self->comm->comm, self->reg))
			: ncclSuccess;

	free(self);
	return result;
}

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
	struct registration *self = handle;
	const ncclResult_t result = tti_nccl_comm_ask(comm);

	if (result != ncclSuccess || !self)
		return result;
	if (self->comm != comm)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "the memory was registered with another communicator");
	return tti_nccl_job_add(
		&(struct tti_nccl_job){ TTI_NCCL_LATER, comm, drop_now, forget, self });
}
ALSO_NAMED(ncclCommDeregister);
