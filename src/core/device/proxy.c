/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/proxy.h"

#include <stdatomic.h>
#include <string.h>

#include "engine/connect.h"
#include "util/error.h"
#include "util/mem.h"

/* Messages that one look at a queue moves at most, so that others get their turn. */
#define AT_ONCE 8

/* -- Lanes, from the host's end ------------------------------------------------------ */

static _Atomic uint64_t *counter_at(uint64_t address)
{
	return (_Atomic uint64_t *)(uintptr_t)address;
}

/* The next message's. */
static struct tti_dev_head *head_of(const struct tti_dev_lane *lane)
{
	struct tti_dev_head *heads = (struct tti_dev_head *)(uintptr_t)lane->heads;

	return &heads[lane->seq % lane->nslots];
}

static unsigned char *slot_of(const struct tti_dev_lane *lane)
{
	return (unsigned char *)(uintptr_t)lane->slots +
	       lane->seq % lane->nslots * lane->slot_bytes;
}

/* Whether the kernel has sent the next message. */
static bool is_full(const struct tti_dev_lane *lane)
{
	return atomic_load_explicit(counter_at(lane->full), memory_order_acquire) > lane->seq;
}

/* Whether the next message to the kernel has room. */
static bool has_room(struct tti_dev_lane *lane)
{
	if (lane->seq >= lane->known + lane->nslots)
		lane->known = atomic_load_explicit(counter_at(lane->freed), memory_order_acquire);
	return lane->seq < lane->known + lane->nslots;
}

static void advance(struct tti_dev_lane *lane, uint64_t counter)
{
	lane->seq++;
	atomic_store_explicit(counter_at(counter), lane->seq, memory_order_release);
}

/* -- One message -------------------------------------------------------------------- */

static struct tti_link *link_of(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue)
{
	return proxy->engine->links[queue->peer];
}

/* From the kernel to the link. */
static bool send_next(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue)
{
	const uint32_t nblocks = proxy->nblocks;
	struct tti_link *link = link_of(proxy, queue);
	struct tti_dev_head head;
	unsigned char *slot;

	for (uint32_t block = 0; block < nblocks; block++)
		if (!is_full(&queue->lanes[block]))
			return false;
	head = *head_of(&queue->lanes[0]);
	slot = link->ops->reserve(link, head.nbytes, head.nbytes);
	if (!slot)
		return false;
	for (uint32_t block = 0; block < nblocks; block++) {
		struct tti_dev_lane *lane = &queue->lanes[block];
		const uint64_t from = tti_proxy_edge(head.nbytes, block, nblocks);
		const uint64_t to = tti_proxy_edge(head.nbytes, block + 1, nblocks);

		if (to > from)
			memcpy(slot + from, slot_of(lane), to - from);
		advance(lane, lane->freed);
	}
	link->ops->commit(link, head.nbytes, head.tag);
	return true;
}

/* More than the lanes hold. */
static bool is_too_long(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue,
			size_t nbytes)
{
	for (uint32_t block = 0; block < proxy->nblocks; block++)
		if (tti_proxy_edge(nbytes, block + 1, proxy->nblocks) -
			    tti_proxy_edge(nbytes, block, proxy->nblocks) >
		    queue->lanes[block].slot_bytes)
			return true;
	return false;
}

/* From the link to the kernel. */
static bool receive_next(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue,
			 struct tti_job *job)
{
	const uint32_t nblocks = proxy->nblocks;
	struct tti_link *link = link_of(proxy, queue);
	const unsigned char *data;
	struct tti_dev_head head;
	size_t nbytes;

	for (uint32_t block = 0; block < nblocks; block++)
		if (!has_room(&queue->lanes[block]))
			return false;
	data = link->ops->peek(link, &nbytes, &head.tag);
	if (!data)
		return false;
	head.nbytes = nbytes;
	if (is_too_long(proxy, queue, nbytes)) {
		job->status = TUTTI_EMISMATCH;
		job->mismatch_peer = queue->peer;
		job->mismatch_tag = head.tag;
		job->mismatch_bytes = nbytes;
		return false;
	}
	for (uint32_t block = 0; block < nblocks; block++) {
		struct tti_dev_lane *lane = &queue->lanes[block];
		const uint64_t from = tti_proxy_edge(nbytes, block, nblocks);
		const uint64_t to = tti_proxy_edge(nbytes, block + 1, nblocks);

		if (to > from)
			memcpy(slot_of(lane), data + from, to - from);
		*head_of(lane) = head;
		advance(lane, lane->full);
	}
	link->ops->release(link);
	return true;
}

