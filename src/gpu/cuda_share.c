/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that other ranks reach: where it comes from, and how it is given back. */
#include "gpu/cuda_share.h"

#include <pthread.h>
#include <string.h>

#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

/* The driver gives parts of such pieces to small allocations, and an older handle is of the whole
 * piece: nothing else is to lie in what other processes map. */
#define IPC_GRAIN ((size_t)2 << 20)

enum share_wish { WISH_AUTO, WISH_FD, WISH_IPC }; /* TUTTI_CUDA_SHARE */

/* -- Giving back ------------------------------------------------------------------- */

static void drop_handle(const struct tti_gpu *gpu, tti_cuda_handle handle)
{
	tti_gpu_give_back_at(gpu, gpu->driver->call.release, handle, "cuMemRelease");
}

static void drop_range(const struct tti_gpu *gpu, uint64_t at, size_t nbytes)
{
	int rc = gpu->driver->call.unreserve(at, nbytes);

	if (rc)
		rc = gpu->driver->call.unreserve(at, nbytes);
	if (rc)
		tti_gpu_not_released(gpu, rc, "cuMemAddressFree");
}

static void drop_map(const struct tti_gpu *gpu, uint64_t at, size_t nbytes)
{
	int rc = gpu->driver->call.unmap(at, nbytes);

	if (rc)
		rc = gpu->driver->call.unmap(at, nbytes);
	if (rc)
		tti_gpu_not_released(gpu, rc, "cuMemUnmap");
	drop_range(gpu, at, nbytes);
}

static void drop_opened(const struct tti_gpu *gpu, uint64_t at)
{
	tti_gpu_give_back_at(gpu, gpu->driver->call.ipc_close, at, "cuIpcCloseMemHandle");
}

void tti_gpu_shared_drop_fd(struct tti_gpu_shared *memory)
{
	struct tti_gpu_wire wire;

	if (memory->fd < 0)
		return;
	memcpy(&wire, &memory->name, sizeof(wire));
	if (memory->is_exported)
		tti_fd_withdraw(&wire.offer);
	tti_fd_close(&memory->fd);
	tti_gpu_count(&tti_gpu_counts.fds, -1);
}

/* In the GPU's context. */
static void drop(struct tti_gpu_shared *memory)
{
	const struct tti_gpu *const gpu = memory->gpu;

	switch (memory->origin) {
	case TTI_GPU_CREATED:
		if (memory->base.at)
			drop_map(gpu, memory->base.at, memory->base.nbytes);
		break;
	case TTI_GPU_ALLOCATED:
		if (memory->base.is_kept)
			tti_gpu_set_aside(memory->gpu, memory->base.at, memory->base.nbytes);
		else
			tti_gpu_free(memory->gpu, memory->base.at);
		break;
	case TTI_GPU_OPENED:
		if (memory->base.at)
			drop_opened(gpu, memory->base.at);
		break;
	case TTI_GPU_BORROWED:
		break;
	}
	if (memory->handle)
		drop_handle(gpu, memory->handle);
}

static void destroy(struct tti_gpu_shared *memory)
{
	struct tti_gpu_scope scope;

	if (tti_gpu_enter_again(memory->gpu, &scope)) {
		drop(memory);
		tti_gpu_leave(memory->gpu, &scope);
	}
	tti_gpu_close(memory->gpu);
	if (memory->origin == TTI_GPU_CREATED && memory->base.at)
		tti_gpu_count(&tti_gpu_counts.maps, -1);
	tti_gpu_count(&tti_gpu_counts.memories, -1);
	tti_free(memory);
}

/* -- In one process ---------------------------------------------------------------- */

/* A rank that is done frees its memory without waiting for the others, whose kernels may still tell it
 * how far they have read. Another process has the memory mapped by itself. In this one the address is
 * the same, so the memory stays until the last one frees it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tti_gpu_shared *exported; /* under the lock */

void tti_gpu_shared_publish(struct tti_gpu_shared *memory)
{
	pthread_mutex_lock(&lock);
	memory->next = exported;
	exported = memory;
	pthread_mutex_unlock(&lock);
}

struct tti_gpu_shared *tti_gpu_shared_find(const struct tti_gpu_name *name)
{
	struct tti_gpu_shared *memory;

	pthread_mutex_lock(&lock);
	memory = exported;
	while (memory && memcmp(&memory->name, name, sizeof(*name)) != 0)
		memory = memory->next;
	if (memory)
		memory->users++;
	pthread_mutex_unlock(&lock);
	return memory;
}

/* `is_owner`: nobody can import it any more. */
static void leave(struct tti_gpu_shared *memory, bool is_owner)
{
	struct tti_gpu_shared **at = &exported;
	int users;

	pthread_mutex_lock(&lock);
	while (is_owner && *at && *at != memory)
		at = &(*at)->next;
	if (is_owner && *at)
		*at = memory->next;
	users = --memory->users;
	pthread_mutex_unlock(&lock);
	if (users == 0)
		destroy(memory);
}

