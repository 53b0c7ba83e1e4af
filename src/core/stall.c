/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/stall.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "boot/boot.h"
#include "boot/watch/watch.h"
#include "core/call/args.h"
#include "core/call/roots.h"
#include "core/call/timeout.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/flight.h"
#include "core/handoff/handoff.h"
#include "core/handoff/sides.h"
#include "core/prepare/signature.h"
#include "engine/connect.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

/* Why does a call not end?
 *
 * A call that has waited for a peer for ASK_AFTER_NS asks it what it is doing. A peer that is
 * inside the same call waits for another rank, which is asked next, and so on, until a rank is
 * found that has not come, is in another call, or does not answer. Another call is a mismatch,
 * of which all ranks are notified; a rank that has not come is named in a warning after
 * TUTTI_STALL_MS. */

#define ASK_AFTER_NS (100 * TTI_NS_PER_MS)
#define ASK_AGAIN_NS (150 * TTI_NS_PER_MS)
#define EARLY_NS     (100 * TTI_NS_PER_MS)
/* A rank that does not answer for so long is not well. */
#define SILENT_NS    (900 * TTI_NS_PER_MS)
/* The most ranks that one round follows from one that waits to the one that it waits for. */
#define MOST_HOPS    32
/* How long a mismatch waits for the peer to say what it called. */
#define EXPLAIN_NS   (500 * TTI_NS_PER_MS)
/* Messages of a rank that left may take so long, as its system goes on sending them. */
#define COMING_NS    (INT64_C(16000) * TTI_NS_PER_MS)
/* How long a broken link waits to hear the reason. */
#define NEWS_NS      (300 * TTI_NS_PER_MS)

/* -- This rank's own call ---------------------------------------------------- */

/* A rank on no side of a handoff is done with it at once. So if sides differ, the ranks may meet in
 * different calls: then the text names both. */
static void describe_own(struct tti_comm *comm, uint64_t seq, const struct tti_args *args,
			 char *buf, size_t size)
{
	char sides[TTI_SIDES_TEXT];
	uint64_t handoff_seq;

	pthread_mutex_lock(&comm->lock);
	tti_sides_format(comm->current.sides, sides, sizeof(sides));
	handoff_seq = comm->current.handoff_seq;
	pthread_mutex_unlock(&comm->lock);
	tti_args_format(args, sides, buf, size);
	if (args->coll != TUTTI_HANDOFF && handoff_seq > 0 && handoff_seq + 1 == seq) {
		const size_t len = strlen(buf);

		(void)snprintf(buf + len, size - len, " after handoff %s", sides);
	}
}

static void describe_way(const char *algorithm, uint64_t split, uint32_t stage, char *buf,
			 size_t size)
{
	static const char *const reaches[] = {
		[TTI_BY_SLOTS] = "slots",
		[TTI_BY_MEMORY] = "memory if all can be addressed",
		[TTI_BY_MEMORY_FORCED] = "memory",
		[TTI_BY_COPIES] = "memory copied by the kernel",
	};
	static const char *const stages[TTI_STAGES] = {
		[TTI_STAGE_CALL] = "",
		[TTI_STAGE_ROOTS] = " to compare roots",
		[TTI_STAGE_SOURCES] = " to compare sources",
		[TTI_STAGE_DECISION] = " to tell of its plan",
		[TTI_STAGE_SHAPE] = " to send its plan",
		[TTI_STAGE_PROOFS] = " to compare proofs of its plan",
		[TTI_STAGE_LANES] = " to make lanes between GPUs",
	};

	buf[0] = 0;
	if (split && algorithm)
		(void)snprintf(buf, size,
			       "%.24s (%" PRIu64 " bytes a step, parts %d, stripes %d, %s)%s",
			       algorithm, split >> 26, (int)(split >> 14 & 0xfff),
			       (int)(split >> 2 & 0xfff), reaches[split & 3], stages[stage]);
}

