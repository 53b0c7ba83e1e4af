/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/operation.h"
#include "engine/program.h"
#include "util/error.h"
#include "util/mem.h"

/* Running memory programs (coll/program.h): operations in their order, those between two
 * notifications block by block. A program begins with notifications that also say where the buffers
 * of the rank are, or that they cannot be addressed. All ranks that touch a buffer learn of that,
 * and run another program then. Messages order memory: a rank that was notified sees what the peer
 * wrote before. */

/* Bytes of a block. A mapped block stays in the first cache together with its source. Copies by the
 * kernel cost a system call each, and go through room that the second cache holds. */
#define BLOCK_MAPPED ((size_t)16 << 10)
#define BLOCK_COPIED ((size_t)256 << 10)
#define STAGED_MOST  ((size_t)512 << 10)
/* Most bytes of one poll: a group has other jobs too. */
#define POLL_BYTES   ((size_t)1 << 20)

/* What the first notifications say; an empty message: the buffers cannot be addressed. */
struct announcement {
	struct tti_memory_buffer send, recv;
};

/* -- Notifications ------------------------------------------------------------------- */

/* What a peer is told: where the buffers are, or the row that it writes. */
static struct announcement announce_to(const struct tti_job *job, int peer)
{
	const struct tti_memory_call *call = &job->program.memory;
	const size_t type_size = job->program.layout.type_size;
	struct announcement said = { call->send, call->recv };

	if (call->displs && said.recv.nbytes) {
		said.recv.name.at += call->displs[peer] * type_size - said.recv.before;
		said.recv.nbytes = call->counts[peer] * type_size;
		said.recv.before = 0;
	}
	return said;
}

/* Where a buffer of a peer is here, shifted so that offsets of the own layout lead to its
 * chunks. */
static tutti_status find(const struct tti_job *job, int peer, const struct tti_memory_buffer *said,
			 size_t before, struct tti_remote *out)
{
	struct tti_port *port = tti_engine_port(job->engine, peer);

	*out = (struct tti_remote){ 0 };
	if (said->nbytes == 0)
		return TUTTI_OK;
	TTI_TRY(port->transport->memory->find(port, peer, &said->name, said->nbytes, out));
	if (out->mapped)
		out->mapped = (void *)((uintptr_t)out->mapped - before);
	out->address -= before;
	return TUTTI_OK;
}

static tutti_status take(struct tti_job *job, int peer, const struct announcement *said)
{
	const size_t *displs = job->program.memory.displs;
	const size_t own =
		displs ? displs[job->engine->config.rank] * job->program.layout.type_size : 0;

	TTI_TRY(find(job, peer, &said->send, said->send.before, &job->engine->inputs[peer]));
	return find(job, peer, &said->recv, said->recv.before + own, &job->engine->outputs[peer]);
}

static struct tti_link *link_at(const struct tti_executable *exec, const struct tti_operation *op)
{
	return exec->link[exec->prog.queue_of[op->in + exec->done]];
}

/* Notify each peer in turn; true: all are. `says`: say where the buffers are. */
static bool tell(struct tti_job *job, const struct tti_operation *op, bool says)
{
	const size_t nbytes =
		says && job->program.memory.is_ready ? sizeof(struct announcement) : 0;
	struct tti_executable *exec = job->program.exec;

	for (; exec->done < op->nout; exec->done++) {
		struct tti_link *link = link_at(exec, op);
		void *room = link->ops->reserve(link, nbytes, 0);

		tti_job_awaits(job, link->peer);
		if (!room)
			return false;
		if (nbytes > 0) {
			const struct announcement said = announce_to(job, link->peer);

			memcpy(room, &said, nbytes);
		}
		link->ops->commit(link, nbytes, job->tag);
	}
	return true;
}

/* Wait for the notification of each peer in turn; true: all have come. */
static bool hear(struct tti_job *job, int32_t index, bool says)
{
	struct tti_executable *exec = job->program.exec;
	const struct tti_operation *op = &exec->prog.oper[index];

	for (; exec->done < op->nin; exec->done++) {
		struct tti_link *link = link_at(exec, op);
		tutti_status st = TUTTI_OK;
		struct announcement said;
		const void *data;
		uint64_t tag;
		size_t got;

		data = link->ops->peek(link, &got, &tag);
		tti_job_awaits(job, link->peer);
		if (!data)
			return false;
		if (tag != job->tag || (got != 0 && !(says && got == sizeof(said)))) {
			job->status = tti_operation_refuse(job, &exec->linked[index], link, data,
							   got, tag);
			return false;
		}
		job->program.is_refused |= says && got == 0;
		if (got > 0) {
			memcpy(&said, data, sizeof(said));
			st = take(job, link->peer, &said);
		}
		link->ops->release(link);
		if (st != TUTTI_OK) {
			job->status = st;
			return false;
		}
	}
	return true;
}

