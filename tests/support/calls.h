/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_CALLS_H
#define TESTS_SUPPORT_CALLS_H

/* One call of any collective, made and held against the serial result (numbers.h) on every
 * rank: every byte of what is received, of what was sent, between the two and around them. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "support/numbers.h"
#include "tutti/inspect.h"

/* How much more one rank has than another, in calls with a count for each. */
enum call_spread {
	CALL_EQUAL,
	CALL_NOTHING,
	CALL_ONE_HAS_ALL,
	CALL_RISING, /* from none, at rank `root` where all have the same counts          */
	CALL_ODD,
	CALL_CHUNKS, /* of `count` elements in all, as long as they last                 */
};
#define CALL_SPREADS 6

/* How the call is made. Persistent calls are started twice. A call that is queued is on the caller's
 * stream, NULL included, and not waited for: the caller is checked once it is done. */
enum call_manner { CALL_PLAIN, CALL_ON_STREAM, CALL_IN_GROUP, CALL_AS_PLAN, CALL_QUEUED };

struct call {
	tutti_collective coll;
	tutti_type type;
	int op;        /* a tutti_op, or one of numbers.h                            */
	size_t count;  /* where each rank has its own: the most                     */
	int root;      /* of send_recv: to how many ranks further                    */
	bool in_place; /* of send_recv: the last rank does not go on with the first    */
	enum call_spread spread;
	enum call_manner manner;
	/* Of the numbers, and of what is left open: the sides of a handoff, in which order
	 * parts lie in a buffer, where buffers begin, whether what is not needed is NULL. */
	uint64_t seed;
};

/* What is known of a collective. */
struct operation {
	bool rooted, reduces, pairwise;
	bool sends_all, gets_all; /* a part for each rank in the buffer            */
	bool uneven;              /* a count for each rank                        */
	bool has_displs;
};
const struct operation *operation_of(tutti_collective coll);

/* One rank that makes calls on one communicator. */
struct caller {
	tutti_comm_t comm;
	int rank, n;
	/* Where buffers are; NULL: the caller's own, as long as it must be. */
	char *memory;
	size_t room;
	/* From there to the addresses that the library gets: of memory of a GPU. */
	ptrdiff_t shift;
	/* Counts the ranks that came to a barrier, if it is shared by all of them. */
	_Atomic long *came;

	char *own, *want; /* of `room` bytes */
	size_t own_room;
	long barriers;
	struct scene *scene;
	tutti_stream_t stream; /* NULL: one of its own, once one is needed */
	struct numbers *numbers;
};

/* As its fields say, the rest zero. */
void caller_release(struct caller *caller);

/* Make the call. What is wrong is CHECKed (world.h). */
enum call_result {
	CALL_RIGHT,
	CALL_WRONG, /* a byte is not what it must be            */
	CALL_LOST,  /* it failed: so does what comes after it  */
};
enum call_result caller_run(struct caller *caller, const struct call *call);

/* The same in parts, for calls that are made together or are to fail: fill buffers; make the
 * call; once it is done, look at all bytes. `call` must stay. A caller whose call has failed is
 * released next. */
void caller_prepare(struct caller *caller, const struct call *call);
TUTTI_CHECKED tutti_status caller_make(struct caller *caller);
bool caller_check(struct caller *caller);

/* By a caller for this call alone, with its buffers in `memory` of call_bytes(); NULL: its own. */
void call_and_check(const struct call *call, tutti_comm_t comm, int rank, int n, char *memory);
size_t call_bytes(const struct call *call, int n);

/* "reduce_scatter(17 x int8, sum) in place, on a stream". */
void call_print(const struct call *call, char *out, size_t size);

#endif
