/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MESSAGE_H
#define TTI_CORE_MESSAGE_H

/* Channels of messages in parts: message.c makes and ends them, message_serve.c has their
 * threads, message_move.c moves bytes, message_request.c keeps requests, message_call.c has the
 * calls, message_match.c says what belongs together.
 *
 * A channel has a communicator of its own, a duplicate of the one that it is made on that makes
 * no calls: its ports and links carry the messages, its watch says who died. All of it is used
 * under one lock by whoever has something to do. A thread that waits looks for a while whether
 * something comes, then sleeps on a word of what it waits for. While no thread looks, the
 * channel's own threads do, one for each port that others can be reached by, asleep until
 * something comes there.
 *
 *     EAGER  tag | bytes                       a short message
 *     OFFER  tag, nbytes, number               a long one, which stays where it is until
 *     GRANT  number, other             <-      a receive has taken it;
 *     DATA   number | bytes, ...               then come its bytes, in order
 *     SPENT  nbytes                    <-      so much of what was eager is kept no more
 *     LEAVE                                    nothing comes after that
 *
 * What is received never waits for what is to be sent: answers are kept in the requests that they
 * are about until there is room. So ranks that fill each other's links cannot block each other.
 * What a receiver must keep is bounded by what each sender may send eagerly, beyond which it
 * offers, and by how much it may offer, beyond which its sends wait.
 *
 * Owner: the user, and until that comes the communicator, which takes back all but the struct.
 * Threads: as message.h says. */

#include "core/comm.h"
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
	int peer, tag; /* of a receive: once it has matched */
	uint8_t *data;
	size_t room;   /* bytes at data                 */
	size_t nbytes; /* of the message                */
	size_t moved;
	uint64_t other; /* the peer's number of it       */
	tutti_status status;
	struct tti_request_queue *queue; /* of its peer; NULL: in none */
	struct tti_request *next, **link;
	/* 1: it is over. Who waits for it sleeps on that. */
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
	struct tti_request_queue unsent; /* sends of which it has heard nothing            */
	struct tti_request_queue grants; /* receives that it has not heard of              */
	struct tti_request_queue moving; /* sends that it has taken                        */
	size_t owes;                     /* bytes sent eagerly that it may still keep       */
	size_t spent;                    /* of its, which it has not heard are kept no more */
	int offered;                     /* sends of which it keeps the offer               */
	bool leaves, told_leave;         /* this rank does so, and has said it          */
	bool has_left;                   /* it has said it to this rank                 */
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

	/* How many threads look whether something comes; whether a server of the channel leaves
	 * it to them, and what it sleeps on then. */
	_Atomic int lookers;
	_Atomic uint32_t off_duty, duty;
	_Atomic uint32_t arrivals, probers; /* messages kept so far; who sleeps on that */
	_Atomic bool closing;
	struct tti_message_server servers[TTI_ENGINE_PORTS];
};

/* Hold its communicator, so that nobody frees it meanwhile. TUTTI_EUSAGE: it was destroyed, also where
 * its handle is another one's by now. */
TUTTI_CHECKED tutti_status tti_channel_enter(struct tutti_channel *channel, struct tti_comm **comm);

/* The communicator ends: all channels that are left lose what is its. */
void tti_channels_release(struct tti_comm *comm);

/* -- message_request.c: under the lock --------------------------------------- */

/* A new request; NULL: out of memory. */
struct tti_request *tti_request_create(struct tutti_channel *channel);
struct tti_request *tti_request_find(const struct tutti_channel *channel, tutti_request_t id);
/* It is in no queue any more, and freed. */
void tti_request_free(struct tutti_channel *channel, struct tti_request *request);
void tti_request_end(struct tti_request *request, tutti_status status);

/* As the last one. From its queue, if it is in one. Both take constant time. */
void tti_request_push(struct tti_request_queue *queue, struct tti_request *request);
void tti_request_drop(struct tti_request *request);
/* The first one of a queue that is not empty. */
struct tti_request *tti_request_pop(struct tti_request_queue *queue);

/* -- message_move.c: under the lock ------------------------------------------ */

/* Some of what can be done without waiting, so that others get the lock; whether that was anything. */
bool tti_message_pump(struct tutti_channel *channel);
/* Whether something waits for room, or the last pump left something. */
bool tti_message_is_busy(const struct tutti_channel *channel);

/* Begin. A receive whose message is too long: TUTTI_EINVAL, and nothing was done. */
void tti_message_begin_send(struct tutti_channel *channel, struct tti_request *request);
TUTTI_CHECKED tutti_status tti_message_begin_receive(struct tutti_channel *channel,
						     struct tti_request *request);
/* False: too late. */
bool tti_message_take_back(struct tutti_channel *channel, struct tti_request *request);
void tti_message_drop_kept(struct tutti_channel *channel);

/* -- message_call.c ----------------------------------------------------------- */

/* How a wait goes on. Zeroed but for timeout_ms, which is -1 for none. */
struct tti_message_wait {
	int64_t timeout_ms, since_ns;
	int peer;        /* that was looked for last */
	int64_t gone_ns; /* since when it is known that this one is gone; 0: it is not */
	uint32_t rounds;
	bool looks;
};

/* Look whether something comes, then back off; not under the lock. TUTTI_OK: see whether the wait
 * is over, which is where *word is no longer `seen`; TUTTI_AGAIN: its time is, or this thread is interrupted. `what` is waited
 * for. */
TUTTI_CHECKED tutti_status tti_message_backoff(struct tutti_channel *channel,
					       struct tti_message_wait *wait,
					       _Atomic uint32_t *word, uint32_t seen,
					       const char *what);
/* Whether the watch says that a rank has closed the channel's communicator, which it may have done
 * without a word on the links, and all that it has sent was taken from them: what is waited for has to be
 * looked at after it. False in a wait with a limit of its own. That communicator is in no call, so its
 * questions are the channel's: one at a time, of whoever waits. Not under the lock. */
bool tti_message_is_gone(struct tutti_channel *channel, struct tti_message_wait *wait, int peer);
/* Then the channel is lost. `doing`: what the own rank does with it. */
TUTTI_CHECKED tutti_status tti_message_lose_to_gone(struct tutti_channel *channel, int peer,
						    const char *doing);
/* After the last of them. */
void tti_message_wait_end(struct tutti_channel *channel, struct tti_message_wait *wait);

/* -- message_serve.c ---------------------------------------------------------- */

/* As pthread_mutex_lock(), for all but the servers, which make way for it. */
void tti_channel_lock(struct tutti_channel *channel);

TUTTI_CHECKED tutti_status tti_channel_start_servers(struct tutti_channel *channel);
/* Fine if none was started. */
void tti_channel_stop_servers(struct tutti_channel *channel);

/* Not under the lock. TUTTI_OK, or what ended the channel, or its communicator. */
TUTTI_CHECKED tutti_status tti_channel_async_error(struct tutti_channel *channel);
/* Tell the communicator of the channel what broke, if anything did. */
void tti_channel_report(struct tutti_channel *channel);
/* The caller does not look any more, or not soon: let the channel's threads. */
void tti_channel_wake_servers(struct tutti_channel *channel);

#endif
