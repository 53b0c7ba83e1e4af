/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/program.h"

#include <string.h>

#include "engine/operation.h"
#include "engine/rndv.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/measured.h"
#include "util/mem.h"

/* Running a compiled program as its messages come, several blocks at once.
 *
 * A queue is the FIFO of one direction of a link, and stands at the operation and block of its next
 * message. So the heads of the queues say what can run next: an operation runs when it is the head
 * of all its queues, the operations that it waits for are past this block, its messages are there
 * and its slots free. Blocks touch different bytes, so they need no order but that of the queues.
 *
 * Queues go in rounds: in round r an operation of stage s works on block r - STAGE_SKEW * s
 * (executable.c), if there is one. So what ends a block does not hold up, on a link that both
 * use, what begins the blocks after it. Where each chunk has blocks of its own (by_chunk) a queue
 * takes all blocks of one operation, then all of the next. */

static bool is_head(const struct tti_executable *exec, int32_t queue, int32_t block, int32_t index)
{
	const struct tti_cursor *cursor = &exec->cursor[queue];

	return cursor->round == block + exec->skew[index] &&
	       exec->prog.queued[exec->prog.queue[queue].first + cursor->pos] == index;
}

static int32_t head_of(const struct tti_executable *exec, int32_t queue)
{
	return exec->prog.queued[exec->prog.queue[queue].first + exec->cursor[queue].pos];
}

static bool has_ended(const struct tti_job *job, int32_t queue)
{
	const struct tti_executable *exec = job->program.exec;

	if (job->program.layout.by_chunk)
		return exec->cursor[queue].pos == exec->prog.queue[queue].n;
	return exec->cursor[queue].round >= job->program.nblocks + exec->max_skew;
}

/* The block of the operation at the head of a queue. */
static int32_t block_of(const struct tti_executable *exec, int32_t queue)
{
	return exec->cursor[queue].round - exec->skew[head_of(exec, queue)];
}

/* Go on to the next operation of the round. */
static void step_on(const struct tti_executable *exec, int32_t queue)
{
	struct tti_cursor *cursor = &exec->cursor[queue];

	if (++cursor->pos == exec->prog.queue[queue].n) {
		cursor->pos = 0;
		cursor->round++;
	}
}

/* Step over operations that have no block in this round. */
static void skip(const struct tti_job *job, int32_t queue)
{
	const struct tti_executable *exec = job->program.exec;

	for (; exec->max_skew > 0 && !has_ended(job, queue); step_on(exec, queue)) {
		const int32_t block = block_of(exec, queue);

		if (block >= 0 && block < job->program.nblocks)
			return;
	}
}

/* Step over the block of the operation at its head. */
static void leave(const struct tti_job *job, int32_t queue)
{
	const struct tti_executable *exec = job->program.exec;
	struct tti_cursor *cursor = &exec->cursor[queue];

	if (!job->program.layout.by_chunk) {
		step_on(exec, queue);
		skip(job, queue);
	} else if (++cursor->round >= exec->progress[head_of(exec, queue)].end) {
		cursor->pos++;
		cursor->round = 0;
	}
}

/* -- One operation ------------------------------------------------------------ */

/* Whether an operation is next on all its links. */
static bool leads_all(const struct tti_executable *exec, int32_t index, int32_t block)
{
	const struct tti_operation *op = &exec->prog.oper[index];

	for (int i = 0; i < op->nin; i++)
		if (!is_head(exec, exec->prog.queue_of[op->in + i], block, index))
			return false;
	for (int i = 0; i < op->nout; i++)
		if (!is_head(exec, exec->prog.queue_of[op->out + i], block, index))
			return false;
	return true;
}

/* Whether the operations that it waits for are past this block, not counting `but` (-1: all
 * count). */
static bool is_free_but(const struct tti_executable *exec, int32_t index, int32_t block,
			int32_t but)
{
	for (int32_t i = exec->pred_of[index]; i < exec->pred_of[index + 1]; i++)
		if (exec->progress[exec->pred[i]].next <= block && exec->pred[i] != but)
			return false;
	return true;
}

