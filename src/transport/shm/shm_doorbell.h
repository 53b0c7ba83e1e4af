/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_DOORBELL_H
#define TTI_TRANSPORT_SHM_DOORBELL_H

/* How a rank that sleeps is woken by a peer that sends or has read: see struct tti_shm_bell. */

#include "transport/shm/shm.h"

#define TTI_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define TTI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Wake who armed the peer's bell when it had that word, if that is to be by this: a message of ours,
 * or that we have read one. */
__attribute__((cold)) void tti_shm_ring(const struct tti_shm_link *link, uint32_t word,
					bool is_message);

/* A plain load, no fence: shm_wait() makes up for that. */
static inline void tti_shm_ring_if_asleep(const struct tti_shm_link *link, bool is_message)
{
	const uint32_t word = atomic_load_explicit(&link->bell->word, memory_order_relaxed);

	if (TTI_UNLIKELY(word & 1))
		tti_shm_ring(link, word, is_message);
}

extern const struct tti_sleep_ops tti_shm_sleep_ops;

#endif
