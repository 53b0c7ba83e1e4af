/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/comm.h"
#include "core/comm_job.h"
#include "plan/handoff.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"

/* The plan of a handoff, over how the hosts of its communicator are wired. */

/* What the search for better shares and trees may use of the thread's time. */
#define SEARCH_MS 20

/* Up to here one message a host is sooner over than several begun. */
#define SHORT_BYTES ((size_t)32 << 10)

struct tti_handoff_call tti_handoff_call_of(const struct tti_comm *comm,
					    const struct tti_args *args)
{
	return (struct tti_handoff_call){ comm->n, args->sides->from, args->sides->to };
}

bool tti_handoff_is_short(const struct tti_comm *comm, const struct tti_args *args)
{
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);

	return !tti_handoff_is_cut(&call.from) && !tti_handoff_is_cut(&call.to) &&
	       args->count * tutti_type_size(args->type) <= SHORT_BYTES;
}

static void report(const struct tti_args *args, const struct tti_handoff_plan *plan,
		   int64_t began_ns)
{
	char sides[TTI_SIDES_TEXT];

	if (!tti_log_enabled(TTI_LOG_INFO, TTI_PLAN))
		return;
	tti_sides_format(args->sides, sides, sizeof(sides));
	tti_log(TTI_LOG_INFO, TTI_PLAN,
		"handoff %s: %u pairs, %.3g GB/s of at most %.3g%s%s, planned in %.2f ms", sides,
		plan->nways, plan->gbps, plan->bound_gbps, plan->nways ? ": " : "",
		plan->nways ? plan->limit : "", (double)(tti_thread_ns() - began_ns) * 1e-6);
}

/* Ranks of a side as the planner has them. */
static const uint32_t *ranks_of(const tutti_side *side)
{
	_Static_assert(sizeof(int) == sizeof(uint32_t), "ranks are not negative");
	return (const uint32_t *)side->ranks;
}

static tutti_status plan_over(const struct tti_comm *comm, const struct tti_args *args,
			      const struct tti_comm_job *job, struct tti_handoff_plan **out,
			      struct tti_handoff_shape **shape, size_t *nbytes)
{
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);
	const struct tti_handoff_job handoff = {
		.job = &job->job,
		.from = ranks_of(&call.from),
		.to = ranks_of(&call.to),
		.nfrom = (uint32_t)call.from.n,
		.nto = (uint32_t)call.to.n,
		.from_sharded = tti_handoff_is_cut(&call.from),
		.to_sharded = tti_handoff_is_cut(&call.to),
		.is_short = tti_handoff_is_short(comm, args),
		.budget_ms = SEARCH_MS,
	};

	TTI_TRY(tti_handoff_plan_make(&handoff, out));
	TTI_TRY(tti_handoff_plan_check(&handoff, *out));
	return tti_handoff_shape_of_plan(&handoff, *out, shape, nbytes);
}

tutti_status tti_handoff_make(const struct tti_comm *comm, const struct tti_args *args,
			      struct tti_handoff_shape **out, size_t *nbytes)
{
	const int64_t began_ns = tti_thread_ns();
	struct tti_handoff_plan *plan = NULL;
	struct tti_comm_job job;
	tutti_status st;

	TTI_TRY(tti_comm_job_of_wiring(comm->wiring, comm->host_of, comm->n, &job));
	st = plan_over(comm, args, &job, &plan, out, nbytes);
	if (st == TUTTI_OK)
		report(args, plan, began_ns);
	tti_handoff_plan_free(plan);
	tti_comm_job_release(&job);
	return st;
}
