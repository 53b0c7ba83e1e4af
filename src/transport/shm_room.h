/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_ROOM_H
#define TTI_TRANSPORT_SHM_ROOM_H

/* Where in a box of shared memory the messages of one writer lie: each takes the cells that it
 * needs, in one piece, one after the other; behind the last one it goes on at the beginning.
 *
 *     | 5 5 5 . . 3 3 3 3 3 4 4 . |     3 is the oldest, 6 fits before it or not at all
 *               ^ next                 (what is left at the end is skipped)
 *
 * Only the writer knows of this: a message says in which cell it begins, and what comes
 * back from the readers is how many of the oldest are read.
 *
 * A box is used as far as needed: who waits for each message turns round after a few, whose
 * lines are still in the caches; who runs ahead uses more.
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
	uint32_t ncells; /* of the box                                          */
	uint32_t slots;  /* so many of the longest messages it is for           */
	uint32_t ahead;  /* cells that messages may take which are not the longest */
	bool is_shared;
	uint32_t next;  /* behind the last message                               */
	bool is_packed; /* one right behind the other; else each begins a page   */
	uint32_t round; /* it turns round here, unless readers are behind        */
	/* Messages are numbered; those from oldest on, held of them, are not read yet. */
	uint32_t oldest, held;
	uint32_t begin[TTI_SHM_HELD]; /* by number                                  */
};

/* nbytes <= TTI_SHM_CELL * 2^30; of n ranks; is_shared: that all others read. `start`: number
 * of the first message. */
void tti_shm_room_init(struct tti_shm_room *room, size_t nbytes, int slots, int n, bool is_shared,
		       uint32_t start);

static inline uint32_t tti_shm_cells(size_t nbytes)
{
	return nbytes ? (uint32_t)((nbytes + TTI_SHM_CELL - 1) / TTI_SHM_CELL) : 1;
}

static inline uint32_t tti_shm_page_up(uint32_t cells)
{
	return (cells + TTI_SHM_PAGE - 1) & ~(TTI_SHM_PAGE - 1);
}

/* The place of a message of so many cells without turning round; TTI_SHM_FULL: ask
 * tti_shm_room_turn(), best after tti_shm_room_give(). */
static inline uint32_t tti_shm_room_find(const struct tti_shm_room *room, uint32_t cells)
{
	const uint32_t first = room->begin[room->oldest % TTI_SHM_HELD];
	const uint32_t end =
		!room->held || room->next > first || first > room->round ? room->round : first;
	const uint32_t at = room->is_packed ? room->next : tti_shm_page_up(room->next);

	return room->held < TTI_SHM_HELD && cells <= end && at <= end - cells ? at : TTI_SHM_FULL;
}

/* The same from the beginning, or farther on than before. Until tti_shm_room_take() both
 * say the same when they are asked again, whatever is given back. */
uint32_t tti_shm_room_turn(struct tti_shm_room *room, uint32_t cells);

/* A message lies there: the place found last, and no more cells. */
static inline void tti_shm_room_take(struct tti_shm_room *room, uint32_t at, uint32_t cells)
{
	room->begin[(room->oldest + room->held) % TTI_SHM_HELD] = at;
	room->held++;
	room->next = at + cells;
}

/* The oldest n <= held are read. */
static inline void tti_shm_room_give(struct tti_shm_room *room, uint32_t n)
{
	room->oldest += n;
	room->held -= n;
}

#endif
