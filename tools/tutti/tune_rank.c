/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a phase of tutti tune.
 *
 * What is compared takes turns, round after round, so that what disturbs one disturbs all. A
 * time is that of calls back to back on the slowest rank; roots go round, or else a root
 * would run ahead of the others. All ranks see the same times, and so decide alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tune.h"

#define BATCH_US 1000.0
#define ITERS    2000
#define ALGOS    8
/* What takes so many times as long as the best is not measured further: nobody would take it. */
#define HOPELESS 6.0
/* What another algorithm must save to be worth a line in a file, and in how many rounds. */
#define WORTH    0.9
/* The middle half of the rounds, relative to their median: a machine that does other work. */
#define UNSTEADY 0.3

static const tutti_collective measured[] = {
	TUTTI_ALL_REDUCE, TUTTI_ALL_GATHER, TUTTI_REDUCE_SCATTER, TUTTI_BROADCAST, TUTTI_REDUCE,
};
#define NMEASURED (sizeof(measured) / sizeof(measured[0]))

struct rank {
	const struct tune_job *job;
	const struct tune_phase *phase;
	struct ranks_page *page;
	tutti_comm_t comm;          /* as it comes */
	tutti_comm_t pinned[ALGOS]; /* the i-th algorithm of each collective */
	int rank, n;
	float *send, *recv;
	bool failed;
};

/* One of several that take turns. */
struct runner {
	tutti_comm_t comm;
	tutti_collective coll;
	const char *algorithm; /* NULL: not pinned */
	size_t nbytes;
	int iters;
	bool out; /* hopeless */
	bool then_broadcast;
	double us[TUNE_AGAIN];
};

size_t tune_size(int i)
{
	return (size_t)8 << 3 * i;
}

static bool is_good(struct rank *r, tutti_status status, const char *what)
{
	if (status == TUTTI_OK)
		return true;
	if (!r->failed)
		ranks_report(r->job->args, r->page, r->rank, what, r->comm, status);
	r->failed = true;
	return false;
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return 1e6 * (double)ts.tv_sec + 1e-3 * (double)ts.tv_nsec;
}

/* -- Calls --------------------------------------------------------------------------- */

/* To one, and from it to all: the next call cannot begin before. */
static tutti_status reduce_and_broadcast(const struct rank *r, const struct runner *runner)
{
	const size_t count = runner->nbytes / sizeof(float);
	const tutti_status status = tutti_reduce(r->send, r->recv, count, TUTTI_FLOAT32, TUTTI_SUM,
						 0, runner->comm, NULL);

	return status ? status
		      : tutti_broadcast(r->recv, r->recv, count, TUTTI_FLOAT32, 0, runner->comm,
					NULL);
}

static tutti_status call(const struct rank *r, const struct runner *runner, int i)
{
	const size_t count = runner->nbytes / sizeof(float), each = count / (size_t)r->n;

	if (runner->then_broadcast)
		return reduce_and_broadcast(r, runner);
	switch ((int)runner->coll) {
	case TUTTI_ALL_REDUCE:
		return tutti_all_reduce(r->send, r->recv, count, TUTTI_FLOAT32, TUTTI_SUM,
					runner->comm, NULL);
	case TUTTI_ALL_GATHER:
		return tutti_all_gather(r->send, r->recv, each, TUTTI_FLOAT32, runner->comm, NULL);
	case TUTTI_REDUCE_SCATTER:
		return tutti_reduce_scatter(r->send, r->recv, each, TUTTI_FLOAT32, TUTTI_SUM,
					    runner->comm, NULL);
	case TUTTI_ALL_TO_ALL:
		return tutti_all_to_all(r->send, r->recv, each, TUTTI_FLOAT32, runner->comm, NULL);
	case TUTTI_BROADCAST:
		return tutti_broadcast(r->send, r->recv, count, TUTTI_FLOAT32, i % r->n,
				       runner->comm, NULL);
	default:
		return tutti_reduce(r->send, r->recv, count, TUTTI_FLOAT32, TUTTI_SUM, i % r->n,
				    runner->comm, NULL);
	}
}

/* Of one call, on the average. */
static bool time_calls(struct rank *r, const struct runner *runner, int iters, double *us)
{
	tutti_status status = tutti_barrier(r->comm, NULL);
	double start = now_us(), mine;

	for (int i = 0; i < iters && status == TUTTI_OK; i++)
		status = call(r, runner, i);
	if (!is_good(r, status, tutti_collective_name(runner->coll)))
		return false;
	mine = (now_us() - start) / iters;
	return is_good(r, tutti_all_reduce(&mine, us, 1, TUTTI_FLOAT64, TUTTI_MAX, r->comm, NULL),
		       "telling each other the times");
}

