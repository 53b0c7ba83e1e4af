/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/tune/tune.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fd.h"
#include "util/hash.h"
#include "util/mem.h"
#include "util/strbuf.h"
#include "util/vec.h"

/* More is no tune file. */
#define FILE_MOST (1 << 20)
#define WORD_MOST 64
#define WORDS     8

static const struct constant {
	const char *name;
	size_t offset;
	double value;
} constants[] = {
#define X(name, value, what, source) { #name, offsetof(struct tti_tune_constants, name), (value) },
	TTI_TUNE_CONSTANT_MAP(X)
#undef X
};
#define NCONSTANTS (sizeof(constants) / sizeof(constants[0]))

static const struct figure {
	const char *name;
	size_t offset;
	const char *what;
} figures[] = {
#define X(name, what) { #name, offsetof(struct tti_reach_figures, name), (what) },
	TTI_REACH_FIGURE_MAP(X)
#undef X
};
#define NFIGURES (sizeof(figures) / sizeof(figures[0]))

static const char *const reaches[] = {
	[TTI_REACH_SLOTS] = "slots",
	[TTI_REACH_MAPPED] = "mapped",
	[TTI_REACH_COPIED] = "copied",
};

const char *tti_tune_reach_name(enum tti_reach reach)
{
	return reaches[reach];
}

static uint32_t *figure_of(struct tti_reach_figures *all, const struct figure *figure)
{
	return (uint32_t *)((char *)all + figure->offset);
}

static double *value_of(struct tti_tune_constants *all, const struct constant *constant)
{
	return (double *)((char *)all + constant->offset);
}

struct tti_tune_table tti_tune_defaults(void)
{
	struct tti_tune_table table = { .rules = NULL };

	for (size_t i = 0; i < NCONSTANTS; i++)
		*value_of(&table.constants, &constants[i]) = constants[i].value;
	return table;
}

void tti_tune_table_free(struct tti_tune_table *table)
{
	if (!table)
		return;
	tti_free(table->rules);
	tti_free(table);
}

/* -- Reading ----------------------------------------------------------------------- */

struct reader {
	const char *source;
	uint32_t line;
	char word[WORDS + 1][WORD_MOST];
	uint32_t nwords;
	struct tti_tune_table *table;
	TTI_VEC(struct tti_tune_rule) rules;
};

/* A rate must be above 0; a time may be 0; nothing may be so far off that sums of such
 * overflow. */
static bool sensible(const char *name, double value)
{
	const size_t len = strlen(name);
	const bool is_time = len > 3 && strcmp(name + len - 3, "_us") == 0;

	return isfinite(value) && value <= 1e12 && (is_time ? value >= 0 : value >= 1e-6);
}

static tutti_status read_constant(struct reader *in)
{
	for (size_t i = 0; i < NCONSTANTS; i++) {
		char *end;
		double value;

		if (strcmp(constants[i].name, in->word[1]) != 0)
			continue;
		value = strtod(in->word[2], &end);
		if (*end != '\0' || end == in->word[2] || !sensible(in->word[1], value))
			return tti_fail(TUTTI_EINVAL, "%s:%u: %s \"%s\" is no %s", in->source,
					in->line, in->word[1], in->word[2],
					"number, or out of range: times from 0, others from 1e-6, "
					"to 1e12");
		*value_of(&in->table->constants, &constants[i]) = value;
		return TUTTI_OK;
	}
	return tti_fail(TUTTI_EINVAL,
			"%s:%u: there is no constant \"%s\": `tutti tune --file` lists them",
			in->source, in->line, in->word[1]);
}

/* 1 to INT32_MAX. */
static bool parse_count(const char *text, uint32_t *out)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 10);

	*out = (uint32_t)value;
	return *end == '\0' && text[0] >= '0' && text[0] <= '9' && value >= 1 && value <= INT32_MAX;
}

/* How memory was measured to be reached. */
static tutti_status read_figure(struct reader *in)
{
	for (size_t i = 0; i < NFIGURES; i++)
		if (strcmp(figures[i].name, in->word[1]) == 0)
			return parse_count(in->word[2], figure_of(&in->table->figures, &figures[i]))
				       ? TUTTI_OK
				       : tti_fail(TUTTI_EINVAL,
						  "%s:%u: %s \"%s\" is no whole number from 1",
						  in->source, in->line, in->word[1], in->word[2]);
	return tti_fail(TUTTI_EINVAL, "%s:%u: there is no figure \"%s\" of reach", in->source,
			in->line, in->word[1]);
}

