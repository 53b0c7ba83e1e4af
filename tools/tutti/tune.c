/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int print_file(const struct tune_options *tune)
{
	char *text;
	const tutti_status status = tutti_tune_print_file(tune->config.tune_file, &text);
	json_t *lines;

	if (status)
		return plan_failed(status);
	if (!tune->source.topo.json)
		return tool_write(text, stdout);
	lines = tool_json_lines(text);
	free(text);
	return tool_print_json(json_pack("{s:o}", "lines", lines)) ? TOOL_GOOD : TOOL_FINDING;
}

static int print_table(struct tune_options *tune)
{
	const struct plan_source *source = &tune->source;
	tutti_plan_t plan = NULL;
	char *text = NULL;
	tutti_status status = tune->plan ? tutti_plan_read(tune->plan, source->node_topo,
							   source->nnodes, &source->config, &plan)
					 : tutti_plan_make(source->node_topo, source->nnodes,
							   &source->config, &plan);

	tune->config.json = source->topo.json;
	if (!status)
		status = tutti_tune_print(plan, &tune->config, &text);
	tutti_plan_free(plan);
	return status ? plan_failed(status) : tool_write(text, stdout);
}

/* Measurements of this machine say nothing about others. A file that the user names is used. */
static void forget_this_machine(struct tune_options *tune)
{
	if (!tune->config.tune_file && !tool_parameter("TUTTI_TUNE_FILE"))
		tune->config.tune_file = "none";
}

/* A plan file says enough; with its machines, how many cores they have too. */
static int load_and_print(struct tune_options *tune)
{
	const bool needs_machines = !tune->plan || plan_has_machine(&tune->source);

	/* Loading names this machine, if nothing else is named. */
	if (tune->plan || plan_has_machine(&tune->source))
		forget_this_machine(tune);
	if (needs_machines) {
		const int code = plan_load(&tune->source);

		if (code)
			return code;
	}
	return print_table(tune);
}

static int measure(const struct tune_options *tune)
{
	const struct tune_measure measure = { .path = tune->out,
					      .nranks = tune->nranks,
					      .most = tune->most,
					      .check = tune->check,
					      .busy = tune->busy,
					      .json = tune->source.topo.json };

	return ranks_are_few(tune->nranks) ? tune_measure_run(&measure) : TOOL_USAGE;
}

int tune_run(void *self)
{
	struct tune_options *const tune = self;
	int code;

	if (tune->config.collective == TUTTI_SEND_RECV || tune->config.collective == TUTTI_HANDOFF)
		return tool_bad_usage(
			"%s has no algorithms to choose from",
			tutti_collective_name((tutti_collective)tune->config.collective));
	code = tune->file ? print_file(tune) : tune->table ? load_and_print(tune) : measure(tune);
	plan_release(&tune->source);
	return code;
}
