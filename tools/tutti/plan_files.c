/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti plan diff, check and read: what is done with plans that are files. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* The machines are loaded if any were named. */
static int begin(struct plan_file_options *options)
{
	for (int i = 0; i < 2 && options->files[i]; i++)
		if (access(options->files[i], R_OK) != 0)
			return tool_bad_usage("cannot read '%s': %m", options->files[i]);
	return plan_has_machine(&options->source) && plan_load(&options->source) ? TOOL_USAGE
										 : TOOL_GOOD;
}

static tutti_status read_plan(const struct plan_source *source, const char *path, tutti_plan_t *out)
{
	return tutti_plan_read(path, source->node_topo, source->nnodes, &source->config, out);
}

/* -- diff --------------------------------------------------------------------------- */

static int print_diff(const struct plan_source *source, const char *const *files, const char *text,
		      int ndiffs)
{
	if (source->topo.json)
		tool_print_json(json_pack("{s:s, s:s, s:o}", "a", files[0], "b", files[1],
					  "differences", tool_json_lines(text)));
	else
		printf("%s", ndiffs ? text : "the same plan\n");
	return ndiffs ? TOOL_FINDING : TOOL_GOOD;
}

static int diff(const struct plan_source *source, const char *const *files)
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

int plan_diff_run(void *self)
{
	struct plan_file_options *const options = self;
	int code = begin(options);

	if (code == TOOL_GOOD)
		code = diff(&options->source, options->files);
	plan_release(&options->source);
	return code;
}

/* -- check -------------------------------------------------------------------------- */

static int print_check(const struct plan_source *source, bool machines, const char *text,
		       int nfindings)
{
	if (source->topo.json)
		tool_print_json(json_pack("{s:b, s:b, s:o}", "ok", nfindings == 0, "machines",
					  machines, "findings", tool_json_lines(text)));
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

int plan_check_run(void *self)
{
	struct plan_file_options *const options = self;
	int code = begin(options);

	if (code == TOOL_GOOD)
		code = check(&options->source, options->files[0]);
	plan_release(&options->source);
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

int plan_read_run(void *self)
{
	struct plan_file_options *const options = self;
	int code = begin(options);

	if (code == TOOL_GOOD)
		code = read_and_print(&options->source, options->files[0]);
	plan_release(&options->source);
	return code;
}