void tti_stall_on_ask(void *self, struct tti_call *out)
{
	struct tti_comm *comm = self;
	struct tti_current_call *call = &comm->current;
	uint64_t packed, count, split;
	const char *algorithm;
	uint32_t before, after, stage;

	do {
		before = atomic_load_explicit(&call->version, memory_order_acquire);
		out->seq = atomic_load_explicit(&call->seq, memory_order_acquire);
		out->signature = atomic_load_explicit(&call->signature, memory_order_acquire);
		count = atomic_load_explicit(&call->count, memory_order_acquire);
		packed = atomic_load_explicit(&call->packed, memory_order_acquire);
		split = atomic_load_explicit(&call->split, memory_order_acquire);
		stage = atomic_load_explicit(&call->stage, memory_order_acquire);
		algorithm = atomic_load_explicit(&comm->last_algorithm, memory_order_acquire);
		out->running = (int32_t)atomic_load_explicit(&call->running, memory_order_acquire);
		after = atomic_load_explicit(&call->version, memory_order_acquire);
	} while (before != after || before % 2 != 0);
	out->waiting_on = atomic_load_explicit(&comm->engine.waiting_on, memory_order_relaxed);
	/* The root has left, but its children keep the bootstrap up. */
	if (atomic_load(&comm->state) == TTI_COMM_ZOMBIE)
		out->running = TTI_CALL_LEFT;
	out->stage = (int32_t)stage;
	out->name = 0;
	describe_way(algorithm, split, stage, out->way, sizeof(out->way));
	if (before == 0) {
		snprintf(out->text, sizeof(out->text), "nothing yet");
	} else {
		const struct tti_args args = tti_args_unpack(packed, count);

		out->name = tti_signature_make(out->seq, tti_signature_part(&args));
		describe_own(comm, out->seq, &args, out->text, sizeof(out->text));
	}
}

/* -- Asking ------------------------------------------------------------------- */

static void ask(struct tti_comm *comm, int peer)
{
	pthread_mutex_lock(&comm->lock);
	if (comm->stall.suspect != peer) {
		comm->stall.answered = false;
		comm->stall.left = 0;
		comm->stall.left_ns = 0;
		comm->stall.asked_ns = tti_now_ns();
	}
	comm->stall.suspect = peer;
	pthread_mutex_unlock(&comm->lock);
	tti_watch_ask(comm->boot, peer);
}

/* Whether to ask one rank more in this round: ranks may wait for each other in a circle. */
static bool hop(struct tti_comm *comm)
{
	bool further;

	pthread_mutex_lock(&comm->lock);
	further = comm->stall.hops++ < MOST_HOPS;
	pthread_mutex_unlock(&comm->lock);
	return further;
}

/* Whether two ranks have another call of the same number, or run it in another way. The peer may be
 * done with its call: a rank on no side of a handoff has nothing to do. A rank may be at a later
 * stage of a call than a rank that has not seen the last message of the stage before. Batches of
 * transfers (signature 0) are matched by pairs of ranks, not by number. */
static bool is_mismatch(const struct tti_call *own, const struct tti_call *other)
{
	if (own->running <= 0 || own->seq != other->seq || !own->signature || !other->signature)
		return false;
	return own->name != other->name ||
	       (own->stage == other->stage && own->signature != other->signature);
}

/* How two calls of one number differ: by their texts, or by what the texts leave out. */
static void describe_difference(const struct tti_comm *comm, const struct tti_call *own, int peer,
				const struct tti_call *other, char *buf, size_t size)
{
	if (strcmp(own->text, other->text) != 0)
		(void)snprintf(buf, size, "ranks called different things: rank %d %s, rank %d %s",
			       comm->rank, own->text, peer, other->text);
	else if (own->name != other->name)
		(void)snprintf(buf, size,
			       "ranks called different things: call %" PRIu64
			       " of ranks %d and %d is "
			       "%s, but not all that it was passed is the same: that comes to "
			       "%016" PRIx64 " and %016" PRIx64,
			       own->seq, comm->rank, peer, own->text, own->name, other->name);
	else if (strcmp(own->way, other->way) != 0)
		(void)snprintf(buf, size,
			       "ranks run call %" PRIu64
			       ", %s, in different ways: rank %d by %s, rank %d by %s",
			       own->seq, own->text, comm->rank, own->way, peer, other->way);
	else
		(void)snprintf(
			buf, size,
			"ranks run call %" PRIu64
			", %s, in different ways: ranks %d and %d by %s, but what they chose "
			"for other buffers comes to %016" PRIx64 " and %016" PRIx64,
			own->seq, own->text, comm->rank, peer, own->way, own->signature,
			other->signature);
}

