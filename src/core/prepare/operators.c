/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/prepare/operators.h"

#include <stdio.h>

#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/bounce.h"
#include "core/handle.h"
#include "util/error.h"
#include "util/mem.h"

/* -- What is known of a value ------------------------------------------------------- */

tutti_op tutti_op_reproducible(tutti_op op)
{
	return (tutti_op)((unsigned)op | (unsigned)TUTTI_OP_REPRODUCIBLE);
}

void tti_op_format(tutti_op op, char buf[TTI_OP_TEXT])
{
	const char *how = tti_op_base(op) == op ? "" : ", reproducible";

	if (tti_op_kind(op) == TTI_OP_BUILT_IN)
		snprintf(buf, TTI_OP_TEXT, "%s%s", tutti_op_name(op), how);
	else
		snprintf(buf, TTI_OP_TEXT, "%s %u%s", tutti_op_name(op), (unsigned)op & 0xff, how);
}

/* Sums of it are rounded. */
static bool is_rounded(tutti_type type)
{
	switch (type) {
	case TUTTI_FLOAT16:
	case TUTTI_FLOAT32:
	case TUTTI_FLOAT64:
	case TUTTI_BFLOAT16:
	case TUTTI_FLOAT8_E4M3:
	case TUTTI_FLOAT8_E5M2:
	case TUTTI_COMPLEX64:
	case TUTTI_COMPLEX128:
		return true;
	case TUTTI_BOOL:
	case TUTTI_INT8:
	case TUTTI_UINT8:
	case TUTTI_INT16:
	case TUTTI_UINT16:
	case TUTTI_INT32:
	case TUTTI_UINT32:
	case TUTTI_INT64:
	case TUTTI_UINT64:
		break;
	}
	return false;
}

/* Integers wrap, and a minimum or maximum is one of the operands, so their results do not depend on
 * the order. Types narrower than float32 are rounded at the end of each pass. */
enum tti_order tti_op_order(tutti_op op, tutti_type type)
{
	const tutti_op base = tti_op_base(op);

	if (tti_op_kind(op) == TTI_OP_USER_IN_ORDER)
		return TTI_ORDER_RANKS;
	if (base == op)
		return TTI_ORDER_ANY;
	if (tti_op_kind(op) == TTI_OP_USER)
		return TTI_ORDER_RANKS;
	if (!is_rounded(type) || base == TUTTI_MAX || base == TUTTI_MIN)
		return TTI_ORDER_ANY;
	return tutti_type_size(type) < sizeof(float) ? TTI_ORDER_ONE_PASS : TTI_ORDER_RANKS;
}

/* -- Operators --------------------------------------------------------------------- */

struct tti_operator *tti_operator_take(struct tti_operator *custom)
{
	if (custom)
		atomic_fetch_add(&custom->users, 1);
	return custom;
}

void tti_operator_drop(struct tti_operator *custom)
{
	if (custom && atomic_fetch_sub(&custom->users, 1) == 1)
		tti_free(custom);
}

void tti_operators_release(struct tti_operator_list *list)
{
	for (size_t i = 0; i < list->all.n; i++)
		tti_operator_drop(list->all.at[i]);
	tti_vec_release(&list->all);
}

/* The index in the list; its length: it is not there. */
static size_t place_of(const struct tti_operator_list *list, tutti_op op)
{
	size_t i = 0;

	while (i < list->all.n && list->all.at[i]->op != op)
		i++;
	return i;
}

/* The lowest free number: so ranks that create and destroy in the same order get the same
 * values. */
static tutti_status free_value(const struct tti_operator_list *list, enum tti_op_kind kind,
			       tutti_op *out)
{
	for (unsigned i = 0; i < TTI_OPS_OF_A_KIND; i++) {
		*out = (tutti_op)((unsigned)kind << 8 | i);
		if (place_of(list, *out) == list->all.n)
			return TUTTI_OK;
	}
	return tti_fail(TUTTI_EINVAL,
			"a communicator has at most %d operators of a kind: "
			"tutti_op_destroy() those that are not needed",
			TTI_OPS_OF_A_KIND);
}

static tutti_status add(struct tti_operator_list *list, enum tti_op_kind kind,
			struct tti_operator **out)
{
	struct tti_operator *custom;
	tutti_op op;

	TTI_TRY(free_value(list, kind, &op));
	custom = tti_aligned_zalloc(_Alignof(struct tti_operator), sizeof(*custom));
	if (!custom || !tti_vec_push(&list->all, custom)) {
		tti_free(custom);
		return tti_fail(TUTTI_ENOMEM, "operator: out of memory");
	}
	custom->op = op;
	atomic_init(&custom->users, 1);
	*out = custom;
	return TUTTI_OK;
}

