/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether what is taken makes sense: a collective that others make up is not slower than they
 * are, and more does not take less time (Traff, Gropp and Thakur, IEEE TPDS 2010). */
#include <stdio.h>

#include "tune.h"

/* Less than that is noise, and so is what not all rounds but one say. */
#define NOISE 1.1

struct check {
	const struct tune_job *job;
	bool json;
	int held, broken;
};

static const struct tune_time *find(const struct check *check, int phase, tutti_collective coll,
				    bool then_broadcast, size_t nbytes)
{
	for (int i = 0; i < check->job->results->ntimes; i++) {
		const struct tune_time *time = &check->job->results->times[i];

		if (time->phase == phase && time->coll == coll && time->nbytes == nbytes &&
		    then_broadcast == (time->algorithm != NULL))
			return time;
	}
	return NULL;
}

/* Check that `left` takes no longer than `one` and `two` together; `two` may be NULL. */
static void compare(struct check *check, const struct tune_time *left, const struct tune_time *one,
		    const struct tune_time *two, const char *what)
{
	const struct tune_phase *phase = &check->job->phases[left->phase];
	const double right = one->us + (two ? two->us : 0);
	int slower = 0;

	for (int i = 0; i < TUNE_ROUNDS; i++)
		slower += left->rounds[i] > NOISE * (one->rounds[i] + (two ? two->rounds[i] : 0));
	if (left->us <= NOISE * right || slower < TUNE_ROUNDS - 1) {
		check->held++;
		return;
	}
	check->broken++;
	printf(check->json
		       ? "{\"ranks\":%d,\"transport\":\"%s\",\"bytes\":%zu,\"holds_not\":\"%s\","
			 "\"left_us\":%.6g,\"right_us\":%.6g}\n"
		       : "%d ranks over %s, %zu bytes: not %s: %.4g us and %.4g us\n",
	       phase->nranks, phase->tcp ? "tcp" : "shm", left->nbytes, what, left->us, right);
}

static void check_sums(struct check *check, const struct tune_time *left)
{
	static const struct {
		tutti_collective left, one;
		int two; /* -1: none */
		bool then_broadcast;
		const char *what;
	} rules[] = {
		{ TUTTI_ALL_REDUCE, TUTTI_REDUCE, -1, true, "all_reduce <= reduce + broadcast" },
		{ TUTTI_ALL_REDUCE, TUTTI_REDUCE_SCATTER, TUTTI_ALL_GATHER, false,
		  "all_reduce <= reduce_scatter + all_gather" },
		{ TUTTI_REDUCE_SCATTER, TUTTI_ALL_REDUCE, -1, false,
		  "reduce_scatter <= all_reduce" },
		{ TUTTI_REDUCE, TUTTI_ALL_REDUCE, -1, false, "reduce <= all_reduce" },
		{ TUTTI_BROADCAST, TUTTI_ALL_REDUCE, -1, false, "broadcast <= all_reduce" },
		{ TUTTI_ALL_GATHER, TUTTI_ALL_REDUCE, -1, false, "all_gather <= all_reduce" },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && !left->algorithm; i++) {
		const struct tune_time *one, *two;

		if (rules[i].left != left->coll)
			continue;
		one = find(check, left->phase, rules[i].one, rules[i].then_broadcast, left->nbytes);
		two = rules[i].two < 0 ? NULL
				       : find(check, left->phase, (tutti_collective)rules[i].two,
					      false, left->nbytes);
		if (one && (two || rules[i].two < 0))
			compare(check, left, one, two, rules[i].what);
	}
}

static void check_sizes(struct check *check, const struct tune_time *left)
{
	const struct tune_time *more =
		find(check, left->phase, left->coll, left->algorithm != NULL, 8 * left->nbytes);
	char what[80];

	if (!more)
		return;
	snprintf(what, sizeof(what), "%s <= that of 8 times as much",
		 tutti_collective_name(left->coll));
	compare(check, left, more, NULL, what);
}

int tune_check_print(const struct tune_job *job, bool json)
{
	struct check check = { .job = job, .json = json };

	for (int i = 0; i < job->results->ntimes; i++) {
		check_sums(&check, &job->results->times[i]);
		check_sizes(&check, &job->results->times[i]);
	}
	printf(json ? "{\"compared\":%d,\"broken\":%d}\n"
		    : "of %d comparisons %d do not hold by more than noise\n",
	       check.held + check.broken, check.broken);
	return check.broken ? TOOL_FINDING : TOOL_GOOD;
}