/* All or none: how ordinary memory is reached is decided by all of them. */
static tutti_status check_figures(struct reader *in)
{
	size_t nmissing = 0;
	const char *missing = NULL;

	for (size_t i = 0; i < NFIGURES; i++)
		if (!*figure_of(&in->table->figures, &figures[i])) {
			missing = figures[i].name;
			nmissing++;
		}
	return nmissing == 0 || nmissing == NFIGURES ? TUTTI_OK
						     : tti_fail(TUTTI_EINVAL,
								"%s: it has a line \"reach ...\", "
								"but none \"reach %s\": write all "
								"that `tutti tune` does, or none",
								in->source, missing);
}

/* What is behind the size in *end. */
static bool parse_size(const char *text, const char **end, size_t *out)
{
	static const char units[] = "KMG";
	unsigned long long value;
	const char *unit;
	int shift = 0;
	char *at;

	if (strncmp(text, "inf", 3) == 0) {
		*end = text + 3;
		*out = SIZE_MAX;
		return true;
	}
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtoull(text, &at, 10);
	unit = *at ? strchr(units, *at) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - units + 1);
		at++;
	}
	if (errno || value > SIZE_MAX >> shift)
		return false;
	*end = at;
	*out = (size_t)value << shift;
	return true;
}

/* UPTO, or FROM-UPTO. */
static bool parse_sizes(const char *text, struct tti_tune_rule *rule)
{
	const char *end;

	rule->from = 0;
	if (!parse_size(text, &end, &rule->upto))
		return false;
	if (*end == '-') {
		rule->from = rule->upto;
		if (!parse_size(end + 1, &end, &rule->upto))
			return false;
	}
	return *end == '\0' && rule->from <= rule->upto;
}

static bool parse_collective(const char *text, tutti_collective *out)
{
	for (int i = 0; i < TUTTI_COLLECTIVE_COUNT; i++)
		if (strcmp(tutti_collective_name((tutti_collective)i), text) == 0) {
			*out = (tutti_collective)i;
			return true;
		}
	return false;
}

static bool parse_reach(const char *text, enum tti_reach *out)
{
	for (int i = 0; i <= TTI_REACH_COPIED; i++)
		if (strcmp(reaches[i], text) == 0) {
			*out = (enum tti_reach)i;
			return true;
		}
	return false;
}

/* "ranks N" and "reach REACH", if they are there. */
static tutti_status read_where(const struct reader *in, struct tti_tune_rule *rule)
{
	uint32_t at = 4;

	if (at < in->nwords && strcmp(in->word[at], "reach") != 0) {
		if (strcmp(in->word[at], "ranks") != 0 ||
		    !parse_count(in->word[at + 1], &rule->ranks))
			return tti_fail(TUTTI_EINVAL, "%s:%u: \"%s %s\" is not \"ranks N\", from 1",
					in->source, in->line, in->word[at], in->word[at + 1]);
		at += 2;
	}
	if (at < in->nwords) {
		if (strcmp(in->word[at], "reach") != 0 ||
		    !parse_reach(in->word[at + 1], &rule->reach))
			return tti_fail(TUTTI_EINVAL,
					"%s:%u: \"%s %s\" is not \"reach slots\", mapped or copied",
					in->source, in->line, in->word[at], in->word[at + 1]);
		at += 2;
	}
	if (at < in->nwords)
		return tti_fail(TUTTI_EINVAL,
				"%s:%u: \"%s %s\" is too much: \"ranks N\" comes before \"reach "
				"REACH\"",
				in->source, in->line, in->word[at], in->word[at + 1]);
	if (rule->algo == TTI_TUNE_MEMORY && rule->reach == TTI_REACH_SLOTS)
		return tti_fail(TUTTI_EINVAL,
				"%s:%u: memory is for buffers that all ranks reach: add \"reach "
				"copied\" (ordinary memory) or \"reach mapped\" (tutti_mem_alloc)",
				in->source, in->line);
	return TUTTI_OK;
}