tutti_status tti_operator_find(const struct tti_operator_list *list, tutti_op op, tutti_type type,
			       const char *call, struct tti_operator **out)
{
	const tutti_op base = tti_op_base(op);
	const size_t place = place_of(list, base);

	*out = NULL;
	if (base < TUTTI_OP_COUNT)
		return TUTTI_OK;
	if (place == list->all.n)
		return tti_fail(
			TUTTI_EINVAL,
			"%s: there is no operation %d: see tutti_op, and tutti_op_create() of "
			"this communicator",
			call, (int)base);
	*out = list->all.at[place];
	if (tti_op_kind(op) == TTI_OP_PREMUL && (*out)->type != type)
		return tti_fail(
			TUTTI_EINVAL,
			"%s of %s with a pre-multiplied sum whose scalar is %s: create one for "
			"each type",
			call, tutti_type_name(type), tutti_type_name((*out)->type));
	return TUTTI_OK;
}

struct tti_reducer tti_operator_reducer(struct tti_operator *custom, tutti_op op, tutti_type type,
					int n)
{
	struct tti_reducer reducer = { .type = type };

	if (!custom)
		return tti_reducer_of(type, tti_op_base(op), n);
	if (custom->fn) {
		reducer.user = custom->fn;
		reducer.arg = custom->arg;
		return reducer;
	}
	reducer = tti_reducer_of(type, TUTTI_SUM, n);
	if (custom->later)
		tti_scalars_fill(&custom->scalars, custom->later, type);
	reducer.scalars = &custom->scalars;
	return reducer;
}

/* -- The public calls --------------------------------------------------------------- */

static tutti_status create_premul(struct tti_comm *comm, const void *scalar, tutti_type type,
				  tutti_scalar_when when, tutti_op *out)
{
	struct tti_operator *custom;
	struct tti_bounce now = { 0 };
	tutti_status st;

	TTI_TRY(tti_comm_usable(comm));
	if (when == TUTTI_SCALAR_NOW)
		TTI_TRY(tti_bounce_open(comm, scalar, tutti_type_size(type), true, &now));
	st = add(&comm->operators, TTI_OP_PREMUL, &custom);
	if (st == TUTTI_OK) {
		custom->type = type;
		custom->later = when == TUTTI_SCALAR_AT_CALL ? scalar : NULL;
		if (when == TUTTI_SCALAR_NOW)
			tti_scalars_fill(&custom->scalars, now.host, type);
		*out = custom->op;
	}
	tti_bounce_close(&now);
	return st;
}

tutti_status tutti_op_create_premul_sum(tutti_op *out, const void *scalar, tutti_type type,
					tutti_scalar_when when, tutti_comm_t handle)
{
	struct tti_comm *comm;

	if (!out || !scalar)
		return tti_handle_fail(handle, TUTTI_EINVAL, "%s is NULL: pass the address of a%s",
				       out ? "scalar" : "out", out ? "n element" : " tutti_op");
	if (tutti_type_size(type) == 0)
		return tti_handle_fail(handle, TUTTI_EINVAL,
				       "there is no type %d for a scalar: see tutti_type",
				       (int)type);
	if (when != TUTTI_SCALAR_NOW && when != TUTTI_SCALAR_AT_CALL)
		return tti_handle_fail(handle, TUTTI_EINVAL, "when is %d: see tutti_scalar_when",
				       (int)when);
	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, create_premul(comm, scalar, type, when, out));
}

static tutti_status create_user(struct tti_comm *comm, tutti_op_fn fn, void *arg, int commutative,
				tutti_op *out)
{
	struct tti_operator *custom;

	TTI_TRY(tti_comm_usable(comm));
	TTI_TRY(add(&comm->operators, commutative ? TTI_OP_USER : TTI_OP_USER_IN_ORDER, &custom));
	custom->fn = fn;
	custom->arg = arg;
	*out = custom->op;
	return TUTTI_OK;
}

tutti_status tutti_op_create(tutti_op *out, tutti_op_fn fn, void *arg, int commutative,
			     tutti_comm_t handle)
{
	struct tti_comm *comm;

	if (!out || !fn)
		return tti_handle_fail(handle, TUTTI_EINVAL, "%s is NULL: pass %s",
				       out ? "fn" : "out",
				       out ? "a function" : "the address of a tutti_op");
	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, create_user(comm, fn, arg, commutative, out));
}

static tutti_status destroy(struct tti_operator_list *list, tutti_op op)
{
	const size_t place = place_of(list, tti_op_base(op));

	if (place == list->all.n)
		return tti_fail(TUTTI_EINVAL,
				"operation %d was not created on this communicator, or is "
				"destroyed",
				(int)op);
	tti_operator_drop(list->all.at[place]);
	list->all.at[place] = list->all.at[--list->all.n];
	return TUTTI_OK;
}

tutti_status tutti_op_destroy(tutti_op op, tutti_comm_t handle)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, destroy(&comm->operators, op));
}
