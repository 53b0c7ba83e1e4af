/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_LANES_H
#define TTI_CORE_LANES_H

/* The lanes of a link, and their state. Threads: the one that runs the calls of the
 * communicator. */

#include "core/comm.h"
#include "tutti/inspect.h"

/* How many lanes a link has; the state of one, zeros if there is no such lane. A link of a
 * transport without lanes has one lane, which is up. */
int tti_lanes_count(const struct tti_port *port, const struct tti_link *link);
void tti_lanes_get(const struct tti_port *port, const struct tti_link *link, int lane,
		   struct tti_lane_info *out);
/* For the user: as much as fits into *out, whose size field is set. */
TUTTI_CHECKED tutti_status tti_lane_show(const struct tti_lane_info *info, struct tutti_lane *out);

#endif
