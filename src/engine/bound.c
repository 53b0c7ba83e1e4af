/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/bound.h"

#include <string.h>

#include "engine/connect.h"
#include "util/error.h"
#include "util/mem.h"

/* How many blocks of a call may be under way at once: enough to hide a hop, few
 * enough to stay in the cache. A network with several lanes brings some blocks much
 * later than others, and what it shares with others comes in gusts. Powers of two. */
#define WINDOW          4
#define WINDOW_OF_LANES 16
/* Scratch has room for so many chunks of the window. */
#define SCRATCH_CHUNKS  8
/* How many blocks a stage is behind the one before it: one is on its way while the next one
 * is begun. */
#define BEHIND          2

static void count_messages(const struct tti_compiled *prog, size_t *in, size_t *out)
{
	*in = *out = 0;
	for (int i = 0; i < prog->nopers; i++) {
		*in += (size_t)prog->oper[i].nin;
		*out += (size_t)prog->oper[i].nout;
	}
}

static size_t count_edges(const struct tti_compiled *prog)
{
	size_t edges = 0;

	for (int i = 0; i < prog->nopers; i++)
		edges += (size_t)prog->oper[i].npred;
	return edges;
}

/* An array of the bound program; never empty, so that NULL means no memory. */
static void *array(struct tti_bound *bound, size_t count, size_t nbytes)
{
	return tti_arena_alloc(&bound->arena, (count + 1) * nbytes);
}

/* The more links to other hosts carry something at once the fewer blocks keep the wire busy, and
 * the more harm is done by flows that get far ahead of others: those are late then, and what
 * waits for many of them at one port overflows (measured: docs/performance.md). */
static int32_t choose_window(const struct tti_engine *engine, const struct tti_compiled *prog)
{
	int32_t links[2] = { 0 }, most, window = WINDOW_OF_LANES;

	for (int i = 0; i < prog->nqueues; i++)
		links[prog->queue[i].is_send != 0] +=
			tti_engine_port(engine, prog->queue[i].peer)->transport->lanes != NULL;
	most = links[0] > links[1] ? links[0] : links[1];
	if (prog->nscratch > SCRATCH_CHUNKS || most == 0)
		return WINDOW;
	while (window > WINDOW && window * most > WINDOW_OF_LANES)
		window /= 2;
	return window;
}

static tutti_status allocate(struct tti_engine *engine, struct tti_bound *bound)
{
	const struct tti_compiled *prog = &bound->prog;
	const size_t nopers = (size_t)prog->nopers;
	const size_t nqueues = (size_t)prog->nqueues;
	size_t in, out;

	count_messages(prog, &in, &out);
	bound->latest = BEHIND * (prog->nstages - 1);
	/* The last stage of the oldest block stands behind the first of `latest` others. */
	for (bound->window = choose_window(engine, prog); bound->window < 2 * bound->latest;)
		bound->window *= 2;
	bound->link = array(bound, nqueues, sizeof(*bound->link));
	bound->peers = array(bound, (size_t)engine->config.n, sizeof(*bound->peers));
	bound->linked = array(bound, nopers, sizeof(*bound->linked));
	bound->post = array(bound, out, sizeof(*bound->post));
	bound->end = array(bound, in + out, sizeof(*bound->end));
	bound->cursor = array(bound, nqueues, sizeof(*bound->cursor));
	bound->progress = array(bound, nopers, sizeof(*bound->progress));
	bound->pred = array(bound, count_edges(prog), sizeof(*bound->pred));
	bound->pred_of = array(bound, nopers + 1, sizeof(*bound->pred_of));
	if (prog->coll == TUTTI_SEND_RECV)
		bound->lent = array(bound, nopers, sizeof(*bound->lent));
	bound->left = array(bound, (size_t)bound->window, sizeof(*bound->left));
	bound->lead = array(bound, nopers, sizeof(*bound->lead));
	bound->late = array(bound, nopers, sizeof(*bound->late));
	if (!bound->link || !bound->peers || !bound->linked || !bound->post || !bound->end ||
	    !bound->cursor || !bound->progress || !bound->pred || !bound->pred_of || !bound->left ||
	    !bound->lead || !bound->late || (prog->coll == TUTTI_SEND_RECV && !bound->lent))
		return tti_fail(TUTTI_ENOMEM, "program %s of %d operations: out of memory",
				prog->algorithm, prog->nopers);
	return TUTTI_OK;
}

/* Whom each operation waits for, from who waits for each. */
static void list_preds(struct tti_bound *bound)
{
	const struct tti_compiled *prog = &bound->prog;
	int32_t first = 0;

	for (int i = 0; i < prog->nopers; i++) {
		bound->pred_of[i] = first;
		first += prog->oper[i].npred;
	}
	bound->pred_of[prog->nopers] = first;
	/* Progress is set when a job starts: until then it counts. */
	for (int i = 0; i < prog->nopers; i++)
		for (int k = 0; k < prog->oper[i].nsucc; k++) {
			const int32_t to = prog->succs[prog->oper[i].succ + k];

			bound->pred[bound->pred_of[to] + bound->progress[to].next++] = i;
		}
}