/* How many calls make a batch, after all that is done only once. */
static bool warm_up(struct rank *r, struct runner *runner)
{
	const int least = coll_is(runner->coll, COLL_ROOTED) ? r->n : 1;
	double us = 0;

	for (int i = 0; i < 3; i++) {
		if (!time_calls(r, runner, least, &us))
			return false;
		if (us * least > BATCH_US)
			break;
	}
	runner->iters = us > 0 && BATCH_US / us < ITERS ? (int)(BATCH_US / us) : ITERS;
	runner->iters += least - 1;
	runner->iters -= runner->iters % least;
	runner->iters = runner->iters ? runner->iters : least;
	runner->us[0] = us;
	return true;
}

static bool take_turns(struct rank *r, struct runner *runners, int n, int rounds)
{
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < n; i++)
			if (!runners[i].out &&
			    !time_calls(r, &runners[i], runners[i].iters, &runners[i].us[round]))
				return false;
	return true;
}

/* Leaves the first `keep` in, whatever they take. */
static bool warm_up_all(struct rank *r, struct runner *runners, int n, int keep)
{
	double best = 0;

	for (int i = 0; i < n; i++) {
		if (!warm_up(r, &runners[i]))
			return false;
		if (i == 0 || runners[i].us[0] < best)
			best = runners[i].us[0];
	}
	for (int i = keep; i < n; i++)
		runners[i].out = runners[i].us[0] > HOPELESS * best;
	return true;
}

static int by_value(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The i-th least of n. */
static double ordered(const double *us, int n, int i)
{
	double sorted[TUNE_AGAIN];

	memcpy(sorted, us, (size_t)n * sizeof(*us));
	qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
	return sorted[i];
}

static double median(const double *us, int n)
{
	return ordered(us, n, n / 2);
}

/* Whether the middle half of the rounds is near the median: else something else ran. */
static bool is_steady(const double *us, int n)
{
	return ordered(us, n, n - 1 - n / 4) - ordered(us, n, n / 4) < UNSTEADY * median(us, n);
}

/* -- What is found --------------------------------------------------------------------- */

static void keep_time(struct rank *r, const struct runner *runner)
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
				    .us = median(runner->us, TUNE_ROUNDS),
				    .quiet_us = ordered(runner->us, TUNE_ROUNDS, 1) };
	memcpy(time->rounds, runner->us, sizeof(time->rounds));
	results->ntimes++;
	results->nunsteady += !is_steady(runner->us, TUNE_ROUNDS);
}

/* By the median, in all rounds but one, and where time is the same from round to round. */
static bool is_better(const struct runner *runner, const struct runner *than, int rounds)
{
	int won = 0;

	for (int i = 0; i < rounds; i++)
		won += runner->us[i] < than->us[i];
	return won >= rounds - 1 && median(runner->us, rounds) < WORTH * median(than->us, rounds);
}

static void keep_better(struct rank *r, const struct runner *taken, const struct runner *better)
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
		.taken_us = median(taken->us, TUNE_AGAIN),
		.better_us = median(better->us, TUNE_AGAIN),
	};
}

/* The same by another name takes the same time: whether programs differ in more than their
 * first line, which has the name. */
