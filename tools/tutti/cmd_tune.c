/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti tune: how long each algorithm should take, which is taken, and why: the
 * constants behind it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo.h"

enum { OPT_TABLE = TOPO_FIRST_FREE, OPT_FILE, OPT_NODES, OPT_COLLECTIVE, OPT_HOST, OPT_TUNE };

struct tune {
	struct topo_source source;
	struct tutti_tune_config config;
	bool table, file;
};

static int write_text(char *text)
{
	fputs(text, stdout);
	free(text);
	return TOOL_GOOD;
}

/* What the user gave wrong is bad usage, all else a finding. */
static int failed(const struct args *args, tutti_status status)
{
	tool_error(args, "%s", tool_why(NULL, status));
	return status == TUTTI_EINVAL ? TOOL_USAGE : TOOL_FINDING;
}

static int print_file(const struct args *args, const struct tune *tune)
{
	char *text;
	const tutti_status status = tutti_tune_print_file(tune->config.tune_file, &text);

	return status ? failed(args, status) : write_text(text);
}

static int print_table(const struct args *args, struct tune *tune)
{
	tutti_status status;
	tutti_topo_t topo;
	char *text;
	int code = topo_load(args, &tune->source, &topo);

	if (code)
		return code;
	tune->config.json = tune->source.json;
	status = tutti_tune_print(topo, &tune->config, &text);
	code = status ? failed(args, status) : write_text(text);
	tutti_topo_free(topo);
	return code;
}

static bool take_collective(struct args *args, struct tune *tune, const char *name)
{
	tutti_collective coll;

	if (!tool_find_collective(args, name, &coll))
		return false;
	if (coll == TUTTI_SEND_RECV) {
		tool_usage(args, "send_recv has no algorithms to choose from");
		return false;
	}
	tune->config.collective = (int)coll;
	return true;
}

static bool take_option(struct args *args, struct tune *tune, int id, const char *value)
{
	switch (id) {
	case OPT_TABLE:
		tune->table = true;
		return true;
	case OPT_FILE:
		tune->file = true;
		return true;
	case OPT_NODES:
		return args_int(args, "--nodes", value, 1, 32767, &tune->config.nodes);
	case 'n':
		return args_int(args, "--ranks", value, 1, 32767, &tune->config.ranks_per_node);
	case OPT_COLLECTIVE:
		return take_collective(args, tune, value);
	case OPT_HOST:
		tune->config.host_memory = 1;
		return true;
	case OPT_TUNE:
		tune->config.tune_file = value;
		return true;
	default:
		return topo_take_option(args, &tune->source, id, value);
	}
}

static int run(struct args *args)
{
	struct tune tune = { TOPO_SOURCE_INIT, TUTTI_TUNE_CONFIG_INIT, false, false };
	const char *value;
	int id;

	while ((id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP)
			return TOOL_GOOD;
		if (id == ARGS_BAD || !take_option(args, &tune, id, value))
			return TOOL_USAGE;
	}
	if (tune.table == tune.file)
		return tool_usage(args, "say what to print: --table, or --file");
	return tune.table ? print_table(args, &tune) : print_file(args, &tune);
}

static const struct args_option options[] = {
	{ OPT_TABLE, "table", NULL, "predicted times, and what is taken" },
	{ OPT_FILE, "file", NULL, "constants and choices, to edit and give back" },
	{ OPT_NODES, "nodes", "N", "so many nodes of that kind (1)" },
	{ 'n', "ranks", "R", "on each node (one a GPU, or else a NUMA node)" },
	{ OPT_COLLECTIVE, "collective", "NAME", "that one alone" },
	{ OPT_HOST, "host", NULL, "data in host memory, though there are GPUs" },
	{ OPT_TUNE, "tune", "FILE", "constants and choices, else TUTTI_TUNE_FILE" },
	TOPO_SOURCE_OPTIONS,
	ARGS_OPTION_JSON,
	{ 0 },
};

const struct command command_tune = {
	.name = "tune",
	.summary = "how long each algorithm should take, and which is taken",
	.usage = "tune --table [--xml FILE] [--nodes N] [--ranks R] | tune --file",
	.notes = "Times are predictions, from the plan and the constants that --file lists with "
		 "their\n"
		 "sources; on one host what is taken was measured. TUTTI_ALGO pins algorithms.\n",
	.options = options,
	.run = run,
};
