/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch/callers.h"

#include <stdio.h>
#include <string.h>

#include "boot/family/sub.h"
#include "boot/net/wire.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/vec.h"

/* Before the first question; between two questions; how long a rank counts as waiting for a peer. */
#define PATIENCE_NS (100 * TTI_NS_PER_MS)
#define ROUND_NS    (200 * TTI_NS_PER_MS)
#define FRESH_NS    (1000 * TTI_NS_PER_MS)

struct question {
	uint64_t context, list;
	int32_t tag;
};

struct conflict {
	uint64_t context; /* of the call that cannot end */
	char text[TTI_CALLERS_TEXT];
};

_Static_assert(sizeof(struct tti_caller_answer) <= TTI_MAIL_DATA, "answers fit into a mail");
_Static_assert(sizeof(struct conflict) <= TTI_MAIL_DATA, "conflicts fit into a mail");

/* How often this rank has called with these ranks and this tag. Kept for good: calls with different tags
 * come in any order, which differs between ranks, so each needs a count that no rank forgets. */
struct count {
	uint64_t key, n;
};

struct tti_callers {
	struct tti_mailbox mailbox;
	struct tti_boot *parent, *carrier;
	pthread_mutex_t lock; /* of what follows; nothing is mailed while it is held */
	struct tti_group_call *calls;
	TTI_VEC(struct count) counts;
};

static struct tti_callers *callers_of(struct tti_mailbox *mailbox)
{
	return (struct tti_callers *)((char *)mailbox - offsetof(struct tti_callers, mailbox));
}

static void mail(struct tti_callers *callers, int peer, enum tti_mail_kind kind, const void *data,
		 size_t nbytes)
{
	struct tti_mail letter = { .context = callers->mailbox.context, .kind = kind };

	if (tti_dispatcher_send(callers->carrier, tti_boot_carrier_rank(callers->parent, peer),
				&letter, data, nbytes) != TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "no mail to rank %d: %s", peer, tti_error_text());
}

/* "0, 3, 1", in the order of the call. */
static const char *list_ranks(const struct tti_group_call *call, char *buf, size_t size)
{
	size_t len = 0;

	*buf = '\0';
	for (int i = 0; i < call->n && len < size - 40; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%d", i ? ", " : "",
					call->ranks[i]);
	if (len >= size - 40)
		(void)snprintf(buf + len, size - len, ", ... (%d ranks)", call->n);
	return buf;
}

/* -- What comes ------------------------------------------------------------------------ */

static bool has_rank(const struct tti_group_call *call, int rank)
{
	for (int i = 0; i < call->n; i++)
		if (call->ranks[i] == rank)
			return true;
	return false;
}

/* The lock is held. */
static struct tti_group_call *find_call(const struct tti_callers *callers, uint64_t context)
{
	struct tti_group_call *call = callers->calls;

	while (call && call->context != context)
		call = call->next;
	return call;
}

/* The call that this rank is in instead of the one in question: with the same tag, else of the same ranks.
 * The lock is held. */
static const struct tti_group_call *find_other(const struct tti_callers *callers,
					       const struct question *question)
{
	const struct tti_group_call *other = NULL;

	for (const struct tti_group_call *call = callers->calls; call; call = call->next) {
		if (call->tag == question->tag)
			return call;
		if (call->list == question->list)
			other = call;
	}
	return other;
}

static void take_question(struct tti_callers *callers, int from, const struct question *question)
{
	struct tti_caller_answer answer = { .context = question->context, .waits_on = -1 };
	const bool was_here =
		tti_dispatcher_knows(&callers->carrier->dispatcher, question->context);
	const struct tti_group_call *call;

	pthread_mutex_lock(&callers->lock);
	call = find_call(callers, question->context);
	answer.has_it = call || was_here;
	if (call && tti_now_ns() - call->waits_ns < FRESH_NS)
		answer.waits_on = call->waits_on;
	if (!answer.has_it && (call = find_other(callers, question))) {
		answer.other = call->context;
		answer.tag = call->tag;
		answer.excludes = !has_rank(call, from);
		(void)list_ranks(call, answer.ranks, sizeof(answer.ranks));
	}
	pthread_mutex_unlock(&callers->lock);
	mail(callers, from, TTI_MAIL_THERE, &answer, sizeof(answer));
}

static void take_answer(struct tti_callers *callers, int from, struct tti_caller_answer *answer)
{
	struct tti_group_call *call;

	if (answer->waits_on < -1 || answer->waits_on >= callers->parent->nranks)
		return;
	tti_wire_clean(answer->ranks, sizeof(answer->ranks));
	pthread_mutex_lock(&callers->lock);
	call = find_call(callers, answer->context);
	if (call && call->suspect == from) {
		call->answer = *answer;
		call->is_answered = true;
	}
	pthread_mutex_unlock(&callers->lock);
}

static void take_conflict(struct tti_callers *callers, struct conflict *conflict)
{
	struct tti_group_call *call;

	tti_wire_clean(conflict->text, sizeof(conflict->text));
	pthread_mutex_lock(&callers->lock);
	call = find_call(callers, conflict->context);
	if (call && !call->is_broken) {
		memcpy(call->broken, conflict->text, sizeof(call->broken));
		call->is_broken = true;
	}
	pthread_mutex_unlock(&callers->lock);
}

