/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_PATTERN_H
#define TESTS_SUPPORT_PATTERN_H

/* Bytes that follow from a key. They are copied and compared in long pieces, each of which a sanitizer
 * looks at once: byte by byte these took most of the time of tests that move data under TSan.
 *
 * Threads: any. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void pattern_fill(void *data, size_t nbytes, uint64_t key);
/* How many bytes, from the first on, are those that pattern_fill() writes. */
size_t pattern_agrees(const void *data, size_t nbytes, uint64_t key);

/* Whether all are. */
static inline bool pattern_is_in(const void *data, size_t nbytes, uint64_t key)
{
	return pattern_agrees(data, nbytes, key) == nbytes;
}

#endif
