/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs each send of a file with its receive, and puts all events into one order. */
#include "coll/files/msccl_file.h"

#include <stdio.h>
#include <string.h>

#include "coll/files/msccl.h"
#include "util/error.h"
#include "util/mem.h"

static tutti_status no_memory(const struct tti_msccl *m)
{
	return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", m->doc->source);
}

/* -- Events ------------------------------------------------------------------------ */

static bool takes_in(uint8_t type)
{
	return type == TTI_MSCCL_R || type == TTI_MSCCL_RCS || type == TTI_MSCCL_RRC ||
	       type == TTI_MSCCL_RRS || type == TTI_MSCCL_RRCS;
}

static bool puts_on(uint8_t type)
{
	return type == TTI_MSCCL_S || type == TTI_MSCCL_RCS || type == TTI_MSCCL_RRS ||
	       type == TTI_MSCCL_RRCS;
}

static bool add_step(const struct tti_msccl *m, int32_t index, struct tti_msccl_events *events)
{
	const struct tti_msccl_step *step = &m->steps.at[index];
	const size_t first = events->at.n;
	bool good = true;

	for (int32_t c = 0; c < step->cnt || (c == 0 && step->type == TTI_MSCCL_NOP); c++) {
		struct tti_msccl_event event = { .step = index, .chunk = c, .partner = -1 };

		if (takes_in(step->type)) {
			event.half = TTI_MSCCL_GET;
			good &= tti_vec_push(&events->at, event);
		}
		if (puts_on(step->type)) {
			event.half = TTI_MSCCL_PUT;
			good &= tti_vec_push(&events->at, event);
		}
		if (event.half == TTI_MSCCL_LOCAL)
			good &= tti_vec_push(&events->at, event);
		if (step->type == TTI_MSCCL_NOP || !good)
			break;
	}
	if (good) {
		events->at.at[first].begins = true;
		events->at.at[events->at.n - 1].ends = true;
	}
	return good;
}

static tutti_status list_events(const struct tti_msccl *m, struct tti_msccl_events *events)
{
	int32_t t = 0;

	events->first = tti_calloc(m->tbs.n + 1, sizeof(*events->first));
	if (!events->first)
		return no_memory(m);
	for (size_t i = 0; i < m->steps.n; i++) {
		/* Steps stand thread block after thread block. */
		for (; t < m->steps.at[i].tb; t++)
			events->first[t + 1] = (int32_t)events->at.n;
		if (events->at.n + 2 * (size_t)m->steps.at[i].cnt > TTI_MSCCL_EVENTS_MAX)
			return tti_msccl_fail(m, (int32_t)i,
					      "up to here steps handle more than %d chunks",
					      TTI_MSCCL_EVENTS_MAX);
		if (!add_step(m, (int32_t)i, events))
			return no_memory(m);
	}
	for (; t < (int32_t)m->tbs.n; t++)
		events->first[t + 1] = (int32_t)events->at.n;
	return TUTTI_OK;
}

/* -- Messages ---------------------------------------------------------------------- */

/* The next event of that half in thread block t, `event` included; the block's end if there is none. */
static int32_t next_half(const struct tti_msccl_events *events, int32_t t, int32_t event,
			 uint8_t half)
{
	while (event < events->first[t + 1] && events->at.at[event].half != half)
		event++;
	return event;
}

/* Pair each step by which thread block `out` sends with the one by which `in` receives. */
static tutti_status pair(const struct tti_msccl *m, struct tti_msccl_events *events, int32_t out,
			 int32_t in)
{
	const int32_t out_end = events->first[out + 1], in_end = events->first[in + 1];
	int32_t put = next_half(events, out, events->first[out], TTI_MSCCL_PUT);
	int32_t get = next_half(events, in, events->first[in], TTI_MSCCL_GET);

	while (put < out_end && get < in_end) {
		const int32_t s = events->at.at[put].step, r = events->at.at[get].step;

		if (m->steps.at[s].cnt != m->steps.at[r].cnt)
			return tti_msccl_fail(m, s,
					      "sends %d chunks, but what receives them (line %u) "
					      "takes %d",
					      m->steps.at[s].cnt, tti_msccl_line(m, r),
					      m->steps.at[r].cnt);
		events->at.at[put].partner = get;
		events->at.at[get].partner = put;
		put = next_half(events, out, put + 1, TTI_MSCCL_PUT);
		get = next_half(events, in, get + 1, TTI_MSCCL_GET);
	}
	if (put < out_end)
		return tti_msccl_fail(m, events->at.at[put].step,
				      "sends to gpu %d over channel %d, where tb %d receives fewer "
				      "times",
				      m->tbs.at[out].send, m->tbs.at[out].chan, m->tbs.at[in].id);
	if (get < in_end)
		return tti_msccl_fail(
			m, events->at.at[get].step,
			"receives from gpu %d over channel %d, where tb %d sends fewer "
			"times",
			m->tbs.at[in].recv, m->tbs.at[in].chan, m->tbs.at[out].id);
	return TUTTI_OK;
}

