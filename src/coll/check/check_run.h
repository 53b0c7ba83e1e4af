/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_CHECK_RUN_H
#define TTI_COLL_CHECK_RUN_H

/* Private to the checker: one symbolic run of the programs of all ranks that send messages, and why
 * it stopped (check_stall.c). */

#include "coll/check/check_set.h"

/* How the programs are run. */
struct tti_check_mode {
	bool in_order; /* strictly one operation after the other                     */
	bool shared;   /* a fan-out also takes one of its sender's shared slots until
			   all readers are done (shared memory)                       */
};

/* What has happened on a link: messages put into it, and taken out. */
struct tti_check_link {
	int32_t sent, taken;
	int32_t depth;   /* slots, or fewer if it never carries so many            */
	size_t messages; /* index of the first slot's value                        */
};

/* A value is a set of ranks whose contributions it holds. */
struct tti_check_message_run {
	struct tti_arena arena;
	const struct tti_check *check;
	struct tti_check_mode mode;
	int32_t *need;               /* of each operation: events still to come, -1: done      */
	int32_t *unread;             /* of each fan-out: readers that have not read it         */
	int32_t *fanout;             /* fan-outs, by rank and in order: operations             */
	int32_t *fanout_base;        /* [n + 1]                                             */
	int32_t *fanout_index;       /* of each operation: its number among its rank's, -1 */
	struct tti_check_link *link; /* of each queue that sends                     */
	uint64_t *value;             /* of each chunk of each rank                             */
	uint8_t *place;              /* the same: enum tti_place                               */
	uint64_t *message;           /* of each slot of each link                              */
	uint64_t *result;            /* of the operation that runs                             */
	int32_t *ready;              /* operations to run                                      */
	int32_t nready, ndone;
};

/* Run all programs; quiet TUTTI_EINVAL says what went wrong. */
TUTTI_CHECKED tutti_status tti_check_run(const struct tti_check *check, struct tti_check_mode mode);

/* Say who waits for whom in a run that has stopped early. Always TUTTI_EINVAL, quiet. */
TUTTI_CHECKED tutti_status tti_check_stall(const struct tti_check_message_run *run);

#endif
