/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_JOB_H
#define TTI_ENGINE_JOB_H

/* The kinds of job and what they share. Internal to the engine. */

#include <string.h>

#include "engine/bound.h"
#include "engine/engine.h"
#include "engine/wait.h"
#include "reduce/reduce.h"

/* All of tti_job_program() but what only running blocks beside each other needs. */
TUTTI_CHECKED tutti_status tti_program_prepare(struct tti_job *job, struct tti_engine *engine,
					       struct tti_bound *bound,
					       const struct tti_layout *layout,
					       const struct tti_reducer *reducer,
					       size_t slice_bytes, uint64_t tag);
/* No operation has begun. */
void tti_program_begin(struct tti_job *job);
bool tti_program_poll(struct tti_job *job);
/* The peer that the oldest unfinished block waits for, -1: none. */
int tti_program_blame(const struct tti_job *job);

/* One round of waiting for a job, as nothing moved: alone, or beside other jobs of the thread. */
void tti_job_wait_once(struct tti_job *job, struct tti_wait *wait, bool alone);
/* A job is over: nothing of it is left for others to see. */
void tti_job_end(const struct tti_job *job);

/* Wait for one job, which `poll` advances. Inline, as it is on the way of every short call. */
static inline tutti_status tti_job_wait_for(struct tti_job *job, bool (*poll)(struct tti_job *))
{
	struct tti_wait wait = { 0 };
	bool waits = false, has_waited = false;

	/* Measured: worth 2 % where ranks share cores, and nothing or less where they spin. */
	if (job->engine->config.crowded && job->engine->nactive == 0)
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

/* Nothing goes on before that peer does something. */
static inline void tti_job_awaits(struct tti_job *job, int peer)
{
	job->waiting_on = peer;
	job->no_room = NULL;
}

/* What was committed is on its way only once the system has it. */
static inline void tti_job_hold_unsent(struct tti_job *job)
{
	const struct tti_engine *engine = job->engine;

	for (int i = 0; job->status == TUTTI_OK && i < engine->nactive; i++) {
		if (engine->active[i]->unsent == 0)
			continue;
		job->status = TUTTI_AGAIN;
		tti_job_awaits(job, -1); /* nobody in particular */
	}
}

/* The same of operations in the order of the program. */
bool tti_in_order_poll(struct tti_job *job);

/* How many messages have to come before the next operation that sends, as operations that are run in
 * their order never wait for each other in a circle (coll/compile.h); 0: that is not known, or any may
 * wake. *first is the link of one of them: of the next where they are few. */
uint32_t tti_job_missing(const struct tti_job *job, const struct tti_link **first);

/* Scratch of so many bytes at least; what was in it is gone. */
TUTTI_CHECKED tutti_status tti_engine_need_scratch(struct tti_engine *engine, size_t nbytes);

/* Where the places of a program begin: integers, since a call may move nothing and have no
 * buffers. */
static inline void tti_program_place(struct tti_job *job, const void *input, void *output)
{
	job->program.at[TTI_PLACE_INPUT] = (uintptr_t)input;
	job->program.at[TTI_PLACE_OUTPUT] = (uintptr_t)output;
	job->program.at[TTI_PLACE_SCRATCH] = (uintptr_t)job->engine->scratch;
}

/* The same of memory programs. */
bool tti_memory_poll(struct tti_job *job);

bool tti_post_reserve_all(struct tti_post *post, size_t nbytes, size_t whole);
void tti_post_commit_all(const struct tti_post *post, size_t nbytes, uint64_t tag);

/* Room for a post in post->slot, to be filled: one slot that all links share where that
 * pays, else that of the first link, from which the others get copies. False: not now;
 * reserving again gives the same room. `whole`: it is a piece of so many bytes. Inline, as most
 * are of one link. */
static inline bool tti_post_reserve(struct tti_post *post, size_t nbytes, size_t whole)
{
	struct tti_link *const link = post->links[0];

	if (post->n > 1)
		return tti_post_reserve_all(post, nbytes, whole);
	post->slot = link->ops->reserve(link, nbytes, whole);
	return post->slot != NULL;
}

/* Up to here there is but one way to write a slot. */
#define TTI_LINE_BYTES 64

/* Whether a slot that was reserved is filled for a reader that waits: what fits a line is not, and
 * what is long is read while it is written. */
static inline bool tti_slot_is_awaited(const struct tti_link *link, size_t nbytes)
{
	return link->is_awaited && nbytes > TTI_LINE_BYTES && nbytes <= TTI_AWAITED_BYTES;
}

/* A link's slot from memory. */
static inline void tti_slot_fill(const struct tti_link *link, struct tti_copy_way *way, void *slot,
				 const void *data, size_t nbytes)
{
	if (tti_slot_is_awaited(link, nbytes))
		tti_copy_for_reader(slot, data, nbytes);
	else if (link->ops->shares_slots)
		tti_copy_out(way, slot, data, nbytes);
	else
		memcpy(slot, data, nbytes);
}

/* Send it: post->slot is filled from `data` unless it is there already. */
static inline void tti_post_commit(const struct tti_post *post, const void *data, size_t nbytes,
				   uint64_t tag)
{
	struct tti_link *const link = post->links[0];

	if (nbytes > 0 && post->slot != data)
		tti_slot_fill(link, post->way, post->slot, data, nbytes);
	if (post->n > 1)
		tti_post_commit_all(post, nbytes, tag);
	else
		link->ops->commit(link, nbytes, tag);
}

#endif
