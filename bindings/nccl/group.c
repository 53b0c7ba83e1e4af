/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: first what Tutti's groups take, then what Tutti does not take in a group. */
#include "binding.h"

#include <stdio.h>
#include <stdlib.h>

/* The group of the calling thread. */
struct queued {
	struct queued *next;
	struct tti_nccl_job job;
};

static _Thread_local struct {
	struct queued *first, **end;
} group;

ncclResult_t tti_nccl_job_add(const struct tti_nccl_job *job)
{
	struct queued *queued;

	if (!job->work)
		return tti_nccl_fail(job->comm, ncclSystemError, "out of memory");
	if (!tti_nccl_in_group())
		return job->run(job->work);
	queued = calloc(1, sizeof(*queued));
	if (!queued) {
		job->drop(job->work);
		return tti_nccl_fail(job->comm, ncclSystemError, "a group: out of memory");
	}
	queued->job = *job;
	if (!group.first)
		group.end = &group.first;
	*group.end = queued;
	group.end = &queued->next;
	return ncclSuccess;
}

/* -- What waits for the end -------------------------------------------------------- */

/* The jobs of one communicator, in their order. */
struct runner {
	ncclComm_t comm;
	const struct queued *first;
	enum tti_nccl_phase phase;
	pthread_t thread;
	bool has_thread;
	ncclResult_t result;
	char text[512];
};

static void *run_aside(void *arg)
{
	struct runner *runner = arg;

	for (const struct queued *queued = runner->first; queued; queued = queued->next) {
		ncclResult_t one;

		if (queued->job.phase != runner->phase || queued->job.comm != runner->comm)
			continue;
		one = queued->job.run(queued->job.work);
		if (one == ncclSuccess || runner->result != ncclSuccess)
			continue;
		runner->result = one;
		(void)snprintf(runner->text, sizeof(runner->text), "%s", pncclGetLastError(NULL));
	}
	return NULL;
}

/* One list for each communicator that has jobs of this phase. Returns how many. */
static size_t make_runners(enum tti_nccl_phase phase, struct runner *runners)
{
	size_t n = 0;

	for (const struct queued *queued = group.first; queued; queued = queued->next) {
		size_t at = 0;

		if (queued->job.phase != phase)
			continue;
		while (at < n && runners[at].comm != queued->job.comm)
			at++;
		if (at == n)
			runners[n++] = (struct runner){ .comm = queued->job.comm,
							.first = group.first,
							.phase = phase };
	}
	return n;
}

/* Run the jobs of several communicators at the same time: each waits for those of other ranks,
 * which may be queued behind it. */
static ncclResult_t run_together(enum tti_nccl_phase phase)
{
	ncclResult_t result = ncclSuccess;
	struct runner *runners;
	size_t n = 0;

	for (const struct queued *queued = group.first; queued; queued = queued->next)
		n += queued->job.phase == phase;
	if (n == 0)
		return ncclSuccess;
	runners = calloc(n, sizeof(*runners));
	if (!runners) {
		for (struct queued *queued = group.first; queued; queued = queued->next)
			if (queued->job.phase == phase)
				queued->job.drop(queued->job.work);
		return tti_nccl_fail(NULL, ncclSystemError, "a group: out of memory");
	}
	n = make_runners(phase, runners);
	for (size_t at = 0; at < n; at++)
		runners[at].has_thread =
			pthread_create(&runners[at].thread, NULL, run_aside, &runners[at]) == 0;
	for (size_t at = 0; at < n; at++) {
		if (runners[at].has_thread)
			(void)pthread_join(runners[at].thread, NULL);
		else
			(void)run_aside(&runners[at]);
		if (result == ncclSuccess && runners[at].result != ncclSuccess) {
			result = runners[at].result;
			tti_nccl_keep(runners[at].comm, runners[at].text);
		}
	}
	free(runners);
	return result;
}

static ncclResult_t run_phase(enum tti_nccl_phase phase)
{
	ncclResult_t result = ncclSuccess;

	if (phase == TTI_NCCL_WINDOW)
		return run_together(phase);
	for (struct queued *queued = group.first; queued; queued = queued->next) {
		ncclResult_t one;

		if (queued->job.phase != phase)
			continue;
		one = queued->job.run(queued->job.work);
		if (result == ncclSuccess)
			result = one;
	}
	return result;
}

