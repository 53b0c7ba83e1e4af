/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_COMPARE_BATCHES_H
#define BENCH_COMPARE_BATCHES_H

/* The measurement that all libraries get, so that only the library differs.
 *
 * A batch is a barrier and then `inner` calls back to back; it took as long as
 * on its slowest rank, and the figure is the median over the batches. Buffers
 * are malloc's, separate and used again in each call, so that sizes up to 16 MB
 * may stay in caches. Header only: MPI's compilers and C++ take it as it is. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct batches {
	int rank;
	int nranks;
	size_t bytes;
	double seconds; /* about how long to measure */
	int in_place;   /* the library can do nothing else: recv is send */
	float *send;
	float *recv;

	void *library;
	void (*call)(struct batches *b); /* sum of bytes / 4 floats, send to recv */
	void (*barrier)(struct batches *b);
	/* The maximum over ranks of each of two values, on all ranks. */
	void (*maximum)(struct batches *b, double values[2]);
};

#define BATCHES_MAX 200

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

/* argv: BYTES SECONDS. 0: not good. */
static inline int batches_prepare(struct batches *b, char **argv)
{
	b->bytes = (size_t)strtoull(argv[1], NULL, 10);
	b->seconds = strtod(argv[2], NULL);
	b->send = (float *)malloc(b->bytes);
	b->recv = b->in_place ? b->send : (float *)malloc(b->bytes);
	if (!b->send || !b->recv || b->bytes < sizeof(float)) {
		fprintf(stderr, "rank %d: no buffers of %zu bytes\n", b->rank, b->bytes);
		return 0;
	}
	return 1;
}

static inline void batches_fill(struct batches *b, int value)
{
	for (size_t i = 0; i < b->bytes / sizeof(float); i++) {
		b->recv[i] = -1;
		b->send[i] = (float)value;
	}
}

/* 1: what came out is the sum. */
static inline int batches_are_right(const struct batches *b)
{
	const float sum = (float)(b->nranks * (b->nranks + 1) / 2);

	for (size_t i = 0; i < b->bytes / sizeof(float); i++)
		if (b->recv[i] != sum) {
			fprintf(stderr, "rank %d: element %zu is %g, not %g\n", b->rank, i,
				(double)b->recv[i], (double)sum);
			return 0;
		}
	return 1;
}

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

/* 0 and a line "median_us min_us batches inner" from rank 0, or 1. */
static inline int batches_run(struct batches *b)
{
	const size_t kb = b->bytes / 1024;
	int inner = kb <= 8 ? 50 : kb <= 64 ? 10 : 1;
	double times[BATCHES_MAX], took[2], start;
	int n = 0, limit, wrong;

	/* The first calls build connections; check one, then look how long a
	 * few take: a library that needs milliseconds for 8 bytes would
	 * otherwise be at it for minutes. */
	batches_fill(b, b->rank + 1);
	b->call(b);
	wrong = !batches_are_right(b);
	/* In place a result is the next call's input: of zeros nothing grows. */
	if (b->in_place)
		batches_fill(b, 0);
	start = batches_now();
	batches_one(b, inner < 5 ? 2 : 5, start, took);
	limit = (int)(b->seconds / 5 / (took[0] / (inner < 5 ? 2 : 5) + 1e-9));
	if (inner > limit)
		inner = limit > 1 ? limit : 1;
	batches_one(b, inner, start, took);

	start = batches_now();
	do {
		batches_one(b, inner, start, took);
		times[n++] = took[0] / inner * 1e6;
	} while (n < BATCHES_MAX && (n < 3 || took[1] < b->seconds));
	if (!b->in_place)
		wrong += !batches_are_right(b);

	qsort(times, (size_t)n, sizeof(times[0]), batches_compare);
	if (b->rank == 0)
		printf("%.4f %.4f %d %d\n",
		       n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2, times[0], n,
		       inner);
	free(b->send);
	if (!b->in_place)
		free(b->recv);
	return wrong != 0;
}

#endif
