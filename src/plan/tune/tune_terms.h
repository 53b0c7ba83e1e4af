/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_TUNE_TERMS_H
#define TTI_PLAN_TUNE_TERMS_H

/* The terms of an algorithm: what it does, in numbers that are free of speed. Private to the model
 * (tune.h) and its tests. Threads: any. */

#include "plan/tune/tune.h"

/* Ranks in host memory. Bytes are in units of the vector's. Near: between ranks of one
 * node, through shared memory; far: between nodes, through sockets. */
struct tti_tune_terms {
	double near_hops, far_hops; /* one after the other, until the last rank is done */
	double near_messages;       /* that the busiest rank gets                       */
	double far_messages;        /* that the busiest rank sends and gets             */
	double chunks;              /* a message is a chunk, or a slice of it           */
	double read, written;       /* of slots in shared memory, by the busiest rank   */
	double touched;             /* of the user's buffers, by the busiest rank       */
	double socket;              /* through sockets, in and out, of the busiest rank */
	double wire;                /* out of the busiest node, or into it              */
	double senders;             /* nodes that send to one at a time, 0: 1           */
	double busy;                /* ranks of a node that do this, 0: all             */
	bool overlaps;  /* a round need not wait for the one before: it is cut into parts */
	bool pipelined; /* slices move along the hops: the last begins when the first has
			 * passed them all */
};

/* false: that collective has no such algorithm. */
bool tti_tune_host_terms(const struct tti_tune_machine *machine, tutti_collective coll,
			 enum tti_tune_algo algo, struct tti_tune_terms *out);
struct tti_tune_time tti_tune_host_time(const struct tti_tune_constants *constants,
					const struct tti_tune_machine *machine,
					const struct tti_tune_terms *terms, size_t nbytes);

#endif
