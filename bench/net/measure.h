/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_NET_MEASURE_H
#define BENCH_NET_MEASURE_H

/* The measurement between nodes that all libraries get, so that only the library differs.
 *
 * A batch is a barrier and then `inner` calls back to back; it lasts from when the first rank
 * begins until the last has done, by the clock that all share, since the nodes are one machine.
 * The figure is the median over the batches. The first calls are not timed. What arrives is
 * compared element by element, after the first call and after the last. Header only: MPI's
 * compilers and C++ take it as it is. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum operation {
	SEND_RECV,      /* rank 0 to the last rank                                       */
	PING_PONG,      /* there and back; the time is that of one way                     */
	BROADCAST,      /* from rank 0                                                     */
	ALL_REDUCE,     /* float32 sum                                                     */
	ALL_GATHER,     /* bytes: what each rank ends with                                 */
	REDUCE_SCATTER, /* float32 sum; bytes: what each rank begins with                  */
	ALL_TO_ALL,     /* bytes: what each rank begins and ends with                      */
	HANDOFF,        /* from rank 0 to the second half of the ranks                     */
	HANDOFF_COPIES, /* the same, and every rank of the first half holds what is handed */
	OPERATIONS
};

struct measure {
	enum operation operation;
	int rank;
	int nranks;
	size_t bytes;
	size_t count;   /* of the call, in floats: where each rank has its own part, of that */
	double seconds; /* about how long to measure     */
	int in_place;   /* 1: recv is send               */
	float *send;    /* `bytes` each                  */
	float *recv;

	void *library;
	void (*call)(struct measure *m);
	void (*barrier)(struct measure *m);
	/* The maximum over ranks of each of two values, on all ranks. */
	void (*maximum)(struct measure *m, double values[2]);
};

#define MEASURE_MAX 400

static inline double measure_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static inline int measure_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline int measure_is_handoff(const struct measure *m)
{
	return m->operation == HANDOFF || m->operation == HANDOFF_COPIES;
}

/* Whether the vector is cut into a part for each rank. */
static inline int measure_has_parts(const struct measure *m)
{
	return m->operation == ALL_GATHER || m->operation == REDUCE_SCATTER ||
	       m->operation == ALL_TO_ALL;
}

/* Whether a result arrives at this rank. The root of a broadcast has it already: all libraries
 * get one buffer there, as MPI knows no other way. */
static inline int measure_receives(const struct measure *m)
{
	if (m->operation == BROADCAST)
		return m->rank != 0;
	if (m->operation == SEND_RECV)
		return m->rank == m->nranks - 1;
	if (m->operation == PING_PONG)
		return m->rank == 0 || m->rank == m->nranks - 1;
	return !measure_is_handoff(m) || m->rank >= m->nranks / 2;
}

/* argv: OPERATION BYTES SECONDS. 0: not good. */
static inline int measure_prepare(struct measure *m, char **argv)
{
	static const char *const names[OPERATIONS] = {
		"send_recv",      "ping_pong",  "broadcast", "all_reduce",     "all_gather",
		"reduce_scatter", "all_to_all", "handoff",   "handoff_copies",
	};
	int operation = 0;

	while (operation < OPERATIONS && strcmp(names[operation], argv[1]) != 0)
		operation++;
	m->operation = (enum operation)operation;
	m->bytes = (size_t)strtoull(argv[2], NULL, 10);
	m->seconds = strtod(argv[3], NULL);
	m->count = m->bytes / sizeof(float);
	if (measure_has_parts(m))
		m->count /= (size_t)m->nranks;
	if (operation == OPERATIONS || m->count == 0 || m->nranks < 2) {
		fprintf(stderr, "rank %d: nothing to do: %s of %zu bytes, %d ranks\n", m->rank,
			argv[1], m->bytes, m->nranks);
		return 0;
	}
	m->send = (float *)malloc(m->bytes);
	m->recv = m->in_place ? m->send : (float *)malloc(m->bytes);
	if (!m->send || !m->recv)
		fprintf(stderr, "rank %d: no buffers of %zu bytes\n", m->rank, m->bytes);
	return m->send && m->recv;
}

static inline void measure_release(struct measure *m)
{
	free(m->send);
	if (!m->in_place)
		free(m->recv);
}

/* Small whole numbers: sums of them are exact. */
static inline float measure_value(size_t i, int rank)
{
	return (float)(i % 1021) + (float)rank;
}

