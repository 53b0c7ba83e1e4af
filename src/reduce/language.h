/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_REDUCE_LANGUAGE_H
#define TTI_REDUCE_LANGUAGE_H

/* What the reductions are written in: C17, and C++17 as nvcc compiles it for GPUs, which has no
 * vectors but functions of its own.
 *
 * Owner: none. Threads: any. */

#ifdef __CUDACC__
#define V_INLINE static __device__ __forceinline__
#define K_INLINE static __device__ __forceinline__
#else
#define V_INLINE static inline
#define K_INLINE static inline __attribute__((always_inline))
#endif

#endif
