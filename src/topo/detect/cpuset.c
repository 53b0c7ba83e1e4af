/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/cpuset.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t word_at(const struct tti_cpuset *set, size_t i)
{
	return i < set->words.n ? set->words.at[i] : 0;
}

static bool widen(struct tti_cpuset *set, size_t nwords)
{
	while (set->words.n < nwords && !set->failed)
		set->failed = !tti_vec_push(&set->words, 0);
	return !set->failed;
}

void tti_cpuset_release(struct tti_cpuset *set)
{
	tti_vec_release(&set->words);
}

bool tti_cpuset_add(struct tti_cpuset *set, uint64_t first, uint64_t last)
{
	if (last >= TTI_CPUSET_MAX || first > last || !widen(set, last / 32 + 1))
		return false;
	for (uint64_t cpu = first; cpu <= last; cpu++)
		set->words.at[cpu / 32] |= UINT32_C(1) << cpu % 32;
	return true;
}

static bool fail_empty(struct tti_cpuset *set)
{
	tti_cpuset_release(set);
	return false;
}

/* -- Text --------------------------------------------------------------------------- */

static size_t count_words(const char *text)
{
	size_t n = 1;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

bool tti_cpuset_parse_map(struct tti_cpuset *set, const char *text)
{
	size_t at;

	tti_cpuset_release(set);
	text += strspn(text, " \t");
	at = count_words(text);
	if (at > TTI_CPUSET_MAX / 32 || !widen(set, at))
		return fail_empty(set);
	while (at-- > 0) {
		char *end;
		unsigned long word;

		if (!isxdigit((unsigned char)text[0]))
			return fail_empty(set);
		errno = 0;
		word = strtoul(text, &end, 16);
		if (errno != 0 || word > UINT32_MAX || end[0] != (at > 0 ? ',' : '\0'))
			return fail_empty(set);
		set->words.at[at] = (uint32_t)word;
		text = end + 1;
	}
	return true;
}

/* Read a number at *text, and move *text behind it. */
static bool number(const char **text, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*out = strtoull(*text, &end, 10);
	*text = end;
	return errno == 0;
}

bool tti_cpuset_parse_list(struct tti_cpuset *set, const char *text)
{
	tti_cpuset_release(set);
	text += strspn(text, " \t");
	while (*text) {
		uint64_t first, last;

		if (!number(&text, &first))
			return fail_empty(set);
		last = first;
		if (*text == '-' && (text++, !number(&text, &last)))
			return fail_empty(set);
		if (!tti_cpuset_add(set, first, last) || (*text && *text != ','))
			return fail_empty(set);
		text += *text == ',';
	}
	return true;
}

/* Room for the map of all CPUs that Linux can be built for, and for most lists. */
#define TEXT_BYTES 20480

bool tti_cpuset_read(struct tti_cpuset *set, const struct tti_sysfs *sysfs,
		     bool (*parse)(struct tti_cpuset *, const char *), const char *fmt, ...)
{
	char path[PATH_MAX], text[TEXT_BYTES];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	/* Most kernels write a page at most, and cut what is longer in the middle of a number. */
	if (n < 0 || (size_t)n >= sizeof(path) ||
	    !tti_sysfs_line(sysfs, text, sizeof(text), "%s", path) ||
	    strlen(text) >= sizeof(text) - 1 || strlen(text) == 4095)
		return fail_empty(set);
	return parse(set, text);
}

void tti_cpuset_format(const struct tti_cpuset *set, struct tti_strbuf *out)
{
	size_t n = set->words.n;

	while (n > 1 && word_at(set, n - 1) == 0)
		n--;
	if (n == 0)
		tti_strbuf_add(out, "00000000");
	while (n-- > 0)
		tti_strbuf_addf(out, "%08x%s", word_at(set, n), n > 0 ? "," : "");
}

/* -- Comparing ---------------------------------------------------------------------- */

bool tti_cpuset_has(const struct tti_cpuset *set, uint64_t cpu)
{
	return cpu < TTI_CPUSET_MAX && word_at(set, cpu / 32) >> cpu % 32 & 1;
}

bool tti_cpuset_is_empty(const struct tti_cpuset *set)
{
	return tti_cpuset_next(set, 0) == TTI_CPUSET_MAX;
}

bool tti_cpuset_is_within(const struct tti_cpuset *set, const struct tti_cpuset *other)
{
	for (size_t i = 0; i < set->words.n; i++)
		if (word_at(set, i) & ~word_at(other, i))
			return false;
	return true;
}

bool tti_cpuset_meets(const struct tti_cpuset *set, const struct tti_cpuset *other)
{
	for (size_t i = 0; i < set->words.n; i++)
		if (word_at(set, i) & word_at(other, i))
			return true;
	return false;
}

void tti_cpuset_and(struct tti_cpuset *set, const struct tti_cpuset *other)
{
	for (size_t i = 0; i < set->words.n; i++)
		set->words.at[i] &= word_at(other, i);
}

uint64_t tti_cpuset_next(const struct tti_cpuset *set, uint64_t from)
{
	while (from < (uint64_t)set->words.n * 32 && !tti_cpuset_has(set, from))
		from++;
	return from < (uint64_t)set->words.n * 32 ? from : TTI_CPUSET_MAX;
}