static void take(struct tti_mailbox *mailbox, int from, const struct tti_mail *letter,
		 size_t nbytes)
{
	struct tti_callers *callers = callers_of(mailbox);
	const int rank = tti_boot_find_rank(callers->parent, from);
	union {
		struct question question;
		struct tti_caller_answer answer;
		struct conflict conflict;
	} data;

	if (rank < 0 || nbytes > sizeof(data))
		return;
	memcpy(&data, letter->data, nbytes);
	if (letter->kind == TTI_MAIL_WHERE && nbytes == sizeof(data.question))
		take_question(callers, rank, &data.question);
	else if (letter->kind == TTI_MAIL_THERE && nbytes == sizeof(data.answer))
		take_answer(callers, rank, &data.answer);
	else if (letter->kind == TTI_MAIL_CLASH && nbytes == sizeof(data.conflict))
		take_conflict(callers, &data.conflict);
}

/* -- Opening and closing ---------------------------------------------------------------- */

tutti_status tti_callers_create(struct tti_boot *parent, uint64_t context, struct tti_callers **out)
{
	struct tti_callers *callers = tti_zalloc(sizeof(*callers));

	if (!callers)
		return tti_fail(TUTTI_ENOMEM, "calls of some ranks: out of memory");
	callers->mailbox = (struct tti_mailbox){ .context = context, .take = take };
	callers->parent = parent;
	callers->carrier = tti_boot_carrier(parent);
	pthread_mutex_init(&callers->lock, NULL);
	tti_dispatcher_open(&callers->carrier->dispatcher, &callers->mailbox);
	*out = callers;
	return TUTTI_OK;
}

void tti_callers_free(struct tti_callers *callers)
{
	if (!callers)
		return;
	tti_dispatcher_close(&callers->carrier->dispatcher, &callers->mailbox);
	tti_vec_release(&callers->counts);
	pthread_mutex_destroy(&callers->lock);
	tti_free(callers);
}

/* -- A call ------------------------------------------------------------------------------- */

/* How many calls of this kind there were before. The lock is held; NULL: out of memory. */
static struct count *find_count(struct tti_callers *callers, uint64_t key)
{
	for (size_t i = 0; i < callers->counts.n; i++)
		if (callers->counts.at[i].key == key)
			return &callers->counts.at[i];
	if (!tti_vec_push(&callers->counts, ((struct count){ .key = key })))
		return NULL;
	return &callers->counts.at[callers->counts.n - 1];
}

/* The lock is held. */
static tutti_status check_tag(const struct tti_callers *callers, int tag)
{
	for (const struct tti_group_call *other = callers->calls; other; other = other->next)
		if (other->tag == tag)
			return tti_fail(
				TUTTI_EUSAGE,
				"another thread makes a communicator of some ranks of this "
				"one with tag %d: give each of those calls a tag of its own",
				tag);
	return TUTTI_OK;
}

/* The lock is held. */
static tutti_status count(struct tti_callers *callers, struct tti_group_call *call)
{
	uint64_t key = tti_hash_combine(callers->mailbox.context, (uint64_t)call->tag);
	struct count *count;

	TTI_TRY(check_tag(callers, call->tag));
	call->list = (uint64_t)call->n;
	for (int i = 0; i < call->n; i++)
		call->list = tti_hash_combine(call->list, (uint64_t)call->ranks[i]);
	key = tti_hash_combine(key, call->list);
	count = find_count(callers, key);
	if (!count)
		return tti_fail(TUTTI_ENOMEM, "calls of some ranks: out of memory");
	call->context = tti_hash_combine(key, ++count->n);
	return TUTTI_OK;
}

tutti_status tti_callers_enter(struct tti_callers *callers, struct tti_group_call *call)
{
	tutti_status st;

	call->began_ns = tti_now_ns();
	call->waits_ns = call->asked_ns = INT64_MIN / 2;
	call->waits_on = call->suspect = call->blamed = -1;
	pthread_mutex_lock(&callers->lock);
	st = count(callers, call);
	if (st == TUTTI_OK) {
		call->next = callers->calls;
		callers->calls = call;
	}
	pthread_mutex_unlock(&callers->lock);
	return st;
}

static struct tti_group_call **link_of(struct tti_callers *callers,
				       const struct tti_group_call *call)
{
	struct tti_group_call **link = &callers->calls;

	while (*link != call)
		link = &(*link)->next;
	return link;
}

void tti_callers_move(struct tti_callers *callers, const struct tti_group_call *from,
		      const int *ranks, struct tti_group_call *to)
{
	pthread_mutex_lock(&callers->lock);
	*to = *from;
	to->ranks = ranks;
	*link_of(callers, from) = to;
	pthread_mutex_unlock(&callers->lock);
}

void tti_callers_leave(struct tti_callers *callers, struct tti_group_call *call)
{
	pthread_mutex_lock(&callers->lock);
	*link_of(callers, call) = call->next;
	pthread_mutex_unlock(&callers->lock);
}

