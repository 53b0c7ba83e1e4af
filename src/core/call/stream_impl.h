/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_STREAM_IMPL_H
#define TTI_CORE_CALL_STREAM_IMPL_H

/* What a stream is, for stream.c and stream_call.c. */

#include "core/call/stream.h"
#include "core/handle.h"
#include "util/error.h"

struct tti_gpu_turns;

struct tti_stream_failure {
	tutti_status status; /* TUTTI_OK: there was none */
	char text[TTI_ERROR_TEXT];
};

/* Under the stream's lock, but for turns. */
struct tti_stream_outcome {
	struct tti_stream_failure first;  /* of all work */
	struct tti_stream_failure untold; /* since the last function ran */
	/* Calls of ranks with devices in a stream of CUDA, and those that are over: their
	 * communicators have noticed that. */
	uint64_t nlaunched, nlanded;
	/* Turns of the host there, from the first one on; they are added under `order`. */
	struct tti_gpu_turns *turns;
	pthread_mutex_t order;
};

/* This memory is kept when a stream is destroyed (KEEP), so large parts are allocated beside it. */
struct tutti_stream {
	struct tti_freed freed;
	_Atomic int is_destroyed;
	int pid;     /* of the process that made it */
	void *queue; /* the program's, with what it can do; push is NULL: there is none, or CUDA's */
	tutti_stream_push_fn push;
	tutti_stream_release_fn release;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ready, done; /* for the thread, and for threads that wait for queued work */
	struct tti_stream_item *first, **end; /* what the thread may run */
	int nqueued;  /* not done yet, wherever it is                                    */
	int nwaiting; /* threads that wait for queued work, and keep the stream */
	bool closing;
	bool is_cuda;    /* the queue is a stream of CUDA */
	bool has_thread; /* without one, those of the program's queue run the work */
	struct tti_awaited *awaited;
	struct tti_stream_outcome *outcome;
};

/* The stream whose function of tutti_stream_call() this thread runs; NULL: none. */
extern _Thread_local const struct tutti_stream *tti_stream_calling;

#endif
