/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that other ranks reach: its name, and memory of a name. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "gpu/cuda_share.h"
#include "util/fork.h"
#include "util/process.h"

#define NAME_MAGIC UINT32_C(0x74754701)

/* -- Names ------------------------------------------------------------------------- */

static tutti_status export_fd(struct tti_gpu_shared *memory, struct tti_gpu_wire *wire)
{
	const struct tti_cuda_functions *const call = &memory->gpu->driver->call;
	tutti_status status;
	int rc;

	rc = call->export_handle(&memory->fd, memory->handle, TTI_CUDA_HANDLE_FD, 0);
	if (rc) {
		memory->fd = -1;
		return tti_gpu_fail(memory->gpu, rc, "cuMemExportToShareableHandle",
				    "a file descriptor of its memory");
	}
	tti_gpu_count(&tti_gpu_counts.fds, 1);
	/* A child that keeps it would keep the memory. */
	(void)fcntl(memory->fd, F_SETFD, FD_CLOEXEC);
	(void)tti_fork_close(memory->fd);
	status = tti_fd_offer(memory->fd, &wire->offer);
	if (status != TUTTI_OK) {
		tti_gpu_shared_drop_fd(memory);
		return tti_fail(status, "GPU %d (%s): offering its memory to other processes: %s",
				memory->gpu->facts.ordinal, memory->gpu->facts.name,
				tti_error_text());
	}
	wire->has_fabric =
		memory->gpu->facts.has_fabric &&
		!call->export_handle(&wire->fabric, memory->handle, TTI_CUDA_HANDLE_FABRIC, 0);
	return TUTTI_OK;
}

static tutti_status export_ipc(const struct tti_gpu_shared *memory, struct tti_gpu_wire *wire)
{
	const int rc = memory->gpu->driver->call.ipc_get(&wire->ipc, memory->base.at);

	wire->offer = (struct tti_fd_offer){
		.process = tti_process_identity(getpid()),
		.pid = (int32_t)getpid(),
		.fd = -1,
	};
	if (rc)
		return tti_gpu_fail(memory->gpu, rc, "cuIpcGetMemHandle", "a handle of its memory");
	return TUTTI_OK;
}

tutti_status tti_gpu_memory_export(struct tti_gpu_memory *base, struct tti_gpu_name *out)
{
	struct tti_gpu_shared *memory = (struct tti_gpu_shared *)base;
	struct tti_gpu_wire wire = {
		.magic = NAME_MAGIC,
		.share = (uint8_t)base->share,
		.ordinal = (int16_t)memory->gpu->facts.ordinal,
		.nbytes = base->nbytes,
		.at = base->at,
	};
	struct tti_gpu_scope scope;
	tutti_status status;

	if (!memory->is_exported) {
		TTI_TRY(tti_gpu_enter(memory->gpu, true, &scope));
		status = base->share == TTI_GPU_BY_FD ? export_fd(memory, &wire)
						      : export_ipc(memory, &wire);
		tti_gpu_leave(memory->gpu, &scope);
		if (status != TUTTI_OK)
			return status;
		memcpy(&memory->name, &wire, sizeof(wire));
		memory->is_exported = true;
		tti_gpu_shared_publish(memory);
	}
	*out = memory->name;
	return TUTTI_OK;
}

/* -- Memory of a name -------------------------------------------------------------- */

static bool is_own(const struct tti_gpu_wire *wire)
{
	return wire->offer.process && wire->offer.pid == (int32_t)getpid() &&
	       wire->offer.process == tti_process_identity(getpid());
}

/* Memory of this process: let this GPU reach it where it is. */
static int reach_own(struct tti_gpu_shared *memory, const struct tti_gpu_wire *wire,
		     const char **function)
{
	const struct tti_gpu *const gpu = memory->gpu;
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	const struct tti_cuda_allow allow = tti_gpu_shared_access(gpu);
	tti_cuda_context context;
	tti_cuda_device device;
	int rc;

	memory->base.at = wire->at;
	memory->base.is_local = true;
	if (wire->ordinal == gpu->facts.ordinal)
		return TTI_CUDA_SUCCESS;
	*function = "cuMemSetAccess";
	if (wire->share == TTI_GPU_BY_FD)
		return call->allow(wire->at, wire->nbytes, &allow, 1);
	*function = "cuDeviceGet";
	rc = call->device_get(&device, wire->ordinal);
	if (rc)
		return rc;
	*function = "cuDevicePrimaryCtxRetain";
	rc = call->context_retain(&context, device);
	if (rc)
		return rc;
	*function = "cuCtxEnablePeerAccess";
	rc = call->context_peer(context, 0);
	if (call->context_release(device))
		(void)call->context_release(device);
	return rc == TTI_CUDA_PEER_ACCESS_ALREADY_ENABLED ? TTI_CUDA_SUCCESS : rc;
}

