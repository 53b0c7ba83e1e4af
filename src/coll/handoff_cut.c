/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "coll/handoff.h"
#include "coll/handoff_hosts.h"
#include "util/error.h"
#include "util/mem.h"

/* Where a vector is cut: at the parts of sharded sides, or, if both are whole, into
 * stripes: wherever a host's pairs say so. */

void tti_handoff_chunks_release(struct tti_handoff_chunks *chunks)
{
	tti_vec_release(&chunks->list);
}

void tutti_part(size_t count, int n, int index, size_t *first, size_t *part_count)
{
	const size_t part = count / (size_t)n, longer = count % (size_t)n, i = (size_t)index;

	*first = i * part + (i < longer ? i : longer);
	*part_count = part + (i < longer);
}

/* -- Parts ----------------------------------------------------------------------------- */

/* One side while the vector is walked along. */
struct walk {
	size_t count, end; /* of the part */
	int n, part;
};

static struct walk begin_walk(const tutti_side *side, size_t count)
{
	struct walk walk = { .count = count,
			     .end = count,
			     .n = tti_handoff_is_cut(side) ? side->n : 1 };
	size_t first;

	tutti_part(count, walk.n, 0, &first, &walk.end);
	return walk;
}

/* To the part that has element `at`. */
static void walk_to(struct walk *walk, size_t at)
{
	while (walk->end <= at && walk->part < walk->n - 1) {
		size_t first, length;

		tutti_part(walk->count, walk->n, ++walk->part, &first, &length);
		walk->end = first + length;
	}
}

static bool cut_at_parts(const struct tti_handoff *handoff, size_t count,
			 struct tti_handoff_chunks *out)
{
	struct walk from = begin_walk(&handoff->from, count);
	struct walk to = begin_walk(&handoff->to, count);
	size_t at = 0;

	do {
		const size_t end = from.end < to.end ? from.end : to.end;
		const struct tti_handoff_chunk chunk = {
			.first = at,
			.count = end - at,
			.source = from.n > 1 ? from.part : -1,
			.dest = to.n > 1 ? to.part : -1,
			.den = 1,
		};

		if (!tti_vec_push(&out->list, chunk))
			return false;
		at = end;
		walk_to(&from, at);
		walk_to(&to, at);
	} while (at < count);
	return true;
}

/* -- Stripes --------------------------------------------------------------------------- */

struct cut {
	uint32_t num, den;
};

struct cuts {
	TTI_VEC(struct cut) list;
};

static int by_place(const void *left, const void *right)
{
	const struct cut *a = left, *b = right;
	const uint64_t x = (uint64_t)a->num * b->den, y = (uint64_t)b->num * a->den;

	return x < y ? -1 : x > y;
}

/* Where each stripe of one host begins: of pairs list.at[first ...]. *next: past them. */
static bool cut_for_host(const struct tti_handoff_hosts *hosts,
			 const struct tti_handoff_pairs *pairs, size_t first, struct cuts *cuts,
			 size_t *next)
{
	const int32_t host = hosts->of[pairs->list.at[first].to];
	struct cut cut = { 0, 0 };
	size_t end = first;

	for (; end < pairs->list.n && hosts->of[pairs->list.at[end].to] == host; end++)
		cut.den += pairs->list.at[end].share;
	for (size_t i = first; i < end; i++) {
		if (!tti_vec_push(&cuts->list, cut))
			return false;
		cut.num += pairs->list.at[i].share;
	}
	*next = end;
	return true;
}

/* Nothing goes between hosts: as many equal parts as sources serve the host of most. */
static bool cut_for_sources(const struct tti_handoff_hosts *hosts, struct cuts *cuts)
{
	struct cut cut = { 0, 1 };

	for (int32_t host = 0; host < hosts->nreceiving; host++) {
		const uint32_t count = (uint32_t)tti_handoff_count(&hosts->from, host);

		if (count > cut.den)
			cut.den = count;
	}
	if (cut.den > TTI_HANDOFF_PAIRS_MOST)
		cut.den = TTI_HANDOFF_PAIRS_MOST;
	for (; cut.num < cut.den; cut.num++)
		if (!tti_vec_push(&cuts->list, cut))
			return false;
	return true;
}

static bool find_cuts(const struct tti_handoff_hosts *hosts, const struct tti_handoff_pairs *pairs,
		      struct cuts *cuts)
{
	size_t kept = 0;

	for (size_t next = 0; next < pairs->list.n;)
		if (!cut_for_host(hosts, pairs, next, cuts, &next))
			return false;
	if (pairs->list.n == 0 && !cut_for_sources(hosts, cuts))
		return false;
	qsort(cuts->list.at, cuts->list.n, sizeof(*cuts->list.at), by_place);
	for (size_t i = 1; i < cuts->list.n; i++)
		if (by_place(&cuts->list.at[kept], &cuts->list.at[i]) != 0)
			cuts->list.at[++kept] = cuts->list.at[i];
	cuts->list.n = kept + 1;
	return true;
}

static size_t place_of(const struct cut *cut, size_t count, size_t line)
{
	const size_t at =
		count / cut->den * cut->num + count % cut->den * (size_t)cut->num / cut->den;

	return at - at % line;
}

static bool cut_into_stripes(const struct tti_handoff_hosts *hosts,
			     const struct tti_handoff_pairs *pairs, size_t count, size_t line,
			     struct tti_handoff_chunks *out)
{
	struct cuts cuts = { 0 };
	bool done = find_cuts(hosts, pairs, &cuts);

	for (size_t i = 0; i < cuts.list.n && done; i++) {
		const struct cut *cut = &cuts.list.at[i];
		const size_t at = place_of(cut, count, line);
		const size_t end = i + 1 < cuts.list.n ? place_of(cut + 1, count, line) : count;
		const struct tti_handoff_chunk chunk = {
			.first = at,
			.count = end - at,
			.source = -1,
			.dest = -1,
			.num = cut->num,
			.den = cut->den,
		};

		done = tti_vec_push(&out->list, chunk);
	}
	tti_vec_release(&cuts.list);
	return done;
}

/* -- Either ---------------------------------------------------------------------------- */

tutti_status tti_handoff_cut(const struct tti_handoff *handoff,
			     const struct tti_handoff_pairs *pairs, size_t count, size_t line,
			     struct tti_handoff_chunks *out)
{
	struct tti_handoff_chunks chunks = { 0 };
	struct tti_handoff_hosts hosts;
	bool done;

	if (tti_handoff_is_cut(&handoff->from) || tti_handoff_is_cut(&handoff->to)) {
		done = cut_at_parts(handoff, count, &chunks);
	} else {
		TTI_TRY(tti_handoff_hosts_find(handoff, &hosts));
		done = cut_into_stripes(&hosts, pairs, count, line ? line : 1, &chunks);
		tti_handoff_hosts_release(&hosts);
	}
	if (!done) {
		tti_handoff_chunks_release(&chunks);
		return tti_fail(TUTTI_ENOMEM, "a handoff of %d ranks: out of memory", handoff->n);
	}
	*out = chunks;
	return TUTTI_OK;
}
