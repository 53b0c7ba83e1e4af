/* SPDX-License-Identifier: BSD-3-Clause */
/* Findings that only a comparison of pairs shows: a node, or a pair, that is slow beside the
 * others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ping.h"

/* A rate is slow below this share of the usual one. */
#define OF_USUAL 0.5
/* With fewer rates there is no telling which is the usual one. */
#define LEAST    4
/* A rank that waits for a core for so much of the time shares it with other work. */
#define STARVED  0.1

#define REMEDY_NODE                                                                    \
	"look at that node's NIC, its cable and switch port (ethtool NIC: the speed; " \
	"tc qdisc: a limit), and for other work on its cores"
#define REMEDY_PAIR                                                               \
	"look at the way between them: another switch, a route that goes around " \
	"(ip route get), an uplink that is full"

/* One direction of one pair. */
struct way {
	int from, to;
	double gbps;
	double starved; /* share of the time in which one of the ranks had no core */
	bool told;      /* by what is wrong with a whole node                      */
};

struct ways {
	struct way *at;
	size_t n;
	double usual; /* the median */
};

static double figure(const json_t *pair, const char *name)
{
	return json_number_value(json_object_get(json_object_get(pair, "together"), name));
}

static int rank_of(const json_t *pair, const char *name)
{
	return (int)json_integer_value(json_object_get(pair, name));
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool find_usual(struct ways *ways)
{
	double *const sorted = malloc((ways->n + 1) * sizeof(*sorted));

	if (!sorted)
		return false;
	for (size_t i = 0; i < ways->n; i++)
		sorted[i] = ways->at[i].gbps;
	qsort(sorted, ways->n, sizeof(*sorted), compare);
	ways->usual = ways->n ? sorted[ways->n / 2] : 0;
	free(sorted);
	return true;
}

/* Those over a network: memory differs by where in the machine ranks are. */
static bool collect(const json_t *pairs, struct ways *out)
{
	const json_t *pair;
	size_t index;

	out->at = calloc(2 * json_array_size(pairs) + 1, sizeof(*out->at));
	if (!out->at)
		return false;
	json_array_foreach(pairs, index, pair)
	{
		const int a = rank_of(pair, "a"), b = rank_of(pair, "b");
		const char *transport = json_string_value(json_object_get(pair, "transport"));

		if (!strcmp(transport ? transport : "", "shm") ||
		    !json_is_true(json_object_get(json_object_get(pair, "together"), "measured")))
			continue;
		const double first = figure(pair, "a_starved"), second = figure(pair, "b_starved");
		const double starved = first > second ? first : second;

		out->at[out->n++] = (struct way){ a, b, figure(pair, "ab_gbps"), starved, false };
		out->at[out->n++] = (struct way){ b, a, figure(pair, "ba_gbps"), starved, false };
	}
	return find_usual(out);
}

/* `starved`: at least so much of the time, in all that the finding is about. */
static bool add(json_t *findings, const char *rule, const char *what, const char *remedy,
		double starved)
{
	const bool busy = starved > STARVED;
	char text[384];

	snprintf(text, sizeof(text), "%s%s", what,
		 busy ? "; other work may be the cause: the ranks had to wait for their cores"
		      : "");
	return !json_array_append_new(findings,
				      json_pack("{ss ss si ss ss}", "rule", rule, "severity",
						busy ? "info" : "error", "lane", -1, "what", text,
						"remedy", remedy));
}

/* All that one rank sends, or receives, is slow, with several others. */
static bool find_node(const struct ping_results *results, const struct ways *ways, int rank,
		      bool sends, json_t *findings)
{
	double best = 0, starved = 1;
	char what[256];
	int nways = 0;

	for (size_t i = 0; i < ways->n; i++) {
		struct way *const way = &ways->at[i];

		if ((sends ? way->from : way->to) != rank)
			continue;
		nways++;
		best = way->gbps > best ? way->gbps : best;
		starved = way->starved < starved ? way->starved : starved;
	}
	if (nways < 2 || best >= OF_USUAL * ways->usual)
		return true;
	for (size_t i = 0; i < ways->n; i++)
		if ((sends ? ways->at[i].from : ways->at[i].to) == rank)
			ways->at[i].told = true;
	snprintf(what, sizeof(what),
		 "all that rank %d (%.64s) %s is slow: %.3g GB/s at best, usual here is %.3g", rank,
		 results->places[rank].name, sends ? "sends" : "receives", best, ways->usual);
	return add(findings, "slow-node", what, REMEDY_NODE, starved);
}

static bool find_pair(const struct ways *ways, const struct way *way, json_t *findings)
{
	char what[256];

	if (way->told || way->gbps >= OF_USUAL * ways->usual)
		return true;
	snprintf(what, sizeof(what), "rank %d to rank %d is slow: %.3g GB/s, usual here is %.3g",
		 way->from, way->to, way->gbps, ways->usual);
	return add(findings, "slow-pair", what, REMEDY_PAIR, way->starved);
}

json_t *ping_compare(const struct ping_results *results)
{
	json_t *findings = json_array();
	struct ways ways = { 0 };
	bool good = findings && collect(results->pairs, &ways);

	for (int rank = 0; good && ways.n >= LEAST && rank < results->nranks; rank++)
		good = find_node(results, &ways, rank, true, findings) &&
		       find_node(results, &ways, rank, false, findings);
	for (size_t i = 0; good && ways.n >= LEAST && i < ways.n; i++)
		good = find_pair(&ways, &ways.at[i], findings);
	free(ways.at);
	if (good)
		return findings;
	json_decref(findings);
	return NULL;
}
