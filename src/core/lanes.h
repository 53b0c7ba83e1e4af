/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_LANES_H
#define TTI_CORE_LANES_H

/* What is known of the lanes of a link. Threads: the one that runs the calls of the communicator. */

#include "core/comm.h"
#include "tutti/inspect.h"

/* How many lanes a link has, and what is known of each; zeros of one that is not there. A
 * transport without lanes has one that is always up. */
int tti_lanes_count(const struct tti_port *port, const struct tti_link *link);
void tti_lanes_get(const struct tti_port *port, const struct tti_link *link, int lane,
		   struct tti_lane_info *out);
/* For the user: as much as *out has room for, which its size field says. */
TUTTI_CHECKED tutti_status tti_lane_show(const struct tti_lane_info *info, struct tutti_lane *out);

#endif
