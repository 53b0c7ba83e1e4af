/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/executable.h"

#include <string.h>

#include "engine/connect.h"
#include "util/error.h"
#include "util/measured.h"
#include "util/mem.h"

/* How many blocks of a call may be under way at once: enough to hide a hop, few
 * enough to stay in the cache. Over a network there are up to TTI_WINDOW_OF_LINK,
 * because several lanes bring some blocks much later than others. Powers of two. */
#define WINDOW         4
/* Scratch has room for so many chunks of the window. */
#define SCRATCH_CHUNKS 8
/* How many blocks a stage is behind the one before it: one is on its way while the next one
 * is begun. */
#define STAGE_SKEW     2

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

/* An array of the executable; never empty, so that NULL means no memory. */
static void *array(struct tti_executable *exec, size_t count, size_t nbytes)
{
	return tti_arena_alloc(&exec->arena, (count + 1) * nbytes);
}

/* The more links to other hosts carry something at once the fewer blocks keep the wire busy, and
 * the more harm is done by flows that get far ahead of others: those are late then, and what
 * waits for many of them at one port overflows. */
static int32_t choose_window(const struct tti_engine *engine, const struct tti_compiled *prog)
{
	int32_t links[2] = { 0 }, most, window = TTI_WINDOW_OF_LINK;

	for (int i = 0; i < prog->nqueues; i++)
		links[prog->queue[i].is_send != 0] +=
			tti_engine_port(engine, prog->queue[i].peer)->transport->lanes != NULL;
	most = links[0] > links[1] ? links[0] : links[1];
	if (prog->nscratch > SCRATCH_CHUNKS || most == 0)
		return WINDOW;
	while (window > WINDOW && window * most > TTI_WINDOW_OF_LINK)
		window /= 2;
	return window;
}

static tutti_status allocate(struct tti_engine *engine, struct tti_executable *exec)
{
	const struct tti_compiled *prog = &exec->prog;
	const size_t nopers = (size_t)prog->nopers;
	const size_t nqueues = (size_t)prog->nqueues;
	size_t in, out;

	count_messages(prog, &in, &out);
	exec->max_skew = STAGE_SKEW * (prog->nstages - 1);
	/* The last stage of the oldest block stands behind the first of `max_skew` others. */
	for (exec->window = choose_window(engine, prog); exec->window < 2 * exec->max_skew;)
		exec->window *= 2;
	exec->link = array(exec, nqueues, sizeof(*exec->link));
	exec->peers = array(exec, (size_t)engine->config.n, sizeof(*exec->peers));
	exec->linked = array(exec, nopers, sizeof(*exec->linked));
	exec->post = array(exec, out, sizeof(*exec->post));
	exec->end = array(exec, in + out, sizeof(*exec->end));
	exec->cursor = array(exec, nqueues, sizeof(*exec->cursor));
	exec->progress = array(exec, nopers, sizeof(*exec->progress));
	exec->pred = array(exec, count_edges(prog), sizeof(*exec->pred));
	exec->pred_of = array(exec, nopers + 1, sizeof(*exec->pred_of));
	if (prog->coll == TUTTI_SEND_RECV)
		exec->rndv = array(exec, nopers, sizeof(*exec->rndv));
	exec->left = array(exec, (size_t)exec->window, sizeof(*exec->left));
	exec->lead = array(exec, nopers, sizeof(*exec->lead));
	exec->skew = array(exec, nopers, sizeof(*exec->skew));
	if (!exec->link || !exec->peers || !exec->linked || !exec->post || !exec->end ||
	    !exec->cursor || !exec->progress || !exec->pred || !exec->pred_of || !exec->left ||
	    !exec->lead || !exec->skew || (prog->coll == TUTTI_SEND_RECV && !exec->rndv))
		return tti_fail(TUTTI_ENOMEM, "program %s of %d operations: out of memory",
				prog->algorithm, prog->nopers);
	return TUTTI_OK;
}

/* List the operations that each operation waits for, from the lists of those that wait for it. */
static void list_preds(struct tti_executable *exec)
{
	const struct tti_compiled *prog = &exec->prog;
	int32_t first = 0;

	for (int i = 0; i < prog->nopers; i++) {
		exec->pred_of[i] = first;
		first += prog->oper[i].npred;
	}
	exec->pred_of[prog->nopers] = first;
	/* Progress is set when a job starts: until then it counts. */
	for (int i = 0; i < prog->nopers; i++)
		for (int k = 0; k < prog->oper[i].nsucc; k++) {
			const int32_t to = prog->succs[prog->oper[i].succ + k];

			exec->pred[exec->pred_of[to] + exec->progress[to].next++] = i;
		}
}

