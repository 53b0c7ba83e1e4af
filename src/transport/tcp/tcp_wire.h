/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_WIRE_H
#define TTI_TRANSPORT_TCP_WIRE_H

/* What goes over the connections of a TCP link, and the machine that reads it.
 *
 * After the handshake (boot/auth.h) both sides send frames: a header, then
 * `length` bytes of payload. All numbers are little endian.
 *
 *      0        1        2                 4                                 8
 *      +--------+--------+-----------------+---------------------------------+
 *    0 | magic  | type   | retry           | length                          |
 *      +--------+--------+-----------------+---------------------------------+
 *    8 | seq: number of the message, from 0, of this direction of the link   |
 *      +---------------------------------------------------------------------+
 *   16 | consumed: messages of the other direction released so far (credit)  |
 *      +---------------------------------------------------------------------+
 *   24 | tag                                                                 |
 *      +---------------------------------------------------------------------+
 *
 * What is sealed (boot/seal.h) has its first four bytes as they are, then the rest of the header
 * sealed, and 16 bytes of mac. CREDIT, HELLO, END and ALIVE always are. DATA is if the job is encrypted:
 * then its payload, unless it is empty, is one more record, followed by a mac of its own. The
 * length of a payload is believed before the payload has come, so it has to be sealed by itself.
 *
 * DATA carries a message; CREDIT only tells `consumed` (all else is 0); HELLO opens a connection
 * once both sides know who the other is (seq: index of the connection in the link, tag: the
 * link's nonce) and is seen no more afterwards.
 *
 * A link may have several connections. A message travels whole on one of them;
 * `seq` puts them back in order. Message s may be sent when s < consumed + slots,
 * and is received into slot s % slots, so there is always room for it.
 *
 * END says that no message follows on any connection of the link (all but `consumed`
 * is 0): the connections that end then are not lost, but closed.
 *
 * ALIVE says nothing new. In a job that is encrypted it comes every second for a while after all
 * else: that something was left out is known by what is behind it.
 *
 * A message whose connection was given up is sent again on another one, with a
 * higher `retry`. What came is dropped when it comes again; what is still coming on
 * the old connection is taken over by the higher `retry`, and the old connection is
 * of no more use: its reader is `usurped` and throws away what it is fed.
 *
 * The reading machine does no I/O: it says where the next bytes go and is told
 * how many came. Bytes of a long message go straight into its slot; only what is
 * read ahead together with a header is copied. It trusts nothing it is fed.
 *
 * Owner: whoever holds the structs; the memory in an inbox is borrowed.
 * Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "boot/net/seal.h"
#include "tutti/status.h"

#define TTI_TCP_HEADER 32
#define TTI_TCP_SEALED (TTI_TCP_HEADER + TTI_SEAL_MAC) /* a header that is sealed */
#define TTI_TCP_MAGIC  0x74

enum tti_tcp_type { /* on the wire */
		    TTI_TCP_DATA = 1,
		    TTI_TCP_CREDIT = 2,
		    TTI_TCP_HELLO = 3,
		    TTI_TCP_END = 4,
		    TTI_TCP_ALIVE = 5,
};

struct tti_tcp_frame {
	uint8_t type;
	uint16_t retry; /* how often it was sent before */
	uint32_t length;
	uint64_t seq, consumed, tag;
};

/* Why the bytes of a peer were refused. */
struct tti_tcp_fault {
	const char *field;    /* NULL: it is not what the peer sealed */
	uint64_t value, most; /* what it was; what it may be at most */
};

void tti_tcp_frame_put(uint8_t bytes[TTI_TCP_HEADER], const struct tti_tcp_frame *frame);

/* Bring a header up to date. */
void tti_tcp_frame_set_consumed(uint8_t bytes[TTI_TCP_HEADER], uint64_t consumed);

void tti_tcp_frame_set_retry(uint8_t bytes[TTI_TCP_HEADER], uint16_t retry);

/* Seal a header where it is, with its mac behind it; and open it. */
void tti_tcp_frame_seal(uint8_t bytes[TTI_TCP_SEALED], struct tti_seal *seal);
TUTTI_CHECKED tutti_status tti_tcp_frame_open(uint8_t bytes[TTI_TCP_SEALED], struct tti_seal *seal);

