/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/window/window.h"

#include <sodium.h>

#include "core/call/args.h"
#include "core/call/group.h"
#include "core/call/stream.h"
#include "core/call/submit.h"
#include "core/comm_error.h"
#include "core/device/bounce.h"
#include "core/device/device.h"
#include "core/device/facts.h"
#include "core/handle.h"
#include "core/sequence.h"
#include "core/stall.h"
#include "core/window/window_net.h"
#include "core/window/window_signals.h"
#include "gpu/cuda_memory.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/mem.h"
#include "util/tsan.h"

/* What ranks tell each other of a window, by an all_gather of bytes. */
struct card {
	uint64_t nbytes, key, process;
	uint64_t at; /* of memory of a device, for ranks of the process; 0: it is of the host */
	struct tti_memory_name data, signals; /* zeroed: not to be had */
	int32_t reachable, nsignals;
};

static struct card make_card(const struct tutti_window *window, uint64_t key)
{
	struct tti_port *port = window->comm->memory.port;
	struct card card = { .nbytes = window->nbytes,
			     .key = key,
			     .process = tti_signals_process(),
			     .nsignals = window->nsignals };

	if (window->is_of_device)
		card.at = (uintptr_t)window->base;
	if (!port || window->is_of_device)
		return card;
	card.reachable =
		port->transport->memory->name(port, window->signals,
					      tti_signals_bytes(tti_window_signal_count(window)),
					      &card.signals) &&
		card.signals.reach == TTI_REACH_MAPPED &&
		(!window->nbytes ||
		 (port->transport->memory->name(port, window->base, window->nbytes, &card.data) &&
		  card.data.reach == TTI_REACH_MAPPED));
	return card;
}

/* Whether rank a can address the window of rank b: all ranks know the same. */
static bool reaches(const struct tti_comm *comm, const struct card *cards, int a, int b)
{
	if (cards[b].at)
		return a == b || (cards[a].process == cards[b].process &&
				  comm->devices->fact[a].ordinal >= 0);
	return a == b || (comm->host_of[a] == comm->host_of[b] && cards[b].reachable);
}

/* In place of the counters of a rank of this process that has ended its window already. */
static struct tti_window_signals ended;

static tutti_status map_peer(struct tutti_window *window, int rank, const struct card *card)
{
	struct tti_window_peer *peer = &window->peers[rank];
	struct tti_port *port = window->comm->memory.port;
	struct tti_remote remote;

	if (card->process == tti_signals_process()) {
		peer->signals = tti_signals_borrow(card->key);
		peer->borrowed = peer->signals != NULL;
		if (!peer->signals)
			peer->signals = &ended;
	} else {
		TTI_TRY(port->transport->memory->find(
			port, rank, &card->signals,
			tti_signals_bytes(tti_window_signal_count(window)), &remote));
		peer->signals = remote.mapped;
	}
	if (card->at)
		peer->data = (uint8_t *)(uintptr_t)card->at;
	if (!card->nbytes || card->at)
		return TUTTI_OK;
	TTI_TRY(port->transport->memory->find(port, rank, &card->data, card->nbytes, &remote));
	peer->data = remote.mapped;
	return TUTTI_OK;
}

static tutti_status map_peers(struct tutti_window *window, const struct card *cards)
{
	const struct tti_comm *comm = window->comm;

	for (int rank = 0; rank < comm->n; rank++) {
		window->peers[rank].nbytes = cards[rank].nbytes;
		window->peers[rank].key = cards[rank].key;
		window->peers[rank].is_of_device = cards[rank].at != 0;
		if (rank == comm->rank) {
			window->peers[rank].data = window->base;
			window->peers[rank].signals = window->signals;
		} else if (reaches(comm, cards, comm->rank, rank)) {
			TTI_TRY(map_peer(window, rank, &cards[rank]));
		}
	}
	return TUTTI_OK;
}

static bool needs_net(const struct tti_comm *comm, const struct card *cards)
{
	for (int a = 0; a < comm->n; a++)
		for (int b = 0; b < comm->n; b++)
			if (!reaches(comm, cards, a, b))
				return true;
	return false;
}

