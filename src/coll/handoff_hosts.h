/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_HANDOFF_HOSTS_H
#define TTI_COLL_HANDOFF_HOSTS_H

/* Who of a handoff is where. Hosts are numbered as they come first on side `to`, then on
 * side `from`; those on neither side have no number.
 *
 * Private to coll/handoff*.c. Owner: tti_handoff_hosts_release(). */

#include "coll/handoff.h"
#include "util/arena.h"

struct tti_handoff_members {
	int32_t *first; /* [nhosts + 1]: of each host, into rank[]        */
	int32_t *rank;  /* in the order of the side                       */
	int32_t *place; /* [n]: of each rank on the side, -1: not on it; NULL for doors */
};

struct tti_handoff_hosts {
	struct tti_arena arena;
	int32_t nhosts, nreceiving; /* the first nreceiving have ranks of `to` */
	int32_t *of;                /* [n]: the host of each rank, -1: neither side */
	struct tti_handoff_members from, to;
	/* Of these, who sits beside a NIC: of each NIC one, then of each another. */
	struct tti_handoff_members from_doors, to_doors;
	int32_t *turn; /* from_doors, of each host one after the other */
	int32_t nturns;
};

TUTTI_CHECKED tutti_status tti_handoff_hosts_find(const struct tti_handoff *handoff,
						  struct tti_handoff_hosts *out);
void tti_handoff_hosts_release(struct tti_handoff_hosts *hosts);

static inline int32_t tti_handoff_count(const struct tti_handoff_members *members, int32_t host)
{
	return members->first[host + 1] - members->first[host];
}

static inline const int32_t *tti_handoff_ranks(const struct tti_handoff_members *members,
					       int32_t host)
{
	return members->rank + members->first[host];
}

/* A side whose ranks hold parts; with one rank its part is the whole. */
static inline bool tti_handoff_is_cut(const tutti_side *side)
{
	return side->sharded && side->n > 1;
}

/* Whether a host must be sent what goes to it whole. */
static inline bool tti_handoff_is_remote(const struct tti_handoff_hosts *hosts, int32_t host)
{
	return host < hosts->nreceiving && tti_handoff_count(&hosts->from, host) == 0;
}

#endif
