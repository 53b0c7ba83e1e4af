/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_SANITIZER_H
#define TTI_UTIL_SANITIZER_H

/* TTI_SANITIZED is 1 under ASan and TSan, 0 elsewhere: stacks are larger there, and some code has
 * to be written so that the sanitizer understands it. */
#if defined(__has_feature)
#define TTI_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TTI_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	TTI_HAS_FEATURE(address_sanitizer) || TTI_HAS_FEATURE(thread_sanitizer)
#define TTI_SANITIZED 1
#else
#define TTI_SANITIZED 0
#endif

/* TTI_HAS_LSAN: 1 where leaks are detected, which comes with ASan. */
#if defined(__SANITIZE_ADDRESS__) || TTI_HAS_FEATURE(address_sanitizer)
#define TTI_HAS_LSAN 1
#else
#define TTI_HAS_LSAN 0
#endif

#endif
