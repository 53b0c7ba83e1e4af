/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/engine.h"

#include "engine/job.h"
#include "engine/program.h"

void tti_job_polled(struct tti_job *job, struct tti_engine *engine,
		    bool (*poll)(struct tti_job *job), void *self)
{
	*job = (struct tti_job){
		.engine = engine,
		.status = TUTTI_AGAIN,
		.mismatch_peer = -1,
		.waiting_on = -1,
		.poll = poll,
		.self = self,
	};
}

bool tti_job_poll(struct tti_job *job)
{
	struct tti_engine *engine = job->engine;
	bool moved;

	tti_engine_progress(engine);
	if (!job->poll && !tti_job_is_connected(job))
		return false;
	moved = job->poll                ? job->poll(job)
		: job->program.is_memory ? tti_memory_poll(job)
		: job->program.in_order  ? tti_in_order_poll(job)
					 : tti_program_poll(job);
	tti_job_hold_unsent(job);
	return moved;
}

/* Whether any of them moved; *running: how many go on. */
static bool poll_all(struct tti_job *const *jobs, int n, int *running)
{
	bool moved = false;

	*running = 0;
	for (int i = 0; i < n; i++) {
		struct tti_job *job = jobs[i];

		if (job->status != TUTTI_AGAIN)
			continue;
		moved |= tti_job_poll(job) || job->status != TUTTI_AGAIN;
		*running += job->status == TUTTI_AGAIN;
	}
	return moved;
}

tutti_status tti_job_wait(struct tti_job *const *jobs, int n)
{
	struct tti_wait wait = { 0 };
	tutti_status result = TUTTI_OK;
	int running = n;

	if (n == 1 && jobs[0]->status == TUTTI_AGAIN)
		return tti_job_wait_for(jobs[0], tti_job_poll);
	while (running > 0) {
		if (poll_all(jobs, n, &running)) {
			wait = (struct tti_wait){ 0 };
			continue;
		}
		for (int i = 0; i < n; i++)
			if (jobs[i]->status == TUTTI_AGAIN)
				tti_job_wait_once(jobs[i], &wait, false);
	}
	for (int i = 0; i < n; i++) {
		tti_job_end(jobs[i]);
		if (result == TUTTI_OK)
			result = jobs[i]->status;
	}
	return result;
}
