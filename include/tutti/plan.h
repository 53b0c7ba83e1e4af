/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_PLAN_H
#define TUTTI_PLAN_H

/* Persistent plans: one call, made ready once and started many times. Part of tutti.h, which
 * is what to include and which says what counts for all calls. (The plan of channels over a
 * topology that inspect.h shows is another thing.)
 *
 * Arguments are looked at and the program is chosen when the plan is created; a start does
 * neither, and is else the same as the call: all ranks make their calls and starts in the same
 * order, and a start on one rank may meet the plain call on another.
 *
 * Threads: a plan is used by one thread at a time, which counts as one that uses its
 * communicator, but for tutti_plan_wait(). */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A call and its arguments. Fill it with TUTTI_CALL_INIT, then say what is called; fields that
 * the collective has no use for are not looked at. `size` lets a newer library read an older
 * caller's struct. */
typedef struct tutti_call {
	size_t size;
	tutti_collective coll; /* any but send_recv, handoff, and those with _V */
	const void *send;
	void *recv;
	size_t count;
	tutti_type type;
	tutti_op op;
	int root;
} tutti_call;

/* clang-format off */
#define TUTTI_CALL_INIT { sizeof(tutti_call), TUTTI_ALL_REDUCE, NULL, NULL, 0, TUTTI_FLOAT32, TUTTI_SUM, 0 }
/* clang-format on */

/* A call that was made ready. Opaque; the caller's, until tutti_plan_destroy(). */
typedef struct tutti_call_plan *tutti_call_plan_t;

/* Make a call ready. Local: the other ranks need not do the same. `call` is not kept, its
 * buffers are the caller's; waits for the calls that were made before. TUTTI_EINVAL: as the
 * call, or of a collective that there are no plans for. TUTTI_EUSAGE: inside a group. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_create(const tutti_call *call, tutti_comm_t comm,
						       tutti_call_plan_t *out);

/* Make the call: with a NULL stream it is done on return, else in the order of the stream, and
 * the buffers belong to the library until then. Status and errors are those of the call.
 * TUTTI_EUSAGE: inside a group, or the start before was not waited for. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_start(tutti_call_plan_t plan,
						      tutti_stream_t stream);

/* Wait until the last start is done: its status. At once if there was none. By one thread. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_wait(tutti_call_plan_t plan);

/* Wait for the last start and free the plan: the status of that start. Before or after the end
 * of the communicator. NULL is fine. */
TUTTI_API tutti_status tutti_plan_destroy(tutti_call_plan_t plan);

#ifdef __cplusplus
}
#endif

#endif
