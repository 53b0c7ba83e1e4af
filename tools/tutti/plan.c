/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* The words of --format, and the formats of the library. Graphviz draws SVG from DOT. */
enum { TABLE, JSON, DOT, SVG, NCCL };
static const tutti_plan_format formats[] = { TUTTI_PLAN_TABLE, TUTTI_PLAN_JSON, TUTTI_PLAN_DOT,
					     TUTTI_PLAN_DOT, TUTTI_PLAN_NCCL };

/* -- Writing ------------------------------------------------------------------------ */

static int write_format(const struct plan_options *options, tutti_plan_t plan,
			tutti_plan_format format, FILE *to)
{
	char *text = NULL;
	const tutti_status status =
		tutti_plan_print(plan, format, topo_flags(&options->source.topo, to), &text);

	return status ? plan_failed(status) : tool_write(text, to);
}

static int draw(tutti_plan_t plan, FILE *to)
{
	char *text = NULL;
	const tutti_status status = tutti_plan_print(plan, TUTTI_PLAN_DOT, 0, &text);

	return status ? plan_failed(status) : topo_draw_text(text, to);
}

static int write_lines(tutti_plan_t plan, tutti_plan_format format, const char *key)
{
	char *text = NULL;
	const tutti_status status = tutti_plan_print(plan, format, 0, &text);
	bool good;

	if (status)
		return plan_failed(status);
	good = tool_print_json(json_pack("{s:o}", key, tool_json_lines(text)));
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
	if (options->format == SVG)
		return draw(plan, to);
	if (options->format == TABLE)
		return write_table(options, plan, to);
	return write_format(options, plan, formats[options->format], to);
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

/* A plan file may be made for another machine. */
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
	const bool draws = options->format == SVG;

	if (options->format == NCCL)
		return tool_bad_usage("--handoff makes no graph file of NCCL: choose another "
				      "--format");
	if (options->explain && options->source.topo.json)
		return tool_bad_usage("--handoff --json has what --explain tells: give one");
	return plan_show_handoff(&options->source, &options->handoff, formats[options->format],
				 draws, options->explain, to);
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

int plan_run(void *self)
{
	struct plan_options *const options = self;
	FILE *to;
	int code;

	if (options->explain && !options->source.topo.json && options->format != TABLE)
		return tool_bad_usage("--explain is for the table and --json: leave out --format");
	code = plan_load(&options->source);
	if (options->source.topo.json && options->format == TABLE)
		options->format = JSON;
	if (code == TOOL_GOOD) {
		to = tool_open_output(options->output);
		code = to ? tool_close_output(to, options->output,
					      options->handoff.asked ? hand_off(options, to)
								     : plan_and_show(options, to))
			  : TOOL_USAGE;
	}
	plan_release(&options->source);
	return code;
}
