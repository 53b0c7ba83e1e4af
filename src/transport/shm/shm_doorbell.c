/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/shm_doorbell.h"

#include "util/clock.h"
#include "util/thread.h"

/* How long to wait between arming the doorbell and the next look, some 0.7 us, and how long to
 * sleep at most: see shm_wait(). */
#define STORED_ROUNDS 16
#define LONGEST_NS    (64 * TTI_NS_PER_MS)

/* Parts of a doorbell's word (shm_seg.h). */
#define ARMED  UINT32_C(1)
#define COUNTS UINT32_C(2)
#define ONE    UINT32_C(4)
#define FIELD  (UINT32_C(4095) * ONE)
#define STATE  (ARMED | COUNTS | FIELD)

/* What a sleeper writes: which rank is to ring, or how many messages are; any rank where that does
 * not fit into the field. */
static uint32_t armed_for(int place, uint32_t missing)
{
	if (missing > 1)
		return missing > 4095 ? ARMED : ARMED | COUNTS | missing * ONE;
	return place < 0 || place >= 4095 ? ARMED : ARMED | (uint32_t)(place + 1) * ONE;
}

void tti_shm_doorbell_ring(const struct tti_shm_link *link, uint32_t word, bool is_message)
{
	_Atomic uint32_t *const doorbell = &link->doorbell->word;
	uint32_t next;

	do {
		const uint32_t field = word & FIELD;

		if (!(word & ARMED) || ((word & COUNTS) && !is_message) ||
		    (!(word & COUNTS) && field &&
		     field != (armed_for(link->port->self, 1) & FIELD)))
			return;
		next = (word & COUNTS) && field > ONE ? word - ONE : (word | STATE) + 1;
	} while (!atomic_compare_exchange_strong(doorbell, &word, next));
	if (!(next & ARMED))
		tti_futex_wake(doorbell, 1);
}

/* Sleeping without a fence on the side of senders. A rank arms its doorbell before it sleeps; a
 * peer that then sends or reads a message rings it. A sender stores its message and then loads the
 * doorbell, but the load may overtake the store: then the sender finds the doorbell not armed, and
 * the sleeper's last look has missed the message. A processor holds a store back for less than a
 * microsecond, mostly for less than 0.2. So the first call arms the doorbell, lets that time pass
 * and returns, for the caller to look again; the second call sleeps. Where a message is missed all
 * the same it costs one sleep. Sleeping for a short time only would cost more at each call: timers
 * that end before the next tick are expensive, above all in virtual machines. */
static void shm_wait(struct tti_port *base, int64_t timeout_ns)
{
	struct tti_shm_port *const port = (struct tti_shm_port *)base;
	struct tti_shm_doorbell *doorbell;
	uint32_t word, armed;

	if (!port->seg.base)
		return;
	armed = armed_for(base->missing == 1 ? tti_shm_find_candidate(port, base->awaited->peer)
					     : -1,
			  base->missing);
	doorbell = tti_shm_seg_doorbell(&port->seg, port->self);
	word = atomic_load_explicit(&doorbell->word, memory_order_acquire);
	armed |= word & ~STATE;
	/* A count may also have come down to this one by messages that the last look missed. */
	if (word == armed && armed == port->armed) {
		tti_futex_wait(&doorbell->word, word,
			       timeout_ns < LONGEST_NS ? timeout_ns : LONGEST_NS);
		return;
	}
	port->armed = armed;
	atomic_store(&doorbell->word, armed);
	for (int i = 0; i < STORED_ROUNDS; i++)
		tti_cpu_relax();
}

/* As if a peer had rung. */
static void shm_wake(struct tti_port *base)
{
	struct tti_shm_port *const port = (struct tti_shm_port *)base;
	struct tti_shm_doorbell *doorbell;
	uint32_t word;

	if (!port->seg.base)
		return;
	doorbell = tti_shm_seg_doorbell(&port->seg, port->self);
	word = atomic_load(&doorbell->word);
	while (!atomic_compare_exchange_weak(&doorbell->word, &word, (word | STATE) + 1))
		;
	tti_futex_wake(&doorbell->word, 1);
}

const struct tti_sleep_ops tti_shm_sleep_ops = {
	.wait = shm_wait,
	.wake = shm_wake,
};
