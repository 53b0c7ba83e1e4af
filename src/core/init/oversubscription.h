/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_OVERSUBSCRIPTION_H
#define TTI_CORE_INIT_OVERSUBSCRIPTION_H

/* Machines with more ranks than cores. Pure. */

#include "core/init/peer_info.h"

/* The ranks on a machine, and the cores that they have together. */
struct tti_oversubscription {
	int nranks, ncores;
};

/* out[rank]: of its machine. */
TUTTI_CHECKED tutti_status tti_oversubscription_find(const struct tti_peers *peers,
						     struct tti_oversubscription *out);

#endif
