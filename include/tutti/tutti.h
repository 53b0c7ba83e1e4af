/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

/* Tutti: collective communication between ranks.
 *
 * A rank is one member of a communicator: a process, or a thread of one. Every
 * collective is called by all ranks of a communicator in the same order, with
 * the same count, type, operation and root; what differs is detected and is
 * TUTTI_EMISMATCH on every rank. One difference may be detected late: where ranks name
 * different roots in a short call, each of them may send and none receive. Then the next call, or
 * tutti_comm_finalize(), fails and names both roots; with TUTTI_CHECK=1 the call itself does,
 * outside of groups.
 *
 * Arguments that mean the same in all calls:
 *
 *   comm      a communicator that this rank is in. NULL is TUTTI_EINVAL, one that was destroyed
 *             TUTTI_EUSAGE
 *   send      the first element of what this rank gives; not written. NULL is fine where the
 *             rank gives nothing, or count is 0
 *   recv      where what this rank gets begins; the caller's, and written as it comes, so that
 *             its contents are undefined after a failure
 *   count     elements of `type`, never bytes; 0 and any number that memory holds
 *   type      a tutti_type: what an element is
 *   op        a tutti_op, or one that was created (operators.h): how elements are combined
 *   root      the rank, 0 or more, that gives or gets alone
 *   peer      a rank of the communicator
 *   stream    NULL: done on return. Else queued there, done in its order
 *   config    settings; not kept. NULL: the defaults
 *   out       where the result is put, on success only; not NULL
 *
 * Threads: one communicator handle is used by one thread at a time. Different
 * handles may be used by different threads at once. tutti_comm_abort(),
 * tutti_comm_get_async_error() and tutti_last_error() may be called from any
 * thread at any time before the handle is destroyed.
 *
 * Processes: communicators, streams, events, plans, windows, channels and open groups belong to
 * the process that made them. In a child that was forked, each call on them is TUTTI_EUSAGE and
 * communicates nothing; a call that destroys an event, a plan, a window or a channel frees the
 * child's memory of it. What the child has of communicators and streams, which threads of its
 * parent may have been changing, stays until it ends or runs another program. The child has none of the library's sockets and no shared memory but what its parent
 * got from tutti_mem_alloc(), so a parent that dies is missed at once, however long the child lives.
 * It may make communicators of its own.
 *
 * Streams: a call on the NULL stream is done when it returns. A call on a
 * tutti_stream_t returns at once and is done in the order of the stream; its
 * buffers belong to the library until then.
 *
 * Names: handles that take part in communication have a create, or an init, and a destroy (streams,
 * windows, communicators); values that are only looked at have a make, a load, or the verb that makes
 * them, and a free (plans, topologies, pings). Opaque handles end in _t and nothing else does. A struct
 * has a typedef of the name of its tag.
 *
 * Errors: every function returns a tutti_status that must be looked at; the
 * text that says what was wrong, where, and what helps is tutti_last_error(). */

#include <stddef.h>
#include <stdint.h>

#include "tutti/collectives.h"
#include "tutti/comm.h"
#include "tutti/memory.h"
#include "tutti/message.h"
#include "tutti/operators.h"
#include "tutti/persistent.h"
#include "tutti/plan.h"
#include "tutti/status.h"
#include "tutti/types.h"
#include "tutti/window.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Version ------------------------------------------------------------- */

/* What these headers are of, for #if; tutti_version() says what the library is. A library
 * of another MINOR, or MAJOR, is another ABI. TUTTI_VERSION is MAJOR * 10000 + MINOR * 100 +
 * PATCH. */
#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0
#define TUTTI_VERSION \
	(TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)

/* The version of the library at run time, as TUTTI_VERSION. Any thread. */
TUTTI_API int tutti_version(void);

/* -- Waiting ----------------------------------------------------------------- */

/* A thread's answer whether it shall wait no longer: not 0. `arg` is what the user gave. */
typedef int (*tutti_interrupt_fn)(void *arg);

