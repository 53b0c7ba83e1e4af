/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_CURRENT_CALL_H
#define TTI_CORE_CALL_CURRENT_CALL_H

/* What the executing thread publishes about its call, for ranks that ask (stall.h): a sequence
 * lock, so that the values that are read belong together.
 *
 * Threads: the executing one writes, any reads; the handoff is under the communicator's lock. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct tti_current_call {
	_Atomic uint32_t version, running;
	_Atomic uint32_t stage; /* enum tti_stage */
	_Atomic uint64_t seq, signature, count;
	_Atomic uint64_t packed; /* tti_args_pack() */
	_Atomic uint64_t
		split; /* of its program, as tti_program_split() packs it; 0: it has none */
	/* The last handoff, under comm->lock. */
	struct tti_sides *sides;
	uint64_t handoff_seq;
};

/* The same, to be published. */
struct tti_published_call {
	uint64_t seq, signature, count, packed, split;
	uint32_t stage;
};

static inline void tti_current_call_publish(struct tti_current_call *current,
					    const struct tti_published_call *call)
{
	const uint32_t version = atomic_load_explicit(&current->version, memory_order_relaxed);

	atomic_store_explicit(&current->version, version + 1, memory_order_relaxed);
	atomic_store_explicit(&current->seq, call->seq, memory_order_release);
	atomic_store_explicit(&current->signature, call->signature, memory_order_release);
	atomic_store_explicit(&current->stage, call->stage, memory_order_release);
	atomic_store_explicit(&current->count, call->count, memory_order_release);
	atomic_store_explicit(&current->packed, call->packed, memory_order_release);
	atomic_store_explicit(&current->split, call->split, memory_order_release);
	atomic_store_explicit(&current->running, 1, memory_order_release);
	atomic_store_explicit(&current->version, version + 2, memory_order_release);
}

static inline void tti_current_call_end(struct tti_current_call *current)
{
	atomic_store_explicit(&current->running, 0, memory_order_release);
}

#endif
