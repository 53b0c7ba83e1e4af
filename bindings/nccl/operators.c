/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and operators: which there are, and those that programs make. */
#include "binding.h"

#include <stddef.h>
#include <stdlib.h>

/* Operators of programs begin here in Tutti; the values below are its own. */
#define FIRST_MADE_OP 256

ncclResult_t tti_nccl_check_type(ncclComm_t comm, ncclDataType_t type)
{
	if ((unsigned)type < ncclNumTypes)
		return ncclSuccess;
	return tti_nccl_fail(comm, ncclInvalidArgument, "%d is no type: 0 to %d", (int)type,
			     ncclNumTypes - 1);
}

ncclResult_t tti_nccl_check_op(ncclComm_t comm, ncclRedOp_t op)
{
	if ((unsigned)op < ncclNumOps ||
	    ((int)op >= FIRST_MADE_OP && (int)op < TUTTI_OP_REPRODUCIBLE))
		return ncclSuccess;
	return tti_nccl_fail(comm, ncclInvalidArgument,
			     "%d is no operator: 0 to %d, or one of ncclRedOpCreatePreMulSum()",
			     (int)op, ncclNumOps - 1);
}

/* An operator that calls in graphs use. */
struct tti_nccl_held_op {
	struct tti_nccl_held_op *next;
	ncclRedOp_t op;
	int n;        /* of such calls */
	bool is_over; /* the program has destroyed it */
};

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *out, void *scalar, ncclDataType_t type,
				       ncclScalarResidence_t residence, ncclComm_t comm)
{
	ncclResult_t result = tti_nccl_comm_check(comm);
	tutti_op op;

	if (result == ncclSuccess)
		result = tti_nccl_check_type(comm, type);
	if (result != ncclSuccess)
		return result;
	if (!out || !scalar)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "the operator or its scalar is NULL");
	if ((unsigned)residence > ncclScalarHostImmediate)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "residence is %d: ncclScalarDevice or ncclScalarHostImmediate",
				     (int)residence);
	result = tti_nccl_look(comm, "ncclRedOpCreatePreMulSum", "scalar", scalar);
	if (result != ncclSuccess)
		return result;
	result = tti_nccl_report(
		comm,
		tutti_op_create_premul_sum(&op, tti_nccl_reach_of(comm, scalar), (tutti_type)type,
					   residence == ncclScalarDevice ? TUTTI_SCALAR_AT_CALL
									 : TUTTI_SCALAR_NOW,
					   comm->comm));
	if (result == ncclSuccess)
		*out = (ncclRedOp_t)op;
	return result;
}
ALSO_NAMED(ncclRedOpCreatePreMulSum);

/* Under the lock of the communicator. */
static struct tti_nccl_held_op **find_held(ncclComm_t comm, ncclRedOp_t op)
{
	struct tti_nccl_held_op **at = &comm->ops;

	while (*at && (*at)->op != op)
		at = &(*at)->next;
	return at;
}

ncclResult_t tti_nccl_op_hold(ncclComm_t comm, ncclRedOp_t op)
{
	struct tti_nccl_held_op *held;

	if ((int)op < FIRST_MADE_OP)
		return ncclSuccess;
	pthread_mutex_lock(&comm->lock);
	held = *find_held(comm, op);
	if (!held) {
		held = calloc(1, sizeof(*held));
		if (held) {
			held->op = op;
			held->next = comm->ops;
			comm->ops = held;
		}
	}
	if (held)
		held->n++;
	pthread_mutex_unlock(&comm->lock);
	return held ? ncclSuccess
		    : tti_nccl_fail(comm, ncclSystemError, "an operator of a graph: out of memory");
}

void tti_nccl_op_let_go(ncclComm_t comm, ncclRedOp_t op)
{
	struct tti_nccl_held_op **at, *held = NULL;

	if ((int)op < FIRST_MADE_OP)
		return;
	pthread_mutex_lock(&comm->lock);
	at = find_held(comm, op);
	if (*at && --(*at)->n == 0) {
		held = *at;
		*at = held->next;
	}
	pthread_mutex_unlock(&comm->lock);
	if (held && held->is_over)
		(void)tti_nccl_report(comm, tutti_op_destroy((tutti_op)op, comm->comm));
	free(held);
}

void tti_nccl_ops_free(ncclComm_t comm)
{
	pthread_mutex_lock(&comm->lock);
	while (comm->ops) {
		struct tti_nccl_held_op *held = comm->ops;

		comm->ops = held->next;
		free(held);
	}
	pthread_mutex_unlock(&comm->lock);
}

/* Whether a graph still uses the operator: then the last graph destroys it. */
static bool is_held(ncclComm_t comm, ncclRedOp_t op)
{
	struct tti_nccl_held_op *held;

	pthread_mutex_lock(&comm->lock);
	held = *find_held(comm, op);
	if (held)
		held->is_over = true;
	pthread_mutex_unlock(&comm->lock);
	return held != NULL;
}

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	ncclResult_t result = tti_nccl_comm_check(comm);

	if (result == ncclSuccess && (unsigned)op < ncclNumOps)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "operator %d is NCCL's own, which is not destroyed", (int)op);
	if (result == ncclSuccess)
		result = tti_nccl_check_op(comm, op);
	return result == ncclSuccess && !is_held(comm, op)
		       ? tti_nccl_report(comm, tutti_op_destroy((tutti_op)op, comm->comm))
		       : result;
}
ALSO_NAMED(ncclRedOpDestroy);
