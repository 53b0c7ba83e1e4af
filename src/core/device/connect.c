/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "boot/watch/watch.h"
#include "core/call/args.h"
#include "core/call/call.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/device.h"
#include "core/device/open.h"
#include "core/device/parting.h"
#include "core/stall.h"
#include "gpu/cuda_memory.h"
#include "gpu/cuda_stream.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"

/* Lanes are made in pairs of ranks, when the first call of a communicator needs them. Both ranks of
 * a pair are in that call, and its program has them talk to each other; so each sends the other,
 * over the link that they have, the name of its memory, as a call that is a part of the user's. Links
 * are in order, and both ranks have the same calls of theirs on it. No other rank has to take part:
 * two ranks of a send and its receive need nobody else. What is sent:
 *
 *     cards    the name of the memory that lies ready for the peer
 *     proofs   that the peer's memory was mapped; a mark was written there, which its owner looks for
 *
 * After the proofs both ends know that kernels may use the lanes. A rank that fails before tells all
 * ranks, as for any failure of a call. */

#define MARK UINT64_C(0x7475747469206c6e)

struct card {
	struct tti_gpu_name name;
	uint64_t nbytes;
};

struct proof {
	uint64_t mark; /* that was written */
};

/* A communicator while lanes are made. */
struct making {
	struct tti_device_need *need;
	int32_t *peers; /* [npeers]: mapped ones without lanes yet */
	int npeers;
	struct card *cards, *their_cards; /* [npeers] */
	struct proof *proofs, *their_proofs;
	struct tti_args *args; /* [2 * npeers] */
	/* The user's call as it is published, which goes on afterwards. */
	struct tti_published_call call;
	bool is_running;
};

static uint64_t mark_of(const struct tti_comm *comm, int from, int to)
{
	return tti_hash_combine(tti_hash_combine(MARK ^ comm->context, (uint64_t)from),
				(uint64_t)to);
}

/* Behind the lanes of the memory for a peer: what the peer writes there as a proof. */
static uint64_t mark_at(const struct tti_device *device)
{
	return tti_lanes_bytes(&device->shape);
}

/* Behind that, what it writes before it unmaps the memory (parting.h). */
static uint64_t parting_at(const struct tti_device *device)
{
	return mark_at(device) + sizeof(struct proof);
}

static size_t memory_bytes(const struct tti_device *device)
{
	return parting_at(device) + sizeof(uint64_t);
}

/* -- Into the kernel's array ----------------------------------------------------------- */

/* The lanes to a peer, of all blocks. Kernels of calls before may run: they have other lanes. */
static tutti_status install(struct tti_device *device, int peer, const struct tti_dev_lane *pair)
{
	const size_t nbytes = 2 * sizeof(*pair), row = nbytes * (size_t)device->n;
	tutti_status st = TUTTI_OK, waited;

	for (uint32_t block = 0; block < device->shape.nblocks && st == TUTTI_OK; block++)
		st = tti_gpu_copy(
			device->gpu, device->lanes_at + block * row + (size_t)peer * nbytes,
			(uint64_t)(uintptr_t)&pair[2 * (size_t)block], nbytes, device->stream);
	/* Until then they read `pair`. */
	waited = tti_gpu_stream_wait(device->gpu, device->stream);
	st = st != TUTTI_OK ? st : waited;
	device->peers[peer].is_connected = st == TUTTI_OK;
	return st;
}

/* own, other: as the kernel reaches the memory of the two ends. */
static tutti_status install_pair(struct tti_device *device, int peer, uint64_t own, uint64_t other)
{
	const uint32_t nblocks = device->shape.nblocks;
	struct tti_dev_lane *pair = tti_calloc(2 * (size_t)nblocks, sizeof(*pair));
	tutti_status st;

	if (!pair)
		return tti_fail(TUTTI_ENOMEM, "lanes of rank %d: out of memory", device->rank);
	for (uint32_t block = 0; block < nblocks; block++) {
		pair[2 * block] = tti_lane_in(&device->shape, block, own, other);
		pair[2 * block + 1] = tti_lane_out(&device->shape, block, own, other);
	}
	st = install(device, peer, pair);
	tti_free(pair);
	return st;
}

/* -- In pinned memory --------------------------------------------------------------------- */