static void tell_mismatch(struct tti_comm *comm, const struct tti_call *own, int peer,
			  const struct tti_call *other)
{
	char text[TTI_FAILURE_TEXT];

	describe_difference(comm, own, peer, other, text, sizeof(text));
	tti_comm_notify_failure(comm, TUTTI_EMISMATCH, peer, text);
}

void tti_stall_on_answer(void *self, int peer, const struct tti_call *call)
{
	struct tti_comm *comm = self;
	struct tti_call own;

	if (call && call->running == TTI_CALL_LEFT)
		call = NULL;
	tti_stall_on_ask(comm, &own);
	pthread_mutex_lock(&comm->lock);
	const bool wanted = comm->stall.suspect == peer;

	if (wanted && call && !comm->answer)
		comm->answer = tti_alloc(sizeof(*comm->answer));
	if (wanted && call && comm->answer) {
		*comm->answer = *call;
		comm->stall.answered = true;
	}
	if (wanted && !call && comm->stall.left == 0)
		comm->stall.left = 1;
	pthread_mutex_unlock(&comm->lock);
	if (!wanted || own.running <= 0 || !call)
		return;
	if (is_mismatch(&own, call))
		tell_mismatch(comm, &own, peer, call);
	else if (call->running && call->waiting_on >= 0 && call->waiting_on < comm->n &&
		 call->waiting_on != comm->rank && call->waiting_on != peer && hop(comm))
		ask(comm, call->waiting_on);
}

/* -- From the slow part of a wait ---------------------------------------------- */

/* What is known of the rank that the call waits for. */
static void explain(struct tti_comm *comm, int peer, char *buf, size_t size)
{
	struct tti_stall *stall = &comm->stall;
	const int64_t now = tti_now_ns();

	pthread_mutex_lock(&comm->lock);
	if (stall->suspect < 0 && peer < 0)
		snprintf(buf, size, "a connection to come up or to take what was sent");
	else if (stall->suspect < 0)
		snprintf(buf, size, "rank %d", peer);
	else if (!stall->answered && now - stall->asked_ns > SILENT_NS)
		snprintf(buf, size,
			 "rank %d, which does not answer: stopped, swapped out or cut off",
			 stall->suspect);
	else if (!stall->answered)
		snprintf(buf, size, "rank %d", stall->suspect);
	else if (comm->answer->running)
		snprintf(buf, size, "rank %d, which is in call %" PRIu64 ", %s", stall->suspect,
			 comm->answer->seq, comm->answer->text);
	else if (comm->answer->seq == 0)
		snprintf(buf, size, "rank %d, which has not come: it has made no call yet",
			 stall->suspect);
	else
		snprintf(buf, size,
			 "rank %d, which has not come: its last call was %" PRIu64 ", %s",
			 stall->suspect, comm->answer->seq, comm->answer->text);
	pthread_mutex_unlock(&comm->lock);
}

static void describe(struct tti_comm *comm, int64_t waited_ns, int peer, char *buf, size_t size)
{
	struct tti_call own;
	char why[TTI_CALL_TEXT * 2];

	tti_stall_on_ask(comm, &own);
	explain(comm, peer, why, sizeof(why));
	snprintf(buf, size, "rank %d has waited %.1f s in call %" PRIu64 ", %.80s, for %.120s",
		 comm->rank, (double)waited_ns / 1e9, own.seq, own.text, why);
}

/* The lanes to a peer; NULL: its transport has none. */
static const struct tti_lane_ops *lanes_to(const struct tti_comm *comm, int peer)
{
	const bool is_linked = peer >= 0 && peer < comm->n && comm->engine.links[peer];

	return is_linked ? tti_engine_port(&comm->engine, peer)->transport->lanes : NULL;
}

/* A rank to which no lane works, -1: none. For a wait without a peer: messages to that rank may be
 * what does not get out. */
static int find_cut_off(const struct tti_comm *comm)
{
	for (int peer = 0; peer < comm->n; peer++) {
		const struct tti_lane_ops *lanes = lanes_to(comm, peer);
		const int n = lanes ? lanes->count(comm->engine.links[peer]) : 0;
		int nbad = 0;

		for (int i = 0; i < n; i++) {
			struct tti_lane_info lane;

			lanes->get(comm->engine.links[peer], i, &lane);
			nbad += lane.trouble[0] != 0;
		}
		if (n > 0 && nbad == n)
			return peer;
	}
	return -1;
}

