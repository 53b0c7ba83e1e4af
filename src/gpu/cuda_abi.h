/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_CUDA_ABI_H
#define TTI_GPU_CUDA_ABI_H

/* The part of CUDA's driver that Tutti uses: functions, layouts and numbers as release 12.0 and all
 * later ones have them. tests/unit/gpu/test_cuda_abi.c compares them with NVIDIA's header where it
 * is installed.
 *
 * AMD's runtime (libamdhip64.so) has each of these functions under a name of its own: hipMemCreate()
 * for cuMemCreate(), hipLaunchHostFunc() for cuLaunchHostFunc() and so on, with the same parameters
 * and mostly the same numbers. What a second table would have to say otherwise:
 *   - contexts: HIP has hipSetDevice() in their place, which is of the thread, as cuCtxSetCurrent();
 *   - errors: hipErrorOutOfMemory is 2 as well, hipErrorNotReady 600 and so on, names come from
 *     hipGetErrorName();
 *   - handles of memory: file descriptors only, no fabric;
 *   - code: hipModuleLoadData() of each device for cuLibraryLoadData(), and kernels made by hipcc
 *     from the same source, since src/device/run.h keeps CUDA's own words in one header;
 *   - warps of 64 threads, which the kernels do not count on. */

#include <stddef.h>
#include <stdint.h>

typedef int tti_cuda_device;
typedef uint64_t tti_cuda_handle; /* of memory without an address */
typedef void *tti_cuda_context;
typedef void (*tti_cuda_host_fn)(void *arg);

/* What a function returns. Only numbers that something here acts on have names. */
enum {
	TTI_CUDA_SUCCESS = 0,
	TTI_CUDA_INVALID_VALUE = 1,
	TTI_CUDA_OUT_OF_MEMORY = 2,
	TTI_CUDA_NOT_INITIALIZED = 3,
	TTI_CUDA_DEINITIALIZED = 4,
	TTI_CUDA_STUB_LIBRARY = 34,
	TTI_CUDA_DEVICE_UNAVAILABLE = 46,
	TTI_CUDA_NO_DEVICE = 100,
	TTI_CUDA_INVALID_DEVICE = 101,
	TTI_CUDA_INVALID_IMAGE = 200,
	TTI_CUDA_INVALID_CONTEXT = 201,
	TTI_CUDA_MAP_FAILED = 205,
	TTI_CUDA_NO_BINARY_FOR_GPU = 209,
	TTI_CUDA_PEER_ACCESS_UNSUPPORTED = 217,
	TTI_CUDA_INVALID_PTX = 218,
	TTI_CUDA_UNSUPPORTED_PTX_VERSION = 222,
	TTI_CUDA_OPERATING_SYSTEM = 304,
	TTI_CUDA_NOT_FOUND = 500,
	TTI_CUDA_NOT_READY = 600,
	TTI_CUDA_ILLEGAL_ADDRESS = 700,
	TTI_CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
	TTI_CUDA_PEER_ACCESS_ALREADY_ENABLED = 704,
	TTI_CUDA_HOST_MEMORY_ALREADY_REGISTERED = 712,
	TTI_CUDA_LAUNCH_FAILED = 719,
	TTI_CUDA_NOT_PERMITTED = 800,
	TTI_CUDA_NOT_SUPPORTED = 801,
	TTI_CUDA_SYSTEM_NOT_READY = 802,
	TTI_CUDA_SYSTEM_DRIVER_MISMATCH = 803,
	TTI_CUDA_COMPAT_NOT_SUPPORTED = 804,
	TTI_CUDA_MPS_CONNECTION_FAILED = 805,
	TTI_CUDA_STREAM_CAPTURE_INVALIDATED = 901,
	TTI_CUDA_UNKNOWN = 999,
};

/* X(field, number): attributes of devices, all of them an int. */
#define TTI_CUDA_ATTRIBUTE_MAP(X)         \
	X(multiprocessors, 16)            \
	X(compute_mode, 20)               \
	X(threads_per_multiprocessor, 39) \
	X(capability_major, 75)           \
	X(capability_minor, 76)           \
	X(host_atomic, 86)                \
	X(concurrent_managed, 89)         \
	X(shared_per_block, 97)           \
	X(vmm, 102)                       \
	X(fd, 103)                        \
	X(vmm_rdma, 110)                  \
	X(rdma, 116)                      \
	X(dma_buf, 124)                   \
	X(fabric, 128)                    \
	X(multicast, 132)                 \
	X(mps, 133)

