/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory: of devices, of the host, of other processes. */
#include <string.h>

#include "engine/drain.h"
#include "runtime/runtime.h"

#define PITCH 512u /* rows begin at a multiple of it */

/* -- Allocations -------------------------------------------------------------------------- */

int tti_cudaMalloc(void **out, size_t nbytes)
{
	if (!out)
		return tti_cudart_null("cudaMalloc", "place for the address");
	return tti_cuda_memory_alloc(nbytes, out);
}

/* What is queued may use the memory still. */
static int drain(const void *address)
{
	struct tti_cuda_range range;

	return tti_cuda_memory_find(address, &range) ? tti_cuda_device_drain(range.device) : 0;
}

int tti_cudaFree(void *address)
{
	const int error = drain(address);

	return error ? error : tti_cuda_memory_free(address);
}

int tti_cudaFreeHost(void *address)
{
	const int error = drain(address);

	return error ? error : tti_cuda_memory_free_host(address);
}

/* Portable 1, mapped 2, write-combined 4. */
int tti_cudaHostAlloc(void **out, size_t nbytes, unsigned flags)
{
	if (!out)
		return tti_cudart_null("cudaHostAlloc", "place for the address");
	if (flags & ~7u)
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"cudaHostAlloc(): %#x has flags that are not there: pass those "
			"of cudaHostAllocDefault and the like",
			flags);
	return tti_cuda_memory_alloc_host(nbytes, flags, TTI_CUDA_HOST, out);
}

int tti_cudaMallocHost(void **out, size_t nbytes)
{
	return tti_cudaHostAlloc(out, nbytes, 0);
}

int tti_cudaMallocManaged(void **out, size_t nbytes, unsigned flags)
{
	if (!out)
		return tti_cudart_null("cudaMallocManaged", "place for the address");
	if (flags != 1 && flags != 2)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaMallocManaged(): flags are %#x: pass cudaMemAttachGlobal "
				     "or cudaMemAttachHost",
				     flags);
	return tti_cuda_memory_alloc_host(nbytes, flags, TTI_CUDA_MANAGED, out);
}

/* The bytes of rows of layers; false: more than there can be. */
static bool pitched_bytes(size_t width, size_t height, size_t depth, size_t *pitch, size_t *nbytes)
{
	if (__builtin_add_overflow(width, PITCH - 1, pitch))
		return false;
	*pitch = *pitch / PITCH * PITCH;
	return !__builtin_mul_overflow(*pitch, height, nbytes) &&
	       !__builtin_mul_overflow(*nbytes, depth, nbytes);
}

static int alloc_pitched(const char *function, void **out, size_t *pitch, size_t width,
			 size_t height, size_t depth)
{
	size_t nbytes;

	if (!out || !pitch)
		return tti_cudart_null(function, "place for the address or the pitch");
	if (!pitched_bytes(width, height, depth, pitch, &nbytes))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s(): %zu x %zu x %zu bytes are more than there can be",
				     function, width, height, depth);
	return tti_cuda_memory_alloc(nbytes, out);
}

int tti_cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
	return alloc_pitched("cudaMallocPitch", out, pitch, width, height, 1);
}

int tti_cudaMalloc3D(struct tti_cu_pitched *out, struct tti_cu_extent extent)
{
	if (!out)
		return tti_cudart_null("cudaMalloc3D", "place for the address");
	out->xsize = extent.width;
	out->ysize = extent.height;
	return alloc_pitched("cudaMalloc3D", &out->ptr, &out->pitch, extent.width, extent.height,
			     extent.depth);
}

/* -- Memory of the program ---------------------------------------------------------------- */

/* Portable 1, mapped 2, of a device 4, read only 8. */
int tti_cudaHostRegister(void *address, size_t nbytes, unsigned flags)
{
	if (flags & ~15u)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaHostRegister(): %#x has flags that are not there: pass "
				     "those of cudaHostRegisterDefault and the like",
				     flags);
	return tti_cuda_memory_register(address, nbytes, flags);
}

int tti_cudaHostUnregister(void *address)
{
	const int error = drain(address);

	return error ? error : tti_cuda_memory_unregister(address);
}

