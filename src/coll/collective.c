/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/collective.h"

static const struct tti_collective table[TUTTI_COLLECTIVE_COUNT] = {
	[TUTTI_ALL_REDUCE] = { .reduces = true, .takes_op = true, .program = TUTTI_ALL_REDUCE },
	[TUTTI_BROADCAST] = { .input = TTI_HOLDER_ROOT, .program = TUTTI_BROADCAST },
	[TUTTI_REDUCE] = { .output = TTI_HOLDER_ROOT,
			   .reduces = true,
			   .takes_op = true,
			   .program = TUTTI_REDUCE },
	[TUTTI_ALL_GATHER] = { .rows = TTI_ROWS_RANKS,
			       .input = TTI_HOLDER_OWNER,
			       .program = TUTTI_ALL_GATHER },
	[TUTTI_REDUCE_SCATTER] = { .rows = TTI_ROWS_RANKS,
				   .output = TTI_HOLDER_OWNER,
				   .reduces = true,
				   .takes_op = true,
				   .program = TUTTI_REDUCE_SCATTER },
	/* An all_reduce of nothing. */
	[TUTTI_BARRIER] = { .reduces = true, .program = TUTTI_BARRIER },
	[TUTTI_SEND_RECV] = { .input = TTI_HOLDER_STATED,
			      .output = TTI_HOLDER_STATED,
			      .program = TUTTI_SEND_RECV },
	[TUTTI_HANDOFF] = { .input = TTI_HOLDER_STATED,
			    .output = TTI_HOLDER_STATED,
			    .program = TUTTI_HANDOFF },
	[TUTTI_ALL_TO_ALL] = { .rows = TTI_ROWS_PAIRS,
			       .input = TTI_HOLDER_PAIR,
			       .output = TTI_HOLDER_PAIR,
			       .program = TUTTI_ALL_TO_ALL },
	[TUTTI_GATHER] = { .rows = TTI_ROWS_RANKS,
			   .input = TTI_HOLDER_OWNER,
			   .output = TTI_HOLDER_ROOT,
			   .program = TUTTI_GATHER },
	[TUTTI_SCATTER] = { .rows = TTI_ROWS_RANKS,
			    .input = TTI_HOLDER_ROOT,
			    .output = TTI_HOLDER_OWNER,
			    .program = TUTTI_SCATTER },
	[TUTTI_ALL_TO_ALL_V] = { .rows = TTI_ROWS_PAIRS,
				 .input = TTI_HOLDER_PAIR,
				 .output = TTI_HOLDER_PAIR,
				 .has_counts = true,
				 .by_pairs = true,
				 .program = TUTTI_ALL_TO_ALL_V },
	[TUTTI_GATHER_V] = { .rows = TTI_ROWS_RANKS,
			     .input = TTI_HOLDER_OWNER,
			     .output = TTI_HOLDER_ROOT,
			     .has_counts = true,
			     .by_pairs = true,
			     .program = TUTTI_GATHER_V },
	[TUTTI_SCATTER_V] = { .rows = TTI_ROWS_RANKS,
			      .input = TTI_HOLDER_ROOT,
			      .output = TTI_HOLDER_OWNER,
			      .has_counts = true,
			      .by_pairs = true,
			      .program = TUTTI_SCATTER_V },
	[TUTTI_ALL_GATHER_V] = { .rows = TTI_ROWS_RANKS,
				 .input = TTI_HOLDER_OWNER,
				 .has_counts = true,
				 .program = TUTTI_ALL_GATHER },
	[TUTTI_REDUCE_SCATTER_V] = { .rows = TTI_ROWS_RANKS,
				     .output = TTI_HOLDER_OWNER,
				     .reduces = true,
				     .takes_op = true,
				     .has_counts = true,
				     .program = TUTTI_REDUCE_SCATTER },
};

static const struct tti_collective none = { .rows = TTI_ROWS_NONE };

const struct tti_collective *tti_collective_get(tutti_collective coll)
{
	return (unsigned)coll < TUTTI_COLLECTIVE_COUNT ? &table[coll] : &none;
}

bool tti_collective_is_rooted(tutti_collective coll)
{
	const struct tti_collective *c = tti_collective_get(coll);

	return c->input == TTI_HOLDER_ROOT || c->output == TTI_HOLDER_ROOT;
}

bool tti_collective_reduces(tutti_collective coll)
{
	return tti_collective_get(coll)->reduces;
}

bool tti_collective_takes_op(tutti_collective coll)
{
	return tti_collective_get(coll)->takes_op;
}

bool tti_collective_is_by_rank(tutti_collective coll)
{
	return tti_collective_get(coll)->rows == TTI_ROWS_RANKS;
}

bool tti_collective_is_by_pair(tutti_collective coll)
{
	return tti_collective_get(coll)->rows == TTI_ROWS_PAIRS;
}

/* Whether the side of a call that `holder` has is a row for each rank. */
static bool is_rows(const struct tti_collective *c, enum tti_holder holder)
{
	return c->rows != TTI_ROWS_NONE && holder != TTI_HOLDER_OWNER && !c->has_counts;
}

bool tti_collective_sends_rows(tutti_collective coll)
{
	const struct tti_collective *c = tti_collective_get(coll);

	return is_rows(c, c->input);
}

bool tti_collective_gets_rows(tutti_collective coll)
{
	const struct tti_collective *c = tti_collective_get(coll);

	return is_rows(c, c->output);
}

bool tti_has_counts(tutti_collective coll)
{
	return tti_collective_get(coll)->has_counts;
}

bool tti_is_by_pairs(tutti_collective coll)
{
	return tti_collective_get(coll)->by_pairs;
}

size_t tti_collective_in_place(tutti_collective coll, size_t own)
{
	const struct tti_collective *c = tti_collective_get(coll);

	if (c->input == TTI_HOLDER_OWNER)
		return 0 - own;
	return c->output == TTI_HOLDER_OWNER ? own : 0;
}
