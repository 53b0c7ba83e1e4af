/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_CLOCK_H
#define TTI_UTIL_CLOCK_H

/* Time since boot (CLOCK_MONOTONIC), in ns. Threads: any. */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define TTI_NS_PER_MS INT64_C(1000000)
#define TTI_NEVER     INT64_MAX

static inline int64_t tti_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A counter of a steady rate, for times that are taken too often for the clock. */
static inline uint64_t tti_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return (uint64_t)tti_now_ns();
#endif
}

/* CPU time of this thread: on a busy machine less than the time that has passed. */
static inline int64_t tti_thread_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/* The deadline `timeout_ms` from now; TTI_NEVER if it is < 0, or centuries. */
static inline int64_t tti_deadline(int64_t timeout_ms)
{
	if (timeout_ms < 0 || timeout_ms > INT64_MAX / 2 / TTI_NS_PER_MS)
		return TTI_NEVER;
	return tti_now_ns() + timeout_ms * TTI_NS_PER_MS;
}

/* ms until `deadline_ns` for poll(): 0 if past, at most `most_ms`. */
static inline int tti_left_ms(int64_t deadline_ns, int most_ms)
{
	const int64_t left = deadline_ns == TTI_NEVER ? INT64_MAX : deadline_ns - tti_now_ns();

	if (left <= 0)
		return 0;
	if (left / TTI_NS_PER_MS >= most_ms)
		return most_ms;
	return (int)(left / TTI_NS_PER_MS) + 1;
}

#endif
