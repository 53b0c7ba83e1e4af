/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/print.h"

#include <string.h>

#include "topo/words.h"
#include "util/mem.h"

#define RESET "\033[0m"

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

/* Two lines a finding: where and what, and what it costs. */
static void write_finding(const struct tti_finding *finding, struct tti_strbuf *out)
{
	tti_strbuf_add(out, "  ");
	tti_words_text(finding->place, out);
	tti_strbuf_add(out, ": ");
	tti_words_text(finding->what, out);
	if (finding->consequence && finding->consequence[0]) {
		tti_strbuf_add(out, "\n    ");
		tti_words_text(finding->consequence, out);
	}
	tti_strbuf_add(out, "\n");
}

static bool go_together(const struct tti_finding *a, const struct tti_finding *b)
{
	return a->severity == b->severity && !strcmp(a->rule, b->rule) &&
	       !strcmp(a->remedy, b->remedy);
}

/* What one rule found, under one heading with the remedy. */
static void write_group(const struct tti_lint *lint, size_t first, bool *written,
			const struct tti_print_config *config, struct tti_strbuf *out)
{
	const struct tti_finding *head = &lint->at[first];

	tti_strbuf_addf(out, "%s%s%s %s: ", config->color ? color_of(head->severity) : "",
			tti_severity_name(head->severity), config->color ? RESET : "", head->rule);
	tti_words_text(head->remedy, out);
	tti_strbuf_add(out, "\n");
	for (size_t i = first; i < lint->n; i++)
		if (!written[i] && go_together(head, &lint->at[i])) {
			write_finding(&lint->at[i], out);
			written[i] = true;
		}
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
