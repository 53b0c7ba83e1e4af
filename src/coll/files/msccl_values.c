/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/files/msccl_values.h"

#include <string.h>

#include "util/bitset.h"
#include "util/error.h"
#include "util/mem.h"

/* -- Places ------------------------------------------------------------------------ */

/* Where chunk `chunk` of the vector stands in a rank's input or output; TTI_MSCCL_NONE: not
 * there. */
int32_t tti_msccl_home_of(const struct tti_msccl_emitter *e, int rank, uint8_t buf, int32_t chunk)
{
	const struct tti_msccl *m = e->m;
	const struct tti_program *prog = &e->prog[rank];
	const int32_t own = m->nchunks / m->n;
	const bool part = tti_msccl_holder(m, buf) == TTI_HOLDER_OWNER;

	if (!(buf == TTI_MSCCL_INPUT ? tti_chunk_is_input(prog, chunk)
				     : tti_chunk_is_output(prog, chunk)))
		return TTI_MSCCL_NONE;
	/* The chunks for one rank, or from one rank, stand in a row. */
	if (tti_collective_is_by_pair(m->coll))
		return tti_msccl_place(m, rank, buf,
				       (buf == TTI_MSCCL_INPUT ? tti_chunk_dest(prog, chunk)
							       : tti_chunk_source(prog, chunk)) *
						       own +
					       chunk % own);
	return tti_msccl_place(e->m, rank, buf, part ? chunk - rank * own : chunk);
}

int32_t tti_msccl_src_of(const struct tti_msccl_emitter *e, const struct tti_msccl_event *event)
{
	const struct tti_msccl_step *step = &e->m->steps.at[event->step];

	return tti_msccl_place(e->m, tti_msccl_gpu_of(e->m, event->step), step->src,
			       step->srcoff + event->chunk);
}

int32_t tti_msccl_dst_of(const struct tti_msccl_emitter *e, const struct tti_msccl_event *event)
{
	const struct tti_msccl_step *step = &e->m->steps.at[event->step];

	return tti_msccl_place(e->m, tti_msccl_gpu_of(e->m, event->step), step->dst,
			       step->dstoff + event->chunk);
}

/* What an event does with its places. Of a step of two halves only the first one touches them. */
static bool reads_src(uint8_t type)
{
	return type == TTI_MSCCL_S || type == TTI_MSCCL_RRC || type == TTI_MSCCL_RRS ||
	       type == TTI_MSCCL_RRCS || type == TTI_MSCCL_CPY || type == TTI_MSCCL_RE;
}

static bool writes_dst(uint8_t type)
{
	return type == TTI_MSCCL_R || type == TTI_MSCCL_RCS || type == TTI_MSCCL_RRC ||
	       type == TTI_MSCCL_RRCS || type == TTI_MSCCL_CPY || type == TTI_MSCCL_RE;
}

static bool is_second_half(uint8_t type, uint8_t half)
{
	return half == TTI_MSCCL_PUT && type != TTI_MSCCL_S;
}

/* Go from the last event to the first, and find which places are read again after each of them; what
 * is left at the first event are the inputs that are ever read. */
static void find_lives(struct tti_msccl_emitter *e)
{
	int32_t *read = e->read;

	for (int rank = 0; rank < e->m->n; rank++)
		for (int32_t chunk = 0; chunk < e->m->nvalues; chunk++) {
			const int32_t home = tti_msccl_home_of(e, rank, TTI_MSCCL_OUTPUT, chunk);

			if (home != TTI_MSCCL_NONE)
				read[home] = 1;
		}
	for (size_t i = e->events->at.n; i-- > 0;) {
		const int32_t index = e->events->order[i];
		const struct tti_msccl_event *event = &e->events->at.at[index];
		const uint8_t type = e->m->steps.at[event->step].type;

		if (is_second_half(type, event->half))
			continue;
		if (reads_src(type) && read[tti_msccl_src_of(e, event)])
			e->lives[index] |= TTI_MSCCL_SRC_LIVES;
		if (writes_dst(type) && read[tti_msccl_dst_of(e, event)])
			e->lives[index] |= TTI_MSCCL_DST_LIVES;
		if (writes_dst(type))
			read[tti_msccl_dst_of(e, event)] = type == TTI_MSCCL_RE;
		if (reads_src(type))
			read[tti_msccl_src_of(e, event)] = 1;
	}
}

/* -- Values ------------------------------------------------------------------------ */

/* A new value without contributions; TTI_MSCCL_NONE: out of memory. */
int32_t tti_msccl_new_value(struct tti_msccl_emitter *e, int32_t chunk, int32_t origin)
{
	const struct tti_msccl_value fresh = {
		.chunk = chunk, .recv = TTI_MSCCL_NONE, .peer = TTI_MSCCL_NONE, .origin = origin
	};
	int32_t value;

	if (e->unused.n) {
		value = e->unused.at[--e->unused.n];
		e->value.at[value] = fresh;
	} else {
		value = (int32_t)e->value.n;
		if (!tti_vec_push(&e->value, fresh))
			return TTI_MSCCL_NONE;
		for (size_t w = 0; w < e->words; w++)
			if (!tti_vec_push(&e->set, 0))
				return TTI_MSCCL_NONE;
	}
	memset(tti_msccl_set_of(e, value), 0, e->words * sizeof(uint64_t));
	return value;
}

