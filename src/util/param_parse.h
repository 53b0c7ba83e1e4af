/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_PARAM_PARSE_H
#define TTI_UTIL_PARAM_PARSE_H

/* One value of a parameter: text to value and back. Private to params.c and
 * its tests. Threads: any; nothing here keeps state. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, text) */
#define TTI_PARAM_TYPE_MAP(X) \
	X(INT, "int")         \
	X(SIZE, "size")       \
	X(BOOL, "bool")       \
	X(MS, "ms")           \
	X(ENUM, "enum")       \
	X(STR, "str")         \
	X(PATH, "path")       \
	X(SECRET, "secret")

enum tti_param_type {
#define X(name, text) TTI_PARAM_##name,
	TTI_PARAM_TYPE_MAP(X)
#undef X
};

struct tti_param_parsed {
	int64_t number;   /* INT, SIZE, BOOL, MS, and the index of an ENUM */
	const char *text; /* STR, PATH, SECRET: as passed; NULL if empty   */
};

/* Whether `text` is a value of the type within the range ("lo:hi", either may
 * be missing; "a|b|c" for ENUM; "": any). *out is written if so. */
bool tti_param_parse(enum tti_param_type type, const char *range, const char *text,
		     struct tti_param_parsed *out);

/* A value as one would write it: "256K". */
void tti_param_format(enum tti_param_type type, const char *range, int64_t number, char *buf,
		      size_t size);

/* The text of the environment as it may be shown: cut to a size, and with
 * \xNN for what is not printable ASCII. */
void tti_param_quote(const char *text, size_t len, char *buf, size_t size);

#endif
