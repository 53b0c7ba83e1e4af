/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_TUNE_FIT_H
#define TTI_PLAN_TUNE_FIT_H

/* The constants of the model (tune.h) from measured times.
 *
 * What is minimised is the sum over all samples of h(log(predicted / measured)), so that being
 * off by a factor costs alike at 1 us and at 1 s; h is Huber's function (Annals of Mathematical
 * Statistics 1964), which keeps a few wild samples from deciding. On one host the model is
 * piecewise linear in times and in times per byte; the steps are those of Levenberg and
 * Marquardt (SIAM J. Appl. Math. 1963) in the logarithms of the constants, which keeps them
 * above 0. What the samples do not determine stays as it was. Pure. Threads: any. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/tune/tune.h"

/* X(name): those that can be fitted. */
#define TTI_TUNE_FIT_MAP(X) \
	X(call_us)          \
	X(line_us)          \
	X(slot_us)          \
	X(yield_us)         \
	X(wake_us)          \
	X(cross_gbps)       \
	X(copy_gbps)        \
	X(memory_gbps)      \
	X(node_memory_gbps) \
	X(tcp_hop_us)       \
	X(tcp_message_us)   \
	X(socket_gbps)      \
	X(wire_us)          \
	X(node_net_gbps)
#define TTI_TUNE_FIT_COUNT 14

const char *tti_tune_fit_name(int which);
double tti_tune_fit_value(const struct tti_tune_constants *constants, int which);

/* A call, and the time that it took. */
struct tti_tune_sample {
	struct tti_tune_machine machine;
	tutti_collective coll;
	enum tti_tune_algo algo;
	size_t nbytes; /* as of tti_tune_predict() */
	bool loopback; /* nodes are ranks of one machine: there is no wire between them */
	double us;
};

struct tti_tune_fit {
	bool fitted[TTI_TUNE_FIT_COUNT];
	/* Standard error, as a factor: 1.1 is 10 % either way. */
	double spread[TTI_TUNE_FIT_COUNT];
	/* Half of the samples are nearer to what is predicted than this factor. */
	double before, after;
};

/* As predicted; 0: the model does not know the algorithm there. */
double tti_tune_sample_us(const struct tti_tune_constants *constants,
			  const struct tti_tune_sample *sample);

/* From *constants to those that fit, in place; they stay if that brings nothing. TUTTI_EINVAL:
 * a sample whose time is not above 0, or that the model cannot predict. */
TUTTI_CHECKED tutti_status tti_tune_fit(const struct tti_tune_sample *samples, uint32_t nsamples,
					struct tti_tune_constants *constants,
					struct tti_tune_fit *out);

#endif
