/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_SANITIZER_H
#define TESTS_SUPPORT_SANITIZER_H

#include "util/sanitizer.h"

/* 1 where fewer cases of a kind are tried: under ASan and TSan, where everything takes ten times as long,
 * but not if they are compiled with -DTEST_ALL. Limits of time and of memory, and what cannot be tried
 * under a sanitizer, go by TTI_SANITIZED. */
#ifdef TEST_ALL
#define SANITIZED 0
#else
#define SANITIZED TTI_SANITIZED
#endif

#endif