static tutti_status list_peers(struct tti_bound *bound, int n)
{
	bool *seen = tti_calloc((size_t)n, sizeof(*seen));

	if (!seen)
		return tti_fail(TUTTI_ENOMEM, "peers of %d ranks: out of memory", n);
	for (int i = 0; i < bound->prog.nqueues; i++) {
		const int peer = bound->prog.queue[i].peer;

		if (!seen[peer])
			bound->peers[bound->npeers++] = peer;
		seen[peer] = true;
	}
	tti_free(seen);
	return TUTTI_OK;
}

/* Where each operation stands among the blocks and queues, and whether any order will do. */
static void note_order(struct tti_bound *bound)
{
	const struct tti_compiled *prog = &bound->prog;
	int nreceivers = 0;
	bool is_free = true;

	for (int i = 0; i < prog->nopers; i++) {
		const struct tti_operation *op = &prog->oper[i];

		bound->late[i] = BEHIND * op->stage;
		bound->lead[i] = op->nin    ? prog->queue_of[op->in]
				 : op->nout ? prog->queue_of[op->out]
					    : -1;
		nreceivers += op->nin > 0;
		is_free &= op->npred == 0;
	}
	for (int i = 0; i < prog->nqueues; i++)
		is_free &= prog->queue[i].n == 1;
	bound->is_free = is_free && nreceivers > 1;
}

tutti_status tti_bound_create(struct tti_engine *engine, struct tti_compiled *prog,
			      struct tti_bound **out)
{
	struct tti_bound *bound = tti_zalloc(sizeof(*bound));
	tutti_status st;

	if (!bound) {
		const char *const name = prog->algorithm;

		tti_compiled_release(prog);
		return tti_fail(TUTTI_ENOMEM, "program %s: out of memory", name);
	}
	bound->prog = *prog;
	*prog = (struct tti_compiled){ 0 };
	st = allocate(engine, bound);
	if (st == TUTTI_OK)
		st = list_peers(bound, engine->config.n);
	if (st != TUTTI_OK) {
		tti_bound_free(bound);
		return st;
	}
	list_preds(bound);
	note_order(bound);
	*out = bound;
	return TUTTI_OK;
}

void tti_bound_free(struct tti_bound *bound)
{
	if (!bound)
		return;
	tti_compiled_release(&bound->prog);
	tti_arena_release(&bound->arena);
	tti_free(bound);
}

int tti_bound_nchunks(const struct tti_bound *bound)
{
	return bound->prog.nchunks;
}

bool tti_bound_is_exchange(const struct tti_bound *bound)
{
	return bound->prog.exchange;
}

/* The posts of one operation: links of a port that can fan out go together. */
static struct tti_post *plan_posts(struct tti_engine *engine, struct tti_bound *bound,
				   const struct tti_operation *op, struct tti_post *post,
				   struct tti_link ***fan)
{
	for (int p = 0; p < engine->config.nports; p++) {
		struct tti_port *port = engine->config.ports[p];
		struct tti_link **first = *fan;
		int nlinks = 0;

		for (int i = 0; i < op->nout; i++) {
			const int queue = bound->prog.queue_of[op->out + i];

			if (tti_engine_port(engine, bound->prog.queue[queue].peer) == port)
				first[nlinks++] = bound->link[queue];
		}
		*fan += nlinks;
		if (nlinks > 1 && port->transport->fanout) {
			*post++ = (struct tti_post){ .port = port,
						     .links = first,
						     .n = nlinks,
						     .way = engine->config.oversubscribed
								    ? NULL
								    : &first[0]->way };
			continue;
		}
		for (int i = 0; i < nlinks; i++)
			*post++ = (struct tti_post){ .links = first + i,
						     .n = 1,
						     .way = &first[i]->way };
	}
	return post;
}

static void plan_all_posts(struct tti_engine *engine, struct tti_bound *bound)
{
	struct tti_post *post = bound->post;
	struct tti_link **end = bound->end;

	for (int i = 0; i < bound->prog.nqueues; i++)
		bound->link[i] = engine->links[bound->prog.queue[i].peer];
	for (int i = 0; i < bound->prog.nopers; i++) {
		const struct tti_operation *op = &bound->prog.oper[i];

		bound->linked[i] = (struct tti_linked){ .op = op, .in = end, .post = post };
		for (int k = 0; k < op->nin; k++)
			*end++ = bound->link[bound->prog.queue_of[op->in + k]];
		post = plan_posts(engine, bound, op, post, &end);
		bound->linked[i].end = post;
	}
}

/* TUTTI_AGAIN while links to peers are missing, *peer is one of them. */
static tutti_status connect_all(struct tti_engine *engine, struct tti_bound *bound, int *peer)
{
	tutti_status result = TUTTI_OK;

	/* All are begun before any is waited for: two ranks that wait for links
	 * in different order must not wait for each other. */
	for (int i = 0; i < bound->npeers; i++) {
		const tutti_status st = tti_engine_connect(engine, bound->peers[i]);

		if (st != TUTTI_OK && result != TUTTI_AGAIN) {
			*peer = bound->peers[i];
			result = st;
		}
		if (st < 0)
			return st;
	}
	if (result == TUTTI_OK) {
		plan_all_posts(engine, bound);
		bound->connected = true;
	}
	return result;
}

bool tti_job_connect(struct tti_job *job)
{
	const tutti_status st = connect_all(job->engine, job->program.bound, &job->waiting_on);

	if (st < 0)
		job->status = st;
	return st == TUTTI_OK;
}
