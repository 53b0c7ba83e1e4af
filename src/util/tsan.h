/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_TSAN_H
#define TTI_UTIL_TSAN_H

/* The thread sanitizer cannot see that a message orders two threads which have mapped its memory at
 * different addresses. So the sender gives and the receiver takes, both with a number that names
 * sender and receiver. The links of shared memory do so for each message, and for the room that its
 * receiver gives back; other code only where no link carries the order, as for the signals of
 * windows. Nothing in other builds. */

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
