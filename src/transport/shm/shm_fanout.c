/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "transport/shm/shm_link.h"
#include "util/error.h"
#include "util/mem.h"

/* One message to several links. A message that does not fit an entry lies in the broadcast buffer
 * once, and an entry of each link says where. Where ranks share cores and a message is for all
 * ranks of the host, it is one entry of the broadcast ring, which all read: once the first rank of
 * a core has fetched the entry, the others find it in the cache of their core, and the writer
 * writes one entry in place of n - 1.
 *
 *     broadcast ring of rank 0    a0 a1 a2          rank 1 is at its second message of the link,
 *     ring of the link 0 -> 1     l0 l1             and at a2: l1 has number 4, since a0, a1 and
 *                                    '- number 4    l0 went before it
 *
 * The number in an entry of a link counts the messages of both rings, so a reader knows which one
 * is next. The broadcast ring has as much room as the slowest reader has given back. The numbers
 * have 32 bits and wrap: so that none is found in an entry that was written one turn before, some
 * messages of each RENEWED go over the links and write all of their entries anew. */
#define RENEWED (UINT32_C(1) << 20)

static bool is_for_all(const struct tti_shm_port *port, int n)
{
	return port->base.fans_short && n == port->n - 1 && port->fanouts % RENEWED >= TTI_SHM_RING;
}

/* Whether all have read so many messages of the broadcast ring. */
static bool all_read(struct tti_shm_port *port, uint64_t count)
{
	struct tti_shm_broadcast *const out = port->broadcast;
	uint64_t least = port->for_all;

	if (TTI_LIKELY(out->for_all_back >= count))
		return true;
	for (size_t i = 0; i < port->links.n; i++) {
		struct tti_shm_link *const link = port->links.at[i];

		if (link->tx_for_all_back < count)
			tti_shm_look_back(link);
		if (link->tx_for_all_back < count)
			return false;
		if (link->tx_for_all_back < least)
			least = link->tx_for_all_back;
	}
	out->for_all_back = least;
	return true;
}

static bool has_read(const struct tti_shm_link *link, uint32_t number)
{
	return link->tx_entries_back > link->out_entry[number % TTI_SHM_HELD];
}

/* Whether all have read a message of the broadcast buffer. */
static bool is_read(struct tti_shm_port *port, uint32_t number)
{
	struct tti_shm_broadcast *const out = port->broadcast;
	const uint64_t bit = UINT64_C(1) << number % TTI_SHM_HELD;
	uint32_t *const unread = &out->unread[number % TTI_SHM_HELD];

	if (out->is_for_all & bit)
		return all_read(port, out->for_all[number % TTI_SHM_HELD] + 1);
	for (size_t i = 0; i < port->links.n && *unread; i++) {
		struct tti_shm_link *const link = port->links.at[i];

		if (!(link->out_unread & bit))
			continue;
		if (!has_read(link, number)) {
			tti_shm_look_back(link);
			if (!has_read(link, number))
				return false;
		}
		link->out_unread &= ~bit;
		--*unread;
	}
	return !*unread;
}

static struct tti_shm_entry *entry_for_all(const struct tti_shm_port *port)
{
	return &port->broadcast->ring[port->for_all % TTI_SHM_RING];
}

static bool has_entries(struct tti_shm_port *port, struct tti_link *const *links, int n)
{
	if (is_for_all(port, n))
		return port->for_all < TTI_SHM_RING ||
		       all_read(port, port->for_all + 1 - TTI_SHM_RING);
	for (int i = 0; i < n; i++)
		if (!tti_shm_has_entry(tti_shm_link_of(links[i])))
			return false;
	return true;
}

static void *find_room(struct tti_shm_port *port, size_t nbytes)
{
	struct tti_shm_room *const room = &port->broadcast->room;
	const uint32_t lines = tti_shm_lines(nbytes);
	uint32_t at = tti_shm_room_find(room, lines, lines);

	if (at == TTI_SHM_FULL) {
		/* The last message is hardly ever read by all yet, and to ask costs a cache line of
		 * the first reader that has not. */
		while (room->held > 1 && is_read(port, room->oldest))
			tti_shm_room_give(room, 1);
		at = tti_shm_room_find(room, lines, lines);
	}
	if (at == TTI_SHM_FULL && room->held == 1 && is_read(port, room->oldest)) {
		tti_shm_room_give(room, 1);
		at = tti_shm_room_find(room, lines, lines);
	}
	if (at == TTI_SHM_FULL)
		at = tti_shm_room_find_far(room, lines);
	else if (TTI_UNLIKELY(room->full_since_ns))
		tti_shm_room_is_free(room);
	if (at == TTI_SHM_FULL)
		return NULL;
	port->broadcast->at = at;
	return tti_shm_room_at(room, tti_shm_seg_broadcast(&port->seg, port->self), at, lines);
}

