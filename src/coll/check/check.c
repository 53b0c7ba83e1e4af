/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/check/check.h"

#include <string.h>

#include "coll/check/check_memory.h"
#include "coll/check/check_run.h"
#include "util/bitset.h"
#include "util/error.h"

/* What a check may take: sets of n bits for all chunks of n ranks grow with n^3. */
#define VALUE_BYTES_MAX (INT64_C(1) << 30)

static tutti_status check_heads(const struct tti_program *prog, int n)
{
	for (int rank = 0; rank < n; rank++) {
		const struct tti_program *at = &prog[rank];

		if (at->rank != rank)
			return tti_fail_quiet(TUTTI_EINVAL, "program %d is that of rank %d", rank,
					      at->rank);
		if (at->n != n)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "rank %d's program is for %d ranks, there are %d",
					      rank, at->n, n);
		if (at->coll != prog->coll || at->root != prog->root ||
		    at->nchunks != prog->nchunks)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "rank %d's program is %s root %d chunks %d, "
					      "rank 0's is %s root %d chunks %d",
					      rank, tutti_collective_name(at->coll), at->root,
					      at->nchunks, tutti_collective_name(prog->coll),
					      prog->root, prog->nchunks);
	}
	return TUTTI_OK;
}

static tutti_status compile_all(struct tti_check *check)
{
	int64_t nopers = 0, nqueues = 0;

	for (int rank = 0; rank < check->n; rank++) {
		TTI_TRY(tti_compile(&check->prog[rank], &check->compiled[rank]));
		check->is_memory |= check->compiled[rank].is_memory;
		TTI_TRY(tti_check_in_place(&check->prog[rank], &check->compiled[rank]));
		nopers += check->compiled[rank].nopers;
		nqueues += check->compiled[rank].nqueues;
		if (nopers > INT32_MAX / 2 || nqueues > INT32_MAX / 2)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "programs of %d ranks are too long to be checked",
					      check->n);
		check->oper_base[rank + 1] = (int32_t)nopers;
		check->queue_base[rank + 1] = (int32_t)nqueues;
		check->chunk_base[rank + 1] = (rank + 1) * check->prog->nchunks;
	}
	check->partner = tti_arena_alloc(&check->arena, (size_t)nqueues * sizeof(*check->partner));
	check->rank_of = tti_arena_alloc(&check->arena, (size_t)nopers * sizeof(*check->rank_of));
	if (!check->partner || !check->rank_of)
		return tti_check_no_memory(check);
	for (int rank = 0; rank < check->n; rank++)
		for (int32_t o = check->oper_base[rank]; o < check->oper_base[rank + 1]; o++)
			check->rank_of[o] = rank;
	return TUTTI_OK;
}

/* -- Links: every message has its receiver ----------------------------------------- */

static const struct tti_queue *queue_at(const struct tti_check *check, int rank, int32_t queue)
{
	return &check->compiled[rank].queue[queue - check->queue_base[rank]];
}

/* The k-th message of a queue that has no counterpart. */
static tutti_status unmatched(const struct tti_check *check, int rank, int32_t queue, int32_t k)
{
	const struct tti_queue *at = queue_at(check, rank, queue);
	const int32_t oper = tti_check_queued(check, rank, queue, k);
	const int step = tti_check_step(check, oper, at->peer);
	const int chunk = tti_check_operation(check, oper)->chunk;

	if (tti_check_operation(check, oper)->sync)
		return tti_fail_quiet(TUTTI_EINVAL,
				      at->is_send ? "rank %d, step %d: rank %d is notified, which "
						    "waits for only %d notifies of rank %d"
						  : "rank %d, step %d: waits for rank %d, which "
						    "sends only %d notifies to rank %d",
				      rank, step, at->peer, k, rank);
	if (at->is_send)
		return tti_fail_quiet(TUTTI_EINVAL,
				      "rank %d, step %d: chunk %d is sent to rank %d, which "
				      "receives only %d of rank %d's messages",
				      rank, step, chunk, at->peer, k, rank);
	return tti_fail_quiet(TUTTI_EINVAL,
			      "rank %d, step %d: chunk %d is to come from rank %d, which sends "
			      "only %d messages to rank %d",
			      rank, step, chunk, at->peer, k, rank);
}

