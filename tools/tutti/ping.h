/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PING_H
#define TOOL_PING_H

/* tutti ping in parts: ping.c starts the ranks, ping_pairs.c says who measures whom
 * when, ping_rank.c measures on one rank and brings the results to rank 0, ping_json.c makes
 * one object of a pair's, ping_print.c shows them, ping_compare.c finds what is only seen
 * when pairs are compared. */

#include "ranks.h"

enum { PING_AUTO, PING_HOSTS, PING_RANKS };

struct ping_options {
	int nranks; /* 0: a launcher started us as one rank */
	struct tutti_ping_options ping;
	const char *transport; /* NULL: not said */
	int whom;
	int peer[2]; /* -1: all */
	bool json;
};

/* The value of --peer, into int[2]. */
bool ping_take_peer(const char *label, const char *value, void *field);
int ping_run(void *options);

/* Each rank shares this with the others; the host is the lowest rank that shares memory with it. */
struct ping_place {
	int host, pid;
	char name[64];
};

/* -- Who measures whom ---------------------------------------------------------- */

struct ping_pair {
	int step, a, b; /* a < b */
};

struct ping_pairs {
	struct ping_pair *at; /* by step; free() */
	size_t n, room;
	int nsteps;
};

/* All pairs of hosts (of each its lowest rank), or all pairs of ranks: in steps, so that no
 * host is in two pairs of a step. false: no memory. */
bool ping_pairs_make(const struct ping_place *places, int nranks, bool all_ranks,
		     struct ping_pairs *out);

/* -- One rank -------------------------------------------------------------------- */

/* The main of struct ranks; options is a ping_options. */
int ping_rank_main(void *options, struct rank *rank);

/* -- Results, as objects ----------------------------------------------------------- */

/* NULL: no memory. */
json_t *ping_json(const struct ping_pair *pair, const struct ping_place *places,
		  const char *transport, tutti_ping_t ping);

/* Everything that came to rank 0. */
struct ping_results {
	const struct ping_options *options;
	const struct ping_place *places;
	int nranks;
	json_t *pairs; /* array of what ping_json() made */
	int nfindings; /* that make the exit code 1      */
	int nremarks;  /* that do not                    */
};

/* Findings of the whole: nodes and pairs that are slow beside the others. */
json_t *ping_compare(const struct ping_results *results);

/* -- Printing --------------------------------------------------------------------- */

void ping_print_start(const struct ping_results *results, const struct ping_pairs *pairs);
/* One pair; takes it. Counts its findings. */
bool ping_print_pair(struct ping_results *results, json_t *pair);
/* The matrix, and what was found by comparing. */
bool ping_print_end(struct ping_results *results);

#endif
