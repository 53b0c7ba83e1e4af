/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/shm_doorbell.h"

#include "util/clock.h"
#include "util/thread.h"

/* From arming the bell to the next look, some 0.7 us, and a sleep: see shm_wait(). */
#define STORED_ROUNDS 16
#define LONGEST_NS    (64 * TTI_NS_PER_MS)

/* Parts of a bell's word (shm_seg.h). */
#define ARMED  UINT32_C(1)
#define COUNTS UINT32_C(2)
#define ONE    UINT32_C(4)
#define FIELD  (UINT32_C(4095) * ONE)
#define STATE  (ARMED | COUNTS | FIELD)

/* What a sleeper writes: who is to ring it, or how many messages are; what does not fit is anybody. */
static uint32_t armed_for(int place, uint32_t missing)
{
	if (missing > 1)
		return missing > 4095 ? ARMED : ARMED | COUNTS | missing * ONE;
	return place < 0 || place >= 4095 ? ARMED : ARMED | (uint32_t)(place + 1) * ONE;
}

void tti_shm_ring(const struct tti_shm_link *link, uint32_t word, bool is_message)
{
	_Atomic uint32_t *const bell = &link->bell->word;
	uint32_t next;

	do {
		const uint32_t field = word & FIELD;

		if (!(word & ARMED) || ((word & COUNTS) && !is_message) ||
		    (!(word & COUNTS) && field &&
		     field != (armed_for(link->port->self, 1) & FIELD)))
			return;
		next = (word & COUNTS) && field > ONE ? word - ONE : (word | STATE) + 1;
	} while (!atomic_compare_exchange_strong(bell, &word, next));
	if (!(next & ARMED))
		tti_futex_wake(bell, 1);
}

/* Sleeping without a fence on the senders' side. Who sleeps arms its bell, and whoever then sends
 * or reads a message rings it. A sender stores its message and then loads the bell; the load may
 * come first and find it not armed, while our last look missed the message. A processor holds a
 * store back for less than a microsecond, mostly for less than 0.2. So the first call arms the
 * bell, lets that pass and returns, for the caller to look again; the next one sleeps. Should it
 * go wrong all the same, it costs one sleep. A short one to be safe would cost more each time:
 * timers that end before the next tick are expensive, in virtual machines above all. */
static void shm_wait(struct tti_port *base, int64_t timeout_ns)
{
	struct tti_shm_port *const port = (struct tti_shm_port *)base;
	struct tti_shm_bell *bell;
	uint32_t word, armed;

	if (!port->seg.base)
		return;
	armed = armed_for(base->missing == 1 ? tti_shm_find_candidate(port, base->awaited->peer)
					     : -1,
			  base->missing);
	bell = tti_shm_seg_bell(&port->seg, port->self);
	word = atomic_load_explicit(&bell->word, memory_order_acquire);
	armed |= word & ~STATE;
	/* A count may also have come down to this one, by messages that the look did not see. */
	if (word == armed && armed == port->armed) {
		tti_futex_wait(&bell->word, word,
			       timeout_ns < LONGEST_NS ? timeout_ns : LONGEST_NS);
		return;
	}
	port->armed = armed;
	atomic_store(&bell->word, armed);
	for (int i = 0; i < STORED_ROUNDS; i++)
		tti_cpu_relax();
}

/* As if somebody had rung. */
static void shm_wake(struct tti_port *base)
{
	struct tti_shm_port *const port = (struct tti_shm_port *)base;
	struct tti_shm_bell *bell;
	uint32_t word;

	if (!port->seg.base)
		return;
	bell = tti_shm_seg_bell(&port->seg, port->self);
	word = atomic_load(&bell->word);
	while (!atomic_compare_exchange_weak(&bell->word, &word, (word | STATE) + 1))
		;
	tti_futex_wake(&bell->word, 1);
}

const struct tti_sleep_ops tti_shm_sleep_ops = {
	.wait = shm_wait,
	.wake = shm_wake,
};
