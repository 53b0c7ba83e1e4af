/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/wait.h"

#include <sched.h>
#include <time.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/measured.h"
#include "util/thread.h"

#define NAP_NS       (5 * TTI_NS_PER_MS)
#define NAP_MIXED_NS (50 * 1000)
#define REPORT_NS    (50 * TTI_NS_PER_MS)

/* See wait.h. */
#define LEVEL_MOST         (TTI_LONG_YIELD_IN * 5 / 2)
#define EXPENSIVE_FIRST_NS (20 * TTI_NS_PER_MS)
#define EXPENSIVE_MOST_NS  (1000 * TTI_NS_PER_MS)

/* So many ticks take 0.03 to 0.13 ms. A yield, or two with what is between them, is short if it
 * takes no more. A time that is longer may not be that of a yield: the next EXACTLY yields are
 * timed alone. */
#define FEW_TICKS (1 << 17)
#define EXACTLY   8

/* The clock is looked at once in so many rounds. */
#define ROUNDS_PER_CLOCK 32

/* What this thread knows of its yields. Reading ticks costs half of reading the clock, and is still
 * done for one yield in two only, since a short call of ranks that share a core takes just a
 * microsecond or two. The length of a tick is known from their number since the first yield. */
static _Thread_local struct waiter {
	const _Atomic int *awaited; /* NULL: not a background thread */
	struct tti_yields yields;
	uint64_t nshort;  /* yields since the last one that was not known to be short */
	uint32_t exactly; /* so many are timed one by one */
	uint64_t seen_ticks;
	uint64_t first_ticks;
	int64_t first_ns; /* 0: no yield yet */
} self = { .exactly = EXACTLY };

const _Atomic int *tti_wait_set_background(const _Atomic int *awaited)
{
	const _Atomic int *before = self.awaited;

	self.awaited = awaited;
	return before;
}

bool tti_yields_are_expensive(struct tti_yields *yields, int64_t now_ns)
{
	if (yields->expensive_until_ns == 0)
		return false;
	if (now_ns < yields->expensive_until_ns)
		return true;
	yields->expensive_until_ns = 0;
	yields->calm_since_ns = now_ns;
	return false;
}

void tti_yields_took(struct tti_yields *yields, int64_t now_ns, int64_t took_ns, uint64_t nshort)
{
	const bool again = yields->expensive_for_ns &&
			   now_ns - yields->calm_since_ns < yields->expensive_for_ns;

	yields->level -= (int64_t)(nshort < LEVEL_MOST ? nshort : LEVEL_MOST);
	if (yields->level < 0)
		yields->level = 0;
	if (took_ns <= TTI_LONG_YIELD_NS)
		return;
	yields->level += TTI_LONG_YIELD_IN;
	if (yields->level < LEVEL_MOST)
		return;
	yields->level = LEVEL_MOST;
	yields->expensive_for_ns = again ? yields->expensive_for_ns * 2 : EXPENSIVE_FIRST_NS;
	if (yields->expensive_for_ns > EXPENSIVE_MOST_NS)
		yields->expensive_for_ns = EXPENSIVE_MOST_NS;
	yields->expensive_until_ns = now_ns + yields->expensive_for_ns;
}

static bool is_background(const struct waiter *me)
{
	return me->awaited && atomic_load_explicit(me->awaited, memory_order_relaxed) == 0;
}

static __attribute__((noinline, cold)) void yield_exactly(struct waiter *me)
{
	uint64_t before;
	int64_t now;

	if (!me->first_ns) {
		me->first_ns = tti_now_ns();
		me->first_ticks = tti_ticks();
	}
	before = tti_ticks();
	sched_yield();
	me->seen_ticks = tti_ticks();
	me->exactly--;
	me->nshort++;
	if (me->seen_ticks - before <= FEW_TICKS)
		return;
	now = tti_now_ns();
	tti_yields_took(&me->yields, now,
			(int64_t)((double)(me->seen_ticks - before) * (double)(now - me->first_ns) /
				  (double)(me->seen_ticks - me->first_ticks)),
			me->nshort - 1);
	me->nshort = 0;
	me->exactly = EXACTLY;
}

static inline void yield(struct waiter *me)
{
	uint64_t before;

	if (me->exactly) {
		yield_exactly(me);
		return;
	}
	sched_yield();
	if (++me->nshort % 2)
		return;
	before = me->seen_ticks;
	me->seen_ticks = tti_ticks();
	if (me->seen_ticks - before > FEW_TICKS)
		me->exactly = EXACTLY;
}

