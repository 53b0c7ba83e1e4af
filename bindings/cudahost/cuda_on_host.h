/* SPDX-License-Identifier: BSD-3-Clause */
/* Compile a .cu file as C++17, so that its kernels run on the host: simple ones, of which the
 * threads do not wait for each other. Include this before all else (-x c++ -include
 * cuda_on_host.h) with the headers of a CUDA toolkit, link with Tutti's libcudart, and replace what
 * C++ does not know:
 *
 *     kernel<<<grid, block, 0, stream>>>(a, b);
 *     tutti::loops<kernel>::launch(grid, block, 0, stream, a, b);
 *
 *     cudaLaunchKernel((const void *)kernel<float>, grid, block, args, 0, stream);
 *     cudaLaunchKernel(TUTTI_KERNEL(kernel<float>), grid, block, args, 0, stream);
 *
 * A launch runs in the order of its stream: all blocks one after the other, and of each block all
 * threads. So shared memory, __syncthreads() and what the threads of a warp do together are not
 * there: using them does not compile. Atomic functions are there, because several streams run at a
 * time.
 *
 * With TUTTI_CUDAHOST_GUARD=1 a kernel gets other addresses of devices' memory than the program has:
 * parameters, also structs, lead to where it can be read and written. Addresses that the kernel reads
 * from memory do not. */
#ifndef TUTTI_CUDA_ON_HOST_H
#define TUTTI_CUDA_ON_HOST_H

#if defined(__CUDACC__)
#error "cuda_on_host.h is for C++ compilers of the host, not for nvcc"
#endif
#if !defined(__cplusplus) || __cplusplus < 201703L
#error "cuda_on_host.h needs C++17"
#endif

/* With what nvcc includes by itself. */
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <type_traits>
#include <utility>

#include <cuda_runtime.h>

/* NVIDIA's headers define these for compilers of the host so that kernels are not known to them. */
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __managed__
#undef __launch_bounds__
#undef __forceinline__
#define __global__
#define __device__
#define __host__
#define __shared__   static_assert(false, "shared memory is not there on the host");
#define __constant__ static
#define __managed__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))

extern "C" int tti_cuda_kernel_register(const void *function, const char *name,
					int (*run)(void **args, const unsigned grid[3],
						   const unsigned block[3],
						   std::size_t shared_bytes),
					const std::size_t *arg_bytes, std::size_t nargs);

using std::max;
using std::min;

/* Which thread of which block the loops are at. */
inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace tutti
{

template <class Body> void for_each(const unsigned size[3], uint3 &at, Body body)
{
	for (at.z = 0; at.z < size[2]; at.z++)
		for (at.y = 0; at.y < size[1]; at.y++)
			for (at.x = 0; at.x < size[0]; at.x++)
				body();
}

/* All threads of a launch of a kernel with these parameters. */
template <auto kernel> struct loops;
template <class... Args, void (*kernel)(Args...)> struct loops<kernel> {
	static_assert((std::is_trivially_copyable_v<Args> && ...),
		      "parameters of kernels are copied byte by byte");

	template <std::size_t... at> static void call(void **args, std::index_sequence<at...>)
	{
		kernel(*static_cast<std::remove_reference_t<Args> *>(args[at])...);
	}

	static int run(void **args, const unsigned grid[3], const unsigned block[3], std::size_t)
	{
		gridDim = dim3(grid[0], grid[1], grid[2]);
		blockDim = dim3(block[0], block[1], block[2]);
		for_each(grid, blockIdx, [&] {
			for_each(block, threadIdx,
				 [&] { call(args, std::index_sequence_for<Args...>()); });
		});
		return 0;
	}

	static int add(const char *name)
	{
		static constexpr std::size_t nbytes[] = { sizeof(Args)..., 0 };

		return tti_cuda_kernel_register(reinterpret_cast<const void *>(kernel), name, run,
						nbytes, sizeof...(Args));
	}

	/* The kernel as cudaLaunchKernel() knows it: registered once a process. */
	static const void *handle(const char *name)
	{
		static const int error = add(name);

		(void)error; /* is the last error, and the launch fails by name */
		return reinterpret_cast<const void *>(kernel);
	}

	/* As <<< >>> has it: cudaGetLastError() gives the error. */
	static void launch(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
			   Args... values)
	{
		void *args[] = { const_cast<void *>(static_cast<const void *>(&values))...,
				 nullptr };

		(void)cudaLaunchKernel(handle(nullptr), grid, block, args, shared_bytes, stream);
	}
};

/* What cannot be a loop over threads. */
template <class... Args> void no_threads_that_wait(Args...) = delete;

} // namespace tutti

#define TUTTI_KERNEL(...) (tutti::loops<__VA_ARGS__>::handle(#__VA_ARGS__))

#define __syncthreads(...)    tutti::no_threads_that_wait(__VA_ARGS__)
#define __syncwarp(...)       tutti::no_threads_that_wait(__VA_ARGS__)
#define __shfl_sync(...)      tutti::no_threads_that_wait(__VA_ARGS__)
#define __shfl_up_sync(...)   tutti::no_threads_that_wait(__VA_ARGS__)
#define __shfl_down_sync(...) tutti::no_threads_that_wait(__VA_ARGS__)
#define __shfl_xor_sync(...)  tutti::no_threads_that_wait(__VA_ARGS__)
#define __ballot_sync(...)    tutti::no_threads_that_wait(__VA_ARGS__)
#define __any_sync(...)       tutti::no_threads_that_wait(__VA_ARGS__)
#define __all_sync(...)       tutti::no_threads_that_wait(__VA_ARGS__)

/* -- Atomic functions: each returns what was there ----------------------------------------- */

namespace tutti
{

template <class T, class Change> T change(T *at, Change change)
{
	T before, after;

	__atomic_load(at, &before, __ATOMIC_RELAXED);
	do {
		after = change(before);
	} while (!__atomic_compare_exchange(at, &before, &after, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	return before;
}

} // namespace tutti

template <class T> T atomicAdd(T *at, std::common_type_t<T> value)
{
	return tutti::change(at, [value](T before) { return static_cast<T>(before + value); });
}

template <class T> T atomicMax(T *at, std::common_type_t<T> value)
{
	return tutti::change(at, [value](T before) { return std::max<T>(before, value); });
}

template <class T> T atomicMin(T *at, std::common_type_t<T> value)
{
	return tutti::change(at, [value](T before) { return std::min<T>(before, value); });
}

template <class T> T atomicExch(T *at, std::common_type_t<T> value)
{
	return tutti::change(at, [value](T) { return value; });
}

template <class T> T atomicCAS(T *at, std::common_type_t<T> expected, std::common_type_t<T> value)
{
	return tutti::change(
		at, [expected, value](T before) { return before == expected ? value : before; });
}

inline void __threadfence()
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
