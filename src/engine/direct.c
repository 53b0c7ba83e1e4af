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
 *     hear the same of all; if anyone's are not: go another way, with slots, after all
 *     do the own part of the call
 *     tell all, hear from all that it is done
 *
 * Where only buffers of the root are touched by others, "all" is the root, which others hear
 * before and tell when they are done.
 *
 * The messages are the first and the last of the call on each link, with its signature, and
 * short enough for one cache line. They order memory: what a rank wrote before it told is
 * seen by who heard it. */

/* How much is read at once before it is written to several places: stays in the L1 cache
 * beside what it is read from. */
#define SLICE_BYTES ((size_t)16 << 10)
/* Of a poll: a group has other jobs too. */
#define POLL_BYTES  ((size_t)1 << 20)

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

/* Whether a message goes from one rank to another, before or when all is done. */
static bool is_said(const struct tti_job *job, int from, int to, bool before)
{
	const struct tti_moved *what = &job->direct.call.what;

	return !tti_moves_are_root_s(what->coll) || (before ? from : to) == what->root;
}

static bool tells(const struct tti_job *job, int offset)
{
	const int own = job->engine->config.rank, peer = (own + offset) % job->engine->config.n;

	return is_said(job, own, peer, job->direct.phase < WORK);
}

static bool hears(const struct tti_job *job, int offset)
{
	const int own = job->engine->config.rank, peer = (own + offset) % job->engine->config.n;

	return is_said(job, peer, own, job->direct.phase < WORK);
}

