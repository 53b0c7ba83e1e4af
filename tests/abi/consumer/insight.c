/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that asks: of this machine there is a topology, with a HOST at least. And each struct that
 * has a size is filled by its initialiser. Compiled as C and as C++. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/algo_file.h>
#include <tutti/insight.h>

static int initialisers_fill(void)
{
	const tutti_config config = TUTTI_CONFIG_INIT;
	const tutti_call call = TUTTI_CALL_INIT;
	const tutti_stream_ops stream_ops = TUTTI_STREAM_OPS_INIT;
	const tutti_window_config window_config = TUTTI_WINDOW_CONFIG_INIT;
	const tutti_lane lane = TUTTI_LANE_INIT;
	const tutti_ping_options ping_options = TUTTI_PING_OPTIONS_INIT;
	const tutti_ping_measure ping_measure = TUTTI_PING_MEASURE_INIT;
	const tutti_ping_finding ping_finding = TUTTI_PING_FINDING_INIT;
	const tutti_topo_config topo_config = TUTTI_TOPO_CONFIG_INIT;
	const tutti_plan_config plan_config = TUTTI_PLAN_CONFIG_INIT;
	const tutti_handoff_plan_config handoff_plan_config = TUTTI_HANDOFF_PLAN_CONFIG_INIT;
	const tutti_tune_config tune_config = TUTTI_TUNE_CONFIG_INIT;
	const tutti_tune_sample tune_sample = TUTTI_TUNE_SAMPLE_INIT;
	const tutti_algo_report algo_report = TUTTI_ALGO_REPORT_INIT;

	return config.size == sizeof(config) && call.size == sizeof(call) &&
	       stream_ops.size == sizeof(stream_ops) &&
	       window_config.size == sizeof(window_config) && lane.size == sizeof(lane) &&
	       ping_options.size == sizeof(ping_options) &&
	       ping_measure.size == sizeof(ping_measure) &&
	       ping_finding.size == sizeof(ping_finding) &&
	       topo_config.size == sizeof(topo_config) && plan_config.size == sizeof(plan_config) &&
	       handoff_plan_config.size == sizeof(handoff_plan_config) &&
	       tune_config.size == sizeof(tune_config) && tune_sample.size == sizeof(tune_sample) &&
	       algo_report.size == sizeof(algo_report);
}

int main(void)
{
	tutti_topo_t topo = NULL;
	char *text = NULL;
	int good;

	if (tutti_topo_load(NULL, &topo) != TUTTI_OK) {
		fprintf(stderr, "%s\n", tutti_last_error(NULL));
		return 1;
	}
	good = initialisers_fill() &&
	       tutti_topo_print(topo, TUTTI_TOPO_JSON, 0, &text) == TUTTI_OK &&
	       strstr(text, "HOST") != NULL;
	free(text);
	tutti_topo_free(topo);
	puts(good ? "42" : "no HOST");
	return 0;
}