/* Both ends are here: that of the kernel, and behind it that of the proxy. */
static tutti_status connect_pinned(struct tti_device *device, int peer)
{
	const struct tti_lane_shape *shape = &device->shape;
	struct tti_device_peer *to = &device->peers[peer];
	const size_t nbytes = tti_lanes_bytes(shape);
	uint64_t at;

	if (!to->out)
		to->out = tti_calloc(2 * (size_t)shape->nblocks, sizeof(*to->out));
	if (!to->out)
		return tti_fail(TUTTI_ENOMEM, "lanes of rank %d: out of memory", device->rank);
	to->in = to->out + shape->nblocks;
	TTI_TRY(tti_device_alloc_pinned(device, 2 * nbytes, &to->pinned, &at));
	for (uint32_t block = 0; block < shape->nblocks; block++) {
		const uint64_t host = (uint64_t)(uintptr_t)to->pinned;

		to->out[block] = tti_lane_out(shape, block, host, host + nbytes);
		to->in[block] = tti_lane_in(shape, block, host, host + nbytes);
	}
	TTI_TRY(install_pair(device, peer, at, at + nbytes));
	device->has_proxy = true;
	return TUTTI_OK;
}

/* -- In memory of GPUs ------------------------------------------------------------------------ */

/* Memory for a peer, and its card. */
static tutti_status lend(struct tti_device *device, int peer, struct card *card)
{
	struct tti_device_peer *to = &device->peers[peer];
	const size_t nbytes = memory_bytes(device);

	TTI_TRY(tti_gpu_memory_create(device->gpu, nbytes, &to->own));
	to->own->is_kept = true;
	/* In the pieces in which the GPU gives it. */
	TTI_TRY(tti_device_count_memory(device, to->own->nbytes));
	TTI_TRY(tti_gpu_memory_export(to->own, &card->name));
	card->nbytes = nbytes;
	return TUTTI_OK;
}

static tutti_status fail_import(const struct tti_device *device, int peer)
{
	char why[TTI_ERROR_TEXT];

	(void)snprintf(why, sizeof(why), "%s", tti_error_text());
	return tti_fail(TUTTI_ESYS,
			"rank %d cannot map memory of the GPU of rank %d, which it could when the "
			"communicator was made: %s",
			device->rank, peer, why);
}

static tutti_status map(const struct tti_comm *comm, int peer, const struct card *card,
			struct proof *proof)
{
	struct tti_device *device = comm->device;
	struct tti_device_peer *to = &device->peers[peer];

	if (card->nbytes != memory_bytes(device))
		return tti_fail(TUTTI_EPROTO,
				"rank %d has %llu bytes for lanes of rank %d, which expects %zu",
				peer, (unsigned long long)card->nbytes, device->rank,
				memory_bytes(device));
	if (tti_gpu_memory_import(device->gpu, &card->name, &to->theirs) != TUTTI_OK)
		return fail_import(device, peer);
	proof->mark = mark_of(comm, comm->rank, peer);
	return tti_gpu_write(device->gpu, to->theirs->at + mark_at(device), proof, sizeof(*proof));
}

static tutti_status finish_mapped(const struct tti_comm *comm, int peer, const struct proof *theirs)
{
	struct tti_device *device = comm->device;
	const struct tti_device_peer *to = &device->peers[peer];
	const uint64_t expected = mark_of(comm, peer, comm->rank);
	struct proof found;

	TTI_TRY(tti_gpu_read(device->gpu, &found, to->own->at + mark_at(device), sizeof(found)));
	if (theirs->mark != expected || found.mark != expected)
		return tti_fail(
			TUTTI_ESYS,
			"what rank %d writes into memory of the GPU of rank %d does not "
			"arrive, though it did when the communicator was made: tutti doctor",
			peer, device->rank);
	return install_pair(device, peer, to->own->at, to->theirs->at);
}

/* -- All together ------------------------------------------------------------------------------- */

static void keep_call(struct making *m)
{
	struct tti_current_call *current = &m->need->comm->current;

	m->is_running = atomic_load(&current->running) != 0;
	m->call = (struct tti_published_call){
		.seq = atomic_load(&current->seq),
		.signature = atomic_load(&current->signature),
		.count = atomic_load(&current->count),
		.packed = atomic_load(&current->packed),
		.split = atomic_load(&current->split),
		.stage = atomic_load(&current->stage),
	};
}

static void publish_again(const struct making *m)
{
	if (m->is_running)
		tti_current_call_publish(&m->need->comm->current, &m->call);
}