void tti_gpu_memory_free(struct tti_gpu_memory *base)
{
	struct tti_gpu_shared *memory = (struct tti_gpu_shared *)base, *of;

	if (!memory)
		return;
	of = memory->of;
	tti_gpu_shared_drop_fd(memory);
	leave(memory, true);
	if (of)
		leave(of, false);
}

/* -- Making ------------------------------------------------------------------------ */

struct tti_gpu_shared *tti_gpu_shared_make(struct tti_gpu *gpu, enum tti_gpu_origin origin)
{
	struct tti_gpu_shared *memory = tti_zalloc(sizeof(*memory));

	if (!memory)
		return NULL;
	atomic_fetch_add(&gpu->users, 1);
	memory->gpu = gpu;
	memory->users = 1;
	memory->origin = origin;
	memory->fd = -1;
	tti_gpu_count(&tti_gpu_counts.memories, 1);
	return memory;
}

struct tti_cuda_allow tti_gpu_shared_access(const struct tti_gpu *gpu)
{
	return (struct tti_cuda_allow){
		.location = { TTI_CUDA_LOCATION_DEVICE, gpu->facts.ordinal },
		.access = TTI_CUDA_READ_WRITE,
	};
}

int tti_gpu_shared_map(struct tti_gpu_shared *memory, const char **function)
{
	const struct tti_cuda_functions *const call = &memory->gpu->driver->call;
	const struct tti_cuda_allow allow = tti_gpu_shared_access(memory->gpu);
	const size_t nbytes = memory->base.nbytes;
	uint64_t at = 0;
	int rc;

	*function = "cuMemAddressReserve";
	rc = call->reserve(&at, nbytes, 0, 0, 0);
	if (rc)
		return rc;
	*function = "cuMemMap";
	rc = call->map(at, nbytes, 0, memory->handle, 0);
	if (rc) {
		drop_range(memory->gpu, at, nbytes);
		return rc;
	}
	tti_gpu_count(&tti_gpu_counts.maps, 1);
	memory->base.at = at;
	*function = "cuMemSetAccess";
	return call->allow(at, nbytes, &allow, 1);
}

static size_t round_up(size_t nbytes, size_t grain)
{
	return (nbytes + grain - 1) / grain * grain;
}

/* Memory with a handle that can be exported. */
static int create(struct tti_gpu_shared *memory, size_t nbytes, const char **function)
{
	const struct tti_cuda_functions *const call = &memory->gpu->driver->call;
	struct tti_cuda_prop what = {
		.type = TTI_CUDA_ALLOCATION_PINNED,
		.handles = TTI_CUDA_HANDLE_FD,
		.location = { TTI_CUDA_LOCATION_DEVICE, memory->gpu->facts.ordinal },
		.rdma = memory->gpu->facts.has_vmm_rdma,
	};
	size_t grain = 0;
	int rc;

	*function = "cuMemGetAllocationGranularity";
	rc = call->granularity(&grain, &what, TTI_CUDA_GRANULARITY_RECOMMENDED);
	if (rc)
		return rc;
	memory->base.nbytes = round_up(nbytes, grain);
	*function = "cuMemCreate";
	rc = TTI_CUDA_NOT_SUPPORTED;
	if (memory->gpu->facts.has_fabric) {
		/* Devices have it, and yet only a host that runs IMEX may use it. */
		what.handles |= TTI_CUDA_HANDLE_FABRIC;
		rc = call->create(&memory->handle, memory->base.nbytes, &what, 0);
		what.handles = TTI_CUDA_HANDLE_FD;
	}
	if (rc && rc != TTI_CUDA_OUT_OF_MEMORY)
		rc = call->create(&memory->handle, memory->base.nbytes, &what, 0);
	if (rc) {
		memory->handle = 0;
		return rc;
	}
	return tti_gpu_shared_map(memory, function);
}

static int allocate(struct tti_gpu_shared *memory, size_t nbytes, const char **function)
{
	*function = "cuMemAlloc";
	memory->origin = TTI_GPU_ALLOCATED;
	memory->base.share = TTI_GPU_BY_IPC;
	memory->base.nbytes = round_up(nbytes, IPC_GRAIN);
	return tti_gpu_take(memory->gpu, memory->base.nbytes, &memory->base.at);
}

static bool shares_by_ipc(const struct tti_gpu *gpu)
{
	const enum share_wish wish = (enum share_wish)tti_params()->cuda_share;

	return wish == WISH_IPC || (wish == WISH_AUTO && !gpu->facts.has_fd);
}

bool tti_gpu_memory_is_for_processes(const struct tti_gpu_memory *base)
{
	const struct tti_gpu_shared *memory = (const struct tti_gpu_shared *)base;

	return base->share != TTI_GPU_BY_IPC || shares_by_ipc(memory->gpu);
}

