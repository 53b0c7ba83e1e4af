/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/shm_room.h"

#include <string.h>
#include <sys/mman.h>

#include "util/clock.h"
#include "util/measured.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

/* A writer goes round in TTI_SHM_ROUND_BYTES of the buffer where its rank has a core, and in no
 * more, which the cache that all cores share would keep less well. Where ranks share cores it is
 * twice as much for all ranks of a core together. A broadcast buffer takes turns in its slots
 * there, as its first reader on a core brings a message into the cache of that core; but short
 * messages go round in more, so that their writer can be far ahead: that saves a context switch for
 * every two messages.
 *
 * How much is under way: two pieces of a call, or as many short messages as take no more room. All
 * links of a rank together have little under way, or what is read late has left the caches of its
 * writer. Long broadcasts have their slots and no more.
 *
 * Where a reader comes late both ranks switch context for each slot, so up to TTI_SHM_LATE_BYTES
 * are under way. A buffer is that long for this case; its memory is allocated as it is used. */
#define FLIGHT_BYTES (UINT32_C(256) << 10) /* of all links of a rank                */
#define FLIGHT_MOST  (UINT32_C(128) << 10)
#define FLIGHT_LEAST (UINT32_C(16) << 10)
#define SHORT_BYTES  (UINT32_C(8) << 10)
#define PAGE_BYTES   (TTI_SHM_PAGE * TTI_SHM_LINE)
#define SHORT_ROUND  (TTI_SHM_HELD * PAGE_BYTES) /* of what all read, where cores are shared */
#define AHEAD_MOST   (64 * TTI_SHM_PAGE)

#define LATE_FOR_NS (100 * TTI_NS_PER_MS)

static uint32_t clamp(uint64_t value, uint32_t low, uint32_t high)
{
	if (value < low)
		return low;
	return value > high ? high : (uint32_t)value;
}

static size_t page_up(size_t count, size_t page)
{
	return (count + page - 1) / page * page;
}

/* The part of a link in so many bytes of a rank. */
static size_t of_link(size_t nbytes, int n)
{
	return nbytes / (size_t)(n > 1 ? n - 1 : 1);
}

/* A buffer for so many of the longest messages, or for of_link(nbytes), whichever is larger. */
static size_t buffer_bytes(size_t slot_bytes, int slots, size_t nbytes, int n)
{
	const size_t needed = page_up(slot_bytes, PAGE_BYTES) * (size_t)slots;
	const size_t round = page_up(of_link(nbytes, n), PAGE_BYTES);

	return needed > round ? needed : round;
}

size_t tti_shm_room_bytes(size_t slot_bytes, int slots, int n)
{
	return buffer_bytes(slot_bytes, slots, TTI_SHM_LATE_BYTES, n);
}

void tti_shm_room_init(struct tti_shm_room *room, size_t nbytes, size_t slot_bytes, int slots,
		       int n, int cores, bool is_shared, uint32_t start)
{
	const uint32_t nlines = (uint32_t)(nbytes / TTI_SHM_LINE);
	const uint32_t most = clamp(
		buffer_bytes(slot_bytes, slots, TTI_SHM_ROUND_BYTES, n) / TTI_SHM_LINE, 0, nlines);
	const uint64_t round =
		(is_shared ? TTI_SHM_ROUND_BYTES : of_link(TTI_SHM_ROUND_BYTES, n)) / TTI_SHM_LINE;
	const uint64_t flight = FLIGHT_BYTES / (uint64_t)(is_shared ? 1 : n);

	memset(room, 0, sizeof(*room));
	room->slots = (uint32_t)slots;
	room->flight = clamp(flight, FLIGHT_LEAST, FLIGHT_MOST) / TTI_SHM_LINE;
	if (cores >= n)
		room->round = clamp(round, 0, most);
	else if (!is_shared)
		room->round = clamp(2 * round * (uint64_t)cores / (uint64_t)n, 0, most);
	room->round -= room->round % TTI_SHM_PAGE;
	room->round_short = room->round;
	if (is_shared && !room->round)
		room->round_short = clamp(SHORT_ROUND / TTI_SHM_LINE, 0, most);
	room->nlines = nlines;
	room->is_shared = is_shared && n > 2;
	room->oldest = start;
	room->far = TTI_SHM_FULL;
}

static bool is_short(uint32_t lines)
{
	return lines <= SHORT_BYTES / TTI_SHM_LINE;
}