/* A call of all ranks orders what threads of one process did before and after it. */
static void give_all(const struct tti_comm *comm)
{
	for (int peer = 0; peer < comm->n; peer++)
		tti_tsan_give((uint32_t)comm->rank, (uint32_t)peer);
}

static void take_all(const struct tti_comm *comm)
{
	for (int peer = 0; peer < comm->n; peer++)
		tti_tsan_take((uint32_t)peer, (uint32_t)comm->rank);
}

static tutti_status check_alike(const struct tti_comm *comm, const struct card *cards)
{
	for (int rank = 1; rank < comm->n; rank++)
		if (cards[rank].nsignals != cards[0].nsignals)
			return tti_fail(
				TUTTI_EMISMATCH,
				"a window with %d signals on rank 0 and with %d on rank %d: "
				"let all ranks ask for the same number",
				cards[0].nsignals, cards[rank].nsignals, rank);
	return TUTTI_OK;
}

tutti_status tti_window_tell_all(const struct tutti_window *window, void *cards, size_t nbytes)
{
	const struct tti_args args = { .coll = TUTTI_ALL_GATHER,
				       .send = (char *)cards + (size_t)window->comm->rank * nbytes,
				       .recv = cards,
				       .count = nbytes,
				       .type = TUTTI_UINT8,
				       .on_host = true };

	return tti_submit(window->handle, &args, NULL);
}

static tutti_status set_up(struct tutti_window *window, struct card *cards)
{
	struct tti_comm *comm = window->comm;
	uint64_t key;

	randombytes_buf(&key, sizeof(key));
	TTI_TRY(tti_signals_create(tti_window_signal_count(window), comm->memory.port, key,
				   &window->signals));
	cards[comm->rank] = make_card(window, key);
	give_all(comm);
	TTI_TRY(tti_window_tell_all(window, cards, sizeof(*cards)));
	take_all(comm);
	TTI_TRY(check_alike(comm, cards));
	TTI_TRY(map_peers(window, cards));
	if (!needs_net(comm, cards))
		return TUTTI_OK;
	if (!comm->may_tcp)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"a window that not all ranks can reach in place: let all allocate "
				"it by tutti_mem_alloc(), or allow tcp (TUTTI_TRANSPORT)");
	return tti_window_net_open(window);
}

/* Take back what the communicator lent. Ranks that do not know yet that it is lost see it in the
 * counters. */
static void take_back(struct tutti_window *window)
{
	const struct tti_comm *const comm = window->comm;

	tti_window_net_close(window->net);
	window->net = NULL;
	for (int rank = 0; rank < comm->n; rank++)
		if (window->peers[rank].borrowed)
			tti_signals_drop(window->peers[rank].signals);
	if (window->signals) {
		tti_signals_close(window->signals, tti_window_signal_count(window));
		tti_signals_drop(window->signals);
	}
	/* This comes last: see tti_handle_await_end(). */
	atomic_store(&window->comm, NULL);
}

struct tti_comm *tti_window_find(struct tutti_window *window)
{
	struct tti_comm *comm = tti_handle_find(window->handle);

	if (comm && comm != atomic_load(&window->comm)) {
		tti_handle_leave(window->handle);
		return NULL;
	}
	return comm;
}

tutti_status tti_window_copy(const struct tutti_window *window, void *to, const void *from,
			     size_t nbytes)
{
	return tti_gpu_move(window->comm->device->gpu, to, from, nbytes);
}

void tti_windows_release(struct tti_comm *comm)
{
	for (size_t i = 0; i < comm->windows.n; i++)
		take_back(comm->windows.at[i]);
	tti_vec_release(&comm->windows);
}

static void forget(struct tutti_window *window)
{
	struct tti_comm *comm = window->comm;

	pthread_mutex_lock(&comm->lock);
	for (size_t i = 0; i < comm->windows.n; i++)
		if (comm->windows.at[i] == window)
			comm->windows.at[i] = comm->windows.at[--comm->windows.n];
	pthread_mutex_unlock(&comm->lock);
}

