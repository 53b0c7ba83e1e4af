/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_EXPECT_H
#define TESTS_FUZZ_EXPECT_H

/* What a fuzzer finds is a crash: it keeps the input then. */

#include <stdbool.h>

static inline void expect(bool condition)
{
	if (!condition)
		__builtin_trap();
}

#endif
