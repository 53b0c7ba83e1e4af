/* SPDX-License-Identifier: BSD-3-Clause */
/* The exported functions. Each checks that it may be called, and keeps the error of its body. */
#include "engine/kernel.h"
#include "engine/primary.h"
#include "runtime/runtime.h"

static _Thread_local int last_error;

/* -- Errors ------------------------------------------------------------------------------- */

/* That something is not ready yet is an answer, and no error. */
int tti_cudart_leave(int error)
{
	if (error && error != TTI_CUDA_ENOTREADY)
		last_error = error;
	return error;
}

int tti_cudart_enter(const char *name)
{
	const int denied = tti_cuda_host_may_call(name);

	if (!denied && !tti_cuda_primary_in_use())
		tti_cuda_primary_use();
	return denied;
}

static int enter_waiting(const char *name)
{
	const int error = tti_cudart_enter(name);

	return error ? error : tti_cuda_capture_forbids(name);
}

int tti_cudart_null(const char *function, const char *what)
{
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): the %s is NULL: pass an address", function,
			     what);
}

int tti_cudart_check_device(const char *function, int device)
{
	const int n = tti_cuda_device_count();

	if (n == 0)
		return tti_cuda_fail(TTI_CUDA_ENODEVICE,
				     "%s(): there is no device: set TUTTI_CUDAHOST_GPUS to how "
				     "many there should be",
				     function);
	if (device < 0 || device >= n)
		return tti_cuda_fail(TTI_CUDA_EDEVICE,
				     "%s(): there is no device %d, they are 0 to %d: set "
				     "TUTTI_CUDAHOST_GPUS for more",
				     function, device, n - 1);
	return 0;
}

int cudaPeekAtLastError(void)
{
	if (last_error)
		tti_cuda_kernel_seen();
	return last_error;
}

int cudaGetLastError(void)
{
	const int error = last_error;

	if (error)
		tti_cuda_kernel_seen();
	last_error = 0;
	return error;
}

static int refuse(const char *name, const char *remedy)
{
	return tti_cudart_leave(tti_cuda_fail(
		TTI_CUDA_ENOTSUPPORTED, "%s() is not there on host memory: %s", name, remedy));
}

/* -- Functions ---------------------------------------------------------------------------- */

#define BODY(enter, name, call)                                  \
	{                                                        \
		const int denied = enter(name);                  \
		return tti_cudart_leave(denied ? denied : call); \
	}

/* What a host function may call is let in. */
static int let_in(const char *name)
{
	(void)name;
	return 0;
}

static int enter_asking(const char *name)
{
	tti_cuda_initialize();
	return tti_cuda_host_may_call(name);
}

#define FUNCTION(enter, name, majors, params, args) \
	majors(int name params BODY(enter, #name, tti_##name args))
#define TWICE(enter, name, suffix, majors, params, args)                                        \
	majors(int name params BODY(enter, #name,                                               \
				    tti_##name(false, TTI_UNPACK args)) int name##suffix params \
		       BODY(enter, #name #suffix, tti_##name(true, TTI_UNPACK args)))

#define SAFE(name, majors, params, args, text) FUNCTION(let_in, name, majors, params, args)
#define ASKS(name, majors, params, args, text) FUNCTION(enter_asking, name, majors, params, args)
#define CALL(name, majors, params, args, text) \
	FUNCTION(tti_cudart_enter, name, majors, params, args)
#define WAITS(name, majors, params, args, text) FUNCTION(enter_waiting, name, majors, params, args)
#define QUEUED(name, suffix, majors, params, args, text) \
	TWICE(tti_cudart_enter, name, suffix, majors, params, args)
#define PLAIN(name, majors, result, params, text)
#define REFUSED(name, majors, remedy) majors(int name(void) { return refuse(#name, remedy); })
#define REFUSED_QUEUED(name, suffix, majors, remedy) \
	REFUSED(name, majors, remedy) REFUSED(name##suffix, majors, remedy)
#include "runtime/functions.def"
