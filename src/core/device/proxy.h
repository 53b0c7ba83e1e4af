/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_PROXY_H
#define TTI_CORE_DEVICE_PROXY_H

/* What a kernel cannot do itself: messages to and from peers that only links reach. The kernel
 * talks over lanes in pinned memory, one for each of its blocks (abi.h). For each message of the
 * call the proxy
 *
 *     sends      gathers the parts of blocks into slots of the link
 *     receives   scatters messages of the link to the lanes of blocks
 *
 * A message that fits a slot of the link is one message there. A longer one goes in segments, behind
 * a message that says how long it is:
 *
 *     parts of blocks    |    0    |    1    |    2    |    3    |
 *     on the link   len  |      0      |      1      |    2      |
 *
 * A segment is moved once the blocks that have a part of it have sent, or have room, whatever blocks
 * behind it do, and a block goes on once its part is done. Where the sender cuts makes no difference
 * to the receiver. Ranks without a device send and receive no longer messages than a slot.
 *
 * Each queue of the program is one direction of one peer, and its messages keep their order. No queue
 * waits for another. How long a message is and to which call it belongs is looked at by the kernel,
 * not here.
 *
 * Owner: the caller, tti_proxy_release(). Threads: the one that uses the engine. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/abi.h"
#include "engine/engine.h"

/* One direction of a peer, during one call. */
struct tti_proxy_queue {
	int32_t peer;
	bool is_send;
	/* [nblocks]: what the kernel's lanes are made of, as the host reaches them. The proxy is at
	 * the other end; seq and known are its own, and outlive the call. */
	struct tti_dev_lane *lanes;
	uint64_t left; /* messages that are still to be moved */
	/* The message that is under way; tti_proxy_add() is given none. */
	bool is_begun;
	struct tti_dev_head head;
	uint64_t at;    /* bytes of it that were moved */
	uint32_t block; /* the first one whose part is not done */
};

struct tti_proxy {
	struct tti_engine *engine;
	uint32_t nblocks;
	struct tti_proxy_queue *queue;
	int n, room; /* of queue[] */
	bool is_connected;
	int waiting_on; /* a peer, -1: none */
};

/* The edges of a block's part of a message, in bytes (abi.h). */
static inline uint64_t tti_proxy_edge(uint64_t nbytes, uint32_t block, uint32_t nblocks)
{
	const uint64_t rest = nbytes % nblocks;

	return block == nblocks
		       ? nbytes
		       : (nbytes / nblocks * block + rest * block / nblocks) & ~UINT64_C(15);
}

/* Begin a call without queues; those of the call before are forgotten. */
void tti_proxy_begin(struct tti_proxy *proxy, struct tti_engine *engine, uint32_t nblocks);
TUTTI_CHECKED tutti_status tti_proxy_add(struct tti_proxy *proxy,
					 const struct tti_proxy_queue *queue);

/* How many messages a program has in each queue: messages[program->nqueues]. With `extents` each
 * chunk has blocks of its own, else all have `nrounds`. */
void tti_proxy_count(const struct tti_dev_program *program, const struct tti_dev_extent *extents,
		     int32_t nrounds, uint64_t *messages);

/* Move what can be moved; whether anything was. A message that is longer than the lanes hold, or one
 * amid the segments of another, is of another call: job->status is TUTTI_EMISMATCH then, and other
 * failures are set there, too. */
bool tti_proxy_poll(struct tti_proxy *proxy, struct tti_job *job);
/* Whether all messages were moved. */
bool tti_proxy_is_done(const struct tti_proxy *proxy);

void tti_proxy_release(struct tti_proxy *proxy);

#endif