static bool differ(const struct rank *r, const struct runner *a, const struct runner *b)
{
	const struct runner *const of[2] = { a, b };
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

static bool pin_to(struct rank *r, const char *algorithms, tutti_comm_t *out)
{
	tutti_config config = TUTTI_CONFIG_INIT;

	config.algo = algorithms;
	return is_good(r, tutti_comm_split(r->comm, 0, r->rank, out, &config),
		       "pinning algorithms");
}

/* Once more, over more rounds, and on communicators of their own, whose memory lies elsewhere:
 * the best of many is also the luckiest. */
static bool compare_again(struct rank *r, struct runner *pair)
{
	bool good = true;
	char text[128];

	for (int i = 0; i < 2 && good; i++) {
		snprintf(text, sizeof(text), "%s:%s", tutti_collective_name(pair[i].coll),
			 pair[i].algorithm);
		pair[i].comm = NULL;
		good = pin_to(r, text, &pair[i].comm);
	}
	good = good && warm_up_all(r, pair, 2, 2) && take_turns(r, pair, 2, TUNE_AGAIN);
	for (int i = 0; i < 2; i++)
		if (pair[i].comm)
			good = is_good(r, tutti_comm_destroy(pair[i].comm), "leaving") && good;
	return good;
}

static bool look_for_better(struct rank *r, const struct runner *runners, int n, int taken)
{
	struct runner pair[2];
	int best = taken;

	for (int i = 0; i < n; i++)
		if (!runners[i].out &&
		    median(runners[i].us, TUNE_ROUNDS) < median(runners[best].us, TUNE_ROUNDS) &&
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
static bool confirm_all(struct rank *r)
{
	struct tune_results *results = r->job->results;

	for (int i = 0; i < results->nbetters; i++) {
		struct tune_better *better = &results->betters[i];
		struct runner pair[2] = { { .coll = better->coll,
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
static bool find_taken(struct rank *r, const struct runner *runners, int n, int *taken)
{
	struct runner own = runners[0];
	struct tutti_call_report report;
	double us;

	own.comm = r->comm;
	*taken = -1;
	if (!time_calls(r, &own, 1, &us))
		return false;
	/* That was not the last call: a time was told since. */
	if (!is_good(r, call(r, &own, 0), "asking what is taken") ||
	    !is_good(r, tutti_comm_last_call(r->comm, &report), "asking what is taken"))
		return false;
	for (int i = 0; i < n; i++)
		if (strcmp(runners[i].algorithm, report.algorithm) == 0)
			*taken = i;
	return true;
}

static size_t whole(const struct rank *r, tutti_collective coll, size_t nbytes)
{
	const size_t unit = sizeof(float) * (coll_is(coll, COLL_HAS_ROWS) ? (size_t)r->n : 1);

	return nbytes - nbytes % unit;
}

static bool measure_algorithms(struct rank *r, tutti_collective coll, size_t nbytes)
{
	struct runner runners[ALGOS] = { { 0 } };
	const char *name;
	int n = 0, taken;

	for (; n < ALGOS && (name = algorithm_at(coll, n)); n++)
		runners[n] = (struct runner){ .comm = r->pinned[n],
					      .coll = coll,
					      .algorithm = name,
					      .nbytes = whole(r, coll, nbytes) };
	if (!warm_up_all(r, runners, n, 0) || !find_taken(r, runners, n, &taken))
		return false;
	if (taken >= 0)
		runners[taken].out = false;
	if (!take_turns(r, runners, n, TUNE_ROUNDS))
		return false;
	for (int i = 0; i < n; i++)
		if (!runners[i].out)
			keep_time(r, &runners[i]);
	return !r->phase->choices || taken < 0 || look_for_better(r, runners, n, taken);
}

/* What is taken for each collective, in turn, and for a reduce with a broadcast behind it. */
static bool measure_taken(struct rank *r, size_t nbytes)
{
	struct runner runners[NMEASURED + 2] = { { 0 } };
	int n = 0;

	if (whole(r, TUTTI_REDUCE, nbytes))
		runners[n++] = (struct runner){ .comm = r->comm,
						.coll = TUTTI_REDUCE,
						.algorithm = TUNE_THEN_BROADCAST,
						.nbytes = whole(r, TUTTI_REDUCE, nbytes),
						.then_broadcast = true };
	for (size_t i = 0; i <= NMEASURED; i++) {
		const tutti_collective coll = i < NMEASURED ? measured[i] : TUTTI_ALL_TO_ALL;

		if (whole(r, coll, nbytes))
			runners[n++] = (struct runner){ .comm = r->comm,
							.coll = coll,
							.nbytes = whole(r, coll, nbytes) };
	}
	if (!warm_up_all(r, runners, n, n) || !take_turns(r, runners, n, TUNE_ROUNDS))
		return false;
	for (int i = 0; i < n; i++)
		keep_time(r, &runners[i]);
	return true;
}

static bool pin_all(struct rank *r)
{
	for (int i = 0; i < ALGOS; i++) {
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

static bool measure_all(struct rank *r)
{
	r->send = calloc(1, r->phase->most);
	r->recv = calloc(1, r->phase->most);
	if (!r->send || !r->recv)
		return is_good(r, TUTTI_ENOMEM, "making buffers");
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
	struct rank r = {
		.job = job, .phase = &job->phases[job->phase], .page = page, .comm = comm
	};
	bool good = is_good(&r, tutti_comm_rank(comm, &r.rank), "asking for the rank") &&
		    is_good(&r, tutti_comm_count(comm, &r.n), "asking for the ranks") &&
		    measure_all(&r);

	for (int i = 0; i < ALGOS && good; i++)
		if (r.pinned[i])
			good = is_good(&r, tutti_comm_destroy(r.pinned[i]), "leaving");
	if (good)
		good = is_good(&r, tutti_comm_destroy(comm), "leaving");
	else
		(void)tutti_comm_abort(comm);
	free(r.send);
	free(r.recv);
	return good ? TOOL_GOOD : TOOL_FINDING;
}