static bool sync(struct tti_job *job)
{
	struct tti_executable *exec = job->program.exec;
	const int32_t index = job->program.pos;
	const struct tti_operation *op = &exec->prog.oper[index];

	if (!(op->nout ? tell(job, op, job->program.begins)
		       : hear(job, index, job->program.begins)))
		return false;
	exec->done = 0;
	return true;
}

/* -- Operations ---------------------------------------------------------------------- */

/* An error with memory of a peer ends the job. */
static void note(struct tti_job *job, tutti_status status)
{
	if (status != TUTTI_OK && job->status == TUTTI_AGAIN)
		job->status = status;
}

/* The input of a peer: where it lies, or a copy of it at `staged`. */
static const void *read_from(struct tti_job *job, int peer, size_t offset, void *staged,
			     size_t nbytes)
{
	const struct tti_remote *remote = &job->engine->inputs[peer];
	struct tti_port *port = tti_engine_port(job->engine, peer);

	if (remote->mapped)
		return (const char *)remote->mapped + offset;
	note(job,
	     port->transport->memory->read(port, peer, staged, remote->address + offset, nbytes));
	return staged;
}

/* Write the result to the output of a peer. In place the old value is in the cache, as it was just
 * read. */
static void write_to(struct tti_job *job, int peer, size_t offset, const void *result,
		     size_t nbytes)
{
	const struct tti_remote *remote = &job->engine->outputs[peer];
	struct tti_port *port = tti_engine_port(job->engine, peer);
	/* Integers, since what is not mapped has no address here. */
	const uintptr_t input = (uintptr_t)job->engine->inputs[peer].mapped + offset;
	void *const dst = (void *)((uintptr_t)remote->mapped + offset);

	if (!remote->mapped)
		note(job, port->transport->memory->write(port, peer, remote->address + offset,
							 result, nbytes));
	else if (dst != result)
		tti_copy(dst, result, nbytes, job->program.is_large && (const void *)input != dst);
}

/* Put the sources of an operation into the engine's list, in the order of ranks; returns how many.
 * Sources that the kernel copies go to `staged`, one after the other. */
static int find_sources(struct tti_job *job, const struct tti_operation *op,
			const struct tti_offsets *offsets, const void *local, char *staged)
{
	const int32_t *peer = &job->program.exec->prog.peer_of[op->get];
	const void **source = job->engine->sources;
	int nsrc = 0;

	for (int i = 0; i < op->nget; i++) {
		if (op->from != TTI_PLACE_NONE && i == op->local_at)
			source[nsrc++] = local;
		source[nsrc++] = read_from(job, peer[i], offsets->input,
					   staged + (size_t)i * offsets->nbytes, offsets->nbytes);
	}
	if (op->from != TTI_PLACE_NONE && op->local_at >= op->nget)
		source[nsrc++] = local;
	return nsrc;
}

/* Where a reduction writes its result: a result that goes past the caches is copied from
 * scratch. */
static char *first_target(const struct tti_job *job, const struct tti_operation *op, char *own,
			  size_t offset, char *staged)
{
	const struct tti_executable *exec = job->program.exec;
	const struct tti_remote *remote =
		op->nput ? &job->engine->outputs[exec->prog.peer_of[op->put]] : NULL;

	if (job->program.is_large)
		return staged;
	if (own)
		return own;
	return remote && remote->mapped ? (char *)remote->mapped + offset : staged;
}

/* One operation in one block. */
static void run_block(struct tti_job *job, const struct tti_operation *op, int32_t block)
{
	const struct tti_executable *exec = job->program.exec;
	const struct tti_offsets offsets = tti_offsets_at(job, op, block);
	const void *local = (const void *)(job->program.at[op->from] + offsets.from);
	char *own =
		op->to == TTI_PLACE_NONE ? NULL : (char *)(job->program.at[op->to] + offsets.to);
	char *const staged = (char *)job->engine->scratch + job->program.staged;
	const bool reduces = op->nget + (op->from != TTI_PLACE_NONE) > 1;
	const void *result;
	int nsrc;

	if (offsets.count == 0)
		return;
	/* Data that is only passed on is read to its target; a reduction has room for its result,
	 * too. */
	nsrc = find_sources(job, op, &offsets, local,
			    reduces ? staged + offsets.nbytes
			    : own   ? own
				    : staged);
	result = job->engine->sources[0];
	if (job->status != TUTTI_AGAIN)
		return;
	if (reduces) {
		char *const dst = first_target(job, op, own, offsets.output, staged);

		tti_reducer_run(&job->program.reducer, dst, NULL, job->engine->sources, nsrc, -1,
				offsets.count, op->final);
		result = dst;
	}
	if (own && own != result)
		tti_copy(own, result, offsets.nbytes,
			 job->program.is_large && own != local && op->to == TTI_PLACE_OUTPUT);
	for (int i = 0; i < op->nput; i++)
		write_to(job, exec->prog.peer_of[op->put + i], offsets.output, result,
			 offsets.nbytes);
}

