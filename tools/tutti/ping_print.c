/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of ping: a table of lanes, findings below each pair, a matrix of all pairs. */
#include <stdio.h>
#include <string.h>

#include "ping.h"

static const char *text_of(const json_t *object, const char *name)
{
	const char *const text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static double number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static int rank_of(const json_t *pair, const char *name)
{
	return (int)json_integer_value(json_object_get(pair, name));
}

static bool is_measured(const json_t *object)
{
	return json_is_true(json_object_get(object, "measured"));
}

/* -- Beginning ------------------------------------------------------------------------ */

void ping_print_start(const struct ping_results *results, const struct ping_pairs *pairs)
{
	int nhosts = 0;

	if (results->options->json)
		return;
	for (int rank = 0; rank < results->nranks; rank++)
		nhosts += results->places[rank].host == rank;
	printf("# ping of %d ranks on %d host%s: %zu pair%s in %d round%s\n", results->nranks,
	       nhosts, nhosts == 1 ? "" : "s", pairs->n, pairs->n == 1 ? "" : "s", pairs->nsteps,
	       pairs->nsteps == 1 ? "" : "s");
	for (int rank = 0; rank < results->nranks; rank++)
		printf("#  rank %3d  process %7d on %s\n", rank, results->places[rank].pid,
		       results->places[rank].name);
	printf("#\n#%36s %23s %7s %7s %8s  %6s %6s %13s\n", "", "", "claimed", "rtt", "rtt p99",
	       "a to b", "b to a", "both at once");
	printf("#%3s %4s %4s  %-22s  %-22s %7s %7s %8s  %6s %6s %13s\n", "a", "b", "lane",
	       "end of a", "end of b", "Mbit/s", "us", "us", "GB/s", "GB/s", "GB/s");
	fflush(stdout);
}

/* -- Pairs ------------------------------------------------------------------------------ */

static void print_end_of_lane(const json_t *lane, const char *nic, const char *address)
{
	char text[96];

	snprintf(text, sizeof(text), "%.16s%s%.64s", text_of(lane, nic),
		 text_of(lane, address)[0] ? " " : "", text_of(lane, address));
	printf("  %-22s", text[0] ? text : "-");
}

static void print_measure(const json_t *measure)
{
	char both[32];

	if (!is_measured(measure)) {
		printf(" %7s %8s  %6s %6s %13s\n", "-", "-", "-", "-", "-");
		return;
	}
	snprintf(both, sizeof(both), "%.3g+%.3g", number_of(measure, "both_ab_gbps"),
		 number_of(measure, "both_ba_gbps"));
	printf(" %7.4g %8.4g  %6.3g %6.3g %13s\n", number_of(measure, "rtt_us"),
	       number_of(measure, "rtt_p99_us"), number_of(measure, "ab_gbps"),
	       number_of(measure, "ba_gbps"), both);
}

static void print_lane(const json_t *pair, const json_t *lane)
{
	const double a = number_of(lane, "a_mbps"), b = number_of(lane, "b_mbps");
	const double claim = a < b ? a : b;

	printf("%4d %4d %4d", rank_of(pair, "a"), rank_of(pair, "b"), rank_of(lane, "lane"));
	print_end_of_lane(lane, "a_nic", "a_address");
	print_end_of_lane(lane, "b_nic", "b_address");
	if (claim > 0)
		printf(" %7.0f", claim);
	else
		printf(" %7s", "-");
	print_measure(lane);
}

static void print_findings(const json_t *findings)
{
	const json_t *finding;
	size_t index;

	json_array_foreach(findings, index, finding)
	{
		printf("     %s: %s\n", text_of(finding, "severity"), text_of(finding, "what"));
		printf("       -> %s\n", text_of(finding, "remedy"));
	}
}

static void count(struct ping_results *results, const json_t *findings)
{
	const json_t *finding;
	size_t index;

	json_array_foreach(findings, index, finding)
	{
		if (strcmp(text_of(finding, "severity"), "info") != 0)
			results->nfindings++;
		else
			results->nremarks++;
	}
}

bool ping_print_pair(struct ping_results *results, json_t *pair)
{
	const json_t *const lanes = json_object_get(pair, "lanes");
	const json_t *lane;
	size_t index;

	count(results, json_object_get(pair, "findings"));
	if (json_array_append_new(results->pairs, pair))
		return false;
	if (results->options->json)
		return tool_print_json(json_incref(pair));
	json_array_foreach(lanes, index, lane) print_lane(pair, lane);
	if (json_array_size(lanes) != 1) {
		printf("%4d %4d %4s  %-22s  %-22s %7s", rank_of(pair, "a"), rank_of(pair, "b"),
		       "all", "", "", "");
		print_measure(json_object_get(pair, "together"));
	}
	print_findings(json_object_get(pair, "findings"));
	fflush(stdout);
	return true;
}

/* -- The whole ---------------------------------------------------------------------------- */

/* The figure of a direction, < 0: not measured. */
static double find_figure(const json_t *pairs, int from, int to, bool rate)
{
	const json_t *pair;
	size_t index;

	json_array_foreach(pairs, index, pair)
	{
		const json_t *const together = json_object_get(pair, "together");
		const int a = rank_of(pair, "a"), b = rank_of(pair, "b");
		const bool forth = a == from && b == to, back = a == to && b == from;

		if ((!forth && !back) || !is_measured(together))
			continue;
		return number_of(together, !rate ? "rtt_us" : forth ? "ab_gbps" : "ba_gbps");
	}
	return -1;
}

static bool takes_part(const json_t *pairs, int rank)
{
	const json_t *pair;
	size_t index;

	json_array_foreach(pairs, index, pair) if (rank_of(pair, "a") == rank ||
						   rank_of(pair, "b") == rank) return true;
	return false;
}

static void print_matrix(const struct ping_results *results, bool rate)
{
	printf("#\n# %s\n#     ",
	       rate ? "GB/s from the rank of the row to that of the column" : "round trip in us");
	for (int to = 0; to < results->nranks; to++)
		if (takes_part(results->pairs, to))
			printf(" %7d", to);
	putchar('\n');
	for (int from = 0; from < results->nranks; from++) {
		if (!takes_part(results->pairs, from))
			continue;
		printf("# %4d", from);
		for (int to = 0; to < results->nranks; to++) {
			const double figure = find_figure(results->pairs, from, to, rate);

			if (!takes_part(results->pairs, to))
				continue;
			if (figure >= 0)
				printf(" %7.*g", rate ? 3 : 4, figure);
			else
				printf(" %7s", from == to ? "." : "-");
		}
		putchar('\n');
	}
}

static void print_sum(const struct ping_results *results)
{
	if (results->nfindings)
		printf("# %d thing%s wrong", results->nfindings,
		       results->nfindings == 1 ? " is" : "s are");
	else
		printf("# nothing is wrong");
	if (results->nremarks)
		printf(", %d thing%s remarkable", results->nremarks,
		       results->nremarks == 1 ? " is" : "s are");
	putchar('\n');
}

bool ping_print_end(struct ping_results *results)
{
	json_t *const findings = ping_compare(results);
	const bool any = json_array_size(findings) > 0;

	if (!findings)
		return false;
	count(results, findings);
	if (results->options->json) {
		if (any)
			return tool_print_json(json_pack("{so}", "findings", findings));
		json_decref(findings);
		return true;
	}
	if (json_array_size(results->pairs) > 1) {
		print_matrix(results, true);
		print_matrix(results, false);
		putchar('\n');
	}
	print_findings(findings);
	json_decref(findings);
	print_sum(results);
	return true;
}
