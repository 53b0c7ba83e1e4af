/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_WIRE_H
#define TTI_BOOT_WIRE_H

/* What goes over the connections of the bootstrap, and its parsers.
 *
 * A connection begins with the handshake (auth.h), whose payload is tti_wire_who. All that follows is
 * sealed (tunnel.h). A connector may try several connections at once. It sends one byte, TTI_JOIN, on
 * the one that it keeps, and closes the others. Then come frames, in both directions:
 *
 *     0        4       8             16
 *     | type   | seq   | nbytes      | nbytes of body ...
 *
 *     kind   from -> to       frames                          frames back
 *     ROOT   rank -> root     CHECKIN, then BYE; or FAILURE   NEXT, ALL or FAILURE
 *     RING   rank -> rank+1   BLOCK, then FAILURE, BYE        the same
 *            over a gap, or anew: HERE, FAILURE, ASK, MOVED, BYE   HERE, FAILURE, ANSWER, BYE
 *            once the ranks watch: MAIL, MAIL_ACK             the same
 *     PEER   rank -> any      HERE, ASK, MAIL, FAILURE, BYE   HERE, ANSWER, MAIL, MAIL_ACK, FAILURE, BYE
 *
 * A link of the ring that breaks is made anew, and what was under way may come twice. All frames but
 * ANSWER may be repeated without harm, and an ANSWER has the seq of its ASK. Mail without a MAIL_ACK
 * goes out again over another connection.
 *
 * All numbers are little-endian, as all supported machines are. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/family/dispatcher.h"
#include "boot/net/iface.h"
#include "boot/net/tunnel.h"
#include "boot/watch/watch.h"
#include "tutti/status.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire format is little-endian"
#endif

#define TTI_JOIN 0x2a

/* The payload of the handshake. */
struct tti_wire_who {
	int32_t from;   /* rank                                  */
	int32_t to;     /* rank; ROOT: index of the root         */
	int32_t nranks; /* of the communicator                   */
	int32_t what;   /* ROOT: how many roots; RING: enum tti_ring_side */
};

/* On the wire: the side from which a rank connects to its neighbour in the ring. */
enum tti_ring_side {
	TTI_RING_BEFORE = 0, /* `from` comes before `to`                              */
	TTI_RING_BEHIND = 1, /* `from` comes after `to`, and makes their link anew    */
};

/* Where a rank listens, and which process it is. */
#define TTI_CARD_ADDRS 74
#define TTI_CARD_HOST  44
struct tti_wire_card {
	uint16_t port; /* network order */
	uint8_t addr_bytes;
	uint8_t reserved[3];
	uint8_t addrs[TTI_CARD_ADDRS]; /* tti_addrs_pack() */
	int32_t pid;
	char host[TTI_CARD_HOST];
	uint64_t identity; /* of the process (util/process.h) */
};

struct tti_wire_checkin {
	int32_t rank, nranks, iroot, nroots;
	int32_t left_ms; /* how long this rank will wait               */
	int32_t border;  /* 1: it only says where it listens, for the
			    last rank of this root's group              */
	struct tti_wire_card card;
};

enum tti_frame_type {
	TTI_FRAME_CHECKIN = 1, /* tti_wire_checkin                        */
	TTI_FRAME_NEXT,        /* tti_wire_card of the next rank          */
	TTI_FRAME_ALL,         /* all ranks of this root have checked in  */
	TTI_FRAME_BLOCK,       /* a blob of an all-gather                 */
	TTI_FRAME_FAILURE,     /* tti_failure; seq: exchanges that the sender has ended */
	TTI_FRAME_BYE,         /* seq 1: the sender knew of a failure     */
	TTI_FRAME_ASK,         /* what are you doing?                     */
	TTI_FRAME_ANSWER,      /* tti_call                                */
	TTI_FRAME_HERE,        /* the sender uses this connection         */
	TTI_FRAME_MOVED,       /* another connection takes its place      */
	TTI_FRAME_MAIL,        /* tti_mail, without unused data; numbered */
	TTI_FRAME_MAIL_ACK,    /* mail of this connection came, up to seq */
	TTI_FRAME_TYPES,
};

