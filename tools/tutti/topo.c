/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* The words of --format, and the formats of the library. Graphviz draws SVG from DOT. */
enum { TREE, XML, JSON, DOT, SVG };
static const tutti_topo_format formats[] = { TUTTI_TOPO_TREE, TUTTI_TOPO_XML, TUTTI_TOPO_JSON,
					     TUTTI_TOPO_DOT, TUTTI_TOPO_DOT };

/* Below a tree: that there is more to know. */
static void point_to_lint(tutti_topo_t topo, FILE *to)
{
	const int nfindings = tutti_topo_finding_count(topo);
	struct tutti_topo_finding finding;
	int nerrors = 0, nwarnings = 0;

	for (int i = 0; i < nfindings; i++) {
		if (tutti_topo_get_finding(topo, i, &finding) != TUTTI_OK)
			return;
		nerrors += !strcmp(finding.severity, "error");
		nwarnings += !strcmp(finding.severity, "warning");
	}
	if (nerrors || nwarnings)
		fputc('\n', to);
	if (nerrors)
		fprintf(to, "%d error%s%s", nerrors, nerrors == 1 ? "" : "s",
			nwarnings ? ", " : ": see 'tutti topo lint'\n");
	if (nwarnings)
		fprintf(to, "%d warning%s: see 'tutti topo lint'\n", nwarnings,
			nwarnings == 1 ? "" : "s");
}

static int show(const struct topo_options *options, tutti_topo_t topo, FILE *to)
{
	const int format = options->source.json ? JSON : options->format;
	int code;

	if (format == SVG)
		return topo_draw(topo, to);
	code = topo_print(topo, formats[format], topo_flags(&options->source, to), to);
	if (code == TOOL_GOOD && format == TREE)
		point_to_lint(topo, to);
	return code;
}

int topo_run(void *self)
{
	const struct topo_options *const options = self;
	tutti_topo_t topo;
	FILE *to;
	int code = topo_load(&options->source, &topo);

	if (code)
		return code;
	to = tool_open_output(options->output);
	code = to ? tool_close_output(to, options->output, show(options, topo, to)) : TOOL_USAGE;
	tutti_topo_free(topo);
	return code;
}

/* -- lint --------------------------------------------------------------------------- */

static int judge(tutti_topo_t topo)
{
	struct tutti_topo_finding finding;

	for (int i = 0; i < tutti_topo_finding_count(topo); i++)
		if (tutti_topo_get_finding(topo, i, &finding) == TUTTI_OK &&
		    strcmp(finding.severity, "note") != 0)
			return TOOL_FINDING;
	return TOOL_GOOD;
}

int topo_lint_run(void *self)
{
	const struct topo_source *const source = self;
	tutti_topo_t topo;
	int code = topo_load(source, &topo);

	if (code)
		return code;
	code = topo_print(topo, source->json ? TUTTI_TOPO_LINT_JSON : TUTTI_TOPO_LINT,
			  topo_flags(source, stdout), stdout);
	if (code == TOOL_GOOD)
		code = judge(topo);
	tutti_topo_free(topo);
	return code;
}

/* -- paths -------------------------------------------------------------------------- */

int paths_run(void *self)
{
	const struct topo_source *const source = self;
	tutti_topo_t topo;
	int code = topo_load(source, &topo);

	if (code)
		return code;
	code = topo_print(topo, source->json ? TUTTI_TOPO_PATHS_JSON : TUTTI_TOPO_PATHS,
			  topo_flags(source, stdout), stdout);
	tutti_topo_free(topo);
	return code;
}

/* -- diff --------------------------------------------------------------------------- */

static int print_diff(const struct topo_diff_options *options, const char *text, int ndiffs)
{
	const char *const *const paths = options->paths;

	if (!options->source.json)
		fputs(ndiffs ? text : "wired alike\n", stdout);
	else if (!tool_print_json(json_pack("{s:s, s:s, s:o}", "a", paths[0], "b", paths[1],
					    "differences", tool_json_lines(text))))
		return TOOL_FINDING;
	return ndiffs ? TOOL_FINDING : TOOL_GOOD;
}

int topo_diff_run(void *self)
{
	const struct topo_diff_options *const options = self;
	tutti_topo_t a = NULL, b = NULL;
	tutti_status status;
	char *text = NULL;
	int ndiffs = 0;
	int code = topo_load_path(&options->source, options->paths[0], &a);

	if (code == TOOL_GOOD)
		code = topo_load_path(&options->source, options->paths[1], &b);
	if (code == TOOL_GOOD) {
		status = tutti_topo_diff(a, b, &text, &ndiffs);
		code = status ? tool_fail("%s", tool_why(NULL, status))
			      : print_diff(options, text, ndiffs);
	}
	free(text);
	tutti_topo_free(a);
	tutti_topo_free(b);
	return code;
}
