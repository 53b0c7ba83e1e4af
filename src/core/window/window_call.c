/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "boot/watch/watch.h"
#include "core/call/stream.h"
#include "core/call/timeout.h"
#include "core/comm_error.h"
#include "core/device/bounce.h"
#include "core/handle.h"
#include "core/stall.h"
#include "core/window/window.h"
#include "core/window/window_net.h"
#include "core/window/window_signals.h"
#include "core/window/window_wait.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/mem.h"
#include "util/thread.h"
#include "util/tsan.h"

/* -- In place --------------------------------------------------------------------- */

static tutti_status wait_signal(struct tutti_window *window, const struct tutti_signal_wait *asked)
{
	const size_t at = tti_signals_at(window->nsignals, asked->peer, asked->index);
	struct tti_window_signal *signal = &window->signals->from[at];
	_Atomic uint64_t *const taken = &window->taken[at];
	struct tti_window_wait wait = { 0 };
	tutti_status st = TUTTI_OK;
	uint64_t count = asked->count;

	while (count > 0 && st == TUTTI_OK) {
		uint64_t word = atomic_load_explicit(&signal->word, memory_order_acquire);
		uint64_t come = (word - *taken) & TTI_SIGNALS_MOST;

		if (come > 0) {
			come = come < count ? come : count;
			*taken += come;
			count -= come;
			continue;
		}
		st = tti_window_backoff(window, &wait, asked->peer, "a signal on a window");
		if (st != TUTTI_OK || !wait.nap_ns)
			continue;
		atomic_fetch_add(&signal->waiters, 1);
		if (atomic_load(&signal->word) == word)
			tti_futex_wait(tti_signal_doorbell(signal), (uint32_t)word,
				       TTI_WINDOW_NAP_NS);
		atomic_fetch_sub(&signal->waiters, 1);
	}
	if (st == TUTTI_OK)
		tti_tsan_take((uint32_t)asked->peer, (uint32_t)window->comm->rank);
	return st;
}

/* -- The calls ------------------------------------------------------------------- */

enum kind { PUT, GET, SIGNAL, WAIT_SIGNAL, FLUSH };

struct work {
	enum kind kind;
	tutti_window_t window;
	int peer, index; /* index: of the signal */
	size_t offset, nbytes;
	void *memory;
	const struct tutti_signal_wait *waits; /* of WAIT_SIGNAL, in place of `peer` */
	int nwaits;
};

static const char *const names[] = { "tutti_put", "tutti_get", "tutti_signal", "tutti_wait_signal",
				     "tutti_window_flush" };

/* Whether a peer that is reached in place still has its window. A peer whose communicator was lost
 * takes its window away alone, and the memory may be gone or reused. */
static tutti_status look_at_window(const struct work *work)
{
	const struct tti_window_peer *peer = &work->window->peers[work->peer];
	struct tti_comm *comm = work->window->comm;
	char text[TTI_FAILURE_TEXT];

	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&peer->signals->open, memory_order_relaxed) == peer->key)
		return TUTTI_OK;
	if (!tti_stall_await_news(comm, NULL)) {
		(void)snprintf(text, sizeof(text),
			       "rank %d has ended its window, which rank %d uses by %s()",
			       work->peer, comm->rank, names[work->kind]);
		tti_comm_notify_failure(comm, TUTTI_EPEER, work->peer, text);
	}
	return tti_comm_async_error(comm);
}

static tutti_status move_by_net(const struct work *work)
{
	struct tutti_window *window = work->window;
	const bool puts = work->kind == PUT;
	struct tti_bounce memory;
	tutti_status st;

	TTI_TRY(tti_bounce_open(window->comm, work->memory, work->nbytes, puts, &memory));
	st = puts ? tti_window_net_put(window, work->peer, work->offset, memory.host, work->nbytes)
		  : tti_window_net_get(window, work->peer, work->offset, memory.host, work->nbytes);
	if (st == TUTTI_OK && !puts)
		st = tti_bounce_store(&memory, work->nbytes);
	tti_bounce_close(&memory);
	return st;
}

static tutti_status move(const struct work *work)
{
	struct tutti_window *window = work->window;
	const struct tti_window_peer *peer = &window->peers[work->peer];
	const bool puts = work->kind == PUT;
	void *const there = peer->data + work->offset;
	void *const to = puts ? there : work->memory;
	const void *const from = puts ? work->memory : there;
	bool is_of_device;

	if (!work->nbytes)
		return TUTTI_OK;
	TTI_TRY(tti_is_of_device(window->comm, work->memory, &is_of_device));
	TTI_TRY(look_at_window(work));
	/* Stored through the caches: the rank that is signalled reads it next. */
	if (is_of_device || peer->is_of_device)
		TTI_TRY(tti_window_copy(window, to, from, work->nbytes));
	else
		memmove(to, from, work->nbytes);
	return look_at_window(work);
}