/* An operation is past its next `nblocks` blocks. */
static void finish(struct tti_job *job, int32_t index, int32_t block, int32_t nblocks)
{
	struct tti_executable *exec = job->program.exec;
	const struct tti_compiled *prog = &exec->prog;
	const struct tti_operation *op = &prog->oper[index];

	exec->progress[index].next += nblocks;
	job->program.left -= nblocks;
	for (int i = 0; i < op->nin + op->nout; i++) {
		const int32_t queue =
			prog->queue_of[i < op->nin ? op->in + i : op->out + i - op->nin];

		exec->cursor[queue].round += nblocks - 1;
		leave(job, queue);
	}
	exec->left[block & (exec->window - 1)]--;
}

/* The operation that sends on what `index` is about to write, if it can run now. */
static int32_t ready_then(struct tti_job *job, int32_t index, int32_t block, size_t nbytes)
{
	const struct tti_executable *exec = job->program.exec;
	const int32_t then = exec->prog.oper[index].then;

	if (then < 0 || !leads_all(exec, then, block) || !is_free_but(exec, then, block, index) ||
	    tti_operation_reserve(job, &exec->linked[then], nbytes) != TUTTI_OK)
		return -1;
	return then;
}

/* Send data that is only sent, and to one peer, straight out of memory; false: it does not go
 * so. */
static bool send_from_memory(struct tti_job *job, int32_t index, const struct tti_operand *operand)
{
	const struct tti_executable *exec = job->program.exec;
	const struct tti_operation *op = &exec->prog.oper[index];
	struct tti_link *link;

	if (op->nin || op->nout != 1 || op->to != TTI_PLACE_NONE || !operand->nbytes ||
	    (op->from == TTI_PLACE_INPUT && job->program.reducer.scalars))
		return false;
	link = exec->link[exec->prog.queue_of[op->out]];
	return link->ops->send &&
	       link->ops->send(link, (const void *)(job->program.at[op->from] + operand->from),
			       operand->nbytes, tti_job_tag(job, op));
}

/* A rendezvous is one piece, whatever its blocks. */
static bool try_rndv(struct tti_job *job, int32_t index)
{
	const struct tti_executable *exec = job->program.exec;
	const int32_t end = exec->progress[index].end;
	enum tti_rndv_step step;

	if (!is_free_but(exec, index, end - 1, -1))
		return false;
	step = tti_rndv_progress(job, index);
	if (step == TTI_RNDV_DONE)
		finish(job, index, 0, end);
	return step != TTI_RNDV_WAITS;
}

/* Run one operation of one block if all that it needs is there. */
static bool try_oper(struct tti_job *job, int32_t index, int32_t block)
{
	struct tti_executable *exec = job->program.exec;
	const struct tti_linked *at = &exec->linked[index];
	struct tti_operand operand;
	int32_t sender = -1, found = 0;
	tutti_status st;

	if (!is_free_but(exec, index, block, -1) || !leads_all(exec, index, block))
		return false;
	if (tti_rndv_has(job, index))
		return try_rndv(job, index);
	operand = tti_operand_at(job, at->op, block);
	if (send_from_memory(job, index, &operand)) {
		finish(job, index, block, 1);
		return true;
	}
	st = tti_operation_sources(job, at, &operand, &found, NULL);
	if (st == TUTTI_OK)
		st = tti_operation_reserve(job, at, operand.nbytes);
	if (st != TUTTI_OK) {
		if (st != TUTTI_AGAIN)
			job->status = st;
		return false;
	}
	if (at->op->nout == 0)
		sender = ready_then(job, index, block, operand.nbytes);
	tti_operation_run(job, at, &operand, sender < 0 ? NULL : &exec->linked[sender]);
	finish(job, index, block, 1);
	if (sender >= 0)
		finish(job, sender, block, 1);
	return true;
}

/* -- All ----------------------------------------------------------------------- */

/* Blocks that are done make room in the window. */
static void close_blocks(struct tti_job *job)
{
	const struct tti_executable *exec = job->program.exec;
	int32_t *base = &job->program.base;

	while (!job->program.layout.by_chunk && *base < job->program.nblocks &&
	       exec->left[*base & (exec->window - 1)] == 0) {
		exec->left[*base & (exec->window - 1)] = exec->prog.nopers;
		++*base;
	}
}

