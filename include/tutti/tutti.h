/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

/* Tutti: collective communication between ranks.
 *
 * A rank is one member of a communicator: a process, or a thread of one. All ranks of a
 * communicator call each collective, in the same order and with the same count, type, operation and
 * root. Where their arguments differ, every rank gets TUTTI_EMISMATCH. One difference may be found
 * late: if ranks name different roots in a short call, each of them may send and none receive. Then
 * the next call or tutti_comm_finalize() fails and names both roots. With TUTTI_CHECK=1 the call
 * itself fails, unless it is part of a group.
 *
 * Arguments that mean the same in all calls:
 *
 *   comm      a communicator that this rank belongs to. NULL is TUTTI_EINVAL, a destroyed one
 *             TUTTI_EUSAGE
 *   send      the first element that this rank contributes; the library does not write it. May be
 *             NULL where the rank contributes nothing, or count is 0
 *   recv      where the result of this rank begins. It stays the caller's. The library writes it
 *             while data arrives, so its contents are undefined after a failure
 *   count     elements of `type`, never bytes; 0 or more
 *   type      a tutti_type: what an element is
 *   op        a tutti_op, or one that was created (operators.h): how elements are combined
 *   root      the rank, 0 or more, that gives or gets alone
 *   peer      a rank of the communicator
 *   stream    NULL: the call is done on return. Else it is queued there, and done in the order of
 *             the stream
 *   config    settings, which the library does not keep. NULL: the defaults
 *   out       where the result is put, on success only; not NULL
 *
 * Threads: one thread at a time uses a communicator. Different communicators may be used by
 * different threads at once. Any thread may call tutti_comm_abort(), tutti_comm_get_async_error()
 * and tutti_last_error() at any time before the communicator is destroyed.
 *
 * Processes: communicators, streams, events, persistent calls, windows, message channels and open
 * groups belong to the process that made them. In a forked child each call on them is TUTTI_EUSAGE
 * and communicates nothing. A call that destroys an event, a persistent call, a window or a message
 * channel frees the child's copy of it. The child's copies of communicators and streams stay until
 * the child ends or runs another program, because threads of the parent may have been changing
 * them. The child inherits none of the library's sockets, and no shared memory but that of
 * tutti_mem_alloc(). So the other ranks notice at once when the parent dies, however long the child
 * lives. The child may make communicators of its own.
 *
 * Streams: a call on the NULL stream is done when it returns. A call on a tutti_stream_t returns at
 * once and is done in the order of the stream. Its buffers belong to the library until then.
 *
 * Names: handles that take part in communication have a create, or an init, and a destroy (streams,
 * windows, communicators). Values that are only looked at have a make, a load, or the verb that
 * makes them, and a free (plans, topologies, pings). Opaque handles end in _t and nothing else
 * does. A struct has a typedef of the name of its tag.
 *
 * Errors: every function returns a tutti_status, which the caller must check. tutti_last_error()
 * says what was wrong, where, and what helps. Compilers warn of a call whose status is not used;
 * where that is meant, write `(void)!tutti_comm_rank(comm, &rank)`, as `(void)` alone does not do. */

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

/* The version of these headers, for #if; tutti_version() is that of the library. A library of
 * another MINOR or MAJOR has another ABI. TUTTI_VERSION is MAJOR * 10000 + MINOR * 100 + PATCH. */
#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0
#define TUTTI_VERSION \
	(TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)

/* The version of the library at run time, in the form of TUTTI_VERSION. Any thread. */
TUTTI_API int tutti_version(void);

/* -- Waiting ----------------------------------------------------------------- */

/* Whether a thread shall stop waiting: 0 is no, anything else yes. `arg` is what the user gave. */
typedef int (*tutti_interrupt_fn)(void *arg);

/* Let this thread ask fn(arg) while it waits in a call: about every 0.05 s, beginning after some
 * time. It is for programs whose signal handlers cannot run while a call waits, as in interpreted
 * languages. If the answer is not 0 the call ends:
 *
 * A call on a communicator, or on one of its windows, ends with TUTTI_EABORTED. The communicator is
 * lost, and the other ranks get TUTTI_EPEER, which names this one.
 *
 * tutti_stream_synchronize(), tutti_event_synchronize(), tutti_persistent_wait(),
 * tutti_message_wait() and tutti_message_probe() return TUTTI_AGAIN. Nothing is lost, and what they
 * waited for goes on.
 *
 * tutti_message_send() and tutti_message_recv() return TUTTI_ECANCELED, with nothing done, if
 * tutti_message_cancel() could take the message back. Otherwise they end the message channel, as
 * other calls end the communicator. So does tutti_channel_destroy().
 *
 * Making a communicator or a message channel, and destroying a stream, do not ask: set
 * config.blocking to 0 to make a communicator, and wait for a stream before it is destroyed.
 * tutti_comm_init_env() does ask while the host name of the meeting point has no address yet, and
 * returns TUTTI_EABORTED.
 *
 * fn must not call the library with what the interrupted call uses. It belongs to the calling
 * thread. NULL: ask nobody, which is the default. */
