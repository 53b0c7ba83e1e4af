/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_MESSAGE_H
#define TUTTI_MESSAGE_H

/* Messages with tags, beside the collectives and in no order with them: any source, any tag,
 * receives of unknown length, cancelling, from any thread. Part of tutti.h, which is what to
 * include and which says what holds for all calls: streams, errors.
 *
 * They go through a message channel, which all ranks of a communicator make together. (The channels
 * of a plan are something else: rings and trees.) It has connections of its own (shared memory on
 * one host, TCP between hosts, encrypted if the communicator is), and a thread for each kind of
 * them, which sleeps while nothing comes. So a message arrives, and a send that has returned is
 * carried out, whether or not its rank makes a call meanwhile.
 *
 * Order: messages from one rank to another match in the order in which they were sent: a receive
 * that could take either of two takes the older one. A message goes to the oldest receive that
 * takes it. Sends that several threads make at once have no order.
 *
 * Memory: a short message (up to 16 KiB) is sent at once (eager), and its send is done. Its
 * receiver keeps up to 256 KiB of each sender. Any other message is announced only (rendezvous),
 * and sent when a receive has taken it; until then its send is not done. So if two ranks send to
 * each other before they receive, one should use tutti_message_isend() or tutti_message_irecv(). Up
 * to 16384 messages of each sender are announced: receives and probes find younger ones only after
 * receives have taken older ones. On a communicator with devices the memory may be a device's: a
 * send copies it to the host when the call is made, a receive copies it back when it is waited for.
 * Neither waits for streams.
 *
 * Threads: any number at once on one channel, also while another is in a call on its communicator,
 * but for create and destroy. One thread at a time waits for a request; any may cancel it. Nothing
 * here is part of a group: inside one, calls are done at once.
 *
 * Errors, of all but create and destroy: TUTTI_EINVAL: no such rank, tag or request; nothing was
 * done. TUTTI_ECANCELED of a send or receive: its thread was interrupted (tutti_set_interrupt())
 * before the message was announced or had matched; nothing was done. If it was interrupted later:
 * TUTTI_EABORTED. TUTTI_EPEER and all else that ends the communicator ends the channel; what ends
 * the channel leaves the communicator as it is. All waits end then, and later calls return the
 * same. TUTTI_ETIMEOUT: the communicator has a timeout, and a call without one of its own has
 * waited for longer; the channel is lost. TUTTI_EUSAGE: the channel is another process's, or its
 * communicator was destroyed, perhaps while this call waited. */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A message channel: it carries messages between all ranks of a communicator. Opaque; the caller's,
 * until tutti_channel_destroy(). */
typedef struct tutti_channel *tutti_channel_t;

/* A send or receive that is under way, as a number that is never used again on its channel. 0 is
 * none. */
typedef uint64_t tutti_request_t;

/* For receives and probes: any rank; any tag (tags are 0 or more). */
#define TUTTI_ANY_SOURCE (-1)
#define TUTTI_ANY_TAG    (-1)

/* A message that was received, found or sent: by which rank, its tag, its length. */
typedef struct tutti_message_info {
	int source;
	int tag;
	size_t bytes;
} tutti_message_info;

/* Make a message channel between all ranks of `comm`. Collective. *out is the caller's.
 * TUTTI_EUSAGE: inside a group. TUTTI_ENOMEM, TUTTI_ESYS: there was no memory, thread or file
 * descriptor. If one rank cannot make it, all ranks get an error, here or at their first call on
 * it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_channel_create(tutti_comm_t comm, tutti_channel_t *out);

/* Destroy a message channel. Collective: it waits until all ranks have called it. Destroy a channel
 * before its communicator. After the communicator was destroyed, or the channel has failed, it
 * frees what is left and waits for nobody. Messages that nobody has received are dropped, and so
 * are requests that nobody has waited for.
 *
 * A rank that waits, without a limit of its own, for a message of a rank that is in this call, or
 * for it to take a long message, gets TUTTI_EPEER, as do all. A wait for a message of any rank goes
 * on, because the own rank may still send to itself. A rank that destroys its communicator first
 * tells the ranks that wait the same, behind the messages that it has announced. It waits until
 * there is room for that: up to a second in which the other rank takes nothing.
 *
 * No thread may be in a call on the channel. NULL is fine; else the channel is gone whatever the
 * status says. */
TUTTI_API tutti_status tutti_channel_destroy(tutti_channel_t channel);

/* Send `size` bytes at `data` with `tag` to rank `dest`, which may be the own one. Returns when
 * `data` may be changed, which may be before the message is received. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_message_send(tutti_channel_t channel, const void *data,
							size_t size, int dest, int tag);

/* Receive the oldest message of `source` and `tag`, each of which may be any, into the `size` bytes
 * at `data`. *info says what came; NULL: not wanted. TUTTI_EINVAL, too: the message is longer than
 * `size`; the text has both lengths, and the message stays and can be received with more room. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_message_recv(tutti_channel_t channel, void *data,
							size_t size, int source, int tag,
							tutti_message_info *info);

/* Send `size` bytes at `data` with `tag` to rank `dest`, as tutti_message_send() does, but return
 * at once. `data` must stay and not change until tutti_message_wait() has said that *request is
 * over. Each request needs such a wait, also one that was cancelled. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_message_isend(tutti_channel_t channel, const void *data,
							 size_t size, int dest, int tag,
							 tutti_request_t *request);

/* Receive a message of `source` and `tag` into `size` bytes at `data`, as tutti_message_recv()
 * does, but return at once. `data` must stay, and nobody may read it, until tutti_message_wait()
 * has said that *request is over. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_message_irecv(tutti_channel_t channel, void *data,
							 size_t size, int source, int tag,
							 tutti_request_t *request);

/* Wait until a request is over, for at most `timeout_ms`: 0 only tests, -1 has no limit but the
 * communicator's timeout. *info says what was received or sent; NULL: not wanted. TUTTI_AGAIN: it
 * is not over; with any other status the request is none any more. TUTTI_ECANCELED: it was
 * cancelled. TUTTI_EINVAL: there is no such request, or as for tutti_message_recv(). TUTTI_EUSAGE:
 * another thread waits for it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_message_wait(tutti_channel_t channel,
							tutti_request_t request, int timeout_ms,
							tutti_message_info *info);

/* Cancel a request, if that is still possible: a receive that has matched no message, or a send
 * that was not announced to its receiver. It ends at once then, and its wait returns
 * TUTTI_ECANCELED. TUTTI_AGAIN: too late, it goes on to its end. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_message_cancel(tutti_channel_t channel,
							  tutti_request_t request);

/* Wait until there is a message of `source` and `tag` to receive, for at most `timeout_ms`. The
 * limit is as in tutti_message_wait(). *info describes the oldest message (NULL: not wanted),
 * which stays: where several threads receive, another one may take it first. TUTTI_AGAIN: there
 * is none. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_message_probe(tutti_channel_t channel, int source,
							 int tag, int timeout_ms,
							 tutti_message_info *info);

#ifdef __cplusplus
}
#endif

#endif
