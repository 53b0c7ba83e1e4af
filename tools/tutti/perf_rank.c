/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of perf: check, then time, each size in turn.
 *
 * A time is that of many calls back to back, divided by their number, and the
 * largest of all ranks: the clock is read twice per batch, which disturbs not
 * even a call of 100 ns. What the ranks tell each other about it goes through
 * the library too, as bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

/* How long the calls of one measurement take together, if -i is not given. */
#define BATCH_SECONDS  30e-3
/* A first guess at the time of a call is good enough when it took this long. */
#define GUESS_SECONDS  2e-3
#define MIN_ITERS      3
#define MAX_ITERS      1000000
#define BARRIER_ROUNDS 50

struct buffers {
	const struct perf_layout *layout;
	tutti_type type;
	tutti_op op;
	void *send;
	void *recv;
};

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* False: the call failed, and that was printed. */
static bool is_good(struct perf_rank *pr, tutti_status status, const char *what)
{
	return ranks_is_good(pr->base, status, what);
}

/* Every rank's blob, in pr->gathered. */
static bool gather(struct perf_rank *pr, const void *blob, size_t len)
{
	char mine[PERF_BLOB] = { 0 };

	memcpy(mine, blob, len);
	return is_good(pr,
		       tutti_all_gather(mine, pr->gathered, PERF_BLOB, TUTTI_UINT8, pr->comm, NULL),
		       "telling each other the results");
}

static bool gather_max(struct perf_rank *pr, double mine, double *max_out)
{
	double value, max = 0;

	if (!gather(pr, &mine, sizeof(mine)))
		return false;
	for (int rank = 0; rank < pr->nranks; rank++) {
		memcpy(&value, pr->gathered + (size_t)rank * PERF_BLOB, sizeof(value));
		max = value > max ? value : max;
	}
	*max_out = max;
	return true;
}

static bool gather_sum(struct perf_rank *pr, long long mine, long long *sum_out)
{
	long long value, sum = 0;

	if (!gather(pr, &mine, sizeof(mine)))
		return false;
	for (int rank = 0; rank < pr->nranks; rank++) {
		memcpy(&value, pr->gathered + (size_t)rank * PERF_BLOB, sizeof(value));
		sum += value;
	}
	*sum_out = sum;
	return true;
}

static tutti_status send_recv(const struct perf_rank *pr, const struct buffers *b)
{
	const size_t count = b->layout->param;
	const int n = pr->nranks;

	return tutti_send_recv(b->send, count, (pr->rank + 1) % n, b->recv, count,
			       (pr->rank + n - 1) % n, b->type, pr->comm, NULL);
}

static tutti_status call_uneven(const struct perf_rank *pr, const struct buffers *b)
{
	const struct perf_counts *const c = &pr->counts;
	const int root = pr->options->root;

	switch ((int)pr->options->coll) {
	case TUTTI_GATHER_V:
		return tutti_gather_v(b->send, c->own, b->recv, c->counts, c->displs, b->type, root,
				      pr->comm, NULL);
	case TUTTI_SCATTER_V:
		return tutti_scatter_v(b->send, c->counts, c->displs, b->recv, c->own, b->type,
				       root, pr->comm, NULL);
	case TUTTI_ALL_GATHER_V:
		return tutti_all_gather_v(b->send, b->recv, c->counts, c->displs, b->type, pr->comm,
					  NULL);
	case TUTTI_REDUCE_SCATTER_V:
		return tutti_reduce_scatter_v(b->send, b->recv, c->counts, b->type, b->op, pr->comm,
					      NULL);
	default:
		return tutti_all_to_all_v(b->send, c->counts, c->displs, b->recv, c->counts,
					  c->displs, b->type, pr->comm, NULL);
	}
}