static void *reserve(struct tti_port *base, struct tti_link *const *links, int n, size_t nbytes)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);

	if (!has_entries(port, links, n))
		return NULL;
	if (nbytes > TTI_SHM_INLINE)
		return find_room(port, nbytes);
	return is_for_all(port, n) ? entry_for_all(port)->data
				   : tti_shm_tx_entry(tti_shm_link_of(links[0]))->data;
}

static void send_for_all(struct tti_shm_port *port, struct tti_link *const *links, int n,
			 enum tti_shm_kind kind, size_t nbytes, uint64_t tag)
{
	struct tti_shm_entry *const entry = entry_for_all(port);

	for (int i = 0; i < n; i++)
		tti_tsan_give((uint32_t)port->base.rank, (uint32_t)links[i]->peer);
	tti_shm_write_entry(entry, kind, nbytes, tag, (uint32_t)++port->for_all);
	for (int i = 0; i < n; i++)
		tti_shm_doorbell_ring_if_asleep(tti_shm_link_of(links[i]), true);
}

/* The first goes last: its entry is what the others are copied from. */
static void send_to_each(struct tti_link *const *links, int n, size_t nbytes, uint64_t tag)
{
	for (int i = n - 1; i >= 0; i--) {
		struct tti_shm_link *const link = tti_shm_link_of(links[i]);

		if (i > 0)
			memcpy(tti_shm_tx_entry(link)->data,
			       tti_shm_tx_entry(tti_shm_link_of(links[0]))->data, nbytes);
		tti_shm_send_entry(link, TTI_SHM_IN_ENTRY, nbytes, tag);
	}
}

static void send_by_buffer(struct tti_shm_port *port, struct tti_link *const *links, int n,
			   size_t nbytes, uint64_t tag)
{
	struct tti_shm_broadcast *const out = port->broadcast;
	const uint32_t slot = (out->room.oldest + out->room.held) % TTI_SHM_HELD;
	const uint64_t bit = UINT64_C(1) << slot;

	tti_shm_room_take(&out->room, out->at, tti_shm_lines(nbytes));
	if (is_for_all(port, n)) {
		out->is_for_all |= bit;
		out->for_all[slot] = port->for_all;
		memcpy(entry_for_all(port)->data, &out->at, sizeof(out->at));
		send_for_all(port, links, n, TTI_SHM_IN_BROADCAST, nbytes, tag);
		return;
	}
	out->is_for_all &= ~bit;
	for (int i = 0; i < n; i++) {
		struct tti_shm_link *const link = tti_shm_link_of(links[i]);

		memcpy(tti_shm_tx_entry(link)->data, &out->at, sizeof(out->at));
		link->out_entry[slot] = link->tx_entries;
		link->out_unread |= bit;
		out->unread[slot]++;
		tti_shm_send_entry(link, TTI_SHM_IN_BROADCAST, nbytes, tag);
	}
}

static void commit(struct tti_port *base, struct tti_link *const *links, int n, size_t nbytes,
		   uint64_t tag)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);

	if (nbytes > TTI_SHM_INLINE)
		send_by_buffer(port, links, n, nbytes, tag);
	else if (is_for_all(port, n))
		send_for_all(port, links, n, TTI_SHM_IN_ENTRY, nbytes, tag);
	else
		send_to_each(links, n, nbytes, tag);
	port->fanouts += n == port->n - 1;
}

const struct tti_fanout_ops tti_shm_fanout_ops = {
	.reserve = reserve,
	.commit = commit,
};

tutti_status tti_shm_need_broadcast(struct tti_shm_port *port)
{
	const struct tti_shm_layout *const layout = &port->seg.layout;

	if (port->broadcast)
		return TUTTI_OK;
	port->broadcast = tti_zalloc(sizeof(*port->broadcast));
	if (!port->broadcast)
		return tti_fail(TUTTI_ENOMEM, "broadcast buffer of rank %d: out of memory",
				port->base.rank);
	tti_shm_room_init(&port->broadcast->room, layout->bounce_bytes, layout->slot_bytes,
			  layout->slots, layout->n, port->cores, true, 0);
	port->broadcast->ring = tti_shm_seg_ring(&port->seg, port->self);
	return TUTTI_OK;
}