/* The thread block of gpu `rank` that sends to, or receives from, `peer` over a channel; -1: there
 * is none. A thread block that names the peer and never uses it does not count. */
static int32_t find_end(const struct tti_msccl *m, const struct tti_msccl_events *events, int rank,
			int peer, int chan, uint8_t half)
{
	const struct tti_msccl_gpu *gpu = &m->gpu[rank];

	for (int32_t t = gpu->first; t < gpu->first + gpu->n; t++) {
		const struct tti_msccl_tb *tb = &m->tbs.at[t];

		if ((half == TTI_MSCCL_PUT ? tb->send : tb->recv) == peer && tb->chan == chan &&
		    next_half(events, t, events->first[t], half) < events->first[t + 1])
			return t;
	}
	return -1;
}

/* Pair the messages of one direction of a thread block, if it has any. */
static tutti_status pair_side(const struct tti_msccl *m, struct tti_msccl_events *events, int32_t t,
			      uint8_t half)
{
	const struct tti_msccl_tb *tb = &m->tbs.at[t];
	const bool is_put = half == TTI_MSCCL_PUT;
	const int32_t event = next_half(events, t, events->first[t], half);
	const int32_t peer = is_put ? tb->send : tb->recv;
	int32_t other;

	if (event == events->first[t + 1])
		return TUTTI_OK;
	other = find_end(m, events, tb->gpu, peer, tb->chan, half);
	if (other != t)
		return tti_msccl_fail(
			m, events->at.at[event].step, "tb %d already %s gpu %d over channel %d",
			m->tbs.at[other].id, is_put ? "sends to" : "receives from", peer, tb->chan);
	other = find_end(m, events, peer, tb->gpu, tb->chan,
			 is_put ? TTI_MSCCL_GET : TTI_MSCCL_PUT);
	if (other < 0)
		return tti_msccl_fail(m, events->at.at[event].step,
				      is_put ? "sends to gpu %d, where nothing receives from "
					       "gpu %d over channel %d"
					     : "receives from gpu %d, where nothing sends to gpu "
					       "%d over channel %d",
				      peer, tb->gpu, tb->chan);
	return is_put ? pair(m, events, t, other) : TUTTI_OK;
}

/* -- The order --------------------------------------------------------------------- */

/* Of all events that could happen next, sends come first, then local steps, then receives. So a
 * chunk is sent before a message changes it, where that is possible. A send waits until its
 * receive could be the next event of the receiver, because the messages of several channels share
 * one link; it goes earlier only if no other event can happen.
 *
 * Two ranks that each send several chunks in one step before they receive would wait for each
 * other, since a link has one slot. So a receive may happen before sends that precede it in its
 * thread block, if those sends read other places and all that it depends on is done. */
struct walk {
	const struct tti_msccl *m;
	const struct tti_msccl_events *events;
	int32_t *at;     /* of each thread block: its first event that has not happened  */
	int32_t *get;    /* of each: its first one that gets                             */
	int32_t *active; /* thread blocks that are not done                              */
	int32_t nactive;
	int32_t *last;    /* of each step: its last event                                 */
	int32_t *after;   /* of each event that gets: the last one it must come after, -1 */
	bool *happened;   /* events                                                       */
	bool *arrived;    /* events that get: there is a message                          */
	int32_t *on_link; /* [n * n]: the message from one to another: its event + 1      */
	int32_t norder;
};

/* The last send of the place that a receive writes or reduces into: it has to come first. */
static int32_t put_before(const struct walk *w, const int32_t *last_put, int32_t event)
{
	const struct tti_msccl_event *e = &w->events->at.at[event];
	const struct tti_msccl_step *step = &w->m->steps.at[e->step];

	if (step->type == TTI_MSCCL_RRS)
		return -1;
	return last_put[tti_msccl_place(w->m, tti_msccl_gpu_of(w->m, e->step), step->dst,
					step->dstoff + e->chunk)];
}

/* Fill last[] and after[]. Events are numbered thread block after thread block, so an entry of
 * last_put that an earlier thread block left is less than all events of this one. */
