/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/connect.h"
#include "engine/job.h"
#include "engine/piece.h"
#include "engine/wait.h"
#include "util/error.h"
#include "util/mem.h"

/* The short ways: no window, no cursors, one operation after the other in the order of the
 * program, which never deadlocks (coll/compile.h). They send and take the same messages in
 * the same order on each link as the general way. */

/* -- Waiting ------------------------------------------------------------------- */

/* One round of a wait for `peer`. */
static tutti_status wait_on(struct tti_wait *wait, struct tti_engine *engine, int peer)
{
	const tutti_status st = tti_wait_step(wait, engine, peer, true);

	if (st == TUTTI_AGAIN)
		tti_engine_progress(engine);
	return st;
}

/* Nobody is waited for any more, if anybody was told so. */
static void end_wait(const struct tti_wait *wait, struct tti_engine *engine)
{
	if (tti_wait_is_slow(wait))
		atomic_store_explicit(&engine->waiting_on, -1, memory_order_relaxed);
}

static tutti_status wait_room(struct tti_engine *engine, struct tti_post *post, size_t nbytes)
{
	struct tti_wait wait = { 0 };

	while (!tti_post_reserve(post, nbytes)) {
		const tutti_status st = wait_on(&wait, engine, post->links[0]->peer);

		if (st != TUTTI_AGAIN)
			return st;
	}
	end_wait(&wait, engine);
	return TUTTI_OK;
}

static tutti_status wait_message(struct tti_engine *engine, struct tti_link *link, size_t nbytes,
				 uint64_t tag, const void **data, int *mismatch_peer)
{
	struct tti_wait wait = { 0 };
	uint64_t got_tag;
	size_t got;

	while (!(*data = link->ops->peek(link, &got, &got_tag))) {
		const tutti_status st = wait_on(&wait, engine, link->peer);

		if (st != TUTTI_AGAIN)
			return st;
	}
	end_wait(&wait, engine);
	if (got_tag == tag && got == nbytes)
		return TUTTI_OK;
	*mismatch_peer = link->peer;
	return TUTTI_EMISMATCH;
}

/* What was committed is on its way only once the system has it. */
static tutti_status wait_sent(struct tti_engine *engine)
{
	struct tti_wait wait = { 0 };

	for (int i = 0; i < engine->nactive; i++)
		while (engine->active[i]->unsent > 0) {
			const tutti_status st = wait_on(&wait, engine, -1);

			if (st != TUTTI_AGAIN)
				return st;
		}
	end_wait(&wait, engine);
	return TUTTI_OK;
}

/* -- Parts of an operation ------------------------------------------------------ */

/* Messages and the own value, in the order of ranks, to the engine's sources. */
static tutti_status find_sources(struct tti_engine *engine, const struct tti_bound *bound,
				 const struct tti_oper *op, const void *local, size_t nbytes,
				 uint64_t tag, int *mismatch_peer)
{
	const void **source = engine->sources;

	for (int i = 0; i < op->nin; i++) {
		tutti_status st;

		if (op->from != TTI_PLACE_NONE && i == op->local_at)
			*source++ = local;
		st = wait_message(engine, bound->link[bound->prog.queue_of[op->in + i]], nbytes,
				  tag, source++, mismatch_peer);
		if (st != TUTTI_OK)
			return st;
	}
	if (op->from != TTI_PLACE_NONE && op->local_at >= op->nin)
		*source++ = local;
	return TUTTI_OK;
}

static void release_sources(const struct tti_bound *bound, const struct tti_oper *op)
{
	for (int i = 0; i < op->nin; i++) {
		struct tti_link *link = bound->link[bound->prog.queue_of[op->in + i]];

		link->ops->release(link);
	}
}

static tutti_status reserve_posts(struct tti_engine *engine, struct tti_bound *bound, int32_t index,
				  size_t nbytes)
{
	tutti_status st = TUTTI_OK;

	for (int32_t i = bound->post_of[index]; i < bound->post_of[index + 1] && !st; i++)
		st = wait_room(engine, &bound->post[i], nbytes);
	return st;
}

static void commit_posts(struct tti_bound *bound, int32_t index, const void *data, size_t nbytes,
			 uint64_t tag)
{
	for (int32_t i = bound->post_of[index]; i < bound->post_of[index + 1]; i++)
		tti_post_commit(&bound->post[i], data, nbytes, tag);
}

/* -- Any program ----------------------------------------------------------------- */

bool tti_straight_fits(const struct tti_bound *bound, const struct tti_layout *layout,
		       size_t slice_bytes)
{
	return bound->connected && !layout->extents &&
	       layout->chunk_count <= slice_bytes / layout->type_size;
}

/* Where an operation's data lies, in bytes from where its places begin. */
static struct tti_spot spot_of(const struct tti_job *job, const struct tti_oper *op)
{
	const struct tti_piece piece = tti_piece_at(job, op, 0);

