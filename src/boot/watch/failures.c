/* SPDX-License-Identifier: BSD-3-Clause */
/* The failures that this rank knows, in the order in which it learned them: the one that ended the
 * communicator, then ranks that died since. Every connection of the ring brings its peer all of them: a
 * new connection from the beginning, one without room as soon as it has some. So no failure is lost,
 * and frames that follow one are sent after it. */

#include "boot/watch/conn.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

void tti_failures_report(struct tti_watcher *watcher)
{
	if (!watcher->watching || watcher->reported || !watcher->lost || watcher->quitting)
		return;
	watcher->reported = true;
	if (watcher->events.on_lost)
		watcher->events.on_lost(watcher->events.self, &watcher->first.failure);
}

/* The dispatcher does not tell: it may know a death by mail that the ring knows nothing about. */
static bool is_new_death(const struct tti_watcher *watcher, const struct tti_failure *failure)
{
	const struct tti_failure_node *at = watcher->lost ? &watcher->first : NULL;

	if (!failure->died || failure->failed_rank < 0 ||
	    failure->failed_rank == watcher->sock->base.rank)
		return false;
	while (at && !(at->failure.died && at->failure.failed_rank == failure->failed_rank))
		at = at->next;
	return !at;
}

/* The peer of `from` knows this one. If it knows all the others too, nothing is due there. */
static void add(struct tti_watcher *watcher, const struct tti_failure *failure,
		struct tti_conn *from)
{
	struct tti_failure_node *heard =
		watcher->lost ? tti_zalloc(sizeof(*heard)) : &watcher->first;
	const bool has_others = from && !tti_conn_next_failure(from);

	if (!heard) {
		tti_log(TTI_LOG_WARN, TTI_BOOT, "no memory to tell other ranks: %s", failure->text);
		return;
	}
	heard->failure = *failure;
	if (watcher->lost)
		watcher->last->next = heard;
	watcher->last = heard;
	watcher->lost = true;
	if (has_others)
		from->last_failure = heard;
	for (struct tti_conn *conn = watcher->conns; conn; conn = conn->next)
		if (tti_conn_owes_failure(conn))
			tti_conn_flush(conn);
}

/* The first failure ends the communicator. Later ones matter to its subcommunicators, if they are deaths. */
void tti_failures_learn(struct tti_watcher *watcher, const struct tti_failure *failure,
			struct tti_conn *from)
{
	const bool is_death = is_new_death(watcher, failure);
	char name[TTI_BOOT_NAME];

	if (!watcher->lost || is_death)
		add(watcher, failure, from);
	tti_failures_report(watcher);
	if (is_death)
		tti_conn_mark_failed(
			watcher, failure->failed_rank, TTI_DOWN_DIED, true,
			tti_failure_why(failure,
					tti_sock_name(watcher->sock, failure->failed_rank, name)));
}

/* A subcommunicator may have ended by that death, and this rank may leave before the ring has found it:
 * then the neighbours would wait for a rank that has left. */
void tti_failures_tell_dead(struct tti_watcher *watcher)
{
	const int first_dead = tti_dispatcher_first_dead(&watcher->sock->base.dispatcher);
	struct tti_failure failure;
	char name[TTI_BOOT_NAME];

	if (first_dead < 0 || tti_bit_has(watcher->left, (size_t)first_dead))
		return;
	failure = tti_failure_make(TUTTI_EPEER, first_dead, watcher->sock->base.rank,
				   "%s closed its connection without goodbye: it died",
				   tti_sock_name(watcher->sock, first_dead, name));
	failure.died = true;
	tti_failures_learn(watcher, &failure, NULL);
}

void tti_failures_release(struct tti_watcher *watcher)
{
	struct tti_failure_node *heard;

	while ((heard = watcher->first.next)) {
		watcher->first.next = heard->next;
		tti_free(heard);
	}
}
