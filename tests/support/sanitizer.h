/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_SANITIZER_H
#define TESTS_SUPPORT_SANITIZER_H

/* SANITIZED is 1 under ASan and TSan, where everything takes ten times as long and
 * memory is not ours alone. */
#if defined(__has_feature)
#define TESTS_HAS(feature) __has_feature(feature)
#else
#define TESTS_HAS(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	TESTS_HAS(address_sanitizer) || TESTS_HAS(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#endif
