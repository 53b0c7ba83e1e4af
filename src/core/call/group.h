/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_GROUP_H
#define TTI_CORE_CALL_GROUP_H

/* Groups: calls are collected on the thread and run together at the end (group_end.c).
 *
 * Owner: the thread that opened it. Threads: each has its own. */

#include <stdbool.h>

#include "core/call/args.h"
#include "core/comm.h"
#include "tutti/tutti.h"
#include "util/fork.h"
#include "util/vec.h"

struct tti_queued_call {
	tutti_comm_t handle; /* entered until the group has run */
	struct tti_comm *comm;
	tutti_stream_t stream;
	struct tti_args args;
	bool is_launched; /* in its stream of CUDA; see tti_submit_place() */
};

struct tti_call_group {
	int depth, pid;     /* 0 deep: there is none; of the process that opened it */
	tutti_status error; /* the first, and its text */
	char text[TTI_ERROR_TEXT];
	TTI_VEC(struct tti_queued_call) calls;
	TTI_VEC(tutti_comm_t) inits;
};

/* The group of this thread, open or not. */
extern _Thread_local struct tti_call_group tti_call_group;

/* A child that was forked inside a group has the memory of it, and nothing to run it by. */
static inline bool tti_group_is_open(void)
{
	return tti_call_group.depth > 0 && tti_call_group.pid == tti_fork_pid();
}

/* TUTTI_EUSAGE inside a group, where `name`() is no call of one. */
TUTTI_CHECKED tutti_status tti_group_refuse(tutti_comm_t handle, const char *name);

/* A failure inside a group is the group's: its end returns it, too. Returns `status`. */
tutti_status tti_group_remember(tutti_status status);

/* Keep a call until the end of the group. Its communicator is entered as long. */
TUTTI_CHECKED tutti_status tti_group_add_call(const struct tti_queued_call *call);

/* The end of the group waits for the init of a handle. drop(): the last one added did not start. */
TUTTI_CHECKED tutti_status tti_group_add_init(tutti_comm_t handle);
void tti_group_drop_init(tutti_comm_t handle);

/* Drop what was collected, and give the communicators back. */
void tti_group_clear(void);

#endif
