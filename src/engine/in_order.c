/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/engine.h"

#include "engine/job.h"
#include "engine/operation.h"
#include "engine/program.h"
#include "engine/rndv.h"
#include "util/error.h"
#include "util/mem.h"

/* Running a compiled program one operation after the other, in its order, which never deadlocks
 * (coll/compile/compile.h): without a window and without queues. The same messages in the same
 * order on each link as program.c sends. */

/* Run one operation of one block if all that it needs is there. *found: how many of its messages
 * are. `is_all`: nothing else can run. */
static bool run_block(struct tti_job *job, const struct tti_linked *at,
		      const struct tti_operand *operand, int32_t *found, bool is_all)
{
	tutti_status st = tti_operation_sources(job, at, operand, found, is_all ? job->wait : NULL);

	if (st == TUTTI_OK)
		st = tti_operation_reserve(job, at, operand->nbytes);
	if (st != TUTTI_OK) {
		if (st != TUTTI_AGAIN)
			job->status = st;
		return false;
	}
	tti_operation_run(job, at, operand, NULL);
	*found = 0;
	return true;
}

/* Run operations that wait for messages alone, no two of them from one peer, each when its messages
 * are there: in order, ranks that share cores would switch context once for each message. */
static bool run_as_they_come(struct tti_job *job)
{
	struct tti_progress *list = job->program.exec->progress;
	bool moved = false;

	/* The list of those that are left, by number. */
	for (int64_t at = 0; at < job->program.left && job->status == TUTTI_AGAIN;) {
		const int32_t index = list[at].next;
		int32_t found = 0;

		if (run_block(job, &job->program.exec->linked[index], &job->program.operands[index],
			      &found, job->program.left == 1)) {
			list[at].next = list[--job->program.left].next;
			moved = true;
		} else {
			at++;
		}
	}
	return moved;
}

/* Run the next operations of the one block, whose operands are known, until one has to wait. */
static bool run_known(struct tti_job *job)
{
	int32_t *pos = &job->program.pos;
	const int32_t before = *pos;

	while (job->program.left > 0 &&
	       run_block(job, &job->program.exec->linked[*pos], &job->program.operands[*pos],
			 &job->program.found, true)) {
		++*pos;
		job->program.left--;
	}
	return *pos != before;
}

/* Run the next block of an operation, or a part of a rendezvous; returns how many blocks are
 * done. */
static int32_t run_some(struct tti_job *job, int32_t index, bool *moved)
{
	const struct tti_executable *exec = job->program.exec;
	struct tti_operand operand;

	if (tti_rndv_has(job, index)) {
		const enum tti_rndv_step step = tti_rndv_progress(job, index);

		*moved |= step == TTI_RNDV_MOVED;
		return step == TTI_RNDV_DONE ? exec->progress[index].end : 0;
	}
	operand = tti_operand_at(job, &exec->prog.oper[index], exec->progress[index].next);
	return run_block(job, &exec->linked[index], &operand, &job->program.found, true);
}

/* Run the next operations, each with all its blocks, until one has to wait. */
static bool run_next(struct tti_job *job)
{
	const struct tti_executable *exec = job->program.exec;
	bool moved = false;

	while (job->program.left > 0) {
		struct tti_progress *progress = &exec->progress[job->program.pos];
		const int32_t done = run_some(job, job->program.pos, &moved);

		if (!done)
			break;
		moved = true;
		job->program.left -= done;
		progress->next += done;
		if (progress->next == progress->end)
			job->program.pos++;
	}
	return moved;
}

bool tti_in_order_poll(struct tti_job *job)
{
	const bool moved = !job->program.operands       ? run_next(job)
			   : job->program.exec->is_free ? run_as_they_come(job)
							: run_known(job);

	if (job->program.left == 0 && job->status == TUTTI_AGAIN)
		job->status = TUTTI_OK;
	return moved;
}

/* -- Calls that are kept ------------------------------------------------------------ */

bool tti_short_fits(const struct tti_layout *layout, size_t slice_bytes)
{
	return !layout->extents && layout->chunk_count <= slice_bytes / layout->type_size;
}

/* A send or receive that is no rendezvous. */
static bool is_one_message(const struct tti_executable *exec, const struct tti_layout *layout)
{
	return exec->prog.nopers == 1 && !layout->has_rndv &&
	       layout->extents[0].count <= layout->extents[0].slice;
}

tutti_status tti_short_prepare(struct tti_short *call, struct tti_engine *engine,
			       struct tti_executable *exec, const struct tti_layout *layout,
			       const struct tti_reducer *reducer, size_t slice_bytes)
{
	const bool is_known = !layout->by_chunk || is_one_message(exec, layout);
	const int32_t n = is_known ? exec->prog.nopers : 0;

	if (n > call->room) {
		struct tti_operand *operand = tti_calloc((size_t)n, sizeof(*operand));

		if (!operand)
			return tti_fail(TUTTI_ENOMEM, "program %s of %d operations: out of memory",
					exec->prog.algorithm, n);
		tti_free(call->operands);
		call->operands = operand;
		call->room = n;
	}
	TTI_TRY(tti_program_prepare(&call->job, engine, exec, layout, reducer, slice_bytes, 0));
	call->job.program.in_order = true;
	call->job.program.operands = is_known ? call->operands : NULL;
	if (is_known)
		call->job.program.layout.by_chunk = false; /* no message is a piece */
	for (int32_t i = 0; i < n; i++)
		call->operands[i] = tti_operand_at(&call->job, &exec->prog.oper[i], 0);
	return TUTTI_OK;
}

void tti_short_release(struct tti_short *call)
{
	tti_free(call->operands);
	*call = (struct tti_short){ 0 };
}

/* As tti_job_poll(). */
static __attribute__((noinline, cold)) bool poll_unconnected(struct tti_job *job)
{
	bool moved;

	tti_engine_progress(job->engine);
	moved = tti_job_is_connected(job) && tti_in_order_poll(job);
	tti_job_hold_unsent(job);
	return moved;
}

/* The same, once the links are there. */
static bool poll_connected(struct tti_job *job)
{
	bool moved;

	tti_engine_progress(job->engine);
	moved = tti_in_order_poll(job);
	tti_job_hold_unsent(job);
	return moved;
}

static void list_all(struct tti_job *job)
{
	const struct tti_executable *exec = job->program.exec;

	job->program.left = exec->prog.nopers;
	for (int32_t i = 0; exec->is_free && i < exec->prog.nopers; i++)
		exec->progress[i].next = i;
}

tutti_status tti_short_run(struct tti_short *call, const void *input, void *output, uint64_t tag)
{
	struct tti_job *job = &call->job;

	job->tag = tag;
	job->status = TUTTI_AGAIN;
	job->mismatch_peer = -1;
	job->program.pos = 0;
	job->program.found = 0;
	if (job->program.operands)
		list_all(job);
	else
		tti_program_begin(job);
	tti_job_place(job, input, output);
	return job->program.exec->connected ? tti_job_wait_for(job, poll_connected)
					    : tti_job_wait_for(job, poll_unconnected);
}