/* A sending queue and what receives from it. */
static tutti_status match_queues(struct tti_check *check, int source, int32_t out, int rank,
				 int32_t in)
{
	const struct tti_queue *sends = queue_at(check, source, out);
	const struct tti_queue *recvs = queue_at(check, rank, in);

	for (int32_t k = 0; k < sends->n && k < recvs->n; k++) {
		const int32_t from = tti_check_queued(check, source, out, k);
		const int32_t to = tti_check_queued(check, rank, in, k);
		const int sent = tti_check_operation(check, from)->chunk;
		const int wanted = tti_check_operation(check, to)->chunk;

		if (tti_check_operation(check, from)->sync)
			continue;
		if (tti_check_operation(check, from)->stage !=
		    tti_check_operation(check, to)->stage)
			return tti_fail_quiet(
				TUTTI_EINVAL,
				"rank %d, step %d: chunk %d comes from rank %d in another stage "
				"than its step %d sends it",
				rank, tti_check_step(check, to, source), wanted, source,
				tti_check_step(check, from, rank));
		if (sent != wanted)
			return tti_fail_quiet(
				TUTTI_EINVAL,
				"rank %d, step %d: chunk %d is to come from rank %d, but what "
				"arrives is chunk %d (its step %d)",
				rank, tti_check_step(check, to, source), wanted, source, sent,
				tti_check_step(check, from, rank));
	}
	if (sends->n > recvs->n)
		return unmatched(check, source, out, recvs->n);
	if (recvs->n > sends->n)
		return unmatched(check, rank, in, sends->n);
	check->partner[out] = in;
	check->partner[in] = out;
	return TUTTI_OK;
}

/* All queues between `rank` and the n ranks that send to it, out[] being theirs.
 * in_from is scratch, -1 everywhere. */
static tutti_status match_rank(struct tti_check *check, int rank, const int32_t *sender,
			       const int32_t *out, int32_t n, int32_t *in_from)
{
	const struct tti_compiled *compiled = &check->compiled[rank];
	const int32_t base = check->queue_base[rank];
	tutti_status st = TUTTI_OK;

	for (int32_t q = 0; q < compiled->nqueues; q++)
		if (!compiled->queue[q].is_send)
			in_from[compiled->queue[q].peer] = base + q;
	for (int32_t i = 0; i < n && st == TUTTI_OK; i++) {
		if (in_from[sender[i]] < 0)
			st = unmatched(check, sender[i], out[i], 0);
		else
			st = match_queues(check, sender[i], out[i], rank, in_from[sender[i]]);
		in_from[sender[i]] = -1;
	}
	for (int32_t q = 0; q < compiled->nqueues; q++) {
		const struct tti_queue *queue = &compiled->queue[q];

		if (queue->is_send)
			continue;
		if (st == TUTTI_OK && in_from[queue->peer] >= 0)
			st = unmatched(check, rank, base + q, 0);
		in_from[queue->peer] = -1;
	}
	return st;
}

/* Sending queues sorted by receiver, then matched receiver by receiver. */
static tutti_status match_all(struct tti_check *check)
{
	const size_t n = (size_t)check->n, nqueues = (size_t)check->queue_base[check->n];
	int32_t *first = tti_arena_alloc(&check->arena, (n + 2) * sizeof(*first));
	int32_t *in_from = tti_arena_alloc(&check->arena, n * sizeof(*in_from));
	int32_t *sender = tti_arena_alloc(&check->arena, nqueues * sizeof(*sender));
	int32_t *out = tti_arena_alloc(&check->arena, nqueues * sizeof(*out));
	tutti_status st = TUTTI_OK;

	if (!first || !in_from || !sender || !out)
		return tti_check_no_memory(check);
	memset(in_from, -1, n * sizeof(*in_from));
	/* first[p + 2] counts what rank p is sent; then first[p + 1] is where the next
	 * queue to p goes, and in the end where those to p + 1 begin. */
	for (int rank = 0; rank < check->n; rank++)
		for (int32_t q = check->queue_base[rank]; q < check->queue_base[rank + 1]; q++)
			first[queue_at(check, rank, q)->peer + 2] +=
				queue_at(check, rank, q)->is_send;
	for (size_t rank = 0; rank < n; rank++)
		first[rank + 2] += first[rank + 1];
	for (int rank = 0; rank < check->n; rank++)
		for (int32_t q = check->queue_base[rank]; q < check->queue_base[rank + 1]; q++) {
			const struct tti_queue *queue = queue_at(check, rank, q);
			const int32_t at = first[queue->peer + 1];

			if (!queue->is_send)
				continue;
			first[queue->peer + 1]++;
			sender[at] = rank;
			out[at] = q;
		}
	for (int rank = 0; rank < check->n && st == TUTTI_OK; rank++)
		st = match_rank(check, rank, sender + first[rank], out + first[rank],
				first[rank + 1] - first[rank], in_from);
	return st;
}

