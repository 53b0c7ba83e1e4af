/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_CHECK_SET_H
#define TTI_COLL_CHECK_SET_H

/* Private to the checker: the compiled programs of all ranks side by side, and the checks of a
 * value that all runs of them share.
 *
 * A value is a set of ranks: those whose contributions it holds. This is enough to check an order,
 * too. The set is then one rank, whose input it is, or the ranks 0 to k, which were combined from
 * the left, since each operation begins with such a set and adds single ranks in their order.
 *
 * Operations and queues of all ranks are numbered through: operation o of rank r is
 * oper_base[r] + o. The number of a link is that of its sender's queue. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/compile/compile.h"
#include "util/arena.h"

struct tti_check {
	struct tti_arena arena;
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

TUTTI_CHECKED tutti_status tti_check_no_memory(const struct tti_check *check);

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

/* The number of an operation at its rank. */
static inline int32_t tti_check_index(const struct tti_check *check, int32_t oper)
{
	return oper - check->oper_base[check->rank_of[oper]];
}

/* Check one rank in place: an operation that writes an output waits for all that read the
 * input which lies there. */
TUTTI_CHECKED tutti_status tti_check_in_place(const struct tti_program *prog,
					      const struct tti_compiled *compiled);

/* -- Values. All are quiet TUTTI_EINVAL -------------------------------------------- */

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
/* Its sources were those of ranks 0 to next - 1: they must be all ranks, if one pass is asked
 * for. */
TUTTI_CHECKED tutti_status tti_check_one_pass(const struct tti_check *check, int32_t oper,
					      size_t next);
/* The value that an output chunk ends with is the right one; `where` begins the text. */
TUTTI_CHECKED tutti_status tti_check_output(const struct tti_check *check, const char *where,
					    int chunk, const uint64_t *value);

#endif
