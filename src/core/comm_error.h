/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_COMM_ERROR_H
#define TTI_CORE_COMM_ERROR_H

/* The error state of a communicator. The first failure (a peer died, ranks called different things,
 * abort, a deadline) is its asynchronous error: every call from then on returns it.
 *
 * Threads: any, under the communicator's lock where it says so. */

#include "core/comm.h"

/* The communicator is lost, for this rank. Only the first error counts. */
void tti_comm_mark_failed(struct tti_comm *comm, tutti_status status, const char *text);

/* The same for all ranks, which are notified; `failed_rank`: the rank that failed, -1: none. */
void tti_comm_notify_failure(struct tti_comm *comm, tutti_status status, int failed_rank,
			     const char *text);

/* End it for this rank with TUTTI_EABORTED, for the others with TUTTI_EPEER: this rank `what`. */
void tti_comm_abort(struct tti_comm *comm, const char *what);

/* Whether this thread shall wait no longer (tutti_set_interrupt()): then the communicator is
 * aborted. Waits ask every 50 ms. */
bool tti_comm_interrupted(struct tti_comm *comm);

/* The asynchronous error, with its text as that of this thread; TUTTI_OK: there is none. */
tutti_status tti_comm_async_error(struct tti_comm *comm);

/* The status of the init, which is over, with its text as that of this thread. */
tutti_status tti_comm_init_error(struct tti_comm *comm);

/* TUTTI_OK if calls are allowed now: init done, not finalized, not lost. Does not wait
 * for an init that is under way: TUTTI_EUSAGE. */
TUTTI_CHECKED tutti_status tti_comm_usable(struct tti_comm *comm);

/* Keep this thread's error text as the communicator's; returns `status`. */
tutti_status tti_comm_note(struct tti_comm *comm, tutti_status status);

/* The text of its last error; "": there was none. The lock is held, or nobody else is there. */
const char *tti_comm_last_text(const struct tti_comm *comm);

/* A communicator that is being made (`child`) follows another one (follow.h), whose error `status`
 * ends the making if it concerns it. The lock of the other one is held. */
void tti_comm_stop_follower(struct tti_comm *child, tutti_status status);

#endif
