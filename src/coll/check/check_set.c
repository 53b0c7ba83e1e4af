/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/check/check_set.h"

#include "util/bitset.h"
#include "util/error.h"

tutti_status tti_check_no_memory(const struct tti_check *check)
{
	return tti_fail(TUTTI_ENOMEM, "checking programs of %d ranks: out of memory", check->n);
}

int tti_check_step(const struct tti_check *check, int32_t oper, int peer)
{
	const int rank = check->rank_of[oper];
	const struct tti_compiled *compiled = &check->compiled[rank];
	const struct tti_operation *at = &compiled->oper[oper - check->oper_base[rank]];
	const int first = compiled->step[oper - check->oper_base[rank]];

	/* An operation comes from steps in a row, one for each peer, or a COPY and its PUTs. */
	for (int i = 0; first >= 0 && i < at->nin + at->nout + at->nget + at->nput + 1 &&
			(size_t)(first + i) < check->prog[rank].steps.n;
	     i++)
		if (check->prog[rank].steps.at[first + i].peer == peer)
			return first + i;
	return first;
}

tutti_status tti_check_twice(const struct tti_check *check, int32_t oper, int peer,
			     size_t contribution)
{
	return tti_fail_quiet(TUTTI_EINVAL,
			      "rank %d, step %d: chunk %d already holds rank %zu's contribution, "
			      "which comes again from rank %d",
			      check->rank_of[oper], tti_check_step(check, oper, peer),
			      tti_check_operation(check, oper)->chunk, contribution, peer);
}

/* An operation that reduces must be marked final if, and only if, nothing is missing any more. A
 * barrier has no value to divide. */
tutti_status tti_check_final(const struct tti_check *check, int32_t oper, const uint64_t *value)
{
	const struct tti_operation *at = tti_check_operation(check, oper);
	const size_t n = (size_t)check->n, missing = tti_bitset_first_clear(value, n);
	int step = tti_check_step(check, oper, -1);

	if (check->prog[0].coll == TUTTI_BARRIER || (missing == n) == (at->final != 0))
		return TUTTI_OK;
	step += at->nin + at->nget - 1;
	if (missing < n)
		return tti_fail_quiet(TUTTI_EINVAL,
				      "rank %d, step %d: chunk %d is marked final but lacks rank "
				      "%zu's contribution",
				      check->rank_of[oper], step, at->chunk, missing);
	return tti_fail_quiet(TUTTI_EINVAL,
			      "rank %d, step %d: chunk %d is complete but not marked final",
			      check->rank_of[oper], step, at->chunk);
}

/* One source more, the `place`-th, after the ranks before *next. */
tutti_status tti_check_source_order(const struct tti_check *check, int32_t oper,
				    const uint64_t *source, int place, size_t *next)
{
	const size_t n = (size_t)check->n, first = tti_bitset_next(source, n, 0);
	const bool goes_on = place == 0 && check->order == TTI_ORDER_RANKS;
	size_t end = first;

	while (end < n && tti_bit_has(source, end))
		end++;
	if (first == *next && (end == first + 1 || goes_on) &&
	    tti_bitset_next(source, n, end) == n) {
		*next = end;
		return TUTTI_OK;
	}
	if (first == *next)
		return tti_fail_quiet(TUTTI_EINVAL,
				      "rank %d, step %d: of chunk %d ranks %zu and others are "
				      "combined before this reduction, which is not the order "
				      "of ranks",
				      check->rank_of[oper], tti_check_step(check, oper, -1),
				      tti_check_operation(check, oper)->chunk, first);
	return tti_fail_quiet(TUTTI_EINVAL,
			      "rank %d, step %d: chunk %d is reduced with rank %zu's contribution "
			      "where rank %zu's must come, in the order of ranks",
			      check->rank_of[oper], tti_check_step(check, oper, -1),
			      tti_check_operation(check, oper)->chunk, first, *next);
}

tutti_status tti_check_one_pass(const struct tti_check *check, int32_t oper, size_t next)
{
	if (check->order != TTI_ORDER_ONE_PASS || next == (size_t)check->n)
		return TUTTI_OK;
	return tti_fail_quiet(
		TUTTI_EINVAL,
		"rank %d, step %d: chunk %d is reduced with the contributions of ranks "
		"0 to %zu, not with all in one pass",
		check->rank_of[oper], tti_check_step(check, oper, -1),
		tti_check_operation(check, oper)->chunk, next - 1);
}

