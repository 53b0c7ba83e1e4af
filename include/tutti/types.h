/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_TYPES_H
#define TUTTI_TYPES_H

/* What all areas of the library share: element types, operators, handles. Part of tutti.h, which is
 * what to include. */

#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Types, operations --------------------------------------------------- */

/* What an element is. A bool is one byte, as in C: 0 is false, any other value is true. A complex
 * number is its real part, then its imaginary part, each a float32 in complex64 and a float64 in
 * complex128, as in C, C++, Fortran and NumPy. X(name, value, bytes, text): TUTTI_TYPE_MAP(X) is
 * the list. */
#define TUTTI_TYPE_MAP(X)                    \
	X(INT8, 0, 1, "int8")                \
	X(UINT8, 1, 1, "uint8")              \
	X(INT32, 2, 4, "int32")              \
	X(UINT32, 3, 4, "uint32")            \
	X(INT64, 4, 8, "int64")              \
	X(UINT64, 5, 8, "uint64")            \
	X(FLOAT16, 6, 2, "float16")          \
	X(FLOAT32, 7, 4, "float32")          \
	X(FLOAT64, 8, 8, "float64")          \
	X(BFLOAT16, 9, 2, "bfloat16")        \
	X(FLOAT8_E4M3, 10, 1, "float8_e4m3") \
	X(FLOAT8_E5M2, 11, 1, "float8_e5m2") \
	X(INT16, 12, 2, "int16")             \
	X(UINT16, 13, 2, "uint16")           \
	X(BOOL, 14, 1, "bool")               \
	X(COMPLEX64, 15, 8, "complex64")     \
	X(COMPLEX128, 16, 16, "complex128")

typedef enum tutti_type {
#define X(name, value, bytes, text) TUTTI_##name = (value),
	TUTTI_TYPE_MAP(X)
#undef X
} tutti_type;
#define TUTTI_TYPE_COUNT 17

/* How elements are combined. tutti_op_takes() says which operator takes which type.
 *
 * Integers wrap. AVG is the sum over all ranks divided by their number, towards zero for integers.
 * BAND, BOR and BXOR combine the bits of integers. LAND, LOR and LXOR are logical: an integer that
 * is not 0 is true, and the result is 0 or 1; LXOR is true if an odd number of operands is.
 *
 * The result for bools is always 0 or 1. SUM, MAX, BOR and LOR are "or"; PROD, MIN, BAND and LAND
 * are "and"; BXOR and LXOR are the same.
 *
 * 16-bit and 8-bit floats are accumulated in float32 and rounded to nearest even, once for each
 * reduction on the way. If an operand is NaN, so is the result, also of MIN and MAX; -0 is less
 * than +0. A result that is too large becomes an infinity, or for 8-bit floats the largest finite
 * number.
 *
 * Complex numbers are added and averaged part by part. PROD of two of them is (a + bi)(c + di) =
 * (ac - bd) + (ad + bc)i as it stands, with each product and each sum rounded: where a part is
 * infinite, parts of the result may be NaN.
 *
 * A communicator of one rank copies its input, whatever the operator. X(name, value, text):
 * TUTTI_OP_MAP(X) is the list. */
#define TUTTI_OP_MAP(X)    \
	X(SUM, 0, "sum")   \
	X(PROD, 1, "prod") \
	X(MAX, 2, "max")   \
	X(MIN, 3, "min")   \
	X(AVG, 4, "avg")   \
	X(BAND, 5, "band") \
	X(BOR, 6, "bor")   \
	X(BXOR, 7, "bxor") \
	X(LAND, 8, "land") \
	X(LOR, 9, "lor")   \
	X(LXOR, 10, "lxor")

/* The enum is as wide as an int, because it has values beyond these: operators that were created
 * (operators.h), and any operator with TUTTI_OP_REPRODUCIBLE added (tutti_op_reproducible()). */
#ifdef __cplusplus
typedef enum tutti_op : int {
#else
typedef enum tutti_op {
#endif
#define X(name, value, text) TUTTI_##name = (value),
	TUTTI_OP_MAP(X)
#undef X
} tutti_op;
#define TUTTI_OP_COUNT        11
#define TUTTI_OP_REPRODUCIBLE 1024

/* The bytes of one element of `type`; 0 for a value that is no type. Any thread. */
TUTTI_API size_t tutti_type_size(tutti_type type);

/* The name of a type, as "float32" for TUTTI_FLOAT32; "?" for a value that is no type.
 * Never NULL, never to be freed. Any thread. */
TUTTI_API const char *tutti_type_name(tutti_type type);

/* The name of an operator, as "sum" for TUTTI_SUM; "premul_sum" or "user" for one that was created;
 * "?" for a value that is no operator. Never NULL, never to be freed. Any thread. */
TUTTI_API const char *tutti_op_name(tutti_op op);

/* Whether there are reductions of `type` with `op`: 1 or 0. A call that asks for one that is not
 * there is TUTTI_EINVAL, on the rank that makes it and before anything is sent.
 *
 *                  SUM PROD   MAX MIN   AVG   BAND BOR BXOR   LAND LOR LXOR
 *     integers       yes        yes     yes        yes             yes
 *     floats         yes        yes     yes        no              no
 *     bool           yes        yes     no         yes             yes
 *     complex        yes        no      yes        no              no
 *
 * `op` is one of TUTTI_OP_MAP, with TUTTI_OP_REPRODUCIBLE or without. The answer is 0 for any other
 * value, and for a value that is no type. An operator that was created (operators.h) takes all
 * types, but a pre-multiplied sum only that of its scalar. Any thread. */
TUTTI_API int tutti_op_takes(tutti_op op, tutti_type type);

/* -- Collectives --------------------------------------------------------- */

/* The kinds of calls, as reports and plans name them. X(name, value, text): TUTTI_COLLECTIVE_MAP(X)
 * is the list. */
#define TUTTI_COLLECTIVE_MAP(X)                \
	X(ALL_REDUCE, 0, "all_reduce")         \
	X(BROADCAST, 1, "broadcast")           \
	X(REDUCE, 2, "reduce")                 \
	X(ALL_GATHER, 3, "all_gather")         \
	X(REDUCE_SCATTER, 4, "reduce_scatter") \
	X(BARRIER, 5, "barrier")               \
	X(SEND_RECV, 6, "send_recv")           \
	X(HANDOFF, 7, "handoff")               \
	X(ALL_TO_ALL, 8, "all_to_all")         \
	X(GATHER, 9, "gather")                 \
	X(SCATTER, 10, "scatter")              \
	X(ALL_TO_ALL_V, 11, "all_to_all_v")    \
	X(GATHER_V, 12, "gather_v")            \
	X(SCATTER_V, 13, "scatter_v")          \
	X(ALL_GATHER_V, 14, "all_gather_v")    \
	X(REDUCE_SCATTER_V, 15, "reduce_scatter_v")

typedef enum tutti_collective {
#define X(name, value, text) TUTTI_##name = (value),
	TUTTI_COLLECTIVE_MAP(X)
#undef X
} tutti_collective;
#define TUTTI_COLLECTIVE_COUNT 16

/* -- Handles --------------------------------------------------------------- */

/* Opaque; each has its create and its destroy: communicators (comm.h), streams and events
 * (tutti.h). NULL is none. */
typedef struct tutti_comm *tutti_comm_t;
typedef struct tutti_stream *tutti_stream_t;
typedef struct tutti_event *tutti_event_t;

#ifdef __cplusplus
}
#endif

#endif