static int find_host(const char *function, const void *address, struct tti_cuda_range *out)
{
	if (tti_cuda_memory_find(address, out) &&
	    (out->type == TTI_CUDA_HOST || out->type == TTI_CUDA_MANAGED))
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s(): %p is not host memory that CUDA knows: use cudaHostAlloc() or "
			     "cudaHostRegister()",
			     function, address);
}

int tti_cudaHostGetDevicePointer(void **out, void *address, unsigned flags)
{
	struct tti_cuda_range range;

	if (!out)
		return tti_cudart_null("cudaHostGetDevicePointer", "place for the address");
	if (flags)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaHostGetDevicePointer(): flags are %#x: pass 0", flags);
	*out = address;
	return find_host("cudaHostGetDevicePointer", address, &range);
}

int tti_cudaHostGetFlags(unsigned *out, void *address)
{
	struct tti_cuda_range range = { .type = TTI_CUDA_UNREGISTERED };
	int error;

	if (!out)
		return tti_cudart_null("cudaHostGetFlags", "place for the flags");
	error = find_host("cudaHostGetFlags", address, &range);
	if (!error)
		*out = range.flags;
	return error;
}

/* -- Whose it is -------------------------------------------------------------------------- */

int tti_cudaPointerGetAttributes(struct tti_cu_pointer_attributes *out, const void *address)
{
	struct tti_cu_pointer_attributes found = { .type = TTI_CUDA_UNREGISTERED, .device = -2 };
	struct tti_cuda_range range;

	if (!out)
		return tti_cudart_null("cudaPointerGetAttributes", "place for the attributes");
	if (tti_cuda_memory_find(address, &range)) {
		found.type = (int)range.type;
		found.device = range.device;
		found.device_pointer = (void *)(uintptr_t)address;
		if (range.type != TTI_CUDA_DEVICE)
			found.host_pointer = (void *)(uintptr_t)address;
	} else {
		found.host_pointer = (void *)(uintptr_t)address;
	}
	memcpy(out, &found, TTI_CUDART_MAJOR == 12 ? TTI_CU_POINTER_ATTRIBUTES_12 : sizeof(found));
	return 0;
}

int tti_cudaMemGetInfo(size_t *out_free, size_t *out_total)
{
	size_t left, total;

	tti_cuda_memory_info(&left, &total);
	if (out_free)
		*out_free = left;
	if (out_total)
		*out_total = total;
	return tti_cudart_check_device("cudaMemGetInfo", tti_cuda_device_current());
}

/* -- Other processes ---------------------------------------------------------------------- */

int tti_cudaIpcGetMemHandle(struct tti_cu_ipc_handle *out, void *address)
{
	if (!out)
		return tti_cudart_null("cudaIpcGetMemHandle", "place for the handle");
	return tti_cuda_memory_get_handle(address, out->bytes);
}

int tti_cudaIpcOpenMemHandle(void **out, struct tti_cu_ipc_handle handle, unsigned flags)
{
	if (!out)
		return tti_cudart_null("cudaIpcOpenMemHandle", "place for the address");
	if (flags != 1) /* cudaIpcMemLazyEnablePeerAccess */
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaIpcOpenMemHandle(): flags are %#x: pass "
				     "cudaIpcMemLazyEnablePeerAccess",
				     flags);
	return tti_cuda_memory_open_handle(handle.bytes, out);
}

int tti_cudaIpcCloseMemHandle(void *address)
{
	const int error = drain(address);

	return error ? error : tti_cuda_memory_close_handle(address);
}

/* -- Advice ------------------------------------------------------------------------------- */

static int check_managed(const char *function, const void *address, size_t nbytes)
{
	struct tti_cuda_range range;

	if (!tti_cuda_memory_find(address, &range) || range.type != TTI_CUDA_MANAGED)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s(): %p is not managed memory: use cudaMallocManaged()",
				     function, address);
	if (nbytes == 0)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): 0 bytes: pass one or more", function);
	return tti_cuda_memory_check(address, nbytes);
}

/* A device, or the host: -1 in CUDA 12. */
static int check_location(const char *function, struct tti_cu_location at)
{
	if (at.type == TTI_CU_AT_DEVICE)
		return tti_cudart_check_device(function, at.id);
	if (at.type >= TTI_CU_AT_HOST && at.type <= TTI_CU_AT_NUMA_CURRENT)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s(): there is no location of type %d: pass a device or the host",
			     function, at.type);
}

