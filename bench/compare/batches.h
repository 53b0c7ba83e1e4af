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
 * A batch is a barrier and then calls back to back, 50 up to 8 KB, 10 up to 64 KB, else 1;
 * it took as long as on its slowest rank. Buffers are malloc's (or the library's own, where
 * that is what is measured) and separate. Three MODES:
 *
 * rewritten  Each call sends a buffer that its rank has written in full since it was last
 *            sent, as a program does that computes between calls. A batch has a send buffer
 *            for each of its calls and writes all of them before its barrier, so that the
 *            timed part has nothing but calls. Where there are several they are 256 KB
 *            together at most, so that they are still in the writer's cache: a batch of
 *            64 KB has 4 calls. (That buffers take turns costs nothing by itself: without
 *            the writing, send_recv and all_reduce of 8 and 64 KB in Open MPI and Intel MPI
 *            take as long as in the other mode.)
 *            Two simpler ways were not taken. Writing between the calls and subtracting
 *            what writing alone takes: a rank may write while its peers are still at the
 *            call before, so that a part of the time would be subtracted which nobody
 *            waited for, and how much depends on the library. A barrier before each call
 *            and a clock around it: the ranks leave a barrier one after another, which is
 *            as much as a short call takes.
 * unchanged  The same buffers in each call, never written again: the lines that a peer
 *            read stay clean, and near to it. Benchmarks of MPI do so.
 * loaded     As unchanged, while other processes want the cores. Each call of a batch of 20
 *            is timed by itself, and what counts is the mean and the 90th percentile of
 *            calls: a median does not see the calls that waited for a time slice.
 *
 * The figure of the first two is the median over the batches. The first and the last call of
 * a size are checked in full, and after each batch a sample that was written before it.
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

enum mode {
	REWRITTEN,
	UNCHANGED,
	LOADED,
	MODES,
};