/* Append the lanes to a peer that does not come: "; lanes eth0 to eth0: no answer for 4.7 s". Not
 * if they are all well and the peer answers over the bootstrap: then it is just late. */
static void add_lanes(struct tti_comm *comm, int peer, char *buf, size_t size)
{
	const struct tti_lane_ops *lanes = lanes_to(comm, peer);
	const int n = lanes ? lanes->count(comm->engine.links[peer]) : 0;
	bool odd;
	size_t len = strlen(buf), begin = len;

	pthread_mutex_lock(&comm->lock);
	odd = comm->stall.suspect == peer && !comm->stall.answered;
	pthread_mutex_unlock(&comm->lock);
	for (int i = 0; i < n && len < size; i++) {
		struct tti_lane_info lane;

		lanes->get(comm->engine.links[peer], i, &lane);
		odd |= lane.trouble[0] != 0;
		len += (size_t)snprintf(buf + len, size - len, "%s %s to %s: %s",
					i ? "," : "; lanes",
					lane.local_nic[0] ? lane.local_nic : lane.local_addr,
					lane.remote_nic[0] ? lane.remote_nic : lane.remote_addr,
					lane.trouble[0] ? lane.trouble : "up");
	}
	if (!odd)
		buf[begin] = 0;
}

static bool due(struct tti_comm *comm, int64_t *last_ns, int64_t now, int64_t every_ns)
{
	bool yes;

	pthread_mutex_lock(&comm->lock);
	yes = now - *last_ns >= every_ns;
	if (yes)
		*last_ns = now;
	pthread_mutex_unlock(&comm->lock);
	return yes;
}

/* Messages on a slow or broken wire may come a second after the goodbye. The peer ends its lanes
 * behind the last one, so while a lane is up more may come. */
bool tti_stall_may_still_come(const struct tti_comm *comm, int peer, int64_t left_ns)
{
	const struct tti_lane_ops *lanes = lanes_to(comm, peer);
	const int n = lanes ? lanes->count(comm->engine.links[peer]) : 0;
	struct tti_lane_info lane = { 0 };

	for (int i = 0; i < n && !lane.up; i++)
		lanes->get(comm->engine.links[peer], i, &lane);
	return lane.up && tti_now_ns() - left_ns < COMING_NS;
}

/* Whether the peer that the call waits for has left, with nothing on the way. Messages from before
 * its goodbye may come in just now, so only a look that began after the goodbye was known counts,
 * which is the second one. Where a kernel waits, it has to look: a GPU that processes share may run it
 * later. */
static bool has_left(struct tti_comm *comm, int peer)
{
	struct tti_stall *stall = &comm->stall;
	int64_t left_ns = 0;

	pthread_mutex_lock(&comm->lock);
	if (stall->suspect == peer && stall->left > 0 &&
	    (!comm->device || tti_flight_has_looked(comm->device, peer)) && ++stall->left > 3) {
		if (!stall->left_ns)
			stall->left_ns = tti_now_ns();
		left_ns = stall->left_ns;
	}
	pthread_mutex_unlock(&comm->lock);
	return left_ns && !tti_stall_may_still_come(comm, peer, left_ns);
}

/* The rank to ask in this round: the one that has not answered yet, else the first one. */
static int whom_to_ask(struct tti_comm *comm, int64_t since_ns, int64_t now, int peer)
{
	struct tti_stall *stall = &comm->stall;
	int target = peer;

	pthread_mutex_lock(&comm->lock);
	if (stall->began_ns != since_ns)
		*stall = (struct tti_stall){
			.suspect = -1, .round_ns = now, .warned_ns = since_ns, .began_ns = since_ns
		};
	/* A rank that has left counts only if this call waits for it itself. */
	else if (stall->suspect >= 0 && !stall->answered && stall->left == 0)
		target = stall->suspect;
	stall->hops = 0;
	pthread_mutex_unlock(&comm->lock);
	return target;
}

/* A call ends within its timeout, so a wait ends at the last look before that, with time to notify
 * the others. */
