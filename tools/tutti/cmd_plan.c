/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti plan: which channels a job would use over its machines, and why. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "tool.h"

enum {
	OPT_FORMAT = PLAN_FIRST_FREE,
	OPT_EXPLAIN,
	OPT_PLAN,
	OPT_COMPARE,
};

/* Not a format of the library: it is drawn by another program. */
#define FORMAT_SVG (-1)

struct plan_options {
	struct plan_source source;
	struct plan_handoff handoff;
	const char *output;
	const char *plan;    /* a file, in place of a search */
	const char *compare; /* a file, beside the search    */
	int format;
	bool explain;
};

static bool find_format(const char *name, int *out)
{
	static const struct {
		const char *name;
		int format;
	} formats[] = { { "table", TUTTI_PLAN_TABLE },
			{ "json", TUTTI_PLAN_JSON },
			{ "dot", TUTTI_PLAN_DOT },
			{ "svg", FORMAT_SVG },
			{ "nccl", TUTTI_PLAN_NCCL } };

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(name, formats[i].name)) {
			*out = formats[i].format;
			return true;
		}
	tool_bad_usage("there is no format '%s': choose one of table, json, dot, svg, nccl", name);
	return false;
}

static bool take_option(struct plan_options *options, int id, const char *value)
{
	switch (id) {
	case OPT_FORMAT:
		return find_format(value, &options->format);
	case OPT_EXPLAIN:
		options->explain = true;
		return true;
	case OPT_PLAN:
		options->plan = value;
		return true;
	case OPT_COMPARE:
		options->compare = value;
		return true;
	case 'o':
		options->output = value;
		return true;
	case PLAN_HANDOFF:
	case PLAN_FROM:
	case PLAN_TO:
	case PLAN_SHARDED:
	case PLAN_BYTES:
		return plan_take_handoff(&options->handoff, id, value);
	default:
		return plan_take_option(&options->source, id, value);
	}
}

/* -1: go on; else the exit code. */
static int read_options(struct args *args, struct plan_options *options)
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

/* -- Writing ------------------------------------------------------------------------ */

static int write_format(const struct plan_options *options, tutti_plan_t plan,
			tutti_plan_format format, FILE *to)
{
	char *text = NULL;
	const tutti_status status =
		tutti_plan_print(plan, format, topo_flags(&options->source.topo, to), &text);

	if (status)
		return plan_failed(status);
	fputs(text, to);
	free(text);
	return TOOL_GOOD;
}

static int draw(tutti_plan_t plan, FILE *to)
{
	char *text = NULL;
	const tutti_status status = tutti_plan_print(plan, TUTTI_PLAN_DOT, 0, &text);
	int code;

	if (status)
		return plan_failed(status);
	code = topo_draw_text(text, to);
	free(text);
	return code;
}

/* Words as a list of lines. */
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

static int write_lines(tutti_plan_t plan, tutti_plan_format format, const char *key)
{
	char *text = NULL;
	const tutti_status status = tutti_plan_print(plan, format, 0, &text);
	bool good;

	if (status)
		return plan_failed(status);
	good = tool_print_json(json_pack("{s:o}", key, lines_of(text)));
	free(text);
	return good ? TOOL_GOOD : TOOL_FINDING;
}

/* A table, and what was asked for besides. */
static int write_table(const struct plan_options *options, tutti_plan_t plan, FILE *to)
{
	const bool advise = options->source.order || options->source.hostfile;
	int code = write_format(options, plan, TUTTI_PLAN_TABLE, to);

	if (code == TOOL_GOOD && options->explain) {
		fputc('\n', to);
		code = write_format(options, plan, TUTTI_PLAN_EXPLAIN, to);
	}
	if (code == TOOL_GOOD && advise) {
		fputc('\n', to);
		code = write_format(options, plan, TUTTI_PLAN_ADVICE, to);
	}
	return code;
}

static int show(const struct plan_options *options, tutti_plan_t plan, FILE *to)
{
	if (options->source.topo.json && options->explain)
		return write_lines(plan, TUTTI_PLAN_EXPLAIN, "explain");
	if (options->format == FORMAT_SVG)
		return draw(plan, to);
	if (options->format == TUTTI_PLAN_TABLE)
		return write_table(options, plan, to);
	return write_format(options, plan, (tutti_plan_format)options->format, to);
}

/* -- Beside another ------------------------------------------------------------------- */

