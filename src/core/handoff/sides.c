/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/handoff/sides.h"

#include <stdio.h>
#include <string.h>

#include "core/call/args.h"
#include "core/comm.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"
#include "util/strbuf.h"

/* -- Checking ---------------------------------------------------------------------- */

static tutti_status check_ranks(const tutti_side *side, const char *name, int n, uint64_t *seen)
{
	memset(seen, 0, TTI_BITSET_WORDS(n) * sizeof(*seen));
	for (int i = 0; i < side->n; i++) {
		const int rank = side->ranks[i];

		if (rank < 0 || rank >= n)
			return tti_fail(TUTTI_EINVAL,
					"handoff: %s->ranks[%d] is %d, but ranks are 0 to %d", name,
					i, rank, n - 1);
		if (tti_bit_has(seen, (size_t)rank))
			return tti_fail(TUTTI_EINVAL,
					"handoff: %s->ranks[%d] is %d, which is on that side "
					"already: name each rank once",
					name, i, rank);
		tti_bit_set(seen, (size_t)rank);
	}
	return TUTTI_OK;
}

static tutti_status check_side(const tutti_side *side, const char *name, int n, uint64_t *seen)
{
	if (!side)
		return tti_fail(TUTTI_EINVAL,
				"handoff: %s is NULL: pass the same sides on all "
				"ranks, also on those of neither",
				name);
	if (side->n < 1 || side->n > n)
		return tti_fail(TUTTI_EINVAL,
				"handoff: %s->n is %d: a side has 1 to %d ranks, each once", name,
				side->n, n);
	if (!side->ranks)
		return tti_fail(TUTTI_EINVAL, "handoff: %s->ranks is NULL: pass its %d ranks", name,
				side->n);
	if (side->sharded != 0 && side->sharded != 1)
		return tti_fail(TUTTI_EINVAL,
				"handoff: %s->sharded is %d: 0 if each rank has the whole vector, "
				"1 if each has a part",
				name, side->sharded);
	return check_ranks(side, name, n, seen);
}

tutti_status tti_sides_check(const tutti_side *from, const tutti_side *to, int n)
{
	uint64_t *seen = tti_calloc(TTI_BITSET_WORDS(n), sizeof(*seen));
	tutti_status st;

	if (!seen)
		return tti_fail(TUTTI_ENOMEM, "handoff of %d ranks: out of memory", n);
	st = check_side(from, "from", n, seen);
	if (st == TUTTI_OK)
		st = check_side(to, "to", n, seen);
	tti_free(seen);
	return st;
}

/* -- Copies ------------------------------------------------------------------------- */

/* "parts of 0-3,8": neighbours as one. */
static void describe(const tutti_side *side, struct tti_strbuf *out)
{
	if (side->sharded)
		tti_strbuf_add(out, "parts of ");
	for (int i = 0; i < side->n;) {
		int end = i + 1;

		while (end < side->n && side->ranks[end] == side->ranks[end - 1] + 1)
			end++;
		tti_strbuf_addf(out, "%s%d", i ? "," : "", side->ranks[i]);
		if (end > i + 1)
			tti_strbuf_addf(out, "-%d", side->ranks[end - 1]);
		i = end;
	}
}

void tti_sides_format(const struct tti_sides *sides, char *buf, size_t size)
{
	struct tti_strbuf text = { 0 };

	*buf = '\0';
	if (!sides)
		return;
	tti_strbuf_add(&text, "from ");
	describe(&sides->from, &text);
	tti_strbuf_add(&text, " to ");
	describe(&sides->to, &text);
	if (text.text && text.len < size)
		memcpy(buf, text.text, text.len + 1);
	else
		(void)snprintf(buf, size, "%.30s... (%d ranks to %d)#%08x",
			       text.text ? text.text : "", sides->from.n, sides->to.n,
			       (unsigned)sides->hash);
	tti_strbuf_release(&text);
}

static uint64_t hash_side(uint64_t hash, const tutti_side *side)
{
	hash = tti_hash_combine(hash, (uint64_t)side->n << 1 | (uint64_t)side->sharded);
	for (int i = 0; i < side->n; i++)
		hash = tti_hash_combine(hash, (uint64_t)side->ranks[i]);
	return hash;
}

static tutti_side copy_side(const tutti_side *side, int *ranks)
{
	memcpy(ranks, side->ranks, (size_t)side->n * sizeof(*ranks));
	return (tutti_side){ ranks, side->n, side->sharded };
}

tutti_status tti_sides_keep(struct tti_args *args)
{
	const tutti_side *from = args->from, *to = args->to;
	const size_t nranks = (size_t)from->n + (size_t)to->n;
	struct tti_sides *sides = tti_zalloc(sizeof(*sides) + nranks * sizeof(int));

	if (!sides)
		return tti_fail(TUTTI_ENOMEM, "handoff of %zu ranks: out of memory", nranks);
	atomic_init(&sides->users, 1);
	sides->from = copy_side(from, sides->ranks);
	sides->to = copy_side(to, sides->ranks + from->n);
	sides->hash = hash_side(hash_side(0, from), to);
	args->sides = sides;
	args->from = &sides->from;
	args->to = &sides->to;
	args->root = (int)(uint32_t)sides->hash;
	return TUTTI_OK;
}

struct tti_sides *tti_sides_take(struct tti_sides *sides)
{
	if (sides)
		atomic_fetch_add(&sides->users, 1);
	return sides;
}

void tti_sides_drop(struct tti_sides *sides)
{
	if (sides && atomic_fetch_sub(&sides->users, 1) == 1)
		tti_free(sides);
}

static bool same_side(const tutti_side *a, const tutti_side *b)
{
	return a->n == b->n && a->sharded == b->sharded &&
	       memcmp(a->ranks, b->ranks, (size_t)a->n * sizeof(*a->ranks)) == 0;
}

bool tti_sides_equal(const struct tti_sides *a, const struct tti_sides *b)
{
	return a->hash == b->hash && same_side(&a->from, &b->from) && same_side(&a->to, &b->to);
}

void tti_side_range(const tutti_side *side, int rank, size_t count, size_t *first,
		    size_t *range_count)
{
	int place = 0;

	*first = *range_count = 0;
	while (place < side->n && side->ranks[place] != rank)
		place++;
	if (place == side->n)
		return;
	*range_count = count;
	if (side->sharded)
		tutti_part(count, side->n, place, first, range_count);
}
