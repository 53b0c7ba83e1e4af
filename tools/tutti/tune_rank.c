/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a phase of tutti tune: which algorithm is taken, and which would be better.
 *
 * One that works where the data lies is measured twice: over memory that peers map, and over
 * ordinary memory, if the kernel copies that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tune_time.h"

#define MEMORY "memory"
/* Another algorithm is worth a line in a file if its time is less than this share of the chosen one's. */
#define WORTH  0.9

static const tutti_collective measured[] = {
	TUTTI_ALL_REDUCE, TUTTI_ALL_GATHER, TUTTI_REDUCE_SCATTER, TUTTI_BROADCAST,
	TUTTI_REDUCE,     TUTTI_ALL_TO_ALL, TUTTI_GATHER,         TUTTI_SCATTER,
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
			const struct tune_runner *better, const char *reach)
{
	struct tune_results *results = r->job->results;
	const struct tune_better *last = NULL;

	if (r->rank != 0)
		return;
	/* Sizes come one after the other. */
	for (int i = 0; i < results->nbetters; i++)
		if (results->betters[i].coll == taken->coll && results->betters[i].nranks == r->n &&
		    results->betters[i].reach == reach)
			last = &results->betters[i];
	if (last && last->better != better->algorithm)
		last = NULL;
	if (results->nbetters == TUNE_BETTERS) {
		results->overflow = true;
		return;
	}
	/* Between two sizes at which it is better it is, too. */
	results->betters[results->nbetters++] = (struct tune_better){
		.coll = taken->coll,
		.taken = taken->algorithm,
		.better = better->algorithm,
		.reach = reach,
		.nbytes = taken->nbytes,
		.range = tune_range_of(taken->nbytes, last ? &last->range : NULL),
		.nranks = r->n,
		.taken_us = tune_median(taken->us, TUNE_AGAIN),
		.better_us = tune_median(better->us, TUNE_AGAIN),
	};
}