enum {
	TTI_CUDA_MODE_PROHIBITED = 2,
	TTI_CUDA_MODE_EXCLUSIVE = 3,
};

enum {
	TTI_CUDA_P2P_ACCESS = 2,
	TTI_CUDA_P2P_ATOMIC = 3,
};

/* -- Memory ----------------------------------------------------------------------- */

enum {
	TTI_CUDA_LOCATION_DEVICE = 1,
	TTI_CUDA_ALLOCATION_PINNED = 1,
	TTI_CUDA_HANDLE_FD = 1,
	TTI_CUDA_HANDLE_FABRIC = 8,
	TTI_CUDA_READ_WRITE = 3,
	TTI_CUDA_GRANULARITY_RECOMMENDED = 1,
};

struct tti_cuda_location {
	int type; /* TTI_CUDA_LOCATION_DEVICE */
	int id;   /* ordinal */
};

struct tti_cuda_prop {
	int type;    /* TTI_CUDA_ALLOCATION_PINNED */
	int handles; /* that it can have, or-ed */
	struct tti_cuda_location location;
	void *windows;
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
};

struct tti_cuda_allow {
	struct tti_cuda_location location;
	int access;
};

struct tti_cuda_fabric_handle {
	unsigned char data[64];
};

struct tti_cuda_ipc {
	char reserved[64];
};
enum { TTI_CUDA_IPC_PEER_ACCESS = 1 };

enum {
	TTI_CUDA_HOST_PORTABLE = 1,
	TTI_CUDA_HOST_MAPPED = 2,
};

/* Attributes of addresses. */
enum {
	TTI_CUDA_POINTER_TYPE = 2,           /* unsigned, below; 0: not known */
	TTI_CUDA_POINTER_DEVICE_ADDRESS = 3, /* uint64_t */
	TTI_CUDA_POINTER_ID = 7,             /* uint64_t */
	TTI_CUDA_POINTER_IS_MANAGED = 8,     /* unsigned */
	TTI_CUDA_POINTER_ORDINAL = 9,        /* int */
	TTI_CUDA_POINTER_HAS_IPC = 10,       /* unsigned */
	TTI_CUDA_POINTER_BASE = 11,          /* uint64_t */
	TTI_CUDA_POINTER_NBYTES = 12,        /* size_t */
	TTI_CUDA_POINTER_HANDLES = 14,       /* uint64_t: TTI_CUDA_HANDLE_FD, or-ed */
	TTI_CUDA_POINTER_MAP_NBYTES = 18,    /* size_t */
	TTI_CUDA_POINTER_MAP_BASE = 19,      /* uint64_t */

	TTI_CUDA_MEMORY_HOST = 1,
	TTI_CUDA_MEMORY_DEVICE = 2,
};

/* -- Streams, launches ------------------------------------------------------------ */

enum {
	TTI_CUDA_STREAM_NON_BLOCKING = 1,
	TTI_CUDA_EVENT_SLEEPS = 1, /* who waits for it */
	TTI_CUDA_EVENT_WITHOUT_TIME = 2,

	TTI_CUDA_WAIT_AT_LEAST = 0, /* numbers go round */

	TTI_CUDA_CAPTURE_NONE = 0,
	TTI_CUDA_CAPTURE_ACTIVE = 1,
	TTI_CUDA_CAPTURE_INVALID = 2,
	TTI_CUDA_CAPTURE_RELAXED = 2, /* a mode */

	TTI_CUDA_USER_OBJECT_NO_SYNC = 1,
	TTI_CUDA_USER_OBJECT_MOVE = 1,

	TTI_CUDA_FUNCTION_SHARED_BYTES = 8,
};

/* X(field, symbol, arguments): all are needed, and return one of the numbers above. A symbol is the
 * one of this version; CUDA's header gives later ones the name without it. */
