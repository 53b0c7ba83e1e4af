/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_TUNE_HOST_H
#define TTI_PLAN_TUNE_HOST_H

/* The terms of algorithms in host memory: tune_host.c has those of data that ranks share,
 * tune_host_personal.c those of personalized communication, where each rank's data is its own.
 * Pure. Threads: any. */

#include "plan/tune/tune_terms.h"

/* Ranks of a node follow each other. */
struct tti_tune_shape {
	double n, nodes, p;             /* ranks, nodes, ranks of the largest node */
	double least;                   /* ranks of the smallest node */
	double stripes, served;         /* and how many one rank of the smallest serves */
	double near;                    /* 1: it has several ranks                 */
	double far;                     /* 1: there are several nodes              */
	double others;                  /* ranks on other nodes                    */
	double far_rounds, near_rounds; /* of ceil(log2 n) rounds      */
};

/* One half of direct: parts to their owners, or from them to all. */
struct tti_tune_terms tti_tune_direct_half(const struct tti_tune_shape *s, double written,
					   double touched);

/* The vector is all that a rank sends, or gets, of the root: all that it gets or sends. */
struct tti_tune_terms tti_tune_direct_all_to_all(const struct tti_tune_shape *s);
struct tti_tune_terms tti_tune_bruck_all_to_all(const struct tti_tune_shape *s);
struct tti_tune_terms tti_tune_hierarchical_all_to_all(const struct tti_tune_shape *s);
struct tti_tune_terms tti_tune_flat_gather(const struct tti_tune_shape *s);
struct tti_tune_terms tti_tune_flat_scatter(const struct tti_tune_shape *s);
struct tti_tune_terms tti_tune_binomial_gather(const struct tti_tune_shape *s);
struct tti_tune_terms tti_tune_binomial_scatter(const struct tti_tune_shape *s);

#endif
