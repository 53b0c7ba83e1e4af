/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_WORLD_H
#define TTI_DEVICE_WORLD_H

/* What the interpreter needs of the world it runs in: a block of a GPU under nvcc, threads of the
 * host under a C compiler. All that differs between the two is here.
 *
 * Owner: struct tti_dev_world is of one thread, what it points at of its block.
 * Threads: all functions any; those that say so are called by all threads of a block alike. */

#include <stdint.h>

#include "device/pass.h"

#ifndef __CUDACC__
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <time.h>

/* A block of threads of the host. Of one barrier TSan would take what a thread does before it comes there
 * again for done before those leave that wake late: so it would miss accesses that nothing orders. */
struct tti_dev_host_block {
	pthread_barrier_t barrier[2]; /* in turns */
	uint32_t said[3];             /* by tti_dev_barrier_any(), in turns of three */
};

/* How threads of the host wait that are none of the system's. */
struct tti_dev_waits {
	void (*barrier)(pthread_barrier_t *barrier);
	void (*relax)(uint32_t looks);
};
#endif

/* A thread's own. Nothing on a GPU. */
struct tti_dev_world {
#ifndef __CUDACC__
	struct tti_dev_host_block *block;
	const struct tti_dev_waits *waits; /* NULL: it is a thread of the system */
	uint32_t tid, nthreads;
	uint32_t turn; /* of said[] */
	uint32_t side; /* of barrier[] */
	void *(*view)(uint64_t address);
	uint64_t read, written; /* bytes of user data so far */
#endif
};

#ifdef __CUDACC__

#define TTI_DEV_FN     static __device__ __forceinline__
/* Loops that are made longer, and those that are long already, or run seldom. */
#define TTI_DEV_UNROLL _Pragma("unroll")
#define TTI_DEV_ROLLED _Pragma("unroll 1")
/* What runs seldom, and is not to be copied to where it is called. */
#define TTI_DEV_COLD   static __device__ __noinline__

/* Looks at what is waited for between two looks at the host's words. */
#define TTI_DEV_LOOKS 512

TTI_DEV_FN uint32_t tti_dev_tid(const struct tti_dev_world *world)
{
	(void)world;
	return threadIdx.x;
}

TTI_DEV_FN uint32_t tti_dev_nthreads(const struct tti_dev_world *world)
{
	(void)world;
	return blockDim.x;
}

TTI_DEV_FN void tti_dev_barrier(struct tti_dev_world *world)
{
	(void)world;
	__syncthreads();
}

TTI_DEV_FN uint32_t tti_dev_barrier_any(struct tti_dev_world *world, uint32_t value)
{
	(void)world;
	return __syncthreads_or((int)value) != 0;
}

TTI_DEV_FN void tti_dev_relax(const struct tti_dev_world *world, uint32_t looks)
{
	(void)world;
	if (looks > 8)
		__nanosleep(20);
}

TTI_DEV_FN void *tti_dev_view(const struct tti_dev_world *world, uint64_t address)
{
	(void)world;
	return (void *)address;
}

TTI_DEV_FN void tti_dev_count(struct tti_dev_world *world, uint64_t read, uint64_t written)
{
	(void)world;
	(void)read;
	(void)written;
}

/* Of memory that other GPUs and the host see. */
TTI_DEV_FN uint64_t tti_dev_load_acquire(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

TTI_DEV_FN void tti_dev_store_release(uint64_t *at, uint64_t value)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

TTI_DEV_FN void tti_dev_store_release_32(uint32_t *at, uint32_t value)
{
	asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

/* What is only looked at: whoever goes by it reads it again, and acquires. */
TTI_DEV_FN uint64_t tti_dev_load_64(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

TTI_DEV_FN uint32_t tti_dev_load_32(const uint32_t *at)
{
	uint32_t value;

	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
	return value;
}

TTI_DEV_FN void tti_dev_store_32(uint32_t *at, uint32_t value)
{
	asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

/* Of two that store a word each, and then load the other one's so, at least one sees the other's. */
TTI_DEV_FN uint32_t tti_dev_store_and_load_32(uint32_t *to, uint32_t value, const uint32_t *from)
{
	tti_dev_store_32(to, value);
	asm volatile("fence.sc.sys;" ::: "memory");
	return tti_dev_load_32(from);
}

/* Two words, at a multiple of 16 bytes, each by itself. */
TTI_DEV_FN void tti_dev_load_words(const uint64_t *at, uint64_t *first, uint64_t *second)
{
	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
		     : "=l"(*first), "=l"(*second)
		     : "l"(at)
		     : "memory");
}

TTI_DEV_FN void tti_dev_store_words(uint64_t *at, uint64_t first, uint64_t second)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(first),
		     "l"(second)
		     : "memory");
}

/* Of memory of the block. */
TTI_DEV_FN uint32_t tti_dev_load_shared(const uint32_t *at)
{
	return *(const volatile uint32_t *)at;
}

TTI_DEV_FN void tti_dev_store_shared(uint32_t *at, uint32_t value)
{
	*(volatile uint32_t *)at = value;
}

/* Of memory of this GPU: of all its blocks, or of one. They give what was there before. */
TTI_DEV_FN uint32_t tti_dev_swap_if(uint32_t *at, uint32_t is, uint32_t becomes)
{
	return atomicCAS(at, is, becomes);
}

TTI_DEV_FN uint32_t tti_dev_raise(uint32_t *at, uint32_t value)
{
	return atomicMax(at, value);
}

/* Orders what the block did before, and what it does after. */
TTI_DEV_FN uint32_t tti_dev_add_ordered(uint32_t *at, uint32_t value)
{
	uint32_t before;

	asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
		     : "=r"(before)
		     : "l"(at), "r"(value)
		     : "memory");
	return before;
}

