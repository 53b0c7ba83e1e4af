/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_CHECK_RUN_H
#define TTI_COLL_CHECK_RUN_H

/* Private to the checker (check.c, check_run.c, check_stall.c, check_memory.c): the compiled
 * programs of all ranks side by side, and one symbolic run of them.
 *
 * A value is a set of ranks. Where an order is asked for it says all: it is one rank, so
 * its input, or the ranks 0 to k, which then were combined from the left, as each operation
 * begins with such a set and adds single ranks in their order.
 *
 * Operations and queues of all ranks are numbered through: operation o of rank r is
 * oper_base[r] + o. A link is known by its sender's queue. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/compile/compile.h"

struct tti_check {
	const struct tti_program *prog;
	struct tti_compiled *compiled;
	int n, slots;
	enum tti_order order;
	bool is_memory;                               /* of any rank */
	int32_t *oper_base, *queue_base, *chunk_base; /* [n + 1]                      */
	int32_t *partner; /* of each queue: the queue at the other end                */
	int32_t *rank_of; /* of each operation                                        */
	size_t value_words;
};

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
struct tti_check_run {
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

static inline int32_t tti_check_nopers(const struct tti_check *check)
{
	return check->oper_base[check->n];
}

static inline const struct tti_operation *tti_check_operation(const struct tti_check *check,
							      int32_t oper)
{
	const int rank = check->rank_of[oper];

	return &check->compiled[rank].oper[oper - check->oper_base[rank]];
}

/* The program step by which an operation deals with `peer` (its first one if peer
 * < 0); -1: the COPY that compiling adds. */
int tti_check_step(const struct tti_check *check, int32_t oper, int peer);

/* The k-th operation (numbered through) of queue q of a rank. */
static inline int32_t tti_check_queued(const struct tti_check *check, int rank, int32_t queue,
				       int32_t k)
{
	const struct tti_compiled *compiled = &check->compiled[rank];
	const struct tti_queue *at = &compiled->queue[queue - check->queue_base[rank]];

	return check->oper_base[rank] + compiled->queued[at->first + k];
}

/* Run all programs; quiet TUTTI_EINVAL says what went wrong. */
TUTTI_CHECKED tutti_status tti_check_run(const struct tti_check *check, struct tti_check_mode mode);

/* The same of memory programs, whose operations have one order. */
TUTTI_CHECKED tutti_status tti_check_memory(const struct tti_check *check);

/* In place: of one rank, that whatever writes an output waits for all that read the input which
 * lies there. */
TUTTI_CHECKED tutti_status tti_check_in_place(const struct tti_program *prog,
					      const struct tti_compiled *compiled);

/* -- What both kinds of runs look at. All are quiet TUTTI_EINVAL --------------------- */

/* `contribution` comes a second time, from `peer`. */
TUTTI_CHECKED tutti_status tti_check_twice(const struct tti_check *check, int32_t oper, int peer,
					   size_t contribution);
/* An operation that reduces is marked final if, and only if, its result is complete. */
TUTTI_CHECKED tutti_status tti_check_final(const struct tti_check *check, int32_t oper,
					   const uint64_t *value);
/* The `place`-th source of an operation, after the ranks before *next, comes in the order of
 * ranks. */
TUTTI_CHECKED tutti_status tti_check_source_order(const struct tti_check *check, int32_t oper,
						  const uint64_t *source, int place, size_t *next);
/* Its sources were those of ranks 0 to next - 1: all, if that is asked for. */
TUTTI_CHECKED tutti_status tti_check_one_pass(const struct tti_check *check, int32_t oper,
					      size_t next);
/* What an output chunk ends with; `where` begins the text. */
TUTTI_CHECKED tutti_status tti_check_output(const struct tti_check *check, const char *where,
					    int chunk, const uint64_t *value);

/* The run has stopped early: who waits for whom. Always TUTTI_EINVAL, quiet. */
TUTTI_CHECKED tutti_status tti_check_stall(const struct tti_check_run *run);

#endif
