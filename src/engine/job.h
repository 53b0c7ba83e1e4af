/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_JOB_H
#define TTI_ENGINE_JOB_H

/* How a job is waited for. Internal to the engine. */

#include "engine/executable.h"
#include "engine/wait.h"

/* One round of waiting for a job on which nothing moved; `alone`: the thread has no other job. */
void tti_job_wait_once(struct tti_job *job, struct tti_wait *wait, bool alone);
/* A job is over: withdraw what others may see of it. */
void tti_job_end(const struct tti_job *job);

/* Wait for one job, which `poll` advances. Inline, as it is on the way of every short call. */
static inline tutti_status tti_job_wait_for(struct tti_job *job, bool (*poll)(struct tti_job *))
{
	struct tti_wait wait = { 0 };
	bool waits = false, has_waited = false;

	/* This gains 2 % where ranks share cores, and nothing or less where they spin. */
	if (job->engine->config.oversubscribed && job->engine->nactive == 0)
		job->wait = &wait;
	for (;;) {
		const bool moved = poll(job);

		if (job->status != TUTTI_AGAIN)
			break;
		if (!moved)
			tti_job_wait_once(job, &wait, true);
		else if (waits)
			wait = (struct tti_wait){ 0 };
		waits = !moved;
		has_waited |= waits;
	}
	job->wait = NULL;
	if (job->status != TUTTI_OK || has_waited)
		tti_job_end(job);
	return job->status;
}

/* How many messages have to come before the next operation that sends; 0: not known, or any message
 * may wake. Operations that run in their order never wait for each other in a circle
 * (coll/compile/compile.h). *first is the link of one of the messages, of the next one where they
 * are few. */
uint32_t tti_job_missing(const struct tti_job *job, const struct tti_link **first);

#endif
