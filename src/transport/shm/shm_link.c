/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/shm_link.h"

#include <string.h>

#include "util/error.h"

/* The reader gives entries of short messages back in quarters of a ring, so that the cache line of
 * its counter moves rarely. */
#define TELL_EVERY (TTI_SHM_RING / 4)

/* How many cache lines of the next message are fetched while its writer waits. */
#define OWNED_LINES 128u

static __attribute__((noinline, cold)) void broken(const struct tti_shm_link *link,
						   const char *what)
{
	struct tti_port *const port = &link->port->base;

	if (port->failure != TUTTI_OK)
		return;
	tti_port_fail(port,
		      tti_fail(TUTTI_EPROTO,
			       "shared memory: rank %d wrote %s for rank %d; do both run the same "
			       "version?",
			       link->base.peer, what, port->rank),
		      link->base.peer);
}

void tti_shm_look_back(struct tti_shm_link *link)
{
	const uint64_t done = atomic_load_explicit(&link->tx_done->count, memory_order_acquire);
	const uint32_t of_all = atomic_load_explicit(&link->tx_done->of_all, memory_order_acquire);
	const uint32_t start = link->port->start;
	const uint32_t entries = (uint32_t)done + start - (uint32_t)link->tx_entries_back;
	const uint32_t bounced = (uint32_t)(done >> 32) + start - link->tx_room.oldest;
	const uint32_t for_all = of_all - (uint32_t)link->tx_for_all_back;

	tti_tsan_take((uint32_t)link->base.peer, (uint32_t)link->port->base.rank);
	if (entries > link->tx_entries - link->tx_entries_back || bounced > link->tx_room.held ||
	    for_all > link->port->for_all - link->tx_for_all_back) {
		broken(link, "an impossible count of messages read");
		return;
	}
	link->tx_entries_back += entries;
	link->tx_for_all_back += for_all;
	tti_shm_room_give(&link->tx_room, bounced);
}

static uint8_t *find_room(struct tti_shm_link *link, size_t nbytes, size_t whole_bytes)
{
	const uint32_t lines = tti_shm_lines(nbytes);
	const uint32_t whole = whole_bytes > nbytes ? tti_shm_lines(whole_bytes) : lines;
	uint32_t at = tti_shm_room_find(&link->tx_room, lines, whole);

	if (TTI_UNLIKELY(at == TTI_SHM_FULL)) {
		tti_shm_look_back(link);
		at = tti_shm_room_find(&link->tx_room, lines, whole);
		if (at == TTI_SHM_FULL)
			at = tti_shm_room_find_far(&link->tx_room, lines);
		else if (link->tx_room.full_since_ns)
			tti_shm_room_is_free(&link->tx_room);
		if (at == TTI_SHM_FULL)
			return NULL;
	}
	link->tx_at = at;
	/* Not where several messages are sent in a row: their writer is ahead of the reader, and
	 * writing for a reader takes a little longer. */
	link->base.is_awaited = link->port->demotes && lines <= TTI_AWAITED_BYTES / TTI_SHM_LINE &&
				link->port->taken != link->port->taken_then;
	return tti_shm_room_at(&link->tx_room, link->tx_bounce, at, lines);
}

static void *reserve(struct tti_link *base, size_t nbytes, size_t whole)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	if (TTI_UNLIKELY(!tti_shm_has_entry(link)))
		return NULL;
	if (TTI_LIKELY(nbytes <= TTI_SHM_INLINE))
		return tti_shm_tx_entry(link)->data;
	return find_room(link, nbytes, whole);
}

static void commit(struct tti_link *base, size_t nbytes, uint64_t tag)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	if (TTI_LIKELY(nbytes <= TTI_SHM_INLINE)) {
		tti_shm_send_entry(link, TTI_SHM_IN_ENTRY, nbytes, tag);
		return;
	}
	if (link->base.is_awaited)
		link->port->taken_then = link->port->taken;
	tti_shm_room_take(&link->tx_room, link->tx_at, tti_shm_lines(nbytes));
	memcpy(tti_shm_tx_entry(link)->data, &link->tx_at, sizeof(link->tx_at));
	tti_shm_send_entry(link, TTI_SHM_IN_BOUNCE, nbytes, tag);
	link->port->unowned = link;
}

/* Where the bytes of a message lie that does not fit its entry; NULL: the peer wrote nonsense. */
static const void *find_data(struct tti_shm_link *link, const struct tti_shm_entry *entry,
			     uint32_t kind, size_t nbytes)
{
	const struct tti_shm_layout *const layout = &link->port->seg.layout;
	const uint32_t line = *(const volatile uint32_t *)entry->data;
	const size_t at = (size_t)line * TTI_SHM_LINE;

	if (nbytes <= layout->slot_bytes && at <= layout->bounce_bytes &&
	    nbytes <= layout->bounce_bytes - at) {
		if (TTI_LIKELY(kind == TTI_SHM_IN_BOUNCE))
			return link->rx_bounce + at;
		if (kind == TTI_SHM_IN_BROADCAST)
			return link->rx_broadcast + at;
	}
	broken(link, "an impossible message");
	return NULL;
}

static inline void own(const uint8_t *entry)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*entry));
#else
	__builtin_prefetch(entry, 1);
#endif
}

/* A cache line that a peer has read must be fetched before it is written. This rank can only wait,
 * so it fetches the lines of the next message now, taking it to be as long as the last one. */