static tutti_status find_limits(struct walk *w)
{
	int32_t *last_put = tti_calloc(w->m->nplaces, sizeof(*last_put)), after = -1;

	if (!last_put)
		return no_memory(w->m);
	memset(last_put, -1, w->m->nplaces * sizeof(*last_put));
	for (int32_t i = 0; i < (int32_t)w->events->at.n; i++) {
		const struct tti_msccl_event *e = &w->events->at.at[i];
		const struct tti_msccl_step *step = &w->m->steps.at[e->step];

		w->last[e->step] = i;
		if (e->half == TTI_MSCCL_GET) {
			const int32_t put = put_before(w, last_put, i);

			w->after[i] = put > after ? put : after;
		} else if (step->type != TTI_MSCCL_S || (e->begins && step->dep >= 0)) {
			after = i;
		}
		if (step->type == TTI_MSCCL_S)
			last_put[tti_msccl_place(w->m, tti_msccl_gpu_of(w->m, e->step), step->src,
						 step->srcoff + e->chunk)] = i;
	}
	tti_free(last_put);
	return TUTTI_OK;
}

static int32_t *link_of(const struct walk *w, int32_t put)
{
	const struct tti_msccl_step *step = &w->m->steps.at[w->events->at.at[put].step];
	const struct tti_msccl_tb *tb = &w->m->tbs.at[step->tb];

	return &w->on_link[(size_t)tb->gpu * (size_t)w->m->n + (size_t)tb->send];
}

static int32_t tb_of(const struct walk *w, int32_t event)
{
	return w->m->steps.at[w->events->at.at[event].step].tb;
}

static bool is_done(const struct walk *w, int32_t step)
{
	return w->at[w->m->steps.at[step].tb] > w->last[step];
}

/* Whether what the event's step depends on is done. */
static bool may_begin(const struct walk *w, int32_t event)
{
	const struct tti_msccl_event *e = &w->events->at.at[event];
	const int32_t dep = w->m->steps.at[e->step].dep;

	return !e->begins || dep < 0 || is_done(w, dep);
}

/* Whether a receive could happen if its message were there. */
static bool is_open(const struct walk *w, int32_t event)
{
	const int32_t t = tb_of(w, event);

	return w->get[t] == event && w->at[t] > w->after[event] && may_begin(w, event);
}

enum urge { SEND_WANTED, LOCAL, RECEIVE, SEND_EARLY };

/* The event that thread block t can do, of that kind; -1: none. */
static int32_t find_event(const struct walk *w, int32_t t, enum urge urge)
{
	const int32_t event = w->at[t], get = w->get[t];
	const struct tti_msccl_event *e = &w->events->at.at[event];

	if (urge == RECEIVE)
		return get < w->events->first[t + 1] && w->arrived[get] && is_open(w, get) ? get
											   : -1;
	if (!may_begin(w, event) || e->half == TTI_MSCCL_GET)
		return -1;
	if (e->half == TTI_MSCCL_LOCAL)
		return urge == LOCAL ? event : -1;
	if (*link_of(w, event))
		return -1;
	return urge == SEND_EARLY || (urge == SEND_WANTED && is_open(w, e->partner)) ? event : -1;
}

static void happen(struct walk *w, int32_t t, int32_t event)
{
	const struct tti_msccl_event *e = &w->events->at.at[event];
	const int32_t end = w->events->first[t + 1];

	w->events->order[w->norder++] = event;
	w->happened[event] = true;
	if (e->half == TTI_MSCCL_PUT) {
		*link_of(w, event) = e->partner + 1;
		w->arrived[e->partner] = true;
	} else if (e->half == TTI_MSCCL_GET) {
		*link_of(w, e->partner) = 0;
		w->get[t] = next_half(w->events, t, event + 1, TTI_MSCCL_GET);
	}
	while (w->at[t] < end && w->happened[w->at[t]])
		w->at[t]++;
}

/* Let all events of that kind happen that can; of receives only one in each thread block, because
 * each may allow a send, and of early sends only one in all. Returns whether any happened. */
static bool advance(struct walk *w, enum urge urge)
{
	bool moved = false;
	int32_t kept = 0;

	for (int32_t i = 0; i < w->nactive; i++) {
		const int32_t t = w->active[i];

		while (w->at[t] < w->events->first[t + 1] && !(moved && urge == SEND_EARLY)) {
			const int32_t event = find_event(w, t, urge);

			if (event < 0)
				break;
			happen(w, t, event);
			moved = true;
			if (urge == RECEIVE)
				break;
		}
		if (w->at[t] < w->events->first[t + 1])
			w->active[kept++] = t;
	}
	w->nactive = kept;
	return moved;
}

