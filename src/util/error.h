/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_ERROR_H
#define TTI_UTIL_ERROR_H

/* How an error is made and passed on.
 *
 * The first function that names an error calls tti_fail(): it logs the text
 * once and keeps it for the calling thread; all others pass the status on. The
 * API boundary (core) copies the thread's text into the communicator.
 *
 * Threads: the text belongs to the calling thread. */

#include "tutti/status.h"

/* Log `fmt` at level WARN, keep it as the thread's last error, return `status`.
 * "%m" is the errno of before the call. Say the value, the place, the remedy. */
TUTTI_CHECKED TUTTI_PRINTF(2, 3) tutti_status tti_fail(tutti_status status, const char *fmt, ...);

/* The same without logging: for what a caller is expected to handle. */
TUTTI_CHECKED TUTTI_PRINTF(2, 3) tutti_status
	tti_fail_quiet(tutti_status status, const char *fmt, ...);

/* This thread's last error text, "" if none. Valid until the next tti_fail. */
const char *tti_error_text(void);

/* Set or clear (NULL) it: for moving a text between threads. */
void tti_error_set(const char *text);

/* Pass an error (and AGAIN) on. Only where the function holds nothing. */
#define TTI_TRY(call)                                       \
	do {                                                \
		const tutti_status tti_try_status = (call); \
		if (tti_try_status != TUTTI_OK)             \
			return tti_try_status;              \
	} while (0)

/* A bug of this library if it fails: prints place and text, then traps. Kept
 * in release builds; not for the per-step path. */
#define tti_assert(condition) \
	((condition) ? (void)0 : tti_assert_failed(#condition, __FILE__, __LINE__))
_Noreturn void tti_assert_failed(const char *condition, const char *file, int line);

#endif
