/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti tune: measure what this machine can; how long each algorithm should take, which is
 * taken, and why: the constants behind it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "tool.h"
#include "tune.h"

enum {
	OPT_TABLE = PLAN_FIRST_FREE,
	OPT_FILE,
	OPT_PLAN,
	OPT_COLLECTIVE,
	OPT_HOST,
	OPT_TUNE,
	OPT_CHECK,
	OPT_BUSY
};

struct tune {
	struct plan_source source;
	struct tutti_tune_config config;
	const char *plan; /* a file, in place of a search */
	bool table, file, check, busy;
	const char *out; /* where what is measured goes; NULL: to its place */
	int nranks;      /* that measure; 0: not said                       */
	size_t most;     /* bytes of a vector; 0: not said                  */
};

static int write_text(char *text)
{
	fputs(text, stdout);
	free(text);
	return TOOL_GOOD;
}

static int print_file(const struct tune *tune)
{
	char *text;
	const tutti_status status = tutti_tune_print_file(tune->config.tune_file, &text);

	return status ? plan_failed(status) : write_text(text);
}

static int print_table(struct tune *tune)
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
	return status ? plan_failed(status) : write_text(text);
}

static bool take_collective(struct tune *tune, const char *name)
{
	tutti_collective coll;

	if (!tool_find_collective(name, &coll))
		return false;
	if (coll == TUTTI_SEND_RECV || coll == TUTTI_HANDOFF) {
		tool_bad_usage("%s has no algorithms to choose from", name);
		return false;
	}
	tune->config.collective = (int)coll;
	return true;
}

static bool take_option(struct tune *tune, int id, const char *value)
{
	switch (id) {
	case OPT_TABLE:
		tune->table = true;
		return true;
	case OPT_FILE:
		tune->file = true;
		return true;
	case OPT_PLAN:
		tune->plan = value;
		return true;
	case OPT_COLLECTIVE:
		return take_collective(tune, value);
	case OPT_HOST:
		tune->config.host_memory = 1;
		return true;
	case OPT_CHECK:
		tune->check = true;
		return true;
	case OPT_BUSY:
		tune->busy = true;
		return true;
	case 'o':
		tune->out = value;
		return true;
	case 'n':
		return cli_int("-n", value, 2, RANKS_MOST, &tune->nranks);
	case 'e':
		return cli_size("-e", value, 8, &tune->most);
	case OPT_TUNE:
		tune->config.tune_file = value;
		return true;
	default:
		return plan_take_option(&tune->source, id, value);
	}
}

/* What was measured on this machine says nothing of others; what the user names is the user's. */
static void forget_this_machine(struct tune *tune)
{
	struct tutti_param_info info;

	for (int i = 0; tutti_param_get(i, &info) == TUTTI_OK; i++)
		if (!strcmp(info.variable, "TUTTI_TUNE_FILE")) {
			if (!info.is_set && !tune->config.tune_file)
				tune->config.tune_file = "none";
			return;
		}
}

/* A plan file says enough; with its machines, how many cores they have too. */
static int load_and_print(struct tune *tune)
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

/* Whether there are options that say what to predict, not what to measure. */
static bool measures_nothing(const struct tune *tune)
{
	return tune->plan || tune->source.nodes || plan_has_machine(&tune->source) ||
	       tune->config.tune_file || tune->config.collective >= 0 || tune->config.host_memory;
}

static int measure(const struct tune *tune)
{
	const struct tune_measure measure = { .path = tune->out,
					      .nranks = tune->nranks,
					      .most = tune->most,
					      .check = tune->check,
					      .busy = tune->busy,
					      .json = tune->source.topo.json };

	return tune_measure_run(&measure);
}

/* -1: go on; else the exit code. */
static int read_options(struct args *args, struct tune *tune)
{
	const char *value;
	int id;

	while ((id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP)
			return TOOL_GOOD;
		if (id == ARGS_BAD || !take_option(tune, id, value))
			return TOOL_USAGE;
	}
	if (tune->table + tune->file + tune->check > 1)
		return tool_bad_usage(
			"say one of --table, --file and --check; without, it measures");
	if ((tune->table || tune->file) && (tune->out || tune->busy || tune->nranks || tune->most))
		return tool_bad_usage(
			"-n, -e, -o and --busy are for measuring, not for --table or --file");
	if (tune->check && (tune->out || tune->busy))
		return tool_bad_usage("--check writes no file: leave -o and --busy out");
	if (!tune->table && !tune->file && measures_nothing(tune))
		return tool_bad_usage("machines, plans and --tune are for --table and --file: "
				      "what is measured is this machine");
	return -1;
}

static int run(struct args *args)
{
	struct tune tune = { .source = PLAN_SOURCE_INIT, .config = TUTTI_TUNE_CONFIG_INIT };
	int code = read_options(args, &tune);

	if (code < 0 && tune.file)
		code = print_file(&tune);
	else if (code < 0)
		code = tune.table ? load_and_print(&tune) : measure(&tune);
	plan_release(&tune.source);
	return code;
}

static const struct args_option options[] = {
	{ 'n', "nranks", "RANKS", "measure with so many (as many as tell something here)" },
	{ 'e', "maxbytes", "SIZE", "largest vector that is measured (16M)" },
	{ 'o', "out", "FILE", "measure, but write there; -: to the output" },
	{ OPT_BUSY, "busy", NULL, "keep it though something else ran" },
	{ OPT_CHECK, "check", NULL, "measure what is taken, and say what makes no sense" },
	{ OPT_TABLE, "table", NULL, "predicted times, and what is taken" },
	{ OPT_FILE, "file", NULL, "constants and choices, to edit and give back" },
	{ OPT_COLLECTIVE, "collective", "NAME", "that one alone" },
	{ OPT_HOST, "host", NULL, "data in host memory, though there are GPUs" },
	{ OPT_TUNE, "tune", "FILE", "constants and choices, else those in force" },
	{ OPT_PLAN, "plan", "FILE", "this plan in place of a search" },
	PLAN_MACHINE_OPTIONS,
	ARGS_OPTION_JSON,
	{ 0 },
};

const struct command command_tune = {
	.name = "tune",
	.summary = "measure this machine; how long each algorithm takes, and which is taken",
	.usage = "tune [-n RANKS] [-e SIZE] [-o FILE] [--busy] | tune --check | tune --table "
		 "[--xml FILE] "
		 "[--nodes N] "
		 "[--ranks R] | tune --file",
	.notes = "Without --check, --table and --file it measures, for some seconds in which "
		 "nothing "
		 "else\n"
		 "should run, and keeps what it found where the library finds it:\n"
		 "$XDG_CACHE_HOME/tutti, or ~/.cache/tutti. That counts on this machine, for this\n"
		 "version, if all ranks have the same; TUTTI_TUNE_FILE goes before, \"none\" turns "
		 "it "
		 "off.\n"
		 "If times change from round to round it keeps nothing, unless --busy says so.\n"
		 "Times are predictions, from the plan and the constants that --file lists with "
		 "their\n"
		 "sources; on one host what is taken was measured. TUTTI_ALGO pins algorithms.\n",
	.options = options,
	.run = run,
};
