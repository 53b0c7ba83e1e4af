/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"
#include "util/strbuf.h"

#define TEXT_BYTES 1024

static _Thread_local char last_text[TEXT_BYTES];

/* Through a second buffer: an argument may be the old text itself. It is one
 * larger, so that tti_error_set() sees what was cut. */
TUTTI_PRINTF(1, 0) static void keep(const char *fmt, va_list args, int error)
{
	char text[TEXT_BYTES + 1];

	errno = error;
	if (vsnprintf(text, sizeof(text), fmt, args) < 0)
		tti_error_set("(the error's text could not be made)");
	else
		tti_error_set(text);
}

tutti_status tti_fail(tutti_status status, const char *fmt, ...)
{
	const int error = errno;
	va_list args;

	va_start(args, fmt);
	keep(fmt, args, error);
	va_end(args);
	tti_log_error("%s", last_text);
	errno = error;
	return status;
}

tutti_status tti_fail_quiet(tutti_status status, const char *fmt, ...)
{
	const int error = errno;
	va_list args;

	va_start(args, fmt);
	keep(fmt, args, error);
	va_end(args);
	errno = error;
	return status;
}

const char *tti_error_text(void)
{
	return last_text;
}

void tti_error_set(const char *text)
{
	const size_t len = text ? strnlen(text, TEXT_BYTES) : 0;
	const size_t kept = len < TEXT_BYTES ? len : TEXT_BYTES - 1;

	if (kept)
		memmove(last_text, text, kept);
	last_text[kept] = '\0';
	if (len == TEXT_BYTES)
		tti_copy_list(last_text, TEXT_BYTES, text);
}

void tti_assert_failed(const char *condition, const char *file, int line)
{
	dprintf(STDERR_FILENO, "tutti BUG %s:%d: %s does not hold; please report it\n", file, line,
		condition);
	__builtin_trap();
}
