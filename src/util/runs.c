/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/runs.h"

#include <string.h>
#include <sys/mman.h>

#define USED  (UINT32_C(1) << 31)
#define DIRTY (UINT32_C(1) << 30)
#define UNITS (DIRTY - 1)

#define LOOKS 32   /* at most, at the runs of a bin */
#define LEAST 4096 /* tags */

/* The first unit of a run says what the run is, and, if it is free, its neighbours in the bin. The
 * last unit says how long the run is, for the run behind it. All other units are 0, so that none is
 * taken for a first one. */
struct tti_run_tag {
	uint32_t word; /* USED, DIRTY, units */
	uint32_t back; /* units */
	uint32_t prev, next;
};

void tti_runs_init(struct tti_runs *runs, uint32_t limit)
{
	memset(runs, 0, sizeof(*runs));
	runs->limit = limit < TTI_RUNS_MOST ? limit : TTI_RUNS_MOST - 1;
	for (int i = 0; i < TTI_RUNS_BINS; i++)
		runs->bin[i] = TTI_RUNS_NONE;
}

void tti_runs_release(struct tti_runs *runs)
{
	if (runs->tag)
		munmap(runs->tag, (size_t)runs->room * sizeof(*runs->tag));
	runs->tag = NULL;
}

/* -- Bins ---------------------------------------------------------------- */

static int bin_of(uint32_t units)
{
	return 31 - __builtin_clz(units);
}

static void put(struct tti_runs *runs, uint32_t first, uint32_t units, uint32_t flags)
{
	struct tti_run_tag *const tag = &runs->tag[first];
	uint32_t *const head = &runs->bin[bin_of(units)];

	tag->word = units | flags;
	runs->tag[first + units - 1].back = units;
	if (flags & USED)
		return;
	tag->prev = TTI_RUNS_NONE;
	tag->next = *head;
	if (*head != TTI_RUNS_NONE)
		runs->tag[*head].prev = first;
	*head = first;
}

/* Out of its bin, if it is in one: its units are of no run. Returns what it was. */
static uint32_t lift(struct tti_runs *runs, uint32_t first)
{
	struct tti_run_tag *const tag = &runs->tag[first];
	const uint32_t word = tag->word, units = word & UNITS;

	if (!(word & USED)) {
		if (tag->prev != TTI_RUNS_NONE)
			runs->tag[tag->prev].next = tag->next;
		else
			runs->bin[bin_of(units)] = tag->next;
		if (tag->next != TTI_RUNS_NONE)
			runs->tag[tag->next].prev = tag->prev;
	}
	tag->word = 0;
	runs->tag[first + units - 1].back = 0;
	return word;
}

/* Units of no run become a free one, with their free neighbours. */
static void add_free(struct tti_runs *runs, uint32_t first, uint32_t units, uint32_t dirty)
{
	if (first > 0) {
		const uint32_t before = first - runs->tag[first - 1].back;

		if (!(runs->tag[before].word & USED)) {
			const uint32_t word = lift(runs, before);

			dirty |= word & DIRTY;
			units += word & UNITS;
			first = before;
		}
	}
	if (first + units < runs->top && !(runs->tag[first + units].word & USED)) {
		const uint32_t word = lift(runs, first + units);

		dirty |= word & DIRTY;
		units += word & UNITS;
	}
	/* Above the top all is clean. */
	if (first + units == runs->top && !dirty)
		runs->top = first;
	else
		put(runs, first, units, dirty);
}

/* -- The table ------------------------------------------------------------- */

static bool has_room(struct tti_runs *runs, uint32_t want)
{
	const size_t one = sizeof(*runs->tag);
	size_t room = runs->room ? runs->room : LEAST;
	void *fresh;

	if (want <= runs->room)
		return true;
	while (room < want)
		room *= 2;
	fresh = runs->tag ? mremap(runs->tag, runs->room * one, room * one, MREMAP_MAYMOVE)
			  : mmap(NULL, room * one, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh == MAP_FAILED)
		return false;
	runs->tag = fresh;
	runs->room = (uint32_t)room;
	return true;
}

static bool raise_top(struct tti_runs *runs, uint32_t top)
{
	if (top > runs->limit || top < runs->top || !has_room(runs, top))
		return false;
	runs->top = top;
	return true;
}

/* -- Taking ------------------------------------------------------------------ */

static uint32_t align_up(uint32_t unit, uint32_t align)
{
	return (unit + align - 1) & ~(align - 1);
}

/* What is left of a free run that was lifted, of which units [at, at + units) are taken. */
static void split(struct tti_runs *runs, uint32_t first, uint32_t word, uint32_t at, uint32_t units)
{
	const uint32_t end = first + (word & UNITS);

	put(runs, at, units, USED);
	if (at > first)
		put(runs, first, at - first, word & DIRTY);
	if (at + units < end)
		add_free(runs, at + units, end - at - units, word & DIRTY);
}