static int create_or_allocate(struct tti_gpu_shared *memory, size_t nbytes, const char **function)
{
	const enum share_wish wish = (enum share_wish)tti_params()->cuda_share;
	int rc;

	if (shares_by_ipc(memory->gpu))
		return allocate(memory, nbytes, function);
	memory->base.share = TTI_GPU_BY_FD;
	rc = create(memory, nbytes, function);
	if (wish == WISH_FD || memory->handle ||
	    (rc != TTI_CUDA_NOT_SUPPORTED && rc != TTI_CUDA_NOT_PERMITTED))
		return rc;
	tti_log(TTI_LOG_INFO, TTI_GPU,
		"GPU %d: %s: error %d, so its memory is shared by older handles",
		memory->gpu->facts.ordinal, *function, rc);
	return allocate(memory, nbytes, function);
}

tutti_status tti_gpu_memory_create(struct tti_gpu *gpu, size_t nbytes, struct tti_gpu_memory **out)
{
	struct tti_gpu_shared *memory = tti_gpu_shared_make(gpu, TTI_GPU_CREATED);
	tutti_status status = TUTTI_OK;
	struct tti_gpu_scope scope;
	const char *function = "";
	int rc;

	*out = NULL;
	if (!memory)
		return tti_fail(TUTTI_ENOMEM, "memory of a GPU: out of memory of the host");
	status = tti_gpu_enter(gpu, true, &scope);
	if (status == TUTTI_OK) {
		rc = create_or_allocate(memory, nbytes ? nbytes : 1, &function);
		tti_gpu_leave(gpu, &scope);
		if (rc)
			status = tti_gpu_fail(gpu, rc, function,
					      "%zu bytes of its memory for other ranks", nbytes);
	}
	if (status == TUTTI_OK)
		status = tti_gpu_zero(gpu, memory->base.at, memory->base.nbytes);
	if (status != TUTTI_OK) {
		tti_gpu_memory_free(&memory->base);
		return status;
	}
	*out = &memory->base;
	return TUTTI_OK;
}

/* -- What the program allocated ---------------------------------------------------- */

/* The mapping in which `at` lies, and its handle. */
static int find_mapping(struct tti_gpu_shared *memory, uint64_t at, const char **function)
{
	const struct tti_cuda_functions *const call = &memory->gpu->driver->call;
	int which[] = { TTI_CUDA_POINTER_MAP_BASE, TTI_CUDA_POINTER_MAP_NBYTES };
	void *where[] = { &memory->base.at, &memory->base.nbytes };
	int rc;

	*function = "cuPointerGetAttributes";
	rc = call->pointer_attributes(2, which, where, at);
	if (rc)
		return rc;
	*function = "cuMemRetainAllocationHandle";
	rc = call->handle_of(&memory->handle, (void *)(uintptr_t)at);
	if (rc)
		memory->handle = 0;
	return rc;
}

tutti_status tti_gpu_memory_wrap(struct tti_gpu *gpu, uint64_t at, struct tti_gpu_memory **out)
{
	struct tti_gpu_pointer pointer;
	struct tti_gpu_scope scope;
	struct tti_gpu_shared *memory;
	const char *function = "";
	tutti_status status;
	int rc = TTI_CUDA_SUCCESS;

	*out = NULL;
	TTI_TRY(tti_gpu_pointer(gpu, (const void *)(uintptr_t)at, &pointer));
	if (!pointer.has_fd && !pointer.has_ipc)
		return tti_fail_quiet(TUTTI_EUNSUPPORTED,
				      "memory at 0x%llx cannot be shared with other processes: %s",
				      (unsigned long long)at,
				      pointer.kind == TTI_GPU_DEVICE
					      ? "cudaMalloc() gives such that can, pools do not"
					      : "it is no memory of a GPU alone");
	memory = tti_gpu_shared_make(gpu, TTI_GPU_BORROWED);
	if (!memory)
		return tti_fail(TUTTI_ENOMEM, "memory of a GPU: out of memory of the host");
	memory->base.share = pointer.has_fd ? TTI_GPU_BY_FD : TTI_GPU_BY_IPC;
	memory->base.at = pointer.base;
	memory->base.nbytes = pointer.nbytes;
	status = pointer.has_fd ? tti_gpu_enter(gpu, true, &scope) : TUTTI_OK;
	if (status == TUTTI_OK && pointer.has_fd) {
		rc = find_mapping(memory, at, &function);
		tti_gpu_leave(gpu, &scope);
	}
	if (rc)
		status = tti_gpu_fail(gpu, rc, function, "whose memory is at 0x%llx",
				      (unsigned long long)at);
	if (status != TUTTI_OK) {
		tti_gpu_memory_free(&memory->base);
		return status;
	}
	*out = &memory->base;
	return TUTTI_OK;
}
