/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_RUNTIME_H
#define BENCH_GPU_RUNTIME_H

/* The CUDA runtime for programs that have no kernels of their own: they are compiled without a
 * toolkit, and run with NVIDIA's runtime or with Tutti's on host memory, whichever libcudart.so.13
 * the loader finds. And the form of what they print, as in gpu.h.
 *
 * What fails ends the process at once: other threads may be in calls that never end.
 *
 * Owner: the process. Threads: any, after cuda_open(). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

enum cuda_copy { CUDA_TO_DEVICE = 1, CUDA_TO_HOST = 2, CUDA_ON_DEVICE = 3, CUDA_ANYWHERE = 4 };

#define CUDA_NON_BLOCKING         1 /* of a stream: it does not wait for the default one */
#define CUDA_CAPTURE_THREAD_LOCAL 1

#define CUDA_FUNCTION_MAP(F)                                                                      \
	F(GetDeviceCount, (int *out))                                                             \
	F(SetDevice, (int device))                                                                \
	F(DeviceSynchronize, (void))                                                              \
	F(MemGetInfo, (size_t * nfree, size_t * nbytes))                                          \
	F(Malloc, (void **out, size_t nbytes))                                                    \
	F(Free, (void *memory))                                                                   \
	F(MallocHost, (void **out, size_t nbytes))                                                \
	F(FreeHost, (void *memory))                                                               \
	F(MemcpyAsync,                                                                            \
	  (void *to, const void *from, size_t nbytes, enum cuda_copy way, cudaStream_t stream))   \
	F(MemsetAsync, (void *to, int value, size_t nbytes, cudaStream_t stream))                 \
	F(StreamCreateWithFlags, (cudaStream_t * out, unsigned flags))                            \
	F(StreamDestroy, (cudaStream_t stream))                                                   \
	F(StreamSynchronize, (cudaStream_t stream))                                               \
	F(StreamBeginCapture, (cudaStream_t stream, int mode))                                    \
	F(StreamEndCapture, (cudaStream_t stream, cudaGraph_t * out))                             \
	F(EventCreate, (cudaEvent_t * out))                                                       \
	F(EventDestroy, (cudaEvent_t event))                                                      \
	F(EventRecord, (cudaEvent_t event, cudaStream_t stream))                                  \
	F(EventSynchronize, (cudaEvent_t event))                                                  \
	F(EventElapsedTime, (float *ms_out, cudaEvent_t from, cudaEvent_t to))                    \
	F(GraphInstantiate, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags)) \
	F(GraphUpload, (cudaGraphExec_t exec, cudaStream_t stream))                               \
	F(GraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream))                               \
	F(GraphExecDestroy, (cudaGraphExec_t exec))                                               \
	F(GraphDestroy, (cudaGraph_t graph))                                                      \
	F(GetLastError, (void))

/* cuda.Malloc() is cudaMalloc(). */
struct cuda {
#define F(name, arguments) int(*name) arguments;
	CUDA_FUNCTION_MAP(F)
#undef F
	const char *(*GetErrorString)(int error);
};
extern struct cuda cuda;

/* Load the runtime, into the scope of all libraries of the process. */
void cuda_open(void);

#define CUDA(call) cuda_check(cuda.call, #call, __FILE__, __LINE__)
void cuda_check(int error, const char *call, const char *file, int line);

/* "section | what | figure | unit" on stdout, from which scripts/gpu_day makes tables. */
void report(const char *section, const char *what, double figure, const char *unit);
_Noreturn void give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

double now_us(void);
double median(double *values, int n); /* sorts them */

/* "8 B", "64 KiB": as the tables name sizes. */
struct size_name {
	char text[24];
};
struct size_name size_name(size_t nbytes);

/* Microseconds of work(arg, stream) on the device: the median of `rounds` after one that does not
 * count, each of `calls` calls between two events. At most 32 rounds. */
double device_us(cudaStream_t stream, int rounds, int calls,
		 void (*work)(void *arg, cudaStream_t stream), void *arg);

/* Microseconds that work(arg) takes on the host: the median of `rounds` after three that do not
 * count. At most 512 rounds. */
double host_us(int rounds, void (*work)(void *arg), void *arg);

#endif
