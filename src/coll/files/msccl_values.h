/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_MSCCL_VALUES_H
#define TTI_COLL_MSCCL_VALUES_H

/* Private to the reader of MSCCL's files: which value each place of a buffer holds while
 * msccl_emit.c goes through the events in order.
 *
 * A value is the input of one rank for a chunk, or a partial sum of several. It is followed from
 * place to place for as long as some step will still read a place that holds it. In the program a
 * value is one of two things:
 *
 *     main      the program's value of its chunk on that rank
 *     incoming  the message of a RECV that arrived while the rank used another value of the chunk
 *
 * So a program never keeps more than one value of a chunk on a rank. */

#include "coll/files/msccl_file.h"

#define TTI_MSCCL_NONE (-1)

struct tti_msccl_value {
	int32_t chunk;
	int32_t refs;   /* places that hold it and will be read                     */
	int32_t recv;   /* incoming: the RECV, an index into steps; TTI_MSCCL_NONE: main      */
	int32_t peer;   /* incoming: who sent it                                    */
	int32_t origin; /* the step that made it; TTI_MSCCL_NONE: an input                    */
};

/* Which places of an event are read again before they are written. */
#define TTI_MSCCL_SRC_LIVES 1
#define TTI_MSCCL_DST_LIVES 2

struct tti_msccl_emitter {
	const struct tti_msccl *m;
	const struct tti_msccl_events *events;
	struct tti_program *prog;
	size_t words;     /* of a set of ranks                                   */
	int32_t *place;   /* of each place: the value, TTI_MSCCL_NONE                      */
	int32_t *read;    /* of each place: whether it will be read             */
	uint8_t *lives;   /* of each event                                       */
	int32_t *main;    /* [n * nvalues]: the value, TTI_MSCCL_NONE                      */
	int32_t *looked;  /* the same: the last step that reads or replaces it   */
	int32_t *touched; /* the same: the last step on it at all                */
	int32_t *reduced; /* the same: the last RECV_REDUCE                      */
	int32_t *from;    /* [n * n]: of a rank, the last receive from another   */
	int32_t *held;    /* of each thread block: what it sends next, TTI_MSCCL_NONE      */
	int32_t *message; /* of each thread block that gets: what is on its way  */
	TTI_VEC(struct tti_msccl_value) value;
	TTI_VEC(uint64_t) set;   /* of each value: whose contributions it has      */
	TTI_VEC(int32_t) unused; /* values                                         */
};

/* Where chunk `chunk` of the vector stands in a rank's input or output; NONE: not there. */
int32_t tti_msccl_home_of(const struct tti_msccl_emitter *e, int rank, uint8_t buf, int32_t chunk);
/* The places of an event. */
int32_t tti_msccl_src_of(const struct tti_msccl_emitter *e, const struct tti_msccl_event *event);
int32_t tti_msccl_dst_of(const struct tti_msccl_emitter *e, const struct tti_msccl_event *event);

static inline size_t tti_msccl_cell(const struct tti_msccl_emitter *e, int rank, int32_t chunk)
{
	return (size_t)rank * (size_t)e->m->nvalues + (size_t)chunk;
}

static inline int32_t *tti_msccl_main_of(const struct tti_msccl_emitter *e, int rank, int32_t chunk)
{
	return &e->main[tti_msccl_cell(e, rank, chunk)];
}

static inline uint64_t *tti_msccl_set_of(const struct tti_msccl_emitter *e, int32_t value)
{
	return e->set.at + (size_t)value * e->words;
}

/* Allocate the arrays, find which places are ever read, and give the inputs their values. */
TUTTI_CHECKED tutti_status tti_msccl_values_init(struct tti_msccl_emitter *e);
void tti_msccl_values_release(struct tti_msccl_emitter *e);

/* A new value that no place holds, with no contributions; NONE: out of memory. */
int32_t tti_msccl_new_value(struct tti_msccl_emitter *e, int32_t chunk, int32_t origin);
/* One place less holds the value; without any it ends. false: out of memory. */
bool tti_msccl_drop(struct tti_msccl_emitter *e, int rank, int32_t value);
/* Let a place hold `value` (NONE: nothing) in place of what it held. false: out of memory. */
bool tti_msccl_set_place(struct tti_msccl_emitter *e, int rank, int32_t place, int32_t value);
/* Whether a value is held by others than places a and b (NONE: none). */
bool tti_msccl_read_elsewhere(const struct tti_msccl_emitter *e, int32_t value, int32_t a,
			      int32_t b);

#endif