static tutti_status list_peers(struct tti_executable *exec, int n)
{
	bool *seen = tti_calloc((size_t)n, sizeof(*seen));

	if (!seen)
		return tti_fail(TUTTI_ENOMEM, "peers of %d ranks: out of memory", n);
	for (int i = 0; i < exec->prog.nqueues; i++) {
		const int peer = exec->prog.queue[i].peer;

		if (!seen[peer])
			exec->peers[exec->npeers++] = peer;
		seen[peer] = true;
	}
	tti_free(seen);
	return TUTTI_OK;
}

/* Note the skew and the queue of each operation, and whether operations may run in any order. */
static void note_order(struct tti_executable *exec)
{
	const struct tti_compiled *prog = &exec->prog;
	int nreceivers = 0;
	bool is_free = true;

	for (int i = 0; i < prog->nopers; i++) {
		const struct tti_operation *op = &prog->oper[i];

		exec->skew[i] = STAGE_SKEW * op->stage;
		exec->lead[i] = op->nin    ? prog->queue_of[op->in]
				: op->nout ? prog->queue_of[op->out]
					   : -1;
		nreceivers += op->nin > 0;
		is_free &= op->npred == 0;
	}
	for (int i = 0; i < prog->nqueues; i++)
		is_free &= prog->queue[i].n == 1;
	exec->is_free = is_free && nreceivers > 1;
}

tutti_status tti_executable_create(struct tti_engine *engine, struct tti_compiled *prog,
				   struct tti_executable **out)
{
	struct tti_executable *exec = tti_zalloc(sizeof(*exec));
	tutti_status st;

	if (!exec) {
		const char *const name = prog->algorithm;

		tti_compiled_release(prog);
		return tti_fail(TUTTI_ENOMEM, "program %s: out of memory", name);
	}
	exec->prog = *prog;
	*prog = (struct tti_compiled){ 0 };
	st = allocate(engine, exec);
	if (st == TUTTI_OK)
		st = list_peers(exec, engine->config.n);
	if (st != TUTTI_OK) {
		tti_executable_free(exec);
		return st;
	}
	list_preds(exec);
	note_order(exec);
	*out = exec;
	return TUTTI_OK;
}

void tti_executable_free(struct tti_executable *exec)
{
	if (!exec)
		return;
	tti_compiled_release(&exec->prog);
	tti_arena_release(&exec->arena);
	tti_free(exec);
}

int tti_executable_nchunks(const struct tti_executable *exec)
{
	return exec->prog.nchunks;
}

const struct tti_compiled *tti_executable_compiled(const struct tti_executable *exec)
{
	return &exec->prog;
}

bool tti_executable_is_exchange(const struct tti_executable *exec)
{
	return exec->prog.exchange;
}

/* The posts of one operation: links of a port that can fan out go together. */
static struct tti_post *plan_posts(struct tti_engine *engine, struct tti_executable *exec,
				   const struct tti_operation *op, struct tti_post *post,
				   struct tti_link ***fan)
{
	for (int p = 0; p < engine->config.nports; p++) {
		struct tti_port *port = engine->config.ports[p];
		struct tti_link **first = *fan;
		int nlinks = 0;

		for (int i = 0; i < op->nout; i++) {
			const int queue = exec->prog.queue_of[op->out + i];

			if (tti_engine_port(engine, exec->prog.queue[queue].peer) == port)
				first[nlinks++] = exec->link[queue];
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

static void plan_all_posts(struct tti_engine *engine, struct tti_executable *exec)
{
	struct tti_post *post = exec->post;
	struct tti_link **end = exec->end;

	for (int i = 0; i < exec->prog.nqueues; i++)
		exec->link[i] = engine->links[exec->prog.queue[i].peer];
	for (int i = 0; i < exec->prog.nopers; i++) {
		const struct tti_operation *op = &exec->prog.oper[i];

		exec->linked[i] = (struct tti_linked){ .op = op, .in = end, .post = post };
		for (int k = 0; k < op->nin; k++)
			*end++ = exec->link[exec->prog.queue_of[op->in + k]];
		post = plan_posts(engine, exec, op, post, &end);
		exec->linked[i].end = post;
	}
}

/* TUTTI_AGAIN while links to peers are missing, *peer is one of them. */
static tutti_status connect_all(struct tti_engine *engine, struct tti_executable *exec, int *peer)
{
	tutti_status result = TUTTI_OK;

	/* Begin all before waiting for any: two ranks that connect in different order must not wait
	 * for each other. */
	for (int i = 0; i < exec->npeers; i++) {
		const tutti_status st = tti_engine_connect(engine, exec->peers[i]);

		if (st != TUTTI_OK && result != TUTTI_AGAIN) {
			*peer = exec->peers[i];
			result = st;
		}
		if (st < 0)
			return st;
	}
	if (result == TUTTI_OK) {
		plan_all_posts(engine, exec);
		exec->connected = true;
	}
	return result;
}

bool tti_job_connect(struct tti_job *job)
{
	const tutti_status st = connect_all(job->engine, job->program.exec, &job->waiting_on);

	if (st < 0)
		job->status = st;
	return st == TUTTI_OK;
}