static tutti_status send_signal(const struct work *work)
{
	struct tutti_window *window = work->window;
	const struct tti_window_peer *peer = &window->peers[work->peer];
	const int rank = window->comm->rank;

	if (!peer->signals)
		return tti_window_net_signal(window, work->peer, work->index);
	TTI_TRY(look_at_window(work));
	tti_tsan_give((uint32_t)rank, (uint32_t)work->peer);
	return tti_signals_count(peer->signals, tti_signals_at(window->nsignals, rank, work->index),
				 peer->key)
		       ? TUTTI_OK
		       : look_at_window(work);
}

/* One after the other, as all have to come. */
static tutti_status wait_signals(const struct work *work)
{
	for (int at = 0; at < work->nwaits; at++)
		TTI_TRY(wait_signal(work->window, &work->waits[at]));
	return TUTTI_OK;
}

static tutti_status run(const struct work *work)
{
	struct tutti_window *window = work->window;
	struct tti_comm *comm = window->comm;

	if (atomic_load_explicit(&comm->async_error, memory_order_relaxed))
		return tti_comm_async_error(comm);
	switch (work->kind) {
	case PUT:
	case GET:
		return window->peers[work->peer].signals ? move(work) : move_by_net(work);
	case SIGNAL:
		return send_signal(work);
	case WAIT_SIGNAL:
		return wait_signals(work);
	case FLUSH:
		atomic_thread_fence(memory_order_seq_cst);
		return window->net ? tti_window_net_flush(window, work->peer) : TUTTI_OK;
	}
	return TUTTI_EINTERNAL;
}

static tutti_status check_peer(const struct work *work, const struct tti_comm *comm, int peer)
{
	if (peer < comm->n && (peer >= 0 || (work->kind == FLUSH && peer == -1)))
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL, "%s(): there is no rank %d: 0 to %d", names[work->kind], peer,
			comm->n - 1);
}

static tutti_status check_index(const struct work *work, int index)
{
	if (index >= 0 && index < work->window->nsignals)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL,
			"%s(): there is no signal %d: the window was made with %d (signals of "
			"tutti_window_config)",
			names[work->kind], index, work->window->nsignals);
}

static tutti_status check_waits(const struct work *work, const struct tti_comm *comm)
{
	if (work->nwaits < 0 || (work->nwaits > 0 && !work->waits))
		return tti_fail(
			TUTTI_EINVAL,
			"%s(): nwaits is %d and waits is %p: pass as many waits as the list has",
			names[work->kind], work->nwaits, (const void *)work->waits);
	for (int at = 0; at < work->nwaits; at++) {
		TTI_TRY(check_peer(work, comm, work->waits[at].peer));
		TTI_TRY(check_index(work, work->waits[at].index));
		if (work->waits[at].count > INT64_MAX)
			return tti_fail(
				TUTTI_EINVAL, "%s(): %llu signals are more than a rank can send",
				names[work->kind], (unsigned long long)work->waits[at].count);
	}
	return TUTTI_OK;
}

static tutti_status check(const struct work *work, const struct tti_comm *comm)
{
	const bool moves = work->kind == PUT || work->kind == GET;
	uint64_t has;

	if (work->kind == WAIT_SIGNAL)
		return check_waits(work, comm);
	TTI_TRY(check_peer(work, comm, work->peer));
	TTI_TRY(check_index(work, work->index));
	has = work->peer >= 0 ? work->window->peers[work->peer].nbytes : 0;
	if (moves && (work->offset > has || work->nbytes > has - work->offset))
		return tti_fail(TUTTI_EINVAL,
				"%s(): %zu bytes at %zu are not in the window of rank %d, which "
				"has %llu",
				names[work->kind], work->nbytes, work->offset, work->peer,
				(unsigned long long)has);
	if (moves && work->nbytes && !work->memory)
		return tti_fail(TUTTI_EINVAL,
				"%s(): %zu bytes at NULL: pass the address of the data",
				names[work->kind], work->nbytes);
	return TUTTI_OK;
}

static tutti_status enter(struct tutti_window *window, struct tti_comm **comm)
{
	*comm = tti_window_find(window);
	if (*comm)
		return TUTTI_OK;
	return tti_fail(TUTTI_EUSAGE, "the communicator of window %p was destroyed",
			(void *)window);
}