__attribute__((noinline)) static void own_next(struct tti_shm_port *port)
{
	const struct tti_shm_link *const link = port->unowned;
	const struct tti_shm_room *const room = &link->tx_room;
	const uint32_t lines = room->lines[(room->oldest + room->held - 1) % TTI_SHM_HELD];
	uint32_t at;

	port->unowned = NULL;
	if (!port->has_cores)
		return;
	at = tti_shm_room_find(room, lines, lines);
	for (uint32_t i = 0; at != TTI_SHM_FULL && i < lines && i < OWNED_LINES; i++)
		own(link->tx_bounce + (size_t)(at + i) * TTI_SHM_LINE);
}

/* The next message, NULL: it is not there yet. It is on the link's ring or on the broadcast ring:
 * the entries of the link have numbers that count the messages of both. */
static const struct tti_shm_entry *next_entry(const struct tti_shm_link *link)
{
	const struct tti_shm_entry *const entry = &link->rx_ring[link->rx_entries % TTI_SHM_RING];
	const uint32_t next = link->rx_entries + link->rx_for_all + 1;
	const struct tti_shm_entry *for_all;

	if (TTI_LIKELY(atomic_load_explicit(&entry->seq, memory_order_acquire) == next))
		return entry;
	if (!link->rx_broadcast_ring)
		return NULL;
	for_all = &link->rx_broadcast_ring[link->rx_for_all % TTI_SHM_RING];
	if (atomic_load_explicit(&for_all->seq, memory_order_acquire) != link->rx_for_all + 1)
		return NULL;
	/* What was sent on the link before that is visible by now. */
	if (atomic_load_explicit(&entry->seq, memory_order_acquire) == next)
		return entry;
	return for_all;
}

static const void *peek(struct tti_link *base, size_t *nbytes, uint64_t *tag)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);
	const struct tti_shm_entry *const entry = next_entry(link);
	uint32_t meta, kind;

	if (!entry) {
		if (link->port->unowned)
			own_next(link->port);
		return NULL;
	}
	tti_tsan_take((uint32_t)base->peer, (uint32_t)link->port->base.rank);
	/* Read once: a peer that changes it later cannot fool the checks. */
	meta = *(const volatile uint32_t *)&entry->meta;
	kind = meta >> 30;
	link->rx_kind = kind;
	link->rx_is_for_all = entry != &link->rx_ring[link->rx_entries % TTI_SHM_RING];
	*tag = entry->tag;
	*nbytes = meta & TTI_SHM_LONGEST;
	if (TTI_LIKELY(kind == TTI_SHM_IN_ENTRY && *nbytes <= TTI_SHM_INLINE))
		return entry->data;
	return find_data(link, entry, kind, *nbytes);
}

static void tell(struct tti_shm_link *link)
{
	const uint32_t start = link->port->start;
	const uint64_t done =
		(uint64_t)(link->rx_bounced - start) << 32 | (link->rx_entries - start);

	tti_tsan_give((uint32_t)link->port->base.rank, (uint32_t)link->base.peer);
	link->rx_entries_told = link->rx_entries;
	if (link->rx_for_all_told != link->rx_for_all) {
		link->rx_for_all_told = link->rx_for_all;
		atomic_store_explicit(&link->rx_done->of_all, link->rx_for_all,
				      memory_order_release);
	}
	atomic_store_explicit(&link->rx_done->count, done, memory_order_release);
	tti_shm_doorbell_ring_if_asleep(link, false);
}

/* Room of the bounce buffer goes back at once: its writer may have no other. */
static void release(struct tti_link *base)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	link->port->taken++;
	if (link->rx_is_for_all)
		link->rx_for_all++;
	else
		link->rx_entries++;
	if (TTI_LIKELY(link->rx_kind == TTI_SHM_IN_ENTRY)) {
		if (TTI_UNLIKELY(link->rx_entries - link->rx_entries_told >= TELL_EVERY ||
				 link->rx_for_all - link->rx_for_all_told >= TELL_EVERY))
			tell(link);
		return;
	}
	link->rx_bounced += link->rx_kind == TTI_SHM_IN_BOUNCE;
	tell(link);
}

static bool all_released(struct tti_link *base)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	const uint64_t for_all = link->port->for_all;

	if (link->tx_entries_back != link->tx_entries || link->tx_for_all_back != for_all)
		tti_shm_look_back(link);
	return link->tx_entries_back == link->tx_entries && link->tx_for_all_back == for_all;
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
	const size_t buffer = layout->bounce_bytes;
	const int tx = port->self < index ? 0 : 1, rx = 1 - tx;
	uint8_t *const buffers = (uint8_t *)(pair + 1);

	link->base.ops = &link_ops;
	link->base.peer = port->candidate[index];
	link->pair = pair;
	link->doorbell = tti_shm_seg_doorbell(&port->seg, index);
	link->tx_ring = pair->ring[tx];
	link->tx_done = &pair->done[tx];
	link->tx_bounce = buffers + (size_t)tx * buffer;
	tti_shm_room_init(&link->tx_room, buffer, layout->slot_bytes, layout->slots, layout->n,
			  port->cores, false, port->start);
	link->rx_ring = pair->ring[rx];
	link->rx_done = &pair->done[rx];
	link->rx_bounce = buffers + (size_t)rx * buffer;
	link->rx_broadcast = tti_shm_seg_broadcast(&port->seg, index);
	if (port->base.fans_short)
		link->rx_broadcast_ring = tti_shm_seg_ring(&port->seg, index);
	link->tx_entries = link->tx_entries_back = port->start;
	link->rx_entries = link->rx_entries_told = link->rx_bounced = port->start;
}
