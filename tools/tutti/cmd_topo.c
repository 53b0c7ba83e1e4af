/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti topo: how a machine is wired, what is wrong with it, how two differ. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo.h"

enum { OPT_FORMAT = TOPO_FIRST_FREE };

/* Not a format of the library: it is drawn by another program. */
#define FORMAT_SVG (-1)

struct topo_options {
	struct topo_source source;
	const char *output;
	int format;
};

static bool find_format(const char *name, int *out)
{
	static const struct {
		const char *name;
		int format;
	} formats[] = { { "tree", TUTTI_TOPO_TREE },
			{ "xml", TUTTI_TOPO_XML },
			{ "json", TUTTI_TOPO_JSON },
			{ "dot", TUTTI_TOPO_DOT },
			{ "svg", FORMAT_SVG } };

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(name, formats[i].name)) {
			*out = formats[i].format;
			return true;
		}
	tool_bad_usage("there is no format '%s': choose one of tree, xml, json, dot, svg", name);
	return false;
}

static bool take_option(struct topo_options *options, int id, const char *value)
{
	switch (id) {
	case OPT_FORMAT:
		return find_format(value, &options->format);
	case 'o':
		options->output = value;
		return true;
	default:
		return topo_take_option(&options->source, id, value);
	}
}

/* Options to the end. -1: go on; else the exit code. */
static int read_options(struct args *args, struct topo_options *options)
{
	const char *value;
	int id;

	while ((id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP)
			return TOOL_GOOD;
		if (id == ARGS_BAD || !take_option(options, id, value))
			return TOOL_USAGE;
	}
	return -1;
}

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
	int code;

	if (options->format == FORMAT_SVG)
		return topo_draw(topo, to);
	code = topo_print(topo, (tutti_topo_format)options->format,
			  topo_flags(&options->source, to), to);
	if (code == TOOL_GOOD && options->format == TUTTI_TOPO_TREE)
		point_to_lint(topo, to);
	return code;
}

