/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_WAIT_H
#define TTI_ENGINE_WAIT_H

/* How a thread waits when nothing moved. There is one policy for programs, transfers, windows
 * and streams:
 *
 *     spin    where every rank of the host has a core of its own, for some 4 us
 *     yield   until the wait has taken 0.2 ms (2 ms where every rank has a core of its own, 20 ms if all
 *             peers are over a network)
 *     sleep   on the transport, woken by the peer; at most 5 ms, to look for an abort
 *
 * The policy changes while **yields are expensive**. A yield takes 0.3 to 1 us if nothing else
 * wants the core, and little more if a peer does. Another job that wants the core may get it for a
 * whole time slice: next to busy loops most yields take more than 1 ms, and 4 ms or more is common
 * (Linux 6.18, ticks of 4 ms). The scheduler lets a sleeper that is woken run at once, as it has
 * used less than its share, but a call that sleeps costs some 50 us where one that yields takes a
 * few. So yields are timed, and count as expensive once more than one in 80 is long (over 0.5 ms):
 * 4 ms in 80 are 50 us each. Fewer long ones cost less than sleeping would. Three long yields in a
 * row are enough. Yields are then expensive for 0.02 s, and for twice as long each time that the
 * same soon happens again, up to 1 s; each probe costs one long yield. While yields are expensive,
 *
 *     where ranks share cores, a wait sleeps at once, since the peer may need this core;
 *     where each has its own, it spins on, and sleeps after 0.2 ms: a peer that has its core at
 *         the moment answers before a sleeper could be woken, which takes 10 us or more.
 *
 * A **background thread**, which works while other threads of its process compute, sleeps at once,
 * too: see tti_wait_set_background().
 *
 * A sender pays for a wake-up only if its peer sleeps: `sleep` of a port returns when a message or
 * room for one has come (transport.h). Where it is known which message, or how many, must come
 * before the rank has something to send (tti_job_missing() in job.h), only the last of them wakes
 * it. Otherwise ranks would wake each other for each message only to find that they still cannot go
 * on. */

#include "engine/engine.h"

/* One wait; zero it when something moved. */
struct tti_wait {
	uint32_t rounds;
	int64_t since_ns;  /* 0: the clock was not looked at yet            */
	int64_t report_ns; /* when to call on_wait next                     */
	/* The wait cannot end before so many messages have come, the one message by that link; 0:
	 * not known. */
	uint32_t missing;
	const struct tti_link *awaited;
	/* Of a job that its maker runs, as the job says (engine.h): */
	bool is_polled;
	int64_t blames_since_ns, nap_ns;
};

/* Nothing moved on the engine. TUTTI_AGAIN: look again; else the wait ends with that error: stop,
 * the failure of a port, or what on_wait returned. `alone`: the thread serves no other engine, so
 * it may sleep for long. */
tutti_status tti_wait_step(struct tti_wait *wait, struct tti_engine *engine, int peer, bool alone);

/* Spin or yield once, in the middle of an operation. False: the next step has more to do, and must
 * be tti_wait_step(). */
bool tti_wait_briefly(struct tti_wait *wait, const struct tti_engine *engine);

/* Whether the next step may report the peer that it waits for, which takes time to find. */
static inline bool tti_wait_is_slow(const struct tti_wait *wait)
{
	return wait->since_ns != 0;
}

/* Make this thread a background thread: while *awaited is 0 its waits sleep at once, since spinning
 * would take time from the computation, and a yield would give away the turn of the thread. NULL:
 * an ordinary thread. *awaited belongs to the caller, and outlives the waits. Returns the previous
 * value. */
const _Atomic int *tti_wait_set_background(const _Atomic int *awaited);

/* For waits outside the engine: spin once in the first `spins` rounds of a wait, yield once after
 * them. False: neither, the thread should sleep at once. `oversubscribed`: ranks of this host share
 * cores. */
bool tti_wait_backoff(uint32_t round, uint32_t spins, bool oversubscribed);

/* What a thread knows of its yields. Zeroed: they are cheap. */
struct tti_yields {
	int64_t level;              /* 80 up for a long one, 1 down for a short one */
	int64_t expensive_until_ns; /* 0: they are not                              */
	int64_t expensive_for_ns;   /* how long that was                            */
	int64_t calm_since_ns;      /* when it last ended                           */
};

/* Whether they are expensive at `now_ns`, which must not go back. */
bool tti_yields_are_expensive(struct tti_yields *yields, int64_t now_ns);
/* A yield that ended at `now_ns` took so long, and came after `nshort` that are known to be
 * short. */
void tti_yields_took(struct tti_yields *yields, int64_t now_ns, int64_t took_ns, uint64_t nshort);

/* Call progress() of the ports that need it. */
static inline void tti_engine_progress(struct tti_engine *engine)
{
	for (int i = 0; i < engine->nactive; i++)
		engine->active[i]->transport->progress(engine->active[i]);
}

#endif