#else

#define TTI_DEV_FN static inline __attribute__((unused))
#define TTI_DEV_UNROLL
#define TTI_DEV_ROLLED
#define TTI_DEV_COLD static __attribute__((noinline, unused))

#define TTI_DEV_LOOKS 8

TTI_DEV_FN uint32_t tti_dev_tid(const struct tti_dev_world *world)
{
	return world->tid;
}

TTI_DEV_FN uint32_t tti_dev_nthreads(const struct tti_dev_world *world)
{
	return world->nthreads;
}

/* By all threads of a block: what one did before it, all see after it. */
TTI_DEV_FN void tti_dev_barrier(struct tti_dev_world *world)
{
	pthread_barrier_t *barrier;

	if (world->nthreads < 2)
		return;
	barrier = &world->block->barrier[world->side ^= 1];
	if (world->waits)
		world->waits->barrier(barrier);
	else
		pthread_barrier_wait(barrier);
}

/* The same; gives whether any of the threads had a value other than 0. */
TTI_DEV_FN uint32_t tti_dev_barrier_any(struct tti_dev_world *world, uint32_t value)
{
	uint32_t *said = world->block->said, any;

	if (value)
		__atomic_store_n(&said[world->turn], 1, __ATOMIC_RELAXED);
	tti_dev_barrier(world);
	any = __atomic_load_n(&said[world->turn], __ATOMIC_RELAXED);
	/* All have read what was said the time before, and nobody says anything there before the
	 * next barrier. */
	world->turn = (world->turn + 1) % 3;
	if (world->tid == 0)
		__atomic_store_n(&said[(world->turn + 1) % 3], 0, __ATOMIC_RELAXED);
	return any;
}

/* Threads of the host share cores: who waits long sleeps, and leaves them to others. */
TTI_DEV_FN void tti_dev_relax(const struct tti_dev_world *world, uint32_t looks)
{
	if (world->waits) {
		world->waits->relax(looks);
	} else if (looks < 32) {
		sched_yield();
	} else {
		const struct timespec shortly = { 0, 50000 };

		nanosleep(&shortly, NULL);
	}
}

/* Where this thread reaches an address of a GPU, and what lies after it. */
TTI_DEV_FN void *tti_dev_view(const struct tti_dev_world *world, uint64_t address)
{
	return world->view ? world->view(address) : (void *)(uintptr_t)address;
}

/* Bytes of user data, by one thread for its block. */
TTI_DEV_FN void tti_dev_count(struct tti_dev_world *world, uint64_t read, uint64_t written)
{
	world->read += read;
	world->written += written;
}

TTI_DEV_FN uint64_t tti_dev_load_acquire(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

TTI_DEV_FN void tti_dev_store_release(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

TTI_DEV_FN void tti_dev_store_release_32(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

TTI_DEV_FN uint64_t tti_dev_load_64(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

TTI_DEV_FN uint32_t tti_dev_load_32(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

TTI_DEV_FN void tti_dev_store_32(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

TTI_DEV_FN uint32_t tti_dev_store_and_load_32(uint32_t *to, uint32_t value, const uint32_t *from)
{
	__atomic_store_n(to, value, __ATOMIC_SEQ_CST);
	return __atomic_load_n(from, __ATOMIC_SEQ_CST);
}

/* Relaxed: a word holds all that it tells. */
TTI_DEV_FN void tti_dev_load_words(const uint64_t *at, uint64_t *first, uint64_t *second)
{
	*first = __atomic_load_n(at, __ATOMIC_RELAXED);
	*second = __atomic_load_n(at + 1, __ATOMIC_RELAXED);
}

TTI_DEV_FN void tti_dev_store_words(uint64_t *at, uint64_t first, uint64_t second)
{
	__atomic_store_n(at, first, __ATOMIC_RELAXED);
	__atomic_store_n(at + 1, second, __ATOMIC_RELAXED);
}

TTI_DEV_FN uint32_t tti_dev_load_shared(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

TTI_DEV_FN void tti_dev_store_shared(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

TTI_DEV_FN uint32_t tti_dev_swap_if(uint32_t *at, uint32_t is, uint32_t becomes)
{
	__atomic_compare_exchange_n(at, &is, becomes, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return is;
}

TTI_DEV_FN uint32_t tti_dev_raise(uint32_t *at, uint32_t value)
{
	uint32_t before = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (before < value && !__atomic_compare_exchange_n(at, &before, value, 0,
							      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return before;
}

TTI_DEV_FN uint32_t tti_dev_add_ordered(uint32_t *at, uint32_t value)
{
	return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}

#endif

#define TTI_DEV_AT(world, type, address) ((type *)tti_dev_view(world, address))

#endif
