/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_STRBUF_H
#define TTI_UTIL_STRBUF_H

/* A string under construction. Out of memory is remembered, not reported at
 * each step: look at `failed` once, at the end.
 * Owner: who holds the struct. Threads: not synchronised. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "tutti/status.h"

struct tti_strbuf {
	char *text; /* NULL while empty */
	size_t len, room;
	bool failed;
};

void tti_strbuf_add(struct tti_strbuf *buf, const char *text);
TUTTI_PRINTF(2, 3) void tti_strbuf_addf(struct tti_strbuf *buf, const char *fmt, ...);
TUTTI_PRINTF(2, 0)
void tti_strbuf_vaddf(struct tti_strbuf *buf, const char *fmt, va_list args);
/* The string ("" if empty), freed with free(); the buffer is empty again.
 * NULL: it had failed. */
char *tti_strbuf_take(struct tti_strbuf *buf);
void tti_strbuf_release(struct tti_strbuf *buf);

/* Ranks as people write them: "0-3, 7" into buf; ends in ", ..." if too long. */
void tti_format_ranks(char *buf, size_t size, const int *ranks, size_t n);

/* A copy of "a; b; c", shortened to what there is room for, between two of its parts: "a; b; ...".
 * A part that is longer is cut between two words. */
void tti_copy_list(char *out, size_t size, const char *text);

#endif
