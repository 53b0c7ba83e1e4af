/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools, and memory in the order of streams. */
#include "engine/pool.h"

#include <string.h>

#include "driver/driver.h"

static struct tti_cuda_pool *pool_of(CUmemoryPool handle)
{
	return (struct tti_cuda_pool *)handle;
}

static int begin_device(CUdevice device, const void *address, const char *what)
{
	const int bad = tti_driver_begin_device(device);

	return bad ? bad : tti_driver_need(address, what);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
	const int bad = begin_device(device, out, __func__);

	if (!bad)
		*out = (CUmemoryPool)tti_cuda_pool_default(device);
	return tti_driver_result(bad);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
	const int bad = begin_device(device, out, __func__);

	if (!bad)
		*out = (CUmemoryPool)tti_cuda_pool_current(device);
	return tti_driver_result(bad);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	const int bad = begin_device(device, pool, __func__);

	return tti_driver_result(bad ? bad : tti_cuda_pool_set_current(device, pool_of(pool)));
}

/* Pools are of devices' pinned memory. */
static int check_location(const CUmemLocation *location, CUmemAllocationType type, const char *what)
{
	const int bad = tti_driver_need(location, what);

	if (bad)
		return bad;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return tti_cuda_fail(
			TTI_CUDA_ENOTSUPPORTED,
			"%s: a pool of memory of type %d at a location of type %d: pools "
			"are of devices' (1) pinned memory (1)",
			what, (int)type, (int)location->type);
	return tti_driver_begin_device(location->id);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *location,
				CUmemAllocationType type)
{
	const int bad = check_location(location, type, __func__);

	return bad ? tti_driver_result(bad) : cuDeviceGetDefaultMemPool(out, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
	const int bad = check_location(location, type, __func__);

	return bad ? tti_driver_result(bad) : cuDeviceGetMemPool(out, location->id);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	const int bad = check_location(location, type, __func__);

	return bad ? tti_driver_result(bad) : cuDeviceSetMemPool(location->id, pool);
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	struct tti_cuda_pool *pool;
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = tti_driver_need(props, __func__);
	if (!bad)
		bad = tti_cuda_capture_forbids(__func__);
	if (!bad)
		bad = check_location(&props->location, props->allocType, __func__);
	if (bad)
		return tti_driver_result(bad);
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return tti_driver_fail(
			TTI_CUDA_ENOTSUPPORTED,
			"cuMemPoolCreate: a pool for other processes (handle types 0x%x); "
			"memory of cuMemCreate() can be shared",
			(unsigned)props->handleTypes);
	bad = tti_cuda_pool_create(props->location.id, &pool);
	if (bad)
		return tti_driver_result(bad);
	if (props->maxSize)
		tti_cuda_pool_set_most(pool, props->maxSize);
	*out = (CUmemoryPool)pool;
	return CUDA_SUCCESS;
}

static int begin_pool(CUmemoryPool pool, const void *address, const char *what)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(pool, what);
	return bad ? bad : tti_driver_need(address, what);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	const int bad = begin_pool(pool, pool, __func__);

	return tti_driver_result(bad ? bad : tti_cuda_pool_destroy(pool_of(pool)));
}

/* Truths are ints, bytes are 64 bits. */
static bool is_truth(CUmemPool_attribute attribute)
{
	return attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *out)
{
	uint64_t value;
	int bad = begin_pool(pool, out, __func__);

	if (!bad)
		bad = tti_cuda_pool_get(pool_of(pool), (int)attribute, &value);
	if (bad)
		return tti_driver_result(bad);
	if (is_truth(attribute))
		memcpy(out, &(int){ value != 0 }, sizeof(int));
	else
		memcpy(out, &value, sizeof(value));
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *in)
{
	uint64_t value = 0;
	int truth, bad = begin_pool(pool, in, __func__);

	if (bad)
		return tti_driver_result(bad);
	if (is_truth(attribute)) {
		memcpy(&truth, in, sizeof(truth));
		value = truth != 0;
	} else {
		memcpy(&value, in, sizeof(value));
	}
	return tti_driver_result(tti_cuda_pool_set(pool_of(pool), (int)attribute, value));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t nbytes)
{
	int bad = begin_pool(pool, pool, __func__);

	if (!bad)
		bad = tti_cuda_capture_forbids(__func__);
	return tti_driver_result(bad ? bad : tti_cuda_pool_trim(pool_of(pool), nbytes));
}

/* All devices have access to all memory of this process. */
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *wishes, size_t nwishes)
{
	int bad = begin_pool(pool, wishes, __func__);

	for (size_t i = 0; !bad && i < nwishes; i++) {
		bad = check_location(&wishes[i].location, CU_MEM_ALLOCATION_TYPE_PINNED, __func__);
		if (!bad && wishes[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
			bad = tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
					    "cuMemPoolSetAccess: no memory is for reading alone");
		if (!bad && wishes[i].location.id == tti_cuda_pool_device(pool_of(pool)) &&
		    wishes[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			bad = tti_cuda_fail(
				TTI_CUDA_EDEVICE,
				"cuMemPoolSetAccess: a pool's own device, %d, keeps its access",
				wishes[i].location.id);
	}
	return tti_driver_result(bad);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *out, CUmemoryPool pool, CUmemLocation *location)
{
	int bad = begin_pool(pool, out, __func__);

	if (!bad)
		bad = check_location(location, CU_MEM_ALLOCATION_TYPE_PINNED, __func__);
	if (!bad)
		*out = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return tti_driver_result(bad);
}

/* -- Memory -------------------------------------------------------------------------------- */

static CUresult alloc(CUdeviceptr *out, size_t nbytes, struct tti_cuda_pool *pool, CUstream stream)
{
	struct tti_cuda_stream *in;
	void *address;
	int bad = tti_driver_stream(stream, &in);

	if (!bad)
		bad = tti_driver_need(out, "cuMemAllocAsync");
	if (!bad)
		bad = tti_cuda_pool_alloc(pool, nbytes, in, &address);
	if (!bad)
		*out = tti_driver_pointer(address);
	return tti_driver_result(bad);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t nbytes, CUstream stream)
{
	return alloc(out, nbytes, NULL, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t nbytes, CUmemoryPool pool,
				 CUstream stream)
{
	const int bad = begin_pool(pool, out, __func__);

	return bad ? tti_driver_result(bad) : alloc(out, nbytes, pool_of(pool), stream);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	struct tti_cuda_stream *in;
	const int bad = tti_driver_stream(stream, &in);

	return tti_driver_result(bad ? bad : tti_cuda_pool_free(tti_driver_address(pointer), in));
}
