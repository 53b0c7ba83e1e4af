/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_PING_H
#define TTI_INSIGHT_PING_H

/* Measuring the link between two ranks:
 *
 *     ping_run.c    rank a leads, b follows: reach, open lanes, measure each
 *     ping_find.c   what is wrong with the figures; pure
 *     ping.c        the API
 *
 * Owner: tutti_ping_free(). Threads: one while it is made, any to read. */

#include "core/lanes.h"
#include "tutti/insight.h"
#include "util/vec.h"

/* One lane, or all together. Index 0 is rank a, 1 is rank b; [0] of a direction is from a
 * to b. Goes over the wire: fixed width. */
struct tti_ping_measure {
	uint32_t measured, round_trips;
	double rtt_least_us, rtt_us, rtt_p99_us;
	double gbps[2], both_gbps[2];
	double least[2]; /* of the takes of which gbps is the best */
	uint64_t resent[2];
	uint64_t sent[2];  /* bytes, by each rank */
	double starved[2]; /* share of the time in which the rank wanted a core and had none */
};

struct tti_ping_lane {
	struct tti_lane_info side[2];
	struct tti_ping_measure measure;
};

struct tti_ping_finding {
	int lane;
	const char *rule, *severity, *remedy;
	char *what;
};

struct tutti_ping_result {
	int rank[2]; /* a, b */
	bool reached;
	char *why;           /* not reached */
	bool is_local;       /* over shared memory */
	bool oversubscribed; /* a machine has more ranks than cores */
	struct tti_ping_lane *lanes;
	int nlanes;
	struct tti_ping_measure together;
	TTI_VEC(struct tti_ping_finding) findings;
	bool starved; /* of memory, while findings were made */
};

/* Measure; `ping` has its ranks. Errors are those of a call, to be settled: *mismatch_peer
 * is -1 or who sent something else. */
TUTTI_CHECKED tutti_status tti_ping_run(struct tti_comm *comm,
					const struct tutti_ping_options *options,
					struct tutti_ping_result *ping, int *mismatch_peer);

/* GB/s that both NICs of a lane claim, 0: one of them does not say. */
double tti_ping_claim(const struct tti_ping_lane *lane);

/* Fills ping->findings. */
TUTTI_CHECKED tutti_status tti_ping_find(struct tutti_ping_result *ping);

#endif