static int64_t most_to_wait(int64_t timeout_ms)
{
	const int64_t timeout = timeout_ms * TTI_NS_PER_MS;

	return timeout - (timeout / 20 < EARLY_NS ? timeout / 20 : EARLY_NS);
}

tutti_status tti_stall_on_wait(void *self, int64_t since_ns, int peer)
{
	struct tti_comm *comm = self;
	struct tti_stall *stall = &comm->stall;
	const int64_t now = tti_now_ns();
	const int64_t waited = now - since_ns;
	const int64_t stall_ns = tti_params()->stall_ms * TTI_NS_PER_MS;
	const struct tti_timeout timeout = tti_timeout_of_call(comm);
	char text[TTI_FAILURE_TEXT];
	bool is_over;
	size_t len;

	if (tti_comm_interrupted(comm))
		return TUTTI_EABORTED;
	if (waited >= ASK_AFTER_NS && peer >= 0 && peer != comm->rank &&
	    due(comm, &stall->round_ns, now, ASK_AGAIN_NS))
		ask(comm, whom_to_ask(comm, since_ns, now, peer));
	if (has_left(comm, peer)) {
		char name[TTI_BOOT_NAME];
		struct tti_call own;

		tti_stall_on_ask(comm, &own);
		snprintf(text, sizeof(text), "%s left while rank %d waits for it in %s",
			 tti_boot_name(comm->boot, peer, name), comm->rank, own.text);
		tti_comm_notify_failure(comm, TUTTI_EPEER, peer, text);
		return TUTTI_EPEER;
	}
	is_over = timeout.ms > 0 && waited >= most_to_wait(timeout.ms);
	if (!is_over && (waited < stall_ns || !due(comm, &stall->warned_ns, now, stall_ns)))
		return TUTTI_OK;
	if (peer < 0)
		peer = find_cut_off(comm);
	describe(comm, waited, peer, text, sizeof(text));
	len = strlen(text);
	if (is_over)
		(void)snprintf(text + len, sizeof(text) - len, "; the limit is %lld ms (%s)",
			       (long long)timeout.ms, timeout.source);
	add_lanes(comm, peer, text, sizeof(text));
	if (is_over) {
		tti_comm_notify_failure(comm, TUTTI_ETIMEOUT, peer, text);
		return TUTTI_ETIMEOUT;
	}
	tti_log(TTI_LOG_WARN, TTI_CORE, "%s", text);
	return TUTTI_OK;
}

/* -- News ------------------------------------------------------------------------ */

void tti_stall_on_lost(void *self, const struct tti_failure *failure)
{
	struct tti_comm *comm = self;

	if (failure->origin != comm->rank)
		tti_log(TTI_LOG_WARN, TTI_CORE, "%s (noticed by rank %d)", failure->text,
			failure->origin);
	tti_comm_mark_failed(comm, (tutti_status)failure->status, failure->text);
}

static bool is_lost(const struct tti_comm *comm, const struct tti_comm *user)
{
	return atomic_load(&comm->async_error) != 0 ||
	       (user && atomic_load(&user->async_error) != 0);
}

static bool wait_for_news(const struct tti_comm *comm, const struct tti_comm *user, int64_t wait_ns)
{
	const int64_t deadline = tti_now_ns() + wait_ns;
	const struct timespec nap = { .tv_nsec = 500 * 1000 };

	while (!is_lost(comm, user) && tti_now_ns() < deadline)
		nanosleep(&nap, NULL);
	return is_lost(comm, user);
}

bool tti_stall_await_news(const struct tti_comm *comm, const struct tti_comm *user)
{
	return wait_for_news(comm, user, NEWS_NS);
}