/* The end of the operations that run block by block together with the one at `first`. */
static int32_t end_of_run(const struct tti_executable *exec, int32_t first)
{
	const struct tti_operation *op = exec->prog.oper;
	int32_t end = first + 1;

	while (end < exec->prog.nopers && !op[end].sync && op[end].stage == op[first].stage)
		end++;
	return end;
}

/* Run some blocks of the operations from job->program.pos on; true: all are done. */
static bool work(struct tti_job *job)
{
	const struct tti_executable *exec = job->program.exec;
	const int32_t end = end_of_run(exec, job->program.pos);
	const size_t block_bytes = job->program.slice * job->program.layout.type_size;
	size_t moved = 0;

	while (job->program.block < job->program.nblocks && moved < POLL_BYTES) {
		for (int32_t i = job->program.pos; i < end && job->status == TUTTI_AGAIN; i++)
			run_block(job, &exec->prog.oper[i], job->program.block);
		if (job->status != TUTTI_AGAIN)
			return false;
		job->program.block++;
		moved += block_bytes * (size_t)(end - job->program.pos);
	}
	if (job->program.block < job->program.nblocks)
		return false;
	job->program.block = 0;
	job->program.pos = end - 1;
	return true;
}

/* -- All ----------------------------------------------------------------------------- */

/* All have said where their buffers are; false: not all can be addressed, and the job runs another
 * program from here on. */
static bool end_opening(struct tti_job *job)
{
	const struct tti_memory_call call = job->program.memory;
	tutti_status st;

	job->program.begins = false;
	if (!job->program.is_refused)
		return true;
	st = call.fallback(call.self, job);
	if (st != TUTTI_OK)
		job->status = st;
	return false;
}

bool tti_memory_poll(struct tti_job *job)
{
	const struct tti_executable *exec = job->program.exec;
	bool moved = false;

	while (job->status == TUTTI_AGAIN) {
		bool is_sync;

		if (job->program.begins && job->program.pos == exec->prog.nopening &&
		    !end_opening(job))
			return true;
		if (job->program.pos == exec->prog.nopers) {
			job->status = TUTTI_OK;
			break;
		}
		is_sync = exec->prog.oper[job->program.pos].sync;
		if (!(is_sync ? sync(job) : work(job)))
			return moved || !is_sync;
		moved = true;
		job->program.pos++;
	}
	return moved;
}

static tutti_status need_room(struct tti_engine *engine, size_t scratch_bytes)
{
	const size_t n = (size_t)engine->config.n;

	if (!engine->inputs)
		engine->inputs = tti_calloc(n, sizeof(*engine->inputs));
	if (!engine->outputs)
		engine->outputs = tti_calloc(n, sizeof(*engine->outputs));
	if (!engine->inputs || !engine->outputs)
		return tti_fail(TUTTI_ENOMEM, "buffers of %zu ranks: out of memory", n);
	return tti_engine_need_scratch(engine, scratch_bytes);
}

/* Bytes of a block, such that what a reduction of all inputs stages fits the second cache. */
size_t tti_memory_block_bytes(const struct tti_engine *engine, const struct tti_memory_call *call)
{
	const size_t each = STAGED_MOST / (size_t)(engine->config.n + 1) / 4096 * 4096;

	if (call->send.name.reach != TTI_REACH_COPIED && call->recv.name.reach != TTI_REACH_COPIED)
		return BLOCK_MAPPED;
	if (!tti_collective_reduces(call->coll))
		return BLOCK_COPIED;
	return each < BLOCK_MAPPED ? BLOCK_MAPPED : each;
}

tutti_status tti_job_memory(struct tti_job *job, struct tti_engine *engine,
			    struct tti_executable *exec, const struct tti_layout *layout,
			    const struct tti_reducer *reducer, const struct tti_memory_call *call,
			    uint64_t tag)
{
	const size_t block = tti_memory_block_bytes(engine, call);
	const size_t kept = (size_t)exec->prog.nscratch * (size_t)exec->window * block;
	const size_t staged = block * (size_t)(engine->config.n + 1);

	TTI_TRY(need_room(engine, kept + staged));
	TTI_TRY(tti_program_prepare(job, engine, exec, layout, reducer, block, tag));
	job->program.memory = *call;
	job->program.is_memory = true;
	job->program.begins = true;
	job->program.is_refused = !call->is_ready;
	job->program.is_large = call->is_large;
	job->program.staged = kept;
	exec->done = 0;
	return TUTTI_OK;
}