static bool find_pattern(tutti_plan_t plan, const char *name, struct tutti_plan_pattern *out)
{
	for (int i = 0; i < tutti_plan_pattern_count(plan); i++)
		if (tutti_plan_get_pattern(plan, i, out) == TUTTI_OK && !strcmp(out->name, name))
			return true;
	return false;
}

static json_t *compare_pattern(const struct tutti_plan_pattern *theirs,
			       const struct tutti_plan_pattern *ours)
{
	return json_pack("{s:s, s:i, s:f, s:i, s:f, s:f, s:f}", "pattern", theirs->name,
			 "file_channels", theirs->nchannels, "file_bw_gbps", theirs->total_gbps,
			 "channels", ours->nchannels, "total_bw_gbps", ours->total_gbps,
			 "bound_bw_gbps", ours->bound_gbps, "ratio",
			 theirs->total_gbps > 0 ? ours->total_gbps / theirs->total_gbps : 0.0);
}

static int print_comparison(const struct plan_options *options, tutti_plan_t theirs,
			    tutti_plan_t ours, FILE *to)
{
	json_t *list = json_array();

	if (!options->source.topo.json)
		fprintf(to, "%-14s  %8s  %9s  %8s  %9s  %9s  %6s\n", "pattern", "file's", "GB/s",
			"ours", "GB/s", "at most", "ratio");
	for (int i = 0; i < tutti_plan_pattern_count(theirs); i++) {
		struct tutti_plan_pattern a, b;

		if (tutti_plan_get_pattern(theirs, i, &a) != TUTTI_OK ||
		    !find_pattern(ours, a.name, &b))
			continue;
		if (options->source.topo.json)
			json_array_append_new(list, compare_pattern(&a, &b));
		else
			fprintf(to, "%-14s  %8d  %9.2f  %8d  %9.2f  %9.2f  %6.2f\n", a.name,
				a.nchannels, a.total_gbps, b.nchannels, b.total_gbps, b.bound_gbps,
				b.total_gbps / a.total_gbps);
	}
	if (!options->source.topo.json) {
		json_decref(list);
		return TOOL_GOOD;
	}
	return tool_print_json(json_pack("{s:o}", "patterns", list)) ? TOOL_GOOD : TOOL_FINDING;
}

static int compare(const struct plan_options *options, tutti_plan_t ours, FILE *to)
{
	const struct plan_source *source = &options->source;
	tutti_plan_t theirs = NULL;
	const tutti_status status = tutti_plan_read(options->compare, source->node_topo,
						    source->nnodes, &source->config, &theirs);
	char *text = NULL;
	int code, nfindings = 0;

	if (status)
		return plan_failed(status);
	code = print_comparison(options, theirs, ours, to);
	if (code == TOOL_GOOD && !source->topo.json &&
	    tutti_plan_check(theirs, &text, &nfindings) == TUTTI_OK && nfindings)
		fprintf(to, "\nmore than the machine has:\n%s", text);
	free(text);
	tutti_plan_free(theirs);
	return code;
}

/* -- plan ----------------------------------------------------------------------------- */

/* What is pinned may be of another machine. */
static int warn_of_excess(const struct plan_options *options, tutti_plan_t plan)
{
	char *text = NULL;
	int nfindings = 0;
	const tutti_status status = tutti_plan_check(plan, &text, &nfindings);

	if (status)
		return plan_failed(status);
	if (nfindings)
		fprintf(stderr, "tutti %s: %s asks for more than the machine has\n%s", tool_verb(),
			options->plan, text);
	free(text);
	return TOOL_GOOD;
}

static int make(const struct plan_options *options, tutti_plan_t *out)
{
	const struct plan_source *source = &options->source;
	tutti_status status;

	if (!options->plan) {
		status = tutti_plan_make(source->node_topo, source->nnodes, &source->config, out);
		return status ? plan_failed(status) : TOOL_GOOD;
	}
	status = tutti_plan_read(options->plan, source->node_topo, source->nnodes, &source->config,
				 out);
	return status ? plan_failed(status) : warn_of_excess(options, *out);
}

static int hand_off(struct plan_options *options, FILE *to)
{
	const bool draws = options->format == FORMAT_SVG;

	if (options->plan || options->compare || options->format == TUTTI_PLAN_NCCL)
		return tool_bad_usage("--handoff goes with no plan and no graph file of NCCL");
	if (options->explain && options->source.topo.json)
		return tool_bad_usage("--handoff --json has what --explain tells: give one");
	return plan_show_handoff(&options->source, &options->handoff,
				 draws ? TUTTI_PLAN_DOT : (tutti_plan_format)options->format, draws,
				 options->explain, to);
}

