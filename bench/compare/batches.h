/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_COMPARE_BATCHES_H
#define BENCH_COMPARE_BATCHES_H

/* The measurement that all libraries get, so that only the library differs.
 *
 * THE SIZE is that of the larger of the two vectors that a rank hands to a call, float32:
 *   all_reduce      the vector, of which each rank has one in and one out
 *   broadcast       the vector, in one buffer on every rank; rank 0 is the root
 *   all_gather      what a rank receives: n blocks, of which it gave one
 *   reduce_scatter  what a rank gives: n blocks, of which it gets one, summed
 *   all_to_all      what a rank gives, and gets: n blocks, one for each rank
 *   send_recv       one message; ranks 2k and 2k + 1 send it to and fro, all pairs at
 *                   once, and the time is half of that of there and back
 *   barrier         none
 * A block has at least one float: "8 B" is 16 B on four ranks where there are blocks.
 *
 * A batch is a barrier and then `inner` calls back to back; it took as long as on its
 * slowest rank, and the figure is the median over the batches. Buffers are malloc's (or
 * the library's own, where that is what is measured), separate, and used again in each
 * call, so that sizes up to 16 MB may stay in caches. The first and the last call are
 * checked in full, and after each batch a sample that was written anew before it.
 * Header only: MPI's compilers and C++ take it as it is. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum operation {
	ALL_REDUCE,
	BROADCAST,
	ALL_GATHER,
	REDUCE_SCATTER,
	ALL_TO_ALL,
	SEND_RECV,
	BARRIER,
	OPERATIONS,
};

struct batches {
	int rank;
	int nranks;
	int peer; /* in send_recv; -1: none */
	enum operation operation;
	double seconds; /* about how long to measure */
	size_t bytes;   /* as asked for */
	size_t block;   /* floats: of the vector, or of the part of it that is one rank's */
	size_t sent;    /* floats at send, and at recv */
	size_t received;
	int in_place; /* the library can do nothing else: recv is send */
	float *send;
	float *recv;

	void *library;
	/* Memory other than malloc's, or NULL; and what a size needs before its first call. */
	float *(*allocate)(struct batches *b, size_t bytes);
	void (*release)(struct batches *b, float *memory);
	void (*prepare)(struct batches *b);
	void (*call)(struct batches *b);
	void (*barrier)(struct batches *b);
	/* The maximum over ranks of each of two values, on all ranks. */
	void (*maximum)(struct batches *b, double values[2]);
};

#define BATCHES_MAX    200
#define BATCHES_PROBES 16

static inline double batches_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static inline int batches_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline int batches_operation(struct batches *b, const char *name)
{
	static const char *const names[OPERATIONS] = {
		"all_reduce", "broadcast", "all_gather", "reduce_scatter",
		"all_to_all", "send_recv", "barrier",
	};

	for (int i = 0; i < OPERATIONS; i++)
		if (strcmp(names[i], name) == 0) {
			b->operation = (enum operation)i;
			return 1;
		}
	fprintf(stderr, "there is no operation '%s'\n", name);
	return 0;
}

/* -- The data -------------------------------------------------------------------- */

/* Whole numbers that differ by rank and place, small enough that sums are exact. */
static inline float batches_value(int rank, size_t index, int round)
{
	return (float)(1 + rank + (int)((uint32_t)index % 13) + round);
}

static inline float batches_sum(int nranks, size_t index, int round)
{
	return (float)nranks * batches_value(0, index, round) + (float)(nranks * (nranks - 1) / 2);
}

/* What shall be at `index` of recv. */
static inline float batches_expected(const struct batches *b, size_t index, int round)
{
	const size_t mine = (size_t)b->rank * b->block;

	switch (b->operation) {
	case ALL_REDUCE:
		return batches_sum(b->nranks, index, round);
	case BROADCAST:
		return batches_value(0, index, round);
	case ALL_GATHER:
		return batches_value((int)(index / b->block), index % b->block, round);
	case REDUCE_SCATTER:
		return batches_sum(b->nranks, mine + index, round);
	case ALL_TO_ALL:
		return batches_value((int)(index / b->block), mine + index % b->block, round);
	case SEND_RECV:
		return batches_value(b->peer, index, round);
	case BARRIER:
	case OPERATIONS:
		break;
	}
	return 0;
}

/* The vectors of this size: 1, or 0 if there is no memory. */
static inline int batches_allocate(struct batches *b)
{
	const size_t n = (size_t)b->nranks, count = b->bytes / sizeof(float);
	const int whole = b->operation == ALL_REDUCE || b->operation == BROADCAST ||
			  b->operation == SEND_RECV || b->operation == BARRIER;
	size_t send_bytes, recv_bytes;

	b->peer = (b->rank ^ 1) < b->nranks ? b->rank ^ 1 : -1;
	b->block = whole ? count : count / n;
	if (b->block == 0)
		b->block = 1;
	b->sent = whole || b->operation == ALL_GATHER ? b->block : b->block * n;
	b->received = whole || b->operation == REDUCE_SCATTER ? b->block : b->block * n;
	send_bytes = b->sent * sizeof(float);
	recv_bytes = b->received * sizeof(float);
	b->send = b->allocate ? b->allocate(b, send_bytes) : (float *)malloc(send_bytes);
	if (b->in_place || b->operation == BROADCAST)
		b->recv = b->send;
	else
		b->recv = b->allocate ? b->allocate(b, recv_bytes) : (float *)malloc(recv_bytes);
	if (b->send && b->recv)
		return 1;
	fprintf(stderr, "rank %d: no buffers of %zu and %zu bytes\n", b->rank, send_bytes,
		recv_bytes);
	return 0;
}