static inline void measure_fill(struct measure *m)
{
	for (size_t i = 0; i < m->bytes / sizeof(float); i++) {
		m->recv[i] = -1;
		m->send[i] = measure_value(i, measure_is_handoff(m) ? 0 : m->rank);
	}
}

static inline float measure_expected(const struct measure *m, size_t i)
{
	const int n = m->nranks;

	switch (m->operation) {
	case ALL_REDUCE:
		return (float)n * measure_value(i, 0) + (float)(n * (n - 1) / 2);
	case ALL_GATHER:
		return measure_value(i % m->count, (int)(i / m->count));
	case REDUCE_SCATTER:
		return (float)n * measure_value((size_t)m->rank * m->count + i, 0) +
		       (float)(n * (n - 1) / 2);
	case ALL_TO_ALL:
		return measure_value((size_t)m->rank * m->count + i % m->count,
				     (int)(i / m->count));
	case PING_PONG:
		return measure_value(i, m->rank == 0 ? n - 1 : 0);
	case SEND_RECV:
	case BROADCAST:
	case HANDOFF:
	case HANDOFF_COPIES:
	case OPERATIONS:
		break;
	}
	return measure_value(i, 0);
}

/* 1: what came out is what it should be. */
static inline int measure_is_right(const struct measure *m)
{
	const int one_part = m->operation == REDUCE_SCATTER || !measure_has_parts(m);
	const size_t n = m->count * (size_t)(one_part ? 1 : m->nranks);

	for (size_t i = 0; i < n && measure_receives(m); i++)
		if (m->recv[i] != measure_expected(m, i)) {
			fprintf(stderr, "rank %d: element %zu is %g, not %g\n", m->rank, i,
				(double)m->recv[i], (double)measure_expected(m, i));
			return 0;
		}
	return 1;
}

/* Seconds that `calls` calls took, and when the last rank was through; alike on all ranks. */
static inline double measure_batch(struct measure *m, int calls, double *end)
{
	double clock[2];

	m->barrier(m);
	clock[0] = -measure_now();
	for (int i = 0; i < calls; i++)
		m->call(m);
	clock[1] = measure_now();
	m->maximum(m, clock);
	*end = clock[1];
	return clock[0] + clock[1];
}

static inline void measure_print(const struct measure *m, double *times, int n, int inner)
{
	const double ways = m->operation == PING_PONG ? 2 : 1;

	qsort(times, (size_t)n, sizeof(times[0]), measure_compare);
	if (m->rank == 0)
		printf("%.4f %.4f %d %d\n",
		       (n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2) / ways,
		       times[0] / ways, n, inner);
}

/* 0 and a line "median_us min_us batches inner" from rank 0, or 1. */
static inline int measure_run(struct measure *m)
{
	int inner = m->bytes <= 8192 ? 50 : m->bytes <= 65536 ? 10 : 1;
	double times[MEASURE_MAX], took, start, end;
	int n = 0, limit, wrong;

	measure_fill(m);
	m->call(m);
	wrong = !measure_is_right(m);
	/* In place a result is the next call's input: of zeros nothing grows. */
	if (m->in_place)
		memset(m->send, 0, m->bytes);
	/* A library that needs milliseconds for 8 bytes would be at it for minutes. */
	took = measure_batch(m, 2, &end);
	limit = (int)(m->seconds / 5 / (took / 2 + 1e-9));
	if (inner > limit)
		inner = limit > 1 ? limit : 1;
	measure_batch(m, inner, &start);

	do {
		times[n++] = measure_batch(m, inner, &end) / inner * 1e6;
	} while (n < MEASURE_MAX && (n < 3 || end - start < m->seconds));
	if (!m->in_place)
		wrong += !measure_is_right(m);
	measure_print(m, times, n, inner);
	measure_release(m);
	return wrong != 0;
}

/* One call after one that is not timed, and a word on stdout before it so that somebody may
 * disturb it. 0 and a line "seconds" from rank 0, or 1. */
static inline int measure_once(struct measure *m)
{
	double clock[2];
	int wrong;

	measure_fill(m);
	m->call(m);
	wrong = !measure_is_right(m);
	measure_fill(m);
	m->barrier(m);
	if (m->rank == 0) {
		printf("begin\n");
		fflush(stdout);
	}
	clock[0] = -measure_now();
	m->call(m);
	clock[1] = measure_now();
	wrong += !measure_is_right(m);
	m->maximum(m, clock);
	if (m->rank == 0)
		printf("%.6f\n", clock[0] + clock[1]);
	measure_release(m);
	return wrong != 0;
}

#endif
