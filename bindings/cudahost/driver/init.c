/* SPDX-License-Identifier: BSD-3-Clause */
#include "driver/driver.h"
#include "engine/facts.h"
#include "engine/kernel.h"
#include "engine/primary.h"

CUresult cuInit(unsigned flags)
{
	if (flags)
		return tti_driver_fail(TTI_CUDA_EINVAL, "cuInit(%u): the flags are 0", flags);
	const int rc = tti_cuda_begin();

	if (rc)
		return tti_driver_result(rc);
	if (!tti_cuda_device_count())
		return tti_driver_fail(TTI_CUDA_ENODEVICE, "cuInit: there is no device; "
							   "TUTTI_CUDAHOST_GPUS says how many");
	tti_cuda_initialize();
	return CUDA_SUCCESS;
}

int tti_driver_begin(void)
{
	const int bad = tti_cuda_host_may_call("a function of the driver");

	return bad ? bad : tti_driver_begin_in_host();
}

int tti_driver_begin_in_host(void)
{
	if (!tti_cuda_is_initialized())
		return tti_cuda_fail(CUDA_ERROR_NOT_INITIALIZED, "cuInit(0) comes first");
	return tti_cuda_begin();
}

int tti_driver_need(const void *out, const char *what)
{
	if (out)
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s: an address that is to be read or written is NULL", what);
}

CUresult cuDriverGetVersion(int *out)
{
	const int bad = tti_driver_need(out, __func__);

	if (!bad)
		*out = TTI_CUDA_RELEASE;
	return tti_driver_result(bad);
}

/* NULL: there is no such number. */
static const char *name_or_text(CUresult error, bool is_name)
{
	switch ((int)error) {
#define ERROR(name, value, text) \
	case value:              \
		return is_name ? #name : text;
#include "driver/errors.def"
#undef ERROR
	default:
		return NULL;
	}
}

static CUresult tell(CUresult error, const char **out, bool is_name)
{
	const int bad = tti_driver_need(out, "cuGetErrorName or cuGetErrorString");

	if (bad)
		return tti_driver_result(bad);
	if (error == CUDA_ERROR_NO_BINARY_FOR_GPU)
		tti_cuda_kernel_seen();
	*out = name_or_text(error, is_name);
	if (*out)
		return CUDA_SUCCESS;
	return tti_driver_fail(TTI_CUDA_EINVAL, "error %d: there is no such error", (int)error);
}

CUresult cuGetErrorName(CUresult error, const char **out)
{
	return tell(error, out, true);
}

CUresult cuGetErrorString(CUresult error, const char **out)
{
	return tell(error, out, false);
}

/* No profiler watches, as where CUDA's tools are not in use: nothing begins and nothing ends. */
CUresult cuProfilerStart(void)
{
	return tti_driver_result(tti_driver_begin_context(NULL));
}

CUresult cuProfilerStop(void)
{
	return tti_driver_result(tti_driver_begin_context(NULL));
}
