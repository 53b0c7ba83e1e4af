/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_JSON_H
#define TTI_UTIL_JSON_H

/* JSON, written into a buffer value by value, so that there is never a tree of it in memory.
 * Commas, quotes, escapes and line breaks come by themselves:
 *
 *     struct tti_json json = { .out = &buf };
 *
 *     tti_json_open(&json, NULL, "{\n");
 *     tti_json_text(&json, "name", name);
 *     tti_json_addf(&json, "ranks", "%u", nranks);
 *     tti_json_close(&json);
 *
 * A member of an object has a key; an element of an array and the outermost value have NULL.
 * Out of memory: out->failed.
 * Owner: who holds the struct. Threads: not synchronised. */

#include <stdbool.h>

#include "util/strbuf.h"

#define TTI_JSON_DEPTH 12

struct tti_json {
	struct tti_strbuf *out;
	bool spaced; /* a blank behind each comma and colon */
	/* Private. */
	bool comma;
	int depth, nlines;
	struct {
		char bracket;
		bool lines;
	} open[TTI_JSON_DEPTH];
};

/* `bracket` is "{" or "["; "{\n" or "[\n": each member stands on a line of its own. A blank in
 * front of the bracket is written. */
void tti_json_open(struct tti_json *json, const char *key, const char *bracket);
void tti_json_close(struct tti_json *json);

/* A string; NULL is "". Bytes that are no UTF-8, as a name of a file may hold, become '?'. */
void tti_json_text(struct tti_json *json, const char *key, const char *text);
void tti_json_bool(struct tti_json *json, const char *key, bool value);
/* A real number to so many digits, with a point or an exponent. */
void tti_json_real(struct tti_json *json, const char *key, double value, int digits);
/* Any other value, as the format writes it: a number, "null", a string without escapes. */
TUTTI_PRINTF(3, 4)
void tti_json_addf(struct tti_json *json, const char *key, const char *fmt, ...);

#endif
