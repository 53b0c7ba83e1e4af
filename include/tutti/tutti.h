/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

/* Tutti: collective communication between ranks.
 *
 * A rank is one member of a communicator: a process, or a thread of one. Every
 * collective is called by all ranks of a communicator in the same order, with
 * the same count, type, operation and root; what differs is detected and is
 * TUTTI_EMISMATCH on every rank.
 *
 * Counts are in elements of the given type, never in bytes.
 *
 * Threads: one communicator handle is used by one thread at a time. Different
 * handles may be used by different threads at once. tutti_comm_abort(),
 * tutti_comm_get_async_error() and tutti_last_error() may be called from any
 * thread at any time before the handle is destroyed.
 *
 * Streams: a call on the NULL stream is done when it returns. A call on a
 * tutti_stream_t returns at once and is done in the order of the stream; its
 * buffers belong to the library until then.
 *
 * Errors: every function returns a tutti_status that must be looked at; the
 * text that says what was wrong, where, and what helps is tutti_last_error(). */

#include <stddef.h>
#include <stdint.h>

#include "tutti/collectives.h"
#include "tutti/comm.h"
#include "tutti/memory.h"
#include "tutti/operators.h"
#include "tutti/plan.h"
#include "tutti/status.h"
#include "tutti/types.h"
#include "tutti/window.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Version ------------------------------------------------------------- */

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0
#define TUTTI_VERSION \
	(TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)

/* The version of the library at run time, as TUTTI_VERSION. Any thread. */
TUTTI_API int tutti_version(void);

/* -- Streams and events -------------------------------------------------- */

/* A queue of calls, done in order by a thread of its own. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_create(tutti_stream_t *out);
/* Waits for what is queued. NULL is fine. */
TUTTI_API tutti_status tutti_stream_destroy(tutti_stream_t stream);
/* Wait until all that is queued is done; the first error of it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_synchronize(tutti_stream_t stream);
/* TUTTI_AGAIN while something is queued, else as synchronize. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_query(tutti_stream_t stream);
/* Later calls on `stream` start only after `event` has happened. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_wait_event(tutti_stream_t stream,
							     tutti_event_t event);

/* A point in a stream. An event that was never recorded has happened. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_create(tutti_event_t *out);
TUTTI_API tutti_status tutti_event_destroy(tutti_event_t event);
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_record(tutti_event_t event, tutti_stream_t stream);
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_synchronize(tutti_event_t event);
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_query(tutti_event_t event);

#ifdef __cplusplus
}
#endif

#endif