static tutti_status read_rule(struct reader *in)
{
	struct tti_tune_rule rule = { .ranks = 0 };

	if (!parse_collective(in->word[1], &rule.coll))
		return tti_fail(TUTTI_EINVAL, "%s:%u: there is no collective \"%s\"", in->source,
				in->line, in->word[1]);
	if (!parse_sizes(in->word[2], &rule))
		return tti_fail(TUTTI_EINVAL,
				"%s:%u: \"%s\" is no size: write bytes, with K, M or G, or inf; "
				"or two of them, 4K-64K",
				in->source, in->line, in->word[2]);
	if (!tti_tune_algo_find(in->word[3], &rule.algo))
		return tti_fail(TUTTI_EINVAL, "%s:%u: there is no algorithm \"%s\"", in->source,
				in->line, in->word[3]);
	TTI_TRY(read_where(in, &rule));
	return tti_vec_push(&in->rules, rule)
		       ? TUTTI_OK
		       : tti_fail(TUTTI_ENOMEM, "%s: out of memory", in->source);
}

/* Words up to a comment or the end of the line; one more than there may be is kept, so
 * that it shows. false: one is too long. */
static bool split(struct reader *in, const char *at, const char *end)
{
	in->nwords = 0;
	while (at < end && *at != '#' && in->nwords <= WORDS) {
		const char *from;

		if (*at == ' ' || *at == '\t' || *at == '\r') {
			at++;
			continue;
		}
		for (from = at; at < end && !strchr(" \t\r#", *at); at++)
			;
		if (at == from || at - from >= WORD_MOST)
			return false;
		memcpy(in->word[in->nwords], from, (size_t)(at - from));
		in->word[in->nwords++][at - from] = '\0';
	}
	return true;
}

/* "NAME TEXT" of the head, whose text may have any words. false: it is another line. */
static bool read_head(const char *name, const char *at, const char *end, char *out, size_t size)
{
	const size_t len = strlen(name);
	size_t n;

	if ((size_t)(end - at) <= len || strncmp(at, name, len) != 0 || at[len] != ' ')
		return false;
	for (at += len; at < end && *at == ' '; at++)
		;
	n = strnlen(at, (size_t)(end - at) < size ? (size_t)(end - at) : size - 1);
	/* Blanks at the end would be lost when it is written and read again. */
	while (n && (at[n - 1] == ' ' || at[n - 1] == '\r'))
		n--;
	memcpy(out, at, n);
	out[n] = '\0';
	return true;
}

static tutti_status read_line(struct reader *in, const char *at, const char *end)
{
	struct tti_tune_table *table = in->table;

	if (read_head("machine", at, end, table->machine, sizeof(table->machine)) ||
	    read_head("version", at, end, table->version, sizeof(table->version)))
		return TUTTI_OK;
	if (!split(in, at, end))
		return tti_fail(TUTTI_EINVAL, "%s:%u: a word of more than %d letters, or a NUL",
				in->source, in->line, WORD_MOST - 1);
	if (in->nwords == 0)
		return TUTTI_OK;
	if (in->nwords == 3 && strcmp(in->word[0], "constant") == 0)
		return read_constant(in);
	if (in->nwords == 3 && strcmp(in->word[0], "reach") == 0)
		return read_figure(in);
	if ((in->nwords == 4 || in->nwords == 6 || in->nwords == 8) &&
	    strcmp(in->word[0], "choose") == 0)
		return read_rule(in);
	return tti_fail(TUTTI_EINVAL,
			"%s:%u: \"%s\" with %u more words: a line is \"constant NAME VALUE\", "
			"\"reach NAME VALUE\" or \"choose COLLECTIVE UPTO ALGORITHM [ranks N] "
			"[reach REACH]\"",
			in->source, in->line, in->word[0], in->nwords - 1);
}

static tutti_status read_lines(struct reader *in, const char *text, size_t nbytes)
{
	const char *at = text, *const end = text + nbytes;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		in->line++;
		TTI_TRY(read_line(in, at, stop ? stop : end));
		at = stop ? stop + 1 : end;
	}
	return TUTTI_OK;
}