static int plan_and_show(const struct plan_options *options, FILE *to)
{
	tutti_plan_t plan = NULL;
	int code = make(options, &plan);

	if (code == TOOL_GOOD)
		code = options->compare ? compare(options, plan, to) : show(options, plan, to);
	tutti_plan_free(plan);
	return code;
}

static int write_to(struct plan_options *options)
{
	FILE *to = options->output ? fopen(options->output, "we") : stdout;
	int code;

	if (!to)
		return tool_bad_usage("cannot write '%s': %s", options->output, strerror(errno));
	code = options->handoff.asked ? hand_off(options, to) : plan_and_show(options, to);
	if (to != stdout && (ferror(to) | fclose(to)) && code == TOOL_GOOD)
		code = tool_fail("writing '%s' failed: %s", options->output, strerror(errno));
	return code;
}

/* Said, but of no use: a mistake. */
static bool check_options(const struct plan_options *options)
{
	const struct plan_handoff *handoff = &options->handoff;

	if (handoff->asked || !(handoff->from || handoff->to || handoff->config.from_sharded ||
				handoff->config.to_sharded))
		return true;
	tool_bad_usage("--from, --to and --sharded are for --handoff");
	return false;
}

static int run_plan(struct args *args)
{
	struct plan_options options = { .source = PLAN_SOURCE_INIT,
					.handoff = PLAN_HANDOFF_INIT,
					.format = TUTTI_PLAN_TABLE };
	int code = read_options(args, &options);

	if (options.source.topo.json && options.format == TUTTI_PLAN_TABLE)
		options.format = TUTTI_PLAN_JSON;
	if (code < 0 && !check_options(&options))
		code = TOOL_USAGE;
	else if (code < 0)
		code = plan_load(&options.source);
	else
		code = code ? code : -1;
	if (code == TOOL_GOOD)
		code = write_to(&options);
	plan_release(&options.source);
	plan_release_handoff(&options.handoff);
	return code < 0 ? TOOL_GOOD : code;
}

static const struct command *const subcommands[] = {
	&command_plan_diff,
	&command_plan_check,
	&command_plan_read,
};

static int run(struct args *args)
{
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
		if (args->argc && !strcmp(args->argv[0], subcommands[i]->name + strlen("plan "))) {
			args->command = subcommands[i];
			tool_set_verb(args->command->name);
			args->argv++;
			args->argc--;
			return args->command->run(args);
		}
	return run_plan(args);
}

static const struct args_option options[] = {
	PLAN_MACHINE_OPTIONS,
	PLAN_SEARCH_OPTIONS,
	PLAN_HANDOFF_OPTIONS,
	{ OPT_EXPLAIN, "explain", NULL, "say what limits it, and what would help" },
	{ OPT_PLAN, "plan", "FILE", "this plan, or graph file of NCCL, in place of a search" },
	{ OPT_COMPARE, "compare", "FILE", "its channels beside ours" },
	{ OPT_FORMAT, "format", "FORMAT", "table, json, dot, svg or nccl (table)" },
	{ 'o', "output", "FILE", "write there" },
	{ TOPO_COLOR, "color", "WHEN", "auto, always or never (auto)" },
	ARGS_OPTION_JSON,
	{ 0 },
};

const struct command command_plan = {
	.name = "plan",
	.summary = "which channels a job would use over its machines, and why",
	.usage = "plan [--xml FILE[*N]]... [--nodes N] [--ranks R] [--explain] [--format FORMAT]",
	.notes = "Without a file or folder: this machine, as TUTTI_TOPO_FILE and TUTTI_SYSFS_ROOT "
		 "say.\n"
		 "With --order or --hostfile: what that order of ranks costs a library that keeps "
		 "it.\n"
		 "\n"
		 "  tutti plan diff A B    what differs between two plans\n"
		 "  tutti plan check FILE  whether it is one, and the machines can carry it\n"
		 "  tutti plan read FILE   print it again\n"
		 "\n"
		 "Each has a --help of its own; docs/planning.md has the rest, and docs/handoff.md "
		 "what\n"
		 "is about --handoff.\n",
	.options = options,
	.run = run,
};