struct tti_frame {
	uint32_t type;
	uint32_t seq;
	uint64_t nbytes;
};

_Static_assert(sizeof(struct tti_wire_card) == 136, "on the wire");
_Static_assert(sizeof(struct tti_wire_checkin) == 24 + 136, "on the wire");
_Static_assert(sizeof(struct tti_frame) == 16, "on the wire");
_Static_assert(sizeof(struct tti_failure) == 16 + TTI_FAILURE_TEXT, "on the wire");
_Static_assert(sizeof(struct tti_call) == 36 + TTI_CALL_TEXT + TTI_WAY_TEXT, "on the wire");

/* Takes bytes in pieces of any size, gives frames. A zeroed one is ready. */
#define TTI_FRAME_BODY 680
_Static_assert(sizeof(struct tti_mail) == TTI_FRAME_BODY, "on the wire");
struct tti_framer {
	struct tti_frame head;
	union {
		struct tti_wire_checkin checkin;
		struct tti_wire_card card;
		struct tti_failure failure;
		struct tti_call call;
		struct tti_mail mail;
		uint8_t bytes[TTI_FRAME_BODY];
	} body;
	size_t head_len;
	uint64_t body_len;
	bool whole;
};

/* *used of the nbytes are taken. TUTTI_OK: head and body hold a whole frame until the next call; the
 * body of BLOCK is thrown away. TUTTI_AGAIN: all bytes were used. TUTTI_EPROTO. The body is checked as
 * far as that is possible without knowing the job: texts are printable and end. */
TUTTI_CHECKED tutti_status tti_framer_feed(struct tti_framer *framer, const void *data,
					   size_t nbytes, size_t *used);

/* Frames on their way out. A zeroed one is empty. */
#define TTI_OUTBOX 2048
struct tti_outbox {
	uint8_t bytes[TTI_OUTBOX];
	size_t len;
};

/* false: no room but for `spare` bytes, nothing was put. */
bool tti_outbox_put(struct tti_outbox *out, enum tti_frame_type type, uint32_t seq,
		    const void *body, size_t nbytes, size_t spare);

/* Send what the tunnel takes. What cannot be sent any more is thrown away: reading tells that the peer
 * is gone. */
void tti_outbox_flush(struct tti_outbox *out, struct tti_tunnel *tunnel);

/* Addresses in as few bytes as they need, one after another, as many as there is
 * room for, without their port:
 *
 *     | 4 | ip 4 |    | 6 | ip 16 |    | 7 | ip 16 | scope 4 |    | 1 | name 16 |
 *
 * Returns the bytes used. */
size_t tti_addrs_pack(const struct tti_addr *addrs, size_t n, uint8_t *out, size_t room);
TUTTI_CHECKED tutti_status tti_addrs_unpack(const uint8_t *data, size_t nbytes, uint16_t port,
					    struct tti_addr *out, size_t most, size_t *n);

/* A failure with this text, of which died is 0. */
TUTTI_PRINTF(4, 5)
struct tti_failure tti_failure_make(tutti_status status, int failed_rank, int origin,
				    const char *fmt, ...);
TUTTI_PRINTF(4, 0)
struct tti_failure tti_failure_vmake(tutti_status status, int failed_rank, int origin,
				     const char *fmt, va_list args);

/* What the other ranks are told if this one, which has that name, gives up while they meet. */
struct tti_failure tti_failure_of(int rank, const char *name, const char *why);

/* The text of a failure without the name of the failed rank, which has other numbers in other
 * communicators. */
const char *tti_failure_why(const struct tti_failure *failure, const char *name);

/* "rank 3 (host, process 17)", or "rank 3" if the card is not known; returns buf. */
const char *tti_wire_name(const struct tti_wire_card *card, int rank, char *buf, size_t size);

/* Make text of a peer fit for a log: printable and NUL-terminated. */
void tti_wire_clean(char *text, size_t size);

#endif
