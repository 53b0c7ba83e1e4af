/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/rndv.h"

#include <stdatomic.h>
#include <string.h>

#include "engine/connect.h"
#include "engine/operand.h"
#include "util/error.h"
#include "util/hash.h"

/* Most bytes of one poll: other operations and jobs have work, too. */
#define POLL_BYTES ((size_t)1 << 20)

/* The status of a job after something that may have failed. */
static tutti_status as_running(tutti_status status)
{
	return status == TUTTI_OK ? TUTTI_AGAIN : status;
}

/* What the message says. */
struct offer {
	struct tti_memory_name name;
	_Atomic uint32_t is_revoked;
};

/* Such messages have a tag of their own, and are too long to travel inline, since the release of
 * inline messages is not reported at once. */
static uint64_t offer_tag(uint64_t tag)
{
	return tti_hash_mix(tag + UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static size_t offer_bytes(const struct tti_port *port)
{
	const size_t least = sizeof(struct offer);

	return port->inline_bytes < least ? least : port->inline_bytes + 1;
}

static size_t chunk_bytes(const struct tti_job *job, int32_t index)
{
	const int32_t chunk = job->program.exec->prog.oper[index].chunk;

	return job->program.layout.extents[chunk].count * job->program.layout.type_size;
}

static struct tti_link *link_of(const struct tti_executable *exec, int32_t at)
{
	return exec->link[exec->prog.queue_of[at]];
}

bool tti_rndv_accept(struct tti_job *job, int32_t index, const struct tti_link *link,
		     const void *message, size_t nbytes, uint64_t tag)
{
	const struct tti_executable *exec = job->program.exec;
	const struct tti_operation *op = &exec->prog.oper[index];
	struct tti_port *port = tti_engine_port(job->engine, link->peer);
	struct tti_remote from = { 0 };
	struct offer offer;
	tutti_status st;

	if (!exec->rndv || !port->transport->memory || chunk_bytes(job, index) == 0 ||
	    nbytes != offer_bytes(port) || tag != offer_tag(tti_job_tag(job, op)))
		return false;
	memcpy(&offer.name, message, sizeof(offer.name));
	st = port->transport->memory->find(port, link->peer, &offer.name, chunk_bytes(job, index),
					   &from);
	if (st != TUTTI_OK)
		job->status = st;
	exec->rndv[index] = (struct tti_rndv){
		/* Only read. */
		.message = (void *)(uintptr_t)message,
		.from = from,
	};
	return true;
}

/* Say where the data is, then wait until the peer has it. */
static enum tti_rndv_step give(struct tti_job *job, int32_t index)
{
	const struct tti_executable *exec = job->program.exec;
	const struct tti_operation *op = &exec->prog.oper[index];
	struct tti_rndv *rndv = &exec->rndv[index];
	struct tti_link *link = link_of(exec, op->out);
	const struct tti_port *port = tti_engine_port(job->engine, link->peer);
	const size_t nbytes = offer_bytes(port);
	struct offer *offer;

	tti_job_awaits(job, link->peer);
	if (rndv->message) {
		if (!link->ops->all_released(link))
			return TTI_RNDV_WAITS;
		rndv->message = NULL;
		return TTI_RNDV_DONE;
	}
	offer = link->ops->reserve(link, nbytes, 0);
	if (!offer)
		return TTI_RNDV_WAITS;
	memset(offer, 0, nbytes);
	offer->name = job->program.layout.extents[op->chunk].rndv;
	link->ops->commit(link, nbytes, offer_tag(tti_job_tag(job, op)));
	rndv->message = offer;
	return TTI_RNDV_MOVED;
}

/* All is copied. Whether the sender has revoked it meanwhile decides. */
static enum tti_rndv_step end_copy(struct tti_job *job, int32_t index)
{
	const struct tti_executable *exec = job->program.exec;
	const struct tti_operation *op = &exec->prog.oper[index];
	struct tti_link *link = link_of(exec, op->in);
	struct offer *offer = exec->rndv[index].message;

	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&offer->is_revoked, memory_order_relaxed)) {
		job->status = tti_fail(
			TUTTI_EPEER, "rank %d gave up its send while rank %d was copying the data",
			link->peer, exec->prog.rank);
		return TTI_RNDV_MOVED;
	}
	link->ops->release(link);
	exec->rndv[index] = (struct tti_rndv){ 0 };
	return TTI_RNDV_DONE;
}

static enum tti_rndv_step copy(struct tti_job *job, int32_t index)
{
	struct tti_rndv *rndv = &job->program.exec->rndv[index];
	const struct tti_operation *op = &job->program.exec->prog.oper[index];
	const struct tti_operand operand = tti_operand_at(job, op, 0);
	const size_t left = chunk_bytes(job, index) - rndv->done;
	const size_t nbytes = left < POLL_BYTES ? left : POLL_BYTES;
	char *const to = (char *)(job->program.at[op->to] + operand.to) + rndv->done;
	const int peer = link_of(job->program.exec, op->in)->peer;
	struct tti_port *port = tti_engine_port(job->engine, peer);

	if (rndv->from.mapped)
		tti_copy(to, (const char *)rndv->from.mapped + rndv->done, nbytes,
			 job->program.is_large);
	else
		job->status = as_running(port->transport->memory->read(
			port, peer, to, rndv->from.address + rndv->done, nbytes));
	if (job->status != TUTTI_AGAIN)
		return TTI_RNDV_MOVED;
	rndv->done += nbytes;
	return nbytes < left ? TTI_RNDV_MOVED : end_copy(job, index);
}

enum tti_rndv_step tti_rndv_progress(struct tti_job *job, int32_t index)
{
	return job->program.exec->prog.oper[index].nin ? copy(job, index) : give(job, index);
}

void tti_rndv_revoke(const struct tti_job *job)
{
	const struct tti_executable *exec = job->program.exec;

	for (int32_t i = 0; exec->rndv && i < exec->prog.nopers; i++) {
		struct offer *offer = exec->rndv[i].message;

		if (offer && exec->prog.oper[i].nout) {
			atomic_store_explicit(&offer->is_revoked, 1, memory_order_release);
			atomic_thread_fence(memory_order_seq_cst);
		}
	}
}