/* -- Standstill -------------------------------------------------------------------- */

/* The thread block that t waits for, and why. */
static int32_t waits_for(const struct walk *w, int32_t t, const char **why)
{
	const int32_t event = w->at[t];
	const struct tti_msccl_event *e = &w->events->at.at[event];
	const int32_t dep = w->m->steps.at[e->step].dep;

	if (!may_begin(w, event)) {
		*why = "depends on";
		return w->m->steps.at[dep].tb;
	}
	if (e->half == TTI_MSCCL_GET) {
		*why = "waits for a message from";
		return tb_of(w, e->partner);
	}
	*why = "waits for room, until a message is taken by";
	return tb_of(w, *link_of(w, event) - 1);
}

/* All thread blocks wait, so following who waits for whom leads into a circle. The error shows the
 * circle, and not the thread blocks on the way to it. */
static tutti_status standstill(const struct walk *w)
{
	char text[400] = "";
	size_t len = 0;
	const char *why;
	int32_t t = w->active[0], first;

	for (int32_t i = 0; i < w->nactive; i++)
		t = waits_for(w, t, &why);
	first = t;
	do {
		const int32_t next = waits_for(w, t, &why);

		if (len < sizeof(text))
			len += (size_t)snprintf(
				text + len, sizeof(text) - len, "%sline %u %s line %u",
				t == first ? "" : "; ",
				tti_msccl_line(w->m, w->events->at.at[w->at[t]].step), why,
				tti_msccl_line(w->m, w->events->at.at[w->at[next]].step));
		t = next;
	} while (t != first);
	return tti_msccl_fail(w->m, w->events->at.at[w->at[first]].step, "can never run: %s", text);
}

static tutti_status walk_all(struct walk *w)
{
	const int32_t nevents = (int32_t)w->events->at.n;

	TTI_TRY(find_limits(w));
	for (int32_t t = 0; t < (int32_t)w->m->tbs.n; t++) {
		w->at[t] = w->events->first[t];
		w->get[t] = next_half(w->events, t, w->at[t], TTI_MSCCL_GET);
		w->active[w->nactive++] = t;
	}
	while (w->norder < nevents)
		if (!advance(w, SEND_WANTED) && !advance(w, LOCAL) && !advance(w, RECEIVE) &&
		    !advance(w, SEND_EARLY))
			return standstill(w);
	return TUTTI_OK;
}

static tutti_status put_in_order(const struct tti_msccl *m, struct tti_msccl_events *events)
{
	const size_t n = (size_t)m->n, ntbs = m->tbs.n;
	struct walk w = { .m = m, .events = events };
	tutti_status st;

	w.at = tti_calloc(ntbs, sizeof(*w.at));
	w.active = tti_calloc(ntbs, sizeof(*w.active));
	w.get = tti_calloc(ntbs, sizeof(*w.get));
	w.last = tti_calloc(m->steps.n, sizeof(*w.last));
	w.after = tti_calloc(events->at.n, sizeof(*w.after));
	w.happened = tti_calloc(events->at.n, sizeof(*w.happened));
	w.arrived = tti_calloc(events->at.n, sizeof(*w.arrived));
	w.on_link = tti_calloc(n * n, sizeof(*w.on_link));
	events->order = tti_calloc(events->at.n, sizeof(*events->order));
	st = w.at && w.get && w.active && w.last && w.after && w.happened && w.arrived &&
			     w.on_link && events->order
		     ? walk_all(&w)
		     : no_memory(m);
	tti_free(w.at);
	tti_free(w.active);
	tti_free(w.get);
	tti_free(w.last);
	tti_free(w.after);
	tti_free(w.happened);
	tti_free(w.arrived);
	tti_free(w.on_link);
	return st;
}

tutti_status tti_msccl_order(const struct tti_msccl *m, struct tti_msccl_events *out)
{
	tutti_status st;

	memset(out, 0, sizeof(*out));
	st = list_events(m, out);
	for (int32_t t = 0; t < (int32_t)m->tbs.n && st == TUTTI_OK; t++) {
		st = pair_side(m, out, t, TTI_MSCCL_PUT);
		if (st == TUTTI_OK)
			st = pair_side(m, out, t, TTI_MSCCL_GET);
	}
	if (st == TUTTI_OK)
		st = put_in_order(m, out);
	if (st != TUTTI_OK)
		tti_msccl_events_release(out);
	return st;
}

void tti_msccl_events_release(struct tti_msccl_events *events)
{
	tti_vec_release(&events->at);
	tti_free(events->first);
	tti_free(events->order);
	memset(events, 0, sizeof(*events));
}
