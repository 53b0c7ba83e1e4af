/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_WIRING_H
#define TTI_CORE_INIT_WIRING_H

/* How the hosts of a communicator are wired and where its ranks are. Every rank keeps it from
 * init, to plan handoffs at calls. Hosts of one class have one text. A communicator that is made
 * of another one keeps only which of its ranks it has.
 *
 * Owner: counted; each holder calls tti_wiring_free(). Threads: any may read, hold and free. */

#include <stdatomic.h>

#include "core/init/host_classes.h"

struct tti_wiring_site {
	uint32_t host_class;
	uint32_t nnets; /* as on the info of its leader */
	uint32_t nets[TTI_HOST_NETS];
	uint64_t rail[TTI_HOST_NETS];
	char name[TTI_HOST_NAME];
};

/* Where a rank is: its site, its endpoint in the graph of the site's class; TTI_NODE_NONE: the
 * first. */
struct tti_wiring_rank {
	uint32_t site, member;
};

struct tti_wiring {
	_Atomic int users;
	int n;
	/* The wiring that these are ranks of, held; NULL: it is this one. */
	struct tti_wiring *of;
	int *ranks; /* [n] */
	struct tti_host_class *classes;
	struct tti_wiring_site *sites;
	struct tti_wiring_rank *by_rank; /* [n] */
	uint32_t nclasses, nsites;
};

/* The site of the host whose lowest rank is `rank`, as its leader sees it. */
struct tti_wiring_site tti_wiring_site_of(const struct tti_host_classes *hosts, int rank);

/* Of hosts that have all texts, which it takes. host_of[rank]: the lowest rank of its host;
 * member[rank]: its endpoint. */
TUTTI_CHECKED tutti_status tti_wiring_create(struct tti_host_classes *hosts, const int *host_of,
					     const uint32_t *member, int n,
					     struct tti_wiring **out);
/* For some of the ranks: ranks[i] is rank i here. `of` NULL: *out is NULL. */
TUTTI_CHECKED tutti_status tti_wiring_project(struct tti_wiring *of, const int *ranks, int n,
					      struct tti_wiring **out);
/* NULL ok. */
void tti_wiring_free(struct tti_wiring *wiring);

/* `wiring` NULL: nothing is known, so each host counts as one endpoint with one NIC. */
struct tti_wiring_rank tti_wiring_rank(const struct tti_wiring *wiring, int rank);
const struct tti_wiring_site *tti_wiring_site(const struct tti_wiring *wiring, uint32_t site);
const struct tti_host_class *tti_wiring_class(const struct tti_wiring *wiring, uint32_t number);
uint32_t tti_wiring_nclasses(const struct tti_wiring *wiring);

#endif
