/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/param_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* isdigit() and friends depend on the program's locale. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static unsigned shift_of(char suffix)
{
	switch (suffix) {
	case 'k':
	case 'K':
		return 10;
	case 'm':
	case 'M':
		return 20;
	case 'g':
	case 'G':
		return 30;
	default:
		return 0;
	}
}

/* The number in text[0 .. len-1], blanks around it allowed. */
static bool parse_number(const char *text, size_t len, bool suffix, int64_t *out)
{
	bool negative = false;
	unsigned shift = 0;
	int64_t number = 0;

	for (; len && is_space(*text); len--)
		text++;
	for (; len && is_space(text[len - 1]); len--)
		;
	if (suffix && len && (shift = shift_of(text[len - 1])))
		len--;
	if (len && (*text == '-' || *text == '+')) {
		negative = *text++ == '-';
		len--;
	}
	if (!len)
		return false;
	for (; len; len--, text++) {
		if (!is_digit(*text) || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *text - '0', &number))
			return false;
	}
	if (number > INT64_MAX >> shift)
		return false;
	number <<= shift;
	*out = negative ? -number : number;
	return true;
}

static bool in_range(int64_t number, const char *range, bool suffix)
{
	const char *colon = strchr(range, ':');
	int64_t bound;

	if (!colon)
		return true;
	if (parse_number(range, (size_t)(colon - range), suffix, &bound) && number < bound)
		return false;
	return !parse_number(colon + 1, strlen(colon + 1), suffix, &bound) || number <= bound;
}

/* The index of text in "a|b|c", -1 if it is not there. */
static int enum_index(const char *range, const char *text)
{
	const size_t want = strlen(text);

	for (int i = 0;; i++) {
		const size_t len = strcspn(range, "|");

		if (len == want && !strncasecmp(range, text, len))
			return i;
		if (range[len] == '\0')
			return -1;
		range += len + 1;
	}
}

bool tti_param_parse(enum tti_param_type type, const char *range, const char *text,
		     struct tti_param_parsed *out)
{
	const bool suffix = type == TTI_PARAM_SIZE;
	struct tti_param_parsed value = { 0 };

	switch (type) {
	case TTI_PARAM_BOOL:
		range = "0:1";
		__attribute__((fallthrough));
	case TTI_PARAM_INT:
	case TTI_PARAM_SIZE:
	case TTI_PARAM_MS:
		if (!parse_number(text, strlen(text), suffix, &value.number) ||
		    !in_range(value.number, range, suffix))
			return false;
		if (suffix && value.number < 0)
			return false;
		break;
	case TTI_PARAM_ENUM:
		value.number = enum_index(range, text);
		if (value.number < 0)
			return false;
		break;
	case TTI_PARAM_STR:
	case TTI_PARAM_PATH:
	case TTI_PARAM_SECRET:
		value.text = *text ? text : NULL;
		break;
	}
	*out = value;
	return true;
}

static void format_size(int64_t number, char *buf, size_t size)
{
	static const char suffix[][2] = { "", "K", "M", "G" };
	int i = 0;

	for (; i < 3 && number && number % 1024 == 0; i++)
		number /= 1024;
	snprintf(buf, size, "%" PRId64 "%s", number, suffix[i]);
}

void tti_param_format(enum tti_param_type type, const char *range, int64_t number, char *buf,
		      size_t size)
{
	if (type == TTI_PARAM_SIZE) {
		format_size(number, buf, size);
	} else if (type == TTI_PARAM_ENUM) {
		for (; number > 0; number--)
			range += strcspn(range, "|") + 1;
		snprintf(buf, size, "%.*s", (int)strcspn(range, "|"), range);
	} else {
		snprintf(buf, size, "%" PRId64, number);
	}
}

void tti_param_quote(const char *text, size_t len, char *buf, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)text[i];
		const bool plain = c >= ' ' && c < 0x7f;
		const size_t more = plain ? 1 : 4;

		/* Always room for the "..." that a cut ends in. */
		if (used + more + 4 > size) {
			snprintf(buf + used, size - used, "...");
			return;
		}
		used += (size_t)snprintf(buf + used, size - used, plain ? "%c" : "\\x%02x", c);
	}
	buf[used] = '\0';
}
