/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/choose/forced.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"

/* -- Words ------------------------------------------------------------------------- */

struct word {
	const char *at;
	size_t len;
};

/* The next word of [*at, end) up to `stop`, without blanks around it. */
static struct word next_word(const char **at, const char *end, char stop)
{
	const char *from = *at, *to;

	while (*at < end && **at != stop)
		(*at)++;
	to = *at;
	if (*at < end)
		(*at)++;
	while (from < to && *from == ' ')
		from++;
	while (to > from && to[-1] == ' ')
		to--;
	return (struct word){ from, (size_t)(to - from) };
}

static bool word_is(struct word word, const char *text)
{
	return strlen(text) == word.len && memcmp(word.at, text, word.len) == 0;
}

/* How much of a word a message shows. */
static int shown(struct word word)
{
	return word.len < 60 ? (int)word.len : 60;
}

/* -- Names ------------------------------------------------------------------------- */

/* The i-th of a collective, files after the library's; NULL: past the last. */
static const struct tti_algorithm *algorithm_at(tutti_collective coll,
						const struct tti_algo_files *files, int index)
{
	const struct tti_algorithm *algo;
	int own = 0;

	while (own <= index && (algo = tti_algorithm_at(coll, own)))
		if (own++ == index)
			return algo;
	for (size_t i = 0; files && i < files->files.n; i++)
		if (files->files.at[i]->algo.coll == coll && own++ == index)
			return &files->files.at[i]->algo;
	return NULL;
}

/* Whether the word stands in the name, between underscores or its ends. */
static bool is_part(struct word word, const char *name)
{
	while (name) {
		const char *stop = strchr(name, '_');

		if ((stop ? (size_t)(stop - name) : strlen(name)) == word.len &&
		    memcmp(name, word.at, word.len) == 0)
			return true;
		name = stop ? stop + 1 : NULL;
	}
	return false;
}

/* The full name that a word stands for; NULL: none, or *several. */
static const char *full_name(tutti_collective coll, const struct tti_algo_files *files,
			     struct word word, bool *several)
{
	const struct tti_algorithm *algo;
	const char *found = NULL;

	*several = false;
	for (int i = 0; (algo = algorithm_at(coll, files, i)); i++) {
		if (word_is(word, algo->name))
			return algo->name;
		if (!is_part(word, algo->name) || (found && strcmp(found, algo->name) == 0))
			continue;
		*several |= found != NULL;
		found = algo->name;
	}
	return *several ? NULL : found;
}

void tti_forced_names(tutti_collective coll, enum tti_order order,
		      const struct tti_algo_files *files, char *buf, size_t size)
{
	const struct tti_algorithm *algo;
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; (algo = algorithm_at(coll, files, i)) && used < size; i++) {
		const int len = algo->order < order ? 0
						    : snprintf(buf + used, size - used, "%s%s",
							       used ? ", " : "", algo->name);

		used += len > 0 ? (size_t)len : 0;
	}
}

/* -- Sizes ------------------------------------------------------------------------- */

/* Digits, then K, M or G or nothing. */
static bool read_size(struct word word, size_t *out)
{
	static const char units[] = "KMG";
	const char *unit = word.len ? strchr(units, word.at[word.len - 1]) : NULL;
	const int shift = unit && *unit ? 10 * (int)(unit - units + 1) : 0;
	const size_t digits = word.len - (shift > 0);
	size_t value = 0;

	if (digits < 1 || digits > 10)
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (word.at[i] < '0' || word.at[i] > '9')
			return false;
		value = 10 * value + (size_t)(word.at[i] - '0');
	}
	*out = value << shift;
	return true;
}

struct range {
	size_t min, max;
};

/* MIN-MAX, of which one may be missing. */
static tutti_status read_range(struct word word, struct range *out)
{
	const char *at = word.at, *const end = word.at + word.len;
	const struct word min = next_word(&at, end, '-');
	const bool has_dash = at > word.at && at[-1] == '-';
	const struct word max = { at, (size_t)(end - at) };

	*out = (struct range){ 0, SIZE_MAX };
	if (has_dash && (min.len || max.len) && (!min.len || read_size(min, &out->min)) &&
	    (!max.len || read_size(max, &out->max)) && out->min <= out->max)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL,
			"TUTTI_ALGO: \"%.*s\" is no range of sizes; write 64K-1M, 64K- or -1M",
			shown(word), word.at);
}

/* -- Entries ----------------------------------------------------------------------- */

struct entry {
	struct word text;
	tutti_collective coll; /* TUTTI_COLLECTIVE_COUNT: all that have one of the names */
	struct range range;
	struct tti_forced forced;
};

static bool is_collective(struct word word)
{
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		if (word_is(word, tutti_collective_name((tutti_collective)coll)))
			return true;
	return false;
}

static tutti_status find_collective(struct word word, tutti_collective *out)
{
	char names[300] = "";
	size_t used = 0;

	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++) {
		const char *name = tutti_collective_name((tutti_collective)coll);

		*out = (tutti_collective)coll;
		if (word_is(word, name))
			return TUTTI_OK;
		if (tti_algorithm_at(*out, 0) && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "", name);
	}
	return tti_fail(TUTTI_EINVAL, "TUTTI_ALGO: no collective \"%.*s\": there are %s",
			shown(word), word.at, names);
}