/* A free run that fits; TTI_RUNS_NONE: none of those looked at. */
static uint32_t find(const struct tti_runs *runs, uint32_t units, uint32_t align)
{
	for (int bin = bin_of(units); bin < TTI_RUNS_BINS; bin++) {
		uint32_t first = runs->bin[bin];

		for (int i = 0; i < LOOKS && first != TTI_RUNS_NONE; i++) {
			const uint32_t at = align_up(first, align);
			const uint32_t end = first + (runs->tag[first].word & UNITS);

			if (at >= first && at < end && end - at >= units)
				return first;
			first = runs->tag[first].next;
		}
	}
	return TTI_RUNS_NONE;
}

/* Of the units above the top, and the free run that ends there: that is a dirty one. */
static uint32_t take_fresh(struct tti_runs *runs, uint32_t units, uint32_t align, bool *is_dirty)
{
	const uint32_t top = runs->top;
	const uint32_t last = top ? top - runs->tag[top - 1].back : 0;
	const bool joins = last < top && !(runs->tag[last].word & USED);
	const uint32_t first = joins ? last : top, at = align_up(first, align);
	uint32_t word;

	if (at > runs->limit || units > runs->limit - at ||
	    (at + units > top && !raise_top(runs, at + units)))
		return TTI_RUNS_NONE;
	word = joins ? lift(runs, first) & DIRTY : 0;
	put(runs, at, units, USED);
	if (at > first)
		add_free(runs, first, at - first, word);
	if (at + units < top)
		add_free(runs, at + units, top - at - units, word);
	*is_dirty = word;
	return at;
}

uint32_t tti_runs_take(struct tti_runs *runs, uint32_t units, uint32_t align, bool *is_dirty)
{
	const uint32_t first = units < TTI_RUNS_MOST ? find(runs, units, align) : TTI_RUNS_NONE;
	uint32_t word, at;

	*is_dirty = false;
	if (units >= TTI_RUNS_MOST)
		return TTI_RUNS_NONE;
	if (first == TTI_RUNS_NONE)
		return take_fresh(runs, units, align, is_dirty);
	word = lift(runs, first);
	at = align_up(first, align);
	split(runs, first, word, at, units);
	*is_dirty = word & DIRTY;
	return at;
}

uint32_t tti_runs_units(const struct tti_runs *runs, uint32_t first)
{
	const uint32_t word = first < runs->top ? runs->tag[first].word : 0;

	return word & USED ? word & UNITS : 0;
}

void tti_runs_give(struct tti_runs *runs, uint32_t first, bool is_dirty)
{
	const uint32_t word = lift(runs, first);

	add_free(runs, first, word & UNITS, is_dirty ? DIRTY : 0);
}

/* The run, which ends at `end`, gets units up to `want`. */
static bool lengthen(struct tti_runs *runs, uint32_t first, uint32_t end, uint32_t want,
		     bool *is_dirty)
{
	uint32_t word;

	if (end == runs->top) {
		if (!raise_top(runs, want))
			return false;
		lift(runs, first);
		put(runs, first, want - first, USED);
		return true;
	}
	word = runs->tag[end].word;
	if (word & USED || (word & UNITS) < want - end)
		return false;
	lift(runs, end);
	lift(runs, first);
	put(runs, first, want - first, USED);
	if (end + (word & UNITS) > want)
		add_free(runs, want, end + (word & UNITS) - want, word & DIRTY);
	*is_dirty = word & DIRTY;
	return true;
}

bool tti_runs_resize(struct tti_runs *runs, uint32_t first, uint32_t units, bool *is_dirty)
{
	const uint32_t old = tti_runs_units(runs, first);
	const bool loses_dirty = *is_dirty;

	*is_dirty = false;
	if (units > runs->limit - first)
		return false;
	if (units > old)
		return lengthen(runs, first, first + old, first + units, is_dirty);
	if (units == old)
		return true;
	lift(runs, first);
	put(runs, first, units, USED);
	add_free(runs, first + units, old - units, loses_dirty ? DIRTY : 0);
	return true;
}

uint32_t tti_runs_clean(struct tti_runs *runs, uint32_t *units)
{
	for (int bin = 0; bin < TTI_RUNS_BINS; bin++) {
		uint32_t first = runs->bin[bin];

		while (first != TTI_RUNS_NONE && !(runs->tag[first].word & DIRTY))
			first = runs->tag[first].next;
		if (first == TTI_RUNS_NONE)
			continue;
		*units = lift(runs, first) & UNITS;
		add_free(runs, first, *units, 0);
		return first;
	}
	return TTI_RUNS_NONE;
}