	return (struct tti_spot){
		.from = tti_piece_offset(job, op->from, &piece),
		.to = tti_piece_offset(job, op->to, &piece),
		.count = piece.count,
		.nbytes = piece.count * job->program.layout.type_size,
	};
}

tutti_status tti_straight_prepare(struct tti_straight *call, struct tti_engine *engine,
				  struct tti_bound *bound, const struct tti_layout *layout,
				  const struct tti_reducer *reducer, size_t slice_bytes)
{
	const int32_t n = bound->prog.nopers;

	if (n > call->room) {
		struct tti_spot *spot = tti_calloc((size_t)n, sizeof(*spot));

		if (!spot)
			return tti_fail(TUTTI_ENOMEM, "program %s of %d operations: out of memory",
					bound->prog.algorithm, n);
		tti_free(call->spot);
		call->spot = spot;
		call->room = n;
	}
	TTI_TRY(tti_program_prepare(&call->job, engine, bound, layout, reducer, slice_bytes, 0));
	for (int32_t i = 0; i < n; i++)
		call->spot[i] = spot_of(&call->job, &bound->prog.oper[i]);
	call->is_exchange = bound->prog.exchange && reducer->fn && !reducer->scalars;
	return TUTTI_OK;
}

void tti_straight_release(struct tti_straight *call)
{
	tti_free(call->spot);
	*call = (struct tti_straight){ 0 };
}

/* Where the places of a call begin, by enum tti_place: integers, since a call may move
 * nothing and have no buffers. */
struct places {
	uintptr_t at[TTI_PLACE_SCRATCH + 1];
};

static tutti_status run_oper(struct tti_straight *call, const struct places *places, int32_t index,
			     int *mismatch_peer)
{
	struct tti_job *job = &call->job;
	struct tti_engine *engine = job->engine;
	struct tti_bound *bound = job->program.bound;
	const struct tti_oper *op = &bound->prog.oper[index];
	const struct tti_spot *spot = &call->spot[index];
	const int nsrc = op->nin + (op->from != TTI_PLACE_NONE);
	const void *local = (const void *)(places->at[op->from] + spot->from);
	void *dst = (void *)(places->at[op->to] + spot->to), *slot = NULL;
	const void *result;

	TTI_TRY(find_sources(engine, bound, op, local, spot->nbytes, job->tag, mismatch_peer));
	TTI_TRY(reserve_posts(engine, bound, index, spot->nbytes));
	if (op->nout > 0)
		slot = tti_first_slot(job, index, dst, spot->nbytes);
	result = tti_combine(job, op, nsrc, dst, slot, spot->count);
	commit_posts(bound, index, result, spot->nbytes, job->tag);
	release_sources(bound, op);
	return TUTTI_OK;
}

static bool is_there(const struct tti_bound *bound, const struct tti_oper *op)
{
	for (int i = 0; i < op->nin; i++) {
		struct tti_link *link = bound->link[bound->prog.queue_of[op->in + i]];

		if (!link->ops->peek(link, &(size_t){ 0 }, &(uint64_t){ 0 }))
			return false;
	}
	return true;
}

/* Operations that wait for messages alone, each when its are there. */
static tutti_status run_as_they_come(struct tti_straight *call, const struct places *places,
				     int *mismatch_peer)
{
	struct tti_engine *engine = call->job.engine;
	struct tti_bound *bound = call->job.program.bound;
	int16_t *pending = bound->pending;
	struct tti_wait wait = { 0 };
	int32_t missing;

	for (int32_t i = 0; i < bound->prog.nopers; i++)
		pending[i] = bound->prog.oper[i].nin > 0;
	do {
		bool moved = false;

		missing = -1;
		for (int32_t i = 0; i < bound->prog.nopers; i++) {
			if (!pending[i])
				continue;
			if (!is_there(bound, &bound->prog.oper[i])) {
				missing = i;
				continue;
			}
			TTI_TRY(run_oper(call, places, i, mismatch_peer));
			pending[i] = 0;
			moved = true;
		}
		if (missing >= 0 && !moved) {
			const struct tti_oper *op = &bound->prog.oper[missing];
			const struct tti_link *link = bound->link[bound->prog.queue_of[op->in]];
			const tutti_status st = wait_on(&wait, engine, link->peer);

			if (st != TUTTI_AGAIN)
				return st;
		}
	} while (missing >= 0);
	end_wait(&wait, engine);
	return TUTTI_OK;
}

/* What waits for nothing first, and the rest as it comes: what is sent finds room once the
 * peer is done with the calls before. Else ranks that share cores take turns once for each
 * message. */
static tutti_status run_free(struct tti_straight *call, const struct places *places,
			     int *mismatch_peer)
{
	const struct tti_compiled *prog = &call->job.program.bound->prog;

	for (int32_t i = 0; i < prog->nopers; i++)
		if (prog->oper[i].nin == 0)
			TTI_TRY(run_oper(call, places, i, mismatch_peer));
	return run_as_they_come(call, places, mismatch_peer);
}