/* Run all jobs, however others went: what is to be freed must be. */
static ncclResult_t run_jobs(void)
{
	ncclResult_t result = ncclSuccess;

	for (int phase = TTI_NCCL_REGISTER; group.first && phase <= TTI_NCCL_INIT; phase++) {
		const ncclResult_t one = run_phase((enum tti_nccl_phase)phase);

		if (result == ncclSuccess)
			result = one;
	}
	return result;
}

static void free_jobs(bool dropped)
{
	while (group.first) {
		struct queued *queued = group.first;

		group.first = queued->next;
		if (dropped)
			queued->job.drop(queued->job.work);
		free(queued);
	}
}

/* -- The functions ------------------------------------------------------------------ */

ncclResult_t pncclGroupStart(void)
{
	const ncclResult_t result = tti_nccl_report(NULL, tutti_group_start());

	if (result == ncclSuccess)
		tti_nccl_thread()->depth++;
	return result;
}
ALSO_NAMED(ncclGroupStart);

ncclResult_t pncclGroupEnd(void)
{
	ncclResult_t result, spoiled;

	if (!tti_nccl_in_group())
		return tti_nccl_fail(NULL, ncclInvalidUsage,
				     "ncclGroupEnd() without ncclGroupStart()");
	spoiled = tti_nccl_thread()->spoiled;
	/* A spoiled group has already told its reason. */
	if (spoiled != ncclSuccess) {
		tutti_log_errors(0);
		result = tti_nccl_result(tutti_group_end());
		tutti_log_errors(1);
		result = spoiled;
	} else {
		result = tti_nccl_report(NULL, tutti_group_end());
	}
	if (--tti_nccl_thread()->depth > 0)
		return result;
	tti_nccl_thread()->spoiled = ncclSuccess;
	if (result == ncclSuccess)
		result = tti_nccl_capture_end(false);
	else
		(void)tti_nccl_capture_end(true);
	if (result != ncclSuccess) {
		free_jobs(true);
		return result;
	}
	result = run_jobs();
	free_jobs(false);
	return result;
}
ALSO_NAMED(ncclGroupEnd);

/* Inits are run. Windows and the like need other ranks to agree, which may not be in this call. */
static ncclResult_t end_simulation(ncclSimInfo_t *out)
{
	double us = 0;
	ncclResult_t result = ncclSuccess;

	for (const struct queued *queued = group.first; queued; queued = queued->next)
		if (queued->job.phase != TTI_NCCL_INIT && result == ncclSuccess)
			result = tti_nccl_fail(
				NULL, ncclInvalidUsage,
				"ncclGroupSimulateEnd(): registrations and the end of "
				"communicators cannot be simulated: leave them out of the "
				"group, which was dropped");
	if (result != ncclSuccess)
		return pncclGroupEnd();
	result = tti_nccl_report(NULL, tutti_group_simulate_end(&us));
	tti_nccl_thread()->depth--;
	(void)tti_nccl_capture_end(true);
	if (result != ncclSuccess) {
		free_jobs(true);
		return result;
	}
	out->estimatedTime = (float)us;
	result = run_phase(TTI_NCCL_INIT);
	free_jobs(false);
	return result;
}

ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *out)
{
	if (!tti_nccl_in_group())
		return tti_nccl_fail(NULL, ncclInvalidUsage,
				     "ncclGroupSimulateEnd() without ncclGroupStart()");
	if (!out || out->magic != 0x74685283 || out->size < sizeof(*out))
		(void)tti_nccl_fail(
			NULL, ncclInvalidArgument,
			"the result has magic 0x%x and %zu bytes: begin with "
			"NCCL_SIM_INFO_INITIALIZER. The calls of the group were dropped",
			out ? out->magic : 0, out ? out->size : 0);
	else if (tti_nccl_thread()->depth > 1)
		(void)tti_nccl_fail(
			NULL, ncclInvalidUsage,
			"ncclGroupSimulateEnd() ends one of %d groups: end the inner ones "
			"with ncclGroupEnd(). The calls of the group were dropped",
			tti_nccl_thread()->depth);
	/* A group that is spoiled by these jobs, or by a call, ends with the reason. */
	return tti_nccl_thread()->spoiled == ncclSuccess ? end_simulation(out) : pncclGroupEnd();
}
ALSO_NAMED(ncclGroupSimulateEnd);
