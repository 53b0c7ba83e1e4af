/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/handoff.h"
#include "util/error.h"

/* Where a vector is cut: at the parts of sharded sides, and each part, or the whole, where its
 * stripes begin; in memory, where the part that each rank moves begins. */

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

/* -- Parts ------------------------------------------------------------------------- */

/* One side while the vector is walked along. */
struct walk {
	size_t count, end; /* of the part */
	int n, part;
	size_t line; /* parts but the last end at multiples of it */
};

static void find_end(struct walk *walk)
{
	size_t first, length;

	tutti_part(walk->count, walk->n, walk->part, &first, &length);
	walk->end = first + length;
	if (walk->part < walk->n - 1)
		walk->end -= walk->end % walk->line;
}

static struct walk begin_parts(size_t count, int n, size_t line)
{
	struct walk walk = { .count = count, .n = n, .line = line ? line : 1 };

	find_end(&walk);
	return walk;
}

static struct walk begin_walk(const tutti_side *side, size_t count)
{
	return begin_parts(count, tti_handoff_is_sharded(side) ? side->n : 1, 1);
}

/* To the part that has element `at`. */
static void walk_to(struct walk *walk, size_t at)
{
	while (walk->end <= at && walk->part < walk->n - 1) {
		walk->part++;
		find_end(walk);
	}
}

/* -- Stripes ----------------------------------------------------------------------- */

static size_t place_of(uint32_t units, size_t count, size_t line)
{
	const size_t at = count / TTI_HANDOFF_UNITS * units +
			  count % TTI_HANDOFF_UNITS * units / TTI_HANDOFF_UNITS;

	return at - at % line;
}

/* One part, given as a chunk, stripe by stripe. */
static bool cut_part(const struct tti_handoff_shape *shape, const struct tti_handoff_chunk *part,
		     size_t line, struct tti_handoff_chunks *out)
{
	uint32_t first, next;
	const uint32_t n = tti_handoff_stripes_of(shape, part->source, part->dest, &first);

	for (uint32_t at = 0; at < TTI_HANDOFF_UNITS; at = next) {
		struct tti_handoff_chunk chunk = *part;
		size_t begin, end;

		next = tti_handoff_next_cut(shape, first, n, at);
		begin = place_of(at, part->count, line);
		end = next < TTI_HANDOFF_UNITS ? place_of(next, part->count, line) : part->count;
		chunk.at = at;
		chunk.first = part->first + begin;
		chunk.count = end - begin;
		if (!tti_vec_push(&out->list, chunk))
			return false;
	}
	return true;
}

/* -- Both -------------------------------------------------------------------------- */

tutti_status tti_handoff_split(const struct tti_handoff_call *call,
			       const struct tti_handoff_shape *shape, size_t count, size_t line,
			       struct tti_handoff_chunks *out)
{
	struct walk from = begin_walk(&call->from, count);
	struct walk to = begin_walk(&call->to, count);
	struct walk mover = begin_parts(count, shape ? 1 : call->n, line);
	struct tti_handoff_chunks chunks = { 0 };
	size_t at = 0;
	bool good;

	/* A part that is shorter than a line may be empty, the first one too. */
	walk_to(&mover, 0);
	do {
		const size_t nearer = from.end < to.end ? from.end : to.end;
		const size_t end = nearer < mover.end ? nearer : mover.end;
		const struct tti_handoff_chunk part = {
			.first = at,
			.count = end - at,
			.source = from.n > 1 ? from.part : -1,
			.dest = to.n > 1 ? to.part : -1,
			.at = (uint32_t)mover.part,
		};

		good = shape ? cut_part(shape, &part, line ? line : 1, &chunks)
			     : tti_vec_push(&chunks.list, part);
		at = end;
		walk_to(&from, at);
		walk_to(&to, at);
		walk_to(&mover, at);
	} while (at < count && good);
	if (!good) {
		tti_handoff_chunks_release(&chunks);
		return tti_fail(TUTTI_ENOMEM, "a handoff of %d ranks: out of memory", call->n);
	}
	*out = chunks;
	return TUTTI_OK;
}