static void free_window(struct tutti_window *window)
{
	if (!window)
		return;
	pthread_cond_destroy(&window->ran);
	pthread_mutex_destroy(&window->lock);
	tti_free(window->taken);
	tti_free(window->peers);
	tti_free(window);
}

/* NULL: out of memory. */
static struct tutti_window *make_window(struct tti_comm *comm, const struct tutti_window *given)
{
	struct tutti_window *window = tti_alloc(sizeof(*window));

	if (!window)
		return NULL;
	*window = *given;
	window->pid = given->handle->pid;
	window->comm = comm;
	pthread_mutex_init(&window->lock, NULL);
	pthread_cond_init(&window->ran, NULL);
	window->peers = tti_calloc((size_t)comm->n, sizeof(*window->peers));
	window->taken = tti_calloc(tti_window_signal_count(window), sizeof(*window->taken));
	if (window->peers && window->taken)
		return window;
	free_window(window);
	return NULL;
}

static tutti_status create(struct tti_comm *comm, const struct tutti_window *given,
			   tutti_window_t *out)
{
	struct tutti_window *window = make_window(comm, given);
	struct card *cards = tti_calloc((size_t)comm->n, sizeof(*cards));
	tutti_status st;
	bool kept = false;

	if (window && cards) {
		pthread_mutex_lock(&comm->lock);
		kept = tti_vec_push(&comm->windows, window);
		pthread_mutex_unlock(&comm->lock);
	}
	if (kept)
		st = set_up(window, cards);
	else
		st = tti_fail(TUTTI_ENOMEM, "window of %d ranks: out of memory", comm->n);
	/* The other ranks have a window, or wait for this one. */
	if (st != TUTTI_OK && st != TUTTI_EUNSUPPORTED)
		st = tti_stall_settle(comm, st, -1);
	tti_free(cards);
	if (st == TUTTI_OK) {
		*out = window;
		return TUTTI_OK;
	}
	if (kept) {
		forget(window);
		take_back(window);
	}
	free_window(window);
	/* The errors of ending connections do not count. */
	return atomic_load(&comm->async_error) ? tti_comm_async_error(comm) : st;
}

static tutti_status signals_of(const tutti_window_config *config, int *out)
{
	const size_t end = offsetof(tutti_window_config, signals) + sizeof(config->signals);

	*out = 1;
	if (!config)
		return TUTTI_OK;
	if (config->size < end)
		return tti_fail(
			TUTTI_EINVAL,
			"config->size is %zu: fill the config with TUTTI_WINDOW_CONFIG_INIT",
			config->size);
	*out = config->signals;
	if (config->signals < 1 || config->signals > TUTTI_SIGNALS_MOST)
		return tti_fail(TUTTI_EINVAL, "config->signals is %d: 1 to %d are possible",
				config->signals, TUTTI_SIGNALS_MOST);
	return TUTTI_OK;
}

tutti_status tutti_window_create(tutti_comm_t comm, void *base, size_t size, tutti_window_t *out)
{
	return tutti_window_create_config(comm, base, size, NULL, out);
}

