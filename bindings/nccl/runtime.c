/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA runtime that the process has: Tutti's on host memory, NVIDIA's, or none. */
#include "binding.h"

#include <dlfcn.h>
#include <stdatomic.h>

typedef int (*get_device_fn)(int *device);
typedef int (*set_device_fn)(int device);
typedef int (*record_fn)(cudaEvent_t event, cudaStream_t stream);
typedef int (*is_capturing_fn)(cudaStream_t stream, int *status);

/* What Tutti's CUDA runtime on host memory has and NVIDIA's does not. */
typedef int (*capture_fn)(void *stream, int (*launch)(void *arg, void *stream),
			  void (*drop)(void *arg), void *arg);
typedef int (*is_guarded_fn)(void);
typedef void *(*reach_fn)(const void *address);
typedef int (*adopt_fn)(void *memory, size_t nbytes);
typedef int (*disown_fn)(void *memory);
typedef int (*hold_fn)(int error, const char *why, int (*is_over)(void *arg), void *arg);

/* Found once, and kept. */
static struct {
	_Atomic(tti_nccl_launch_fn) launch;
	_Atomic(get_device_fn) get_device;
	_Atomic(set_device_fn) set_device;
	_Atomic(record_fn) record;
	_Atomic(is_capturing_fn) is_capturing;
	_Atomic(capture_fn) capture;
	_Atomic(reach_fn) reach; /* NULL: addresses are what they seem */
	_Atomic(adopt_fn) adopt;
	_Atomic(disown_fn) disown;
	_Atomic(hold_fn) hold; /* NULL: the runtime is not Tutti's */
} runtime;

/* The number of cudaErrorLaunchFailure. */
#define LAUNCH_FAILURE 719

/* Look for a symbol as the library that loaded this one sees it, or in a runtime that is loaded,
 * but hidden, as one that Python loads is. */
void *tti_nccl_find_symbol(const char *name)
{
	static const char *const sonames[] = { "libcudart.so.13", "libcudart.so.12",
					       "libcudart.so.11.0", "libtutti_cudahost.so" };
	void *symbol = dlsym(RTLD_DEFAULT, name);

	for (size_t at = 0; !symbol && at < sizeof(sonames) / sizeof(sonames[0]); at++) {
		void *library = dlopen(sonames[at], RTLD_LAZY | RTLD_NOLOAD);

		if (!library)
			continue;
		symbol = dlsym(library, name);
		(void)dlclose(library); /* the program has it still */
	}
	return symbol;
}

tti_nccl_launch_fn tti_nccl_launch(void)
{
	return atomic_load(&runtime.launch);
}

/* The others first: a thread that sees `launch` sees all of them. */
static tti_nccl_launch_fn find_launch(void)
{
	tti_nccl_launch_fn launch = tti_nccl_launch();
	is_guarded_fn is_guarded;

	if (launch)
		return launch;
	launch = (tti_nccl_launch_fn)tti_nccl_find_symbol("cudaLaunchHostFunc");
	if (!launch)
		return NULL;
	atomic_store(&runtime.get_device, (get_device_fn)tti_nccl_find_symbol("cudaGetDevice"));
	atomic_store(&runtime.set_device, (set_device_fn)tti_nccl_find_symbol("cudaSetDevice"));
	atomic_store(&runtime.record, (record_fn)tti_nccl_find_symbol("cudaEventRecord"));
	atomic_store(&runtime.is_capturing,
		     (is_capturing_fn)tti_nccl_find_symbol("cudaStreamIsCapturing"));
	atomic_store(&runtime.capture,
		     (capture_fn)tti_nccl_find_symbol("tti_cuda_capture_launcher"));
	atomic_store(&runtime.adopt, (adopt_fn)tti_nccl_find_symbol("tti_cuda_memory_adopt"));
	atomic_store(&runtime.disown,
		     (disown_fn)tti_nccl_find_symbol("tti_cuda_memory_unregister"));
	atomic_store(&runtime.hold, (hold_fn)tti_nccl_find_symbol("tti_cuda_stream_hold"));
	is_guarded = (is_guarded_fn)tti_nccl_find_symbol("tti_cuda_memory_is_guarded");
	if (is_guarded && is_guarded())
		atomic_store(&runtime.reach,
			     (reach_fn)tti_nccl_find_symbol("tti_cuda_memory_reach"));
	atomic_store(&runtime.launch, launch);
	return launch;
}