#define TTI_CUDA_FUNCTION_MAP(X)                                                                  \
	X(init, cuInit, (unsigned flags))                                                         \
	X(version, cuDriverGetVersion, (int *out))                                                \
	X(error_name, cuGetErrorName, (int rc, const char **out))                                 \
	X(error_text, cuGetErrorString, (int rc, const char **out))                               \
	X(device_count, cuDeviceGetCount, (int *out))                                             \
	X(device_get, cuDeviceGet, (tti_cuda_device * out, int ordinal))                          \
	X(device_name, cuDeviceGetName, (char *out, int size, tti_cuda_device device))            \
	X(device_uuid, cuDeviceGetUuid_v2, (unsigned char out[16], tti_cuda_device device))       \
	X(device_busid, cuDeviceGetPCIBusId, (char *out, int size, tti_cuda_device device))       \
	X(device_memory, cuDeviceTotalMem_v2, (size_t * out, tti_cuda_device device))             \
	X(device_attribute, cuDeviceGetAttribute,                                                 \
	  (int *out, int attribute, tti_cuda_device device))                                      \
	X(device_access, cuDeviceCanAccessPeer,                                                   \
	  (int *out, tti_cuda_device from, tti_cuda_device to))                                   \
	X(device_p2p, cuDeviceGetP2PAttribute,                                                    \
	  (int *out, int attribute, tti_cuda_device from, tti_cuda_device to))                    \
	X(context_retain, cuDevicePrimaryCtxRetain,                                               \
	  (tti_cuda_context * out, tti_cuda_device device))                                       \
	X(context_release, cuDevicePrimaryCtxRelease_v2, (tti_cuda_device device))                \
	X(context_get, cuCtxGetCurrent, (tti_cuda_context * out))                                 \
	X(context_set, cuCtxSetCurrent, (tti_cuda_context context))                               \
	X(context_peer, cuCtxEnablePeerAccess, (tti_cuda_context peer, unsigned flags))           \
	X(alloc, cuMemAlloc_v2, (uint64_t * out, size_t nbytes))                                  \
	X(free, cuMemFree_v2, (uint64_t at))                                                      \
	X(alloc_in, cuMemAllocAsync, (uint64_t * out, size_t nbytes, void *stream))               \
	X(free_in, cuMemFreeAsync, (uint64_t at, void *stream))                                   \
	X(create, cuMemCreate,                                                                    \
	  (tti_cuda_handle * out, size_t nbytes, const struct tti_cuda_prop *what,                \
	   unsigned long long flags))                                                             \
	X(release, cuMemRelease, (tti_cuda_handle handle))                                        \
	X(granularity, cuMemGetAllocationGranularity,                                             \
	  (size_t * out, const struct tti_cuda_prop *what, int which))                            \
	X(reserve, cuMemAddressReserve,                                                           \
	  (uint64_t * out, size_t nbytes, size_t alignment, uint64_t wish,                        \
	   unsigned long long flags))                                                             \
	X(unreserve, cuMemAddressFree, (uint64_t at, size_t nbytes))                              \
	X(map, cuMemMap,                                                                          \
	  (uint64_t at, size_t nbytes, size_t offset, tti_cuda_handle handle,                     \
	   unsigned long long flags))                                                             \
	X(unmap, cuMemUnmap, (uint64_t at, size_t nbytes))                                        \
	X(allow, cuMemSetAccess,                                                                  \
	  (uint64_t at, size_t nbytes, const struct tti_cuda_allow *what, size_t n))              \
	X(export_handle, cuMemExportToShareableHandle,                                            \
	  (void *out, tti_cuda_handle handle, int type, unsigned long long flags))                \
	X(import_handle, cuMemImportFromShareableHandle,                                          \
	  (tti_cuda_handle * out, void *from, int type))                                          \
	X(handle_of, cuMemRetainAllocationHandle, (tti_cuda_handle * out, void *at))              \
	X(range, cuMemGetAddressRange_v2, (uint64_t * base, size_t * nbytes, uint64_t at))        \
	X(ipc_get, cuIpcGetMemHandle, (struct tti_cuda_ipc * out, uint64_t at))                   \
	X(ipc_open, cuIpcOpenMemHandle_v2,                                                        \
	  (uint64_t * out, struct tti_cuda_ipc handle, unsigned flags))                           \
	X(ipc_close, cuIpcCloseMemHandle, (uint64_t at))                                          \
	X(host_alloc, cuMemHostAlloc, (void **out, size_t nbytes, unsigned flags))                \
	X(host_free, cuMemFreeHost, (void *host))                                                 \
	X(host_register, cuMemHostRegister_v2, (void *host, size_t nbytes, unsigned flags))       \
	X(host_unregister, cuMemHostUnregister, (void *host))                                     \
	X(host_address, cuMemHostGetDevicePointer_v2,                                             \
	  (uint64_t * out, void *host, unsigned flags))                                           \
	X(pointer_attributes, cuPointerGetAttributes,                                             \
	  (unsigned n, int *which, void **out, uint64_t at))                                      \
	X(copy, cuMemcpyAsync, (uint64_t to, uint64_t from, size_t nbytes, void *stream))         \
	X(write, cuMemcpyHtoDAsync_v2,                                                            \
	  (uint64_t to, const void *host, size_t nbytes, void *stream))                           \
	X(read, cuMemcpyDtoHAsync_v2, (void *host, uint64_t from, size_t nbytes, void *stream))   \
	X(fill, cuMemsetD8Async, (uint64_t to, unsigned char value, size_t nbytes, void *stream)) \
	X(priorities, cuCtxGetStreamPriorityRange, (int *least, int *greatest))                   \
	X(stream_create, cuStreamCreateWithPriority, (void **out, unsigned flags, int priority))  \
	X(stream_destroy, cuStreamDestroy_v2, (void *stream))                                     \
	X(stream_wait, cuStreamSynchronize, (void *stream))                                       \
	X(stream_query, cuStreamQuery, (void *stream))                                            \
	X(stream_context, cuStreamGetCtx, (void *stream, tti_cuda_context *out))                  \
	X(context_device, cuCtxGetDevice, (tti_cuda_device * out))                                \
	X(event_create, cuEventCreate, (void **out, unsigned flags))                              \
	X(event_destroy, cuEventDestroy_v2, (void *event))                                        \
	X(event_record, cuEventRecord, (void *event, void *stream))                               \
	X(event_await, cuStreamWaitEvent, (void *stream, void *event, unsigned flags))            \
	X(event_wait, cuEventSynchronize, (void *event))                                          \
	X(wait_value, cuStreamWaitValue32_v2,                                                     \
	  (void *stream, uint64_t at, uint32_t value, unsigned flags))                            \
	X(host_function, cuLaunchHostFunc, (void *stream, tti_cuda_host_fn run, void *arg))       \
	X(capture_mode, cuThreadExchangeStreamCaptureMode, (int *mode))                           \
	X(capture_info, cuStreamGetCaptureInfo_v2,                                                \
	  (void *stream, int *status, uint64_t *id, void **graph, void *const **dependencies,     \
	   size_t *n))                                                                            \
	X(object_create, cuUserObjectCreate,                                                      \
	  (void **out, void *arg, tti_cuda_host_fn end, unsigned references, unsigned flags))     \
	X(object_release, cuUserObjectRelease, (void *object, unsigned references))               \
	X(object_retain, cuGraphRetainUserObject,                                                 \
	  (void *graph, void *object, unsigned references, unsigned flags))                       \
	X(library_load, cuLibraryLoadData,                                                        \
	  (void **out, const void *image, void *jit, void **jit_values, unsigned njit,            \
	   void *options, void **option_values, unsigned noptions))                               \
	X(library_unload, cuLibraryUnload, (void *library))                                       \
	X(library_kernel, cuLibraryGetKernel, (void **out, void *library, const char *name))      \
	X(kernel_function, cuKernelGetFunction, (void **out, void *kernel))                       \
	X(kernel_set, cuKernelSetAttribute,                                                       \
	  (int attribute, int value, void *kernel, tti_cuda_device device))                       \
	X(resident, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                  \
	  (int *out, void *function, int nthreads, size_t shared_bytes))                          \
	X(launch, cuLaunchKernel,                                                                 \
	  (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
	   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **args,  \
	   void **extra))

struct tti_cuda_functions {
#define X(field, symbol, arguments) int(*field) arguments;
	TTI_CUDA_FUNCTION_MAP(X)
#undef X
};

/* From this release on all functions are there. */
#define TTI_CUDA_LEAST_VERSION 12000

#endif