static bool is_memory(const char *algorithm)
{
	return strcmp(algorithm, MEMORY) == 0;
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

/* Memory that peers map, as ordinary memory is written. */
static bool map_memory(struct tune_rank *r, size_t nbytes, void *mapped[2])
{
	for (int i = 0; i < 2; i++) {
		if (!tune_is_good(r, tutti_mem_alloc(&mapped[i], nbytes, NULL),
				  "allocating memory"))
			return false;
		memset(mapped[i], 1, nbytes);
	}
	return true;
}

static bool unmap_memory(struct tune_rank *r, tutti_comm_t comm, void *mapped[2])
{
	return tune_is_good(r, tutti_mem_free(mapped[0], comm), "freeing memory") &&
	       tune_is_good(r, tutti_mem_free(mapped[1], comm), "freeing memory");
}

/* A communicator of its own, and memory of that if the runner had such. */
static bool begin_again(struct tune_rank *r, struct tune_runner *runner, bool is_mapped)
{
	char text[128];

	snprintf(text, sizeof(text), "%s:%s", tutti_collective_name(runner->coll),
		 runner->algorithm);
	return pin_to(r, text, &runner->comm) &&
	       (!is_mapped || map_memory(r, runner->nbytes, runner->mapped));
}

/* Once more, over more rounds, and on communicators of their own, whose memory lies elsewhere:
 * the best of many is also the luckiest. */
static bool compare_again(struct tune_rank *r, struct tune_runner *pair)
{
	bool good = true;

	for (int i = 0; i < 2 && good; i++) {
		const bool is_mapped = pair[i].mapped[0] != NULL;

		pair[i].comm = NULL;
		pair[i].mapped[0] = pair[i].mapped[1] = NULL;
		good = begin_again(r, &pair[i], is_mapped);
	}
	good = good && tune_warm_up_all(r, pair, 2, 2) && tune_take_turns(r, pair, 2, TUNE_AGAIN);
	for (int i = 0; i < 2; i++) {
		good = unmap_memory(r, pair[i].comm, pair[i].mapped) && good;
		if (pair[i].comm)
			good = tune_is_good(r, tutti_comm_destroy(pair[i].comm), "leaving") && good;
	}
	return good;
}

/* Whether one is to be taken in place of another, for buffers that are reached so. */
static bool challenge(struct tune_rank *r, const struct tune_runner *taken,
		      const struct tune_runner *other, const char *reach)
{
	struct tune_runner pair[2] = { *taken, *other };

	if (other->out || !is_better(other, taken, TUNE_ROUNDS))
		return true;
	if (!compare_again(r, pair))
		return false;
	if (is_better(&pair[1], &pair[0], TUNE_AGAIN))
		keep_better(r, &pair[0], &pair[1], reach);
	return true;
}

/* The best by messages, or what is taken if none is better. */
static int find_best(const struct tune_rank *r, const struct tune_runner *runners, int n, int taken)
{
	int best = taken;

	for (int i = 0; i < n; i++)
		if (!runners[i].out &&
		    tune_median(runners[i].us, TUNE_ROUNDS) <
			    tune_median(runners[best].us, TUNE_ROUNDS) &&
		    differ(r, &runners[i], &runners[taken]))
			best = i;
	return best;
}

/* Repeat the comparison in other processes, whose memory and cores are others. */
static bool confirm_all(struct tune_rank *r)
{
	struct tune_results *results = r->job->results;

	for (int i = 0; i < results->nbetters; i++) {
		struct tune_better *better = &results->betters[i];
		const char *const names[2] = { better->taken, better->better };
		struct tune_runner pair[2];

		if (better->nranks != r->n)
			continue;
		for (int k = 0; k < 2; k++) {
			const bool is_mapped = better->reach && !strcmp(better->reach, "mapped") &&
					       is_memory(names[k]);

			pair[k] = (struct tune_runner){ .coll = better->coll,
							.algorithm = names[k],
							.nbytes = better->nbytes };
			/* Other memory is made for it. */
			pair[k].mapped[0] = is_mapped ? r->send : NULL;
		}
		if (!compare_again(r, pair))
			return false;
		if (r->rank == 0 && !is_better(&pair[1], &pair[0], TUNE_AGAIN))
			better->dropped = true;
	}
	return true;
}

/* -- All of it ------------------------------------------------------------------------ */

/* Where all ranks are on one host, or each is on its own, a hierarchical algorithm is another one by another
 * name. */
static const char *algorithm_at(tutti_collective coll, int i)
{
	const char *name;

	for (int k = 0; (name = tutti_algorithm_name(coll, k)); k++)
		if (strncmp(name, "hierarchical", 12) != 0 && strcmp(name, "ordered") != 0 &&
		    !is_memory(name) && i-- == 0)
			return name;
	return NULL;
}

/* Find the algorithm by which a communicator runs such a call. */
static bool find_algorithm(struct tune_rank *r, const struct tune_runner *as, tutti_comm_t comm,
			   const char **out)
{
	struct tune_runner runner = *as;
	struct tutti_call_report report = { .algorithm = "" };
	double us;

	runner.comm = comm;
	if (!tune_time_calls(r, &runner, 1, &us))
		return false;
	/* The last call was the one that shared the times. */
	if (!tune_is_good(r, tune_call(r, &runner, 0), "asking what is taken") ||
	    !tune_is_good(r, tutti_comm_last_call(comm, &report), "asking what is taken"))
		return false;
	*out = report.algorithm;
	return true;
}

static size_t whole(const struct tune_rank *r, tutti_collective coll, size_t nbytes)
{
	const size_t unit = sizeof(float) * (coll_is(coll, COLL_HAS_ROWS) ? (size_t)r->n : 1);

	return nbytes - nbytes % unit;
}

/* All ways to run one collective of one size: by messages, and in registered memory. */
struct contest {
	struct tune_runner runners[TUNE_ALGOS + 2];
	int nmessages, nall;
	int taken;          /* by messages; -1: none that is measured              */
	int copied, mapped; /* memory of either kind; -1: it cannot be             */
	bool takes_copied;  /* it is what is taken for ordinary memory              */
};

static bool add_memory(struct tune_rank *r, struct contest *c, void *const mapped[2], int *at)
{
	struct tune_runner *runner = &c->runners[c->nall];
	const char *algorithm;

	*at = -1;
	*runner = c->runners[0];
	runner->comm = r->memory;
	runner->algorithm = MEMORY;
	if (mapped)
		memcpy(runner->mapped, mapped, sizeof(runner->mapped));
	if (!find_algorithm(r, runner, r->memory, &algorithm))
		return false;
	if (is_memory(algorithm))
		*at = c->nall++;
	return true;
}

static bool begin_contest(struct tune_rank *r, struct contest *c, tutti_collective coll,
			  size_t nbytes)
{
	const char *name, *taken;

	*c = (struct contest){ .taken = -1, .copied = -1, .mapped = -1 };
	for (; c->nmessages < TUNE_ALGOS && (name = algorithm_at(coll, c->nmessages));
	     c->nmessages++)
		c->runners[c->nmessages] = (struct tune_runner){ .comm = r->pinned[c->nmessages],
								 .coll = coll,
								 .algorithm = name,
								 .nbytes = whole(r, coll, nbytes) };
	c->nall = c->nmessages;
	if (!find_algorithm(r, c->runners, r->messages, &taken))
		return false;
	for (int i = 0; i < c->nmessages; i++)
		if (strcmp(c->runners[i].algorithm, taken) == 0)
			c->taken = i;
	if (!r->memory || nbytes < TUNE_LONG)
		return true;
	if (!add_memory(r, c, NULL, &c->copied) || !add_memory(r, c, r->mapped, &c->mapped) ||
	    !find_algorithm(r, c->runners, r->comm, &taken))
		return false;
	c->takes_copied = is_memory(taken);
	return true;
}

static bool settle_contest(struct tune_rank *r, struct contest *c)
{
	struct tune_runner *const all = c->runners;
	int best;

	if (!r->phase->choices || c->taken < 0)
		return true;
	best = find_best(r, all, c->nmessages, c->taken);
	if (best != c->taken && !challenge(r, &all[c->taken], &all[best], NULL))
		return false;
	if (c->copied >= 0 && !challenge(r, &all[c->takes_copied ? c->copied : best],
					 &all[c->takes_copied ? best : c->copied], "copied"))
		return false;
	return c->mapped < 0 || challenge(r, &all[c->mapped], &all[best], "mapped");
}

static bool measure_algorithms(struct tune_rank *r, tutti_collective coll, size_t nbytes)
{
	struct contest c;

	if (!begin_contest(r, &c, coll, nbytes) || !tune_warm_up_all(r, c.runners, c.nall, 0))
		return false;
	if (c.taken >= 0)
		c.runners[c.taken].out = false;
	for (int i = c.nmessages; i < c.nall; i++)
		c.runners[i].out = false;
	if (!tune_take_turns(r, c.runners, c.nall, TUNE_ROUNDS))
		return false;
	for (int i = 0; i < c.nmessages; i++)
		if (!c.runners[i].out)
			keep_time(r, &c.runners[i]);
	return settle_contest(r, &c);
}

/* Time the chosen algorithm of each collective, and a reduce that a broadcast follows. */
static bool measure_taken(struct tune_rank *r, size_t nbytes)
{
	struct tune_runner runners[NMEASURED + 1] = { { 0 } };
	int n = 0;

	if (whole(r, TUTTI_REDUCE, nbytes))
		runners[n++] = (struct tune_runner){ .comm = r->comm,
						     .coll = TUTTI_REDUCE,
						     .algorithm = TUNE_THEN_BROADCAST,
						     .nbytes = whole(r, TUTTI_REDUCE, nbytes),
						     .then_broadcast = true };
	for (size_t i = 0; i < NMEASURED; i++)
		if (whole(r, measured[i], nbytes))
			runners[n++] =
				(struct tune_runner){ .comm = r->comm,
						      .coll = measured[i],
						      .nbytes = whole(r, measured[i], nbytes) };
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
	if (!pin_to(r, "^" MEMORY, &r->messages))
		return false;
	return r->phase->tcp || r->n == 1 || r->phase->most < TUNE_LONG ||
	       (pin_to(r, MEMORY, &r->memory) && map_memory(r, r->phase->most, r->mapped));
}

/* Rank 0 alone: what the ranks found out when they joined. */
static bool keep_reach(struct tune_rank *r)
{
	struct tune_results *results = r->job->results;
	char *lines = NULL;

	if (r->rank != 0 || results->reach[0] || r->phase->tcp)
		return true;
	if (!tune_is_good(r, tutti_comm_reach(r->comm, &lines), "asking how memory is reached"))
		return false;
	snprintf(results->reach, sizeof(results->reach), "%s", lines);
	free(lines);
	return true;
}

/* Rank 0 alone, if somebody looks. */
static void show_progress(const struct tune_rank *r, tutti_collective coll, size_t nbytes)
{
	if (r->rank == 0 && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[Kphase %d of %d, %d ranks over %s: %s of %zu bytes",
			r->job->phase + 1, r->job->nphases, r->n, r->phase->tcp ? "tcp" : "shm",
			tutti_collective_name(coll), nbytes);
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
	if (!keep_reach(r))
		return false;
	if (r->job->confirm)
		return confirm_all(r);
	if (!r->job->check && !pin_all(r))
		return false;
	for (int i = 0; i < TUNE_SIZES && tune_size(i) <= r->phase->most; i++) {
		if (r->job->check && !measure_taken(r, tune_size(i)))
			return false;
		for (size_t c = 0; c < NMEASURED && !r->job->check; c++) {
			show_progress(r, measured[c], tune_size(i));
			if (whole(r, measured[c], tune_size(i)) &&
			    !measure_algorithms(r, measured[c], tune_size(i)))
				return false;
		}
	}
	return true;
}

int tune_rank_main(void *self, struct rank *rank)
{
	const struct tune_job *job = self;
	struct tune_rank r = { .job = job,
			       .phase = &job->phases[job->phase],
			       .base = rank,
			       .comm = rank->comm,
			       .rank = rank->rank,
			       .n = rank->n };
	bool good = measure_all(&r) && unmap_memory(&r, r.memory, r.mapped);

	for (int i = 0; i < TUNE_ALGOS + 2 && good; i++) {
		tutti_comm_t pinned = i < TUNE_ALGOS    ? r.pinned[i]
				      : i == TUNE_ALGOS ? r.messages
							: r.memory;

		if (pinned)
			good = tune_is_good(&r, tutti_comm_destroy(pinned), "leaving");
	}
	rank->failed |= !good;
	free(r.send);
	free(r.recv);
	return TOOL_GOOD;
}