/* Let this thread ask fn(arg) while it waits in a call: every 0.05 s or so, and not before it has
 * waited for some time. For programs whose handlers of signals cannot run meanwhile, as those of
 * languages with an interpreter. If the answer is not 0 the call ends:
 *
 * A call on a communicator, or on a window of it, ends with TUTTI_EABORTED. The communicator is lost;
 * the other ranks get TUTTI_EPEER, which names this one. tutti_stream_synchronize(),
 * tutti_event_synchronize(), tutti_persistent_wait(), tutti_message_wait() and tutti_message_probe() return
 * TUTTI_AGAIN; nothing is lost, and what they waited for goes on. tutti_message_send() and tutti_message_recv()
 * return TUTTI_ECANCELED, with nothing done, where tutti_message_cancel() would take them back; else they, as
 * tutti_channel_destroy() does, end the channel as other calls end the communicator. Making a communicator or a
 * channel and destroying a stream do not ask: make it with config.blocking 0, wait for the stream before.
 * But tutti_comm_init_env() asks while the name of the host where the ranks meet has no address yet, and
 * returns TUTTI_EABORTED.
 * fn must not call the library with what the interrupted call uses. It belongs to the calling thread;
 * NULL: none, as at first. */
TUTTI_API void tutti_set_interrupt(tutti_interrupt_fn fn, void *arg);

/* -- Streams and events -------------------------------------------------- */

/* Any thread may use a stream or an event, several at once, but for destroy. TUTTI_EINVAL: a
 * stream or event that is NULL. TUTTI_ENOMEM: no memory for what is to be queued. */

/* Make a queue of calls, done in order by a thread of its own. The caller's, until
 * tutti_stream_destroy(). Calls of several communicators may be queued on one. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_create(tutti_stream_t *out);

/* What a queue of the program calls when the turn of something has come that the library queued
 * there. `arg` is what came with it. */
typedef void (*tutti_queue_fn)(void *arg);

/* Queue a call of fn(arg) and return 0, without waiting for that call: the queue makes it once, on any
 * thread but not within this function, when all that was queued before is done. If the queue cannot take
 * it, return another number and never make it. `queue` is that of tutti_stream_wrap(). */
typedef int (*tutti_stream_push_fn)(void *queue, tutti_queue_fn fn, void *arg);

/* Let the queue go on with what is behind the call of fn(arg) that it made last, and return without
 * waiting. */
typedef void (*tutti_stream_release_fn)(void *queue);

/* What a stream needs of a queue that the program has already: a CUDA stream, a SYCL queue, an executor.
 * Fill it with TUTTI_STREAM_OPS_INIT, then set push, and release or not. Neither may call the library.
 * push is called by the threads that use the stream, by several at once if these do. If it may wait for
 * room in the queue, functions of tutti_stream_call() must not queue on that stream.
 *
 * release NULL: fn does the work and returns when that is done, and the queue does nothing else
 * meanwhile. This is the quickest way, for queues that get on independently of each other. In fn a
 * collective waits for other ranks, and for earlier calls on its communicator, whose turn may be in
 * other queues. If fn has taken the last thread that serves these queues (of all ranks in this process),
 * it waits for ever.
 *
 * release set: fn only notes that the turn has come, and returns at once. The queue then does nothing
 * else until release(queue) is called. The stream has a thread for it, which does the work first. This is
 * the way for queues whose functions must not wait for each other, as CUDA may run the host functions of
 * several streams on one thread. A binding for CUDA has a counter in pinned memory for each stream. Its
 * push() launches fn by cudaLaunchHostFunc(), then lets the CUDA stream wait by cuStreamWaitValue64()
 * until the counter is at least the number of pushes so far, both under one lock. Its release() adds 1 to
 * the counter. */
typedef struct tutti_stream_ops {
	size_t size; /* sizeof(tutti_stream_ops) */
	tutti_stream_push_fn push;
	tutti_stream_release_fn release; /* NULL: fn does the work */
} tutti_stream_ops;

/* clang-format off */
#define TUTTI_STREAM_OPS_INIT { sizeof(tutti_stream_ops), NULL, NULL }
/* clang-format on */

