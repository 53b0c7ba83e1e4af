/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "transport/shm/shm_link.h"
#include "util/error.h"
#include "util/mem.h"

/* One message to several links. What does not fit a line lies in the outbox once, and a line of
 * each link says where. Where ranks share cores and a message is for all ranks of the host, it is
 * one line of a ring that all read: the ranks of a core then find it in their core's cache when the
 * first of them has fetched it, and the writer has one line to write in place of n - 1.
 *
 *     ring of rank 0, for all     a0 a1 a2          rank 1 is at its second message of the link,
 *     ring of the link 0 -> 1     l0 l1             and at a2: l1 has number 4, since a0, a1 and
 *                                    '- number 4    l0 went before it
 *
 * A line of a link has the number of its message among those of both rings, so a reader knows
 * which one is next; room in the ring for all is what the slowest has given back. Such numbers have
 * 32 bits, and come again: so that none is found in a line that was written so long ago, a few
 * messages of so many go over the links, and write all of their lines anew. */
#define RENEWED (UINT32_C(1) << 20)

static bool is_for_all(const struct tti_shm_port *port, int n)
{
	return port->base.fans_short && n == port->n - 1 && port->fanouts % RENEWED >= TTI_SHM_RING;
}

/* Whether all have read so many of the messages for all. */
static bool all_read(struct tti_shm_port *port, uint64_t count)
{
	struct tti_shm_outbox *const out = port->out;
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
	return link->tx_lines_back > link->out_line[number % TTI_SHM_HELD];
}

/* Whether all have read a message of the outbox. */
static bool is_read(struct tti_shm_port *port, uint32_t number)
{
	struct tti_shm_outbox *const out = port->out;
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

static struct tti_shm_line *line_for_all(const struct tti_shm_port *port)
{
	return &port->out->ring_for_all[port->for_all % TTI_SHM_RING];
}

static bool has_lines(struct tti_shm_port *port, struct tti_link *const *links, int n)
{
	if (is_for_all(port, n))
		return port->for_all < TTI_SHM_RING ||
		       all_read(port, port->for_all + 1 - TTI_SHM_RING);
	for (int i = 0; i < n; i++)
		if (!tti_shm_has_line(tti_shm_link_of(links[i])))
			return false;
	return true;
}

static void *find_room(struct tti_shm_port *port, size_t nbytes)
{
	struct tti_shm_room *const room = &port->out->room;
	const uint32_t cells = tti_shm_cells(nbytes);
	uint32_t at = tti_shm_room_find(room, cells, cells);

	if (at == TTI_SHM_FULL) {
		/* The last one is hardly ever read by all, and asking costs a line of the
		 * first who has not. */
		while (room->held > 1 && is_read(port, room->oldest))
			tti_shm_room_give(room, 1);
		at = tti_shm_room_find(room, cells, cells);
	}
	if (at == TTI_SHM_FULL && room->held == 1 && is_read(port, room->oldest)) {
		tti_shm_room_give(room, 1);
		at = tti_shm_room_find(room, cells, cells);
	}
	if (at == TTI_SHM_FULL)
		at = tti_shm_room_find_far(room, cells);
	else if (TTI_UNLIKELY(room->full_since_ns))
		tti_shm_room_is_free(room);
	if (at == TTI_SHM_FULL)
		return NULL;
	port->out->at = at;
	return tti_shm_room_at(room, tti_shm_seg_outbox(&port->seg, port->self), at, cells);
}

static void *reserve(struct tti_port *base, struct tti_link *const *links, int n, size_t nbytes)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);

	if (!has_lines(port, links, n))
		return NULL;
	if (nbytes > TTI_SHM_INLINE)
		return find_room(port, nbytes);
	return is_for_all(port, n) ? line_for_all(port)->data
				   : tti_shm_tx_line(tti_shm_link_of(links[0]))->data;
}

static void send_for_all(struct tti_shm_port *port, struct tti_link *const *links, int n,
			 enum tti_shm_kind kind, size_t nbytes, uint64_t tag)
{
	struct tti_shm_line *const line = line_for_all(port);

	for (int i = 0; i < n; i++)
		tti_tsan_give((uint32_t)port->base.rank, (uint32_t)links[i]->peer);
	tti_shm_write_line(line, kind, nbytes, tag, (uint32_t)++port->for_all);
	for (int i = 0; i < n; i++)
		tti_shm_ring_if_asleep(tti_shm_link_of(links[i]), true);
}

/* The first goes last: its line is what the others are copied from. */
static void send_to_each(struct tti_link *const *links, int n, size_t nbytes, uint64_t tag)
{
	for (int i = n - 1; i >= 0; i--) {
		struct tti_shm_link *const link = tti_shm_link_of(links[i]);

		if (i > 0)
			memcpy(tti_shm_tx_line(link)->data,
			       tti_shm_tx_line(tti_shm_link_of(links[0]))->data, nbytes);
		tti_shm_send_line(link, TTI_SHM_IN_LINE, nbytes, tag);
	}
}

static void send_in_outbox(struct tti_shm_port *port, struct tti_link *const *links, int n,
			   size_t nbytes, uint64_t tag)
{
	struct tti_shm_outbox *const out = port->out;
	const uint32_t slot = (out->room.oldest + out->room.held) % TTI_SHM_HELD;
	const uint64_t bit = UINT64_C(1) << slot;

	tti_shm_room_take(&out->room, out->at, tti_shm_cells(nbytes));
	if (is_for_all(port, n)) {
		out->is_for_all |= bit;
		out->for_all[slot] = port->for_all;
		memcpy(line_for_all(port)->data, &out->at, sizeof(out->at));
		send_for_all(port, links, n, TTI_SHM_IN_OUTBOX, nbytes, tag);
		return;
	}
	out->is_for_all &= ~bit;
	for (int i = 0; i < n; i++) {
		struct tti_shm_link *const link = tti_shm_link_of(links[i]);

		memcpy(tti_shm_tx_line(link)->data, &out->at, sizeof(out->at));
		link->out_line[slot] = link->tx_lines;
		link->out_unread |= bit;
		out->unread[slot]++;
		tti_shm_send_line(link, TTI_SHM_IN_OUTBOX, nbytes, tag);
	}
}

static void commit(struct tti_port *base, struct tti_link *const *links, int n, size_t nbytes,
		   uint64_t tag)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);

	if (nbytes > TTI_SHM_INLINE)
		send_in_outbox(port, links, n, nbytes, tag);
	else if (is_for_all(port, n))
		send_for_all(port, links, n, TTI_SHM_IN_LINE, nbytes, tag);
	else
		send_to_each(links, n, nbytes, tag);
	port->fanouts += n == port->n - 1;
}

const struct tti_fanout_ops tti_shm_fanout_ops = {
	.reserve = reserve,
	.commit = commit,
};

tutti_status tti_shm_need_outbox(struct tti_shm_port *port)
{
	const struct tti_shm_layout *const layout = &port->seg.layout;

	if (port->out)
		return TUTTI_OK;
	port->out = tti_zalloc(sizeof(*port->out));
	if (!port->out)
		return tti_fail(TUTTI_ENOMEM, "outbox of rank %d: out of memory", port->base.rank);
	tti_shm_room_init(&port->out->room, layout->box_bytes, layout->slot_bytes, layout->slots,
			  layout->n, port->cores, true, 0);
	port->out->ring_for_all = tti_shm_seg_ring(&port->seg, port->self);
	return TUTTI_OK;
}
