/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "coll/moves.h"
#include "engine/connect.h"
#include "engine/job.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/tsan.h"

/* A collective on buffers that all ranks can address (coll/moves.h):
 *
 *     tell all peers where the own buffers are, or that they are not to be had
 *     hear the same of all; if anyone's are not: run the program, with slots, after all
 *     do the own part of the call
 *     tell all, hear from all that it is done
 *
 * The messages are the first and the last of the call on each link, with its signature, and
 * short enough for one cache line. They order memory: what a rank wrote before it told is
 * seen by who heard it. */

/* How much is read at once before it is written to several places: stays in the L1 cache
 * beside what it is read from. */
#define SLICE_BYTES ((size_t)16 << 10)
/* Of a poll: a group has other jobs too. */
#define POLL_BYTES  ((size_t)1 << 20)
/* Results that do not fit the caches go past them. Bytes of all that a call moves. */
#define LARGE_BYTES ((size_t)8 << 20)

enum phase { TELL, HEAR, WORK, TELL_DONE, HEAR_DONE };

/* What a rank tells; zeroed: nothing of it can be addressed. */
struct announcement {
	struct tti_memory_name send, recv;
};

static struct tti_link *link_at(const struct tti_job *job, int offset)
{
	const struct tti_engine *engine = job->engine;

	return engine->links[(engine->config.rank + offset) % engine->config.n];
}

/* Connect to all. True: done. */
static bool connect_all(struct tti_job *job)
{
	bool all = true;

	for (int offset = 1; offset < job->engine->config.n; offset++) {
		const int peer = (job->engine->config.rank + offset) % job->engine->config.n;
		const tutti_status st = tti_engine_connect(job->engine, peer);

		if (st < 0) {
			job->status = st;
			return false;
		}
		if (st != TUTTI_OK)
			job->waiting_on = peer;
		all &= st == TUTTI_OK;
	}
	return all;
}

/* The same message to each peer in turn, the first time from 1 on. */
static bool tell(struct tti_job *job, const void *data, size_t nbytes)
{
	const int32_t before = job->direct.told;

	while (job->direct.told < job->engine->config.n) {
		struct tti_link *link = link_at(job, job->direct.told);
		void *room = link->ops->reserve(link, nbytes);

		if (!room)
			break;
		if (nbytes > 0)
			memcpy(room, data, nbytes);
		tti_tsan_give((uint32_t)job->engine->config.rank, (uint32_t)link->peer);
		link->ops->commit(link, nbytes, job->tag);
		job->direct.told++;
	}
	return job->direct.told != before;
}

/* Where the buffers of a peer are, here. */
static void take(struct tti_job *job, int peer, const struct announcement *said)
{
	const struct tti_direct *call = &job->direct.call;
	struct tti_port *port = tti_engine_port(job->engine, peer);
	const struct tti_memory_ops *memory = port->transport->memory;
	tutti_status st = TUTTI_OK;

	if (!said->send.address && !said->recv.address) {
		job->direct.plain = true;
		return;
	}
	if (said->send.address && call->send_bytes)
		st = memory->find(port, peer, &said->send, call->send_bytes,
				  &job->engine->inputs[peer]);
	if (st == TUTTI_OK && said->recv.address && call->recv_bytes)
		st = memory->find(port, peer, &said->recv, call->recv_bytes,
				  &job->engine->outputs[peer]);
	if (st != TUTTI_OK)
		job->status = st;
}

/* One message of `nbytes` from each peer in turn. */
static bool hear(struct tti_job *job, size_t nbytes)
{
	const int32_t before = job->direct.heard;

	while (job->direct.heard < job->engine->config.n && job->status == TUTTI_AGAIN) {
		struct tti_link *link = link_at(job, job->direct.heard);
		struct announcement said;
		uint64_t tag;
		size_t got;
		const void *data = link->ops->peek(link, &got, &tag);

		job->waiting_on = link->peer;
		if (!data)
			break;
		if (tag != job->tag || got != nbytes) {
			job->mismatch_peer = link->peer;
			job->status = TUTTI_EMISMATCH;
			break;
		}
		tti_tsan_take((uint32_t)link->peer, (uint32_t)job->engine->config.rank);
		if (nbytes > 0) {
			memcpy(&said, data, sizeof(said));
			take(job, link->peer, &said);
		}
		link->ops->release(link);
		job->direct.heard++;
	}
	return job->direct.heard != before;
}

/* -- The work ---------------------------------------------------------------- */

/* Sources of the elements from `at` on, in the order of ranks; how many. */
static int find_sources(const struct tti_job *job, size_t at)
{
	const struct tti_engine *engine = job->engine;
	const struct tti_move *move = &job->direct.move;
	const size_t byte = (move->from_at + at) * job->direct.layout.type_size;
	int nsrc = 0;

	for (int rank = 0; rank < engine->config.n; rank++)
		if (move->from == TTI_EVERY || move->from == rank)
			engine->sources[nsrc++] = (const char *)engine->inputs[rank] + byte;
	return nsrc;
}

static char *target_of(const struct tti_job *job, int rank, size_t at)
{
	return (char *)job->engine->outputs[rank] +
	       (job->direct.move.to_at + at) * job->direct.layout.type_size;
}

/* One result to an output. In place its old value is in the cache, as it was just read. */
static void write_result(const struct tti_job *job, int rank, size_t at, const void *result,
			 size_t nbytes)
{
	const struct tti_move *move = &job->direct.move;
	const char *const input = job->engine->inputs[rank];
	char *const dst = target_of(job, rank, at);
	const bool in_place =
		input && dst == input + (move->from_at + at) * job->direct.layout.type_size;

	if (dst != result)
		tti_copy(dst, result, nbytes, job->direct.is_large && !in_place);
}

