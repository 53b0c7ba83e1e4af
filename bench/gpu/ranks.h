/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_RANKS_H
#define BENCH_GPU_RANKS_H

/* all_reduce of float32 among ranks that are threads of this process and share the GPUs there are:
 * what a call takes on the device and on the host, in a graph, what making communicators costs, and
 * in memory. One measurement for all libraries; each program of them gives a struct library.
 *
 *     PROGRAM RANKS [--most BYTES] [KIND...]     plain (the default) registered pinned
 *
 * plain: memory of cudaMalloc(); registered: of the library, and registered with it; pinned: of the
 * host. Every element of a result is compared before its size is measured.
 *
 * Owner: main() of ranks.c. Threads: a rank's struct is its thread's. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime.h"

#define RANKS_MOST 8

struct ranks {
	int n, ndevices;
	size_t most; /* bytes of the longest vector */
	pthread_barrier_t all;
	double figures[RANKS_MOST]; /* of each rank */
	void *library;              /* what the ranks share */
};

struct rank {
	struct ranks *job;
	int number, device;
	const char *kind; /* of buffers */
	cudaStream_t stream;
	void *input, *output;
	void *staging; /* vector.h */
	size_t nwrong; /* elements of results so far */
	void *library; /* this rank's communicator and what belongs to it */
};

struct library {
	const char *name;
	/* Once in the process, before there are ranks. */
	void (*open)(struct ranks *job);
	/* By each rank, its device being current. */
	void (*init)(struct rank *rank);
	void (*all_reduce)(struct rank *rank, size_t nbytes);
	/* Of the kind `registered`. */
	void (*allocate)(struct rank *rank, void **out, size_t nbytes);
	void (*release)(struct rank *rank, void *memory, size_t nbytes);
	void (*enroll)(struct rank *rank);
	void (*expel)(struct rank *rank);
	/* Bytes of the device that the library says this rank takes; NULL: it says nothing. */
	size_t (*memory)(struct rank *rank);
	void (*destroy)(struct rank *rank);
};

/* The program's. */
extern const struct library library;

#endif
