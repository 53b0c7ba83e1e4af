/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/wait.h"

#include <sched.h>
#include <time.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/thread.h"

/* Waiting costs: a spin sees news after some 50 ns but takes a core; a yield costs
 * 0.3 to 1 us; a sleep costs some 20 us to wake from. So spin where the core is
 * ours, yield where it is shared, and sleep when the other side is clearly not
 * about to answer. A spin is short even on a core of one's own: on a machine that
 * is busy with something else the peer may need this core to answer at all. */
#define YIELD_NS     (200 * 1000)
#define NAP_FIRST_NS (200 * 1000)
#define NAP_MOST_NS  (5 * TTI_NS_PER_MS)
#define NAP_MIXED_NS (50 * 1000)
#define REPORT_NS    (50 * TTI_NS_PER_MS)

/* Where all peers are over a network, who sleeps may be woken on another core than before, where
 * the system sees less to do: two ranks that had a core each then share one for a while. So
 * only long waits sleep. */
#define YIELD_NET_NS (20 * TTI_NS_PER_MS)
/* Where every rank has a core, a yield that takes so long has let something else work than a
 * peer, and whatever its priority (Linux 6.18: a tick or several). For a while none is made but
 * in waits that are long already, where it may be the peer that needs this core. */
#define DEAR_NS      (300 * 1000)
#define DEAR_FOR_NS  (1000 * TTI_NS_PER_MS)
#define DEAR_SPIN_NS (5 * TTI_NS_PER_MS)

/* The clock is looked at once in so many rounds. */
#define ROUNDS_PER_CLOCK 32

/* A thread whose process computes meanwhile takes that computation's time with each spin, and a
 * yield gives up its own turn (Linux 6.18: a tick or several for a look at a ring). Who sleeps
 * until there is news is let in at once, since it has slept. */
static _Thread_local const _Atomic int *beside;

void tti_wait_beside(const _Atomic int *awaited)
{
	beside = awaited;
}

static bool is_beside(void)
{
	return beside && atomic_load_explicit(beside, memory_order_relaxed) == 0;
}

/* Let others run, unless that was dear lately. */
static void step_aside(const struct tti_wait *wait, struct tti_engine *engine)
{
	int64_t before;

	if (engine->config.crowded) {
		sched_yield();
		return;
	}
	before = tti_now_ns();
	if (before < engine->dear_until &&
	    (!wait->since_ns || before - wait->since_ns < DEAR_SPIN_NS)) {
		tti_cpu_relax();
		return;
	}
	sched_yield();
	if (tti_now_ns() - before > DEAR_NS)
		engine->dear_until = before + DEAR_FOR_NS;
}

static void nap(struct tti_wait *wait, struct tti_engine *engine, bool alone)
{
	struct tti_port *port = engine->sleeper;
	const bool mixed = !alone || engine->is_mixed;

	if (wait->nap_ns == 0)
		wait->nap_ns = NAP_FIRST_NS;
	else if (wait->nap_ns < NAP_MOST_NS)
		wait->nap_ns += wait->nap_ns / 2;
	if (mixed && wait->nap_ns > NAP_MIXED_NS)
		wait->nap_ns = NAP_MIXED_NS;
	if (port && alone) {
		port->transport->sleep->wait(port, wait->nap_ns);
	} else {
		const struct timespec pause = { .tv_nsec = (long)wait->nap_ns };

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
	return events->on_wait(events->self, wait->since_ns, peer);
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

tutti_status tti_wait_step(struct tti_wait *wait, struct tti_engine *engine, int peer, bool alone)
{
	const tutti_status trouble = look_for_trouble(engine);
	bool stands_back;
	int64_t waited;
	int64_t now;

	if (trouble != TUTTI_AGAIN)
		return trouble;
	stands_back = is_beside();
	if (wait->rounds++ < (stands_back ? 0 : engine->spin_rounds)) {
		tti_cpu_relax();
		return TUTTI_AGAIN;
	}
	if (!stands_back) {
		step_aside(wait, engine);
		if (wait->rounds % ROUNDS_PER_CLOCK != 0)
			return TUTTI_AGAIN;
	}
	now = tti_now_ns();
	if (wait->since_ns == 0) {
		wait->since_ns = now;
		wait->report_ns = now + REPORT_NS;
		return TUTTI_AGAIN;
	}
	waited = now - wait->since_ns;
	if (now >= wait->report_ns) {
		const tutti_status st = report(wait, engine, now, peer);

		if (st != TUTTI_OK)
			return st;
	}
	if (stands_back || waited > (engine->is_net ? YIELD_NET_NS : YIELD_NS)) {
		wait->rounds--; /* look at the clock each time */
		nap(wait, engine, alone);
	}
	return TUTTI_AGAIN;
}
