/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_HANDLE_H
#define TTI_CORE_HANDLE_H

/* What the user holds of a communicator.
 *
 * Owner: the user; the memory of a handle is never given back to the heap. Threads: any. */

#include <stdatomic.h>
#include <stdint.h>

#include "tutti/tutti.h"
#include "util/error.h"

struct tti_comm;

/* Memory of freed handles of one kind, oldest first. It is used again as late as possible, so that
 * a stale handle is recognised for long. A list is global: without it a freed handle would be a
 * leak or a dangling pointer. */
struct tti_freed {
	struct tti_freed *next;
};
struct tti_freed_list {
	struct tti_freed *oldest, *newest;
	int n;
};

void tti_freed_keep(struct tti_freed_list *list, struct tti_freed *freed);
/* The oldest, if there are more than `keep`; else NULL. */
struct tti_freed *tti_freed_reuse(struct tti_freed_list *list, int keep);

/* A handle outlives its communicator, so that a call on a destroyed one is an error and not a
 * crash. So is a call in a process that was forked since: that has the memory, but neither threads
 * nor connections. */
struct tutti_comm {
	struct tti_freed freed;
	_Atomic(struct tti_comm *) comm;
	_Atomic int users; /* calls that are looking at comm */
	int pid;           /* of the process that made it    */
	/* Counts the communicators that had this handle in turn. Their addresses may be equal. */
	_Atomic uint64_t generation;
};

TUTTI_CHECKED tutti_status tti_handle_create(struct tti_comm *comm, struct tutti_comm **out);
void tti_handle_free(struct tutti_comm *handle);

/* The communicator of a handle, in any state; it is not freed before tti_handle_leave().
 * TUTTI_EINVAL: the handle is NULL. TUTTI_EUSAGE: the communicator was destroyed, or belongs to
 * another process. After an error there is nothing to leave. find(): NULL in place of an error,
 * without a text. */
TUTTI_CHECKED tutti_status tti_handle_enter(struct tutti_comm *handle, struct tti_comm **out);
struct tti_comm *tti_handle_find(struct tutti_comm *handle);
void tti_handle_leave(struct tutti_comm *handle);

/* Keep this thread's error text as that of the handle's communicator, if it has one and `status`
 * is an error; returns `status`. Each public call does so before it returns. fail(): with
 * tti_fail(). */
tutti_status tti_handle_note(struct tutti_comm *handle, tutti_status status);
TUTTI_CHECKED TUTTI_PRINTF(3, 4) tutti_status
	tti_handle_fail(struct tutti_comm *handle, tutti_status status, const char *fmt, ...);

/* The end of a public call that has entered: tti_comm_note(), then tti_handle_leave(); returns
 * `status`. */
tutti_status tti_handle_end(struct tutti_comm *handle, struct tti_comm *comm, tutti_status status);

/* TUTTI_EINVAL: `out` is NULL in place of the address of `what`. */
TUTTI_CHECKED tutti_status tti_handle_check_out(struct tutti_comm *handle, const void *out,
						const char *what);

/* The error of a call that is made while another one is under way (sequence.h). */
tutti_status tti_handle_fail_busy(struct tutti_comm *handle);

/* Take the communicator out of the handle, to free it: no call gets it any more, and
 * those that had it have left. NULL: another thread was first. */
struct tti_comm *tti_handle_take(struct tutti_comm *handle);

/* Another thread destroys the communicator: wait until it has taken back what it lent to a channel
 * or a window, whose pointer to it is NULL then. */
void tti_handle_await_end(_Atomic(struct tti_comm *) const *lender);

#endif
