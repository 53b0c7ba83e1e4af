/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/shm_link.h"

#include <string.h>

#include "util/error.h"

/* The reader of short messages gives lines back in quarters of a ring, so that
 * its counter's cache line moves rarely. */
#define TELL_EVERY (TTI_SHM_RING / 4)

/* So many of the lines of a next message are fetched while its writer waits. */
#define OWNED_CELLS 128u

static __attribute__((noinline, cold)) void broken(const struct tti_shm_link *link,
						   const char *what)
{
	struct tti_port *const port = &link->port->base;

	if (port->failure != TUTTI_OK)
		return;
	tti_port_fail(port,
		      tti_fail(TUTTI_EPROTO, "shared memory: rank %d left %s for rank %d",
			       link->base.peer, what, port->rank),
		      link->base.peer);
}

void tti_shm_look_back(struct tti_shm_link *link)
{
	const uint64_t done = atomic_load_explicit(&link->tx_done->count, memory_order_acquire);
	const uint32_t of_all = atomic_load_explicit(&link->tx_done->of_all, memory_order_acquire);
	const uint32_t start = link->port->start;
	const uint32_t lines = (uint32_t)done + start - (uint32_t)link->tx_lines_back;
	const uint32_t boxed = (uint32_t)(done >> 32) + start - link->tx_room.oldest;
	const uint32_t for_all = of_all - (uint32_t)link->tx_for_all_back;

	tti_tsan_take((uint32_t)link->base.peer, (uint32_t)link->port->base.rank);
	if (lines > link->tx_lines - link->tx_lines_back || boxed > link->tx_room.held ||
	    for_all > link->port->for_all - link->tx_for_all_back) {
		broken(link, "a count of what it read that cannot be");
		return;
	}
	link->tx_lines_back += lines;
	link->tx_for_all_back += for_all;
	tti_shm_room_give(&link->tx_room, boxed);
}

static uint8_t *find_room(struct tti_shm_link *link, size_t nbytes, size_t whole_bytes)
{
	const uint32_t cells = tti_shm_cells(nbytes);
	const uint32_t whole = whole_bytes > nbytes ? tti_shm_cells(whole_bytes) : cells;
	uint32_t at = tti_shm_room_find(&link->tx_room, cells, whole);

	if (TTI_UNLIKELY(at == TTI_SHM_FULL)) {
		tti_shm_look_back(link);
		at = tti_shm_room_find(&link->tx_room, cells, whole);
		if (at == TTI_SHM_FULL)
			at = tti_shm_room_find_far(&link->tx_room, cells);
		else if (link->tx_room.full_since_ns)
			tti_shm_room_is_free(&link->tx_room);
		if (at == TTI_SHM_FULL)
			return NULL;
	}
	link->tx_at = at;
	/* Who sends several messages in a row is ahead of its reader, and each takes a little longer
	 * to write so. */
	link->base.is_awaited = link->port->demotes && cells <= TTI_AWAITED_BYTES / TTI_SHM_CELL &&
				link->port->taken != link->port->taken_then;
	return tti_shm_room_at(&link->tx_room, link->tx_box, at, cells);
}

static void *reserve(struct tti_link *base, size_t nbytes, size_t whole)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	if (TTI_UNLIKELY(!tti_shm_has_line(link)))
		return NULL;
	if (TTI_LIKELY(nbytes <= TTI_SHM_INLINE))
		return tti_shm_tx_line(link)->data;
	return find_room(link, nbytes, whole);
}

static void commit(struct tti_link *base, size_t nbytes, uint64_t tag)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	if (TTI_LIKELY(nbytes <= TTI_SHM_INLINE)) {
		tti_shm_send_line(link, TTI_SHM_IN_LINE, nbytes, tag);
		return;
	}
	if (link->base.is_awaited)
		link->port->taken_then = link->port->taken;
	tti_shm_room_take(&link->tx_room, link->tx_at, tti_shm_cells(nbytes));
	memcpy(tti_shm_tx_line(link)->data, &link->tx_at, sizeof(link->tx_at));
	tti_shm_send_line(link, TTI_SHM_IN_BOX, nbytes, tag);
	link->port->unowned = link;
}

/* Where the bytes of a message lie that is not in its line; NULL: nonsense. */
static const void *find_data(struct tti_shm_link *link, const struct tti_shm_line *line,
			     uint32_t kind, size_t nbytes)
{
	const struct tti_shm_layout *const layout = &link->port->seg.layout;
	const uint32_t cell = *(const volatile uint32_t *)line->data;
	const size_t at = (size_t)cell * TTI_SHM_CELL;

	if (nbytes <= layout->slot_bytes && at <= layout->box_bytes &&
	    nbytes <= layout->box_bytes - at) {
		if (TTI_LIKELY(kind == TTI_SHM_IN_BOX))
			return link->rx_box + at;
		if (kind == TTI_SHM_IN_OUTBOX)
			return link->rx_outbox + at;
	}
	broken(link, "a message that cannot be");
	return NULL;
}

