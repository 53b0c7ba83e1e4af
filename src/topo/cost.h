/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_COST_H
#define TTI_TOPO_COST_H

/* What moving bytes from one place to another costs: latency_ns for the first
 * byte, 1 / bw_gbps ns for each further one. Plain data. */
struct tti_cost {
	double latency_ns;
	double bw_gbps; /* GB/s, one direction */
};

#endif
