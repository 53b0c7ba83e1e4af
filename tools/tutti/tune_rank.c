/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a phase of tutti tune: which algorithm is taken, and which would be better. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune_time.h"

/* What another algorithm must save to be worth a line in a file, and in how many rounds. */
#define WORTH 0.9

static const tutti_collective measured[] = {
	TUTTI_ALL_REDUCE, TUTTI_ALL_GATHER, TUTTI_REDUCE_SCATTER, TUTTI_BROADCAST, TUTTI_REDUCE,
};
#define NMEASURED (sizeof(measured) / sizeof(measured[0]))

/* -- What is found --------------------------------------------------------------------- */

static void keep_time(struct tune_rank *r, const struct tune_runner *runner)
{
	struct tune_results *results = r->job->results;
	struct tune_time *time = &results->times[results->ntimes];

	if (r->rank != 0)
		return;
	if (results->ntimes == TUNE_TIMES) {
		results->overflow = true;
		return;
	}
	*time = (struct tune_time){ .coll = runner->coll,
				    .algorithm = runner->algorithm,
				    .nbytes = runner->nbytes,
				    .phase = r->job->phase,
				    .us = tune_median(runner->us, TUNE_ROUNDS),
				    .quiet_us = tune_ordered(runner->us, TUNE_ROUNDS, 1) };
	memcpy(time->rounds, runner->us, sizeof(time->rounds));
	results->ntimes++;
	results->nunsteady += !tune_is_steady(runner->us, TUNE_ROUNDS);
}

/* By the median, in all rounds but one, and where time is the same from round to round. */
static bool is_better(const struct tune_runner *runner, const struct tune_runner *than, int rounds)
{
	int won = 0;

	for (int i = 0; i < rounds; i++)
		won += runner->us[i] < than->us[i];
	return won >= rounds - 1 &&
	       tune_median(runner->us, rounds) < WORTH * tune_median(than->us, rounds);
}

static void keep_better(struct tune_rank *r, const struct tune_runner *taken,
			const struct tune_runner *better)
{
	struct tune_results *results = r->job->results;
	const struct tune_better *last = NULL;
	bool goes_on = false;

	if (r->rank != 0)
		return;
	/* Sizes come one after the other. */
	for (int i = 0; i < results->nbetters; i++)
		if (results->betters[i].coll == taken->coll && results->betters[i].nranks == r->n)
			last = &results->betters[i];
	if (last)
		goes_on = last->better == better->algorithm && last->upto == taken->nbytes / 8;
	if (results->nbetters == TUNE_BETTERS) {
		results->overflow = true;
		return;
	}
	/* Between two sizes at which it is better it is, too. */
	results->betters[results->nbetters++] = (struct tune_better){
		.coll = taken->coll,
		.taken = taken->algorithm,
		.better = better->algorithm,
		.from = goes_on ? last->upto + 1 : taken->nbytes / 2 + 1,
		.upto = taken->nbytes,
		.nranks = r->n,
		.taken_us = tune_median(taken->us, TUNE_AGAIN),
		.better_us = tune_median(better->us, TUNE_AGAIN),
	};
}

/* The same by another name takes the same time: whether programs differ in more than their
 * first line, which has the name. */
static bool differ(const struct tune_rank *r, const struct tune_runner *a,
		   const struct tune_runner *b)
{
	const struct tune_runner *const of[2] = { a, b };
	char *text[2] = { NULL, NULL };
	const char *rest[2] = { NULL, NULL };
	bool different = false;

	for (int i = 0; i < 2; i++)
		if (tutti_program_print(of[i]->coll, of[i]->algorithm, r->n, 0, -1, 0, &text[i]) ==
		    TUTTI_OK)
			rest[i] = strchr(text[i], '\n');
	if (rest[0] && rest[1])
		different = strcmp(rest[0], rest[1]) != 0;
	free(text[0]);
	free(text[1]);
	return different;
}

static bool pin_to(struct tune_rank *r, const char *algorithms, tutti_comm_t *out)
{
	tutti_config config = TUTTI_CONFIG_INIT;

	config.algo = algorithms;
	return tune_is_good(r, tutti_comm_split(r->comm, 0, r->rank, out, &config),
			    "pinning algorithms");
}

/* Once more, over more rounds, and on communicators of their own, whose memory lies elsewhere:
 * the best of many is also the luckiest. */
