/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti plan --handoff: who sends what over which NIC. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int print(const struct plan_handoff *handoff, tutti_handoff_plan_t plan,
		 tutti_plan_format format, bool draw, FILE *to)
{
	char *text = NULL;
	const tutti_status status = tutti_handoff_plan_print(plan, format, handoff->nbytes, &text);
	if (status)
		return plan_failed(status);
	return draw ? topo_draw_text(text, to) : tool_write(text, to);
}

int plan_show_handoff(const struct plan_source *source, const struct plan_handoff *handoff,
		      tutti_plan_format format, bool draw, bool explain, FILE *to)
{
	struct tutti_handoff_plan_config config = TUTTI_HANDOFF_PLAN_CONFIG_INIT;
	tutti_handoff_plan_t plan = NULL;
	tutti_status status;
	int code;

	config.from = handoff->from.at;
	config.nfrom = handoff->from.n;
	config.to = handoff->to.at;
	config.nto = handoff->to.n;
	config.from_sharded = (handoff->sharded & PLAN_FROM) != 0;
	config.to_sharded = (handoff->sharded & PLAN_TO) != 0;
	status = tutti_handoff_plan_make(source->node_topo, source->nnodes, &source->config,
					 &config, &plan);
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