TUTTI_API void tutti_set_interrupt(tutti_interrupt_fn fn, void *arg);

/* -- Streams and events -------------------------------------------------- */

/* Any thread may use a stream or an event, and several may at once, but for destroy. TUTTI_EINVAL:
 * the stream or event is NULL. TUTTI_ENOMEM: there is no memory to queue the work. */

/* Make a queue of calls, which a thread of its own does in order. It is the caller's, until
 * tutti_stream_destroy(). Calls of several communicators may be queued on one stream. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_create(tutti_stream_t *out);

/* A function that the library puts into a queue of the program. The queue calls it when its turn
 * has come, with the `arg` that came with it. */
typedef void (*tutti_queue_fn)(void *arg);

/* Queue a call of fn(arg) and return 0, without waiting for that call. The queue makes the call
 * once, on any thread but not within this function, when all that was queued before is done. If the
 * queue cannot take it, return another number and never make it. `queue` is that of
 * tutti_stream_wrap(). */
typedef int (*tutti_stream_push_fn)(void *queue, tutti_queue_fn fn, void *arg);

/* Let the queue go on with what is behind the call of fn(arg) that it made last. Return without
 * waiting. */
typedef void (*tutti_stream_release_fn)(void *queue);

/* What a stream needs of a queue that the program already has: a CUDA stream, a SYCL queue, an
 * executor. Fill it with TUTTI_STREAM_OPS_INIT, then set push, and release if the queue needs it.
 * Neither function may call the library. Threads that use the stream call push, several at once if
 * several use it. If push may wait for room in the queue, functions of tutti_stream_call() must not
 * queue on that stream.
 *
 * release NULL: fn does the work and returns when the work is done. The queue does nothing else
 * meanwhile. This is the fastest way, for queues that make progress independently of each other. In
 * fn a collective waits for other ranks, and for earlier calls on its communicator, which may be in
 * other queues. If fn occupies the last thread that serves these queues (of all ranks in this
 * process), it waits for ever.
 *
 * release set: fn only notes that its turn has come, and returns at once. The queue then does
 * nothing else until release(queue) is called. The stream has a thread that first does the work.
 * This is the way for queues whose functions must not wait for each other: CUDA may run the host
 * functions of several streams on one thread. A binding for CUDA has a counter in pinned memory for
 * each stream. Its push() launches fn by cudaLaunchHostFunc(), then lets the CUDA stream wait by
 * cuStreamWaitValue64() until the counter is at least the number of pushes so far, both under one
 * lock. Its release() adds 1 to the counter.
 *
 * cuda set: the queue is a stream of CUDA: `queue` of tutti_stream_wrap() is the cudaStream_t itself,
 * NULL for the default stream. A call of a rank with a device (tutti_config.device) is launched in
 * it as one kernel when the call is made. It runs in the order of the stream, and nobody waits for
 * it, as with NCCL: its buffers are the program's again when the stream has come past it, which
 * functions and events of CUDA tell. An error is found later, by tutti_comm_get_async_error(). While
 * the stream is captured the call becomes part of the graph, which may be launched any number of
 * times, by all ranks alike, as long as the communicator exists; while a graph runs, no other call
 * may be made on its communicators.
 *
 * All else is done by a thread of the stream's own, while the stream waits by cuStreamWaitValue32():
 * calls of ranks without a device, windows, tutti_stream_call(), events of Tutti. push and release
 * are not called. A graph cannot repeat such work: while the stream is captured it is
 * TUTTI_EUNSUPPORTED. */
typedef struct tutti_stream_ops {
	size_t size; /* sizeof(tutti_stream_ops) */
	tutti_stream_push_fn push;
	tutti_stream_release_fn release; /* NULL: fn does the work */
	int cuda;                        /* not 0: the queue is a cudaStream_t, or a CUstream */
} tutti_stream_ops;

/* clang-format off */
#define TUTTI_STREAM_OPS_INIT { sizeof(tutti_stream_ops), NULL, NULL, 0 }
/* clang-format on */