/* Yields are expensive at the moment, or were: what to do in place of one. */
static __attribute__((noinline, cold)) bool avoid_yield(struct waiter *me, bool oversubscribed)
{
	if (tti_yields_are_expensive(&me->yields, tti_now_ns())) {
		if (!oversubscribed)
			tti_cpu_relax();
		return !oversubscribed;
	}
	me->exactly = EXACTLY;
	yield(me);
	return true;
}

static inline bool back_off(struct waiter *me, uint32_t round, uint32_t spins, bool oversubscribed)
{
	if (is_background(me))
		return false;
	if (round < spins) {
		tti_cpu_relax();
		return true;
	}
	if (me->yields.expensive_until_ns)
		return avoid_yield(me, oversubscribed);
	yield(me);
	return true;
}

bool tti_wait_backoff(uint32_t round, uint32_t spins, bool oversubscribed)
{
	return back_off(&self, round, spins, oversubscribed);
}

/* Where nothing wakes, or not all, a sleep is short. */
static void nap(const struct tti_wait *wait, struct tti_engine *engine, bool alone)
{
	const int64_t most = alone && engine->sleeper && !engine->is_mixed ? NAP_NS
			     : wait->is_polled && wait->nap_ns             ? wait->nap_ns
									   : NAP_MIXED_NS;
	const struct timespec pause = { .tv_nsec = (long)most };

	if (engine->sleeper && alone) {
		engine->sleeper->missing = wait->missing;
		engine->sleeper->awaited = wait->awaited;
		engine->sleeper->transport->sleep->wait(engine->sleeper, most);
	} else {
		nanosleep(&pause, NULL);
	}
}

static tutti_status report(struct tti_wait *wait, struct tti_engine *engine, int64_t now, int peer)
{
	const struct tti_engine_events *events = &engine->config.events;

	wait->report_ns = now + REPORT_NS;
	atomic_store_explicit(&engine->waiting_on, peer, memory_order_relaxed);
	if (!events->on_wait)
		return TUTTI_OK;
	if (!wait->is_polled)
		return events->on_wait(events->self, wait->since_ns, peer);
	/* A job that works, and waits for nobody, has not waited at all. */
	return events->on_wait(events->self, wait->blames_since_ns ? wait->blames_since_ns : now,
			       wait->blames_since_ns ? peer : -1);
}

static tutti_status look_for_trouble(const struct tti_engine *engine)
{
	if (engine->config.stop && *engine->config.stop)
		return TUTTI_EABORTED;
	for (int i = 0; i < engine->config.nports; i++)
		if (engine->config.ports[i]->failure != TUTTI_OK)
			return engine->config.ports[i]->failure;
	return TUTTI_AGAIN;
}

/* How long a wait goes on before it sleeps. */
static int64_t awake_ns(const struct tti_engine *engine)
{
	if (self.yields.expensive_until_ns)
		return TTI_AWAKE_NS;
	return engine->is_net                  ? TTI_AWAKE_NET_NS
	       : engine->config.oversubscribed ? TTI_AWAKE_NS
					       : TTI_AWAKE_OWN_NS;
}

bool tti_wait_briefly(struct tti_wait *wait, const struct tti_engine *engine)
{
	const uint32_t round = wait->rounds;

	if (round % ROUNDS_PER_CLOCK == ROUNDS_PER_CLOCK - 1 ||
	    !back_off(&self, round, engine->spin_rounds, engine->config.oversubscribed))
		return false;
	wait->rounds = round + 1;
	return true;
}

tutti_status tti_wait_step(struct tti_wait *wait, struct tti_engine *engine, int peer, bool alone)
{
	const tutti_status trouble = look_for_trouble(engine);
	const uint32_t round = wait->rounds++;
	int64_t now;
	bool awake;

	if (trouble != TUTTI_AGAIN)
		return trouble;
	awake = back_off(&self, round, engine->spin_rounds, engine->config.oversubscribed);
	if (awake && (round < engine->spin_rounds || wait->rounds % ROUNDS_PER_CLOCK != 0))
		return TUTTI_AGAIN;
	now = tti_now_ns();
	if (wait->since_ns == 0) {
		wait->since_ns = now;
		wait->report_ns = now + REPORT_NS;
		return TUTTI_AGAIN;
	}
	if (now >= wait->report_ns) {
		const tutti_status st = report(wait, engine, now, peer);

		if (st != TUTTI_OK)
			return st;
	}
	if (!awake || now - wait->since_ns > awake_ns(engine)) {
		wait->rounds--; /* look at the clock each time */
		nap(wait, engine, alone);
	}
	return TUTTI_AGAIN;
}