static tutti_status call(const struct perf_rank *pr, const struct buffers *b)
{
	const size_t count = b->layout->param;
	const int root = pr->options->root;

	switch (pr->options->coll) {
	case TUTTI_ALL_REDUCE:
		return tutti_all_reduce(b->send, b->recv, count, b->type, b->op, pr->comm, NULL);
	case TUTTI_BROADCAST:
		return tutti_broadcast(b->send, b->recv, count, b->type, root, pr->comm, NULL);
	case TUTTI_REDUCE:
		return tutti_reduce(b->send, b->recv, count, b->type, b->op, root, pr->comm, NULL);
	case TUTTI_ALL_GATHER:
		return tutti_all_gather(b->send, b->recv, count, b->type, pr->comm, NULL);
	case TUTTI_REDUCE_SCATTER:
		return tutti_reduce_scatter(b->send, b->recv, count, b->type, b->op, pr->comm,
					    NULL);
	case TUTTI_ALL_TO_ALL:
		return tutti_all_to_all(b->send, b->recv, count, b->type, pr->comm, NULL);
	case TUTTI_GATHER:
		return tutti_gather(b->send, b->recv, count, b->type, root, pr->comm, NULL);
	case TUTTI_SCATTER:
		return tutti_scatter(b->send, b->recv, count, b->type, root, pr->comm, NULL);
	case TUTTI_ALL_TO_ALL_V:
	case TUTTI_GATHER_V:
	case TUTTI_SCATTER_V:
	case TUTTI_ALL_GATHER_V:
	case TUTTI_REDUCE_SCATTER_V:
		return call_uneven(pr, b);
	case TUTTI_SEND_RECV:
		return send_recv(pr, b);
	case TUTTI_HANDOFF:
		return tutti_handoff(b->send, b->recv, count, b->type, &pr->sides.from,
				     &pr->sides.to, pr->comm, NULL);
	case TUTTI_BARRIER:
		break;
	}
	return tutti_barrier(pr->comm, NULL);
}

/* So many calls back to back, and nothing between them that takes time. */
static bool call_many(struct perf_rank *pr, const struct buffers *b, int ncalls)
{
	tutti_status status = TUTTI_OK;

	for (int i = 0; i < ncalls && status == TUTTI_OK; i++)
		status = call(pr, b);
	return is_good(pr, status, tutti_collective_name(pr->options->coll));
}

/* Seconds that `iters` calls took on the slowest rank. */
static bool time_batch(struct perf_rank *pr, const struct buffers *b, int iters, double *out)
{
	double start, end;

	if (!is_good(pr, tutti_barrier(pr->comm, NULL), "barrier"))
		return false;
	start = now_seconds();
	if (!call_many(pr, b, iters))
		return false;
	end = now_seconds();
	return gather_max(pr, end - start, out);
}

/* All ranks come to the same number, since all see the same times. */
static bool choose_iters(struct perf_rank *pr, const struct buffers *b, int *out)
{
	double seconds, wanted;
	int iters = 1;

	if (pr->options->iters) {
		*out = pr->options->iters;
		return true;
	}
	for (;;) {
		if (!time_batch(pr, b, iters, &seconds))
			return false;
		if (seconds >= GUESS_SECONDS || iters >= MAX_ITERS / 4)
			break;
		iters *= 4;
	}
	wanted = seconds > 0 ? BATCH_SECONDS * iters / seconds : MAX_ITERS;
	*out = wanted < MIN_ITERS ? MIN_ITERS : wanted > MAX_ITERS ? MAX_ITERS : (int)wanted;
	return true;
}

static double bus_factor(tutti_collective coll, int nranks)
{
	const double others = (double)(nranks - 1) / nranks;

	if (coll == TUTTI_ALL_REDUCE)
		return 2 * others;
	if (coll_is(coll, COLL_HAS_ROWS))
		return others;
	return 1;
}

static bool measure(struct perf_rank *pr, const struct buffers *b, struct perf_result *out)
{
	double seconds;
	int iters;

	if (!call_many(pr, b, pr->options->warmup) || !choose_iters(pr, b, &iters) ||
	    !time_batch(pr, b, iters, &seconds))
		return false;
	out->time_us = seconds / iters * 1e6;
	out->algbw = seconds > 0 ? 1e-9 * (double)b->layout->bytes * iters / seconds : 0;
	out->busbw = out->algbw * bus_factor(pr->options->coll, pr->nranks);
	return true;
}

static bool count_wrong(struct perf_rank *pr, const struct perf_pattern *pattern,
			const struct buffers *b, long long *wrong)
{
	const long long found = perf_count_wrong(pattern, pr->rank, b->recv);

	if (found < 0)
		return is_good(pr, TUTTI_ENOMEM, "checking the data");
	/* The larger of two checks of one buffer, not their sum. */
	if (found > *wrong)
		*wrong = found;
	return true;
}

/* The last round's late rank must keep all others inside, every time. */
static bool check_barrier(struct perf_rank *pr, unsigned long long *rounds, long long *wrong)
{
	const struct timespec late = { .tv_nsec = 200000 };
	const unsigned long long n = (unsigned long long)pr->nranks;

	for (int i = 0; i < BARRIER_ROUNDS; i++) {
		if (i % pr->nranks == pr->rank)
			nanosleep(&late, NULL);
		atomic_fetch_add(&pr->shared->entered, 1);
		if (!is_good(pr, tutti_barrier(pr->comm, NULL), "barrier"))
			return false;
		if (atomic_load(&pr->shared->entered) < ++*rounds * n)
			++*wrong;
	}
	return true;
}

