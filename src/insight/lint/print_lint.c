/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/lint/lint.h"
#include "insight/print/print.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "topo/graph/words.h"
#include "util/mem.h"

#define RESET "\033[0m"

/* How many findings behind one are looked at for those that are alike. */
#define MOST_COMPARED 512

static const char *color_of(enum tti_severity severity)
{
	switch (severity) {
	case TTI_SEVERITY_ERROR:
		return "\033[1;31m";
	case TTI_SEVERITY_WARNING:
		return "\033[1;33m";
	case TTI_SEVERITY_NOTE:
	default:
		return "\033[1;34m";
	}
}

static bool go_together(const struct tti_finding *a, const struct tti_finding *b)
{
	return a->severity == b->severity && !strcmp(a->rule, b->rule) &&
	       !strcmp(a->remedy, b->remedy);
}

/* -- What is equal but for names ------------------------------------------------------- */

/* A word without the brackets and commas around it. */
struct word {
	const char *at;
	size_t len;     /* of all                     */
	size_t from, n; /* what is inside of them     */
};

/* The next word of a text, of which *text becomes the rest. */
static bool next_word(const char **text, struct word *out)
{
	const char *at = *text + strspn(*text, " ");
	const size_t len = strcspn(at, " ");
	size_t to = len;

	*out = (struct word){ .at = at, .len = len, .from = strspn(at, "(") };
	while (to > out->from && strchr(".,;:)", at[to - 1]))
		to--;
	out->n = to > out->from ? to - out->from : 0;
	*text = at + len;
	return len > 0;
}

static bool is_busid(const struct word *word)
{
	const char *at = word->at + word->from;
	const char *colon = memchr(at, ':', word->n);

	return colon && memchr(colon + 1, ':', word->n - (size_t)(colon + 1 - at));
}

/* "GPU3", "mlx5_0": letters and a number; not "24.0", nor gdr="0". */
static bool is_name(const struct word *word)
{
	bool letter = false, digit = false;

	for (size_t i = word->from; i < word->from + word->n; i++) {
		letter |= isalpha((unsigned char)word->at[i]) != 0;
		digit |= isdigit((unsigned char)word->at[i]) != 0;
		if (word->at[i] == '"')
			return false;
	}
	return letter && digit;
}

/* Equal, but for the digits at the end. */
static bool same_kind(const struct word *a, const struct word *b)
{
	size_t i = a->n, j = b->n;

	while (i > 0 && isdigit((unsigned char)a->at[a->from + i - 1]))
		i--;
	while (j > 0 && isdigit((unsigned char)b->at[b->from + j - 1]))
		j--;
	return i == j && memcmp(a->at + a->from, b->at + b->from, i) == 0;
}

static bool is_text(const struct word *word, const char *text)
{
	return strlen(text) == word->n && memcmp(word->at + word->from, text, word->n) == 0;
}

static bool same_word(const struct word *a, const char *own_a, const struct word *b,
		      const char *own_b)
{
	if (a->len == b->len && memcmp(a->at, b->at, a->len) == 0)
		return true;
	if (a->from != b->from || a->len - a->n != b->len - b->n ||
	    memcmp(a->at + a->from + a->n, b->at + b->from + b->n, a->len - a->from - a->n) != 0)
		return false;
	return (is_text(a, own_a) && is_text(b, own_b)) || (is_busid(a) && is_busid(b)) ||
	       (is_name(a) && is_name(b) && same_kind(a, b));
}

static bool same_text(const char *a, const char *own_a, const char *b, const char *own_b)
{
	struct word x, y;
	bool more;

	do {
		more = next_word(&a, &x);
		if (next_word(&b, &y) != more || (more && !same_word(&x, own_a, &y, own_b)))
			return false;
	} while (more);
	return true;
}

/* The type, which stands before the name in a place. */
static const char *type_of(const struct tti_finding *finding)
{
	const char *at = finding->place + finding->name_at - 1;

	while (at > finding->place && at[-1] != ' ')
		at--;
	return at;
}

/* Whether one line can tell both findings: they are of one rule, on nodes of one type and host,
 * with equal figures, and their texts differ only in names. */