/* Why a word is not a name; coll TUTTI_COLLECTIVE_COUNT: of any. */
static tutti_status fail_name(tutti_collective coll, const struct tti_algo_files *files,
			      struct word word, bool several)
{
	const bool any = coll == TUTTI_COLLECTIVE_COUNT;
	char names[300] = "";

	if (word.len && word.at[0] == '^')
		return tti_fail(TUTTI_EINVAL,
				"TUTTI_ALGO: %s: ^ stands before the list and excludes all of it, "
				"not before one name of it",
				any ? "all collectives" : tutti_collective_name(coll));
	if (any)
		return tti_fail(TUTTI_EINVAL,
				"TUTTI_ALGO: no collective has one algorithm \"%.*s\": `tutti show "
				"COLLECTIVE` lists those that there are",
				shown(word), word.at);
	tti_forced_names(coll, TTI_ORDER_ANY, files, names, sizeof(names));
	return tti_fail(TUTTI_EINVAL, "TUTTI_ALGO: %s has %s algorithm \"%.*s\": it has %s",
			tutti_collective_name(coll), several ? "more than one" : "no", shown(word),
			word.at, names);
}

/* Whether a word is a name of that collective; of any, if it is for all. */
static tutti_status check_name(tutti_collective coll, const struct tti_algo_files *files,
			       struct word word)
{
	const bool any = coll == TUTTI_COLLECTIVE_COUNT;
	const int first = any ? 0 : (int)coll;
	const int last = any ? TUTTI_COLLECTIVE_COUNT - 1 : (int)coll;
	bool several = false;

	for (int c = first; c <= last; c++)
		if (full_name((tutti_collective)c, files, word, &several))
			return TUTTI_OK;
	return fail_name(coll, files, word, several);
}

/* COLLECTIVE[@RANGE]:LIST, or LIST. */
static tutti_status read_entry(struct word text, const struct tti_algo_files *files,
			       struct entry *out)
{
	const char *at = text.at, *const end = text.at + text.len;
	const bool has_name = memchr(text.at, ':', text.len) != NULL;
	struct word name = has_name ? next_word(&at, end, ':') : (struct word){ at, 0 };
	const char *to = name.at, *const name_end = name.at + name.len;

	*out = (struct entry){ .text = text,
			       .coll = TUTTI_COLLECTIVE_COUNT,
			       .range = { 0, SIZE_MAX } };
	if (has_name) {
		const struct word coll = next_word(&to, name_end, '@');

		TTI_TRY(find_collective(coll, &out->coll));
		if (coll.len < name.len)
			TTI_TRY(read_range((struct word){ to, (size_t)(name_end - to) },
					   &out->range));
	}
	while (at < end && *at == ' ')
		at++;
	if (at == end || (!has_name && is_collective(text)))
		return tti_fail(TUTTI_EINVAL, "TUTTI_ALGO: no algorithm after \"%.*s\"",
				shown(text), text.at);
	out->forced.excludes = *at == '^';
	at += out->forced.excludes;
	out->forced.at = at;
	out->forced.end = end;
	do
		TTI_TRY(check_name(out->coll, files, next_word(&at, end, ',')));
	while (at < end);
	return TUTTI_OK;
}

/* Whether an entry for all names an algorithm of a collective. */
static bool names_any(const struct tti_forced *forced, tutti_collective coll,
		      const struct tti_algo_files *files)
{
	const char *at = forced->at;
	bool several;

	while (at < forced->end)
		if (full_name(coll, files, next_word(&at, forced->end, ','), &several))
			return true;
	return false;
}

tutti_status tti_forced_read(const char *text, tutti_collective coll, size_t nbytes,
			     const struct tti_algo_files *files, struct tti_forced *out)
{
	const char *at = text, *const end = text ? text + strlen(text) : NULL;
	bool for_all = true;

	memset(out, 0, sizeof(*out));
	while (at < end) {
		const struct word word = next_word(&at, end, ';');
		struct entry entry;

		if (!word.len)
			continue;
		TTI_TRY(read_entry(word, files, &entry));
		if (entry.coll == TUTTI_COLLECTIVE_COUNT) {
			if (!out->at && names_any(&entry.forced, coll, files)) {
				*out = entry.forced;
				out->for_all = true;
			}
		} else if (entry.coll == coll && nbytes >= entry.range.min &&
			   nbytes <= entry.range.max) {
			if (!for_all)
				return tti_fail(
					TUTTI_EINVAL,
					"TUTTI_ALGO names %s twice for %zu bytes: leave one entry",
					tutti_collective_name(coll), nbytes);
			*out = entry.forced;
			for_all = false;
		}
	}
	return TUTTI_OK;
}

int tti_forced_find(const struct tti_forced *forced, const struct tti_algo_files *files,
		    const struct tti_algorithm *algo)
{
	const char *at = forced->at;
	bool several;

	for (int index = 0; at && at < forced->end; index++) {
		const char *name =
			full_name(algo->coll, files, next_word(&at, forced->end, ','), &several);

		if (name && strcmp(name, algo->name) == 0)
			return index;
	}
	return -1;
}
