/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is allocated, and host memory that CUDA is told of. */
#include "engine/memory.h"

#include <string.h>

#include "driver/driver.h"
#include "engine/drain.h"

#define PITCH_ALIGNMENT 512 /* of rows, as devices have it */

/* The thread has a context, nothing is captured, and there is room for the answer. */
static int begin(const void *out, const char *what)
{
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_need(out, what);
	return bad ? bad : tti_cuda_capture_forbids(what);
}

CUresult cuMemGetInfo_v2(size_t *out_free, size_t *out_total)
{
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_need(out_free, __func__);
	if (!bad)
		bad = tti_driver_need(out_total, __func__);
	if (!bad)
		tti_cuda_memory_info(out_free, out_total);
	return tti_driver_result(bad);
}

static int alloc(size_t nbytes, CUdeviceptr *out)
{
	void *address;

	if (!nbytes)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "an allocation of 0 bytes");
	const int rc = tti_cuda_memory_alloc(nbytes, &address);

	if (!rc)
		*out = tti_driver_pointer(address);
	return rc;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t nbytes)
{
	const int bad = begin(out, __func__);

	return tti_driver_result(bad ? bad : alloc(nbytes, out));
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *out_pitch, size_t width, size_t height,
			    unsigned element)
{
	size_t pitch, nbytes;
	int bad = begin(out, __func__);

	if (!bad)
		bad = tti_driver_need(out_pitch, __func__);
	if (bad)
		return tti_driver_result(bad);
	if (element != 4 && element != 8 && element != 16)
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuMemAllocPitch: elements of %u bytes: 4, 8 or 16",
				       element);
	if (__builtin_add_overflow(width, PITCH_ALIGNMENT - 1, &pitch))
		return tti_driver_fail(TTI_CUDA_EINVAL, "cuMemAllocPitch: rows of %zu bytes",
				       width);
	pitch -= pitch % PITCH_ALIGNMENT;
	if (__builtin_mul_overflow(pitch, height, &nbytes))
		return tti_driver_fail(TTI_CUDA_EINVAL, "cuMemAllocPitch: %zu rows of %zu bytes",
				       height, pitch);
	const int rc = alloc(nbytes, out);

	if (!rc)
		*out_pitch = pitch;
	return tti_driver_result(rc);
}

/* Jobs that are queued on the device may use the memory: they run first. What they failed with is
 * told where it is waited for. */
static void let_device_finish(const void *address)
{
	struct tti_cuda_range range;

	if (tti_cuda_memory_find(address, &range))
		(void)tti_cuda_device_drain(range.device);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	void *address = tti_driver_address(pointer);
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_cuda_capture_forbids(__func__);
	if (bad || !pointer)
		return tti_driver_result(bad);
	let_device_finish(address);
	return tti_driver_result(tti_cuda_memory_free(address));
}

CUresult cuMemHostAlloc(void **out, size_t nbytes, unsigned flags)
{
	int bad = begin(out, __func__);

	if (bad)
		return tti_driver_result(bad);
	if (flags & ~7u)
		return tti_driver_fail(TTI_CUDA_EINVAL, "cuMemHostAlloc: flags 0x%x, there are 7",
				       flags);
	return tti_driver_result(tti_cuda_memory_alloc_host(nbytes, flags, TTI_CUDA_HOST, out));
}

CUresult cuMemAllocHost_v2(void **out, size_t nbytes)
{
	return cuMemHostAlloc(out, nbytes, 0);
}

CUresult cuMemFreeHost(void *address)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_cuda_capture_forbids(__func__);
	if (bad)
		return tti_driver_result(bad);
	let_device_finish(address);
	return tti_driver_result(tti_cuda_memory_free_host(address));
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t nbytes, unsigned flags)
{
	void *address;
	int bad = begin(out, __func__);

	if (bad)
		return tti_driver_result(bad);
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuMemAllocManaged: flags %u: 1 (global) or 2 (host)",
				       flags);
	if (!nbytes)
		return tti_driver_fail(TTI_CUDA_EINVAL, "cuMemAllocManaged: 0 bytes");
	bad = tti_cuda_memory_alloc_host(nbytes, flags, TTI_CUDA_MANAGED, &address);
	if (!bad)
		*out = tti_driver_pointer(address);
	return tti_driver_result(bad);
}

