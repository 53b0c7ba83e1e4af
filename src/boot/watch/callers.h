/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_CALLERS_H
#define TTI_BOOT_CALLERS_H

/* Some ranks of a communicator call something together, and the others know nothing of it. A rank that
 * waits there for another one asks it, by mail, what it does:
 *
 *     it is in the same call, and waits for a third       that one is asked next
 *     it is in a call with the same tag that has this      both calls fail: each rank is in one call
 *     rank too, but other ranks                            with a tag at a time, so neither will end
 *     none of these                                        it has not called yet: wait
 *
 * Ranks that have not called answer too, once they have made such a call before; others are silent.
 *
 * Owner: tti_callers_free(), after all calls have left. Threads: any; one waits in a call. */

#include <stdbool.h>
#include <stdint.h>

#include "boot/boot.h"

#define TTI_CALLERS_TEXT 512

struct tti_callers;

/* What a rank said of a call. Goes over the wire: fixed width. */
struct tti_caller_answer {
	uint64_t context; /* that was asked for                                    */
	uint64_t other;   /* context of a call instead of it, 0: there is none     */
	int32_t has_it;   /* it is in that call, or was                            */
	int32_t waits_on; /* the rank that it waits for there, -1: none            */
	int32_t tag;      /* of the other                                          */
	int32_t excludes; /* 1: this rank is not in the other call                 */
	char ranks[160];  /* of the other, in words                                */
};

/* One call, on one rank; the caller's memory while it is in it. */
struct tti_group_call {
	int tag, n;
	const int *ranks; /* [n]: in the communicator, in their order; borrowed */
	uint64_t context; /* set by enter(): alike on all ranks                 */

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

/* For calls of some ranks of `parent`, which watches and lives longer. The context is as in
 * tti_boot_sub_create(). */
TUTTI_CHECKED tutti_status tti_callers_create(struct tti_boot *parent, uint64_t context,
					      struct tti_callers **out);
/* NULL is fine. */
void tti_callers_free(struct tti_callers *callers);

/* This rank begins a call; the context is another one for each. TUTTI_EUSAGE: it is in another call
 * with this tag. */
TUTTI_CHECKED tutti_status tti_callers_enter(struct tti_callers *callers,
					     struct tti_group_call *call);
void tti_callers_leave(struct tti_callers *callers, struct tti_group_call *call);

/* To be called every now and then while this rank waits in the call for `peer`, a rank of the
 * communicator. TUTTI_AGAIN: go on waiting. TUTTI_EMISMATCH: there is no use, the text says why;
 * is_late: TUTTI_ETIMEOUT, with the rank that has not called. */
TUTTI_CHECKED tutti_status tti_callers_wait(struct tti_callers *callers,
					    struct tti_group_call *call, int peer, bool is_late,
					    int64_t timeout_ms);

#endif
