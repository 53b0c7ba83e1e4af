/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_MSCCL_VALUES_H
#define TTI_COLL_MSCCL_VALUES_H

/* Private to the reader of MSCCL's files: what places of buffers hold while its steps are
 * gone through in order (msccl_emit.c).
 *
 * A value is what some place of a buffer holds: part of the sum of one chunk, or the
 * chunk of one rank. It is followed from place to place, as long as a place that holds it
 * is still to be read. Where it lies in a program:
 *
 *     main      it is the chunk's value at that rank, as programs know it
 *     incoming  it is the message of a RECV, which found the chunk's value in use
 *
 * So a program never holds more of a chunk than one value. */

#include "coll/files/msccl_file.h"

#define TTI_MSCCL_NONE (-1)

struct tti_msccl_value {
	int32_t chunk;
	int32_t refs;   /* places that hold it and will be read                     */
	int32_t recv;   /* incoming: the RECV, an index into steps; TTI_MSCCL_NONE: main      */
	int32_t peer;   /* incoming: who sent it                                    */
	int32_t origin; /* the step that made it; TTI_MSCCL_NONE: an input                    */
};

/* What of one event's places is read again before it is written. */
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

/* Arrays, which places are ever read, and the inputs. */
TUTTI_CHECKED tutti_status tti_msccl_values_init(struct tti_msccl_emitter *e);
void tti_msccl_values_release(struct tti_msccl_emitter *e);

/* A value of no place, with an empty set; NONE: out of memory. */
int32_t tti_msccl_new_value(struct tti_msccl_emitter *e, int32_t chunk, int32_t origin);
/* One that holds it less; the last one ends it. false: out of memory. */
bool tti_msccl_drop(struct tti_msccl_emitter *e, int rank, int32_t value);
/* The place holds `value` (NONE: nothing), and no longer what it held. Likewise. */
bool tti_msccl_set_place(struct tti_msccl_emitter *e, int rank, int32_t place, int32_t value);
/* Whether a value is held by others than places a and b (NONE: none). */
bool tti_msccl_read_elsewhere(const struct tti_msccl_emitter *e, int32_t value, int32_t a,
			      int32_t b);

#endif