tutti_status tutti_window_create_config(tutti_comm_t handle, void *base, size_t size,
					const tutti_window_config *config, tutti_window_t *out)
{
	struct tutti_window given = { .handle = handle, .base = base, .nbytes = size };
	struct tti_comm *comm;
	tutti_status st = signals_of(config, &given.nsignals);

	if (st != TUTTI_OK)
		return tti_handle_note(handle, st);
	TTI_TRY(tti_handle_check_out(handle, out, "a tutti_window_t"));
	if (size && (!base || size > UINTPTR_MAX - (uintptr_t)base))
		return tti_handle_fail(
			handle, TUTTI_EINVAL,
			"a window of %zu bytes at %p: pass memory that has so many bytes", size,
			base);
	TTI_TRY(tti_group_refuse(handle, "tutti_window_create"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	st = tti_comm_usable(comm);
	if (st == TUTTI_OK)
		st = tti_is_of_device(comm, size ? base : NULL, &given.is_of_device);
	if (st == TUTTI_OK)
		st = create(comm, &given, out);
	return tti_handle_end(handle, comm, st);
}

/* Whether this thread may end a window of that communicator now. */
static tutti_status check_end(struct tti_comm *comm)
{
	if (atomic_load_explicit(&comm->in_call, memory_order_relaxed))
		return tti_fail(TUTTI_EUSAGE,
				"tutti_window_destroy(): another thread is in a call on the "
				"window's communicator: one thread at a time makes calls on it");
	return tti_sequence_may_wait(comm);
}

/* Wait until no stream has a call of the window left to run. TUTTI_EUSAGE: that would be for
 * ever. */
static tutti_status await_queued(struct tutti_window *window)
{
	tutti_status st = TUTTI_OK;

	pthread_mutex_lock(&window->lock);
	if (window->queued > 0 && tti_stream_is_calling())
		st = tti_fail(TUTTI_EUSAGE,
			      "this thread runs a function of tutti_stream_call(), and %zu calls "
			      "on the window are not done, which may be queued behind it: return "
			      "first, or destroy the window on another thread",
			      window->queued);
	while (st == TUTTI_OK && window->queued > 0)
		pthread_cond_wait(&window->ran, &window->lock);
	pthread_mutex_unlock(&window->lock);
	return st;
}

/* *comm is held, or NULL: it has ended. Queued calls are waited for without it, as its end may be
 * what ends them. */
static tutti_status await_calls(struct tutti_window *window, struct tti_comm **comm)
{
	tutti_status st = TUTTI_OK;

	*comm = tti_window_find(window);
	if (*comm) {
		st = check_end(*comm);
		tti_handle_leave(window->handle);
	}
	if (st == TUTTI_OK)
		st = await_queued(window);
	*comm = tti_window_find(window);
	if (st == TUTTI_OK && !*comm && atomic_load(&window->comm) && tti_stream_is_calling())
		st = tti_fail(TUTTI_EUSAGE,
			      "this thread runs a function of tutti_stream_call(), and another one "
			      "ends the communicator, which may wait for it: return first, or "
			      "destroy the window on another thread");
	if (st != TUTTI_OK && *comm) {
		tti_comm_note(*comm, st);
		tti_handle_leave(window->handle);
	}
	return st;
}

/* All ranks flush before any rank's memory goes. TUTTI_EUSAGE: the end was refused. */
static tutti_status end_together(struct tutti_window *window, struct tti_comm *comm)
{
	tutti_status st = tutti_window_flush(window, -1, NULL);

	tti_window_net_leave(window->net);
	give_all(comm);
	if (st == TUTTI_OK)
		st = tutti_barrier(window->handle, NULL);
	take_all(comm);
	/* The call was refused because another thread destroys the communicator, which was lost
	 * before. */
	if (st == TUTTI_EUSAGE && atomic_load(&comm->async_error))
		st = tti_comm_async_error(comm);
	if (st == TUTTI_EUSAGE)
		tti_window_net_stay(window->net);
	return st;
}

tutti_status tutti_window_destroy(tutti_window_t window)
{
	struct tti_comm *comm;
	tutti_status st;

	if (!window)
		return TUTTI_OK;
	st = tti_fork_check("window", window, window->pid);
	if (st != TUTTI_OK) {
		tti_free(window->taken);
		tti_free(window->peers);
		tti_free(window);
		return st;
	}
	TTI_TRY(tti_group_refuse(window->handle, "tutti_window_destroy"));
	TTI_TRY(await_calls(window, &comm));
	if (comm) {
		st = end_together(window, comm);
		if (st != TUTTI_EUSAGE) {
			forget(window);
			take_back(window);
		}
		tti_handle_leave(window->handle);
	}
	if (comm && st == TUTTI_EUSAGE)
		return st;
	tti_handle_await_end(&window->comm);
	free_window(window);
	return st;
}