static bool is_in_window(const struct tti_job *job, int32_t block)
{
	return job->program.layout.by_chunk ||
	       block < job->program.base + job->program.exec->window;
}

static bool poll_queue(struct tti_job *job, int32_t queue)
{
	struct tti_executable *exec = job->program.exec;
	bool moved = false;

	while (!has_ended(job, queue) && job->status == TUTTI_AGAIN) {
		const int32_t index = head_of(exec, queue);
		const int32_t block = block_of(exec, queue);
		const bool was_rndv = tti_rndv_has(job, index);

		if (!is_in_window(job, block) || exec->lead[index] != queue ||
		    !try_oper(job, index, block))
			break;
		moved = true;
		close_blocks(job);
		if (was_rndv) /* a lot was copied: others have something to do, too */
			break;
	}
	return moved;
}

/* Operations without messages: in order, one block after the other. */
static bool poll_local(struct tti_job *job)
{
	struct tti_executable *exec = job->program.exec;
	int32_t *block = &job->program.block, *pos = &job->program.pos;
	bool moved = false;

	if (exec->prog.nlocal == 0)
		return false;
	while (*block < job->program.nblocks && is_in_window(job, *block) &&
	       try_oper(job, exec->prog.local[*pos], *block)) {
		moved = true;
		if (++*pos == exec->prog.nlocal) {
			*pos = 0;
			++*block;
		}
		close_blocks(job);
	}
	return moved;
}

bool tti_program_poll(struct tti_job *job)
{
	struct tti_executable *exec = job->program.exec;
	bool moved = false;

	for (int32_t queue = 0; queue < exec->prog.nqueues; queue++)
		moved |= poll_queue(job, queue);
	moved |= poll_local(job);
	if (job->status == TUTTI_AGAIN && job->program.left == 0)
		job->status = TUTTI_OK;
	return moved;
}

/* How long one of several peers is blamed, so that it can turn out to be gone. */
#define BLAMED_NS (1000 * TTI_NS_PER_MS)

static bool is_behind(struct tti_link *link)
{
	return !link->ops->all_released || !link->ops->all_released(link);
}

/* Which of so many peers that are behind is blamed now: each for a while, as from here a peer that
 * waits for others looks like one that is gone. */
static int whose_turn(int behind)
{
	return (int)(tti_now_ns() / BLAMED_NS % behind);
}

/* The peer that has not read what takes the room; -1: none. */
static int blame_readers(const struct tti_post *post)
{
	int behind = 0, skipped;

	for (int i = 0; i < post->n; i++)
		behind += is_behind(post->links[i]);
	if (behind == 0)
		return -1;
	skipped = whose_turn(behind);
	for (int i = 0; i < post->n; i++)
		if (is_behind(post->links[i]) && skipped-- == 0)
			return post->links[i]->peer;
	return -1;
}

/* Whether the next operation of a queue is of the oldest block and waits for nothing but its
 * peers. */
static bool is_held(const struct tti_job *job, int32_t queue)
{
	const struct tti_executable *exec = job->program.exec;
	int32_t block;

	if (has_ended(job, queue))
		return false;
	block = block_of(exec, queue);
	return (job->program.layout.by_chunk || block <= job->program.base) &&
	       is_free_but(exec, head_of(exec, queue), block, -1);
}

/* The links that keep the oldest block from its end: the peer of one on which a message is missing,
 * else of one whose peer has not read what it was sent. */