static bool last_call(struct perf_rank *pr, struct perf_row *row)
{
	struct tutti_call_report report;

	if (!is_good(pr, tutti_comm_last_call(pr->comm, &report), "asking what was done"))
		return false;
	row->algorithm = report.algorithm;
	row->transport = report.transport;
	row->channels = report.channels;
	return true;
}

/* Point to the place of the rank's own part in the one buffer of a call in place. */
static void put_in_place(struct perf_rank *pr, const struct perf_layout *layout, struct buffers *b)
{
	const tutti_collective coll = pr->options->coll;
	const size_t own = coll_is(coll, COLL_COUNTS) ? pr->counts.displs[pr->rank]
						      : (size_t)pr->rank * layout->param;

	b->send = b->recv;
	if (coll_is(coll, COLL_GATHERS))
		b->send = (char *)b->recv + own * layout->elt;
	else if (coll_is(coll, COLL_SCATTERS))
		b->recv = (char *)b->recv + own * layout->elt;
}

/* One half of a row. */
static bool run_case(struct perf_rank *pr, struct perf_row *row, bool in_place,
		     struct perf_result *out)
{
	const struct perf_options *const o = pr->options;
	const struct perf_layout *const layout = &row->layout;
	const struct perf_pattern pattern = {
		.coll = o->coll,
		.type = row->type,
		.op = row->op,
		.nranks = pr->nranks,
		.root = o->root,
		.seed = layout->bytes * 2 + in_place,
		.layout = *layout,
		.sides = &pr->sides,
	};
	const tutti_op op = o->reproducible ? tutti_op_reproducible(row->op) : row->op;
	struct buffers b = { layout, row->type, op, pr->send, pr->recv };
	unsigned long long rounds = 0;
	long long wrong = 0;

	if (coll_is(o->coll, COLL_COUNTS) &&
	    !perf_make_counts(o->coll, layout->param, pr->rank, pr->nranks, &pr->counts))
		return is_good(pr, TUTTI_ENOMEM, "making counts");
	memset(pr->recv, 0xa5, layout->bytes);
	if (in_place)
		put_in_place(pr, layout, &b);
	out->checked = o->check && (o->coll != TUTTI_BARRIER || pr->shared);
	if (o->coll != TUTTI_BARRIER && !perf_fill(&pattern, pr->rank, b.send))
		return is_good(pr, TUTTI_ENOMEM, "making the data");
	if (!call_many(pr, &b, 1) || !last_call(pr, row))
		return false;
	if (out->checked && o->coll == TUTTI_BARRIER) {
		if (!check_barrier(pr, &rounds, &wrong))
			return false;
	} else if (out->checked && !count_wrong(pr, &pattern, &b, &wrong)) {
		return false;
	}
	/* In place a result is the next call's input: of zeros nothing grows. */
	if (in_place)
		memset(pr->recv, 0, layout->bytes);
	if (!measure(pr, &b, out))
		return false;
	/* Calls back to back may disturb each other where one alone did not. */
	if (out->checked && !in_place && o->coll != TUTTI_BARRIER &&
	    !count_wrong(pr, &pattern, &b, &wrong))
		return false;
	out->valid = true;
	return gather_sum(pr, wrong, &out->wrong);
}

static void add_result(struct perf_rank *pr, const struct perf_result *result)
{
	if (!result->valid)
		return;
	pr->busbw_sum += result->busbw;
	pr->busbw_count++;
	pr->wrong += result->wrong;
}

static bool run_row(struct perf_rank *pr, struct perf_row *row)
{
	const tutti_collective coll = pr->options->coll;
	const bool has_in_place =
		coll != TUTTI_SEND_RECV && coll != TUTTI_BARRIER && coll != TUTTI_HANDOFF;

	if (!run_case(pr, row, false, &row->out_of_place) ||
	    (has_in_place && !run_case(pr, row, true, &row->in_place)))
		return false;
	add_result(pr, &row->out_of_place);
	add_result(pr, &row->in_place);
	return pr->rank != 0 || perf_print_row(pr, row);
}

