/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MESSAGE_MESSAGE_H
#define TTI_CORE_MESSAGE_MESSAGE_H

/* Channels of messages in parts: message.c makes and ends them, message_serve.c has their
 * threads, message_move.c moves bytes, message_request.c keeps requests, message_call.c has the
 * calls, message_wait.c their waits, message_match.c matches messages and receives.
 *
 * A channel has a communicator of its own, a duplicate of the one that it is made on, on which
 * nobody makes calls: its ports and links carry the messages, its watch tells who died. One lock
 * covers all of it, whoever moves something. A thread that waits looks for a while whether
 * something comes, then sleeps on a futex word. While no thread looks, the channel's own threads
 * do, one for each port that other ranks are reached by, asleep until something comes there.
 *
 *     EAGER  tag | bytes                       a short message
 *     OFFER  tag, nbytes, number               a long one, which stays where it is until
 *     GRANT  number, other             <-      a receive has taken it;
 *     DATA   number | bytes, ...               then come its bytes, in order
 *     SPENT  nbytes                    <-      so much of what was eager is kept no more
 *     LEAVE                                    nothing comes after that
 *
 * Receiving never waits for sending: an answer is kept in its request until there is room. So
 * ranks that fill each other's links cannot block each other. What a receiver must keep is
 * bounded: a sender sends only so many bytes eagerly and offers the rest, and makes only so many
 * offers, beyond which its sends wait.
 *
 * Owner: the user; a communicator that ends takes back all but the struct. Threads: as
 * tutti/message.h says. */

#include "core/comm.h"
#include "core/device/bounce.h"
#include "core/message/message_match.h"
#include "tutti/message.h"
#include "util/vec.h"

#define TTI_EAGER_BYTES ((size_t)16 * 1024)  /* the longest eager message                       */
#define TTI_EAGER_KEPT  ((size_t)256 * 1024) /* of one sender, each with what it costs to keep it */
#define TTI_EAGER_COST  ((size_t)64)
#define TTI_OFFERS_KEPT 16384 /* of one sender, which no receive has taken */

#define TTI_REQUEST_PLACE_BITS 24
#define TTI_REQUEST_PLACES     (UINT32_C(1) << TTI_REQUEST_PLACE_BITS)

enum tti_request_state {
	TTI_REQUEST_WAITS, /* a receive for a message, a send for room  */
	TTI_REQUEST_OFFERED,
	TTI_REQUEST_MOVES,
	TTI_REQUEST_DONE,
};

struct tti_request {
	struct tti_match_entry entry; /* of a receive */
	tutti_request_t id;
	enum tti_request_state state;
	bool is_send, is_waited_for;
	int peer, tag;            /* of a receive: once it has matched */
	struct tti_bounce memory; /* the program's, if it is a device's: data is its copy */
	uint8_t *data;
	size_t room;   /* bytes at data                 */
	size_t nbytes; /* of the message                */
	size_t moved;
	uint64_t other; /* the peer's number of it       */
	tutti_status status;
	struct tti_request_queue *queue; /* of its peer; NULL: in none */
	struct tti_request *next, **link;
	/* over: 1 when it is done; a waiter sleeps on it. sleeps: how many do. */
	_Atomic uint32_t over, sleeps;
};

struct tti_request_queue {
	struct tti_request *first, **end;
};

/* A message that has come before its receive. */
struct tti_kept {
	struct tti_match_entry entry;
	uint64_t offer; /* the sender's number of it; 0: its bytes are here */
	size_t nbytes;
	uint8_t bytes[];
};

struct tti_message_peer {
	struct tti_link *link;
	struct tti_request_queue unsent; /* sends that the peer has not heard of           */
	struct tti_request_queue grants; /* receives that the peer has not heard of        */
	struct tti_request_queue moving; /* sends that the peer has taken                  */
	size_t owes;                     /* bytes sent eagerly that the peer may still keep */
	size_t spent;                    /* its eager bytes that are free: to be told       */
	int offered;                     /* sends whose offer the peer keeps                */
	bool leaves, told_leave;         /* this rank leaves, and has told the peer         */
	bool has_left;                   /* the peer has told this rank that it leaves      */
};

struct tti_message_server {
	struct tutti_channel *channel;
	struct tti_port *port;
	pthread_t thread;
	int wake_fd; /* -1: its port is woken otherwise */
	bool is_running;
};

struct tutti_channel {
	tutti_comm_t handle;             /* of the communicator that it was made on       */
	int pid;                         /* of the process that made it                   */
	_Atomic(struct tti_comm *) comm; /* that one; NULL: it has taken back what it lent */
	tutti_comm_t own_handle;
	struct tti_comm *own; /* the duplicate                                 */

	pthread_mutex_t lock;    /* of its ports and of what follows */
	_Atomic uint32_t wanted; /* by so many threads that sleep for the lock */
	_Atomic int lets_in;     /* servers that sleep until one of them has it */
	struct tti_match match;
	struct tti_message_peer *peers; /* [n] */
	/* By the lower bits of their ids; above them is the number of the request. */
	TTI_VEC(struct tti_request *) requests;
	TTI_VEC(uint32_t) unused; /* places there */
	uint64_t nrequests;       /* made so far  */
	bool broken;              /* nothing moves any more */
	_Atomic bool has_more;    /* the last pump left what could have been moved */

	/* lookers: threads of the user that poll. Then servers are off duty, and sleep on
	 * `duty`. */
	_Atomic int lookers;
	_Atomic uint32_t off_duty, duty;
	_Atomic uint32_t arrivals, probers; /* messages kept so far; who sleeps on that */
	_Atomic bool closing;
	struct tti_message_server servers[TTI_ENGINE_PORTS];
};

/* The communicator ends: take back what it lent to channels. */
void tti_channels_release(struct tti_comm *comm);

#endif
