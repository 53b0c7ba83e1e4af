/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "insight/handoff/handoff_report.h"
#include "plan/tune/tune.h"

/* A message costs its rank `each`, whatever its size; the pipeline is best filled with slices of
 * the size at which that and the way of the last slice cost the same. */
struct tti_handoff_time tti_handoff_plan_time(const struct tti_handoff_plan *plan, double nbytes)
{
	const struct tti_tune_constants c = tti_tune_defaults().constants;
	const double far = plan->on_gpus ? c.gpu_net_us : c.tcp_hop_us + c.wire_us;
	const double near = !plan->on_gpus ? c.slot_us + c.line_us
			    : plan->nvlink ? c.gpu_nvlink_us
					   : c.gpu_pci_us;
	const double each = c.tcp_message_us;
	const double us_a_byte = plan->gbps > 0 ? 1e-3 / plan->gbps : 0;
	const uint32_t stages = plan->depth + plan->inner_depth;
	struct tti_handoff_time time = { .slice_bytes = nbytes };

	time.latency_us = (plan->on_gpus ? c.gpu_base_us : c.call_us) + plan->depth * far +
			  plan->inner_depth * near;
	if (stages > 1 && us_a_byte > 0 && nbytes > 0) {
		const double slice = sqrt(nbytes * each / ((stages - 1) * us_a_byte));

		time.slice_bytes = slice < 4096 ? 4096 : slice;
		time.slice_bytes = time.slice_bytes > nbytes ? nbytes : time.slice_bytes;
		time.us = (stages - 1) * time.slice_bytes * us_a_byte +
			  (nbytes / time.slice_bytes - 1) * each;
	}
	time.us += time.latency_us + nbytes * us_a_byte;
	time.bound_us = plan->gbps > 0 ? nbytes * 1e-3 / plan->bound_gbps : 0;
	time.naive_us = plan->gbps > 0 ? time.latency_us + nbytes * 1e-3 / plan->naive_gbps : 0;
	return time;
}
