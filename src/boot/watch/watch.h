/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_WATCH_H
#define TTI_BOOT_WATCH_H

/* The watch: failure detector and control plane of a communicator once init is over. A thread, the
 * watcher, owns the connections of the bootstrap. It notices within milliseconds that a rank died,
 * notifies all ranks, and asks other ranks what they are doing.
 *
 * Notifications travel along the ring in both directions, so one dead rank does not stop them; the
 * ranks between two dead ones have witnesses of their own. A rank that says goodbye first
 * (tti_watch_stop()) has not died.
 *
 * The local kind of bootstrap needs no thread: it calls the peers' callbacks.
 *
 * This is mechanism: the caller decides what counts as a stall or a mismatch.
 *
 * Owner: the handle of the bootstrap; tti_boot_close() stops it. Threads: any may notify and ask. The
 * callbacks run on the watcher (local: on the thread that notifies or asks); they must not block, nor
 * call tti_watch_stop(). */

#include <stdint.h>

#include "boot/boot.h"

#define TTI_FAILURE_TEXT 640

/* A failure notification: the communicator is lost. Goes over the wire: fixed width. */
struct tti_failure {
	int32_t status;              /* a tutti_status <= TUTTI_STATUS_LOST   */
	int32_t failed_rank;         /* the rank that failed, -1: none        */
	int32_t origin;              /* the rank that noticed                 */
	int32_t died;                /* 1: the process of failed_rank is dead */
	char text[TTI_FAILURE_TEXT]; /* for people; NUL-terminated            */
};

#define TTI_CALL_TEXT 128
#define TTI_WAY_TEXT  148

/* As `running`: the rank has closed the communicator, but not its bootstrap yet. */
#define TTI_CALL_LEFT (-1)

/* What a rank is doing. Goes over the wire: fixed width. */
struct tti_call {
	uint64_t seq;             /* calls begun on this communicator                */
	uint64_t signature;       /* of the call that seq counts                     */
	uint64_t name;            /* hash of its arguments, the same at every stage  */
	int32_t running;          /* 1: inside it; 0: returned from it; or TTI_CALL_LEFT */
	int32_t waiting_on;       /* the peer that it waits for, -1: none            */
	int32_t stage;            /* each stage of a call has its own signature      */
	char text[TTI_CALL_TEXT]; /* "all_reduce(1024 x float32, sum)"               */
	char way[TTI_WAY_TEXT];   /* the algorithm and how it cuts the data; "": none */
};

struct tti_watch_events {
	void *self;
	/* A failure that this rank or another one found. Called once for a communicator: the first
	 * one counts. `failure` is borrowed for the call. */
	void (*on_lost)(void *self, const struct tti_failure *failure);
	/* Another rank asks what this one is doing. */
	void (*on_ask)(void *self, struct tti_call *out);
	/* The answer to tti_watch_ask(). NULL: the peer has left; it has said goodbye, or nobody
	 * listens where it did. A peer that is stopped, busy or cut off does not answer: ask again. */
	void (*on_answer)(void *self, int peer, const struct tti_call *call);
	/* It is time for what the caller does from time to time. Returns when that is next
	 * (tti_now_ns), TTI_NEVER: after the next tti_watch_tick(). NULL: not wanted. */
	int64_t (*on_tick)(void *self);
};

/* All ranks do this. From now on tti_boot_all_gather() and tti_boot_broadcast() are errors. */
TUTTI_CHECKED tutti_status tti_watch_start(struct tti_boot *boot,
					   const struct tti_watch_events *events);

/* Notify all ranks of a failure, this one included: its on_lost runs. Only the first one counts. */
void tti_watch_notify(struct tti_boot *boot, const struct tti_failure *failure);

/* Ask `peer` what it is doing; on_answer gets the answer, if there is one. Never blocks. At most one
 * question to a peer is pending. */
void tti_watch_ask(struct tti_boot *boot, int peer);

/* on_tick runs soon, on the watcher. false: this kind of bootstrap has no watcher of its own, and never
 * calls on_tick. */
bool tti_watch_tick(struct tti_boot *boot);

/* Say goodbye to the others and end the watcher; no callback runs afterwards. */
void tti_watch_stop(struct tti_boot *boot);

#endif
