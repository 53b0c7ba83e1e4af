/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/counts.h"

#include <stdint.h>
#include <string.h>

#include "core/call/args.h"
#include "core/comm.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"
#include "util/params.h"

/* -- What is on each side ------------------------------------------------------------ */

/* One buffer of a call: nranges ranges, one for each rank, or one. */
struct side {
	const size_t *counts,
		*displs; /* displs NULL: one after the other; counts NULL: one range */
	size_t count;
	int nranges;
};

static enum tti_holder holder_of(const struct tti_args *args, bool is_send)
{
	const struct tti_collective *what = tti_collective_get(args->coll);

	return is_send ? what->input : what->output;
}

static struct side side_of(const struct tti_comm *comm, const struct tti_args *args, bool is_send)
{
	const size_t *counts = is_send ? args->send_counts : args->recv_counts;
	const size_t *of_all = is_send ? args->recv_counts : args->send_counts;
	const bool own = holder_of(args, is_send) == TTI_HOLDER_OWNER;

	/* This rank's own row: where all ranks know all counts, its length is one of them. */
	if (own && !tti_is_by_pairs(args->coll))
		return (struct side){ .count = of_all[comm->rank], .nranges = 1 };
	if (counts)
		return (struct side){ .counts = counts,
				      .displs = is_send ? args->send_displs : args->recv_displs,
				      .nranges = comm->n };
	/* Else only the root has the buffer. */
	return own ? (struct side){ .count = args->count, .nranges = 1 } : (struct side){ 0 };
}

/* packed: where a range without a displacement begins. */
static struct tti_range range_at(const struct side *side, int i, size_t packed)
{
	if (!side->counts)
		return (struct tti_range){ 0, side->count };
	return (struct tti_range){ side->displs ? side->displs[i] : packed, side->counts[i] };
}

bool tti_pair_range(const struct tti_comm *comm, const struct tti_args *args, int peer,
		    bool is_send, struct tti_range *out)
{
	const bool has_row = holder_of(args, is_send) == TTI_HOLDER_OWNER;
	const int root_end = has_row ? peer : comm->rank;
	struct side side;

	if (args->coll == TUTTI_ALL_TO_ALL) {
		*out = (struct tti_range){ (size_t)peer * args->count, args->count };
		return true;
	}
	if (!tti_is_by_pairs(args->coll))
		return false;
	/* A gather sends only to the root, and in a scatter only the root sends. */
	if (tti_collective_is_rooted(args->coll) && root_end != args->root)
		return false;
	side = side_of(comm, args, is_send);
	*out = range_at(&side, side.counts ? peer : 0, 0);
	return true;
}

/* -- Looking at them ------------------------------------------------------------------ */

/* In a gather or scatter only the root's counts are read. The count of a rank's own row is in no
 * array. */
static bool needs_counts(const struct tti_comm *comm, const struct tti_args *args, bool is_send)
{
	const enum tti_holder holder = holder_of(args, is_send);

	return holder == TTI_HOLDER_ROOT ? comm->rank == args->root : holder != TTI_HOLDER_OWNER;
}

static tutti_status check_arrays(const struct tti_comm *comm, struct tti_args *args, bool is_send)
{
	const char *name = tutti_collective_name(args->coll), *which = is_send ? "send" : "receive";
	const size_t **counts = is_send ? &args->send_counts : &args->recv_counts;
	const size_t **displs = is_send ? &args->send_displs : &args->recv_displs;
	const size_t most = SIZE_MAX / 4 / tutti_type_size(args->type);
	size_t sum = 0;

	if (!needs_counts(comm, args, is_send)) {
		*counts = *displs = NULL;
		return TUTTI_OK;
	}
	if (!*counts || (!*displs && !tti_collective_reduces(args->coll)))
		return tti_fail(TUTTI_EINVAL, "%s: the %s %s are NULL: pass one for each rank",
				name, which, *counts ? "displacements" : "counts");
	for (int rank = 0; rank < comm->n; rank++) {
		const size_t displ = *displs ? (*displs)[rank] : 0, count = (*counts)[rank];

		if (count > most || displ > most || sum > most)
			return tti_fail(TUTTI_EINVAL,
					"%s: the %s count %zu at %zu of rank %d goes past the end "
					"of memory",
					name, which, count, displ, rank);
		sum += count;
	}
	return TUTTI_OK;
}

tutti_status tti_counts_take_in(const struct tti_comm *comm, struct tti_args *args)
{
	uint64_t hash = 0;
	const size_t *counts;

	if (tutti_type_size(args->type) == 0 || !tti_has_counts(args->coll))
		return TUTTI_OK; /* refused by tti_args_check(), or nothing to look at */
	TTI_TRY(check_arrays(comm, args, true));
	TTI_TRY(check_arrays(comm, args, false));
	if (tti_is_by_pairs(args->coll))
		return TUTTI_OK;
	counts = args->send_counts ? args->send_counts : args->recv_counts;
	args->count = 0;
	for (int rank = 0; rank < comm->n; rank++) {
		args->count += counts[rank];
		hash = tti_hash_combine(hash, counts[rank]);
	}
	args->root = (int)(uint32_t)(hash ^ hash >> 32);
	return TUTTI_OK;
}

/* -- Buffers --------------------------------------------------------------------------- */