/* Connect to all that this rank tells or hears. True: done. */
static bool connect_all(struct tti_job *job)
{
	bool all = true;

	for (int offset = 1; offset < job->engine->config.n; offset++) {
		const int peer = (job->engine->config.rank + offset) % job->engine->config.n;
		const tutti_status st = tells(job, offset) || hears(job, offset)
						? tti_engine_connect(job->engine, peer)
						: TUTTI_OK;

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

/* What a peer is told before: where all is, or the row that it writes. */
static struct announcement announce_to(const struct tti_job *job, int peer)
{
	const struct tti_direct *call = &job->direct.call;
	struct announcement said = { call->send, call->recv };

	if (call->places && said.recv.address) {
		said.recv.address += call->places[peer] * call->type_size;
		said.recv.at += call->places[peer] * call->type_size;
	}
	return said;
}

/* A message to each peer in turn, the first time from 1 on: an announcement, or none. */
static bool tell(struct tti_job *job, bool announces)
{
	const size_t nbytes = announces ? sizeof(struct announcement) : 0;
	const int32_t before = job->direct.told;

	for (; job->direct.told < job->engine->config.n; job->direct.told++) {
		struct tti_link *link = link_at(job, job->direct.told);
		void *room;

		if (!tells(job, job->direct.told))
			continue;
		room = link->ops->reserve(link, nbytes);
		if (!room)
			break;
		if (announces) {
			const struct announcement said = announce_to(job, link->peer);

			memcpy(room, &said, nbytes);
		}
		tti_tsan_give((uint32_t)job->engine->config.rank, (uint32_t)link->peer);
		link->ops->commit(link, nbytes, job->tag);
	}
	return job->direct.told != before;
}

/* Where the buffers of a peer are, here. */
static void take(struct tti_job *job, int peer, const struct announcement *said)
{
	const struct tti_direct *call = &job->direct.call;
	struct tti_port *port = tti_engine_port(job->engine, peer);
	const struct tti_memory_ops *memory = port->transport->memory;
	struct tti_remote remote;
	tutti_status st = TUTTI_OK;

	size_t sends = call->send_bytes, recvs = call->recv_bytes;

	if (call->what.coll == TUTTI_HANDOFF) {
		sends = tti_moves_side_count(&call->what, call->what.from, peer) * call->type_size;
		recvs = tti_moves_side_count(&call->what, call->what.to, peer) * call->type_size;
	}
	if (call->what.coll == TUTTI_REDUCE_SCATTER_V)
		recvs = call->what.counts[peer] * call->type_size;
	if (!said->send.address && !said->recv.address) {
		job->direct.plain |= tti_moves_touch(&call->what, peer);
		return;
	}
	if (said->send.address && sends) {
		st = memory->find(port, peer, &said->send, sends, &remote);
		job->engine->inputs[peer] = remote.mapped;
	}
	if (st == TUTTI_OK && said->recv.address && recvs) {
		st = memory->find(port, peer, &said->recv, recvs, &remote);
		job->engine->outputs[peer] = remote.mapped;
	}
	if (st != TUTTI_OK)
		job->status = st;
}

/* One message of `nbytes` from each peer in turn. */
static bool hear(struct tti_job *job, size_t nbytes)
{
	const int32_t before = job->direct.heard;

	for (; job->direct.heard < job->engine->config.n && job->status == TUTTI_AGAIN;
	     job->direct.heard++) {
		struct tti_link *link = link_at(job, job->direct.heard);
		struct announcement said;
		const void *data;
		uint64_t tag;
		size_t got;

		if (!hears(job, job->direct.heard))
			continue;
		data = link->ops->peek(link, &got, &tag);
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
	}
	return job->direct.heard != before;
}

/* -- The work ---------------------------------------------------------------- */

static const char *source_of(const struct tti_job *job, int rank, size_t at)
{
	return (const char *)job->engine->inputs[rank] + at * job->direct.call.type_size;
}

static char *target_of(const struct tti_job *job, int rank, size_t at)
{
	return (char *)job->engine->outputs[rank] + at * job->direct.call.type_size;
}

/* Sources of the elements from `at` on, in the order of ranks; how many. */
static int find_sources(const struct tti_job *job, size_t at)
{
	const struct tti_engine *engine = job->engine;
	const struct tti_move *move = &job->direct.move;
	int nsrc = 0;

	for (int rank = 0; rank < engine->config.n; rank++)
		if (move->from == TTI_EVERY || move->from == rank)
			engine->sources[nsrc++] = source_of(job, rank, move->from_at + at);
	return nsrc;
}

/* One result to an output. In place its old value is in the cache, as it was just read. */
static void write_result(const struct tti_job *job, int rank, size_t at, const void *result,
			 size_t nbytes)
{
	const struct tti_move *move = &job->direct.move;
	char *const dst = target_of(job, rank, move->to_at + at);
	const bool in_place =
		job->engine->inputs[rank] && dst == source_of(job, rank, move->from_at + at);

	if (dst != result)
		tti_copy(dst, result, nbytes, job->direct.is_large && !in_place);
}

/* `count` elements from `at` on to where they belong. */
static void move_slice(struct tti_job *job, size_t at, size_t count)
{
	struct tti_engine *engine = job->engine;
	const int own = engine->config.rank, n = engine->config.n;
	const int nsrc = find_sources(job, at), to = job->direct.move.to;
	const size_t nbytes = count * job->direct.call.type_size;
	const void *result = engine->sources[0];
	int first = -1;

	if (job->direct.move.from == TTI_EVERY) {
		void *dst = engine->scratch;

		if (!job->direct.is_large) {
			first = to == TTI_EVERY ? own : to;
			dst = target_of(job, first, job->direct.move.to_at + at);
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

/* Both ways between two ranks, of which either may be in place: then what goes to it takes the
 * place of what comes from it. */
static void swap_slice(struct tti_job *job, size_t at, size_t count)
{
	const struct tti_move *move = &job->direct.move;
	const size_t nbytes = count * job->direct.call.type_size;
	const char *const there = source_of(job, move->from, move->from_at + at);
	const char *back = source_of(job, move->to, move->back_from_at + at);
	char *const dst = target_of(job, move->to, move->to_at + at);
	char *const back_dst = target_of(job, move->from, move->back_to_at + at);
	const bool is_large = job->direct.is_large;

	if (dst == back) {
		memcpy(job->engine->scratch, back, nbytes);
		back = job->engine->scratch;
	}
	tti_copy(dst, there, nbytes, is_large && back != job->engine->scratch);
	tti_copy(back_dst, back, nbytes, is_large && back_dst != there);
}

/* Some of the own moves; true: all are done. */
static bool work(struct tti_job *job)
{
	const struct tti_moved *what = &job->direct.call.what;
	const size_t type_size = job->direct.call.type_size, slice = SLICE_BYTES / type_size;
	size_t most = POLL_BYTES / type_size;

	while (most > 0 && job->direct.index < tti_moves_each(what)) {
		const struct tti_move *move = &job->direct.move;
		size_t *const done = &job->direct.done;
		const size_t left = move->count - *done, once = left < slice ? left : slice;
		const size_t count = once < most ? once : most;

		if (count > 0)
			(move->swaps ? swap_slice : move_slice)(job, *done, count);
		*done += count;
		most -= count;
		if (*done < move->count)
			continue;
		*done = 0;
		if (++job->direct.index < tti_moves_each(what))
			job->direct.move =
				tti_move_at(what, job->engine->config.rank, job->direct.index);
	}
	return job->direct.index == tti_moves_each(what);
}

/* -- From phase to phase ------------------------------------------------------- */

static void go_on(struct tti_job *job, int phase)
{
	job->direct.phase = phase;
	if (phase == TELL_DONE)
		job->direct.told = job->direct.heard = 1;
}

/* With slots after all: from here on it is another job. */
static void go_another_way(struct tti_job *job)
{
	const struct tti_direct call = job->direct.call;
	const tutti_status st = call.otherwise(call.self, job);

	if (st != TUTTI_OK)
		job->status = st;
}

bool tti_direct_poll(struct tti_job *job)
{
	const int n = job->engine->config.n;
	bool moved = false;

	if (job->direct.phase == TELL) {
		if (!connect_all(job))
			return false;
		moved |= tell(job, true);
		if (job->direct.told == n)
			go_on(job, HEAR);
	}
	if (job->direct.phase == HEAR) {
		moved |= hear(job, sizeof(struct announcement));
		if (job->status != TUTTI_AGAIN || job->direct.heard < n)
			return moved;
		if (job->direct.plain) {
			go_another_way(job);
			return true;
		}
		job->direct.call.taken(job->direct.call.self);
		go_on(job, WORK);
	}
	if (job->direct.phase == WORK) {
		if (!work(job))
			return true;
		moved = true;
		go_on(job, TELL_DONE);
	}
	if (job->direct.phase == TELL_DONE) {
		moved |= tell(job, false);
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
			    const struct tti_direct *call, uint64_t tag)
{
	const int rank = engine->config.rank;
	const size_t place = call->places ? call->places[rank] * call->type_size : 0;

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
	engine->inputs[rank] = (void *)(uintptr_t)call->input;
	engine->outputs[rank] = (void *)((uintptr_t)call->output + place);
	job->direct.call = *call;
	job->direct.plain =
		!call->send.address && !call->recv.address && tti_moves_touch(&call->what, rank);
	job->direct.move = tti_move_at(&call->what, rank, 0);
	/* Results that do not fit the caches go past them. */
	job->direct.is_large =
		call->total_bytes / (size_t)call->what.n >= engine->config.cache_bytes;
	go_on(job, TELL);
	job->direct.told = job->direct.heard = 1;
	return TUTTI_OK;
}