/* Whether one more message may be under way. Pieces may have as much under way together as the
 * messages that they are pieces of, so that cutting does not hold up the sender. */
static bool may_fly(const struct tti_shm_room *room, uint32_t lines, uint64_t whole)
{
	const uint64_t wholes = whole > lines ? whole * room->slots : 0;
	const uint64_t most = wholes > room->flight ? wholes : room->flight;

	if (room->held < room->slots)
		return true;
	if (room->is_shared && !is_short(lines))
		return false;
	return room->held < TTI_SHM_HELD && room->used + lines <= most;
}

/* A place before line `end`. Messages lie from first to next, or from first to the end and from the
 * beginning to next. */
static uint32_t find_before(const struct tti_shm_room *room, uint32_t lines, uint32_t end)
{
	const uint32_t first = room->begin[room->oldest % TTI_SHM_HELD];
	const uint32_t behind = (uint32_t)page_up(room->next, TTI_SHM_PAGE);
	const bool turned = room->held && room->next <= first;
	const bool turns = lines > end || behind > end - lines;

	if (turned && turns)
		return TTI_SHM_FULL;
	if (turned)
		return lines <= first && behind <= first - lines ? behind : TTI_SHM_FULL;
	if (!turns)
		return behind;
	return !room->held || lines <= first ? 0 : TTI_SHM_FULL;
}

uint32_t tti_shm_room_find(const struct tti_shm_room *room, uint32_t lines, uint32_t whole)
{
	const uint64_t slots = (uint64_t)page_up(whole, TTI_SHM_PAGE) * room->slots;
	const uint32_t round = is_short(lines) ? room->round_short : room->round;

	if (room->far_lines == lines && room->far != TTI_SHM_FULL)
		return room->far;
	if (lines > room->nlines || !may_fly(room, lines, whole))
		return TTI_SHM_FULL;
	return find_before(room, lines, clamp(slots, round, room->nlines));
}

/* The message that was the oldest is read at last. */
static void note_wait(struct tti_shm_room *room, int64_t now_ns)
{
	if (now_ns - room->full_since_ns > TTI_SHM_LATE_NS)
		room->late_until_ns = now_ns + LATE_FOR_NS;
}

uint32_t tti_shm_room_find_far(struct tti_shm_room *room, uint32_t lines)
{
	const int64_t now_ns = tti_now_ns();

	if (room->full_since_ns && room->unread != room->oldest)
		note_wait(room, now_ns);
	if (!room->full_since_ns || room->unread != room->oldest) {
		room->full_since_ns = now_ns;
		room->unread = room->oldest;
	}
	if (now_ns >= room->late_until_ns || room->held == TTI_SHM_HELD || lines > room->nlines)
		return TTI_SHM_FULL;
	room->far_lines = lines;
	room->far = find_before(room, lines, room->nlines);
	return room->far;
}

__attribute__((noinline, cold)) void tti_shm_room_is_free(struct tti_shm_room *room)
{
	note_wait(room, tti_now_ns());
	room->full_since_ns = 0;
}

/* The first touch of a page costs its writer and its reader some microseconds. In one call for many
 * pages each costs half of that or less, and the reader maps many at once. So as many pages as
 * there are already are brought in ahead, within the round: never more than twice as many as are
 * used. An older kernel refuses, and pages come as they are touched. */
__attribute__((noinline, cold)) void tti_shm_room_bring(struct tti_shm_room *room, uint8_t *buffer,
							uint32_t end)
{
	const uint32_t first = room->brought, need = (uint32_t)page_up(end, TTI_SHM_PAGE);
	const uint32_t ahead = need + clamp(first, 0, AHEAD_MOST);

	room->brought = clamp(ahead, need, room->round > need ? room->round : need);
	if (room->brought - first > TTI_SHM_PAGE)
		(void)madvise(buffer + (size_t)first * TTI_SHM_LINE,
			      (size_t)(room->brought - first) * TTI_SHM_LINE, MADV_POPULATE_WRITE);
}

void tti_shm_room_take(struct tti_shm_room *room, uint32_t at, uint32_t lines)
{
	const uint32_t place = (room->oldest + room->held++) % TTI_SHM_HELD;

	room->far = TTI_SHM_FULL;
	room->begin[place] = at;
	room->lines[place] = lines;
	room->used += lines;
	room->next = at + lines;
}

void tti_shm_room_give(struct tti_shm_room *room, uint32_t n)
{
	for (; n; n--, room->held--)
		room->used -= room->lines[room->oldest++ % TTI_SHM_HELD];
}