/* One place less that holds the value will be read. */
bool tti_msccl_drop(struct tti_msccl_emitter *e, int rank, int32_t value)
{
	struct tti_msccl_value *v = &e->value.at[value];

	if (--v->refs > 0)
		return true;
	if (*tti_msccl_main_of(e, rank, v->chunk) == value)
		*tti_msccl_main_of(e, rank, v->chunk) = TTI_MSCCL_NONE;
	return tti_vec_push(&e->unused, value);
}

bool tti_msccl_set_place(struct tti_msccl_emitter *e, int rank, int32_t place, int32_t value)
{
	const int32_t before = e->place[place];

	e->place[place] = value;
	if (value != TTI_MSCCL_NONE)
		e->value.at[value].refs++;
	return before == TTI_MSCCL_NONE || tti_msccl_drop(e, rank, before);
}

bool tti_msccl_read_elsewhere(const struct tti_msccl_emitter *e, int32_t value, int32_t a,
			      int32_t b)
{
	int32_t refs = e->value.at[value].refs;

	refs -= a != TTI_MSCCL_NONE && e->place[a] == value;
	refs -= b != TTI_MSCCL_NONE && b != a && e->place[b] == value;
	return refs > 0;
}

/* -- Setting up -------------------------------------------------------------------- */

static void fill(int32_t *array, size_t n)
{
	memset(array, -1, n * sizeof(*array));
}

static bool allocate(struct tti_msccl_emitter *e)
{
	const struct tti_msccl *m = e->m;
	const size_t n = (size_t)m->n, ncells = n * (size_t)m->nvalues, ntbs = m->tbs.n;
	const size_t nplaces = m->nplaces;

	e->place = tti_calloc(nplaces, sizeof(*e->place));
	e->read = tti_calloc(nplaces, sizeof(*e->read));
	e->lives = tti_calloc(e->events->at.n, sizeof(*e->lives));
	e->main = tti_calloc(ncells, sizeof(*e->main));
	e->looked = tti_calloc(ncells, sizeof(*e->looked));
	e->touched = tti_calloc(ncells, sizeof(*e->touched));
	e->reduced = tti_calloc(ncells, sizeof(*e->reduced));
	e->from = tti_calloc(n * n, sizeof(*e->from));
	e->held = tti_calloc(ntbs, sizeof(*e->held));
	e->message = tti_calloc(ntbs, sizeof(*e->message));
	if (!e->place || !e->read || !e->lives || !e->main || !e->looked || !e->touched ||
	    !e->reduced || !e->from || !e->held || !e->message)
		return false;
	fill(e->place, nplaces);
	fill(e->main, ncells);
	fill(e->looked, ncells);
	fill(e->touched, ncells);
	fill(e->reduced, ncells);
	fill(e->from, n * n);
	fill(e->held, ntbs);
	return true;
}

/* Give each input that is ever read its value. */
static bool fill_inputs(struct tti_msccl_emitter *e)
{
	for (int rank = 0; rank < e->m->n; rank++)
		for (int32_t chunk = 0; chunk < e->m->nvalues; chunk++) {
			const int32_t home = tti_msccl_home_of(e, rank, TTI_MSCCL_INPUT, chunk);
			int32_t value;

			if (home == TTI_MSCCL_NONE || !e->read[home])
				continue;
			value = tti_msccl_new_value(e, chunk, TTI_MSCCL_NONE);
			if (value == TTI_MSCCL_NONE || !tti_msccl_set_place(e, rank, home, value))
				return false;
			tti_bit_set(tti_msccl_set_of(e, value), (size_t)rank);
			*tti_msccl_main_of(e, rank, chunk) = value;
		}
	return true;
}

tutti_status tti_msccl_values_init(struct tti_msccl_emitter *e)
{
	e->words = TTI_BITSET_WORDS(e->m->n);
	if (allocate(e)) {
		find_lives(e);
		if (fill_inputs(e))
			return TUTTI_OK;
	}
	return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", e->m->doc->source);
}

void tti_msccl_values_release(struct tti_msccl_emitter *e)
{
	tti_free(e->place);
	tti_free(e->read);
	tti_free(e->lives);
	tti_free(e->main);
	tti_free(e->looked);
	tti_free(e->touched);
	tti_free(e->reduced);
	tti_free(e->from);
	tti_free(e->held);
	tti_free(e->message);
	tti_vec_release(&e->value);
	tti_vec_release(&e->set);
	tti_vec_release(&e->unused);
}
