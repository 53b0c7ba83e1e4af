/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/check/check_run.h"

#include "util/error.h"
#include "util/strbuf.h"

/* Why a run has stopped: every operation that has not run waits for another one
 * that has not. Whoever follows that from one to the next comes round in a circle,
 * and the circle is the deadlock. */

#define LINES_SHOWN 6

/* What an operation waits for. */
enum reason {
	FOR_ORDER,   /* an earlier operation of the same rank               */
	FOR_MESSAGE, /* what a peer has not sent yet                        */
	FOR_ROOM,    /* a slot of the link, taken by what a peer has not read */
	FOR_SHARED,  /* the same with a shared slot                         */
};

struct wait {
	enum reason reason;
	int32_t oper; /* that has to run first */
	int peer;     /* its rank              */
};

/* Position of an operation in one of its queues. */
static int32_t position_in(const struct tti_compiled *compiled, const struct tti_queue *queue,
			   int32_t oper)
{
	int32_t k = 0;

	while (compiled->queued[queue->first + k] != oper)
		k++;
	return k;
}

static bool waits_locally(const struct tti_check_message_run *run, int32_t oper, struct wait *out)
{
	const struct tti_check *check = run->check;
	const int rank = check->rank_of[oper];
	const struct tti_compiled *compiled = &check->compiled[rank];
	const int32_t base = check->oper_base[rank];

	for (int32_t o = base; o < oper; o++) {
		const struct tti_operation *at = &compiled->oper[o - base];

		if (run->need[o] < 0)
			continue;
		*out = (struct wait){ FOR_ORDER, o, rank };
		if (run->mode.in_order)
			return true;
		for (int i = 0; i < at->nsucc; i++)
			if (compiled->succs[at->succ + i] == oper - base)
				return true;
	}
	return false;
}

/* Whether an operation can't go on because of one of its queues. */
static bool waits_in_queue(const struct tti_check_message_run *run, int32_t oper, int32_t queue,
			   struct wait *out)
{
	const struct tti_check *check = run->check;
	const int rank = check->rank_of[oper];
	const struct tti_compiled *compiled = &check->compiled[rank];
	const struct tti_queue *at = &compiled->queue[queue];
	const int32_t self = check->queue_base[rank] + queue, other = check->partner[self];
	const struct tti_check_link *link = &run->link[at->is_send ? self : other];
	const int32_t k = position_in(compiled, at, oper - check->oper_base[rank]);
	const int32_t next = at->is_send ? link->sent : link->taken;

	if (k > next) {
		*out = (struct wait){ FOR_ORDER, tti_check_queued(check, rank, self, next), rank };
		return true;
	}
	*out = (struct wait){ at->is_send ? FOR_ROOM : FOR_MESSAGE,
			      tti_check_queued(check, at->peer, other, link->taken), at->peer };
	return at->is_send ? k - link->taken >= check->slots : link->sent <= k;
}

/* A fan-out waits until all have read the one `slots` before it. */
static struct wait waits_for_readers(const struct tti_check_message_run *run, int32_t oper)
{
	const struct tti_check *check = run->check;
	const int rank = check->rank_of[oper];
	const struct tti_compiled *compiled = &check->compiled[rank];
	const int32_t *fanout = &run->fanout[run->fanout_base[rank]];
	const int32_t before = fanout[run->fanout_index[oper] - check->slots];
	const struct tti_operation *at = tti_check_operation(check, before);

	for (int i = 0; i < at->nout; i++) {
		const int32_t queue = compiled->queue_of[at->out + i];
		const struct tti_queue *out = &compiled->queue[queue];
		const int32_t self = check->queue_base[rank] + queue;
		const int32_t taken = run->link[self].taken;

		if (position_in(compiled, out, before - check->oper_base[rank]) >= taken)
			return (struct wait){ FOR_SHARED,
					      tti_check_queued(check, out->peer,
							       check->partner[self], taken),
					      out->peer };
	}
	return (struct wait){ FOR_ORDER, before, rank };
}