int tti_program_blame(const struct tti_job *job)
{
	const struct tti_executable *exec = job->program.exec;
	int behind = 0, skipped, blamed = -1;

	if (job->poll)
		return job->waiting_on;
	if (!exec->connected || job->program.in_order || job->program.is_memory)
		return job->no_room ? blame_readers(job->no_room) : job->waiting_on;
	for (int32_t i = 0; i < exec->prog.nqueues; i++) {
		const struct tti_queue *queue = &exec->prog.queue[i];

		if (!is_held(job, i))
			continue;
		if (queue->is_send)
			behind += is_behind(exec->link[i]);
		else if (!exec->link[i]->ops->peek(exec->link[i], &(size_t){ 0 }, &(uint64_t){ 0 }))
			return queue->peer;
	}
	skipped = behind ? whose_turn(behind) : 0;
	for (int32_t i = 0; i < exec->prog.nqueues && skipped >= 0; i++) {
		if (!exec->prog.queue[i].is_send || !is_held(job, i) ||
		    (behind && (!is_behind(exec->link[i]) || skipped-- > 0)))
			continue;
		blamed = exec->prog.queue[i].peer;
	}
	return blamed;
}

/* Whether the caches do not hold two vectors of this call. Then copies into them are written past
 * the caches. */
static bool is_large(const struct tti_engine *engine, const struct tti_executable *exec,
		     const struct tti_layout *layout)
{
	const size_t count = layout->extents ? layout->row_count
					     : layout->chunk_count * (size_t)exec->prog.nchunks;

	/* What comes from one rank alone is seldom read soon by this one. */
	if (layout->by_chunk)
		return layout->chunk_count * layout->type_size >= TTI_COPY_PAST_CACHES;
	return count >= engine->config.cache_bytes / 2 / layout->type_size;
}

static int32_t blocks_for(size_t count, size_t slice)
{
	return count > slice ? (int32_t)((count + slice - 1) / slice) : 1;
}

tutti_status tti_program_prepare(struct tti_job *job, struct tti_engine *engine,
				 struct tti_executable *exec, const struct tti_layout *layout,
				 const struct tti_reducer *reducer, size_t slice_bytes,
				 uint64_t tag)
{
	size_t slice = slice_bytes / layout->type_size;

	if (slice == 0)
		slice = 1;
	if (slice > layout->chunk_count)
		slice = layout->chunk_count ? layout->chunk_count : 1;
	*job = (struct tti_job){ .engine = engine,
				 .tag = tag,
				 .status = exec->prog.nopers ? TUTTI_AGAIN : TUTTI_OK,
				 .mismatch_peer = -1,
				 .waiting_on = -1 };
	job->program.exec = exec;
	job->program.layout = *layout;
	job->program.slice = slice;
	job->program.is_large = is_large(engine, exec, layout);
	job->program.reducer = *reducer;
	job->program.nblocks = layout->by_chunk ? 1 : blocks_for(layout->chunk_count, slice);
	TTI_TRY(tti_engine_need_scratch(engine, (size_t)exec->window * (size_t)exec->prog.nscratch *
							slice * layout->type_size));
	tti_job_place(job, layout->input, layout->output);
	return TUTTI_OK;
}

void tti_program_begin(struct tti_job *job)
{
	const struct tti_layout *layout = &job->program.layout;
	const struct tti_executable *exec = job->program.exec;

	job->program.left = 0;
	for (int32_t i = 0; i < exec->prog.nopers; i++) {
		const struct tti_extent *extent =
			layout->by_chunk ? &layout->extents[exec->prog.oper[i].chunk] : NULL;

		exec->progress[i].next = 0;
		exec->progress[i].end =
			extent ? blocks_for(extent->count, extent->slice) : job->program.nblocks;
		job->program.left += exec->progress[i].end;
		if (exec->rndv)
			exec->rndv[i] = (struct tti_rndv){ 0 };
	}
}

tutti_status tti_job_program(struct tti_job *job, struct tti_engine *engine,
			     struct tti_executable *exec, const struct tti_layout *layout,
			     const struct tti_reducer *reducer, size_t slice_bytes, uint64_t tag)
{
	const struct tti_compiled *prog = &exec->prog;

	TTI_TRY(tti_program_prepare(job, engine, exec, layout, reducer, slice_bytes, tag));
	tti_program_begin(job);
	memset(exec->cursor, 0, (size_t)prog->nqueues * sizeof(*exec->cursor));
	for (int32_t block = 0; block < exec->window; block++)
		exec->left[block] = prog->nopers;
	for (int32_t queue = 0; queue < prog->nqueues; queue++)
		skip(job, queue);
	return TUTTI_OK;
}
