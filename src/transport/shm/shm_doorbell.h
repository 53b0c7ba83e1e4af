/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_DOORBELL_H
#define TTI_TRANSPORT_SHM_DOORBELL_H

/* Waking a rank that sleeps: a peer that sends to it, or has read, rings its doorbell. The word of
 * a doorbell is explained at struct tti_shm_doorbell. */

#include "transport/shm/shm.h"

#define TTI_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define TTI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* The peer's doorbell was armed when it had that word: wake the peer if it waits for this, a
 * message of ours, or, not is_message, that we have read one. */
__attribute__((cold)) void tti_shm_doorbell_ring(const struct tti_shm_link *link, uint32_t word,
						 bool is_message);

/* A plain load, no fence: shm_wait() makes up for that. */
static inline void tti_shm_doorbell_ring_if_asleep(const struct tti_shm_link *link, bool is_message)
{
	const uint32_t word = atomic_load_explicit(&link->doorbell->word, memory_order_relaxed);

	if (TTI_UNLIKELY(word & 1))
		tti_shm_doorbell_ring(link, word, is_message);
}

extern const struct tti_sleep_ops tti_shm_sleep_ops;

#endif
