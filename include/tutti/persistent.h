/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_PERSISTENT_H
#define TUTTI_PERSISTENT_H

/* Persistent calls: a collective that is made ready once and started many times, as MPI's persistent
 * collectives are. Part of tutti.h, which is what to include and which says what holds for all calls.
 *
 * tutti_persistent_create() checks the arguments and chooses the program, so that a start does neither.
 * In all else a start is the call itself: all ranks make their calls and starts in the same order, and
 * a start on one rank may meet the plain call on another.
 *
 * Threads: one thread at a time uses a persistent call, and counts as one that uses its communicator.
 * Only tutti_persistent_wait() does not count so. */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A call and its arguments. Fill it with TUTTI_CALL_INIT, then set the collective and its arguments.
 * The library ignores fields that the collective has no use for. `size` lets a newer library read an
 * older caller's struct. */
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

/* A call that was made ready. Opaque; the caller's, until tutti_persistent_destroy(). */
typedef struct tutti_persistent *tutti_persistent_t;

/* Make a call ready. This is local: the other ranks need not do the same. It waits for the calls that
 * were made before. `call` is not kept; the buffers that it names stay the caller's.
 * TUTTI_EINVAL: an argument that the call itself would refuse, or a collective that cannot be made
 * persistent. TUTTI_EUSAGE: inside a group. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_persistent_create(const tutti_call *call,
							     tutti_comm_t comm,
							     tutti_persistent_t *out);

/* Make the call. With a NULL stream it is done on return. On a stream it is done in the stream's order,
 * and the buffers belong to the library until then. Status and errors are those of the call.
 * TUTTI_EUSAGE: inside a group, or nobody has waited for the start before. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_persistent_start(tutti_persistent_t persistent,
							    tutti_stream_t stream);

/* Wait until the last start is done, and return its status. Returns at once if there was no start. One
 * thread at a time may wait. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_persistent_wait(tutti_persistent_t persistent);

/* Wait for the last start, free the persistent call, and return the status of that start. It may be
 * destroyed before or after its communicator. NULL is fine. */
TUTTI_API tutti_status tutti_persistent_destroy(tutti_persistent_t persistent);

#ifdef __cplusplus
}
#endif

#endif