/* TUTTI_EPROTO: no header; *fault says which field. */
TUTTI_CHECKED tutti_status tti_tcp_frame_get(const uint8_t bytes[TTI_TCP_HEADER],
					     struct tti_tcp_frame *out,
					     struct tti_tcp_fault *fault);

/* Messages up to this size live in an array of their own, packed: a link that
 * carries only these touches a few pages. */
#define TTI_TCP_SMALL      256
#define TTI_TCP_SLOTS_MOST 64

enum tti_tcp_slot_state { TTI_TCP_FREE, TTI_TCP_FILLING, TTI_TCP_ARRIVED };

struct tti_tcp_slot {
	uint64_t tag;
	uint32_t nbytes;
	uint16_t state, retry;
	struct tti_tcp_reader *filler; /* while FILLING: who writes to it */
};

/* Where the messages of one direction of a link arrive. */
struct tti_tcp_inbox {
	uint32_t slots;
	size_t slot_bytes, stride; /* stride: from one slot of `large` to the next */
	uint8_t *small;            /* slots * TTI_TCP_SMALL */
	uint8_t *large;            /* slots * stride        */
	struct tti_tcp_slot *slot; /* [slots]               */
	uint64_t released;         /* messages given back: number of the oldest kept */
	/* The other direction, as far as the peer's credits are judged by it. */
	uint64_t committed; /* messages sent               */
	uint64_t credit;    /* of those, released by the peer */
	uint32_t usurped;   /* readers that were, ever        */
	bool ended;         /* the peer has said its last     */
	uint64_t dropped;   /* messages that had come before  */
};

/* The memory of message `seq` of `nbytes`. */
static inline uint8_t *tti_tcp_inbox_room(const struct tti_tcp_inbox *inbox, uint64_t seq,
					  size_t nbytes)
{
	const size_t index = seq % inbox->slots;

	return nbytes <= TTI_TCP_SMALL ? inbox->small + index * TTI_TCP_SMALL
				       : inbox->large + index * inbox->stride;
}

/* The oldest message, NULL if it has not arrived. */
static inline const struct tti_tcp_slot *tti_tcp_inbox_oldest(const struct tti_tcp_inbox *inbox)
{
	const struct tti_tcp_slot *slot = &inbox->slot[inbox->released % inbox->slots];

	return slot->state == TTI_TCP_ARRIVED ? slot : NULL;
}

static inline void tti_tcp_inbox_release(struct tti_tcp_inbox *inbox)
{
	inbox->slot[inbox->released % inbox->slots].state = TTI_TCP_FREE;
	inbox->released++;
}

#define TTI_TCP_AHEAD 4096

/* The reading side of one connection. A zeroed one is at the start, and takes frames that are not
 * sealed. */
struct tti_tcp_reader {
	struct tti_seal *seal;     /* borrowed                                      */
	bool encrypted;            /* DATA is sealed, too                           */
	uint8_t *payload;          /* where the rest of the payload goes */
	size_t left;               /* bytes of it to come                */
	size_t skip;               /* bytes of a message not wanted to come */
	struct tti_tcp_slot *slot; /* NULL: none is being filled. With left 0: its mac is to come */
	bool usurped;              /* its message was taken over: close the connection */
	size_t have;               /* bytes in ahead: less than a header  */
	uint64_t consumed;         /* the latest count it was told        */
	uint8_t ahead[TTI_TCP_AHEAD];
};

/* Where the next bytes go: iov[0 .. n-1]; returns n, 1 or 2. */
int tti_tcp_reader_room(struct tti_tcp_reader *reader, struct iovec iov[2]);

/* nbytes have been put there, no more than fits. TUTTI_EPROTO: the peer broke the
 * protocol, *fault says how; the reader must not be used any more. */
TUTTI_CHECKED tutti_status tti_tcp_reader_feed(struct tti_tcp_reader *reader,
					       struct tti_tcp_inbox *inbox, size_t nbytes,
					       struct tti_tcp_fault *fault);

/* It is fed no more: what it was filling is free for another one. */
void tti_tcp_reader_abandon(struct tti_tcp_reader *reader);

/* Whether it is between two frames: the only place where the peer may stop. */
static inline bool tti_tcp_reader_idle(const struct tti_tcp_reader *reader)
{
	return !reader->left && !reader->have && !reader->slot;
}

#endif
