/* SPDX-License-Identifier: BSD-3-Clause */
/* What libnccl.so.2 and a stream of CUDA cost over the plain call on a stream of Tutti's: microseconds of an
 * all-reduce and of waiting for its stream, float32 sum, by ranks that are threads. The two take turns in one run.
 *
 *     bench_nccl_overhead [RANKS]
 *
 * Prints a row a size: the medians of all rounds, and the median of the rounds' ratios. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nccl/nccl_device.h"
#include "tutti/tutti.h"

extern int cudaSetDevice(int device);
extern int cudaStreamCreate(cudaStream_t *out);
extern int cudaStreamDestroy(cudaStream_t stream);
extern int cudaStreamSynchronize(cudaStream_t stream);

#define ROUNDS 31
#define MOST   64

static const size_t sizes[] = { 8, 65536 };

#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

/* What rank 0 has measured: us[size][round][0: Tutti, 1: NCCL]. */
static double us[NSIZES][ROUNDS][2];

static pthread_barrier_t barrier;
static tutti_comm_t plain[MOST];
static ncclComm_t bound[MOST];
static int n = 2;

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s failed: %s %s\n", what, tutti_last_error(NULL), ncclGetLastError(NULL));
	exit(1);
}

#define CHECK(call) check((call) == 0, #call)

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

struct rank {
	int rank;
	float *send, *recv;
	tutti_stream_t stream;
	cudaStream_t cuda;
};

static void call_plain(const struct rank *self, size_t count)
{
	CHECK(tutti_all_reduce(self->send, self->recv, count, TUTTI_FLOAT32, TUTTI_SUM,
			       plain[self->rank], self->stream));
	CHECK(tutti_stream_synchronize(self->stream));
}

static void call_bound(const struct rank *self, size_t count)
{
	CHECK(ncclAllReduce(self->send, self->recv, count, ncclFloat32, ncclSum, bound[self->rank],
			    self->cuda));
	CHECK(cudaStreamSynchronize(self->cuda));
}

/* Microseconds of a call. */
static double measure(const struct rank *self, size_t nbytes,
		      void (*call)(const struct rank *, size_t))
{
	const int ncalls = nbytes < 4096 ? 400 : 200;
	double begun;

	pthread_barrier_wait(&barrier);
	begun = now_us();
	for (int i = 0; i < ncalls; i++)
		call(self, nbytes / sizeof(float));
	return (now_us() - begun) / ncalls;
}

static void *run(void *arg)
{
	struct rank self = { .rank = (int)(size_t)arg };

	self.send = calloc(sizes[NSIZES - 1], 1);
	self.recv = calloc(sizes[NSIZES - 1], 1);
	check(self.send && self.recv, "memory");
	CHECK(cudaSetDevice(self.rank));
	CHECK(cudaStreamCreate(&self.cuda));
	CHECK(tutti_stream_create(&self.stream));
	for (size_t i = 0; i < NSIZES; i++)
		for (int round = -2; round < ROUNDS; round++) {
			const double a = measure(&self, sizes[i], call_plain);
			const double b = measure(&self, sizes[i], call_bound);

			if (self.rank == 0 && round >= 0) {
				us[i][round][0] = a;
				us[i][round][1] = b;
			}
		}
	CHECK(tutti_stream_destroy(self.stream));
	CHECK(ncclCommDestroy(bound[self.rank]));
	CHECK(cudaStreamDestroy(self.cuda));
	free(self.send);
	free(self.recv);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	pthread_t threads[MOST];
	char devices[16];

	n = argc > 1 ? atoi(argv[1]) : n;
	check(n >= 2 && n <= MOST, "RANKS is 2 to 64, and that");
	(void)snprintf(devices, sizeof(devices), "%d", n);
	check(setenv("TUTTI_CUDAHOST_GPUS", devices, 1) == 0, "setenv");
	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	CHECK(tutti_comm_init_all(plain, n, NULL));
	CHECK(ncclCommInitAll(bound, n, NULL));
	for (int rank = 0; rank < n; rank++)
		check(!pthread_create(&threads[rank], NULL, run, (void *)(size_t)rank), "thread");
	for (int rank = 0; rank < n; rank++)
		pthread_join(threads[rank], NULL);
	for (int rank = 0; rank < n; rank++)
		CHECK(tutti_comm_destroy(plain[rank]));
	printf("%d ranks, %d rounds\n%10s %10s %10s %7s\n", n, ROUNDS, "bytes", "tutti us",
	       "nccl us", "ratio");
	for (size_t i = 0; i < NSIZES; i++) {
		double a[ROUNDS], b[ROUNDS], ratio[ROUNDS];

		for (int round = 0; round < ROUNDS; round++) {
			a[round] = us[i][round][0];
			b[round] = us[i][round][1];
			ratio[round] = b[round] / a[round];
		}
		printf("%10zu %10.2f %10.2f %7.3f\n", sizes[i], median(a), median(b),
		       median(ratio));
	}
	return 0;
}