/* -- Waiting in it -------------------------------------------------------------------------- */

static const char *name_of(const struct tti_callers *callers, int rank, char buf[TTI_BOOT_NAME])
{
	return tti_boot_name(callers->parent, rank, buf);
}

/* The answer is of a rank in another call with the same tag, which has this rank too. This rank was never
 * in that call, so both would wait for ever. Tell the other rank. */
static tutti_status clash(struct tti_callers *callers, struct tti_group_call *call, int peer,
			  const struct tti_caller_answer *answer)
{
	struct conflict conflict = { .context = answer->other };
	char own[160], name[2][TTI_BOOT_NAME];

	(void)list_ranks(call, own, sizeof(own));
	(void)snprintf(conflict.text, sizeof(conflict.text),
		       "tutti_comm_create_group() with tag %d: %s passes ranks %s; %s passes ranks "
		       "%s: all members pass the same, in the same order",
		       call->tag, name_of(callers, callers->parent->rank, name[0]), own,
		       name_of(callers, peer, name[1]), answer->ranks);
	mail(callers, peer, TTI_MAIL_CLASH, &conflict, sizeof(conflict));
	return tti_fail_quiet(TUTTI_EMISMATCH, "%s", conflict.text);
}

static tutti_status fail_late(const struct tti_callers *callers, const struct tti_group_call *call,
			      int peer, int64_t timeout_ms)
{
	const struct tti_caller_answer *excuse = &call->excuse;
	char own[160], name[TTI_BOOT_NAME], tag[64] = "";

	(void)list_ranks(call, own, sizeof(own));
	if (call->blamed < 0 && call->is_answered)
		return tti_fail_quiet(TUTTI_ETIMEOUT,
				      "tutti_comm_create_group() of ranks %s with tag %d: %s "
				      "called it, but did not go on within %lld ms",
				      own, call->tag, name_of(callers, call->suspect, name),
				      (long long)timeout_ms);
	if (call->blamed >= 0 && excuse->other && excuse->tag != call->tag)
		(void)snprintf(tag, sizeof(tag), "; it is in one of these ranks with tag %d",
			       excuse->tag);
	return tti_fail_quiet(
		TUTTI_ETIMEOUT,
		"tutti_comm_create_group() of ranks %s with tag %d: %s has not called "
		"it within %lld ms%s",
		own, call->tag, name_of(callers, call->blamed >= 0 ? call->blamed : peer, name),
		(long long)timeout_ms, tag);
}

/* Note which rank has not called. The lock is held. */
static void blame(struct tti_group_call *call)
{
	if (call->is_answered && call->answer.has_it) {
		if (call->blamed == call->suspect)
			call->blamed = -1;
	} else if (call->is_answered) {
		call->blamed = call->suspect;
		call->excuse = call->answer;
	} else if (call->suspect >= 0 && call->blamed != call->suspect) {
		call->blamed = call->suspect;
		call->excuse = (struct tti_caller_answer){ 0 };
	}
}

/* The rank to ask now, -1: none. The lock is held. */
static int next_suspect(struct tti_group_call *call, int own, int peer)
{
	const struct tti_caller_answer *answer = call->is_answered ? &call->answer : NULL;
	const bool goes_on = answer && answer->has_it && answer->waits_on >= 0 &&
			     answer->waits_on != own && answer->waits_on != call->suspect;
	const int64_t now_ns = tti_now_ns();

	if (now_ns - call->began_ns < PATIENCE_NS ||
	    (!goes_on && now_ns - call->asked_ns < ROUND_NS))
		return -1;
	blame(call);
	if (goes_on)
		call->suspect = answer->waits_on;
	else if (!answer || answer->has_it)
		call->suspect = peer;
	call->is_answered = false;
	call->asked_ns = now_ns;
	return call->suspect;
}

tutti_status tti_callers_wait(struct tti_callers *callers, struct tti_group_call *call, int peer,
			      bool is_late, int64_t timeout_ms)
{
	const struct question question = { call->context, call->list, call->tag };
	struct tti_group_call seen;
	int ask = -1;

	pthread_mutex_lock(&callers->lock);
	call->waits_on = peer;
	call->waits_ns = tti_now_ns();
	if (is_late && call->is_answered)
		blame(call);
	seen = *call;
	if (!is_late)
		ask = next_suspect(call, callers->parent->rank, peer);
	pthread_mutex_unlock(&callers->lock);
	if (seen.is_broken)
		return tti_fail_quiet(TUTTI_EMISMATCH, "%s", seen.broken);
	if (seen.is_answered && seen.answer.other && seen.answer.tag == call->tag &&
	    !seen.answer.excludes &&
	    !tti_dispatcher_knows(&callers->carrier->dispatcher, seen.answer.other))
		return clash(callers, call, seen.suspect, &seen.answer);
	if (is_late)
		return fail_late(callers, &seen, peer, timeout_ms);
	if (ask >= 0)
		mail(callers, ask, TTI_MAIL_WHERE, &question, sizeof(question));
	return TUTTI_AGAIN;
}
