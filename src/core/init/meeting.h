/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MEETING_H
#define TTI_CORE_MEETING_H

/* How the ranks of a job meet through a file (TUTTI_COMM_FILE): rank 0 makes it and writes the id
 * into it, the others wait until it is there.
 *
 * The file says whether its rank 0 is still there: rank 0 holds a lock on it until all have come.
 * A rank 0 that fails leaves the file with the text of its error, for ranks that come later. A file
 * that nobody holds is of an earlier run, and the next rank 0 replaces it. Where the file system
 * has no locks, or the file was made on another host, a file without such a text counts as held.
 *
 * Owner: tti_meeting_close(). Threads: one at a time. */

#include <stdbool.h>

#include "tutti/tutti.h"

struct tti_meeting;
struct tti_timeout;

/* Rank 0: make the id and the file. If there can be no id, the other ranks read why. TUTTI_EUSAGE:
 * the name is taken, by another job or by what is no such file. */
TUTTI_CHECKED tutti_status tti_meeting_open(const char *path, tutti_unique_id *id,
					    struct tti_meeting **out);

/* The other ranks: wait for the file of this job's rank 0 and read the id, for at most
 * `timeout`. TUTTI_EPEER: that rank 0 has ended. */
TUTTI_CHECKED tutti_status tti_meeting_read(const char *path, const struct tti_timeout *timeout,
					    tutti_unique_id *id, struct tti_meeting **out);

/* `status` is how this rank's connecting ended. Another rank to which rank 0 is gone, or silent, gets
 * rank 0's own error added to its text, if rank 0 has left it in the file. Returns `status`. NULL is
 * fine. */
tutti_status tti_meeting_explain(const struct tti_meeting *meeting, tutti_status status);

/* On rank 0: all ranks have come, and the file goes; or rank 0 has failed, and this thread's error
 * text is what the others will read. NULL is fine. */
void tti_meeting_close(struct tti_meeting *meeting, bool have_met);

#endif
