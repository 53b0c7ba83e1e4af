/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune_time.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_US   1000.0
#define ITERS      2000
/* The first messages of a link touch pages, each some new ones, at 1 to 3 us a page: until so many
 * pages were touched, or so much time has passed, nothing counts. */
#define WARM_PAGES 2048
#define PAGE_BYTES 4096
#define WARM_US    8000.0
/* An algorithm that takes so many times as long as the best is not measured further. */
#define HOPELESS   6.0
/* The width of the middle half of the rounds, relative to the median, above which other work disturbed
 * them. */
#define UNSTEADY   0.3

size_t tune_size(int i)
{
	return (size_t)8 << 3 * i;
}

bool tune_is_good(struct tune_rank *r, tutti_status status, const char *what)
{
	return ranks_is_good(r->base, status, what);
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return 1e6 * (double)ts.tv_sec + 1e-3 * (double)ts.tv_nsec;
}

/* -- Calls --------------------------------------------------------------------------- */

/* The next call cannot begin before the broadcast has come. */
static tutti_status reduce_and_broadcast(const struct tune_rank *r,
					 const struct tune_runner *runner)
{
	const size_t count = runner->nbytes / sizeof(float);
	const tutti_status status = tutti_reduce(r->send, r->recv, count, TUTTI_FLOAT32, TUTTI_SUM,
						 0, runner->comm, NULL);

	return status ? status
		      : tutti_broadcast(r->recv, r->recv, count, TUTTI_FLOAT32, 0, runner->comm,
					NULL);
}

static void *sent(const struct tune_rank *r, const struct tune_runner *runner)
{
	return runner->mapped[0] ? runner->mapped[0] : r->send;
}

tutti_status tune_call(const struct tune_rank *r, const struct tune_runner *runner, int i)
{
	const size_t count = runner->nbytes / sizeof(float), each = count / (size_t)r->n;
	const int root = i % r->n;
	void *const send = sent(r, runner);
	void *const recv = runner->mapped[1] ? runner->mapped[1] : r->recv;
	const tutti_comm_t comm = runner->comm;

	if (runner->then_broadcast)
		return reduce_and_broadcast(r, runner);
	switch ((int)runner->coll) {
	case TUTTI_ALL_REDUCE:
		return tutti_all_reduce(send, recv, count, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
	case TUTTI_ALL_GATHER:
		return tutti_all_gather(send, recv, each, TUTTI_FLOAT32, comm, NULL);
	case TUTTI_REDUCE_SCATTER:
		return tutti_reduce_scatter(send, recv, each, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
	case TUTTI_ALL_TO_ALL:
		return tutti_all_to_all(send, recv, each, TUTTI_FLOAT32, comm, NULL);
	case TUTTI_GATHER:
		return tutti_gather(send, recv, each, TUTTI_FLOAT32, root, comm, NULL);
	case TUTTI_SCATTER:
		return tutti_scatter(send, recv, each, TUTTI_FLOAT32, root, comm, NULL);
	case TUTTI_BROADCAST:
		return tutti_broadcast(send, recv, count, TUTTI_FLOAT32, root, comm, NULL);
	default:
		return tutti_reduce(send, recv, count, TUTTI_FLOAT32, TUTTI_SUM, root, comm, NULL);
	}
}

/* Write the send buffer of the i-th call, as a program would have just done. */
static void write_anew(const struct tune_rank *r, const struct tune_runner *runner, int i)
{
	const tutti_collective coll = runner->coll;
	const bool has_one = coll == TUTTI_ALL_GATHER || coll == TUTTI_GATHER;
	const bool at_root = coll == TUTTI_BROADCAST || coll == TUTTI_SCATTER;

	if (!at_root || i % r->n == r->rank)
		memset(sent(r, runner), 1 + i % 2, runner->nbytes / (has_one ? (size_t)r->n : 1));
}

/* All calls together. */
static tutti_status run_calls(const struct tune_rank *r, const struct tune_runner *runner,
			      int iters, double *us)
{
	const bool is_long = runner->nbytes >= TUNE_LONG;
	tutti_status status = is_long ? TUTTI_OK : tutti_barrier(r->comm, NULL);
	double start = now_us(), passed = 0;

	for (int i = 0; i < iters && status == TUTTI_OK; i++) {
		if (is_long) {
			write_anew(r, runner, i);
			status = tutti_barrier(r->comm, NULL);
			start = now_us();
		}
		if (status == TUTTI_OK)
			status = tune_call(r, runner, i);
		if (is_long)
			passed += now_us() - start;
	}
	*us = is_long ? passed : now_us() - start;
	return status;
}

bool tune_time_calls(struct tune_rank *r, const struct tune_runner *runner, int iters, double *us)
{
	double mine;

	if (!tune_is_good(r, run_calls(r, runner, iters, &mine),
			  tutti_collective_name(runner->coll)))
		return false;
	mine /= iters;
	return tune_is_good(r,
			    tutti_all_reduce(&mine, us, 1, TUTTI_FLOAT64, TUTTI_MAX, r->comm, NULL),
			    "telling each other the times");
}

/* How many calls make a batch, after all that is done only once. */
static bool warm_up(struct tune_rank *r, struct tune_runner *runner)
{
	const int least = coll_is(runner->coll, COLL_ROOTED) ? r->n : 1;
	const size_t wanted = 2 + WARM_PAGES / (1 + runner->nbytes / PAGE_BYTES);
	double us = 0, spent = 0;
	size_t done = 0;

	for (int iters = least; done < wanted && spent < WARM_US; iters *= 2) {
		if (!tune_time_calls(r, runner, iters, &us))
			return false;
		done += (size_t)iters;
		spent += us * iters;
	}
	runner->iters = us > 0 && BATCH_US / us < ITERS ? (int)(BATCH_US / us) : ITERS;
	runner->iters += least - 1;
	runner->iters -= runner->iters % least;
	runner->iters = runner->iters ? runner->iters : least;
	runner->us[0] = us;
	return true;
}

bool tune_take_turns(struct tune_rank *r, struct tune_runner *runners, int n, int rounds)
{
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < n; i++)
			if (!runners[i].out && !tune_time_calls(r, &runners[i], runners[i].iters,
								&runners[i].us[round]))
				return false;
	return true;
}

bool tune_warm_up_all(struct tune_rank *r, struct tune_runner *runners, int n, int keep)
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

double tune_ordered(const double *us, int n, int i)
{
	double sorted[TUNE_AGAIN];

	memcpy(sorted, us, (size_t)n * sizeof(*us));
	qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
	return sorted[i];
}

double tune_median(const double *us, int n)
{
	return tune_ordered(us, n, n / 2);
}

bool tune_is_steady(const double *us, int n)
{
	return tune_ordered(us, n, n - 1 - n / 4) - tune_ordered(us, n, n / 4) <
	       UNSTEADY * tune_median(us, n);
}
