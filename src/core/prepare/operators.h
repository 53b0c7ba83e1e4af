/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PREPARE_OPERATORS_H
#define TTI_CORE_PREPARE_OPERATORS_H

/* Operators beyond those of TUTTI_OP_MAP. A value of tutti_op has all that ranks must agree on,
 * and is part of what they compare:
 *
 *     bit 10     reproducible
 *     bits 8, 9  enum tti_op_kind
 *     bits 0-7   the operation, or the operator's number among those of its kind
 *
 * Owner: counted; the communicator holds one count until the operator is destroyed, each call
 * that is kept another. Threads: any may take and drop; the thread that makes calls uses the
 * communicator's list, the executing one reads scalars at the call. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/program.h"
#include "reduce/reducer.h"
#include "util/vec.h"

enum tti_op_kind {
	TTI_OP_BUILT_IN,
	TTI_OP_PREMUL,
	TTI_OP_USER,
	TTI_OP_USER_IN_ORDER, /* does not commute */
};

#define TTI_OPS_OF_A_KIND 256
#define TTI_OP_BITS       11

static inline enum tti_op_kind tti_op_kind(tutti_op op)
{
	return (enum tti_op_kind)((unsigned)op >> 8 & 3);
}

/* Without the bit of reproducibility. */
static inline tutti_op tti_op_base(tutti_op op)
{
	return (tutti_op)((unsigned)op & ~(unsigned)TUTTI_OP_REPRODUCIBLE);
}

struct tti_operator {
	_Atomic int users;
	tutti_op op;
	tutti_op_fn fn;
	void *arg;
	/* Of a pre-multiplied sum. later: where its scalar is read at each call; NULL: it was
	 * read. */
	tutti_type type;
	const void *later;
	struct tti_scalars scalars;
};

struct tti_operator_list {
	TTI_VEC(struct tti_operator *) all;
};

/* NULL is fine, here and there. */
struct tti_operator *tti_operator_take(struct tti_operator *custom);
void tti_operator_drop(struct tti_operator *custom);
void tti_operators_release(struct tti_operator_list *list);

/* The operator of a call on `type`, borrowed; *out is NULL for one of TUTTI_OP_MAP.
 * TUTTI_EINVAL: there is no such operator, or it is for another type; `call` names the call. */
TUTTI_CHECKED tutti_status tti_operator_find(const struct tti_operator_list *list, tutti_op op,
					     tutti_type type, const char *call,
					     struct tti_operator **out);

/* In which order a call must combine its inputs. */
enum tti_order tti_op_order(tutti_op op, tutti_type type);

/* How to reduce, for the call that runs now; `custom` is NULL or that of `op`. */
struct tti_reducer tti_operator_reducer(struct tti_operator *custom, tutti_op op, tutti_type type,
					int n);

/* "sum", "premul_sum 0", "user 3, reproducible". */
#define TTI_OP_TEXT 40
void tti_op_format(tutti_op op, char buf[TTI_OP_TEXT]);

#endif