/* -- All of them --------------------------------------------------------------------- */

void tti_proxy_begin(struct tti_proxy *proxy, struct tti_engine *engine, uint32_t nblocks)
{
	proxy->engine = engine;
	proxy->nblocks = nblocks;
	proxy->n = 0;
	proxy->is_connected = false;
	proxy->waiting_on = -1;
}

tutti_status tti_proxy_add(struct tti_proxy *proxy, const struct tti_proxy_queue *queue)
{
	if (proxy->n == proxy->room) {
		const int room = proxy->room ? 2 * proxy->room : 8;
		struct tti_proxy_queue *more = tti_calloc((size_t)room, sizeof(*more));

		if (!more)
			return tti_fail(TUTTI_ENOMEM, "%d queues of a proxy: out of memory", room);
		if (proxy->n > 0)
			memcpy(more, proxy->queue, (size_t)proxy->n * sizeof(*more));
		tti_free(proxy->queue);
		proxy->queue = more;
		proxy->room = room;
	}
	proxy->queue[proxy->n++] = *queue;
	return TUTTI_OK;
}

void tti_proxy_release(struct tti_proxy *proxy)
{
	tti_free(proxy->queue);
	*proxy = (struct tti_proxy){ 0 };
}

static uint64_t blocks_of(const struct tti_dev_extent *extent)
{
	return extent->count > extent->slice ? (extent->count + extent->slice - 1) / extent->slice
					     : 1;
}

void tti_proxy_count(const struct tti_dev_program *program, const struct tti_dev_extent *extents,
		     int32_t nrounds, uint64_t *messages)
{
	const unsigned char *base = (const unsigned char *)program;
	const struct tti_dev_operation *op = (const void *)(base + program->operations);
	const int32_t *queue_of = (const void *)(base + program->queue_of);

	memset(messages, 0, (size_t)program->nqueues * sizeof(*messages));
	for (int32_t i = 0; i < program->noperations; i++) {
		const uint64_t n = extents ? blocks_of(&extents[op[i].chunk]) : (uint64_t)nrounds;

		for (int32_t k = 0; k < op[i].nin; k++)
			messages[queue_of[op[i].in + k]] += n;
		for (int32_t k = 0; k < op[i].nout; k++)
			messages[queue_of[op[i].out + k]] += n;
	}
}

/* Whether the links are there. All are begun before any is waited for: ranks that connect in
 * different order must not wait for each other. */
static bool connect_all(struct tti_proxy *proxy, struct tti_job *job)
{
	bool all = true;

	for (int i = 0; i < proxy->n; i++) {
		const tutti_status st = tti_engine_connect(proxy->engine, proxy->queue[i].peer);

		if (st < 0) {
			job->status = st;
			return false;
		}
		if (st != TUTTI_OK)
			proxy->waiting_on = proxy->queue[i].peer;
		all &= st == TUTTI_OK;
	}
	proxy->is_connected = all;
	return all;
}

bool tti_proxy_poll(struct tti_proxy *proxy, struct tti_job *job)
{
	bool moved = false;

	if (!proxy->is_connected && !connect_all(proxy, job))
		return false;
	proxy->waiting_on = -1;
	for (int i = 0; i < proxy->n && job->status == TUTTI_AGAIN; i++) {
		struct tti_proxy_queue *queue = &proxy->queue[i];
		int n = 0;

		while (n < AT_ONCE && queue->left > 0 &&
		       (queue->is_send ? send_next(proxy, queue)
				       : receive_next(proxy, queue, job))) {
			queue->left--;
			n++;
		}
		moved |= n > 0;
		if (n < AT_ONCE && queue->left > 0)
			proxy->waiting_on = queue->peer;
	}
	return moved;
}

bool tti_proxy_is_done(const struct tti_proxy *proxy)
{
	for (int i = 0; i < proxy->n; i++)
		if (proxy->queue[i].left > 0)
			return false;
	return true;
}
