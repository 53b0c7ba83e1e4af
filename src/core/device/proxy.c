/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/proxy.h"

#include <stdatomic.h>
#include <string.h>

#include "engine/connect.h"
#include "util/error.h"
#include "util/mem.h"

/* Segments that one look at a queue moves at most, so that others get their turn. */
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

/* -- One segment -------------------------------------------------------------------- */

/* Tags of calls are odd (signature.h). Without its lowest bit a tag is that of a message which says
 * how long the one of the kernel is that follows in segments. */
static uint64_t tag_of_length(uint64_t tag)
{
	return tag & ~UINT64_C(1);
}

static struct tti_link *link_of(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue)
{
	return proxy->engine->links[queue->peer];
}

static size_t slot_bytes_of(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue)
{
	return tti_engine_port(proxy->engine, queue->peer)->slot_bytes;
}

static uint64_t edge_of(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue,
			uint32_t block)
{
	return tti_proxy_edge(queue->head.nbytes, block, proxy->nblocks);
}

static void begin_message(struct tti_proxy_queue *queue, uint64_t tag, uint64_t nbytes)
{
	queue->head = (struct tti_dev_head){ .tag = tag, .nbytes = nbytes };
	queue->at = 0;
	queue->block = 0;
	queue->is_begun = true;
}

/* A segment that ends at `to` has bytes for the blocks from queue->block up to this one. The last
 * segment has also those behind, whose parts are empty. */
static uint32_t end_of_blocks(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue,
			      uint64_t to)
{
	uint32_t end = queue->block;

	while (end < proxy->nblocks &&
	       (to == queue->head.nbytes || edge_of(proxy, queue, end) < to))
		end++;
	return end;
}

/* Whether the lanes of all blocks before `end` have the message, or room for it. */
static bool are_ready(const struct tti_proxy_queue *queue, uint32_t end)
{
	for (uint32_t block = queue->block; block < end; block++) {
		struct tti_dev_lane *lane = &queue->lanes[block];

		if (queue->is_send ? !is_full(lane) : !has_room(lane))
			return false;
	}
	return true;
}

/* The part of a block is done. */
static void finish_part(struct tti_proxy_queue *queue, struct tti_dev_lane *lane)
{
	if (!queue->is_send)
		*head_of(lane) = queue->head;
	advance(lane, queue->is_send ? lane->freed : lane->full);
	queue->block++;
}

/* Copy what comes next of the message, up to `to`, from or to `segment`. */
static void move(const struct tti_proxy *proxy, struct tti_proxy_queue *queue,
		 unsigned char *segment, uint64_t to, uint32_t end)
{
	for (uint32_t block = queue->block; block < end; block++) {
		struct tti_dev_lane *lane = &queue->lanes[block];
		const uint64_t first = edge_of(proxy, queue, block);
		const uint64_t last = edge_of(proxy, queue, block + 1);
		const uint64_t till = last < to ? last : to;
		unsigned char *part = slot_of(lane) + (queue->at - first);
		const size_t nbytes = till - queue->at;

		if (nbytes > 0 && queue->is_send)
			memcpy(segment, part, nbytes);
		else if (nbytes > 0)
			memcpy(part, segment, nbytes);
		segment += nbytes;
		queue->at = till;
		if (last <= to)
			finish_part(queue, lane);
	}
	if (queue->block < proxy->nblocks)
		return;
	queue->is_begun = false;
	queue->left--;
}

/* -- From the kernel to the link ---------------------------------------------------- */

static bool begin_send(const struct tti_proxy *proxy, struct tti_proxy_queue *queue)
{
	struct tti_link *link = link_of(proxy, queue);
	struct tti_dev_head head;
	void *slot;

	if (!is_full(&queue->lanes[0]))
		return false;
	head = *head_of(&queue->lanes[0]);
	if (head.nbytes > slot_bytes_of(proxy, queue)) {
		slot = link->ops->reserve(link, sizeof(head.nbytes), sizeof(head.nbytes));
		if (!slot)
			return false;
		memcpy(slot, &head.nbytes, sizeof(head.nbytes));
		link->ops->commit(link, sizeof(head.nbytes), tag_of_length(head.tag));
	}
	begin_message(queue, head.tag, head.nbytes);
	return true;
}