void tti_counts_bounds(const struct tti_comm *comm, const struct tti_args *args, bool is_send,
		       struct tti_range *out)
{
	const struct side side = side_of(comm, args, is_send);
	size_t begin = SIZE_MAX, end = 0, packed = 0;

	for (int i = 0; i < side.nranges; i++) {
		const struct tti_range range = range_at(&side, i, packed);

		packed += range.count;
		if (range.count == 0)
			continue;
		begin = range.first < begin ? range.first : begin;
		end = range.first + range.count > end ? range.first + range.count : end;
	}
	*out = end > begin ? (struct tti_range){ begin, end - begin } : (struct tti_range){ 0 };
}

/* Whether a range of buffer a and one of buffer b overlap. */
static bool meet(uintptr_t a, struct tti_range first, uintptr_t b, struct tti_range second,
		 size_t size)
{
	const uintptr_t from = a + first.first * size, to = b + second.first * size;

	return first.count > 0 && second.count > 0 && from < to + second.count * size &&
	       to < from + first.count * size;
}

/* Whether a range of one side overlaps one of the other; if the sides are one, another range of
 * it. */
static bool any_meet(uintptr_t a, const struct side *first, uintptr_t b, const struct side *second,
		     size_t size)
{
	size_t packed = 0;

	for (int i = 0; i < first->nranges; i++) {
		const struct tti_range one = range_at(first, i, packed);
		size_t other_packed = 0;

		packed += one.count;
		for (int k = 0; k < second->nranges; k++) {
			const struct tti_range other = range_at(second, k, other_packed);

			other_packed += other.count;
			if ((first != second || i < k) && meet(a, one, b, other, size))
				return true;
		}
	}
	return false;
}

bool tti_counts_in_place(const struct tti_comm *comm, const struct tti_args *args)
{
	const uintptr_t send = (uintptr_t)args->send, recv = (uintptr_t)args->recv;
	const size_t size = tutti_type_size(args->type), nbytes = (size_t)comm->n * sizeof(size_t);
	const bool has_row = holder_of(args, true) == TTI_HOLDER_OWNER;
	const struct side rows = side_of(comm, args, !has_row);
	size_t own = 0;

	if (tti_collective_is_by_pair(args->coll))
		return send == recv && memcmp(args->send_counts, args->recv_counts, nbytes) == 0 &&
		       memcmp(args->send_displs, args->recv_displs, nbytes) == 0;
	if (!rows.counts)
		return false; /* not the root, which alone has both buffers */
	for (int rank = 0; rank < comm->rank; rank++)
		own += rows.counts[rank];
	if (rows.displs)
		own = rows.displs[comm->rank];
	return recv == send + tti_collective_in_place(args->coll, own * size);
}

bool tti_counts_overlap(const struct tti_comm *comm, const struct tti_args *args)
{
	const struct side from = side_of(comm, args, true), to = side_of(comm, args, false);

	return any_meet((uintptr_t)args->send, &from, (uintptr_t)args->recv, &to,
			tutti_type_size(args->type));
}

tutti_status tti_counts_check(const struct tti_comm *comm, const struct tti_args *args)
{
	const struct side to = side_of(comm, args, false);
	const uintptr_t recv = (uintptr_t)args->recv;
	const char *name = tutti_collective_name(args->coll);
	struct tti_range sent, got;

	if (tti_pair_range(comm, args, comm->rank, true, &sent) &&
	    tti_pair_range(comm, args, comm->rank, false, &got) && sent.count != got.count)
		return tti_fail(TUTTI_EINVAL,
				"%s: rank %d sends %zu elements to itself but receives %zu", name,
				comm->rank, sent.count, got.count);
	if (tti_params()->check && any_meet(recv, &to, recv, &to, tutti_type_size(args->type)))
		return tti_fail(TUTTI_EINVAL,
				"%s: data of two ranks would be received into one place, at %p "
				"(TUTTI_CHECK=1): give each rank a place of its own",
				name, args->recv);
	return TUTTI_OK;
}

/* -- Copies ----------------------------------------------------------------------------- */

tutti_status tti_counts_keep(const struct tti_comm *comm, struct tti_args *args)
{
	const size_t **arrays[] = { &args->send_counts, &args->send_displs, &args->recv_counts,
				    &args->recv_displs };
	const size_t n = (size_t)comm->n;
	struct tti_counts *counts = tti_alloc(sizeof(*counts) + 4 * n * sizeof(counts->at[0]));

	if (!counts)
		return tti_fail(TUTTI_ENOMEM, "counts of %d ranks: out of memory", comm->n);
	atomic_init(&counts->users, 1);
	for (size_t i = 0; i < 4; i++) {
		if (!*arrays[i])
			continue;
		memcpy(counts->at + i * n, *arrays[i], n * sizeof(counts->at[0]));
		*arrays[i] = counts->at + i * n;
	}
	args->counts = counts;
	return TUTTI_OK;
}

struct tti_counts *tti_counts_take(struct tti_counts *counts)
{
	if (counts)
		atomic_fetch_add(&counts->users, 1);
	return counts;
}

void tti_counts_drop(struct tti_counts *counts)
{
	if (counts && atomic_fetch_sub(&counts->users, 1) == 1)
		tti_free(counts);
}
