/* SPDX-License-Identifier: BSD-3-Clause */
/* The types and operations that perf measures, by their names. */
#include "names.h"
#include "perf.h"

#define ALL "all"

/* The names that nccl-tests has for some types. */
static const struct {
	const char *name;
	tutti_type type;
} nccl_types[] = {
	{ "half", TUTTI_FLOAT16 },       { "float", TUTTI_FLOAT32 },
	{ "double", TUTTI_FLOAT64 },     { "f8e4m3", TUTTI_FLOAT8_E4M3 },
	{ "f8e5m2", TUTTI_FLOAT8_E5M2 },
};
#define NNCCL ((int)(sizeof(nccl_types) / sizeof(nccl_types[0])))

const char *perf_nccl_name(tutti_type type)
{
	for (int i = 0; i < NNCCL; i++)
		if (nccl_types[i].type == type)
			return nccl_types[i].name;
	return tutti_type_name(type);
}

const char *perf_type_name(const void *self, int i)
{
	(void)self;
	if (i < TUTTI_TYPE_COUNT)
		return tutti_type_name((tutti_type)i);
	i -= TUTTI_TYPE_COUNT + 1;
	return i < 0 ? ALL : i < NNCCL ? nccl_types[i].name : NULL;
}

bool perf_take_type(const char *label, const char *value, void *field)
{
	const struct names names = { perf_type_name, NULL };
	const int found = names_choose(&names, "there is no type", value);
	struct perf_types *const types = field;

	(void)label;
	types->n = 0;
	for (int i = 0; i < TUTTI_TYPE_COUNT; i++)
		if (found == i || found == TUTTI_TYPE_COUNT)
			types->at[types->n++] = (tutti_type)i;
	if (found > TUTTI_TYPE_COUNT)
		types->at[types->n++] = nccl_types[found - TUTTI_TYPE_COUNT - 1].type;
	return found >= 0;
}

const char *perf_op_name(const void *self, int i)
{
	(void)self;
	return i < TUTTI_OP_COUNT ? tutti_op_name((tutti_op)i) : i == TUTTI_OP_COUNT ? ALL : NULL;
}

bool perf_take_op(const char *label, const char *value, void *field)
{
	const struct names names = { perf_op_name, NULL };
	const int found = names_choose(&names, "there is no operation", value);
	struct perf_ops *const ops = field;

	(void)label;
	ops->n = 0;
	for (int i = 0; i < TUTTI_OP_COUNT; i++)
		if (found == i || found == TUTTI_OP_COUNT)
			ops->at[ops->n++] = (tutti_op)i;
	return found >= 0;
}

bool perf_has_pair(const struct perf_options *options, tutti_type type, tutti_op op)
{
	return !coll_is(options->coll, COLL_REDUCES) || tutti_op_takes(op, type);
}