tutti_status tti_tune_read(const char *text, size_t nbytes, const char *source,
			   struct tti_tune_table **out)
{
	struct tti_tune_table *table = tti_alloc(sizeof(*table));
	struct reader in = { .source = source };
	tutti_status st;

	if (!table)
		return tti_fail(TUTTI_ENOMEM, "%s: out of memory", source);
	*table = tti_tune_defaults();
	in.table = table;
	st = read_lines(&in, text, nbytes);
	if (st == TUTTI_OK)
		st = check_figures(&in);
	table->rules = in.rules.at;
	table->nrules = (uint32_t)in.rules.n;
	if (st == TUTTI_OK)
		*out = table;
	else
		tti_tune_table_free(table);
	return st;
}

static tutti_status open_file(const char *path, int *fd)
{
	struct stat info;

	/* Not to wait for a writer, should it be a pipe. */
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0 || fstat(*fd, &info) < 0)
		return tti_fail(TUTTI_EINVAL, "tune file %s: %m", path);
	if (!S_ISREG(info.st_mode))
		return tti_fail(TUTTI_EINVAL, "tune file %s is not a regular file", path);
	if (info.st_size > FILE_MOST)
		return tti_fail(TUTTI_EINVAL, "tune file %s has more than %d bytes", path,
				FILE_MOST);
	return TUTTI_OK;
}

/* At most FILE_MOST bytes, should it have grown. */
static tutti_status read_bytes(int fd, const char *path, char *text, size_t *nbytes)
{
	*nbytes = 0;
	while (*nbytes < FILE_MOST) {
		const ssize_t got = read(fd, text + *nbytes, FILE_MOST - *nbytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return tti_fail(TUTTI_EINVAL, "tune file %s: %m", path);
		if (got == 0)
			break;
		*nbytes += (size_t)got;
	}
	return TUTTI_OK;
}

tutti_status tti_tune_read_file(const char *path, struct tti_tune_table **out)
{
	char *text = NULL;
	size_t nbytes = 0;
	int fd = -1;
	tutti_status st = open_file(path, &fd);

	if (st == TUTTI_OK && !(text = tti_alloc(FILE_MOST)))
		st = tti_fail(TUTTI_ENOMEM, "tune file %s: out of memory", path);
	if (st == TUTTI_OK)
		st = read_bytes(fd, path, text, &nbytes);
	if (st == TUTTI_OK)
		st = tti_tune_read(text, nbytes, path, out);
	tti_free(text);
	tti_fd_close(&fd);
	return st;
}

/* -- Writing ----------------------------------------------------------------------- */

void tti_tune_write_reach(const struct tti_reach_figures *measured, struct tti_strbuf *out)
{
	struct tti_reach_figures copy = *measured;

	for (size_t i = 0; i < NFIGURES && copy.call_ns; i++)
		tti_strbuf_addf(out, "reach %s %u # %s\n", figures[i].name,
				*figure_of(&copy, &figures[i]), figures[i].what);
}

bool tti_tune_rule_fits(const struct tti_tune_rule *rule, tutti_collective coll, size_t nbytes,
			uint32_t n, uint32_t nnodes, enum tti_reach reach)
{
	return rule->coll == coll && rule->reach == reach && rule->from <= nbytes &&
	       nbytes <= rule->upto && (rule->ranks == 0 || (rule->ranks == n && nnodes <= 1));
}

uint64_t tti_tune_hash(const struct tti_tune_table *table)
{
	uint64_t hash =
		tti_hash_combine(tti_hash_bytes(&table->constants, sizeof(table->constants)),
				 tti_hash_bytes(&table->figures, sizeof(table->figures)));

	for (uint32_t i = 0; i < table->nrules; i++) {
		hash = tti_hash_combine(hash, (uint64_t)table->rules[i].coll);
		hash = tti_hash_combine(hash, table->rules[i].from);
		hash = tti_hash_combine(hash, table->rules[i].upto);
		hash = tti_hash_combine(hash, table->rules[i].ranks);
		hash = tti_hash_combine(hash, (uint64_t)table->rules[i].reach);
		hash = tti_hash_combine(hash, (uint64_t)table->rules[i].algo);
	}
	return hash;
}