/* `count` elements from `at` on to where they belong. */
static void move_slice(struct tti_job *job, size_t at, size_t count)
{
	struct tti_engine *engine = job->engine;
	const int own = engine->config.rank, n = engine->config.n;
	const int nsrc = find_sources(job, at), to = job->direct.move.to;
	const size_t nbytes = count * job->direct.layout.type_size;
	const void *result = engine->sources[0];
	int first = -1;

	if (job->direct.move.from == TTI_EVERY) {
		void *dst = engine->scratch;

		if (!job->direct.is_large) {
			first = to == TTI_EVERY ? own : to;
			dst = target_of(job, first, at);
		}
		tti_reducer_run(&job->direct.call.reducer, dst, NULL, engine->sources, nsrc, -1,
				count, true);
		result = dst;
	}
	/* From the own one on, so that not all write to one rank's at a time. */
	for (int offset = 0; offset < n; offset++) {
		const int rank = (own + offset) % n;

		if ((to == TTI_EVERY || to == rank) && rank != first)
			write_result(job, rank, at, result, nbytes);
	}
}

/* Some of the own part; true: all of it is done. */
static bool work(struct tti_job *job)
{
	const size_t type_size = job->direct.layout.type_size;
	const size_t slice = SLICE_BYTES / type_size, most = POLL_BYTES / type_size;
	const size_t all = job->direct.move.count;
	size_t *const done = &job->direct.done, stop = *done + most < all ? *done + most : all;

	while (*done < stop) {
		const size_t count = stop - *done < slice ? stop - *done : slice;

		move_slice(job, *done, count);
		*done += count;
	}
	return *done == all;
}

/* -- From phase to phase ------------------------------------------------------- */

static void go_on(struct tti_job *job, int phase)
{
	job->direct.phase = phase;
	if (phase == TELL_DONE)
		job->direct.told = job->direct.heard = 1;
}

/* With slots after all: from here on it is another job. */
static void run_program(struct tti_job *job)
{
	const struct tti_direct call = job->direct.call;
	const struct tti_layout layout = job->direct.layout;
	const tutti_status st = tti_job_program(job, job->engine, call.bound, &layout,
						&call.reducer, call.slice_bytes, job->tag);

	if (st != TUTTI_OK)
		job->status = st;
}

bool tti_direct_poll(struct tti_job *job)
{
	const struct announcement said = { job->direct.call.send, job->direct.call.recv };
	const int n = job->engine->config.n;
	bool moved = false;

	if (job->direct.phase == TELL) {
		if (!connect_all(job))
			return false;
		moved |= tell(job, &said, sizeof(said));
		if (job->direct.told == n)
			go_on(job, HEAR);
	}
	if (job->direct.phase == HEAR) {
		moved |= hear(job, sizeof(said));
		if (job->status != TUTTI_AGAIN || job->direct.heard < n)
			return moved;
		if (job->direct.plain) {
			run_program(job);
			return true;
		}
		atomic_store_explicit(job->direct.call.taken, "registered", memory_order_relaxed);
		go_on(job, WORK);
	}
	if (job->direct.phase == WORK) {
		if (!work(job))
			return true;
		moved = true;
		go_on(job, TELL_DONE);
	}
	if (job->direct.phase == TELL_DONE) {
		moved |= tell(job, NULL, 0);
		if (job->direct.told == n)
			go_on(job, HEAR_DONE);
	}
	if (job->direct.phase == HEAR_DONE) {
		moved |= hear(job, 0);
		if (job->status == TUTTI_AGAIN && job->direct.heard == n)
			job->status = TUTTI_OK;
	}
	return moved;
}

static tutti_status need_room(struct tti_engine *engine)
{
	const size_t n = (size_t)engine->config.n;

	if (!engine->inputs)
		engine->inputs = tti_calloc(n, sizeof(void *));
	if (!engine->outputs)
		engine->outputs = tti_calloc(n, sizeof(void *));
	if (engine->scratch_bytes < SLICE_BYTES) {
		void *scratch = tti_aligned_zalloc(4096, SLICE_BYTES);

		if (!scratch)
			return tti_fail(TUTTI_ENOMEM, "scratch of a reduction: out of memory");
		tti_free(engine->scratch);
		engine->scratch = scratch;
		engine->scratch_bytes = SLICE_BYTES;
	}
	if (!engine->inputs || !engine->outputs)
		return tti_fail(TUTTI_ENOMEM, "buffers of %zu ranks: out of memory", n);
	return TUTTI_OK;
}

tutti_status tti_job_direct(struct tti_job *job, struct tti_engine *engine,
			    const struct tti_direct *call, const struct tti_layout *layout,
			    uint64_t tag)
{
	const int rank = engine->config.rank;

	*job = (struct tti_job){ .engine = engine,
				 .kind = TTI_JOB_DIRECT,
				 .tag = tag,
				 .status = TUTTI_AGAIN,
				 .mismatch_peer = -1,
				 .waiting_on = -1 };
	TTI_TRY(need_room(engine));
	memset(engine->inputs, 0, (size_t)engine->config.n * sizeof(void *));
	memset(engine->outputs, 0, (size_t)engine->config.n * sizeof(void *));
	/* Only read from. */
	engine->inputs[rank] = (void *)(uintptr_t)layout->input;
	engine->outputs[rank] = layout->output;
	job->direct.call = *call;
	job->direct.layout = *layout;
	job->direct.plain = !call->send.address && !call->recv.address;
	job->direct.move = tti_move_of(call->coll, call->root, rank, engine->config.n, call->count,
				       64 / layout->type_size);
	job->direct.is_large = call->total_bytes >= LARGE_BYTES;
	go_on(job, TELL);
	job->direct.told = job->direct.heard = 1;
	return TUTTI_OK;
}
