/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_HANDOFF_REPORT_H
#define TTI_INSIGHT_HANDOFF_REPORT_H

/* Plans of handoffs for people and other programs. Threads: any. */

#include "plan/handoff/handoff.h"

/* Fill in the figures of a plan that are printed but not needed to run it: naive_gbps, on_gpus,
 * nvlink. */
TUTTI_CHECKED tutti_status tti_handoff_figures(const struct tti_handoff_job *handoff,
					       struct tti_handoff_plan *plan);

/* The time of a handoff of so many bytes, whose slices follow each other through all stages. */
struct tti_handoff_time {
	double us, latency_us, slice_bytes;
	double bound_us; /* nbytes at the bound */
	double naive_us;
};
struct tti_handoff_time tti_handoff_plan_time(const struct tti_handoff_plan *plan, double nbytes);

/* Out of memory: out->failed. */
void tti_handoff_table(const struct tti_handoff_job *handoff, const struct tti_handoff_plan *plan,
		       double nbytes, struct tti_strbuf *out);
void tti_handoff_explain(const struct tti_handoff_job *handoff, const struct tti_handoff_plan *plan,
			 double nbytes, struct tti_strbuf *out);
void tti_handoff_json(const struct tti_handoff_job *handoff, const struct tti_handoff_plan *plan,
		      double nbytes, struct tti_strbuf *out);
TUTTI_CHECKED tutti_status tti_handoff_dot(const struct tti_handoff_job *handoff,
					   const struct tti_handoff_plan *plan, double nbytes,
					   struct tti_strbuf *out);

#endif
