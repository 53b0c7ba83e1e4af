/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti plan --handoff: who sends what over which NIC. */
#include "plan.h"
#include "tool.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANKS 4000000

/* "0-7,9" */
static bool read_ranks(const char *option, const char *text, int **out, int *n)
{
	const char *at = text;

	for (;;) {
		char *end;
		long first = strtol(at, &end, 10), last = first;
		int *more;

		if (end != at && *end == '-') {
			at = end + 1;
			last = strtol(at, &end, 10);
		}
		if (end == at || (*end && *end != ',') || first < 0 || last < first ||
		    last >= MOST_RANKS) {
			tool_bad_usage("%s '%s' is no list of ranks, as 0-7,9", option, text);
			return false;
		}
		more = realloc(*out, ((size_t)*n + (size_t)(last - first) + 1) * sizeof(*more));
		if (!more) {
			tool_fail("out of memory");
			return false;
		}
		*out = more;
		while (first <= last)
			more[(*n)++] = (int)first++;
		if (!*end)
			return true;
		at = end + 1;
	}
}

static bool read_sharded(const char *which, struct tutti_handoff_plan_config *config)
{
	config->from_sharded = !strcmp(which, "from") || !strcmp(which, "both");
	config->to_sharded = !strcmp(which, "to") || !strcmp(which, "both");
	if (config->from_sharded || config->to_sharded)
		return true;
	tool_bad_usage("--sharded '%s' is none of from, to and both", which);
	return false;
}

bool plan_take_handoff(struct plan_handoff *handoff, int id, const char *value)
{
	switch (id) {
	case PLAN_HANDOFF:
		handoff->asked = true;
		return true;
	case PLAN_FROM:
		handoff->config.nfrom = 0;
		return read_ranks("--from", value, &handoff->from, &handoff->config.nfrom);
	case PLAN_TO:
		handoff->config.nto = 0;
		return read_ranks("--to", value, &handoff->to, &handoff->config.nto);
	case PLAN_SHARDED:
		return read_sharded(value, &handoff->config);
	case PLAN_BYTES:
	default:
		return cli_size("--bytes", value, 1, &handoff->nbytes);
	}
}

static int print(const struct plan_handoff *handoff, tutti_handoff_plan_t plan,
		 tutti_plan_format format, bool draw, FILE *to)
{
	char *text = NULL;
	const tutti_status status = tutti_handoff_plan_print(plan, format, handoff->nbytes, &text);
	int code = TOOL_GOOD;

	if (status)
		return plan_failed(status);
	if (draw)
		code = topo_draw_text(text, to);
	else
		fputs(text, to);
	free(text);
	return code;
}

int plan_show_handoff(const struct plan_source *source, struct plan_handoff *handoff,
		      tutti_plan_format format, bool draw, bool explain, FILE *to)
{
	tutti_handoff_plan_t plan = NULL;
	tutti_status status;
	int code;

	handoff->config.from = handoff->from;
	handoff->config.to = handoff->to;
	status = tutti_handoff_plan_make(source->node_topo, source->nnodes, &source->config,
					 &handoff->config, &plan);
	if (status)
		return plan_failed(status);
	code = print(handoff, plan, format, draw, to);
	if (code == TOOL_GOOD && explain && format == TUTTI_PLAN_TABLE) {
		fputc('\n', to);
		code = print(handoff, plan, TUTTI_PLAN_EXPLAIN, false, to);
	}
	tutti_handoff_plan_free(plan);
	return code;
}

void plan_release_handoff(struct plan_handoff *handoff)
{
	free(handoff->from);
	free(handoff->to);
}