static bool compare_again(struct tune_rank *r, struct tune_runner *pair)
{
	bool good = true;
	char text[128];

	for (int i = 0; i < 2 && good; i++) {
		snprintf(text, sizeof(text), "%s:%s", tutti_collective_name(pair[i].coll),
			 pair[i].algorithm);
		pair[i].comm = NULL;
		good = pin_to(r, text, &pair[i].comm);
	}
	good = good && tune_warm_up_all(r, pair, 2, 2) && tune_take_turns(r, pair, 2, TUNE_AGAIN);
	for (int i = 0; i < 2; i++)
		if (pair[i].comm)
			good = tune_is_good(r, tutti_comm_destroy(pair[i].comm), "leaving") && good;
	return good;
}

static bool look_for_better(struct tune_rank *r, const struct tune_runner *runners, int n,
			    int taken)
{
	struct tune_runner pair[2];
	int best = taken;

	for (int i = 0; i < n; i++)
		if (!runners[i].out &&
		    tune_median(runners[i].us, TUNE_ROUNDS) <
			    tune_median(runners[best].us, TUNE_ROUNDS) &&
		    differ(r, &runners[i], &runners[taken]))
			best = i;
	if (best == taken || !is_better(&runners[best], &runners[taken], TUNE_ROUNDS))
		return true;
	pair[0] = runners[taken];
	pair[1] = runners[best];
	if (!compare_again(r, pair))
		return false;
	if (is_better(&pair[1], &pair[0], TUNE_AGAIN))
		keep_better(r, &pair[0], &pair[1]);
	return true;
}

/* In these processes, too: where their memory lies, and where they run, is another matter. */
static bool confirm_all(struct tune_rank *r)
{
	struct tune_results *results = r->job->results;

	for (int i = 0; i < results->nbetters; i++) {
		struct tune_better *better = &results->betters[i];
		struct tune_runner pair[2] = { { .coll = better->coll,
						 .algorithm = better->taken,
						 .nbytes = better->upto },
					       { .coll = better->coll,
						 .algorithm = better->better,
						 .nbytes = better->upto } };

		if (better->nranks != r->n)
			continue;
		if (!compare_again(r, pair))
			return false;
		if (r->rank == 0 && !is_better(&pair[1], &pair[0], TUNE_AGAIN))
			better->dropped = true;
	}
	return true;
}

/* -- All of it ------------------------------------------------------------------------ */

/* Of ranks on one host, or one on each, what goes by hosts is another one by another name. What
 * needs registered memory is taken where there is some, whatever its time. */
static const char *algorithm_at(tutti_collective coll, int i)
{
	const char *name;

	for (int k = 0; (name = tutti_algorithm_name(coll, k)); k++)
		if (strncmp(name, "hierarchical", 12) != 0 && strcmp(name, "ordered") != 0 &&
		    strcmp(name, "memory") != 0 && i-- == 0)
			return name;
	return NULL;
}

/* What the library takes; its number among the algorithms. */
static bool find_taken(struct tune_rank *r, const struct tune_runner *runners, int n, int *taken)
{
	struct tune_runner own = runners[0];
	struct tutti_call_report report;
	double us;

	own.comm = r->comm;
	*taken = -1;
	if (!tune_time_calls(r, &own, 1, &us))
		return false;
	/* That was not the last call: a time was told since. */
	if (!tune_is_good(r, tune_call(r, &own, 0), "asking what is taken") ||
	    !tune_is_good(r, tutti_comm_last_call(r->comm, &report), "asking what is taken"))
		return false;
	for (int i = 0; i < n; i++)
		if (strcmp(runners[i].algorithm, report.algorithm) == 0)
			*taken = i;
	return true;
}

static size_t whole(const struct tune_rank *r, tutti_collective coll, size_t nbytes)
{
	const size_t unit = sizeof(float) * (coll_is(coll, COLL_HAS_ROWS) ? (size_t)r->n : 1);

	return nbytes - nbytes % unit;
}