static struct wait waits_for(const struct tti_check_message_run *run, int32_t oper)
{
	const struct tti_check *check = run->check;
	const struct tti_compiled *compiled = &check->compiled[check->rank_of[oper]];
	const struct tti_operation *at = tti_check_operation(check, oper);
	struct wait wait;

	if (waits_locally(run, oper, &wait))
		return wait;
	for (int i = 0; i < at->nin; i++)
		if (waits_in_queue(run, oper, compiled->queue_of[at->in + i], &wait))
			return wait;
	for (int i = 0; i < at->nout; i++)
		if (waits_in_queue(run, oper, compiled->queue_of[at->out + i], &wait))
			return wait;
	return waits_for_readers(run, oper);
}

static void describe(const struct tti_check_message_run *run, int32_t oper, struct wait wait,
		     struct tti_strbuf *buf)
{
	const struct tti_check *check = run->check;
	const int rank = check->rank_of[oper], chunk = tti_check_operation(check, oper)->chunk;
	const bool remote = wait.reason != FOR_ORDER;
	const int step = tti_check_step(check, oper, wait.reason == FOR_ORDER ? -1 : wait.peer);
	const int other = tti_check_step(check, wait.oper, remote ? rank : -1);

	tti_strbuf_addf(buf, "rank %d, step %d (%s chunk %d)", rank, step,
			step < 0 ? "copy" : tti_step_name(check->prog[rank].steps.at[step].kind),
			chunk);
	switch (wait.reason) {
	case FOR_ORDER:
		tti_strbuf_addf(buf, " comes after its step %d", other);
		break;
	case FOR_MESSAGE:
		tti_strbuf_addf(buf, " waits for rank %d, step %d, to send", wait.peer, other);
		break;
	case FOR_ROOM:
	case FOR_SHARED:
		tti_strbuf_addf(buf, " waits for rank %d, step %d, to free a %sslot", wait.peer,
				other, wait.reason == FOR_SHARED ? "shared " : "");
		break;
	}
}

/* The circle that `oper` is part of. */
static void describe_circle(const struct tti_check_message_run *run, int32_t oper,
			    struct tti_strbuf *buf)
{
	int32_t at = oper;
	int lines = 0;

	do {
		const struct wait wait = waits_for(run, at);

		if (lines < LINES_SHOWN) {
			tti_strbuf_add(buf, lines ? "; " : "");
			describe(run, at, wait, buf);
		}
		lines++;
		at = wait.oper;
	} while (at != oper);
	if (lines > LINES_SHOWN)
		tti_strbuf_addf(buf, "; and so on, %d in a circle", lines);
}

/* An operation of the circle that waiting leads to (Brent, BIT 1980: the mark
 * moves up to where we are after 1, 2, 4, ... steps). */
static int32_t find_circle(const struct tti_check_message_run *run, int32_t oper)
{
	int32_t mark = oper;
	size_t steps = 0, limit = 1;

	for (;;) {
		oper = waits_for(run, oper).oper;
		if (oper == mark)
			return oper;
		if (++steps == limit) {
			mark = oper;
			steps = 0;
			limit *= 2;
		}
	}
}

tutti_status tti_check_stall(const struct tti_check_message_run *run)
{
	const struct tti_check *check = run->check;
	struct tti_strbuf buf = { 0 };
	int32_t oper = 0;
	tutti_status st;

	while (run->need[oper] < 0)
		oper++;
	describe_circle(run, find_circle(run, oper), &buf);
	st = tti_fail_quiet(TUTTI_EINVAL, "deadlock with %d slot%s per link, %s%s: %s",
			    check->slots, check->slots == 1 ? "" : "s",
			    run->mode.in_order ? "steps one after the other" : "any order of steps",
			    run->mode.shared ? ", fan-outs in shared slots" : "",
			    buf.text ? buf.text : "");
	tti_strbuf_release(&buf);
	return st;
}
