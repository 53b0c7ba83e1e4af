/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_SCORE_H
#define TTI_PLAN_SCORE_H

/* The score of a set of channels, to tell the better one of two sets. Bandwidth comes first, but
 * many sets carry about as much; then these decide, in this order:
 *
 *     far        what goes through host memory or over a socket's links is to be little:
 *                it takes memory bandwidth and a CPU's links from all others; first the
 *                channels that do so anywhere, then all their hops that do
 *     crossing   rings that leave a node by the NIC that they came in stay on its rail, as do
 *                mirrored pairs where nodes alternate; others are worse
 *     nchannels  each is set up and holds buffers
 *     crossing   leaving by the same NIC is better than in mirrored pairs
 *     hops       the links that bytes cross
 *
 * Threads: any. */

#include <stdbool.h>
#include <stdint.h>

/* So much of the best bandwidth, as a share, is given up for the others. */
#define TTI_SCORE_WORTH 5e-6
/* And so much for no more channels than there should be. */
#define TTI_FEW_WORTH   0.01

struct tti_score {
	double gbps;
	double far;        /* the sum over channels of GB/s times the most struct tti_hop.far */
	double far_hops;   /* and over all their hops of GB/s times that                   */
	uint32_t crossing; /* 0: out where it came in, 1: in mirrored pairs, 2: anyhow     */
	uint32_t nchannels;
	double hops; /* the sum over all hops of GB/s times links                    */
};

/* Whether a is better than b. A set with `least` GB/s has enough; of sets with less, the one with
 * more is better. */
bool tti_score_better(const struct tti_score *a, const struct tti_score *b, double least);

#endif