/* Reductions: all ranks' contributions. */
static tutti_status check_complete(const struct tti_check *check, const char *where, int chunk,
				   const uint64_t *value)
{
	const size_t missing = tti_bitset_first_clear(value, (size_t)check->n);

	if (missing == (size_t)check->n)
		return TUTTI_OK;
	return tti_fail_quiet(TUTTI_EINVAL,
			      "%s: output chunk %d ends without rank %zu's contribution", where,
			      chunk, missing);
}

/* In a handoff any rank that had the chunk will do: `source` if it had it, else the first. */
static size_t right_source(const struct tti_check *check, int chunk, size_t source)
{
	const size_t n = (size_t)check->n;
	size_t first = 0;

	if (source < n && tti_chunk_is_input(&check->prog[source], chunk))
		return source;
	while (first < n && !tti_chunk_is_input(&check->prog[first], chunk))
		first++;
	return first;
}

static size_t right_rank(const struct tti_check *check, int chunk, size_t source)
{
	const struct tti_program *prog = &check->prog[0];

	if (prog->coll == TUTTI_HANDOFF)
		return right_source(check, chunk, source);
	if (prog->coll == TUTTI_ALL_TO_ALL)
		return (size_t)tti_chunk_source(prog, chunk);
	return (size_t)(prog->coll == TUTTI_ALL_GATHER || prog->coll == TUTTI_GATHER
				? tti_chunk_owner(prog, chunk)
				: prog->root);
}

/* The others: what one rank had. */
static tutti_status check_source(const struct tti_check *check, const char *where, int chunk,
				 const uint64_t *value)
{
	const size_t n = (size_t)check->n, source = tti_bitset_next(value, n, 0);
	const size_t right = right_rank(check, chunk, source);

	if (source == right)
		return TUTTI_OK;
	return tti_fail_quiet(TUTTI_EINVAL, "%s: output chunk %d is rank %zu's, must be rank %zu's",
			      where, chunk, source, right);
}

tutti_status tti_check_output(const struct tti_check *check, const char *where, int chunk,
			      const uint64_t *value)
{
	/* In send_recv it came from the one rank that had it. */
	if (check->prog->coll == TUTTI_SEND_RECV)
		return TUTTI_OK;
	return tti_collective_reduces(check->prog->coll)
		       ? check_complete(check, where, chunk, value)
		       : check_source(check, where, chunk, value);
}

/* Whether operation `before` is before `after`: by an edge, or in a queue of both. */
static bool is_ordered(const struct tti_compiled *compiled, int32_t before, int32_t after)
{
	const struct tti_operation *a = &compiled->oper[before], *b = &compiled->oper[after];

	for (int i = 0; i < a->nsucc; i++)
		if (compiled->succs[a->succ + i] == after)
			return true;
	for (int i = 0; i < a->nin + a->nout; i++)
		for (int k = 0; k < b->nin + b->nout; k++)
			if (compiled->queue_of[a->in + i] == compiled->queue_of[b->in + k])
				return true;
	return false;
}

/* Pairs of ranks share memory the other way round; of all other collectives a chunk lies where
 * it did, and its operations are in order anyway. Operations of memory programs have one order,
 * which tti_check_memory() looks at. */
tutti_status tti_check_in_place(const struct tti_program *prog, const struct tti_compiled *compiled)
{
	if (!prog->in_place || prog->coll != TUTTI_ALL_TO_ALL || compiled->is_memory)
		return TUTTI_OK;
	for (int32_t w = 0; w < compiled->nopers; w++) {
		const struct tti_operation *writer = &compiled->oper[w];
		const int twin = tti_chunk_twin(prog, writer->chunk);

		if (writer->to != TTI_PLACE_OUTPUT || twin == writer->chunk)
			continue;
		for (int32_t r = 0; r < compiled->nopers; r++)
			if (compiled->oper[r].chunk == twin &&
			    compiled->oper[r].from == TTI_PLACE_INPUT &&
			    (r > w || !is_ordered(compiled, r, w)))
				return tti_fail_quiet(TUTTI_EINVAL,
						      "rank %d, step %d: chunk %d is written in "
						      "place, where step "
						      "%d may not have read chunk %d yet",
						      prog->rank, compiled->step[w], writer->chunk,
						      compiled->step[r], twin);
	}
	return TUTTI_OK;
}