static tutti_status allocate(struct making *m)
{
	const size_t room = (size_t)m->need->npeers + 1;

	m->peers = tti_calloc(room, sizeof(*m->peers));
	m->cards = tti_calloc(room, sizeof(*m->cards));
	m->their_cards = tti_calloc(room, sizeof(*m->their_cards));
	m->proofs = tti_calloc(room, sizeof(*m->proofs));
	m->their_proofs = tti_calloc(room, sizeof(*m->their_proofs));
	m->args = tti_calloc(2 * room, sizeof(*m->args));
	if (m->peers && m->cards && m->their_cards && m->proofs && m->their_proofs && m->args)
		return TUTTI_OK;
	return tti_fail(TUTTI_ENOMEM, "lanes of rank %d: out of memory", m->need->comm->rank);
}

static void release(struct making *m)
{
	tti_free(m->peers);
	tti_free(m->cards);
	tti_free(m->their_cards);
	tti_free(m->proofs);
	tti_free(m->their_proofs);
	tti_free(m->args);
}

/* What needs no peer. */
static tutti_status prepare(struct making *m)
{
	struct tti_device *device = m->need->comm->device;

	TTI_TRY(allocate(m));
	TTI_TRY(tti_device_make_ready(m->need->comm));
	for (int i = 0; i < m->need->npeers; i++) {
		const int32_t peer = m->need->peers[i];

		if (device->peers[peer].is_connected)
			continue;
		if (device->peers[peer].way == TTI_DEVICE_PINNED) {
			TTI_TRY(connect_pinned(device, peer));
			continue;
		}
		TTI_TRY(lend(device, peer, &m->cards[m->npeers]));
		m->peers[m->npeers++] = peer;
	}
	return TUTTI_OK;
}

static tutti_status map_all(struct making *m)
{
	for (int i = 0; i < m->npeers; i++)
		TTI_TRY(map(m->need->comm, m->peers[i], &m->their_cards[i], &m->proofs[i]));
	return TUTTI_OK;
}

static tutti_status finish_all(struct making *m)
{
	for (int i = 0; i < m->npeers; i++)
		TTI_TRY(finish_mapped(m->need->comm, m->peers[i], &m->their_proofs[i]));
	if (m->npeers)
		tti_log(TTI_LOG_INFO, TTI_CORE,
			"lanes to %d rank%s; the communicator has %zu bytes of GPU %d and %zu of "
			"pinned memory now",
			m->npeers, m->npeers == 1 ? "" : "s",
			atomic_load(&m->need->comm->device->device_bytes),
			m->need->comm->device->ordinal,
			atomic_load(&m->need->comm->device->pinned_bytes));
	return TUTTI_OK;
}

/* Nobody goes on while this rank cannot: tell all. What fails here may be the end of a peer, of which
 * there is news then. */
static void settle(struct making *m, tutti_status status)
{
	m->need->status = status == TUTTI_OK ? status : tti_stall_settle(m->need->comm, status, -1);
}

/* The same of what has to do with no peer. */
static void fail_alone(struct making *m, tutti_status status)
{
	struct tti_comm *comm = m->need->comm;
	char text[TTI_FAILURE_TEXT];

	(void)snprintf(text, sizeof(text), "rank %d failed: %s", comm->rank, tti_error_text());
	tti_comm_notify_failure(comm, status > TUTTI_STATUS_LOST ? TUTTI_EPEER : status, -1, text);
	m->need->status = tti_comm_async_error(comm);
}

/* One step of all communicators that have not failed. */
static void each(struct making *makings, int n, tutti_status (*step)(struct making *))
{
	for (int i = 0; i < n; i++)
		if (makings[i].need->status == TUTTI_OK)
			settle(&makings[i], step(&makings[i]));
}

static void prepare_all(struct making *makings, int n)
{
	for (int i = 0; i < n; i++) {
		const tutti_status st = prepare(&makings[i]);

		keep_call(&makings[i]);
		if (st != TUTTI_OK)
			fail_alone(&makings[i], st);
	}
}

