/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_RNDV_H
#define TTI_ENGINE_RNDV_H

/* Rendezvous: a send of data that the peer can address. One message names the data, the receiver
 * copies the data from where it lies and then releases the message, and the send is done. The
 * sender alone decides for it; no message goes the other way. A sender that gives up its call
 * meanwhile marks the message, so that the receiver discards what it has copied. Only programs of
 * sends and receives have rendezvous. Internal to the engine. */

#include "engine/executable.h"

/* Whether an operation is a rendezvous, as far as is known yet. */
static inline bool tti_rndv_has(const struct tti_job *job, int32_t index)
{
	const struct tti_executable *exec = job->program.exec;
	const struct tti_layout *layout = &job->program.layout;
	const struct tti_operation *op = &exec->prog.oper[index];

	return exec->rndv && (exec->rndv[index].message ||
			      (layout->has_rndv && op->nout &&
			       layout->extents[op->chunk].rndv.reach != TTI_REACH_SLOTS));
}

enum tti_rndv_step { TTI_RNDV_WAITS, TTI_RNDV_MOVED, TTI_RNDV_DONE };

/* Go on with such an operation. */
enum tti_rndv_step tti_rndv_progress(struct tti_job *job, int32_t index);

/* Whether a message that a receive does not expect names data for it. If so, the operation is a
 * rendezvous from now on, or the job has failed. */
bool tti_rndv_accept(struct tti_job *job, int32_t index, const struct tti_link *link,
		     const void *message, size_t nbytes, uint64_t tag);

/* The job has failed: the data that it has named is its caller's again. */
void tti_rndv_revoke(const struct tti_job *job);

#endif
