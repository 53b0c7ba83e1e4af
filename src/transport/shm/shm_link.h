/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_LINK_H
#define TTI_TRANSPORT_SHM_LINK_H

/* A link: messages over the ring of a pair of ranks. What its path and that of broadcasts
 * (shm_fanout.c) share is inline. */

#include "transport/shm/shm_doorbell.h"
#include "util/tsan.h"

static inline struct tti_shm_port *tti_shm_port_of(struct tti_port *port)
{
	return (struct tti_shm_port *)port;
}

static inline struct tti_shm_link *tti_shm_link_of(struct tti_link *link)
{
	return (struct tti_shm_link *)link;
}

/* Take note of what the peer has given back. */
void tti_shm_look_back(struct tti_shm_link *link);

static inline bool tti_shm_has_entry(struct tti_shm_link *link)
{
	if (TTI_LIKELY(link->tx_entries - link->tx_entries_back < TTI_SHM_RING))
		return true;
	tti_shm_look_back(link);
	return link->tx_entries - link->tx_entries_back < TTI_SHM_RING;
}

static inline struct tti_shm_entry *tti_shm_tx_entry(const struct tti_shm_link *link)
{
	return &link->tx_ring[link->tx_entries % TTI_SHM_RING];
}

static inline void tti_shm_write_entry(struct tti_shm_entry *entry, enum tti_shm_kind kind,
				       size_t nbytes, uint64_t tag, uint32_t seq)
{
	entry->meta = (uint32_t)kind << 30 | (uint32_t)nbytes;
	entry->tag = tag;
	atomic_store_explicit(&entry->seq, seq, memory_order_release);
}

static inline void tti_shm_send_entry(struct tti_shm_link *link, enum tti_shm_kind kind,
				      size_t nbytes, uint64_t tag)
{
	struct tti_shm_entry *const entry = tti_shm_tx_entry(link);
	const uint64_t number = ++link->tx_entries + link->port->for_all;

	tti_tsan_give((uint32_t)link->port->base.rank, (uint32_t)link->base.peer);
	tti_shm_write_entry(entry, kind, nbytes, tag, (uint32_t)number);
	tti_shm_doorbell_ring_if_asleep(link, true);
}

/* Set up a zeroed link, but for its port, to the candidate at `index`. */
void tti_shm_link_init(struct tti_shm_link *link, int index, struct tti_shm_pair *pair);

/* shm_fanout.c. */
extern const struct tti_fanout_ops tti_shm_fanout_ops;
TUTTI_CHECKED tutti_status tti_shm_need_broadcast(struct tti_shm_port *port);

#endif