tutti_status tti_stall_mismatch(struct tti_comm *comm, int peer, const char *expected)
{
	const int64_t deadline = tti_now_ns() + EXPLAIN_NS;
	char text[TTI_FAILURE_TEXT];
	struct tti_call own;

	/* on_answer may find the mismatch. If the peer is past this call already it answers with a
	 * later one: do not ask the rank that it waits for there. */
	pthread_mutex_lock(&comm->lock);
	comm->stall.hops = MOST_HOPS;
	pthread_mutex_unlock(&comm->lock);
	while (tti_now_ns() < deadline) {
		ask(comm, peer);
		if (wait_for_news(comm, NULL, EXPLAIN_NS / 10))
			return tti_comm_async_error(comm);
	}
	tti_stall_on_ask(comm, &own);
	pthread_mutex_lock(&comm->lock);
	const bool known = comm->stall.answered && comm->stall.suspect == peer;
	const struct tti_call other = known ? *comm->answer : own;

	pthread_mutex_unlock(&comm->lock);
	if (!expected &&
	    tti_roots_explain(comm, peer, comm->roots.unexpected_tag, text, sizeof(text))) {
		tti_comm_notify_failure(comm, TUTTI_EMISMATCH, peer, text);
		return tti_comm_async_error(comm);
	}
	if (expected && known && other.seq >= own.seq)
		snprintf(text, sizeof(text),
			 "counts do not fit together in call %" PRIu64 ", %.72s: %s", own.seq,
			 own.text, expected);
	else if (known && other.seq == own.seq && own.signature && other.signature &&
		 other.signature != own.signature)
		describe_difference(comm, &own, peer, &other, text, sizeof(text));
	else if (known && other.seq == own.seq && other.signature == own.signature &&
		 strcmp(other.text, own.text) == 0)
		snprintf(text, sizeof(text),
			 "ranks called different things: call %" PRIu64
			 " of ranks %d and %d is %.72s, but between them is what an earlier call "
			 "left: its root or counts differed",
			 own.seq, comm->rank, peer, own.text);
	else if (known)
		snprintf(text, sizeof(text),
			 "ranks called different things: rank %d call %" PRIu64
			 ", %.72s, but rank %d is at call %" PRIu64 ", %.72s",
			 comm->rank, own.seq, own.text, peer, other.seq, other.text);
	else
		snprintf(text, sizeof(text),
			 "ranks called different things: rank %d %s, rank %d something else",
			 comm->rank, own.text, peer);
	tti_comm_notify_failure(comm, TUTTI_EMISMATCH, peer, text);
	return tti_comm_async_error(comm);
}

void tti_stall_name_failure(const struct tti_comm *comm, int peer, const char *failure, char *buf,
			    size_t size)
{
	char number[32], name[TTI_BOOT_NAME];

	(void)snprintf(number, sizeof(number), "rank %d ", peer);
	if (peer >= 0 && strncmp(failure, number, strlen(number)) == 0)
		(void)snprintf(buf, size, "%s %s", tti_boot_name(comm->boot, peer, name),
			       failure + strlen(number));
	else
		(void)snprintf(buf, size, "%s", failure);
}

tutti_status tti_stall_port_failed(struct tti_comm *comm, struct tti_comm *user,
				   tutti_status status)
{
	const struct tti_port *port = NULL;
	char text[TTI_FAILURE_TEXT];

	if (tti_stall_await_news(comm, user)) {
		const tutti_status own = tti_comm_async_error(comm);

		return own == TUTTI_OK && user ? (tutti_status)atomic_load(&user->async_error)
					       : own;
	}
	for (int i = 0; i < comm->nports && !port; i++)
		if (comm->ports[i]->failure != TUTTI_OK)
			port = comm->ports[i];
	if (port)
		tti_stall_name_failure(comm, port->failed_peer, port->failure_text, text,
				       sizeof(text));
	else
		snprintf(text, sizeof(text), "rank %d failed: %s", comm->rank, tti_error_text());
	/* A call that ended in the middle leaves the ranks out of step. */
	if (port && port->failure <= TUTTI_STATUS_LOST)
		status = port->failure;
	else if (status > TUTTI_STATUS_LOST)
		status = TUTTI_EPEER;
	tti_comm_notify_failure(comm, status, port ? port->failed_peer : -1, text);
	return tti_comm_async_error(comm);
}

/* The ranks may be out of step now, so all are notified. */
tutti_status tti_stall_settle(struct tti_comm *comm, tutti_status status, int mismatch_peer)
{
	if (status == TUTTI_OK)
		return TUTTI_OK;
	if (atomic_load(&comm->async_error) != 0)
		return tti_comm_async_error(comm);
	if (status == TUTTI_EMISMATCH && mismatch_peer >= 0)
		return tti_stall_mismatch(comm, mismatch_peer, NULL);
	return tti_stall_port_failed(comm, NULL, status);
}