static inline void batches_free(struct batches *b)
{
	void (*const release)(struct batches *, float *) = b->release;

	for (int i = 0; i < (b->recv == b->send ? 1 : 2); i++) {
		if (release)
			release(b, i ? b->recv : b->send);
		else
			free(i ? b->recv : b->send);
	}
}

/* In a broadcast only the root has something to give, and nothing is cleared there. */
static inline void batches_fill(struct batches *b, int round)
{
	if (b->recv != b->send || b->operation == BROADCAST)
		for (size_t i = 0; i < b->received; i++)
			b->recv[i] = -1;
	if (b->operation != BROADCAST || b->rank == 0)
		for (size_t i = 0; i < b->sent; i++)
			b->send[i] = batches_value(b->rank, i, round);
}

static inline int batches_is_right(const struct batches *b, size_t index, int round)
{
	const float expected = batches_expected(b, index, round);

	if (b->recv[index] == expected)
		return 1;
	fprintf(stderr, "rank %d: element %zu of %zu is %g, not %g\n", b->rank, index, b->received,
		(double)b->recv[index], (double)expected);
	return 0;
}

static inline int batches_has_result(const struct batches *b)
{
	return b->operation != BARRIER && !(b->operation == SEND_RECV && b->peer < 0);
}

/* 1: all of what came out is right. */
static inline int batches_are_right(const struct batches *b, int round)
{
	for (size_t i = 0; batches_has_result(b) && i < b->received; i++)
		if (!batches_is_right(b, i, round))
			return 0;
	return 1;
}

/* Of each block a few elements: written, or looked at. */
static inline int batches_probe(struct batches *b, int round, int look)
{
	const size_t step = b->block < BATCHES_PROBES ? 1 : b->block / BATCHES_PROBES;
	const size_t count = look ? b->received : b->sent;

	if (!batches_has_result(b) || b->in_place)
		return 1;
	if (!look && b->operation == BROADCAST && b->rank != 0)
		return 1;
	for (size_t first = 0; first < count; first += b->block)
		for (size_t i = first; i < first + b->block; i += step) {
			if (!look)
				b->send[i] = batches_value(b->rank, i, round);
			else if (!batches_is_right(b, i, round))
				return 0;
		}
	return 1;
}

/* -- The measurement ------------------------------------------------------------- */

/* Two values: the longest time of `calls` calls, and the time since `start`. */
static inline void batches_one(struct batches *b, int calls, double start, double out[2])
{
	double begin;

	b->barrier(b);
	begin = batches_now();
	for (int i = 0; i < calls; i++)
		b->call(b);
	out[1] = batches_now();
	out[0] = out[1] - begin;
	out[1] -= start;
	b->maximum(b, out);
}

/* How many calls make a batch. A library that needs milliseconds for 8 bytes would
 * otherwise be at it for minutes. */
static inline int batches_inner(struct batches *b)
{
	int inner = b->bytes <= 8 << 10 ? 50 : b->bytes <= 64 << 10 ? 10 : 1;
	double took[2];
	int limit;

	batches_one(b, 1, batches_now(), took);
	if (took[0] > b->seconds / 5)
		return 1;
	batches_one(b, inner < 5 ? inner : 5, batches_now(), took);
	limit = (int)(b->seconds / 5 / (took[0] / (inner < 5 ? inner : 5) + 1e-9));
	if (inner > limit)
		inner = limit > 1 ? limit : 1;
	batches_one(b, inner, batches_now(), took);
	return inner;
}

/* A call whose result is looked at in full: 1 if it is right. */
static inline int batches_checked(struct batches *b, int round)
{
	int right;

	batches_fill(b, round);
	b->barrier(b);
	b->call(b);
	right = batches_are_right(b, round);
	/* In place a result is the next call's input: of zeros nothing grows. */
	if (b->in_place)
		memset(b->send, 0, b->sent * sizeof(float));
	return right;
}

/* One size: 0 and a line "bytes median_us min_us batches inner" from rank 0, or 1. */
static inline int batches_size(struct batches *b)
{
	double times[BATCHES_MAX], took[2], start;
	int n = 0, inner, right;

	right = batches_checked(b, 0);
	inner = batches_inner(b);
	start = batches_now();
	do {
		right &= batches_probe(b, n + 1, 0);
		batches_one(b, inner, start, took);
		right &= batches_probe(b, n + 1, 1);
		times[n++] = took[0] / inner * 1e6 / (b->operation == SEND_RECV ? 2 : 1);
	} while (n < BATCHES_MAX && took[1] < b->seconds * (n < 3 ? 4 : 1));
	right &= batches_checked(b, n + 1);
	/* What one rank sees is wrong for all. */
	took[0] = took[1] = !right;
	b->maximum(b, took);
	right = took[0] == 0;

	qsort(times, (size_t)n, sizeof(times[0]), batches_compare);
	if (b->rank == 0 && right) {
		printf("%zu %.4f %.4f %d %d\n", b->bytes,
		       n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2, times[0], n,
		       inner);
		fflush(stdout);
	}
	return !right;
}

/* argv: THIS OPERATION SECONDS BYTES,BYTES...; 0, or 1 if anything was wrong. */
static inline int batches_run(struct batches *b, char **argv)
{
	char *sizes = argv[3];
	int wrong = 0;

	b->seconds = strtod(argv[2], NULL);
	if (!batches_operation(b, argv[1]))
		return 1;
	while (*sizes && !wrong) {
		b->bytes = (size_t)strtoull(sizes, &sizes, 10);
		if (*sizes == ',')
			sizes++;
		if (!batches_allocate(b))
			return 1;
		if (b->prepare)
			b->prepare(b);
		wrong = batches_size(b);
		batches_free(b);
	}
	return wrong;
}

#endif
