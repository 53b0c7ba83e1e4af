/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_OVERLAP_OVERLAP_H
#define BENCH_OVERLAP_OVERLAP_H

/* How much of an all_reduce is hidden behind computation, measured alike for all libraries.
 *
 * Four phases take turns: the call alone (start, wait), the computation alone, both (start,
 * compute, wait), and both with the library asked in between as users do who want it to move.
 * Each lasts from a barrier until the slowest rank is through; the figures are medians. The
 * computation is a fixed number of equal slices, calibrated to take about as long as the call
 * while all ranks compute. It works in registers, or streams through more memory than caches
 * hold. Header only: MPI's compilers take it as it is. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum phase { COMM, COMPUTE, BOTH, ASKED, PHASES };
enum kind { REGISTERS, MEMORY, KINDS };

#define OVERLAP_MAX    200
#define OVERLAP_SLICES 200         /* between which a library is asked        */
#define OVERLAP_MEMORY (32u << 20) /* of each of two arrays that are streamed */
#define OVERLAP_STRIDE 512         /* floats of them in one unit of work      */

struct overlap {
	int rank;
	int nranks;
	size_t bytes;
	double seconds; /* about how long to measure each kind */
	float *send;    /* `bytes` each                        */
	float *recv;

	enum kind kind;
	long units; /* of work in a slice                  */
	float *stream[2];
	size_t cursor;
	volatile float sink;

	void *library;
	void (*start)(struct overlap *o); /* sum of bytes / 4 floats, send to recv */
	void (*ask)(struct overlap *o);   /* NULL: nobody needs to                  */
	void (*wait)(struct overlap *o);
	void (*barrier)(struct overlap *o);
	/* The maximum over ranks of each of two values, on all ranks. */
	void (*maximum)(struct overlap *o, double values[2]);
};

static inline double overlap_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* -- The computation ------------------------------------------------------------------- */

static inline void overlap_spin(struct overlap *o, long units)
{
	float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, sum = 0;

	for (long i = 0; i < units * 1000; i++)
		for (int j = 0; j < 8; j++)
			x[j] = x[j] * 0.9999f + 1e-3f;
	for (int j = 0; j < 8; j++)
		sum += x[j];
	o->sink = sum;
}

static inline void overlap_stream(struct overlap *o, long units)
{
	for (; units > 0; units--) {
		float *to = o->stream[0] + o->cursor;
		const float *from = o->stream[1] + o->cursor;

		for (int i = 0; i < OVERLAP_STRIDE; i++)
			to[i] = to[i] * 0.5f + from[i];
		o->cursor += OVERLAP_STRIDE;
		if (o->cursor == OVERLAP_MEMORY / sizeof(float))
			o->cursor = 0;
	}
}

static inline void overlap_compute(struct overlap *o, long units)
{
	if (o->kind == REGISTERS)
		overlap_spin(o, units);
	else
		overlap_stream(o, units);
}

/* -- One sample ------------------------------------------------------------------------ */

/* Seconds of the slowest rank, and since when: alike on all. */
static inline double overlap_sample(struct overlap *o, enum phase phase, double since,
				    double *elapsed)
{
	double took[2];

	o->barrier(o);
	took[0] = overlap_now();
	if (phase != COMPUTE)
		o->start(o);
	for (int i = 0; i < OVERLAP_SLICES && phase != COMM; i++) {
		overlap_compute(o, o->units);
		if (phase == ASKED)
			o->ask(o);
	}
	if (phase != COMPUTE)
		o->wait(o);
	took[1] = overlap_now();
	took[0] = took[1] - took[0];
	took[1] -= since;
	o->maximum(o, took);
	*elapsed = took[1];
	return took[0];
}

static inline int overlap_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline double overlap_median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(values[0]), overlap_compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static inline double overlap_median_of(struct overlap *o, enum phase phase, int n)
{
	double took[OVERLAP_MAX], elapsed;

	for (int i = 0; i < n; i++)
		took[i] = overlap_sample(o, phase, 0, &elapsed);
	return overlap_median(took, n);
}