/* With the communicator held, so that nobody frees it meanwhile. */
static tutti_status enter_and_run(const struct work *work, bool checked)
{
	tutti_window_t window = work->window;
	struct tti_comm *comm;
	tutti_status st;

	TTI_TRY(enter(window, &comm));
	st = checked ? TUTTI_OK : check(work, comm);
	if (st == TUTTI_OK)
		st = run(work);
	/* Signals behind it in the stream go out all the same: nobody may take them for news of it. */
	if (checked)
		st = tti_stall_settle(comm, st, -1);
	return tti_handle_end(window->handle, comm, st);
}

struct queued {
	struct tti_stream_item item;
	struct work work;
	struct tutti_signal_wait waits[];
};

/* A queued call touches nothing of the window after this: it may be freed. */
static void count_queued(struct tutti_window *window, bool more)
{
	pthread_mutex_lock(&window->lock);
	if (more)
		window->queued++;
	else if (--window->queued == 0)
		pthread_cond_broadcast(&window->ran);
	pthread_mutex_unlock(&window->lock);
}

static tutti_status run_queued(struct tti_stream_item *item)
{
	struct queued *const queued = (struct queued *)item;
	struct work *const work = &queued->work;
	struct tti_comm *const comm = tti_window_find(work->window);
	tutti_status st;

	if (comm) {
		tti_stream_item_check(item, comm);
		tti_handle_leave(work->window->handle);
	}
	st = enter_and_run(work, true);
	count_queued(work->window, false);
	tti_free(queued);
	return st;
}

static tutti_status submit(const struct work *work, tutti_stream_t stream)
{
	struct tti_comm *comm;
	struct queued *copy;
	size_t nwaits;
	tutti_status st;

	if (!work->window)
		return tti_fail(TUTTI_EINVAL, "%s(): the window is NULL", names[work->kind]);
	TTI_TRY(tti_fork_check("window", work->window, work->window->pid));
	if (!stream)
		return enter_and_run(work, false);
	TTI_TRY(enter(work->window, &comm));
	st = check(work, comm);
	tti_handle_leave(work->window->handle);
	if (st != TUTTI_OK)
		return tti_handle_note(work->window->handle, st);
	nwaits = (size_t)work->nwaits * sizeof(*work->waits);
	copy = tti_alloc(sizeof(*copy) + nwaits);
	if (!copy)
		return tti_handle_fail(work->window->handle, TUTTI_ENOMEM, "%s(): out of memory",
				       names[work->kind]);
	*copy = (struct queued){ .work = *work };
	if (nwaits)
		memcpy(copy->waits, work->waits, nwaits);
	copy->work.waits = copy->waits;
	count_queued(work->window, true);
	st = tti_stream_push(stream, &copy->item, run_queued);
	if (st != TUTTI_OK) {
		count_queued(work->window, false);
		tti_free(copy);
	}
	return tti_handle_note(work->window->handle, st);
}

tutti_status tutti_put(tutti_window_t window, int peer, size_t offset, const void *src, size_t size,
		       tutti_stream_t stream)
{
	/* Only read from. */
	return submit(&(struct work){ .kind = PUT,
				      .window = window,
				      .peer = peer,
				      .offset = offset,
				      .nbytes = size,
				      .memory = (void *)(uintptr_t)src },
		      stream);
}

tutti_status tutti_get(tutti_window_t window, int peer, size_t offset, void *dst, size_t size,
		       tutti_stream_t stream)
{
	return submit(&(struct work){ .kind = GET,
				      .window = window,
				      .peer = peer,
				      .offset = offset,
				      .nbytes = size,
				      .memory = dst },
		      stream);
}

tutti_status tutti_signal(tutti_window_t window, int peer, tutti_stream_t stream)
{
	return tutti_signal_index(window, peer, 0, stream);
}

tutti_status tutti_signal_index(tutti_window_t window, int peer, int index, tutti_stream_t stream)
{
	return submit(
		&(struct work){ .kind = SIGNAL, .window = window, .peer = peer, .index = index },
		stream);
}

tutti_status tutti_wait_signal(tutti_window_t window, int peer, uint64_t count,
			       tutti_stream_t stream)
{
	const struct tutti_signal_wait wait = { peer, 0, count };

	return tutti_wait_signals(window, &wait, 1, stream);
}

tutti_status tutti_wait_signals(tutti_window_t window, const struct tutti_signal_wait *waits,
				int nwaits, tutti_stream_t stream)
{
	return submit(
		&(struct work){
			.kind = WAIT_SIGNAL, .window = window, .waits = waits, .nwaits = nwaits },
		stream);
}

tutti_status tutti_window_flush(tutti_window_t window, int peer, tutti_stream_t stream)
{
	return submit(&(struct work){ .kind = FLUSH, .window = window, .peer = peer }, stream);
}
