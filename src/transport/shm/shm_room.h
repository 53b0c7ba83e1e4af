/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_ROOM_H
#define TTI_TRANSPORT_SHM_ROOM_H

/* Where in a box of shared memory the messages of one writer lie: each takes the cells that it
 * needs, in one piece, the next one on a page behind it; at the end it goes on at the beginning.
 *
 *     | 5 5 5 . . . 3 3 3 . 4 4 . |     3 is the oldest, 6 fits before it or not at all
 *             ^ next                    (what is left at the end is skipped)
 *
 * Only the writer knows of this: a message says in which cell it begins, and what comes
 * back from the readers is how many of the oldest are read.
 *
 * Much of a box is gone round although little of it is under way at a time: a line that was
 * read costs least to write when its reader's caches have let it go. But a reader whose core does other
 * work comes to read for a while, and then not again for milliseconds: then as much as the box holds may be
 * under way, so that the two take turns less often. That is known when it has come late once: one that never
 * comes, as two ranks that both send first, is sent no more.
 *
 * Owner: embedded. Threads: the port's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTI_SHM_CELL 64u /* bytes: a cache line                      */
#define TTI_SHM_PAGE 64u /* cells                                    */
#define TTI_SHM_HELD 64u /* messages at most, a power of two           */
#define TTI_SHM_FULL UINT32_MAX

struct tti_shm_room {
	uint32_t slots;       /* so many may be under way, however long; of more than those  */
	uint32_t flight;      /* so many cells together                                      */
	uint32_t round;       /* cells gone round, but for longer messages                    */
	uint32_t round_short; /* by short messages                                        */
	uint32_t ncells;      /* of the box                                               */
	bool is_shared;
	uint32_t next;    /* behind the last message                                      */
	uint32_t brought; /* cells from the first on whose pages are in memory            */
	uint32_t used;    /* cells under way                                              */
	/* Messages are numbered; those from oldest on, held of them, are not read yet. */
	uint32_t oldest, held;
	uint32_t begin[TTI_SHM_HELD], cells[TTI_SHM_HELD]; /* by number */
	/* Since when there has been no place, with `unread` as the oldest message; 0: there is one. */
	int64_t full_since_ns;
	int64_t late_until_ns; /* so long the reader is taken for one that comes late */
	uint32_t unread;
	uint32_t far, far_cells; /* what tti_shm_room_find_far() gave; TTI_SHM_FULL: nothing */
};

/* Bytes of a box for `slots` messages of slot_bytes, of one of n ranks. */
size_t tti_shm_room_bytes(size_t slot_bytes, int slots, int n);

/* nbytes <= TTI_SHM_CELL * 2^30, for messages of at most slot_bytes; of n ranks on so many cores; is_shared:
 * that all others read. `start`: number of the first message. */
void tti_shm_room_init(struct tti_shm_room *room, size_t nbytes, size_t slot_bytes, int slots,
		       int n, int cores, bool is_shared, uint32_t start);

static inline uint32_t tti_shm_cells(size_t nbytes)
{
	return nbytes ? (uint32_t)((nbytes + TTI_SHM_CELL - 1) / TTI_SHM_CELL) : 1;
}

/* The place of a message of so many cells; TTI_SHM_FULL: not before more are read. Until
 * tti_shm_room_take() it says the same when it is asked again, whatever is given back.
 * `whole` >= cells: pieces of what would be a message of so many; cells: it is none. */
uint32_t tti_shm_room_find(const struct tti_shm_room *room, uint32_t cells, uint32_t whole);

/* The same of a box in which tti_shm_room_find() has no place, after what is read was given back: one in all of
 * the box while the reader comes late. */
uint32_t tti_shm_room_find_far(struct tti_shm_room *room, uint32_t cells);

/* There is a place at once: for how long there was none tells whether the reader comes late. */
void tti_shm_room_is_free(struct tti_shm_room *room);

/* The pages of the box up to a cell into memory, and some that come next. */
void tti_shm_room_bring(struct tti_shm_room *room, uint8_t *box, uint32_t end);

/* A place that was found, to be written. */
static inline uint8_t *tti_shm_room_at(struct tti_shm_room *room, uint8_t *box, uint32_t at,
				       uint32_t cells)
{
	if (at + cells > room->brought)
		tti_shm_room_bring(room, box, at + cells);
	return box + (size_t)at * TTI_SHM_CELL;
}

/* A message lies there: the place found last, and no more cells. */
void tti_shm_room_take(struct tti_shm_room *room, uint32_t at, uint32_t cells);

/* The oldest n <= held are read. */
void tti_shm_room_give(struct tti_shm_room *room, uint32_t n);

#endif