/* Make a stream of a queue of the program. Every call that takes a stream takes it. Work that is
 * queued on the stream is done at its turn in the queue, among what others queue there. `ops` is
 * not kept. The queue stays the program's and must exist until the stream was destroyed. The stream
 * is the caller's, until tutti_stream_destroy(). That function and tutti_stream_synchronize() wait
 * for what the library has queued, not for the rest of the queue; tutti_stream_query() asks about
 * the same.
 *
 * A call gets its place in the order of its communicator when it is made, not when its turn in the
 * queue comes. So calls on one communicator run in the order in which they were made, also if they
 * are in several queues.
 *
 * A call that push() refuses is TUTTI_ESYS and counts as not made; nothing else changes. Other
 * ranks that made their call wait for it: make it again, or end the communicator. In a group of
 * several streams the calls on those before the refused one are queued, so the communicator must be
 * ended.
 *
 * The program must not queue work that waits for the stream, since that work would wait for itself.
 * tutti_comm_destroy() and tutti_comm_abort() wait until the queue has made all calls on the
 * communicator. So a queue must make every call that it took. A queue that fails, or ends early,
 * calls tutti_comm_revoke() and then makes the remaining calls in their order, so that they end
 * with an error.
 *
 * TUTTI_EINVAL: out or ops is NULL, or ops->push without ops->cuda, or ops->size is wrong. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_wrap(tutti_stream_t *out,
						       const tutti_stream_ops *ops, void *queue);

/* Tell the library that `change` more threads (fewer, if negative) wait for a stream. This is for
 * threads that wait by other means than functions of the library: by functions of a queue that was
 * wrapped, or by a condition that a function of tutti_stream_call() signals. While anybody waits,
 * queued work is done as quickly as calls on the NULL stream. Otherwise the cores are left to the
 * program's computation. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_add_waiters(tutti_stream_t stream, int change);

/* Wait for all that is queued, functions of tutti_stream_call() included, then free the stream.
 * Returns the first error of all that was queued. The stream is gone whatever the status says,
 * except with TUTTI_EUSAGE: it was destroyed before, or the calling function is one that the stream
 * runs. NULL is fine. */
TUTTI_API tutti_status tutti_stream_destroy(tutti_stream_t stream);

/* Wait until all that is queued is done. Returns the first error of all that was ever queued, with
 * its text as this thread's last error. Calls behind a failed one run all the same, and fail, too,
 * if the communicator is lost. tutti_stream_call() tells how each call went. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_synchronize(tutti_stream_t stream);

/* Whether all that is queued is done: TUTTI_AGAIN if not, else what tutti_stream_synchronize()
 * would return. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_query(tutti_stream_t stream);

/* A function that a stream runs. `status` is how the calls before it went, `arg` is what the user
 * gave. */
typedef void (*tutti_stream_fn)(tutti_status status, void *arg);

/* Let the thread that runs the stream call fn(status, arg) when all that is queued by now is done.
 * It is called however the calls went, also if a communicator was aborted or a rank has died, and
 * once, at the latest by tutti_stream_destroy(). `status` is the first error of the calls that were
 * queued since the tutti_stream_call() before, or TUTTI_OK. With one fn after each call, each fn is
 * told how its call went. While fn runs, tutti_last_error(NULL) is the text of that error, or "". A
 * call that could not be queued, and returned an error, is not on the stream and does not count.
 *
 * While fn runs, the stream does nothing else, so fn should be short, and must return. It may call
 * what does not wait: queue calls and functions on this stream or another, query, make events and
 * streams. A function that would wait for work queued behind fn could never return. It is
 * TUTTI_EUSAGE, with nothing done: tutti_stream_synchronize() and tutti_stream_destroy() of this
 * stream, waiting for an event or a persistent call of this stream, and, on a communicator with
 * calls that are not done, every function that waits for those: calls on the NULL stream,
 * tutti_mem_free(), tutti_comm_destroy(), tutti_comm_abort() and the like (tutti_comm_revoke() does
 * not wait). This is so for this thread only: another thread may wait as always, but fn must not
 * wait for that thread. One thread at a time uses a communicator, and this thread counts.
 *
 * TUTTI_EUSAGE, too: inside a group, whose calls are queued at its end. TUTTI_EINVAL: fn is
 * NULL. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_call(tutti_stream_t stream, tutti_stream_fn fn,
						       void *arg);

/* Let later calls on `stream` start only after `event`, as recorded by now, has happened. Does not
 * block the caller. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_wait_event(tutti_stream_t stream,
							     tutti_event_t event);

/* Make an event: a point in a stream. An event that was never recorded counts as happened. It is
 * the caller's, until tutti_event_destroy(). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_create(tutti_event_t *out);

/* Free an event. Streams that are to record it, or wait for it, still do. NULL is fine. */
TUTTI_API tutti_status tutti_event_destroy(tutti_event_t event);

/* Let the event happen when `stream` has done all that is queued by now. It may be recorded again,
 * on any stream: from then on others wait for the last record. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_record(tutti_event_t event, tutti_stream_t stream);

/* Wait until the event, as recorded by now, has happened. It does not tell whether a call on the
 * stream failed: tutti_stream_synchronize() does. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_synchronize(tutti_event_t event);

/* Whether the event has happened: TUTTI_OK if so, TUTTI_AGAIN if not. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_query(tutti_event_t event);

#ifdef __cplusplus
}
#endif

#endif
