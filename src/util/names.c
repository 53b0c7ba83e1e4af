/* SPDX-License-Identifier: BSD-3-Clause */
#include "tutti/inspect.h"
#include "tutti/tutti.h"

int tutti_version(void)
{
	return TUTTI_VERSION;
}

size_t tutti_type_size(tutti_type type)
{
	static const unsigned char nbytes[TUTTI_TYPE_COUNT] = {
#define X(name, value, bytes, text) [value] = (bytes),
		TUTTI_TYPE_MAP(X)
#undef X
	};

	return (unsigned)type < TUTTI_TYPE_COUNT ? nbytes[type] : 0;
}

const char *tutti_type_name(tutti_type type)
{
	static const char *const names[TUTTI_TYPE_COUNT] = {
#define X(name, value, bytes, text) [value] = (text),
		TUTTI_TYPE_MAP(X)
#undef X
	};

	return (unsigned)type < TUTTI_TYPE_COUNT ? names[type] : "?";
}

const char *tutti_op_name(tutti_op op)
{
	static const char *const names[TUTTI_OP_COUNT] = {
#define X(name, value, text) [value] = (text),
		TUTTI_OP_MAP(X)
#undef X
	};

	static const char *const kinds[] = { NULL, "premul_sum", "user", "user" };
	const unsigned value = (unsigned)op & ~(unsigned)TUTTI_OP_REPRODUCIBLE;

	if (value < TUTTI_OP_COUNT)
		return names[value];
	return value >= 1u << 8 && value < 4u << 8 ? kinds[value >> 8] : "?";
}

/* -- Which operator takes which type ------------------------------------------------- */

enum { INTEGER = 1, FLOAT = 2, TRUTH = 4, COMPLEX = 8 };

static const unsigned char kind_of[TUTTI_TYPE_COUNT] = {
	[TUTTI_INT8] = INTEGER,      [TUTTI_UINT8] = INTEGER,      [TUTTI_INT16] = INTEGER,
	[TUTTI_UINT16] = INTEGER,    [TUTTI_INT32] = INTEGER,      [TUTTI_UINT32] = INTEGER,
	[TUTTI_INT64] = INTEGER,     [TUTTI_UINT64] = INTEGER,     [TUTTI_FLOAT16] = FLOAT,
	[TUTTI_FLOAT32] = FLOAT,     [TUTTI_FLOAT64] = FLOAT,      [TUTTI_BFLOAT16] = FLOAT,
	[TUTTI_FLOAT8_E4M3] = FLOAT, [TUTTI_FLOAT8_E5M2] = FLOAT,  [TUTTI_BOOL] = TRUTH,
	[TUTTI_COMPLEX64] = COMPLEX, [TUTTI_COMPLEX128] = COMPLEX,
};

static const unsigned char taken_by[TUTTI_OP_COUNT] = {
	[TUTTI_SUM] = INTEGER | FLOAT | TRUTH | COMPLEX,
	[TUTTI_PROD] = INTEGER | FLOAT | TRUTH | COMPLEX,
	[TUTTI_MAX] = INTEGER | FLOAT | TRUTH,
	[TUTTI_MIN] = INTEGER | FLOAT | TRUTH,
	[TUTTI_AVG] = INTEGER | FLOAT | COMPLEX,
	[TUTTI_BAND] = INTEGER | TRUTH,
	[TUTTI_BOR] = INTEGER | TRUTH,
	[TUTTI_BXOR] = INTEGER | TRUTH,
	[TUTTI_LAND] = INTEGER | TRUTH,
	[TUTTI_LOR] = INTEGER | TRUTH,
	[TUTTI_LXOR] = INTEGER | TRUTH,
};

int tutti_op_takes(tutti_op op, tutti_type type)
{
	const unsigned value = (unsigned)op & ~(unsigned)TUTTI_OP_REPRODUCIBLE;

	return value < TUTTI_OP_COUNT && (unsigned)type < TUTTI_TYPE_COUNT &&
	       (taken_by[value] & kind_of[type]);
}

const char *tutti_collective_name(tutti_collective coll)
{
	static const char *const names[TUTTI_COLLECTIVE_COUNT] = {
#define X(name, value, text) [value] = (text),
		TUTTI_COLLECTIVE_MAP(X)
#undef X
	};

	return (unsigned)coll < TUTTI_COLLECTIVE_COUNT ? names[coll] : "?";
}