static bool measure_algorithms(struct tune_rank *r, tutti_collective coll, size_t nbytes)
{
	struct tune_runner runners[TUNE_ALGOS] = { { 0 } };
	const char *name;
	int n = 0, taken;

	for (; n < TUNE_ALGOS && (name = algorithm_at(coll, n)); n++)
		runners[n] = (struct tune_runner){ .comm = r->pinned[n],
						   .coll = coll,
						   .algorithm = name,
						   .nbytes = whole(r, coll, nbytes) };
	if (!tune_warm_up_all(r, runners, n, 0) || !find_taken(r, runners, n, &taken))
		return false;
	if (taken >= 0)
		runners[taken].out = false;
	if (!tune_take_turns(r, runners, n, TUNE_ROUNDS))
		return false;
	for (int i = 0; i < n; i++)
		if (!runners[i].out)
			keep_time(r, &runners[i]);
	return !r->phase->choices || taken < 0 || look_for_better(r, runners, n, taken);
}

/* What is taken for each collective, in turn, and for a reduce with a broadcast behind it. */
static bool measure_taken(struct tune_rank *r, size_t nbytes)
{
	struct tune_runner runners[NMEASURED + 2] = { { 0 } };
	int n = 0;

	if (whole(r, TUTTI_REDUCE, nbytes))
		runners[n++] = (struct tune_runner){ .comm = r->comm,
						     .coll = TUTTI_REDUCE,
						     .algorithm = TUNE_THEN_BROADCAST,
						     .nbytes = whole(r, TUTTI_REDUCE, nbytes),
						     .then_broadcast = true };
	for (size_t i = 0; i <= NMEASURED; i++) {
		const tutti_collective coll = i < NMEASURED ? measured[i] : TUTTI_ALL_TO_ALL;

		if (whole(r, coll, nbytes))
			runners[n++] = (struct tune_runner){ .comm = r->comm,
							     .coll = coll,
							     .nbytes = whole(r, coll, nbytes) };
	}
	if (!tune_warm_up_all(r, runners, n, n) || !tune_take_turns(r, runners, n, TUNE_ROUNDS))
		return false;
	for (int i = 0; i < n; i++)
		keep_time(r, &runners[i]);
	return true;
}

static bool pin_all(struct tune_rank *r)
{
	for (int i = 0; i < TUNE_ALGOS; i++) {
		char text[512] = "";

		for (size_t c = 0; c < NMEASURED; c++) {
			const char *name = algorithm_at(measured[c], i);
			char *end = text + strlen(text);

			if (name)
				snprintf(end, sizeof(text) - (size_t)(end - text), "%s%s:%s",
					 text[0] ? ";" : "", tutti_collective_name(measured[c]),
					 name);
		}
		if (text[0] && !pin_to(r, text, &r->pinned[i]))
			return false;
	}
	return true;
}

static bool measure_all(struct tune_rank *r)
{
	r->send = calloc(1, r->phase->most);
	r->recv = calloc(1, r->phase->most);
	if (!r->send || !r->recv)
		return tune_is_good(r, TUTTI_ENOMEM, "making buffers");
	/* Pages that nobody has written are all one. */
	memset(r->send, 1, r->phase->most);
	memset(r->recv, 1, r->phase->most);
	if (r->job->confirm)
		return confirm_all(r);
	if (!r->job->check && !pin_all(r))
		return false;
	for (int i = 0; i < TUNE_SIZES && tune_size(i) <= r->phase->most; i++) {
		if (r->job->check && !measure_taken(r, tune_size(i)))
			return false;
		for (size_t c = 0; c < NMEASURED && !r->job->check; c++)
			if (whole(r, measured[c], tune_size(i)) &&
			    !measure_algorithms(r, measured[c], tune_size(i)))
				return false;
	}
	return true;
}

int tune_rank_main(void *self, struct ranks_page *page, tutti_comm_t comm)
{
	const struct tune_job *job = self;
	struct tune_rank r = {
		.job = job, .phase = &job->phases[job->phase], .page = page, .comm = comm
	};
	bool good = tune_is_good(&r, tutti_comm_rank(comm, &r.rank), "asking for the rank") &&
		    tune_is_good(&r, tutti_comm_count(comm, &r.n), "asking for the ranks") &&
		    measure_all(&r);

	for (int i = 0; i < TUNE_ALGOS && good; i++)
		if (r.pinned[i])
			good = tune_is_good(&r, tutti_comm_destroy(r.pinned[i]), "leaving");
	if (good)
		good = tune_is_good(&r, tutti_comm_destroy(comm), "leaving");
	else
		(void)tutti_comm_abort(comm);
	free(r.send);
	free(r.recv);
	return good ? TOOL_GOOD : TOOL_FINDING;
}