/* So much work that it takes about as long as the call. */
static inline void overlap_calibrate(struct overlap *o)
{
	const double aim = overlap_median_of(o, COMM, 5);

	o->units = 1;
	for (int i = 0; i < 4; i++) {
		double units = (double)o->units * aim / overlap_median_of(o, COMPUTE, 3);

		o->units = units < 1 ? 1 : (long)(units + 0.5);
	}
}

/* -- All of it ------------------------------------------------------------------------- */

static inline int overlap_is_right(struct overlap *o)
{
	const float sum = (float)(o->nranks * (o->nranks + 1) / 2);

	for (size_t i = 0; i < o->bytes / sizeof(float); i++)
		if (o->recv[i] != sum) {
			fprintf(stderr, "rank %d: element %zu is %g, not %g\n", o->rank, i,
				(double)o->recv[i], (double)sum);
			return 0;
		}
	memset(o->recv, 0, o->bytes);
	return 1;
}

/* argv: BYTES SECONDS. 0: not good. */
static inline int overlap_prepare(struct overlap *o, int argc, char **argv)
{
	if (argc != 3)
		return 0;
	o->bytes = (size_t)strtoull(argv[1], NULL, 10);
	o->seconds = strtod(argv[2], NULL);
	o->send = (float *)malloc(o->bytes);
	o->recv = (float *)calloc(1, o->bytes);
	for (int i = 0; i < 2; i++)
		o->stream[i] = (float *)calloc(1, OVERLAP_MEMORY);
	if (!o->send || !o->recv || !o->stream[0] || !o->stream[1] || o->bytes < sizeof(float)) {
		fprintf(stderr, "rank %d: no buffers of %zu bytes\n", o->rank, o->bytes);
		return 0;
	}
	for (size_t i = 0; i < o->bytes / sizeof(float); i++)
		o->send[i] = (float)(o->rank + 1);
	for (size_t i = 0; i < OVERLAP_MEMORY / sizeof(float); i++)
		o->stream[0][i] = o->stream[1][i] = 1;
	return 1;
}

/* A line "kind comm compute both asked samples" in us from rank 0; asked is - where nobody
 * needs to ask. */
static inline void overlap_measure(struct overlap *o)
{
	static const char *const names[KINDS] = { "registers", "memory" };
	double took[PHASES][OVERLAP_MAX], us[PHASES], elapsed = 0, since;
	int n = 0;

	overlap_calibrate(o);
	since = overlap_now();
	do {
		for (int phase = 0; phase < PHASES; phase++)
			if (phase != ASKED || o->ask)
				took[phase][n] =
					overlap_sample(o, (enum phase)phase, since, &elapsed);
		n++;
	} while (n < OVERLAP_MAX && (n < 5 || elapsed < o->seconds));
	if (o->rank != 0)
		return;
	for (int phase = 0; phase < PHASES; phase++)
		if (phase != ASKED || o->ask)
			us[phase] = overlap_median(took[phase], n) * 1e6;
	printf("%s %.1f %.1f %.1f", names[o->kind], us[COMM], us[COMPUTE], us[BOTH]);
	if (o->ask)
		printf(" %.1f %d\n", us[ASKED], n);
	else
		printf(" - %d\n", n);
	fflush(stdout);
}

/* 0, or 1 if a result is wrong. The first calls, which connect, are not measured. */
static inline int overlap_run(struct overlap *o)
{
	int wrong = 0;

	for (int kind = 0; kind < KINDS; kind++) {
		double elapsed;

		o->kind = (enum kind)kind;
		overlap_sample(o, COMM, 0, &elapsed);
		wrong += !overlap_is_right(o);
		overlap_measure(o);
		wrong += !overlap_is_right(o);
	}
	free(o->send);
	free(o->recv);
	free(o->stream[0]);
	free(o->stream[1]);
	return wrong != 0;
}

#endif
