/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_CALLERS_H
#define TTI_BOOT_CALLERS_H

/* Some ranks of a communicator make a call together, of which the others know nothing. A rank that waits
 * there for another rank asks it, by mail, what it does:
 *
 *     it is in the same call, and waits for a third       that rank is asked next
 *     it is in a call with the same tag that has this      both calls fail: a rank is in one call with
 *     rank too, but other ranks                            a tag at a time, so neither can end
 *     none of these                                        it has not called yet: wait
 *
 * A rank answers before it has made the call, too, if it has made such a call earlier; others are silent.
 *
 * Owner: tti_callers_free(), after all calls have left. Threads: any; one waits in a call. */

#include <stdbool.h>
#include <stdint.h>

#include "boot/boot.h"

#define TTI_CALLERS_TEXT 512

struct tti_callers;

/* What a rank says about a call. Goes over the wire: fixed width. */
struct tti_caller_answer {
	uint64_t context; /* of the call that the question was about               */
	uint64_t other;   /* ... of a call that it is in instead, 0: none          */
	int32_t has_it;   /* it is in that call, or was                            */
	int32_t waits_on; /* the rank that it waits for there, -1: none            */
	int32_t tag;      /* of the other call                                     */
	int32_t excludes; /* 1: this rank is not in the other call                 */
	char ranks[160];  /* of the other call, in words                           */
};

/* One call, on one rank; the caller's memory while it is in it. */
struct tti_group_call {
	int tag, n;
	const int *ranks; /* [n]: in the communicator, in their order; borrowed */
	uint64_t context; /* set by count(): alike on all ranks                 */

	/* Private to callers.c, under its lock. */
	struct tti_group_call *next;
	uint64_t list; /* hash of the ranks */
	int64_t began_ns, waits_ns, asked_ns;
	int waits_on, suspect; /* suspect: who is asked, -1: nobody yet               */
	int blamed;            /* who has not called, as far as is known; -1: nobody  */
	bool is_answered, is_broken;
	struct tti_caller_answer answer, excuse; /* of the suspect, of who is blamed   */
	char broken[TTI_CALLERS_TEXT];
};

/* For calls of ranks of `parent`, which watches and lives longer. The context is as in
 * tti_boot_sub_create(). */
TUTTI_CHECKED tutti_status tti_callers_create(struct tti_boot *parent, uint64_t context,
					      struct tti_callers **out);
/* NULL is fine. */
void tti_callers_free(struct tti_callers *callers);

/* This rank begins a call, of which tag, n and ranks are set, and is in it until tti_callers_leave(): it gets
 * its context, in which the others wait. TUTTI_EUSAGE: this rank is in another call with this tag, and has
 * begun nothing. */
TUTTI_CHECKED tutti_status tti_callers_enter(struct tti_callers *callers,
					     struct tti_group_call *call);
/* The call is `to` from now on, with a copy of its ranks. */
void tti_callers_move(struct tti_callers *callers, const struct tti_group_call *from,
		      const int *ranks, struct tti_group_call *to);
void tti_callers_leave(struct tti_callers *callers, struct tti_group_call *call);

/* To be called now and then while this rank waits in the call for `peer`, a rank of the communicator.
 * TUTTI_AGAIN: go on waiting. TUTTI_EMISMATCH: the call cannot end; the text says why. is_late gives
 * TUTTI_ETIMEOUT, with the rank that has not called. */
TUTTI_CHECKED tutti_status tti_callers_wait(struct tti_callers *callers,
					    struct tti_group_call *call, int peer, bool is_late,
					    int64_t timeout_ms);

#endif
