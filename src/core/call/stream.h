/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_STREAM_H
#define TTI_CORE_CALL_STREAM_H

/* Host streams: work that is done in order. Its queue is the stream's own, or a queue of the
 * program (tutti_stream_wrap()), which says when each piece of work may run. A thread of the
 * stream runs the work; if the program's queue lets its functions wait, the thread of that queue
 * does.
 *
 * Owner: the user's handle; tutti_stream_destroy() waits for queued work. Like the handle of a
 * communicator (handle.h), its memory is never given back to the heap. Threads: any may push;
 * one piece of work runs at a time. */

#include "core/comm.h"

struct tti_flight_stream;
struct tti_flight_told;

/* Work of a stream: the first member of a larger struct, which belongs to its maker until it
 * runs. */
struct tti_stream_item {
	struct tti_stream_item *next;
	struct tutti_stream *stream;
	tutti_status (*run)(struct tti_stream_item *item);
	bool is_awaited;    /* threads may wait for this item, and not for items behind it */
	uint64_t nlaunched; /* kernels in the stream before it */
	/* Of a stream of CUDA: where it waits for the work. reached: an error if the device has failed,
	 * so that what the stream did before the work is not there. */
	void *turn;
	tutti_status reached;
};

/* Append work: `run` is called once, in order, and may free the item. The first error that work
 * returns is the stream's. After an error `run` is not called. TUTTI_ESYS: the program's queue
 * takes no more. */
TUTTI_CHECKED tutti_status tti_stream_push(tutti_stream_t stream, struct tti_stream_item *item,
					   tutti_status (*run)(struct tti_stream_item *item));
/* Before work on a communicator: it is lost if the stream's device has failed, as the work would take
 * for data what is none. */
void tti_stream_item_check(const struct tti_stream_item *item, struct tti_comm *comm);
/* Whether work can be pushed. TUTTI_EINVAL: the stream is NULL. TUTTI_EUSAGE: it was destroyed, or
 * belongs to the parent process. */
TUTTI_CHECKED tutti_status tti_stream_check(tutti_stream_t stream);

/* Whether the program's queue is a stream of CUDA: then calls of ranks with devices are launched in
 * it when they are made. launch(): where, and who is to be told of each. */
bool tti_stream_is_cuda(const struct tutti_stream *stream);
TUTTI_CHECKED tutti_status tti_stream_launch(tutti_stream_t stream, struct tti_flight_stream *to,
					     struct tti_flight_told *told);

/* How many threads of the user wait for a stream: they compute nothing meanwhile, so the stream's
 * thread may spin in their place. It outlives the stream for threads that wait for an item. */
struct tti_awaited {
	_Atomic int now, users;
	_Atomic int inside; /* of those and other threads: how many wait in the library */
	pthread_mutex_t lock;
	tutti_stream_t stream; /* NULL: it has ended. Under the lock */
};

/* Whether this thread runs a function of tutti_stream_call(): work behind the function cannot run
 * before it returns. of(): on the stream that is so awaited; NULL: false. */
bool tti_stream_is_calling(void);
bool tti_stream_is_calling_of(const struct tti_awaited *awaited);

/* The stream's, with one more user; NULL: it was destroyed, and this is no function that it
 * runs. */
struct tti_awaited *tti_stream_awaited(tutti_stream_t stream);
/* Wait until *pending is false, which an item that is_awaited sets; the stream may end meanwhile.
 * `stops`: TUTTI_AGAIN if this thread is interrupted before. A thread of the user counts itself in
 * `now` around this. */
tutti_status tti_awaited_wait(struct tti_awaited *awaited, const _Atomic bool *pending, bool stops);
/* TUTTI_EUSAGE if this thread runs a function of that stream: `what` would wait for work behind the
 * function for ever. */
TUTTI_CHECKED tutti_status tti_stream_check_elsewhere(const struct tti_awaited *awaited,
						      const char *what);
/* NULL is fine. */
void tti_awaited_drop(struct tti_awaited *awaited);

#endif