static bool run_sizes(struct perf_rank *pr, tutti_type type, tutti_op op)
{
	const struct perf_options *const o = pr->options;
	size_t last = SIZE_MAX;

	for (size_t bytes = o->min_bytes; bytes <= o->max_bytes; bytes *= o->factor) {
		struct perf_row row = { .type = type, .op = op };

		perf_layout_of(o->coll, bytes, tutti_type_size(type), pr->nranks, &row.layout);
		if (row.layout.param != last && !run_row(pr, &row))
			return false;
		last = row.layout.param;
		if (bytes > SIZE_MAX / o->factor)
			break;
	}
	return true;
}

/* Plain malloc is what programs have. */
static bool get_buffer(struct perf_rank *pr, size_t room, void **out)
{
	if (pr->options->registered)
		return is_good(pr, tutti_mem_alloc(out, room, NULL), "allocating a buffer");
	*out = malloc(room);
	return *out != NULL;
}

/* Registered memory goes with the communicator at the latest, plain memory does not. */
static void drop_buffers(struct perf_rank *pr, bool good)
{
	if (!pr->options->registered) {
		free(pr->send);
		free(pr->recv);
	} else if (good) {
		is_good(pr, tutti_mem_free(pr->send, pr->comm), "freeing a buffer");
		is_good(pr, tutti_mem_free(pr->recv, pr->comm), "freeing a buffer");
	}
	pr->send = pr->recv = NULL;
}

static bool allocate(struct perf_rank *pr)
{
	const struct perf_options *const o = pr->options;
	struct perf_layout layout;
	size_t room = 1;

	for (int i = 0; i < o->types.n; i++) {
		perf_layout_of(o->coll, o->max_bytes, tutti_type_size(o->types.at[i]), pr->nranks,
			       &layout);
		room = layout.bytes > room ? layout.bytes : room;
	}
	pr->gathered = calloc((size_t)pr->nranks, PERF_BLOB);
	if (!pr->gathered || !get_buffer(pr, room, &pr->send) || !get_buffer(pr, room, &pr->recv))
		return is_good(pr, TUTTI_ENOMEM, "allocating buffers");
	/* Touched, so that no page is new. */
	memset(pr->send, 0, room);
	memset(pr->recv, 0, room);
	return true;
}

static bool print_plan(struct perf_rank *pr)
{
	char *text = NULL;

	if (!is_good(pr, tutti_comm_plan(pr->comm, 0, &text), "asking for the plan"))
		return false;
	perf_print_plan(text);
	free(text);
	return true;
}

static bool introduce(struct perf_rank *pr)
{
	struct {
		int pid;
		char host[64];
	} blob = { .pid = (int)getpid() };

	gethostname(blob.host, sizeof(blob.host) - 1);
	if (pr->rank == 0)
		perf_print_start(pr->options);
	if (!gather(pr, &blob, sizeof(blob)))
		return false;
	if (pr->rank != 0 || pr->options->json)
		return true;
	for (int rank = 0; rank < pr->nranks; rank++) {
		memcpy(&blob, pr->gathered + (size_t)rank * PERF_BLOB, sizeof(blob));
		perf_print_rank(rank, blob.pid, blob.host);
	}
	if (pr->options->verbose && !print_plan(pr))
		return false;
	perf_print_columns();
	return true;
}

static bool run_all(struct perf_rank *pr)
{
	const struct perf_options *const o = pr->options;

	if (o->root >= pr->nranks) {
		if (pr->rank == 0)
			tool_bad_usage("--root %d is no rank of %d", o->root, pr->nranks);
		return false;
	}
	if (!perf_find_sides(o, pr->nranks, &pr->sides))
		return is_good(pr, TUTTI_ENOMEM, "listing ranks");
	if (!allocate(pr) || !introduce(pr))
		return false;
	for (int i = 0; i < o->types.n; i++)
		for (int j = 0; j < o->ops.n; j++)
			if (perf_has_pair(o, o->types.at[i], o->ops.at[j]) &&
			    !run_sizes(pr, o->types.at[i], o->ops.at[j]))
				return false;
	if (pr->rank == 0)
		perf_print_end(pr);
	return true;
}

int perf_rank_main(void *options, struct rank *rank)
{
	struct perf_rank pr = {
		.options = options,
		.base = rank,
		.shared = (struct perf_shared *)rank->page,
		.comm = rank->comm,
		.rank = rank->rank,
		.nranks = rank->n,
	};

	rank->failed |= !run_all(&pr);
	drop_buffers(&pr, !rank->failed);
	free(pr.gathered);
	perf_free_sides(&pr.sides);
	perf_free_counts(&pr.counts);
	/* Every rank knows the sum; one exit code is enough to say it. */
	return pr.wrong && pr.rank == 0 ? TOOL_FINDING : TOOL_GOOD;
}