static int advise(const void *address, size_t nbytes, int advice, struct tti_cu_location at)
{
	if (advice < 1 || advice > 6)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaMemAdvise(): there is no advice %d: 1 to 6", advice);
	/* No location: it is not read for being read mostly, or for taking a location back. */
	if (advice == 3 || advice == 5 || advice == 6) {
		const int error = check_location("cudaMemAdvise", at);

		if (error)
			return error == TTI_CUDA_EDEVICE ? TTI_CUDA_EINVAL : error;
	}
	return check_managed("cudaMemAdvise", address, nbytes);
}

static int prefetch(bool per_thread, const void *address, size_t nbytes, struct tti_cu_location at,
		    unsigned flags, const void *stream)
{
	int error = check_location("cudaMemPrefetchAsync", at);

	if (!error && flags)
		error = tti_cuda_fail(TTI_CUDA_EINVAL, "cudaMemPrefetchAsync(): flags %#x: pass 0",
				      flags);
	if (!error)
		error = check_managed("cudaMemPrefetchAsync", address, nbytes);
	if (!error)
		(void)tti_cuda_stream_get(stream, per_thread, &error);
	return error;
}

#if TTI_CUDART_MAJOR == 12
static struct tti_cu_location location_of(int device)
{
	if (device == -1)
		return (struct tti_cu_location){ TTI_CU_AT_HOST, 0 };
	return (struct tti_cu_location){ TTI_CU_AT_DEVICE, device };
}

int tti_cudaMemAdvise(const void *address, size_t nbytes, int advice, int device)
{
	return advise(address, nbytes, advice, location_of(device));
}

int tti_cudaMemAdvise_v2(const void *address, size_t nbytes, int advice, struct tti_cu_location at)
{
	return advise(address, nbytes, advice, at);
}

int tti_cudaMemPrefetchAsync(bool per_thread, const void *address, size_t nbytes, int device,
			     tti_cu_stream stream)
{
	return prefetch(per_thread, address, nbytes, location_of(device), 0, stream);
}

int tti_cudaMemPrefetchAsync_v2(bool per_thread, const void *address, size_t nbytes,
				struct tti_cu_location at, unsigned flags, tti_cu_stream stream)
{
	return prefetch(per_thread, address, nbytes, at, flags, stream);
}
#else
int tti_cudaMemAdvise(const void *address, size_t nbytes, int advice, struct tti_cu_location at)
{
	return advise(address, nbytes, advice, at);
}

int tti_cudaMemPrefetchAsync(bool per_thread, const void *address, size_t nbytes,
			     struct tti_cu_location at, unsigned flags, tti_cu_stream stream)
{
	return prefetch(per_thread, address, nbytes, at, flags, stream);
}
#endif

/* Read mostly 0; no preferred location, nobody's access, no last prefetch: -2. */
int tti_cudaMemRangeGetAttribute(void *out, size_t nbytes, int attribute, const void *address,
				 size_t count)
{
	const int none = attribute == 1 ? 0 : -2;

	if (!out || nbytes < sizeof(int) || nbytes % sizeof(int))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaMemRangeGetAttribute(): %zu bytes at %p: pass a multiple "
				     "of 4",
				     nbytes, out);
	if (attribute < 1 || attribute > 8)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaMemRangeGetAttribute(): there is no attribute %d: 1 to 8",
				     attribute);
	for (size_t at = 0; at < nbytes / sizeof(int); at++)
		memcpy((char *)out + at * sizeof(int), &none, sizeof(none));
	return check_managed("cudaMemRangeGetAttribute", address, count);
}

int tti_cudaMemRangeGetAttributes(void **out, size_t *nbytes, int *attributes, size_t n,
				  const void *address, size_t count)
{
	if (!out || !nbytes || !attributes)
		return tti_cudart_null("cudaMemRangeGetAttributes", "list");
	for (size_t at = 0; at < n; at++) {
		const int error = tti_cudaMemRangeGetAttribute(out[at], nbytes[at], attributes[at],
							       address, count);

		if (error)
			return error;
	}
	return 0;
}
