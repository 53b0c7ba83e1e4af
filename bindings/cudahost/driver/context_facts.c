/* SPDX-License-Identifier: BSD-3-Clause */
/* What contexts say of themselves, and what can be set for them. */
#include <stdatomic.h>

#include "driver/driver.h"
#include "engine/facts.h"
#include "engine/primary.h"
#include "engine/stream.h"

#define API_VERSION 3020 /* of contexts; CUDA has told this one since release 3.2 */

/* The current context's device, and room for the answer. */
static int begin(const void *out, const char *what)
{
	const int bad = tti_driver_begin_context(NULL);

	return bad ? bad : tti_driver_need(out, what);
}

CUresult cuCtxGetDevice(CUdevice *out)
{
	const int bad = begin(out, __func__);

	if (!bad)
		*out = tti_cuda_device_current();
	return tti_driver_result(bad);
}

/* NULL is the current context. */
static int find(CUcontext context, int *out)
{
	int bad = tti_driver_begin();

	if (bad)
		return bad;
	if (context)
		return tti_driver_device_of(context, out);
	bad = tti_driver_begin_context(NULL);
	if (!bad)
		*out = tti_cuda_device_current();
	return bad;
}

CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext context)
{
	const int bad = tti_driver_need(out, __func__);

	return tti_driver_result(bad ? bad : find(context, out));
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *out)
{
	int device, bad = tti_driver_need(out, __func__);

	if (!bad)
		bad = find(context, &device);
	if (!bad)
		*out = API_VERSION;
	return tti_driver_result(bad);
}

CUresult cuCtxSynchronize(void)
{
	const int bad = tti_driver_begin_context(NULL);

	return tti_driver_result(bad ? bad
				     : tti_cuda_device_synchronize(tti_cuda_device_current()));
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	int device;
	const int bad = find(context, &device);

	return tti_driver_result(bad ? bad : tti_cuda_device_synchronize(device));
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	const int bad = tti_driver_begin_context(NULL);

	if (bad)
		return tti_driver_result(bad);
	if (least)
		*least = TTI_CUDA_PRIORITY_LEAST;
	if (greatest)
		*greatest = TTI_CUDA_PRIORITY_GREATEST;
	return CUDA_SUCCESS;
}

/* -- Settings of kernels, which are kept and tell nothing ---------------------------------- */

static int check_limit(CUlimit limit)
{
	if ((unsigned)limit < CU_LIMIT_MAX)
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "limit %d: CUDA has 0 to %d", (int)limit,
			     (int)CU_LIMIT_MAX - 1);
}

CUresult cuCtxGetLimit(size_t *out, CUlimit limit)
{
	int bad = begin(out, __func__);

	if (!bad)
		bad = check_limit(limit);
	if (!bad)
		bad = tti_cuda_limit_get(tti_cuda_device_current(), (int)limit, out);
	return tti_driver_result(bad);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t nbytes)
{
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = check_limit(limit);
	if (!bad)
		bad = tti_cuda_capture_forbids(__func__);
	if (!bad)
		bad = tti_cuda_limit_set(tti_cuda_device_current(), (int)limit, nbytes);
	return tti_driver_result(bad);
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *out)
{
	const int bad = begin(out, __func__);

	if (!bad)
		*out = CU_FUNC_CACHE_PREFER_NONE;
	return tti_driver_result(bad);
}

/* What is preferred is a wish, which a device may leave unheard. */
CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	const int bad = tti_driver_begin_context(NULL);

	if (bad || (unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL)
		return tti_driver_result(bad);
	return tti_driver_fail(TTI_CUDA_EINVAL, "cuCtxSetCacheConfig(%d): there are 0..3",
			       (int)config);
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *out)
{
	const int bad = begin(out, __func__);

	if (!bad)
		*out = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return tti_driver_result(bad);
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	const int bad = tti_driver_begin_context(NULL);

	if (bad || (unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return tti_driver_result(bad);
	return tti_driver_fail(TTI_CUDA_EINVAL, "cuCtxSetSharedMemConfig(%d): there are 0..2",
			       (int)config);
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	return tti_driver_result(tti_driver_begin_context(NULL)); /* nothing persists there */
}

/* -- Peers --------------------------------------------------------------------------------- */

static int find_peer(CUcontext context, int *out)
{
	const int bad = tti_driver_begin_context(NULL);

	return bad ? bad : tti_driver_device_of(context, out);
}

CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned flags)
{
	int peer;
	const int bad = find_peer(context, &peer);

	if (bad)
		return tti_driver_result(bad);
	if (flags)
		return tti_driver_fail(TTI_CUDA_EINVAL, "cuCtxEnablePeerAccess: flags %u, not 0",
				       flags);
	return tti_driver_result(tti_cuda_primary_allow_peer(tti_cuda_device_current(), peer));
}

CUresult cuCtxDisablePeerAccess(CUcontext context)
{
	int peer;
	const int bad = find_peer(context, &peer);

	return tti_driver_result(
		bad ? bad : tti_cuda_primary_forbid_peer(tti_cuda_device_current(), peer));
}
