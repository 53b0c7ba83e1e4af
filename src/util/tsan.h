/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_TSAN_H
#define TTI_UTIL_TSAN_H

/* What the thread sanitizer cannot see: that two threads are ordered by a message through
 * memory that each of them has mapped at another address. Who sends gives, who receives takes,
 * both with a number that names sender and receiver. The links of shared memory do so for each
 * message, and for the room that its receiver gives back. Other code does so only where no link
 * carries the order, as for the signals of windows. Nothing in other builds. */

#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TTI_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define TTI_TSAN 1
#endif

#ifdef TTI_TSAN
/* Of the sanitizer. */
void __tsan_acquire(void *address);
void __tsan_release(void *address);

void *tti_tsan_place(uint32_t from, uint32_t to);

static inline void tti_tsan_give(uint32_t from, uint32_t to)
{
	__tsan_release(tti_tsan_place(from, to));
}

static inline void tti_tsan_take(uint32_t from, uint32_t to)
{
	__tsan_acquire(tti_tsan_place(from, to));
}
#else
static inline void tti_tsan_give(uint32_t from, uint32_t to)
{
	(void)from;
	(void)to;
}

static inline void tti_tsan_take(uint32_t from, uint32_t to)
{
	(void)from;
	(void)to;
}
#endif

#endif
