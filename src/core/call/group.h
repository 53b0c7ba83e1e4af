/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_GROUP_H
#define TTI_CORE_GROUP_H

/* From a call of the user to its place: run now, queued on a stream, or kept for the
 * end of the group. Threads: a group belongs to its thread. */

#include "core/comm.h"

tutti_status tti_submit(tutti_comm_t handle, const struct tti_args *args, tutti_stream_t stream);

/* A failure inside a group is the group's: its end returns it, too. Returns `status`. */
tutti_status tti_group_remember(tutti_status status);

/* Whether a group is open on this thread; leave it a handle whose init its end waits
 * for. */
bool tti_group_is_open(void);
TUTTI_CHECKED tutti_status tti_group_add_init(tutti_comm_t handle);
/* Take the last one back: its init did not start. */
void tti_group_drop_init(tutti_comm_t handle);

#endif