struct batches {
	int rank;
	int nranks;
	int peer; /* in send_recv; -1: none */
	enum operation operation;
	enum mode mode;
	double seconds; /* about how long to measure */
	size_t bytes;   /* as asked for */
	size_t block;   /* floats: of the vector, or of the part of it that is one rank's */
	size_t sent;    /* floats at send, and at recv */
	size_t received;
	int in_place;  /* the library can do nothing else: recv is send */
	int nsends;    /* send buffers, of which `send` is the one of the next call */
	int turn;      /* which one that is */
	size_t stride; /* floats from one to the next */
	float *sends;
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

#define BATCHES_MAX     200
#define BATCHES_PROBES  16
#define BATCHES_LOADED  20          /* calls of a batch */
#define BATCHES_REWRITE (256 << 10) /* bytes of the send buffers of a batch, unless it has one */
#define BATCHES_PERIOD  13

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

/* The index of the word that `text` begins with, up to a comma; `count` and a line on stderr if
 * there is no such word. */
static inline int batches_index(const char *text, const char *const *words, int count)
{
	const size_t length = strcspn(text, ",");
	int i = 0;

	while (i < count && (strlen(words[i]) != length || strncmp(words[i], text, length) != 0))
		i++;
	if (i == count)
		fprintf(stderr, "'%s' is nothing that can be measured\n", text);
	return i;
}

static inline enum operation batches_operation(const char *text)
{
	static const char *const names[OPERATIONS] = {
		"all_reduce", "broadcast", "all_gather", "reduce_scatter",
		"all_to_all", "send_recv", "barrier",
	};

	return (enum operation)batches_index(text, names, OPERATIONS);
}

static const char *const batches_modes[MODES] = { "rewritten", "unchanged", "loaded" };

/* -- The data -------------------------------------------------------------------- */

/* Element i of a block is base + step * ((first + i) % BATCHES_PERIOD): whole numbers that
 * differ by rank, place and round, small enough that sums are exact. */
struct batches_pattern {
	float base;
	float step;
	size_t first;
};

static inline struct batches_pattern batches_given(int rank, size_t first, int round)
{
	const struct batches_pattern pattern = { (float)(1 + rank + round), 1, first };

	return pattern;
}

static inline struct batches_pattern batches_summed(int n, size_t first, int round)
{
	const int base = n * (1 + round) + n * (n - 1) / 2;
	const struct batches_pattern pattern = { (float)base, (float)n, first };

	return pattern;
}

/* What shall be in a block of recv. */
static inline struct batches_pattern batches_expected(const struct batches *b, int block, int round)
{
	const size_t mine = (size_t)b->rank * b->block;

	switch (b->operation) {
	case ALL_REDUCE:
		return batches_summed(b->nranks, 0, round);
	case REDUCE_SCATTER:
		return batches_summed(b->nranks, mine, round);
	case ALL_GATHER:
		return batches_given(block, 0, round);
	case ALL_TO_ALL:
		return batches_given(block, mine, round);
	case SEND_RECV:
		return batches_given(b->peer, 0, round);
	case BROADCAST:
	case BARRIER:
	case OPERATIONS:
		break;
	}
	return batches_given(0, 0, round);
}

static inline float batches_at(struct batches_pattern pattern, size_t index)
{
	return pattern.base + pattern.step * (float)((pattern.first + index) % BATCHES_PERIOD);
}

static inline void batches_write(float *out, size_t count, struct batches_pattern pattern)
{
	float period[BATCHES_PERIOD];
	size_t i;

	for (i = 0; i < BATCHES_PERIOD; i++)
		period[i] = batches_at(pattern, i);
	for (i = 0; i + BATCHES_PERIOD <= count; i += BATCHES_PERIOD)
		memcpy(out + i, period, sizeof(period));
	memcpy(out + i, period, (count - i) * sizeof(float));
}

/* 1 if the block has what it shall have. */
static inline int batches_block_is_right(const struct batches *b, int block, int round)
{
	const struct batches_pattern pattern = batches_expected(b, block, round);
	const float *in = b->recv + (size_t)block * b->block;
	float period[BATCHES_PERIOD];
	size_t i = 0;

	for (i = 0; i < BATCHES_PERIOD; i++)
		period[i] = batches_at(pattern, i);
	for (i = 0; i + BATCHES_PERIOD <= b->block; i += BATCHES_PERIOD)
		if (memcmp(in + i, period, sizeof(period)) != 0)
			break;
	while (i < b->block && in[i] == batches_at(pattern, i))
		i++;
	if (i == b->block)
		return 1;
	fprintf(stderr, "rank %d: element %zu of block %d is %g, not %g\n", b->rank, i, block,
		(double)in[i], (double)batches_at(pattern, i));
	return 0;
}

/* How many calls a batch has. */
static inline int batches_calls(const struct batches *b, enum mode mode)
{
	const int calls = b->bytes <= 8 << 10 ? 50 : b->bytes <= 64 << 10 ? 10 : 1;
	const size_t room = BATCHES_REWRITE / (b->stride * sizeof(float));

	if (mode == LOADED)
		return BATCHES_LOADED;
	if (mode == UNCHANGED || (size_t)calls <= room)
		return calls;
	return room ? (int)room : 1;
}

/* The next call shall use the send buffer of this number. */
static inline void batches_turn(struct batches *b, int turn)
{
	b->turn = turn;
	b->send = b->sends + (size_t)turn * b->stride;
	if (b->in_place || b->operation == BROADCAST)
		b->recv = b->send;
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
	/* No two share a line. */
	b->stride = (b->sent + 15) / 16 * 16;
	b->nsends = batches_calls(b, REWRITTEN);
	send_bytes = (size_t)b->nsends * b->stride * sizeof(float);
	recv_bytes = b->received * sizeof(float);
	b->sends = b->allocate ? b->allocate(b, send_bytes) : (float *)malloc(send_bytes);
	b->recv = NULL;
	if (!b->in_place && b->operation != BROADCAST)
		b->recv = b->allocate ? b->allocate(b, recv_bytes) : (float *)malloc(recv_bytes);
	batches_turn(b, 0);
	if (b->sends && b->recv)
		return 1;
	fprintf(stderr, "rank %d: no buffers of %zu and %zu bytes\n", b->rank, send_bytes,
		recv_bytes);
	return 0;
}

static inline void batches_free(struct batches *b)
{
	batches_turn(b, 0);
	for (int i = 0; i < (b->recv == b->sends ? 1 : 2); i++) {
		if (b->release)
			b->release(b, i ? b->recv : b->sends);
		else
			free(i ? b->recv : b->sends);
	}
}

/* In a broadcast only the root has something to give. */
static inline int batches_gives(const struct batches *b)
{
	return b->operation != BROADCAST || b->rank == 0;
}

static inline int batches_has_result(const struct batches *b)
{
	return b->operation != BARRIER && !(b->operation == SEND_RECV && b->peer < 0);
}

/* Of each block a few elements: written, or looked at. In place a result is the next call's
 * input, so only what is written in full can be looked at. */
static inline int batches_probe(struct batches *b, int round, int look)
{
	const size_t step = b->block < BATCHES_PROBES ? 1 : b->block / BATCHES_PROBES;
	const struct batches_pattern given = batches_given(b->rank, 0, round);

	if (!batches_has_result(b) || (b->in_place && b->mode != REWRITTEN))
		return 1;
	if (!look) {
		for (size_t first = 0; batches_gives(b) && first < b->sent; first += b->block)
			for (size_t i = first; i < first + b->block; i += step)
				b->send[i] = batches_at(given, i);
		return 1;
	}
	for (size_t first = 0; first < b->received; first += b->block) {
		const int block = (int)(first / b->block);
		const struct batches_pattern expected = batches_expected(b, block, round);

		for (size_t i = 0; i < b->block; i += step)
			if (b->recv[first + i] != batches_at(expected, i))
				return batches_block_is_right(b, block, round);
	}
	return 1;
}

/* -- The measurement ------------------------------------------------------------- */

/* What is written before a batch of `calls`, outside its time. */
static inline void batches_before(struct batches *b, int calls, int round)
{
	batches_turn(b, 0);
	if (b->mode != REWRITTEN) {
		batches_probe(b, round, 0);
		return;
	}
	for (int i = 0; batches_gives(b) && i < calls; i++)
		batches_write(b->sends + (size_t)i * b->stride, b->sent,
			      batches_given(b->rank, 0, round));
}

/* A batch; two values: its longest time, and that since `start`. Where `each` is, it gets the
 * time of each call. */
static inline void batches_one(struct batches *b, int calls, double start, float *each,
			       double out[2])
{
	double begin, last, now;

	b->barrier(b);
	last = begin = batches_now();
	for (int i = 0; i < calls; i++) {
		if (b->mode == REWRITTEN)
			batches_turn(b, i);
		b->call(b);
		if (each) {
			now = batches_now();
			each[i] = (float)(now - last);
			last = now;
		}
	}
	now = batches_now();
	out[0] = now - begin;
	out[1] = now - start;
	b->maximum(b, out);
}

/* The least time of a call in up to three batches, as one of them may have waited for a time
 * slice; no more of them once that is below `enough`, or more than a wait can explain. */
static inline double batches_least(struct batches *b, int calls, double enough)
{
	double least = 0, took[2];

	for (int i = 0; i < 3 && (i == 0 || (least > enough && took[0] < 2 * b->seconds)); i++) {
		batches_one(b, calls, batches_now(), NULL, took);
		if (i == 0 || took[0] / calls < least)
			least = took[0] / calls;
	}
	return least;
}

/* How many calls make a batch. A library that needs milliseconds for 8 bytes would
 * otherwise be at it for minutes. */
static inline int batches_inner(struct batches *b)
{
	const double limit = b->seconds / 5;
	int inner = batches_calls(b, b->mode), fitting;

	batches_before(b, inner, 0);
	if (batches_least(b, 1, limit) > limit)
		return 1;
	fitting = (int)(limit / (batches_least(b, inner < 5 ? inner : 5, limit / inner) + 1e-9));
	if (inner > fitting)
		inner = fitting > 1 ? fitting : 1;
	batches_least(b, inner, limit);
	return inner;
}

/* A call whose result is looked at in full: 1 if it is right. */
static inline int batches_checked(struct batches *b, int round)
{
	batches_turn(b, 0);
	for (size_t i = 0; i < b->received; i++)
		b->recv[i] = -1;
	if (batches_gives(b))
		batches_write(b->send, b->sent, batches_given(b->rank, 0, round));
	b->barrier(b);
	b->call(b);
	for (size_t first = 0; batches_has_result(b) && first < b->received; first += b->block)
		if (!batches_block_is_right(b, (int)(first / b->block), round))
			return 0;
	return 1;
}

/* What one rank sees is wrong for all. */
static inline int batches_agree(struct batches *b, int right)
{
	double wrong[2] = { right ? 0. : 1., 0 };

	b->maximum(b, wrong);
	return wrong[0] == 0;
}

static inline void batches_print(const struct batches *b, double figure, double other, int n,
				 int inner)
{
	const double us = 1e6 / (b->operation == SEND_RECV ? 2 : 1);

	if (b->rank != 0)
		return;
	printf("%s %zu %.4f %.4f %d %d\n", batches_modes[b->mode], b->bytes, figure * us,
	       other * us, n, inner);
	fflush(stdout);
}

/* The median and the least of the batches: 1 if all results were right. */
static inline int batches_quiet(struct batches *b)
{
	double times[BATCHES_MAX], took[2];
	const int inner = batches_inner(b);
	const double start = batches_now();
	int n = 0, right = 1;

	do {
		batches_before(b, inner, n + 1);
		batches_one(b, inner, start, NULL, took);
		right &= batches_probe(b, n + 1, 1);
		times[n++] = took[0] / inner;
	} while (n < BATCHES_MAX && took[1] < b->seconds * (n < 3 ? 4 : 1));
	if (!batches_agree(b, right))
		return 0;
	qsort(times, (size_t)n, sizeof(times[0]), batches_compare);
	batches_print(b, n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2, times[0], n,
		      inner);
	return 1;
}

static inline int batches_compare_floats(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* The mean, of the slowest rank in each batch, and the 90th percentile of the rank where that
 * is greatest: 1 if all results were right. */
static inline int batches_loaded(struct batches *b)
{
	const double start = batches_now();
	double took[2], total = 0, percentile[2];
	float *each = NULL;
	int n = 0, right = 1;

	do {
		float *more = (float *)realloc(each, (size_t)(n + BATCHES_LOADED) * sizeof(*each));

		if (!more) {
			fprintf(stderr, "rank %d: no memory for %d times\n", b->rank,
				n + BATCHES_LOADED);
			exit(1);
		}
		each = more;
		batches_before(b, BATCHES_LOADED, 1 + n / BATCHES_LOADED % BATCHES_MAX);
		batches_one(b, BATCHES_LOADED, start, each + n, took);
		right &= batches_probe(b, 1 + n / BATCHES_LOADED % BATCHES_MAX, 1);
		total += took[0];
		n += BATCHES_LOADED;
	} while (took[1] < b->seconds);
	qsort(each, (size_t)n, sizeof(each[0]), batches_compare_floats);
	percentile[0] = percentile[1] = (double)each[(size_t)n * 9 / 10];
	free(each);
	b->maximum(b, percentile);
	if (!batches_agree(b, right))
		return 0;
	batches_print(b, total / n, percentile[0], n, BATCHES_LOADED);
	return 1;
}

/* One size: 0 and from rank 0 a line for each mode, "mode bytes median_us least_us batches
 * inner", loaded: "mode bytes mean_us percentile_us calls inner"; or 1. */
static inline int batches_size(struct batches *b, const char *modes)
{
	b->mode = REWRITTEN;
	if (!batches_agree(b, batches_checked(b, 0)))
		return 1;
	while (*modes) {
		b->mode = (enum mode)batches_index(modes, batches_modes, MODES);
		modes += strcspn(modes, ",");
		modes += *modes == ',';
		if (b->mode == MODES)
			return 1;
		/* In place a result is the next call's input: of zeros nothing grows. */
		if (b->in_place)
			memset(b->sends, 0, b->sent * sizeof(float));
		if (b->mode == LOADED ? !batches_loaded(b) : !batches_quiet(b))
			return 1;
	}
	return !batches_agree(b, batches_checked(b, BATCHES_MAX + 1));
}

/* argv: THIS OPERATION MODE,MODE... SECONDS BYTES,BYTES...; 0, or 1 if anything was wrong. */
static inline int batches_run(struct batches *b, char **argv)
{
	char *sizes = argv[4];
	int wrong = 0;

	b->operation = batches_operation(argv[1]);
	b->seconds = strtod(argv[3], NULL);
	if (b->operation == OPERATIONS)
		return 1;
	while (*sizes && !wrong) {
		b->bytes = (size_t)strtoull(sizes, &sizes, 10);
		if (*sizes == ',')
			sizes++;
		if (!batches_allocate(b))
			return 1;
		if (b->prepare)
			b->prepare(b);
		wrong = batches_size(b, argv[2]);
		batches_free(b);
	}
	return wrong;
}

#endif