/* Make a stream of a queue of the program. Every call that takes a stream takes it; what is queued on it
 * is done at its turn in the queue, among what others queue there. `ops` is not kept. The queue stays
 * the program's, and has to be there until the stream was destroyed. The stream is the caller's, until
 * tutti_stream_destroy(). That and tutti_stream_synchronize() wait for what the library has queued, not
 * for the rest of the queue, and tutti_stream_query() asks about the same.
 *
 * A call gets its place in the order of its communicator when it is made, not when its turn in the queue
 * comes. So calls on one communicator run in the order in which they were made, on several queues, too.
 *
 * A call that push() refuses is TUTTI_ESYS and counts as not made; nothing else changes. Other ranks that
 * made theirs wait for it: make it again, or end the communicator. In a group of several streams the calls
 * on those before the refused one are queued, so only ending the communicator is left.
 *
 * What the program itself lets the queue run must not wait for the stream, as that would wait for it in
 * turn. tutti_comm_destroy() and tutti_comm_abort() wait until the queue has come to all calls on the
 * communicator. So a queue has to make each call that it took. One that fails, or ends early, makes those
 * that are left in their order, after tutti_comm_revoke(), so that they end with an error.
 *
 * TUTTI_EINVAL: out, ops or ops->push is NULL, or ops->size is wrong. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_wrap(tutti_stream_t *out,
						       const tutti_stream_ops *ops, void *queue);

/* Say that `change` more threads (fewer, if it is negative) wait until a stream has got on, by other means
 * than functions of the library: by those of a queue that was wrapped, or by a condition that a function
 * of tutti_stream_call() signals. While somebody waits, what is queued is done as quickly as calls on the
 * NULL stream are; else the cores are left to what the program computes. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_add_waiters(tutti_stream_t stream, int change);

/* Wait for what is queued, functions of tutti_stream_call() included, then free the stream. The
 * first error of all that was queued; the stream is gone whatever the status says, but for
 * TUTTI_EUSAGE: it was destroyed before, or this is a function that it runs. NULL is fine. */
TUTTI_API tutti_status tutti_stream_destroy(tutti_stream_t stream);

/* Wait until all that is queued is done. The first error of all that was ever queued, with
 * its text as this thread's last error: calls that are queued after a failed one run all the same, and
 * fail, too, if the communicator is lost. How each call went: tutti_stream_call(). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_synchronize(tutti_stream_t stream);

/* Whether all that is queued is done: TUTTI_AGAIN if not, else what
 * tutti_stream_synchronize() would say. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_query(tutti_stream_t stream);

/* A function that a stream runs: `status` is how the calls went that it comes after, `arg` is what
 * the user gave. */
typedef void (*tutti_stream_fn)(tutti_status status, void *arg);

/* Let the thread that runs the stream call fn(status, arg) when all that is queued by now is done,
 * however it went, also where a communicator was aborted or a rank has died. Each fn is run once, at the latest
 * by tutti_stream_destroy(). `status` is the first error of the calls that were queued since the
 * tutti_stream_call() before, TUTTI_OK if there was none: after each call one fn, and each is told how
 * its call went. While fn runs, tutti_last_error(NULL) is the text of that error, "" if there was
 * none. A call that returned an error when it was to be queued is not on the stream, and does not
 * count.
 *
 * While fn runs nothing else on the stream does, so it should be short, and must return. It may call
 * what does not wait: queue calls, and functions, on this stream or another, ask, make events and
 * streams. What would wait for something that is queued behind fn can never end, and is TUTTI_EUSAGE
 * with nothing done: tutti_stream_synchronize() and tutti_stream_destroy() of this stream, waiting for
 * an event or a plan that is at its turn on it, and, on a communicator that has calls which are not
 * done, whatever waits for these: calls on the NULL stream, tutti_mem_free(), tutti_comm_destroy(),
 * tutti_comm_abort() (tutti_comm_revoke() does not wait) and the like. That holds for this thread
 * only: another thread may wait as always, but not while fn waits for that thread. One thread at a
 * time uses a communicator: this thread is one, too.
 *
 * Not inside a group, whose calls are queued at its end: TUTTI_EUSAGE. TUTTI_EINVAL: fn is NULL. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_call(tutti_stream_t stream, tutti_stream_fn fn,
						       void *arg);

/* Let later calls on `stream` start only after `event` has happened, as it is recorded by
 * now. Does not block the caller. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_wait_event(tutti_stream_t stream,
							     tutti_event_t event);

/* Make an event: a point in a stream. One that was never recorded has happened. The caller's,
 * until tutti_event_destroy(). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_create(tutti_event_t *out);

/* Free an event; streams that are to record it, or wait for it, still do. NULL is fine. */
TUTTI_API tutti_status tutti_event_destroy(tutti_event_t event);

/* Let the event happen when `stream` has done all that is queued by now. It may be recorded
 * again, on any stream: then the last record is what others wait for from then on. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_record(tutti_event_t event, tutti_stream_t stream);

/* Wait until the event has happened, as it is recorded by now. Not how that went: whether a
 * call on the stream failed is for tutti_stream_synchronize() to say. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_synchronize(tutti_event_t event);

/* TUTTI_OK if the event has happened, TUTTI_AGAIN if not. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_query(tutti_event_t event);

#ifdef __cplusplus
}
#endif

#endif
