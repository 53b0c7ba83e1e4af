/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_STREAM_H
#define TTI_CORE_STREAM_H

/* Host streams: a queue of work, done in order. The queue is the stream's own, or one of the program's
 * (tutti_stream_wrap()), which says when the turn of each piece of work has come. Work is run by a thread
 * of the stream, or, if a queue of the program lets its functions wait, by that queue's.
 *
 * Owner: the user's handle; tutti_stream_destroy() waits for what is queued. Its memory is never given
 * back to the heap, as that of the handle of a communicator is not (comm.h).
 * Threads: any may push; one piece of work runs at a time. */

#include "core/comm.h"

/* Work of a stream: the first member of what describes it, and of who made it, until it is run. */
struct tti_stream_item {
	struct tti_stream_item *next;
	struct tutti_stream *stream;
	tutti_status (*run)(struct tti_stream_item *item);
	bool is_awaited; /* threads may wait for this one, and not for what is behind it */
};

/* Append work: `run` is called once, in order, and may free the item; what it
 * returns is the stream's error if it is the first. An error: it is not called. TUTTI_ESYS: the
 * program's queue takes no more. */
TUTTI_CHECKED tutti_status tti_stream_push(tutti_stream_t stream, struct tti_stream_item *item,
					   tutti_status (*run)(struct tti_stream_item *item));
/* Whether something can be pushed: TUTTI_EINVAL if the stream is NULL, TUTTI_EUSAGE if it was destroyed,
 * or is a parent's. */
TUTTI_CHECKED tutti_status tti_stream_check(tutti_stream_t stream);

/* How many threads of the user's wait until a stream has got on, and so compute nothing
 * meanwhile: its thread then waits as theirs would. It outlives the stream for those who
 * wait for something that was queued there. */
struct tti_awaited {
	_Atomic int now, users;
	pthread_mutex_t lock;
	tutti_stream_t stream; /* NULL: it has ended. Under the lock */
};

/* Whether this thread is in a function of tutti_stream_call(), and has to return from it before what
 * is queued behind can run. */
bool tti_stream_is_calling(void);
/* The same of the stream that is so awaited; NULL: of none. */
bool tti_stream_is_calling_of(const struct tti_awaited *awaited);

/* One more user of the stream's; NULL: it was destroyed, and this is no function that it still runs. */
struct tti_awaited *tti_stream_awaited(tutti_stream_t stream);
/* Wait until *pending is false: of an item that is_awaited and was queued on the stream, which may end
 * meanwhile. `stops`: TUTTI_AGAIN if this thread is interrupted before. A thread of the user's counts
 * itself in `now` until it is back. */
tutti_status tti_awaited_wait(struct tti_awaited *awaited, const _Atomic bool *pending, bool stops);
/* TUTTI_EUSAGE if this thread runs a function of that stream, behind which the rest is queued: `what`
 * would wait for ever. */
TUTTI_CHECKED tutti_status tti_stream_check_elsewhere(const struct tti_awaited *awaited,
						      const char *what);
/* NULL is fine. */
void tti_awaited_drop(struct tti_awaited *awaited);

#endif
