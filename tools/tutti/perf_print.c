/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of perf: the table of nccl-tests, column for column and comment for
 * comment, since many scripts read it; or one JSON object per size. */
#include <stdio.h>

#include "perf.h"

void perf_print_start(const struct perf_options *options)
{
	const int version = tutti_version();
	char iters[16];

	if (options->json)
		return;
	if (options->iters)
		snprintf(iters, sizeof(iters), "%d", options->iters);
	else
		snprintf(iters, sizeof(iters), "auto");
	printf("# tutti version %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
	printf("# Collective test starting: %s_perf\n", tutti_collective_name(options->coll));
	printf("# nThread %d nGpus 1 minBytes %zu maxBytes %zu step: %zu(factor) warmup iters: %d "
	       "iters: %s agg iters: 1 validation: %d graph: 0\n#%s\n# Using devices\n",
	       options->threads ? options->nranks : 1, options->min_bytes, options->max_bytes,
	       options->factor, options->warmup, iters, options->check,
	       options->reproducible ? " Reductions are reproducible\n#" : "");
}

void perf_print_rank(int rank, int pid, const char *host)
{
	printf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [host] CPU\n", rank, 0, pid, host,
	       0);
}

void perf_print_plan(const char *text)
{
	printf("#\n# Plan: ");
	for (; *text; text++) {
		putchar(*text);
		if (*text == '\n' && text[1])
			printf("#  ");
	}
}

void perf_print_columns(void)
{
	static const char line[] = "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  "
				   "%6s  %6s\n";

	printf("#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       "
	       "in-place          \n",
	       "", "", "", "", "");
	printf(line, "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong",
	       "time", "algbw", "busbw", "#wrong");
	printf(line, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
	       "(GB/s)", "(GB/s)", "");
	/* The first row may take a while. */
	fflush(stdout);
}

/* As many decimals as fit, at most two. */
static void print_number(double value, int width)
{
	char text[32];

	for (int decimals = 2; decimals >= 0; decimals--) {
		if (snprintf(text, sizeof(text), "%*.*f", width, decimals, value) <= width)
			break;
		if (decimals == 0)
			snprintf(text, sizeof(text), "%*.0e", width, value);
	}
	printf("  %s", text);
}

static void print_result(const struct perf_result *result)
{
	if (!result->valid) {
		printf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
		return;
	}
	print_number(result->time_us, 7);
	print_number(result->algbw, 6);
	print_number(result->busbw, 6);
	if (result->checked)
		printf("  %6g", (double)result->wrong);
	else
		printf("  %6s", "N/A");
}

static json_t *json_of(const struct perf_result *result)
{
	json_t *wrong;

	if (!result->valid)
		return json_null();
	wrong = result->checked ? json_integer((json_int_t)result->wrong) : json_null();
	return json_pack("{s:f, s:f, s:f, s:o}", "time_us", result->time_us, "algbw_gbps",
			 result->algbw, "busbw_gbps", result->busbw, "wrong", wrong);
}

bool perf_print_row(const struct perf_rank *pr, const struct perf_row *row)
{
	const struct perf_options *const options = pr->options;
	const bool moves = options->coll != TUTTI_BARRIER;
	const char *op = coll_is(options->coll, COLL_REDUCES) ? tutti_op_name(row->op) : "none";
	const int root = coll_is(options->coll, COLL_ROOTED) ? options->root : -1;
	json_t *object;

	if (!options->json) {
		printf("%12zu  %12zu  %8s  %6s  %6d", row->layout.bytes, row->layout.param,
		       moves ? perf_nccl_name(row->type) : "none", op, root);
		print_result(&row->out_of_place);
		print_result(&row->in_place);
		printf("\n");
		/* A comment, so that programs that read the table of nccl-tests read this one. */
		if (options->verbose)
			printf("#  %s over %s, %d channel%s\n", row->algorithm, row->transport,
			       row->channels, row->channels == 1 ? "" : "s");
		fflush(stdout);
		return true;
	}
	object = json_pack(
		"{s:s, s:i, s:I, s:I, s:s, s:s, s:i, s:o, s:o, s:s, s:i, s:s}", "collective",
		tutti_collective_name(options->coll), "nranks", pr->nranks, "bytes",
		(json_int_t)row->layout.bytes, "count", (json_int_t)row->layout.param, "type",
		moves ? tutti_type_name(row->type) : "none", "op", op, "root", root, "out_of_place",
		json_of(&row->out_of_place), "in_place", json_of(&row->in_place), "algorithm",
		row->algorithm, "channels", row->channels, "transport", row->transport);
	if (options->reproducible)
		json_object_set_new(object, "reproducible", json_true());
	if (!tool_print_json(object))
		return false;
	fflush(stdout);
	return true;
}

void perf_print_end(const struct perf_rank *pr)
{
	if (pr->options->json)
		return;
	printf("# %-20s : %lld %s\n", "Out of bounds values", pr->wrong,
	       pr->wrong ? "FAILED" : "OK");
	printf("# %-20s : %g \n#\n", "Avg bus bandwidth",
	       pr->busbw_count ? pr->busbw_sum / pr->busbw_count : 0.0);
	printf("# Collective test concluded: %s_perf\n", tutti_collective_name(pr->options->coll));
	fflush(stdout);
}
