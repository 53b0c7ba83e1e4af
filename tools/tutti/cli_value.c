/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of options: from words to fields. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "names.h"
#include "tool.h"

bool cli_int(const char *label, const char *text, int min, int max, int *out)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (end == text || *end || errno || value < min || value > max) {
		if (max == INT_MAX)
			tool_bad_usage("%s '%s' is no number of at least %d", label, text, min);
		else
			tool_bad_usage("%s '%s' is no number from %d to %d%s", label, text, min,
				       max,
				       strcmp(text, "p") == 0 ? " (-np of mpirun is -n here)" : "");
		return false;
	}
	*out = (int)value;
	return true;
}

bool cli_size(const char *label, const char *text, size_t min, size_t *out)
{
	static const char suffixes[] = "KMGT";
	unsigned long long value;
	const char *suffix;
	unsigned shift = 0;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end && end != text) {
		suffix = strchr(suffixes, *end >= 'a' ? *end - 'a' + 'A' : *end);
		if (suffix) {
			shift = 10 * (unsigned)(suffix - suffixes + 1);
			end++;
			/* 64K, 64KB and 64KiB are the same thing to everybody */
			if (*end == 'i')
				end++;
			if (*end == 'B' || *end == 'b')
				end++;
		}
	}
	if (end == text || *end || errno || text[0] == '-' || value > (SIZE_MAX / 2) >> shift ||
	    value << shift < min) {
		tool_bad_usage("%s '%s' is no size of at least %zu: give bytes, or 64K, 16M, 1G "
			       "(times 1024)",
			       label, text, min);
		return false;
	}
	*out = (size_t)(value << shift);
	return true;
}

static bool read_seconds(const char *label, const char *text, double *out)
{
	char *end;
	const double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.001 && seconds <= 3600)) {
		tool_bad_usage("%s '%s' is no time from 0.001 to 3600 seconds", label, text);
		return false;
	}
	*out = seconds;
	return true;
}

/* "3" or "0-3" at *text, which moves behind it. */
static bool read_range(const char **text, long *first, long *last)
{
	char *end;

	*first = *last = strtol(*text, &end, 10);
	if (end == *text)
		return false;
	if (*end == '-') {
		*text = end + 1;
		*last = strtol(*text, &end, 10);
	}
	if (end == *text || *first < 0 || *last < *first)
		return false;
	*text = end;
	return true;
}

static bool read_ranks(const char *label, const char *text, int most, struct cli_ranks *out)
{
	const char *at = text;
	long first, last;

	out->n = 0;
	while (read_range(&at, &first, &last) && last < most && (*at == ',' || !*at)) {
		int *const more =
			realloc(out->at, (size_t)(out->n + last - first + 1) * sizeof(*out->at));

		if (!more) {
			tool_fail("out of memory for the ranks '%s'", text);
			return false;
		}
		out->at = more;
		while (first <= last)
			more[out->n++] = (int)first++;
		if (!*at++)
			return true;
	}
	tool_bad_usage("%s '%s' is no list of ranks: 0-3, or 0,2,5-7", label, text);
	return false;
}

static bool add_text(struct cli_list *list, const char *text)
{
	const char **const more = realloc(list->at, ((size_t)list->n + 1) * sizeof(*list->at));

	if (!more) {
		tool_fail("out of memory");
		return false;
	}
	list->at = more;
	list->at[list->n++] = text;
	return true;
}

static const char *word_at(const void *self, int i)
{
	const struct cli_option *const option = self;

	return option->names ? option->names(NULL, i) : option->words[i];
}

static bool read_word(const struct cli_option *option, const char *label, const char *text,
		      int *out)
{
	const struct names names = { word_at, option };
	char what[64];
	int found;

	if (option->metavar)
		snprintf(what, sizeof(what), "there is no %s", option->metavar);
	else
		snprintf(what, sizeof(what), "%s", label);
	for (char *c = what; option->metavar && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	found = names_choose(&names, what, text);
	*out = option->min + found;
	return found >= 0;
}

/* A text may not be empty: "--xml $FILE" without a FILE is no request for what there is without it. */
static bool is_text(const struct cli_option *option, const char *label, const char *value)
{
	if (!*value)
		tool_bad_usage("%s: its value is empty: give %s", label,
			       option->metavar ? option->metavar : option->help);
	return *value;
}

bool cli_store(const struct cli_option *option, const char *label, const char *value, void *field)
{
	switch (option->kind) {
	case CLI_FLAG:
		*(bool *)field = true;
		return true;
	case CLI_SWITCH:
		*(int *)field = 1;
		return true;
	case CLI_TEXT:
	case CLI_FILE:
		*(const char **)field = value;
		return is_text(option, label, value);
	case CLI_TEXTS:
	case CLI_FILES:
		return is_text(option, label, value) && add_text(field, value);
	case CLI_INT:
		return cli_int(label, value, option->min, option->max, field);
	case CLI_SIZE:
		return cli_size(label, value, (size_t)option->min, field);
	case CLI_SECONDS:
		return read_seconds(label, value, field);
	case CLI_RANKS:
		return read_ranks(label, value, option->max, field);
	case CLI_WORD:
		return read_word(option, label, value, field);
	case CLI_CALL:
		return option->take(label, value, field);
	case CLI_PROGRAM:
	case CLI_GROUP:
	case CLI_END:
		break;
	}
	return false;
}