CUresult cuMemHostRegister_v2(void *address, size_t nbytes, unsigned flags)
{
	const int bad = begin(address, __func__);

	return tti_driver_result(bad ? bad : tti_cuda_memory_register(address, nbytes, flags));
}

CUresult cuMemHostRegister(void *address, size_t nbytes, unsigned flags)
{
	return cuMemHostRegister_v2(address, nbytes, flags);
}

CUresult cuMemHostUnregister(void *address)
{
	const int bad = begin(address, __func__);

	if (bad)
		return tti_driver_result(bad);
	let_device_finish(address);
	return tti_driver_result(tti_cuda_memory_unregister(address));
}

/* Host memory that CUDA knows. */
static int find_host(const void *address, const char *what, struct tti_cuda_range *out)
{
	const int bad = tti_driver_begin_context(NULL);

	if (bad)
		return bad;
	if (tti_cuda_memory_find(address, out) && out->type != TTI_CUDA_DEVICE)
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s: %p is no host memory of cuMemHostAlloc() or cuMemHostRegister()",
			     what, address);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *address, unsigned flags)
{
	struct tti_cuda_range range;
	int bad = tti_driver_need(out, __func__);

	if (!bad)
		bad = find_host(address, __func__, &range);
	if (bad)
		return tti_driver_result(bad);
	if (flags)
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuMemHostGetDevicePointer: flags %u, not 0", flags);
	*out = tti_driver_pointer(address);
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *out, void *address)
{
	struct tti_cuda_range range;
	int bad = tti_driver_need(out, __func__);

	if (!bad)
		bad = find_host(address, __func__, &range);
	if (!bad)
		*out = range.flags;
	return tti_driver_result(bad);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *out_base, size_t *out_nbytes, CUdeviceptr pointer)
{
	struct tti_cuda_range range;
	const int bad = tti_driver_begin_context(NULL);

	if (bad)
		return tti_driver_result(bad);
	if (!tti_cuda_memory_find(tti_driver_address(pointer), &range))
		return tti_driver_fail(CUDA_ERROR_NOT_FOUND,
				       "cuMemGetAddressRange: %p is no memory that CUDA knows",
				       tti_driver_address(pointer));
	if (out_base)
		*out_base = tti_driver_pointer(range.base);
	if (out_nbytes)
		*out_nbytes = range.nbytes;
	return CUDA_SUCCESS;
}

/* -- Other processes ----------------------------------------------------------------------- */

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr pointer)
{
	uint8_t handle[sizeof(out->reserved)];
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = tti_cuda_memory_get_handle(tti_driver_address(pointer), handle);
	if (!bad)
		memcpy(out->reserved, handle, sizeof(handle));
	return tti_driver_result(bad);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
	void *address;
	uint8_t bytes[sizeof(handle.reserved)];
	int bad = begin(out, __func__);

	if (bad)
		return tti_driver_result(bad);
	if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuIpcOpenMemHandle: flags %u, not 1 (peer access)", flags);
	memcpy(bytes, handle.reserved, sizeof(bytes));
	bad = tti_cuda_memory_open_handle(bytes, &address);
	if (!bad)
		*out = tti_driver_pointer(address);
	return tti_driver_result(bad);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
	return cuIpcOpenMemHandle_v2(out, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	void *address = tti_driver_address(pointer);
	const int bad = begin(address, __func__);

	if (bad)
		return tti_driver_result(bad);
	let_device_finish(address);
	return tti_driver_result(tti_cuda_memory_close_handle(address));
}