bool tti_nccl_find_runtime(void)
{
	return find_launch() != NULL;
}

bool tti_nccl_has_runtime(void)
{
	return tti_nccl_launch() != NULL;
}

int tti_nccl_current_device(void)
{
	const get_device_fn get = find_launch() ? atomic_load(&runtime.get_device) : NULL;
	int device = 0;

	if (!tti_nccl_launch())
		return tti_nccl_context_device();
	return get && get(&device) == 0 ? device : 0;
}

bool tti_nccl_has_gpus(void)
{
	return tti_nccl_launch() && !atomic_load(&runtime.hold);
}

/* The default stream of a device is never captured, that of a thread may be. */
bool tti_nccl_is_captured(cudaStream_t stream)
{
	const is_capturing_fn is_capturing = stream && stream != TTI_NCCL_LEGACY && find_launch()
						     ? atomic_load(&runtime.is_capturing)
						     : NULL;
	int status = 0;

	return is_capturing && is_capturing(stream, &status) == 0 && status == 1;
}

int tti_nccl_capture(cudaStream_t stream, int (*launch)(void *arg, void *stream),
		     void (*drop)(void *arg), void *arg)
{
	const capture_fn capture = find_launch() ? atomic_load(&runtime.capture) : NULL;

	if (capture)
		return capture(stream, launch, drop, arg);
	drop(arg);
	return -1;
}

bool tti_nccl_can_hold(void)
{
	return tti_nccl_launch() && atomic_load(&runtime.hold);
}

void tti_nccl_hold(const char *why, int (*is_over)(void *arg), void *arg)
{
	(void)atomic_load (&runtime.hold)(LAUNCH_FAILURE, why, is_over, arg);
}

void *tti_nccl_reach(const void *address)
{
	const reach_fn reach = tti_nccl_launch() ? atomic_load(&runtime.reach) : NULL;

	return reach ? reach(address) : (void *)(uintptr_t)address;
}

int tti_nccl_runtime_adopt(void *memory, size_t nbytes)
{
	const adopt_fn adopt = find_launch() ? atomic_load(&runtime.adopt) : NULL;

	return adopt ? adopt(memory, nbytes) : 0;
}

/* The runtime does not know memory that was allocated before it was loaded. */
void tti_nccl_runtime_disown(void *memory)
{
	const disown_fn disown = tti_nccl_launch() ? atomic_load(&runtime.disown) : NULL;

	if (disown)
		(void)disown(memory);
}

int tti_nccl_device_enter(int device)
{
	const set_device_fn set = atomic_load(&runtime.set_device);
	const int before = tti_nccl_current_device();

	if (set && before != device)
		(void)set(device);
	return before;
}

void tti_nccl_device_leave(int device, int before)
{
	const set_device_fn set = atomic_load(&runtime.set_device);

	if (set && before != device)
		(void)set(before);
}

ncclResult_t tti_nccl_event_record(cudaEvent_t event, cudaStream_t stream, ncclComm_t comm)
{
	const record_fn record = tti_nccl_launch() ? atomic_load(&runtime.record) : NULL;
	int before, error;

	if (!tti_nccl_launch() && comm->has_kernels) {
		error = tti_nccl_driver_record(event, stream);
		return error ? tti_nccl_fail(comm, ncclUnhandledCudaError,
					     "cuEventRecord() gave error %d", error)
			     : ncclSuccess;
	}
	if (!record)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "the CUDA runtime of this process has no cudaEventRecord()");
	before = tti_nccl_device_enter(comm->device);
	error = record(event, stream);
	tti_nccl_device_leave(comm->device, before);
	if (error)
		return tti_nccl_fail(comm, ncclUnhandledCudaError,
				     "cudaEventRecord() gave error %d", error);
	return ncclSuccess;
}
