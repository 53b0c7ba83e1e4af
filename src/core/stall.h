/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_STALL_H
#define TTI_CORE_STALL_H

/* Why a call does not end, and what a failure of it means for the communicator.
 *
 * Threads: any; the state is under the communicator's lock. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

struct tti_call;
struct tti_comm;
struct tti_failure;

/* What is known about a rank that a call waits for. Under comm->lock. */
struct tti_stall {
	int suspect;       /* who was asked last, -1: nobody          */
	int64_t began_ns;  /* of the wait that this is about          */
	int64_t asked_ns;  /* since when the suspect is silent        */
	int64_t round_ns;  /* when a round of asking began last       */
	int64_t warned_ns; /* when the last warning was written       */
	bool answered;
	int hops;        /* along the chain of who waits for whom, this round */
	int left;        /* the suspect said goodbye: looks since then that found nothing */
	int64_t left_ns; /* since when these were enough; 0: they are not */
};

/* Events of the engine and of the watch, of communicator `comm`. */
tutti_status tti_stall_on_wait(void *comm, int64_t since_ns, int peer);
void tti_stall_on_ask(void *comm, struct tti_call *out);
void tti_stall_on_answer(void *comm, int peer, const struct tti_call *call);
void tti_stall_on_lost(void *comm, const struct tti_failure *failure);

/* A call has ended with `status`: all ranks are notified of a failure, as they may be out of step.
 * mismatch_peer: whose message belongs to another call; -1: nobody's. */
tutti_status tti_stall_settle(struct tti_comm *comm, tutti_status status, int mismatch_peer);

/* Messages of `peer` belong to another call: find out which, notify all. `expected`: what else
 * may be wrong, if the peer is in this very call; or NULL. */
tutti_status tti_stall_mismatch(struct tti_comm *comm, int peer, const char *expected);

/* A connection broke: wait a moment for news that say why; whether the communicator is lost by
 * then. `user`: another communicator whose end is as good a reason; NULL: there is none. */
bool tti_stall_await_news(const struct tti_comm *comm, const struct tti_comm *user);

/* Whether something of a rank that has left since `left_ns` may be on its way. */
bool tti_stall_may_still_come(const struct tti_comm *comm, int peer, int64_t left_ns);

/* The text of a port's failure, with the name of the peer: a transport knows its number alone. */
void tti_stall_name_failure(const struct tti_comm *comm, int peer, const char *failure, char *buf,
			    size_t size);

/* A port failed: wait a moment for news that say why, else notify all. `user`: as above. */
tutti_status tti_stall_port_failed(struct tti_comm *comm, struct tti_comm *user,
				   tutti_status status);

#endif