/* Where the next segment ends. */
static uint64_t end_of_segment(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue)
{
	const uint64_t left = queue->head.nbytes - queue->at;
	uint64_t piece;

	if (queue->head.nbytes <= slot_bytes_of(proxy, queue))
		return queue->head.nbytes;
	piece = tti_piece_bytes(proxy->engine, queue->peer, queue->head.nbytes);
	return queue->at + (piece < left ? piece : left);
}

static bool send_next(const struct tti_proxy *proxy, struct tti_proxy_queue *queue)
{
	const size_t most = slot_bytes_of(proxy, queue);
	struct tti_link *link = link_of(proxy, queue);
	unsigned char *slot;
	size_t nbytes;
	uint32_t end;
	uint64_t to;

	if (!queue->is_begun && !begin_send(proxy, queue))
		return false;
	to = end_of_segment(proxy, queue);
	end = end_of_blocks(proxy, queue, to);
	if (!are_ready(queue, end))
		return false;
	nbytes = to - queue->at;
	slot = link->ops->reserve(link, nbytes,
				  queue->head.nbytes < most ? queue->head.nbytes : most);
	if (!slot)
		return false;
	move(proxy, queue, slot, to, end);
	link->ops->commit(link, nbytes, queue->head.tag);
	return true;
}

/* -- From the link to the kernel ---------------------------------------------------- */

/* What came is of another call. */
static bool refuse(const struct tti_proxy_queue *queue, struct tti_job *job, uint64_t tag,
		   uint64_t nbytes)
{
	job->status = TUTTI_EMISMATCH;
	job->mismatch_peer = queue->peer;
	job->mismatch_tag = tag;
	job->mismatch_bytes = nbytes;
	return false;
}

/* More than the lanes hold. */
static bool is_too_long(const struct tti_proxy *proxy, const struct tti_proxy_queue *queue,
			uint64_t nbytes)
{
	for (uint32_t block = 0; block < proxy->nblocks; block++)
		if (tti_proxy_edge(nbytes, block + 1, proxy->nblocks) -
			    tti_proxy_edge(nbytes, block, proxy->nblocks) >
		    queue->lanes[block].slot_bytes)
			return true;
	return false;
}

/* The first that comes of a message: all of it, or its length. */
static bool begin_receive(const struct tti_proxy *proxy, struct tti_proxy_queue *queue,
			  struct tti_job *job, const void *data, size_t nbytes, uint64_t tag)
{
	const bool is_length = tag == tag_of_length(tag);
	uint64_t whole = nbytes;

	if (is_length && nbytes != sizeof(whole))
		return refuse(queue, job, tag, nbytes);
	if (is_length)
		memcpy(&whole, data, sizeof(whole));
	if (is_too_long(proxy, queue, whole))
		return refuse(queue, job, tag | 1, whole);
	begin_message(queue, tag | 1, whole);
	return true;
}

static bool receive_next(const struct tti_proxy *proxy, struct tti_proxy_queue *queue,
			 struct tti_job *job)
{
	struct tti_link *link = link_of(proxy, queue);
	unsigned char *data;
	uint64_t tag;
	size_t nbytes;
	uint32_t end;

	data = (unsigned char *)link->ops->peek(link, &nbytes, &tag);
	if (!data)
		return false;
	if (!queue->is_begun) {
		if (!begin_receive(proxy, queue, job, data, nbytes, tag))
			return false;
		if (tag != queue->head.tag) {
			link->ops->release(link);
			return true;
		}
	}
	if (tag != queue->head.tag || nbytes > queue->head.nbytes - queue->at)
		return refuse(queue, job, tag, nbytes);
	end = end_of_blocks(proxy, queue, queue->at + nbytes);
	if (!are_ready(queue, end))
		return false;
	move(proxy, queue, data, queue->at + nbytes, end);
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
		       (queue->is_send ? send_next(proxy, queue) : receive_next(proxy, queue, job)))
			n++;
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
