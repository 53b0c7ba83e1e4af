/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm_room.h"

#include <string.h>

#include "reduce/reduce.h"

/* Measured on an AMD EPYC (docs/performance.md). While readers keep pace the lines of a message
 * are in one of two caches and have to move: those of few messages, each on a page of its own,
 * since processors fetch beyond what is read, what is just being written. Lines that are
 * written past the caches are in neither: there more messages mean less asking what is read,
 * but not where several readers share a core, as the first one has brought the lines there.
 *
 * Who runs ahead has less to wait for with 16, one behind the other. Longer messages soon take
 * so many that they leave the caches for nothing: what all boxes of a rank take together is
 * limited, and what is longer than a short one has `slots` of its length where all read it. */
#define PAST         8u
#define AHEAD        16u
#define AHEAD_BYTES  (UINT32_C(256) << 10) /* of all links of a rank        */
#define AHEAD_MOST   (UINT32_C(128) << 10) /* of one: two of 64 KiB, as calls are cut */
#define AHEAD_LEAST  (UINT32_C(16) << 10)
#define SHORT_SHARED (UINT32_C(8) << 10)

static uint32_t least(uint64_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

void tti_shm_room_init(struct tti_shm_room *room, size_t nbytes, int slots, int n, bool is_shared,
		       uint32_t start)
{
	uint32_t ahead = is_shared ? AHEAD_MOST : least(AHEAD_BYTES / (uint32_t)n, AHEAD_MOST);

	if (ahead < AHEAD_LEAST)
		ahead = AHEAD_LEAST;
	memset(room, 0, sizeof(*room));
	room->ncells = (uint32_t)(nbytes / TTI_SHM_CELL);
	room->slots = (uint32_t)slots;
	room->ahead = ahead / TTI_SHM_CELL;
	room->is_shared = is_shared && n > 2;
	room->oldest = start;
}

/* How far messages of so many cells go while their readers keep pace, */
static uint32_t near_end(const struct tti_shm_room *room, uint32_t cells)
{
	const uint64_t page = tti_shm_page_up(cells), slots = room->slots * page;
	const bool past = !room->is_shared && tti_copies_past((size_t)cells * TTI_SHM_CELL);
	const uint32_t most = past ? least(PAST * page, room->ahead) : 0;

	return least(slots > most ? slots : most, room->ncells);
}

/* and at most. */
static uint32_t far_end(const struct tti_shm_room *room, uint32_t cells)
{
	const uint32_t near = near_end(room, cells);
	const uint32_t far = least(near + (uint64_t)AHEAD * cells, room->ahead);

	if (far <= near || (room->is_shared && cells > SHORT_SHARED / TTI_SHM_CELL))
		return near;
	return least(far, room->ncells);
}

/* Messages lie from first to next, or from first to the end and from the beginning to next. */
uint32_t tti_shm_room_turn(struct tti_shm_room *room, uint32_t cells)
{
	const uint32_t first = room->begin[room->oldest % TTI_SHM_HELD];
	const uint32_t end = far_end(room, cells);
	const bool turned = room->next <= first;
	const uint32_t stop = turned ? first : end;
	const uint32_t at = tti_shm_room_find(room, cells);

	if (at != TTI_SHM_FULL || room->held == TTI_SHM_HELD || cells > room->ncells)
		return at;
	if (!room->held || (!turned && cells <= first)) {
		if (room->held < 2) {
			room->round = least(room->held ? room->round : end, near_end(room, cells));
			room->is_packed = false;
		}
		if (!room->held)
			room->next = 0;
		return 0;
	}
	if (cells > stop || room->next > stop - cells)
		return TTI_SHM_FULL;
	room->is_packed = true;
	room->round = least(2 * (uint64_t)room->round, end);
	if (room->round < room->next + cells)
		room->round = room->next + cells;
	return room->next;
}
