/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_MEETING_H
#define TTI_CORE_INIT_MEETING_H

/* How the ranks of a job meet through a file (TUTTI_COMM_FILE): rank 0 makes the file and writes
 * the id into it, the others wait until it is there.
 *
 * Rank 0 holds a lock on the file until all ranks have come, which tells the others that it is
 * alive. A rank 0 that fails leaves the file with the text of its error, for ranks that come
 * later. A file without a lock is of an earlier run, and the next rank 0 replaces it. If the
 * file system has no locks, or the file was made on another host, a file without an error counts
 * as locked.
 *
 * Owner: tti_meeting_close(). Threads: one at a time. */

#include <stdbool.h>

#include "tutti/tutti.h"

struct tti_meeting;
struct tti_timeout;

/* Rank 0: make the id and the file. If the id cannot be made, the other ranks read why.
 * TUTTI_EUSAGE: another job has a file of that name, or it is another kind of file. */
TUTTI_CHECKED tutti_status tti_meeting_open(const char *path, tutti_unique_id *id,
					    struct tti_meeting **out);

/* The other ranks: wait at most `timeout` for the file of this job's rank 0, and read the id.
 * TUTTI_EPEER: rank 0 has ended. */
TUTTI_CHECKED tutti_status tti_meeting_read(const char *path, const struct tti_timeout *timeout,
					    tutti_unique_id *id, struct tti_meeting **out);

/* This rank's connecting has ended with `status`. If rank 0 is gone or silent and has left its
 * own error in the file, add that to the error text. Returns `status`. NULL is fine. */
tutti_status tti_meeting_explain(const struct tti_meeting *meeting, tutti_status status);

/* Rank 0: if all ranks have met, remove the file; else write this thread's error text into it.
 * NULL is fine. */
void tti_meeting_close(struct tti_meeting *meeting, bool have_met);

#endif
