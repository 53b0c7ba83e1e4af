/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/job.h"

#include "engine/connect.h"
#include "engine/program.h"
#include "engine/rndv.h"
#include "util/measured.h"

size_t tti_piece_bytes(const struct tti_engine *engine, int peer, size_t nbytes)
{
	const struct tti_port *port = tti_engine_port(engine, peer);
	const size_t least = port->transport->piece_bytes, most = port->slot_bytes;
	size_t piece;

	if (least == 0 || !engine->config.cuts || nbytes / TTI_TRANSFER_PIECES >= most)
		return most;
	piece = (nbytes / TTI_TRANSFER_PIECES + least - 1) / least * least;
	if (piece < least)
		piece = least;
	return piece < most ? piece : most;
}

/* Whether the operations run in any order, as their messages come. */
static bool is_listed(const struct tti_job *job)
{
	return job->program.in_order && job->program.exec->is_free && job->program.operands;
}

/* Whether an operation has done the one block of a job, whose operations are not listed. */
static bool is_done(const struct tti_job *job, int32_t index)
{
	return job->program.in_order ? index < job->program.pos
				     : job->program.exec->progress[index].next > 0;
}

/* Whether the next message of a queue is that of an operation. */
static bool is_next(const struct tti_job *job, const struct tti_queue *queue, int32_t index)
{
	const int32_t *oper = job->program.exec->prog.queued + queue->first;

	while (*oper != index && is_done(job, *oper))
		oper++;
	return *oper == index;
}

/* How many messages of an operation have not come. Those behind others of their links do not count:
 * they may have no room before those are read. */
static uint32_t count_missing(const struct tti_job *job, int32_t index,
			      const struct tti_link **first)
{
	const struct tti_executable *exec = job->program.exec;
	const struct tti_linked *at = &exec->linked[index];
	uint32_t missing = 0;

	/* From the next rank on: else all ranks wait for the first one. */
	for (int i = 0; i < at->op->nin; i++) {
		const int k = (at->op->local_at + i) % at->op->nin;
		const int32_t queue = exec->prog.queue_of[at->op->in + k];

		if ((!is_listed(job) && !is_next(job, &exec->prog.queue[queue], index)) ||
		    at->in[k]->ops->peek(at->in[k], &(size_t){ 0 }, &(uint64_t){ 0 }))
			continue;
		if (!*first)
			*first = at->in[k];
		missing++;
	}
	return missing;
}

uint32_t tti_job_missing(const struct tti_job *job, const struct tti_link **first)
{
	const struct tti_executable *exec = job->program.exec;
	const bool listed = is_listed(job);
	const bool is_cut = job->program.nblocks > 1 || job->program.layout.by_chunk;
	const int32_t n = listed   ? (int32_t)job->program.left
			  : is_cut ? job->program.pos + 1
				   : exec->prog.nopers;
	uint32_t missing = 0;
	int all = 0;

	*first = NULL;
	if (!exec->connected || job->program.is_memory || (is_cut && !job->program.in_order))
		return 0;
	for (int32_t i = 0; i < n && i < exec->prog.nopers; i++) {
		const int32_t index = listed ? exec->progress[i].next : i;

		if (!listed && is_done(job, index))
			continue;
		if (exec->linked[index].op->nout > 0 || tti_rndv_has(job, index)) {
			/* Any of a list may be the next that can be run. */
			if (listed)
				return 0;
			break;
		}
		all += exec->linked[index].op->nin;
		missing += count_missing(job, index, first);
	}
	if (all >= TTI_WAKE_COUNTED_LEAST)
		return missing;
	return missing && job->program.in_order;
}

void tti_job_wait_once(struct tti_job *job, struct tti_wait *wait, bool alone)
{
	const bool is_slow = tti_wait_is_slow(wait);
	tutti_status st;

	wait->is_polled = job->poll;
	if (job->poll) {
		wait->blames_since_ns = job->waits_since_ns;
		wait->nap_ns = job->nap_ns;
		alone = false;
	}
	wait->missing = alone && is_slow ? tti_job_missing(job, &wait->awaited) : 0;
	st = tti_wait_step(wait, job->engine, is_slow ? tti_program_blame(job) : -1, alone);
	if (st != TUTTI_AGAIN)
		job->status = st;
}

void tti_job_end(const struct tti_job *job)
{
	if (job->status != TUTTI_OK && !job->poll)
		tti_rndv_revoke(job);
	atomic_store_explicit(&job->engine->waiting_on, -1, memory_order_relaxed);
}