static bool are_alike(const struct tti_finding *a, const struct tti_finding *b)
{
	const size_t len = a->name ? strlen(a->name) : 0;

	if (!go_together(a, b) || !a->name || !b->name || a->have_gbps < b->have_gbps ||
	    a->have_gbps > b->have_gbps || a->want_gbps < b->want_gbps ||
	    a->want_gbps > b->want_gbps || strcspn(type_of(a), " ") != strcspn(type_of(b), " ") ||
	    strncmp(type_of(a), type_of(b), strcspn(type_of(a), " ")) != 0 ||
	    strcmp(a->place + a->name_at + len, b->place + b->name_at + strlen(b->name)) != 0)
		return false;
	return same_text(a->what, a->name, b->what, b->name) &&
	       same_text(a->consequence, a->name, b->consequence, b->name);
}

/* -- Several names as one text ---------------------------------------------------------- */

struct names {
	struct tti_strbuf text; /* of the word that is written         */
	char **at;
	size_t n;
};

/* Digits of bus ids are hexadecimal and of one length. */
static int by_name(const void *left, const void *right)
{
	const char *a = *(char *const *)left, *b = *(char *const *)right;

	return strchr(a, ':') ? strcmp(a, b) : tti_name_order(a, b);
}

/* Where the digits at the end begin. */
static size_t digits_at(const char *name)
{
	size_t at = strlen(name);

	while (at > 0 && isdigit((unsigned char)name[at - 1]))
		at--;
	return at;
}

static bool follows(const char *a, const char *b)
{
	const size_t at = digits_at(a);

	return at == digits_at(b) && a[at] && b[at] && strlen(b + at) < 10 && strlen(a + at) < 10 &&
	       strncmp(a, b, at) == 0 && strtoul(a + at, NULL, 10) + 1 == strtoul(b + at, NULL, 10);
}

/* "GPU0-3, GPU6": each once, in order. */
static void join_names(struct names *names, struct tti_strbuf *out)
{
	const char *before = NULL;

	qsort(names->at, names->n, sizeof(*names->at), by_name);
	for (size_t i = 0, run = 0; i < names->n; i += run) {
		for (run = 1; i + run < names->n; run++)
			if (strcmp(names->at[i + run - 1], names->at[i + run]) != 0 &&
			    !follows(names->at[i + run - 1], names->at[i + run]))
				break;
		const char *first = names->at[i], *last = names->at[i + run - 1];

		tti_strbuf_addf(out, "%s%s", before ? ", " : "", first);
		if (follows(first, last))
			tti_strbuf_addf(out, ", %s", last);
		else if (strcmp(first, last) != 0)
			tti_strbuf_addf(out, "-%s", last + digits_at(last));
		before = last;
	}
}

static void add_name(struct names *names, const char *at, size_t len, struct tti_strbuf *out)
{
	char *name = tti_alloc(len + 1);

	out->failed |= !name;
	if (!name)
		return;
	memcpy(name, at, len);
	name[len] = '\0';
	names->at[names->n++] = name;
}

static void clear_names(struct names *names)
{
	while (names->n)
		tti_free(names->at[--names->n]);
}

/* A text of n alike findings, word by word; `rest` are what is left of each. */
static void join_texts(struct names *names, const char **rest, size_t n, struct tti_strbuf *out)
{
	struct word first, word;

	for (bool any = false; next_word(&rest[0], &first); any = true) {
		bool differ = false;

		add_name(names, first.at + first.from, first.n, out);
		for (size_t i = 1; i < n && next_word(&rest[i], &word); i++) {
			differ |= word.len != first.len || memcmp(word.at, first.at, word.len) != 0;
			add_name(names, word.at + word.from, word.n, out);
		}
		tti_strbuf_addf(out, "%s%.*s", any ? " " : "",
				differ ? (int)first.from : (int)first.len, first.at);
		if (differ && !out->failed) {
			join_names(names, out);
			tti_strbuf_addf(out, "%.*s", (int)(first.len - first.from - first.n),
					first.at + first.from + first.n);
		}
		clear_names(names);
	}
}

/* -- Lines ------------------------------------------------------------------------------ */

/* The texts in rest[], of which nothing is left then. */
static void write_joined(struct names *names, const char **rest, size_t n, struct tti_strbuf *out)
{
	struct tti_strbuf line = { 0 };

	join_texts(names, rest, n, &line);
	out->failed |= line.failed;
	if (line.len && !line.failed)
		tti_words_text(line.text, out);
	tti_strbuf_release(&line);
}

static void write_place(struct names *names, const struct tti_finding *const *at, size_t n,
			struct tti_strbuf *out)
{
	struct tti_strbuf line = { 0 };

