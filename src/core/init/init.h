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

/* How ranks meet that have ids. */
struct tti_init_ids {
	const tutti_unique_id *ids; /* [nids] */
	int nids;
	/* The file that the other ranks read the id from, which is taken over, in any case, and
	 * closed when all have come or the init has failed; NULL: there is none. */
	struct tti_meeting *meeting;
	/* For errors: the file with the secret that the ranks prove. NULL or "": it is in no
	 * file. */
	const char *secret_path;
};

/* A communicator by ids: tutti_comm_init_rank_scalable() and all that come to it. */
TUTTI_CHECKED tutti_status tti_init_by_ids(tutti_comm_t *out, int nranks, int rank,
					   const struct tti_init_ids *ids,
					   const tutti_config *config);

/* A communicator from a maker (child.h), which is taken, in any case. `config` may be NULL.
 * is_member: *out is written, with the handle. */
TUTTI_CHECKED tutti_status tti_comm_make(struct tti_maker *maker, int nranks, int rank,
					 bool is_member, const tutti_config *config,
					 tutti_comm_t *out);

#endif
