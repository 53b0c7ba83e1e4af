/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/rows.h"

#include <stdio.h>
#include <string.h>

#include "support/world.h"

bool row_is_for(const struct row *row, int n, const char *algo)
{
	bool is_for = row->ranks[0] == 0;

	for (const int *ranks = row->ranks; *ranks > 0; ranks++)
		is_for = is_for || *ranks == n;
	return is_for && strcmp(row->algo ? row->algo : "", algo ? algo : "") == 0;
}

/* Call number `turn` of a row, but for its manner. */
static struct call call_of(const struct row *row, int n, int count, int root, unsigned turn)
{
	struct call call = { .coll = row->coll,
			     .type = (tutti_type)row->type,
			     .op = row->op,
			     .count = (size_t)count,
			     .root = root,
			     .spread = row->spread,
			     .seed = numbers_mix(turn) };

	if (row->type == ROW_IN_TURN)
		call.type = (tutti_type)(turn % TUTTI_TYPE_COUNT);
	/* Each type has another operator the next time. */
	if (row->op == ROW_IN_TURN)
		call.op = (int)((turn + turn / TUTTI_TYPE_COUNT) % NUMBERS_OPS);
	call.op = numbers_op_for(call.type, call.op);
	/* So much for each step up. */
	if (row->spread == CALL_RISING)
		call.count *= (size_t)n;
	return call;
}

static bool make_both_ways(const struct row *row, struct caller *caller, struct call call)
{
	for (int way = 0; way < 2; way++)
		for (int plan = 0; plan < (row->plans ? 2 : 1); plan++) {
			if (way ? !row->in_place : !row->out_of_place)
				continue;
			call.in_place = way == 1;
			call.manner = plan ? CALL_AS_PLAN : CALL_PLAIN;
			const enum call_result result = caller_run(caller, &call);

			if (result != CALL_RIGHT)
				fprintf(stderr, "  %s\n", row->what);
			if (result == CALL_LOST)
				return false;
		}
	return true;
}

bool row_run(const struct row *row, struct caller *caller)
{
	const int n = caller->n;
	const int roots = row->roots == ROW_EVERY_ROOT ? n : row->roots == ROW_ROOTS_0_1 ? 2 : 1;
	/* Others on other numbers of ranks. */
	unsigned turn = (unsigned)n;

	for (const int *count = row->counts; *count != ROW_END; count++)
		for (int root = 0; root < roots && root < n; root++, turn++) {
			const struct call call = call_of(row, n, *count, root, turn);

			if (!make_both_ways(row, caller, call))
				return false;
		}
	return true;
}

void rows_run(const struct row *rows, size_t nrows, const char *algo, struct caller *caller)
{
	for (size_t r = 0; r < nrows; r++)
		if (row_is_for(&rows[r], caller->n, algo) && !row_run(&rows[r], caller))
			return;
}
