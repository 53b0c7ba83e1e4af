/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_SANITIZER_H
#define TESTS_SUPPORT_SANITIZER_H

#include "util/sanitizer.h"

/* 1 under ASan and TSan, where everything takes ten times as long and memory is not ours
 * alone. */
#define SANITIZED TTI_SANITIZED

#endif
