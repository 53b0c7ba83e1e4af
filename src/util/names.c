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

const char *tutti_collective_name(tutti_collective coll)
{
	static const char *const names[TUTTI_COLLECTIVE_COUNT] = {
#define X(name, value, text) [value] = (text),
		TUTTI_COLLECTIVE_MAP(X)
#undef X
	};

	return (unsigned)coll < TUTTI_COLLECTIVE_COUNT ? names[coll] : "?";
}