static int run_show(struct args *args)
{
	struct topo_options options = { .source = TOPO_SOURCE_INIT, .format = TUTTI_TOPO_TREE };
	FILE *to = stdout;
	tutti_topo_t topo;
	int code = read_options(args, &options);

	if (code >= 0)
		return code;
	if (options.source.json)
		options.format = TUTTI_TOPO_JSON;
	code = topo_load(&options.source, &topo);
	if (code)
		return code;
	if (options.output) {
		to = fopen(options.output, "we");
		if (!to) {
			tutti_topo_free(topo);
			return tool_bad_usage("cannot write '%s': %s", options.output,
					      strerror(errno));
		}
	}
	code = show(&options, topo, to);
	tutti_topo_free(topo);
	if (to != stdout && (ferror(to) | fclose(to)) && code == TOOL_GOOD)
		code = tool_fail("writing '%s' failed: %s", options.output, strerror(errno));
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

static int run_lint(struct args *args)
{
	struct topo_source source = TOPO_SOURCE_INIT;
	tutti_topo_t topo;
	int code = topo_load_asked(args, &source, &topo);

	if (!topo)
		return code;
	code = topo_print(topo, source.json ? TUTTI_TOPO_LINT_JSON : TUTTI_TOPO_LINT,
			  topo_flags(&source, stdout), stdout);
	if (code == TOOL_GOOD)
		code = judge(topo);
	tutti_topo_free(topo);
	return code;
}

static const struct args_option lint_options[] = { TOPO_SOURCE_OPTIONS, ARGS_OPTION_JSON, { 0 } };

static const struct command command_lint = {
	.name = "topo lint",
	.summary = "what is wrong with a topology, what it costs and what to do",
	.usage = "topo lint [--xml FILE | --sysfs DIR] [--json]",
	.notes = "Errors and warnings are findings; notes say what had to be assumed.\n",
	.options = lint_options,
	.run = run_lint,
};

/* -- diff --------------------------------------------------------------------------- */

static int print_diff(const struct topo_source *source, const char *const *paths, char *text,
		      int ndiffs)
{
	json_t *list;

	if (!source->json) {
		fputs(text, stdout);
		if (!ndiffs)
			printf("wired alike\n");
		return ndiffs ? TOOL_FINDING : TOOL_GOOD;
	}
	list = json_array();
	for (char *next = text; *next;) {
		const size_t len = strcspn(next, "\n");

		json_array_append_new(list, json_stringn(next, len));
		next += len + (next[len] == '\n');
	}
	if (!tool_print_json(json_pack("{s:s, s:s, s:o}", "a", paths[0], "b", paths[1],
				       "differences", list)))
		return TOOL_FINDING;
	return ndiffs ? TOOL_FINDING : TOOL_GOOD;
}

static int compare(const struct topo_source *source, const char *const *paths)
{
	tutti_topo_t a = NULL, b = NULL;
	tutti_status status;
	char *text = NULL;
	int ndiffs = 0;
	int code = topo_load_path(source, paths[0], &a);

	if (code == TOOL_GOOD)
		code = topo_load_path(source, paths[1], &b);
	if (code == TOOL_GOOD) {
		status = tutti_topo_diff(a, b, &text, &ndiffs);
		code = status ? tool_fail("%s", tool_why(NULL, status))
			      : print_diff(source, paths, text, ndiffs);
	}
	free(text);
	tutti_topo_free(a);
	tutti_topo_free(b);
	return code;
}

static int run_diff(struct args *args)
{
	struct topo_source source = TOPO_SOURCE_INIT;
	const char *paths[2] = { NULL, NULL };
	const char *value;
	int id, n = 0;

	while ((id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP)
			return TOOL_GOOD;
		if (id == ARGS_POSITIONAL && n < 2)
			paths[n++] = value;
		else if (id == ARGS_BAD || !topo_take_option(&source, id, value))
			return TOOL_USAGE;
	}
	if (n < 2)
		return tool_bad_usage("say which two to compare: topo diff A B");
	return compare(&source, paths);
}

static const struct args_option diff_options[] = {
	TOPO_OPTION_GPUS,
	{ TOPO_ALL, "all", NULL, "every PCI function, not only what communicates" },
	{ TOPO_NCCL, "nccl", NULL, "compute with the figures that NCCL uses" },
	ARGS_OPTION_JSON,
	{ 0 },
};

static const struct command command_diff = {
	.name = "topo diff",
	.summary = "what differs between two machines, in words",
	.usage = "topo diff A B [--json]",
	.notes = "A and B are topology files, folders of captured machines, or their .tar; / is "
		 "this\n"
		 "machine. Bus ids and names may differ: what counts is how things are wired.\n",
	.options = diff_options,
	.run = run_diff,
};

/* -- topo --------------------------------------------------------------------------- */

static const struct command *const subcommands[] = {
	&command_lint,
	&command_diff,
	&command_topo_gather,
	&command_topo_merge,
};

static int run(struct args *args)
{
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
		if (args->argc && !strcmp(args->argv[0], subcommands[i]->name + strlen("topo "))) {
			args->command = subcommands[i];
			tool_set_verb(args->command->name);
			args->argv++;
			args->argc--;
			return args->command->run(args);
		}
	return run_show(args);
}

static const struct args_option options[] = {
	TOPO_SOURCE_OPTIONS,
	{ OPT_FORMAT, "format", "FORMAT", "tree, xml, json, dot or svg (tree)" },
	{ 'o', "output", "FILE", "write there" },
	ARGS_OPTION_JSON,
	{ 0 },
};

const struct command command_topo = {
	.name = "topo",
	.summary = "how a machine is wired, and what is wrong with it",
	.usage = "topo [--xml FILE | --sysfs DIR] [--format FORMAT] [-o FILE]",
	.notes = "Without a file or folder: this machine, as TUTTI_TOPO_FILE and TUTTI_SYSFS_ROOT "
		 "say.\n"
		 "\n"
		 "  tutti topo lint      what is wrong with it, what that costs and what to do\n"
		 "  tutti topo diff A B  what differs between two machines\n"
		 "  tutti topo gather    pack what describes this machine into a .tar.gz\n"
		 "  tutti topo merge     many machines as one cluster\n"
		 "\n"
		 "Each has a --help of its own.\n",
	.options = options,
	.run = run,
};
