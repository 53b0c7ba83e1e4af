/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_STREAM_H
#define TTI_CORE_STREAM_H

/* Host streams: a queue of work, done in order by a thread of its own.
 *
 * Owner: the user's handle; tutti_stream_destroy() waits for what is queued. Its memory is never given
 * back to the heap, as that of the handle of a communicator is not (comm.h).
 * Threads: any may push; work runs on the stream's thread. */

#include "core/comm.h"

/* Work of a stream: the first member of what describes it, and of who made it, until it is run. */
struct tti_stream_item {
	struct tti_stream_item *next;
	tutti_status (*run)(struct tti_stream_item *item);
	bool is_awaited; /* threads may wait for this one, and not for what is behind it */
};

/* Append work: `run` is called once, in order, and may free the item; what it
 * returns is the stream's error if it is the first. An error: it is not called. */
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
/* One more user of it. */
struct tti_awaited *tti_awaited_take(struct tti_awaited *awaited);
/* Begin to wait for something that is queued. NULL: the stream has ended, so all is done. Else it stays
 * until tti_stream_wait_end(), which is the last use of it; till then this thread has its lock, but in a
 * step. */
tutti_stream_t tti_awaited_begin(struct tti_awaited *awaited);
/* Wait until there may be news. True: this thread shall wait no longer, as it was
 * interrupted. *until_ns is tti_interrupt_cond_wait()'s. */
bool tti_stream_wait_step(tutti_stream_t stream, int64_t *until_ns);
void tti_stream_wait_end(tutti_stream_t stream);
/* TUTTI_EUSAGE if this thread runs a function of that stream, behind which the rest is queued: `what`
 * would wait for ever. */
TUTTI_CHECKED tutti_status tti_stream_check_elsewhere(const struct tti_awaited *awaited,
						      const char *what);
/* NULL is fine. */
void tti_awaited_drop(struct tti_awaited *awaited);

#endif
