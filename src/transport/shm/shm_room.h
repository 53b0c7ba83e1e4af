/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_ROOM_H
#define TTI_TRANSPORT_SHM_ROOM_H

/* The allocator of a buffer of shared memory: where in it the messages of its one writer lie. A
 * message takes as many cache lines as it needs, in one piece; the next message begins on a page
 * behind it, and behind the end the allocator goes on at the beginning.
 *
 *     | 5 5 5 . . . 3 3 3 . 4 4 . |     3 is the oldest, 6 fits before it or not at all
 *             ^ next                    (what is left at the end is skipped)
 *
 * Only the writer keeps this: a message says at which cache line it begins, and the readers say how
 * many of the oldest messages they have read.
 *
 * The allocator goes round in much of the buffer although few messages are under way at a time: a
 * cache line costs least to write again once the reader's caches have evicted it. A reader whose
 * core also does other work reads for a while, and then not for milliseconds. Once it has come
 * late, as much as the buffer holds may be under way, so that the two take turns less often. A
 * reader that has never come, as where two ranks both send first, gets no more than others.
 *
 * Owner: embedded. Threads: the port's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTI_SHM_LINE 64u /* bytes of a cache line             */
#define TTI_SHM_PAGE 64u /* lines                             */
#define TTI_SHM_HELD 64u /* messages at most, a power of two  */
#define TTI_SHM_FULL UINT32_MAX

struct tti_shm_room {
	uint32_t slots;       /* messages that may be under way, however long               */
	uint32_t flight;      /* lines that more messages may have under way together       */
	uint32_t round;       /* lines that are gone round in, but for longer messages      */
	uint32_t round_short; /* the same for short messages                                */
	uint32_t nlines;      /* of the buffer                                              */
	bool is_shared;
	uint32_t next;    /* behind the last message                                      */
	uint32_t brought; /* lines from the first on whose pages are in memory            */
	uint32_t used;    /* lines under way                                              */
	/* Messages are numbered; those from oldest on, held of them, are not read yet. */
	uint32_t oldest, held;
	uint32_t begin[TTI_SHM_HELD], lines[TTI_SHM_HELD]; /* by number */
	/* Since when there has been no room, with `unread` as the oldest message; 0: there is
	 * room. */
	int64_t full_since_ns;
	int64_t late_until_ns; /* until then the reader counts as one that comes late */
	uint32_t unread;
	uint32_t far, far_lines; /* what tti_shm_room_find_far() gave; TTI_SHM_FULL: nothing */
};

/* Bytes of a buffer for `slots` messages of slot_bytes, of one of n ranks. */
size_t tti_shm_room_bytes(size_t slot_bytes, int slots, int n);

/* A buffer of nbytes <= TTI_SHM_LINE * 2^30, for messages of at most slot_bytes, of one of n ranks
 * on so many cores. is_shared: all others read it. `start`: number of the first message. */
void tti_shm_room_init(struct tti_shm_room *room, size_t nbytes, size_t slot_bytes, int slots,
		       int n, int cores, bool is_shared, uint32_t start);

static inline uint32_t tti_shm_lines(size_t nbytes)
{
	return nbytes ? (uint32_t)((nbytes + TTI_SHM_LINE - 1) / TTI_SHM_LINE) : 1;
}

/* Where a message of so many lines goes; TTI_SHM_FULL: nowhere before more messages are read. The
 * answer stays the same until tti_shm_room_take(), whatever is given back. `whole` > lines: the
 * message is a piece of what would be one message of so many lines. */
uint32_t tti_shm_room_find(const struct tti_shm_room *room, uint32_t lines, uint32_t whole);

/* The same where tti_shm_room_find() has found nothing though all that is read was given back:
 * while the reader comes late, any place in the buffer will do. */
uint32_t tti_shm_room_find_far(struct tti_shm_room *room, uint32_t lines);

/* There is room again: how long there was none tells whether the reader comes late. */
void tti_shm_room_is_free(struct tti_shm_room *room);

/* Bring the pages up to a line into memory, and some of the next ones. */
void tti_shm_room_bring(struct tti_shm_room *room, uint8_t *buffer, uint32_t end);

/* The memory of a place that was found. */
static inline uint8_t *tti_shm_room_at(struct tti_shm_room *room, uint8_t *buffer, uint32_t at,
				       uint32_t lines)
{
	if (at + lines > room->brought)
		tti_shm_room_bring(room, buffer, at + lines);
	return buffer + (size_t)at * TTI_SHM_LINE;
}

/* A message lies at the place that was found last, and takes no more lines. */
void tti_shm_room_take(struct tti_shm_room *room, uint32_t at, uint32_t lines);

/* The oldest n <= held are read. */
void tti_shm_room_give(struct tti_shm_room *room, uint32_t n);

#endif
