/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/strbuf.h"

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "util/mem.h"

/* Room for `more` characters and the end; false: failed, now or before. */
static bool reserve(struct tti_strbuf *buf, size_t more)
{
	size_t room = buf->room ? buf->room : 64;
	char *text;

	if (buf->failed)
		return false;
	if (more > (size_t)PTRDIFF_MAX / 4 - buf->len)
		goto fail;
	while (room < buf->len + more + 1)
		room *= 2;
	if (room == buf->room)
		return true;
	text = tti_realloc(buf->text, room);
	if (!text)
		goto fail;
	buf->text = text;
	buf->room = room;
	return true;

fail:
	buf->failed = true;
	return false;
}

void tti_strbuf_add(struct tti_strbuf *buf, const char *text)
{
	const size_t len = strlen(text);

	if (!reserve(buf, len))
		return;
	memcpy(buf->text + buf->len, text, len + 1);
	buf->len += len;
}

void tti_strbuf_vaddf(struct tti_strbuf *buf, const char *fmt, va_list args)
{
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, args);
	if (len < 0) {
		buf->failed = true;
	} else if (reserve(buf, (size_t)len)) {
		vsnprintf(buf->text + buf->len, (size_t)len + 1, fmt, again);
		buf->len += (size_t)len;
	}
	va_end(again);
}

void tti_strbuf_addf(struct tti_strbuf *buf, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	tti_strbuf_vaddf(buf, fmt, args);
	va_end(args);
}

char *tti_strbuf_take(struct tti_strbuf *buf)
{
	char *text;

	tti_strbuf_add(buf, "");
	text = buf->failed ? NULL : buf->text;
	if (buf->failed)
		tti_free(buf->text);
	*buf = (struct tti_strbuf){ 0 };
	return text;
}

void tti_strbuf_release(struct tti_strbuf *buf)
{
	tti_free(buf->text);
	*buf = (struct tti_strbuf){ 0 };
}

/* One past the last of the run that starts at `first`: a, a+1, a+2, ... */
static size_t run_end(const int *ranks, size_t n, size_t first)
{
	size_t end = first + 1;

	while (end < n && ranks[end - 1] < INT_MAX && ranks[end] == ranks[end - 1] + 1)
		end++;
	return end;
}

void tti_format_ranks(char *buf, size_t size, const int *ranks, size_t n)
{
	size_t len = 0;

	if (size == 0)
		return;
	buf[0] = '\0';
	for (size_t first = 0, end; first < n; first = end) {
		const char *comma = first ? ", " : "";
		char item[40];
		size_t more;

		end = run_end(ranks, n, first);
		if (end - first == 1)
			snprintf(item, sizeof(item), "%s%d", comma, ranks[first]);
		else
			snprintf(item, sizeof(item), "%s%d-%d", comma, ranks[first],
				 ranks[end - 1]);
		more = strlen(item) + (end < n ? strlen(", ...") : 0);
		if (more >= size - len) {
			snprintf(buf + len, size - len, "%s...", comma);
			return;
		}
		len += (size_t)snprintf(buf + len, size - len, "%s", item);
	}
}

/* Where "..." follows if a text may have `most` bytes. */
static size_t cut_at(const char *text, size_t most)
{
	const size_t room = most > strlen("...") ? most - strlen("...") : 0;
	size_t part = 0, word = 0;

	for (size_t at = 1; at <= room; at++) {
		word = text[at - 1] == ' ' ? at : word;
		part = at > 1 && text[at - 1] == ' ' && text[at - 2] == ';' ? at : part;
	}
	return part ? part : word ? word : room;
}

void tti_copy_list(char *out, size_t size, const char *text)
{
	if (strlen(text) < size)
		memcpy(out, text, strlen(text) + 1);
	else
		snprintf(out, size, "%.*s...", (int)cut_at(text, size - 1), text);
}
