/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti plan diff, check and read: what is done with plans that are files. */
#include "plan.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Options and up to `most` file names. -1: go on; else the exit code. */
static int read_words(struct args *args, struct plan_source *source, const char **files, int most)
{
	const char *value;
	int id, n = 0;

	while ((id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP)
			return TOOL_GOOD;
		if (id == ARGS_POSITIONAL && n < most)
			files[n++] = value;
		else if (id == ARGS_BAD || !plan_take_option(source, id, value))
			return TOOL_USAGE;
	}
	if (n < most)
		return tool_bad_usage(most == 1 ? "say which file: %s" : "say which two: %s",
				      args->command->usage);
	for (int i = 0; i < most; i++)
		if (access(files[i], R_OK) != 0)
			return tool_bad_usage("cannot read '%s': %m", files[i]);
	return -1;
}

/* The machines are loaded if any were named. */
static int begin(struct args *args, struct plan_source *source, const char **files, int most)
{
	const int code = read_words(args, source, files, most);

	if (code >= 0)
		return code;
	return plan_has_machine(source) && plan_load(source) ? TOOL_USAGE : -1;
}

static tutti_status read_plan(const struct plan_source *source, const char *path, tutti_plan_t *out)
{
	return tutti_plan_read(path, source->node_topo, source->nnodes, &source->config, out);
}

static json_t *lines_of(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		const size_t len = strcspn(text, "\n");

		json_array_append_new(list, json_stringn(text, len));
		text += len + (text[len] == '\n');
	}
	return list;
}

/* -- diff --------------------------------------------------------------------------- */

static int print_diff(const struct plan_source *source, const char *const *files, const char *text,
		      int ndiffs)
{
	if (source->topo.json)
		tool_print_json(json_pack("{s:s, s:s, s:o}", "a", files[0], "b", files[1],
					  "differences", lines_of(text)));
	else
		printf("%s", ndiffs ? text : "the same plan\n");
	return ndiffs ? TOOL_FINDING : TOOL_GOOD;
}

static int diff(const struct plan_source *source, const char **files)
{
	tutti_plan_t a = NULL, b = NULL;
	char *text = NULL;
	int ndiffs = 0, code;
	tutti_status status = read_plan(source, files[0], &a);

	if (!status)
		status = read_plan(source, files[1], &b);
	if (!status)
		status = tutti_plan_diff(a, b, &text, &ndiffs);
	code = status ? plan_failed(status) : print_diff(source, files, text, ndiffs);
	free(text);
	tutti_plan_free(a);
	tutti_plan_free(b);
	return code;
}

static int run_diff(struct args *args)
{
	struct plan_source source = PLAN_SOURCE_INIT;
	const char *files[2];
	int code = begin(args, &source, files, 2);

	if (code < 0)
		code = diff(&source, files);
	plan_release(&source);
	return code;
}

/* -- check -------------------------------------------------------------------------- */

static int print_check(const struct plan_source *source, bool machines, const char *text,
		       int nfindings)
{
	if (source->topo.json)
		tool_print_json(json_pack("{s:b, s:b, s:o}", "ok", nfindings == 0, "machines",
					  machines, "findings", lines_of(text)));
	else if (nfindings)
		printf("%s", text);
	else
		printf("%s\n", machines
				       ? "a plan, and the machines can carry it"
				       : "a plan; name the machines (--xml) to check that they can "
					 "carry it");
	return nfindings ? TOOL_FINDING : TOOL_GOOD;
}

static int check(const struct plan_source *source, const char *file)
{
	tutti_plan_t plan = NULL;
	char *text = NULL;
	int nfindings = 0, code;
	tutti_status status = read_plan(source, file, &plan);

	if (status == TUTTI_EINVAL || status == TUTTI_EPLAN) {
		if (!source->topo.json)
			return tool_fail("%s", tool_why(NULL, status));
		return print_check(source, source->nnodes > 0, tool_why(NULL, status), 1);
	}
	if (!status && source->nnodes)
		status = tutti_plan_check(plan, &text, &nfindings);
	code = status ? plan_failed(status)
		      : print_check(source, source->nnodes > 0, text ? text : "", nfindings);
	free(text);
	tutti_plan_free(plan);
	return code;
}

static int run_check(struct args *args)
{
	struct plan_source source = PLAN_SOURCE_INIT;
	const char *file;
	int code = begin(args, &source, &file, 1);

	if (code < 0)
		code = check(&source, file);
	plan_release(&source);
	return code;
}

/* -- read --------------------------------------------------------------------------- */

static int read_and_print(const struct plan_source *source, const char *file)
{
	tutti_plan_t plan = NULL;
	char *text = NULL;
	tutti_status status = read_plan(source, file, &plan);

	if (!status)
		status = tutti_plan_print(plan,
					  source->topo.json ? TUTTI_PLAN_JSON : TUTTI_PLAN_TABLE,
					  topo_flags(&source->topo, stdout), &text);
	if (!status)
		fputs(text, stdout);
	free(text);
	tutti_plan_free(plan);
	return status ? plan_failed(status) : TOOL_GOOD;
}

static int run_read(struct args *args)
{
	struct plan_source source = PLAN_SOURCE_INIT;
	const char *file;
	int code = begin(args, &source, &file, 1);

	if (code < 0)
		code = read_and_print(&source, file);
	plan_release(&source);
	return code;
}

/* -- Help --------------------------------------------------------------------------- */

#define NOTES                                                                                   \
	"FILE is a plan as --json prints it, or a graph file of NCCL, which needs its machine " \
	"(--xml)\n"                                                                             \
	"and, if it names NICs, --nodes 2 or more.\n"

static const struct args_option options[] = {
	PLAN_MACHINE_OPTIONS,
	{ PLAN_BOTH, "both-ways", NULL, "trees load links in both directions" },
	{ TOPO_COLOR, "color", "WHEN", "auto, always or never (auto)" },
	ARGS_OPTION_JSON,
	{ 0 },
};

const struct command command_plan_diff = {
	.name = "plan diff",
	.summary = "what differs between two plans, in words",
	.usage = "plan diff A B [--json]",
	.notes = NOTES,
	.options = options,
	.run = run_diff,
};

const struct command command_plan_check = {
	.name = "plan check",
	.summary = "whether a file is a plan, and the machines can carry it",
	.usage = "plan check FILE [--xml FILE[*N]]... [--nodes N] [--json]",
	.notes = NOTES,
	.options = options,
	.run = run_check,
};

const struct command command_plan_read = {
	.name = "plan read",
	.summary = "a plan from a file, printed again",
	.usage = "plan read FILE [--json]",
	.notes = NOTES,
	.options = options,
	.run = run_read,
};
