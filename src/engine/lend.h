/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_LEND_H
#define TTI_ENGINE_LEND_H

/* Data that a peer can address is not sent but lent: one message names it, the receiver copies it
 * from where it lies and then releases the message, and with that the send is done. Only the
 * sender decides; no message goes the other way. A sender that gives its call up meanwhile marks
 * the message, so that the receiver does not take for good what it copied. Internal to the engine;
 * of programs of sends and receives. */

#include "engine/executable.h"

/* Whether an operation is one of lent data, as far as is known yet. */
static inline bool tti_lends(const struct tti_job *job, int32_t index)
{
	const struct tti_executable *exec = job->program.exec;
	const struct tti_layout *layout = &job->program.layout;
	const struct tti_operation *op = &exec->prog.oper[index];

	return exec->lent && (exec->lent[index].message ||
			      (layout->lends && op->nout &&
			       layout->extents[op->chunk].lent.reach != TTI_REACH_SLOTS));
}

enum tti_lend_step { TTI_LEND_WAITS, TTI_LEND_MOVED, TTI_LEND_DONE };

/* Go on with such an operation. */
enum tti_lend_step tti_lend_go_on(struct tti_job *job, int32_t index);

/* A message that a receive does not expect: whether it names data that is lent to it. Then the
 * operation is one of lent data from now on, or the job has failed. */
bool tti_lend_take(struct tti_job *job, int32_t index, const struct tti_link *link,
		   const void *message, size_t nbytes, uint64_t tag);

/* The job has failed: what it lent is its caller's again. */
void tti_lend_revoke(const struct tti_job *job);

#endif
