/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_OPERATORS_H
#define TUTTI_OPERATORS_H

/* Operators beyond those of TUTTI_OP_MAP, and reductions whose bits are always the same. Part of
 * tutti.h, which is what to include.
 *
 * An operator belongs to one communicator and this rank. All ranks create and destroy the operators
 * of a communicator in the same order, so that an operator has the same value on all of them. Ranks
 * that pass different operators to one call get TUTTI_EMISMATCH.
 *
 * Threads: as for calls on the communicator. */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When the scalar of a pre-multiplied sum is read: the argument `when`. */
typedef enum tutti_scalar_when {
	TUTTI_SCALAR_NOW = 0,     /* by tutti_op_create_premul_sum(); it may be freed then */
	TUTTI_SCALAR_AT_CALL = 1, /* each time a call with the operator runs: on a stream, when it
				     is the call's turn. It must stay until the last is done.
				     For a rank with a device the kernel reads it, in memory that
				     the device reaches; other memory is read by the call itself */
} tutti_scalar_when;

/* Create the operator of a pre-multiplied sum: recv[i] = sum over all ranks r of scalar_r *
 * send_r[i]. Each rank's input is multiplied once by that rank's scalar, rounded to the type, and
 * then summed as by TUTTI_SUM. Ranks may have different scalars. `scalar` points at one element of
 * `type`, aligned or not, in memory of the host or of the rank's device. All calls with the operator must be of that type (else TUTTI_EINVAL).
 * Integers wrap. *out is written on success only. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_op_create_premul_sum(tutti_op *out, const void *scalar,
								tutti_type type,
								tutti_scalar_when when,
								tutti_comm_t comm);

/* The user's operator: inout[i] = in[i] op inout[i] for i < count. As in MPI, `in` holds the
 * combined value of the ranks below, and `inout` that of a rank above them. Both are aligned to 64
 * bytes, do not overlap and hold whole elements. `count` is 1 or more and says nothing about the
 * call: its vector is cut into blocks of any length in any order.
 *
 * It runs on the thread that runs the call (the caller's, or the stream's), between the steps of
 * the call, and on several threads at once if several communicators share it. It must be short, use
 * less than 100 KiB of stack, not call the library with this communicator, and not jump or throw
 * out. */
typedef void (*tutti_op_fn)(void *inout, const void *in, size_t count, tutti_type type, void *arg);

/* Create an operator of `fn`, for all types. `arg` is passed on and stays the caller's. If
 * commutative is 0, the result is ((r0 op r1) op r2) ..., in the order of ranks, whatever the size
 * and the algorithm; it need not even be associative. Only algorithms that keep the order are
 * chosen then, and the call is TUTTI_EINVAL if TUTTI_ALGO leaves none of them. Otherwise it must be
 * associative and commutative but for rounding. *out is written on success only. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_op_create(tutti_op *out, tutti_op_fn fn, void *arg,
						     int commutative, tutti_comm_t comm);

/* Destroy an operator. Its value is no operator any more, and may become another. Calls with it
 * that are queued still run. TUTTI_EINVAL: it is no operator of this communicator. Destroying the
 * communicator destroys all its operators. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_op_destroy(tutti_op op, tutti_comm_t comm);

/* The same operator, for one call whose result always has the same bits. They depend on the number
 * of ranks and on the ranks' inputs alone, whatever the algorithm, the number of channels, the
 * cutting into chunks, and the place of the ranks. Reductions combine each element from the left in
 * the order of ranks, ((r0 op r1) op r2) ...; 16-bit and 8-bit floats are accumulated in float32
 * and rounded once, at the end. All ranks must ask for it, or none. The field `reproducible` of
 * tutti_config and TUTTI_REPRODUCIBLE ask for it in all calls of a communicator.
 * docs/performance.md says what it costs. Any thread. */
TUTTI_API tutti_op tutti_op_reproducible(tutti_op op);

#ifdef __cplusplus
}
#endif

#endif
