/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_INIT_H
#define TTI_CORE_INIT_INIT_H

/* Making communicators: here or on a thread of its own, as the config and groups want it.
 *
 * Threads: any. */

#include <stdbool.h>

#include "tutti/tutti.h"

struct tti_maker;
struct tti_meeting;

/* tutti_comm_init_rank_config() with an id that others read from a file of this rank; `meeting` NULL:
 * there is none. The meeting is taken over, and closed when all have come or the init has failed.
 * Errors name the file `secret_path`, if it is not "": it has the secret that the ranks prove. */
TUTTI_CHECKED tutti_status tti_comm_init_met(tutti_comm_t *out, int nranks, int rank,
					     const tutti_unique_id *id, struct tti_meeting *meeting,
					     const char *secret_path, const tutti_config *config);

/* A communicator from a maker (child.h), which is taken, in any case. `config` may be NULL.
 * is_member: *out is written, with the handle. */
TUTTI_CHECKED tutti_status tti_comm_make(struct tti_maker *maker, int nranks, int rank,
					 bool is_member, const tutti_config *config,
					 tutti_comm_t *out);

#endif
