/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/bounce.h"

#include "core/comm.h"
#include "core/device/device.h"
#include "gpu/cuda_memory.h"
#include "util/error.h"
#include "util/mem.h"

/* Vectors of the host are read and written from there on. */
#define ALIGNMENT 64

tutti_status tti_is_of_device(const struct tti_comm *comm, const void *memory, bool *out)
{
	struct tti_gpu_pointer pointer;

	*out = false;
	if (!comm->device || !memory)
		return TUTTI_OK;
	TTI_TRY(tti_gpu_pointer(comm->device->gpu, memory, &pointer));
	*out = pointer.kind == TTI_GPU_DEVICE;
	return TUTTI_OK;
}

tutti_status tti_bounce_open(const struct tti_comm *comm, const void *memory, size_t nbytes,
			     bool reads, struct tti_bounce *out)
{
	tutti_status st = TUTTI_OK;
	bool is_of_device;

	*out = (struct tti_bounce){ .host = (void *)(uintptr_t)memory };
	TTI_TRY(tti_is_of_device(comm, nbytes ? memory : NULL, &is_of_device));
	if (!is_of_device)
		return TUTTI_OK;
	out->gpu = comm->device->gpu;
	out->at = (uintptr_t)memory;
	out->host = tti_aligned_zalloc(ALIGNMENT, nbytes);
	if (!out->host)
		return tti_fail(TUTTI_ENOMEM,
				"a copy on the host of %zu bytes of device %d: out of memory",
				nbytes, comm->device->ordinal);
	if (reads)
		st = tti_gpu_read(out->gpu, out->host, out->at, nbytes);
	if (st != TUTTI_OK)
		tti_bounce_close(out);
	return st;
}

tutti_status tti_bounce_store(const struct tti_bounce *bounce, size_t nbytes)
{
	return bounce->gpu ? tti_gpu_write(bounce->gpu, bounce->at, bounce->host, nbytes)
			   : TUTTI_OK;
}

void tti_bounce_close(struct tti_bounce *bounce)
{
	if (bounce->gpu)
		tti_free(bounce->host);
	*bounce = (struct tti_bounce){ 0 };
}
