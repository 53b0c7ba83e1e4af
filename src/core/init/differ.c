/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/differ.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "topo/graph/diff.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/strbuf.h"

/* -- Line by line ------------------------------------------------------------------ */

#define SHOWN 100

struct line {
	const char *at;
	size_t len;
};

static struct line next_line(const char **at, const char *end)
{
	const char *begin = *at;
	const char *stop = begin < end ? memchr(begin, '\n', (size_t)(end - begin)) : NULL;

	*at = stop ? stop + 1 : end;
	return (struct line){ begin, (size_t)((stop ? stop : end) - begin) };
}

/* Without blanks in front, cut, and fit for a log. */
static void show(struct line line, char buf[SHOWN + 4])
{
	size_t n = 0;

	while (line.len > 0 && (*line.at == ' ' || *line.at == '\t')) {
		line.at++;
		line.len--;
	}
	for (; n < line.len && n < SHOWN; n++)
		buf[n] = line.at[n] >= ' ' && line.at[n] < 0x7f ? line.at[n] : '?';
	(void)snprintf(buf + n, 4, "%s", n < line.len ? "..." : "");
}

static void first_line(const struct tti_differ_texts *texts, char *why, size_t size)
{
	const char *a = texts->a, *b = texts->b;
	const char *const a_end = a + texts->a_bytes, *const b_end = b + texts->b_bytes;
	char of_a[SHOWN + 4], of_b[SHOWN + 4];

	for (unsigned number = 1; a < a_end || b < b_end; number++) {
		const struct line x = next_line(&a, a_end), y = next_line(&b, b_end);

		if (x.len == y.len && memcmp(x.at, y.at, x.len) == 0)
			continue;
		show(x, of_a);
		show(y, of_b);
		(void)snprintf(why, size, "line %u is '%s' in A and '%s' in B", number, of_a, of_b);
		return;
	}
	(void)snprintf(why, size, "only how they end");
}

/* -- Topologies --------------------------------------------------------------------- */

static tutti_status build(const char *text, size_t nbytes, const char *name, struct tti_graph **out)
{
	struct tti_xml_doc *doc;
	tutti_status st;

	TTI_TRY(tti_xml_read(text, nbytes, name, &doc));
	st = tti_schema_check(doc);
	if (st == TUTTI_OK)
		st = tti_graph_build(doc, TTI_MODEL_TUTTI, out);
	tti_xml_free(doc);
	return st;
}

/* The first line of a diff, and how many there are. */
static void first_of(const char *lines, size_t ndiffs, char *why, size_t size)
{
	const int len = (int)strcspn(lines, "\n");

	if (ndiffs == 1)
		(void)snprintf(why, size, "%.*s", len, lines);
	else
		(void)snprintf(why, size, "%.*s, and %zu more differences", len < 400 ? len : 400,
			       lines, ndiffs - 1);
}

void tti_differ_topology(const struct tti_differ_texts *texts, char *why, size_t size)
{
	struct tti_graph *a = NULL, *b = NULL;
	struct tti_strbuf lines = { 0 };
	size_t ndiffs = 0;
	tutti_status st = build(texts->a, texts->a_bytes, "A", &a);

	if (st == TUTTI_OK)
		st = build(texts->b, texts->b_bytes, "B", &b);
	if (st != TUTTI_OK)
		(void)snprintf(why, size, "one is no topology: %s", tti_error_text());
	else if (tti_topo_diff(a, b, &lines, &ndiffs) == TUTTI_OK && ndiffs > 0)
		first_of(lines.text, ndiffs, why, size);
	else
		first_line(texts, why, size);
	tti_strbuf_release(&lines);
	tti_graph_free(a);
	tti_graph_free(b);
}

/* -- Plans --------------------------------------------------------------------------- */

void tti_differ_plan(const struct tti_differ_texts *texts, char *why, size_t size)
{
	struct tti_plan *a = NULL, *b = NULL;
	tutti_status st = tti_plan_read(texts->a, texts->a_bytes, "A", &a);

	if (st == TUTTI_OK)
		st = tti_plan_read(texts->b, texts->b_bytes, "B", &b);
	if (st != TUTTI_OK)
		(void)snprintf(why, size, "one is no plan: %s", tti_error_text());
	else if (!tti_plan_differ(a, b, why, size))
		first_line(texts, why, size);
	tti_plan_free(a);
	tti_plan_free(b);
}