static tutti_status import_fd(struct tti_gpu_shared *memory, const struct tti_gpu_wire *wire)
{
	const struct tti_cuda_functions *const call = &memory->gpu->driver->call;
	const char *function = "cuMemImportFromShareableHandle";
	struct tti_cuda_fabric_handle fabric = wire->fabric;
	tutti_status status;
	int fd, rc;

	status = tti_fd_accept(&wire->offer, &fd);
	if (status == TUTTI_OK) {
		rc = call->import_handle(&memory->handle, (void *)(intptr_t)fd, TTI_CUDA_HANDLE_FD);
		close(fd);
	} else if (status == TUTTI_EUNSUPPORTED && wire->has_fabric &&
		   memory->gpu->facts.has_fabric) {
		rc = call->import_handle(&memory->handle, &fabric, TTI_CUDA_HANDLE_FABRIC);
		memory->base.is_far = true;
	} else {
		return tti_fail_quiet(status,
				      "GPU %d (%s): memory of process %d: %s; TUTTI_CUDA_SHARE=ipc "
				      "shares it another way",
				      memory->gpu->facts.ordinal, memory->gpu->facts.name,
				      (int)wire->offer.pid, tti_error_text());
	}
	if (rc)
		memory->handle = 0;
	else
		rc = tti_gpu_shared_map(memory, &function);
	if (rc)
		return tti_gpu_fail_quiet(memory->gpu, rc, function,
					  "memory of GPU %d of process %d", wire->ordinal,
					  (int)wire->offer.pid);
	return TUTTI_OK;
}

static tutti_status import(struct tti_gpu_shared *memory, const struct tti_gpu_name *name,
			   const struct tti_gpu_wire *wire)
{
	const char *function = "cuIpcOpenMemHandle";
	int rc;

	memory->base.nbytes = wire->nbytes;
	memory->base.share = (enum tti_gpu_share)wire->share;
	if (is_own(wire)) {
		memory->origin = TTI_GPU_BORROWED;
		memory->of = tti_gpu_shared_find(name);
		if (!memory->of)
			return tti_fail_quiet(TUTTI_EUNSUPPORTED,
					      "memory of GPU %d of this process was freed",
					      wire->ordinal);
		rc = reach_own(memory, wire, &function);
	} else if (wire->share == TTI_GPU_BY_FD) {
		memory->origin = TTI_GPU_CREATED;
		return import_fd(memory, wire);
	} else {
		memory->origin = TTI_GPU_OPENED;
		rc = memory->gpu->driver->call.ipc_open(&memory->base.at, wire->ipc,
							TTI_CUDA_IPC_PEER_ACCESS);
		if (rc)
			memory->base.at = 0;
	}
	if (rc)
		return tti_gpu_fail_quiet(memory->gpu, rc, function,
					  "memory of GPU %d of process %d", wire->ordinal,
					  (int)wire->offer.pid);
	return TUTTI_OK;
}

tutti_status tti_gpu_memory_import(struct tti_gpu *gpu, const struct tti_gpu_name *name,
				   struct tti_gpu_memory **out)
{
	struct tti_gpu_scope scope;
	struct tti_gpu_shared *memory;
	tutti_status status;
	struct tti_gpu_wire wire;

	*out = NULL;
	memcpy(&wire, name, sizeof(wire));
	if (wire.magic != NAME_MAGIC || wire.share > TTI_GPU_BY_IPC || !wire.nbytes)
		return tti_fail_quiet(TUTTI_EPROTO, "this is no name of memory of a GPU");
	memory = tti_gpu_shared_make(gpu, TTI_GPU_BORROWED);
	if (!memory)
		return tti_fail(TUTTI_ENOMEM, "memory of a GPU: out of memory of the host");
	status = tti_gpu_enter(gpu, true, &scope);
	if (status == TUTTI_OK) {
		status = import(memory, name, &wire);
		tti_gpu_leave(gpu, &scope);
	}
	if (status != TUTTI_OK) {
		tti_gpu_memory_free(&memory->base);
		return status;
	}
	*out = &memory->base;
	return TUTTI_OK;
}