static inline void own(const uint8_t *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* To write to a line that a peer has read is to ask for it first. This rank has nothing to do but
 * wait, so it asks for those of the next message now, which is taken to be as long as the last. */
__attribute__((noinline)) static void own_next(struct tti_shm_port *port)
{
	const struct tti_shm_link *const link = port->unowned;
	const struct tti_shm_room *const room = &link->tx_room;
	const uint32_t cells = room->cells[(room->oldest + room->held - 1) % TTI_SHM_HELD];
	uint32_t at;

	port->unowned = NULL;
	if (!port->has_cores)
		return;
	at = tti_shm_room_find(room, cells, cells);
	for (uint32_t i = 0; at != TTI_SHM_FULL && i < cells && i < OWNED_CELLS; i++)
		own(link->tx_box + (size_t)(at + i) * TTI_SHM_CELL);
}

/* The next message, NULL: it is not there yet. Of those of the link and those for all only one can
 * be next, as a line of the link has the number of its message among both. */
static const struct tti_shm_line *next_line(const struct tti_shm_link *link)
{
	const struct tti_shm_line *const line = &link->rx_ring[link->rx_lines % TTI_SHM_RING];
	const uint32_t next = link->rx_lines + link->rx_for_all + 1;
	const struct tti_shm_line *for_all;

	if (TTI_LIKELY(atomic_load_explicit(&line->seq, memory_order_acquire) == next))
		return line;
	if (!link->rx_ring_for_all)
		return NULL;
	for_all = &link->rx_ring_for_all[link->rx_for_all % TTI_SHM_RING];
	if (atomic_load_explicit(&for_all->seq, memory_order_acquire) != link->rx_for_all + 1)
		return NULL;
	/* What was sent on the link before is to be seen by now. */
	if (atomic_load_explicit(&line->seq, memory_order_acquire) == next)
		return line;
	return for_all;
}

static const void *peek(struct tti_link *base, size_t *nbytes, uint64_t *tag)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);
	const struct tti_shm_line *const line = next_line(link);
	uint32_t meta, kind;

	if (!line) {
		if (link->port->unowned)
			own_next(link->port);
		return NULL;
	}
	tti_tsan_take((uint32_t)base->peer, (uint32_t)link->port->base.rank);
	/* Read once: what the peer does to it later cannot fool the checks. */
	meta = *(const volatile uint32_t *)&line->meta;
	kind = meta >> 30;
	link->rx_kind = kind;
	link->rx_is_for_all = line != &link->rx_ring[link->rx_lines % TTI_SHM_RING];
	*tag = line->tag;
	*nbytes = meta & TTI_SHM_LONGEST;
	if (TTI_LIKELY(kind == TTI_SHM_IN_LINE && *nbytes <= TTI_SHM_INLINE))
		return line->data;
	return find_data(link, line, kind, *nbytes);
}

static void tell(struct tti_shm_link *link)
{
	const uint32_t start = link->port->start;
	const uint64_t done = (uint64_t)(link->rx_boxed - start) << 32 | (link->rx_lines - start);

	tti_tsan_give((uint32_t)link->port->base.rank, (uint32_t)link->base.peer);
	link->rx_lines_told = link->rx_lines;
	if (link->rx_for_all_told != link->rx_for_all) {
		link->rx_for_all_told = link->rx_for_all;
		atomic_store_explicit(&link->rx_done->of_all, link->rx_for_all,
				      memory_order_release);
	}
	atomic_store_explicit(&link->rx_done->count, done, memory_order_release);
	tti_shm_ring_if_asleep(link, false);
}

/* What does not travel inline goes back at once: its writer may have no other room. */
static void release(struct tti_link *base)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	link->port->taken++;
	if (link->rx_is_for_all)
		link->rx_for_all++;
	else
		link->rx_lines++;
	if (TTI_LIKELY(link->rx_kind == TTI_SHM_IN_LINE)) {
		if (TTI_UNLIKELY(link->rx_lines - link->rx_lines_told >= TELL_EVERY ||
				 link->rx_for_all - link->rx_for_all_told >= TELL_EVERY))
			tell(link);
		return;
	}
	link->rx_boxed += link->rx_kind == TTI_SHM_IN_BOX;
	tell(link);
}

static bool all_released(struct tti_link *base)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	const uint64_t for_all = link->port->for_all;

	if (link->tx_lines_back != link->tx_lines || link->tx_for_all_back != for_all)
		tti_shm_look_back(link);
	return link->tx_lines_back == link->tx_lines && link->tx_for_all_back == for_all;
}

static const struct tti_link_ops link_ops = {
	.reserve = reserve,
	.commit = commit,
	.peek = peek,
	.release = release,
	.all_released = all_released,
	.shares_slots = true,
};

void tti_shm_link_init(struct tti_shm_link *link, int index, struct tti_shm_pair *pair)
{
	struct tti_shm_port *const port = link->port;
	const struct tti_shm_layout *const layout = &port->seg.layout;
	const size_t box = layout->box_bytes;
	const int tx = port->self < index ? 0 : 1, rx = 1 - tx;
	uint8_t *const boxes = (uint8_t *)(pair + 1);

	link->base.ops = &link_ops;
	link->base.peer = port->candidate[index];
	link->pair = pair;
	link->bell = tti_shm_seg_bell(&port->seg, index);
	link->tx_ring = pair->ring[tx];
	link->tx_done = &pair->done[tx];
	link->tx_box = boxes + (size_t)tx * box;
	tti_shm_room_init(&link->tx_room, box, layout->slot_bytes, layout->slots, layout->n,
			  port->cores, false, port->start);
	link->rx_ring = pair->ring[rx];
	link->rx_done = &pair->done[rx];
	link->rx_box = boxes + (size_t)rx * box;
	link->rx_outbox = tti_shm_seg_outbox(&port->seg, index);
	if (port->base.fans_short)
		link->rx_ring_for_all = tti_shm_seg_ring(&port->seg, index);
	link->tx_lines = link->tx_lines_back = port->start;
	link->rx_lines = link->rx_lines_told = link->rx_boxed = port->start;
}