/* Everybody sends the one chunk to all, then reduces what comes from them. */
static tutti_status exchange(struct tti_straight *call, const void *input, void *output,
			     int *mismatch_peer)
{
	const struct tti_job *job = &call->job;
	struct tti_bound *bound = job->program.bound;
	const struct tti_oper *recv = &bound->prog.oper[1];
	const struct tti_reducer *reducer = &job->program.reducer;
	const size_t count = call->spot[1].count, nbytes = call->spot[1].nbytes;

	for (int32_t i = bound->post_of[0]; i < bound->post_of[1]; i++) {
		TTI_TRY(wait_room(job->engine, &bound->post[i], nbytes));
		tti_post_commit(&bound->post[i], input, nbytes, job->tag);
	}
	TTI_TRY(find_sources(job->engine, bound, recv, input, nbytes, job->tag, mismatch_peer));
	reducer->fn(output, NULL, job->engine->sources, recv->nin + 1, count, reducer->divisor);
	release_sources(bound, recv);
	return TUTTI_OK;
}

tutti_status tti_straight_run(struct tti_straight *call, const void *input, void *output,
			      uint64_t tag, int *mismatch_peer)
{
	struct tti_engine *engine = call->job.engine;
	const struct tti_bound *bound = call->job.program.bound;
	const struct places places = { .at = {
					       [TTI_PLACE_INPUT] = (uintptr_t)input,
					       [TTI_PLACE_OUTPUT] = (uintptr_t)output,
					       [TTI_PLACE_SCRATCH] = (uintptr_t)engine->scratch,
				       } };

	call->job.tag = tag;
	if (call->is_exchange)
		TTI_TRY(exchange(call, input, output, mismatch_peer));
	else if (bound->is_free)
		TTI_TRY(run_free(call, &places, mismatch_peer));
	else
		for (int32_t index = 0; index < bound->prog.nopers; index++)
			TTI_TRY(run_oper(call, &places, index, mismatch_peer));
	return wait_sent(engine);
}

/* -- A transfer -------------------------------------------------------------------- */

/* Longer ones over a network go the general way: what a call costs is little beside them. */
#define WHOLE_MOST ((size_t)16 << 10)

bool tti_straight_reaches(const struct tti_engine *engine, int peer, size_t nbytes)
{
	const struct tti_port *port = tti_engine_port(engine, peer);

	if (!engine->links[peer])
		return false;
	return port->transport->piece_bytes > 0 ||
	       (nbytes <= port->slot_bytes && nbytes <= WHOLE_MOST);
}

static tutti_status send_piece(struct tti_engine *engine, int peer, const void *data, size_t nbytes,
			       size_t total, uint64_t tag)
{
	const struct tti_port *port = tti_engine_port(engine, peer);
	struct tti_wait wait = { 0 };

	while (!tti_link_send_piece(engine->links[peer], port, data, nbytes, total, tag)) {
		const tutti_status st = wait_on(&wait, engine, peer);

		if (st != TUTTI_AGAIN)
			return st;
	}
	end_wait(&wait, engine);
	return TUTTI_OK;
}

/* Of what is nothing there is a message, too. */
tutti_status tti_straight_send(struct tti_engine *engine, int peer, const void *data, size_t nbytes,
			       uint64_t tag)
{
	const size_t most = tti_transfer_piece(engine, peer, nbytes);
	const char *from = data;
	size_t left = nbytes;

	tti_engine_progress(engine);
	for (; left > most; left -= most, from += most)
		TTI_TRY(send_piece(engine, peer, from, most, nbytes, tag));
	TTI_TRY(send_piece(engine, peer, from, left, nbytes, tag));
	return wait_sent(engine);
}

static tutti_status recv_piece(struct tti_engine *engine, int peer, void *data, size_t nbytes,
			       uint64_t tag, int *mismatch_peer)
{
	struct tti_link *link = engine->links[peer];
	const void *message;

	TTI_TRY(wait_message(engine, link, nbytes, tag, &message, mismatch_peer));
	tti_copy(data, message, nbytes, 0);
	link->ops->release(link);
	return TUTTI_OK;
}

tutti_status tti_straight_recv(struct tti_engine *engine, int peer, void *data, size_t nbytes,
			       uint64_t tag, int *mismatch_peer)
{
	const size_t most = tti_transfer_piece(engine, peer, nbytes);
	const size_t first = nbytes < most ? nbytes : most;
	const tutti_status st = recv_piece(engine, peer, data, first, tag, mismatch_peer);
	char *to = data; /* NULL may be where nothing goes */

	if (st != TUTTI_OK) {
		if (st == TUTTI_EMISMATCH)
			*mismatch_peer = -1;
		return st == TUTTI_EMISMATCH ? TUTTI_AGAIN : st;
	}
	for (size_t done = first; done < nbytes; done += most) {
		const size_t piece = nbytes - done < most ? nbytes - done : most;

		TTI_TRY(recv_piece(engine, peer, to + done, piece, tag, mismatch_peer));
	}
	return wait_sent(engine);
}