/* -- All together ------------------------------------------------------------------ */

static tutti_status check_size(const struct tti_program *prog, int n)
{
	const int64_t nbytes = (int64_t)TTI_BITSET_WORDS(n) * (int64_t)sizeof(uint64_t);

	if (n < 1 || n > TTI_PROGRAM_RANKS_MAX)
		return tti_fail_quiet(TUTTI_EINVAL, "%d ranks: 1 to %d are possible", n,
				      TTI_PROGRAM_RANKS_MAX);
	if (prog->nchunks > 0 && (int64_t)n * prog->nchunks > VALUE_BYTES_MAX / nbytes)
		return tti_fail_quiet(TUTTI_EINVAL,
				      "%d chunks of %d ranks are too many to be checked",
				      prog->nchunks, n);
	return TUTTI_OK;
}

/* Ranks that send, where others wait for what is in memory. */
static tutti_status check_kinds(const struct tti_check *check)
{
	for (int rank = 0; rank < check->n; rank++)
		if (check->is_memory && !check->compiled[rank].is_memory &&
		    check->compiled[rank].nqueues > 0)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "rank %d sends or receives chunks, while other ranks "
					      "touch memory of their peers: all must do the same",
					      rank);
	return TUTTI_OK;
}

static bool has_fanouts(const struct tti_check *check)
{
	for (int rank = 0; rank < check->n; rank++)
		for (int32_t o = 0; o < check->compiled[rank].nopers; o++)
			if (check->compiled[rank].oper[o].nout > 1)
				return true;
	return false;
}

static tutti_status check_modes(const struct tti_check *check)
{
	static const struct tti_check_mode mode[] = {
		{ .in_order = false, .shared = false },
		{ .in_order = false, .shared = true },
		{ .in_order = true, .shared = false },
		{ .in_order = true, .shared = true },
	};

	const bool fanouts = has_fanouts(check);

	for (size_t i = 0; i < sizeof(mode) / sizeof(mode[0]); i++)
		if (fanouts || !mode[i].shared)
			TTI_TRY(tti_check_run(check, mode[i]));
	return TUTTI_OK;
}

tutti_status tti_program_check(const struct tti_program *prog, int n, int slots,
			       enum tti_order order)
{
	struct tti_check check = { .prog = prog,
				   .n = n,
				   .slots = slots,
				   .order = order,
				   .value_words = TTI_BITSET_WORDS(n) };
	tutti_status st;

	TTI_TRY(check_size(prog, n));
	TTI_TRY(check_heads(prog, n));
	if (slots < 1)
		return tti_fail_quiet(TUTTI_EINVAL, "%d slots: must be 1 or more", slots);
	check.compiled = tti_arena_alloc(&check.arena, (size_t)n * sizeof(*check.compiled));
	check.oper_base = tti_arena_alloc(&check.arena, ((size_t)n + 1) * sizeof(*check.oper_base));
	check.queue_base =
		tti_arena_alloc(&check.arena, ((size_t)n + 1) * sizeof(*check.queue_base));
	check.chunk_base =
		tti_arena_alloc(&check.arena, ((size_t)n + 1) * sizeof(*check.chunk_base));
	if (check.compiled && check.oper_base && check.queue_base && check.chunk_base)
		st = compile_all(&check);
	else
		st = tti_check_no_memory(&check);
	if (st == TUTTI_OK)
		st = check_kinds(&check);
	if (st == TUTTI_OK)
		st = match_all(&check);
	if (st == TUTTI_OK)
		st = check.is_memory ? tti_check_memory(&check) : check_modes(&check);
	for (int rank = 0; check.compiled && rank < n; rank++)
		tti_compiled_release(&check.compiled[rank]);
	tti_arena_release(&check.arena);
	return st;
}
