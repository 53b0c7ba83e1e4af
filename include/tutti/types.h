/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_TYPES_H
#define TUTTI_TYPES_H

/* What all areas of the library share: element types, reductions, handles. Part of
 * tutti.h, which is what to include. */

#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Types, operations --------------------------------------------------- */

/* What an element is. X(name, value, bytes, text): TUTTI_TYPE_MAP(X) is the list. */
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
	X(UINT16, 13, 2, "uint16")

typedef enum tutti_type {
#define X(name, value, bytes, text) TUTTI_##name = (value),
	TUTTI_TYPE_MAP(X)
#undef X
} tutti_type;
#define TUTTI_TYPE_COUNT 14

/* How elements of any type are combined. Integers wrap; AVG is the sum over all ranks divided
 * by their number, towards zero for integers. 16-bit and 8-bit floats are accumulated in
 * float32 and rounded to nearest even, once for each reduction on the way. If an operand is NaN
 * so is the result, of MIN and MAX too; -0 is less than +0. Too large a result is an infinity,
 * of 8-bit floats the largest finite number. X(name, value, text): TUTTI_OP_MAP(X) is the list. */
#define TUTTI_OP_MAP(X)    \
	X(SUM, 0, "sum")   \
	X(PROD, 1, "prod") \
	X(MAX, 2, "max")   \
	X(MIN, 3, "min")   \
	X(AVG, 4, "avg")

/* The enum is as wide as an int, as there are values beyond these: operators that were created
 * (operators.h), and any of them with TUTTI_OP_REPRODUCIBLE added: see tutti_op_reproducible(). */
#ifdef __cplusplus
typedef enum tutti_op : int {
#else
typedef enum tutti_op {
#endif
#define X(name, value, text) TUTTI_##name = (value),
	TUTTI_OP_MAP(X)
#undef X
} tutti_op;
#define TUTTI_OP_COUNT        5
#define TUTTI_OP_REPRODUCIBLE 1024

/* Bytes of one element of `type`; 0 for a value that is no type. Any thread. */
TUTTI_API size_t tutti_type_size(tutti_type type);

/* "float32" for TUTTI_FLOAT32; "?" for a value that is no type. Never NULL, never to be freed.
 * Any thread. */
TUTTI_API const char *tutti_type_name(tutti_type type);

/* "sum" for TUTTI_SUM; "premul_sum" or "user" for one that was created; "?" for a value that is
 * none. Never NULL, never to be freed. Any thread. */
TUTTI_API const char *tutti_op_name(tutti_op op);

/* -- Collectives --------------------------------------------------------- */

/* The kinds of calls, as reports and plans name them. X(name, value, text):
 * TUTTI_COLLECTIVE_MAP(X) is the list. */
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
