/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/json.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"

/* What stands before a value. */
static void begin(struct tti_json *json, const char *key)
{
	if (json->comma)
		tti_strbuf_add(json->out, json->spaced ? ", " : ",");
	if (json->depth && json->open[json->depth - 1].lines)
		tti_strbuf_addf(json->out, "\n%*s", 2 * json->nlines, "");
	if (key)
		tti_strbuf_addf(json->out, "\"%s\":%s", key, json->spaced ? " " : "");
	json->comma = true;
}

void tti_json_open(struct tti_json *json, const char *key, const char *bracket)
{
	const bool lines = strchr(bracket, '\n') != NULL;

	tti_assert(json->depth < TTI_JSON_DEPTH);
	begin(json, key);
	tti_strbuf_addf(json->out, "%.*s", (int)strcspn(bracket, "\n"), bracket);
	json->open[json->depth].bracket = strchr(bracket, '{') ? '}' : ']';
	json->open[json->depth++].lines = lines;
	json->nlines += lines;
	json->comma = false;
}

void tti_json_close(struct tti_json *json)
{
	bool lines;

	tti_assert(json->depth > 0);
	lines = json->open[--json->depth].lines;
	json->nlines -= lines;
	if (lines)
		tti_strbuf_addf(json->out, "\n%*s", 2 * json->nlines, "");
	tti_strbuf_addf(json->out, "%c", json->open[json->depth].bracket);
	json->comma = true;
}

/* As jansson writes it; takes `value`. */
static void dump(struct tti_json *json, json_t *value, size_t flags)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | flags) : NULL;

	if (text)
		tti_strbuf_add(json->out, text);
	else
		json->out->failed = true;
	free(text);
	json_decref(value);
}

void tti_json_text(struct tti_json *json, const char *key, const char *text)
{
	json_t *string = json_string(text ? text : "");
	char *ascii = string || !text ? NULL : tti_strdup(text);

	for (char *at = ascii; at && *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	begin(json, key);
	dump(json, string ? string : json_string(ascii), 0);
	tti_free(ascii);
}

void tti_json_bool(struct tti_json *json, const char *key, bool value)
{
	begin(json, key);
	tti_strbuf_add(json->out, value ? "true" : "false");
}

void tti_json_real(struct tti_json *json, const char *key, double value, int digits)
{
	begin(json, key);
	dump(json, json_real(value), JSON_REAL_PRECISION((size_t)digits));
}

void tti_json_addf(struct tti_json *json, const char *key, const char *fmt, ...)
{
	va_list args;

	begin(json, key);
	va_start(args, fmt);
	tti_strbuf_vaddf(json->out, fmt, args);
	va_end(args);
}