static void add_transfer(struct making *m, struct tti_call_item *item, int peer, void *data,
			 size_t nbytes, bool is_send)
{
	m->args[item->nnow++] = (struct tti_args){ .coll = TUTTI_SEND_RECV,
						   .send = is_send ? data : NULL,
						   .recv = is_send ? NULL : data,
						   .count = nbytes,
						   .type = TUTTI_UINT8,
						   .root = peer,
						   .is_send = is_send,
						   .part_of = m->need->args,
						   .stage = TTI_STAGE_LANES };
}

/* own[npeers], theirs[npeers] of `nbytes` each. */
static void fill_item(struct making *m, void *own, void *theirs, size_t nbytes,
		      struct tti_call_item *item)
{
	*item = (struct tti_call_item){ .comm = m->need->comm, .status = m->need->status };
	if (item->status != TUTTI_OK)
		return;
	item->now = m->args;
	for (int i = 0; i < m->npeers; i++) {
		const size_t at = (size_t)i * nbytes;

		add_transfer(m, item, m->peers[i], (char *)own + at, nbytes, true);
		add_transfer(m, item, m->peers[i], (char *)theirs + at, nbytes, false);
	}
}

static void swap(struct making *makings, int n, bool is_proof, struct tti_call_item *items,
		 struct tti_call_room *room)
{
	for (int i = 0; i < n; i++) {
		struct making *m = &makings[i];

		if (is_proof)
			fill_item(m, m->proofs, m->their_proofs, sizeof(*m->proofs), &items[i]);
		else
			fill_item(m, m->cards, m->their_cards, sizeof(*m->cards), &items[i]);
	}
	tti_call_run_all(items, n, room);
	for (int i = 0; i < n; i++) {
		publish_again(&makings[i]);
		makings[i].need->status = items[i].status;
	}
}

static void connect_all(struct making *makings, int n)
{
	struct tti_call_item *items = tti_calloc((size_t)n, sizeof(*items));
	struct tti_call_room *room = tti_call_room_create(n);

	if (items && room) {
		prepare_all(makings, n);
		swap(makings, n, false, items, room);
		each(makings, n, map_all);
		swap(makings, n, true, items, room);
		each(makings, n, finish_all);
	} else {
		for (int i = 0; i < n; i++)
			fail_alone(&makings[i],
				   tti_fail(TUTTI_ENOMEM, "lanes of rank %d: out of memory",
					    makings[i].need->comm->rank));
	}
	tti_free(items);
	tti_free(room);
}

bool tti_device_is_connected(const struct tti_device *device, const int32_t *peers, int npeers)
{
	for (int i = 0; i < npeers; i++)
		if (!device->peers[peers[i]].is_connected)
			return false;
	return device->control != NULL;
}

void tti_device_connect(struct tti_device_need *needs, int n)
{
	struct making *makings = tti_calloc((size_t)n, sizeof(*makings));
	int count = 0;

	for (int i = 0; i < n; i++) {
		struct tti_device_need *need = &needs[i];
		struct making own = { .need = need };

		need->status = TUTTI_OK;
		if (tti_device_is_connected(need->comm->device, need->peers, need->npeers))
			continue;
		if (makings)
			makings[count++] = own;
		else
			fail_alone(&own, tti_fail(TUTTI_ENOMEM, "lanes of rank %d: out of memory",
						  need->comm->rank));
	}
	if (count > 0)
		connect_all(makings, count);
	for (int i = 0; i < count; i++)
		release(&makings[i]);
	tti_free(makings);
}

/* -- The end --------------------------------------------------------------------------------------- */

static bool is_by_ipc(const struct tti_device_peer *to, const struct tti_gpu_memory *memory)
{
	return memory && to->is_elsewhere && memory->share == TTI_GPU_BY_IPC;
}

void tti_device_free_lanes(struct tti_device *device)
{
	for (int peer = 0; device->peers && peer < device->n; peer++) {
		struct tti_device_peer *to = &device->peers[peer];

		if (is_by_ipc(to, to->theirs))
			tti_parting_say(device->gpu, to->theirs->at + parting_at(device));
		tti_gpu_memory_free(to->theirs);
		if (is_by_ipc(to, to->own))
			tti_parting_keep(
				&(struct tti_parting){ .gpu = device->gpu,
						       .memory = to->own,
						       .mark_at = to->own->at + parting_at(device),
						       .pid = to->pid,
						       .identity = to->identity });
		else
			tti_gpu_memory_free(to->own);
		tti_free(to->out);
		to->theirs = to->own = NULL;
		to->pinned = NULL;
		to->out = to->in = NULL;
	}
}
