/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_WAIT_H
#define TTI_ENGINE_WAIT_H

/* How the engine waits when nothing moved: spin, yield, sleep. One struct a wait;
 * zero it when something moved. Internal to the engine. */

#include "engine/engine.h"

struct tti_wait {
	uint32_t rounds;
	int64_t since_ns;  /* 0: the clock was not looked at yet            */
	int64_t report_ns; /* when to call on_wait next                     */
	int64_t nap_ns;
};

/* Nothing moved on the engine. TUTTI_AGAIN: look again; else the wait is over with
 * that error: stop, a port's failure, what on_wait said. `alone`: this engine is the
 * only one the thread serves, so it may sleep long. */
tutti_status tti_wait_step(struct tti_wait *wait, struct tti_engine *engine, int peer, bool alone);

/* Whether the next step may report whom the wait is for: worth finding out. */
static inline bool tti_wait_is_slow(const struct tti_wait *wait)
{
	return wait->since_ns != 0;
}

/* From now on this thread works beside others of its process that compute, but while *awaited is
 * above 0: its waits leave the core as soon as they can, and are woken by what they wait for. NULL:
 * as any thread. What it points at stays the caller's, as long as the thread waits. */
void tti_wait_beside(const _Atomic int *awaited);

/* Progress of ports that need it. */
static inline void tti_engine_progress(struct tti_engine *engine)
{
	for (int i = 0; i < engine->nactive; i++)
		engine->active[i]->transport->progress(engine->active[i]);
}

#endif
