/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_WATCH_H
#define TTI_BOOT_WATCH_H

/* The control plane of a communicator once init is over: a thread that owns the
 * bootstrap's connections, notices within milliseconds that a rank died, spreads
 * the news to all ranks, and asks other ranks what they are doing.
 *
 * News travel along the ring in both directions, so one dead rank does not stop
 * them; a segment between two dead ranks has its own witnesses. A rank that says
 * goodbye first (tti_watch_stop) has not died.
 *
 * For the local kind of bootstrap no thread is needed: spreading news and asking
 * are calls into the peers' callbacks.
 *
 * Policy (what is a stall, what is a mismatch) is the caller's: this is mechanism.
 *
 * Owner: the bootstrap's handle; tti_boot_close() stops it. Threads: notify and
 * ask from any; the callbacks run on the watch thread (local kind: on the caller's)
 * and must not block nor call tti_watch_stop(). */

#include <stdint.h>

#include "boot/boot.h"

#define TTI_FAILURE_TEXT 640

/* The communicator is lost. Goes over the wire: fixed width. */
struct tti_failure {
	int32_t status;              /* a tutti_status <= TUTTI_STATUS_LOST     */
	int32_t failed_rank;         /* the rank it is about, -1: none          */
	int32_t origin;              /* the rank that noticed                   */
	int32_t died;                /* 1: the failed rank's process is dead        */
	char text[TTI_FAILURE_TEXT]; /* for people; NUL-terminated     */
};

#define TTI_CALL_TEXT 128
#define TTI_WAY_TEXT  148

/* The rank has closed the communicator, though not its bootstrap. */
#define TTI_CALL_LEFT (-1)

/* What a rank is doing. Goes over the wire: fixed width. */
struct tti_call {
	uint64_t seq;       /* calls begun on this communicator     */
	uint64_t signature; /* of the call that seq counts          */
	uint64_t name;      /* of its arguments alone: not how it is run, nor at which stage */
	int32_t running;    /* 1: inside it; 0: returned from it; TTI_CALL_LEFT */
	int32_t waiting_on; /* the peer it waits for, -1: none      */
	int32_t stage;      /* of the call: each has a signature of its own */
	char text[TTI_CALL_TEXT]; /* "all_reduce(1024 x float32, sum)" */
	char way[TTI_WAY_TEXT];   /* the algorithm and its cut; "": it has none */
};

struct tti_watch_events {
	void *self;
	/* News, own or another rank's; called once per communicator, the first
	 * news wins. `news` is borrowed for the call. */
	void (*on_lost)(void *self, const struct tti_failure *failure);
	/* Somebody asks what this rank is doing. */
	void (*on_ask)(void *self, struct tti_call *out);
	/* The answer to tti_watch_ask(); call == NULL: the rank has left, for it
	 * has said goodbye or nobody listens where it did. No answer comes from
	 * one that is stopped, busy or cut off: ask again. */
	void (*on_answer)(void *self, int peer, const struct tti_call *call);
};

/* From now on tti_boot_all_gather() and the others may not be called.
 * Collective in the sense that all ranks do it. */
TUTTI_CHECKED tutti_status tti_watch_start(struct tti_boot *boot,
					   const struct tti_watch_events *events);

/* Tell all ranks, this one included (its on_lost runs). Only the first counts. */
void tti_watch_notify(struct tti_boot *boot, const struct tti_failure *failure);

/* Ask `peer`; the answer comes to on_answer, or not. Never blocks. At most one
 * question per peer is kept pending. */
void tti_watch_ask(struct tti_boot *boot, int peer);

/* Say goodbye to the others and end the thread; no callback runs afterwards. */
void tti_watch_stop(struct tti_boot *boot);

#endif