	if (!at[0]->name || n == 1) {
		tti_words_text(at[0]->place, out);
		return;
	}
	tti_strbuf_addf(&line, "%.*s", (int)at[0]->name_at, at[0]->place);
	for (size_t i = 0; i < n; i++)
		add_name(names, at[i]->name, strlen(at[i]->name), out);
	if (!out->failed)
		join_names(names, &line);
	clear_names(names);
	tti_strbuf_add(&line, at[0]->place + at[0]->name_at + strlen(at[0]->name));
	out->failed |= line.failed;
	if (!line.failed)
		tti_words_text(line.text, out);
	tti_strbuf_release(&line);
}

/* Two lines: where and what, and what it costs. `at` are n findings that are alike. */
static void write_alike(const struct tti_finding *const *at, size_t n, struct tti_strbuf *out)
{
	struct names names = { .at = tti_calloc(n, sizeof(*names.at)) };
	const char **rest = tti_calloc(n, sizeof(*rest));

	out->failed |= !names.at || !rest;
	if (!out->failed) {
		tti_strbuf_add(out, "  ");
		write_place(&names, at, n, out);
		tti_strbuf_add(out, ": ");
		for (size_t i = 0; i < n; i++)
			rest[i] = at[i]->what;
		write_joined(&names, rest, n, out);
		if (at[0]->consequence && at[0]->consequence[0])
			tti_strbuf_add(out, "\n    ");
		for (size_t i = 0; i < n; i++)
			rest[i] = at[i]->consequence ? at[i]->consequence : "";
		write_joined(&names, rest, n, out);
		tti_strbuf_add(out, "\n");
	}
	tti_free(names.at);
	tti_free(rest);
}

/* `first` and those after it that are alike; few enough are looked at to be fast. */
static void take_alike(const struct tti_lint *lint, size_t first, bool *written,
		       const struct tti_finding **at, struct tti_strbuf *out)
{
	const size_t end = lint->n - first < MOST_COMPARED ? lint->n : first + MOST_COMPARED;
	size_t n = 0;

	for (size_t i = first; i < end; i++)
		if (!written[i] && (i == first || are_alike(&lint->at[first], &lint->at[i]))) {
			at[n++] = &lint->at[i];
			written[i] = true;
		}
	write_alike(at, n, out);
}

/* All findings of one rule, under a heading with the remedy. */
static void write_group(const struct tti_lint *lint, size_t first, bool *written,
			const struct tti_print_config *config, struct tti_strbuf *out)
{
	const struct tti_finding *head = &lint->at[first], *at[MOST_COMPARED];

	tti_strbuf_addf(out, "%s%s%s %s: ", config->color ? color_of(head->severity) : "",
			tti_severity_name(head->severity), config->color ? RESET : "", head->rule);
	tti_words_text(head->remedy, out);
	tti_strbuf_add(out, "\n");
	for (size_t i = first; i < lint->n; i++)
		if (!written[i] && go_together(head, &lint->at[i]))
			take_alike(lint, i, written, at, out);
	tti_strbuf_add(out, "\n");
}

static void write_count(size_t n, const char *what, bool *any, struct tti_strbuf *out)
{
	if (!n)
		return;
	tti_strbuf_addf(out, "%s%zu %s%s", *any ? ", " : "", n, what, n == 1 ? "" : "s");
	*any = true;
}

static void write_sum(const struct tti_lint *lint, struct tti_strbuf *out)
{
	size_t n[TTI_SEVERITY_ERROR + 1] = { 0 };
	bool any = false;

	for (size_t i = 0; i < lint->n; i++)
		n[lint->at[i].severity]++;
	write_count(n[TTI_SEVERITY_ERROR], "error", &any, out);
	write_count(n[TTI_SEVERITY_WARNING], "warning", &any, out);
	write_count(n[TTI_SEVERITY_NOTE], "note", &any, out);
	tti_strbuf_add(out, any ? "\n" : "nothing found\n");
}

void tti_print_lint(const struct tti_lint *lint, const struct tti_print_config *config,
		    struct tti_strbuf *out)
{
	bool *written = tti_calloc(lint->n + 1, sizeof(*written));

	if (!written) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < lint->n; i++)
		if (!written[i])
			write_group(lint, i, written, config, out);
	write_sum(lint, out);
	tti_free(written);
}
