/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_OPERATORS_H
#define TUTTI_OPERATORS_H

/* Operators beyond those of TUTTI_OP_MAP, and reductions whose bits are always the same. Part
 * of tutti.h, which is what to include.
 *
 * An operator belongs to one communicator and this rank. All ranks create and destroy the
 * operators of a communicator in the same order, so that an operator has the same value on
 * all of them; ranks that pass others to one call get TUTTI_EMISMATCH.
 *
 * Threads: as for calls on the communicator. */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When the scalar of a pre-multiplied sum is read: the argument `when`. */
typedef enum tutti_scalar_when {
	TUTTI_SCALAR_NOW = 0,     /* by tutti_op_create_premul_sum(); it may go then  */
	TUTTI_SCALAR_AT_CALL = 1, /* each time a call with the operator runs: on a stream, when
				     it is the call's turn. It must stay until the last is done */
} tutti_scalar_when;

/* Make the operator of a pre-multiplied sum, recv[i] = sum over all ranks r of scalar_r *
 * send_r[i]: every rank's input is multiplied once by that rank's scalar, rounded to the type,
 * and then summed as by TUTTI_SUM. Ranks may have different scalars. `scalar` points at one
 * element of `type`, aligned or not, which is the type of all calls with it (else
 * TUTTI_EINVAL). Integers wrap. *out is written on success only. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_op_create_premul_sum(tutti_op *out, const void *scalar,
								tutti_type type,
								tutti_scalar_when when,
								tutti_comm_t comm);

/* The user's operator: inout[i] = in[i] op inout[i] for i < count, where `in` holds what ranks
 * below have together and `inout` a rank above them, as MPI has it. Both are aligned to 64
 * bytes, do not overlap, and hold whole elements; `count` is 1 or more and says nothing
 * about the call, whose vector is cut into blocks of any length in any order.
 *
 * It runs on the thread that runs the call (the caller's, or the stream's), for several
 * communicators on several threads at once if they share it, between the steps of the
 * call: it must be short and use less than 100 KiB of stack, must not call the library with
 * this communicator, nor jump or throw out of it. */
typedef void (*tutti_op_fn)(void *inout, const void *in, size_t count, tutti_type type, void *arg);

/* Make an operator of `fn`, for all types; `arg` is passed on and stays the caller's.
 * commutative == 0: the result is r0 op r1 op r2 ..., from the left: ((r0 op r1) op r2) ..., in
 * the order of ranks, of whatever size and algorithm; it need not even be associative. Only
 * algorithms that keep the order are chosen then; TUTTI_ALGO that leaves none of them is
 * TUTTI_EINVAL at the call. Else it must be associative and commutative but for rounding.
 * *out is written on success only. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_op_create(tutti_op *out, tutti_op_fn fn, void *arg,
						     int commutative, tutti_comm_t comm);

/* Destroy an operator: the value is no operator any more, and may be one again. Calls with it
 * that are queued still run. TUTTI_EINVAL: it is none of this communicator. Destroying the
 * communicator does the same for all of them. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_op_destroy(tutti_op op, tutti_comm_t comm);

/* The same operator, for one call whose result has the same bits whatever the algorithm, the
 * channels, the slices and who sits where: for a number of ranks they depend on the ranks'
 * inputs alone. Reductions combine each element from the left in the order of ranks, ((r0 op
 * r1) op r2) ...; 16-bit and 8-bit floats are accumulated in float32 and rounded once, at the
 * end. All ranks must ask for it, or none. The field `reproducible` of tutti_config and
 * TUTTI_REPRODUCIBLE ask for it in all calls of a communicator. What it costs:
 * docs/performance.md. Any thread. */
TUTTI_API tutti_op tutti_op_reproducible(tutti_op op);

#ifdef __cplusplus
}
#endif

#endif
