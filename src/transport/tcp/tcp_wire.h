/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_WIRE_H
#define TTI_TRANSPORT_TCP_WIRE_H

/* What goes over the connections of a TCP link, and the machine that reads it.
 *
 * After the handshake (boot/net/auth.h) both sides send frames: a header, then
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
 * A sealed frame (boot/net/seal.h) has its first four bytes in the clear, then the rest of the
 * header sealed, and 16 bytes of mac. CREDIT, HELLO, END and ALIVE are always sealed, DATA if the
 * job is encrypted: then its payload, unless it is empty, is one more record with a mac of its own.
 * The reader uses the length of a payload before the payload has come, so the header is sealed by
 * itself.
 *
 * DATA carries a message. CREDIT only carries `consumed` (all else is 0). HELLO opens a connection
 * once both sides are proven (seq: index of the lane, tag: the nonce of the link), and does not
 * occur afterwards.
 *
 * A link may have several connections. A message travels whole on one of them, and `seq` restores
 * the order. Message s may be sent when s < consumed + slots, and is received into slot s % slots,
 * so there is always room for it.
 *
 * END says that no message follows on any connection of the link (all but `consumed` is 0):
 * connections that end then are closed, not lost.
 *
 * ALIVE says nothing new. An encrypted job sends it every second for a while after everything else,
 * since only a later record shows that one was dropped.
 *
 * A message whose connection was given up is sent again on another one, with a higher `retry`. A
 * message that has arrived is dropped when it comes again. A message that is still arriving on the
 * old connection is taken over by the higher `retry`: the reader of the old connection is
 * `usurped`, and discards what it is fed.
 *
 * The reader does no I/O: it says where the next bytes go and is told how many came. Bytes of a
 * long message go straight into its slot; only bytes that are read ahead together with a header are
 * copied. It trusts nothing that it is fed.
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

/* Why the bytes of a peer are refused. */
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

/* Messages up to this size lie packed in an array of their own: a link that carries only these
 * touches few pages. */
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
	bool ended;         /* the peer has sent END            */
	uint64_t dropped;   /* messages that had come before    */
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

/* The reading side of one connection. Zeroed: at the start, for frames that are not sealed. */
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

/* The reader is fed no more: the slot that it was filling is free for another one. */
void tti_tcp_reader_abandon(struct tti_tcp_reader *reader);

/* Whether it is between two frames, the only place where the peer may stop. */
static inline bool tti_tcp_reader_idle(const struct tti_tcp_reader *reader)
{
	return !reader->left && !reader->have && !reader->slot;
}

#endif
