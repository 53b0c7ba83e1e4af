/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PREPARE_PREDICT_H
#define TTI_CORE_PREPARE_PREDICT_H

/* How long calls should take, by the model of plan/tune/tune.h. A collective is predicted by its
 * algorithm, as if its data went by messages; sends, receives and calls by pairs of ranks by the
 * bytes and messages of this rank. Threads: the one that makes the communicator's calls. */

#include <stddef.h>

#include "core/comm.h"

/* Data between this rank and others that moves at the same time. Zeroed: none. */
struct tti_predicted_traffic {
	double near_in, near_out, far_in, far_out; /* bytes; near: on the own host  */
	double near_messages, far_messages;        /* that come; that go and come   */
	double local;                              /* bytes that stay on this rank  */
};

/* A collective: adds to *us, or, if it goes by pairs of ranks, to *traffic. */
TUTTI_CHECKED tutti_status tti_predict_call(struct tti_comm *comm, const struct tti_args *args,
					    struct tti_predicted_traffic *traffic, double *us);
/* A send or receive. */
void tti_predict_transfer(struct tti_comm *comm, const struct tti_args *args,
			  struct tti_predicted_traffic *traffic);
/* us; 0: there is none. */
double tti_predict_traffic(const struct tti_comm *comm,
			   const struct tti_predicted_traffic *traffic);

#endif
