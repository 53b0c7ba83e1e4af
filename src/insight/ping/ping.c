/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/ping/ping.h"

#include <string.h>

#include "core/call/args.h"
#include "core/call/call.h"
#include "core/call/group.h"
#include "core/comm_error.h"
#include "core/handle.h"
#include "core/sequence.h"
#include "core/stall.h"
#include "util/error.h"
#include "util/mem.h"

/* The API of pings. */

/* -- Making ---------------------------------------------------------------------- */

static tutti_status check(struct tti_comm *comm, int a, int b)
{
	TTI_TRY(tti_comm_usable(comm));
	if (a < 0 || a >= comm->n || b < 0 || b >= comm->n)
		return tti_fail(TUTTI_EINVAL, "ping of ranks %d and %d of %d: 0 to %d", a, b,
				comm->n, comm->n - 1);
	if (a == b)
		return tti_fail(TUTTI_EINVAL,
				"ping of rank %d to itself: there is no way between to measure; "
				"name two ranks",
				a);
	if (comm->rank != a && comm->rank != b)
		return tti_fail(TUTTI_EINVAL,
				"ping of ranks %d and %d on rank %d: only these two call it", a, b,
				comm->rank);
	return TUTTI_OK;
}

/* The defaults, overwritten by the fields that the caller's struct has. */
static tutti_status read_options(const struct tutti_ping_options *given,
				 struct tutti_ping_options *out)
{
	*out = (struct tutti_ping_options)TUTTI_PING_OPTIONS_INIT;
	if (!given)
		return TUTTI_OK;
	if (given->size < sizeof(size_t) || given->size > 65536)
		return tti_fail(TUTTI_EINVAL,
				"ping options of %zu bytes: begin with "
				"TUTTI_PING_OPTIONS_INIT",
				given->size);
	memcpy(out, given, given->size < sizeof(*out) ? given->size : sizeof(*out));
	out->size = sizeof(*out);
	if (!(out->seconds > 0 && out->seconds <= 3600) || !(out->reach > 0 && out->reach <= 3600))
		return tti_fail(TUTTI_EINVAL,
				"ping for %g s a lane, %g s to reach the other: more than 0, at "
				"most 3600",
				out->seconds, out->reach);
	return TUTTI_OK;
}

static tutti_status run(struct tti_comm *comm, const struct tutti_ping_options *options,
			struct tutti_ping_result *ping)
{
	const int peer = ping->rank[comm->rank == ping->rank[0]];
	int mismatch_peer = -1;
	uint64_t seqno;
	tutti_status st;

	TTI_TRY(tti_sequence_may_wait(comm));
	seqno = tti_sequence_take(comm);
	tti_sequence_turn(comm, seqno);
	st = tti_comm_async_error(comm);
	if (st == TUTTI_OK) {
		tti_call_begin(comm, tti_args_pack_ping(peer));
		st = tti_ping_run(comm, options, ping, &mismatch_peer);
		if (st != TUTTI_OK)
			st = tti_stall_settle(comm, st, mismatch_peer);
		tti_call_end(comm);
	}
	tti_sequence_done(comm);
	return st;
}

static tutti_status ping(struct tti_comm *comm, int a, int b,
			 const struct tutti_ping_options *given, tutti_ping_t *out)
{
	struct tutti_ping_options options;
	struct tutti_ping_result *made;
	tutti_status st;

	TTI_TRY(check(comm, a, b));
	TTI_TRY(read_options(given, &options));
	made = tti_zalloc(sizeof(*made));
	if (!made)
		return tti_fail(TUTTI_ENOMEM, "ping: out of memory");
	made->rank[0] = a;
	made->rank[1] = b;
	made->oversubscribed = comm->oversubscribed_somewhere;
	st = run(comm, &options, made);
	if (st == TUTTI_OK)
		st = tti_ping_find(made);
	if (st == TUTTI_OK)
		*out = made;
	else
		tutti_ping_free(made);
	return st;
}

tutti_status tutti_ping(tutti_comm_t handle, int a, int b, const struct tutti_ping_options *options,
			tutti_ping_t *out)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_check_out(handle, out, "a tutti_ping_t"));
	TTI_TRY(tti_group_refuse(handle, "tutti_ping"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, ping(comm, a, b, options, out));
}

void tutti_ping_free(tutti_ping_t ping)
{
	if (!ping)
		return;
	for (size_t i = 0; i < ping->findings.n; i++)
		tti_free(ping->findings.at[i].what);
	tti_vec_release(&ping->findings);
	tti_free(ping->lanes);
	tti_free(ping->why);
	tti_free(ping);
}

/* -- Reading ---------------------------------------------------------------------- */

static tutti_status check_size(size_t size, const char *what)
{
	if (size >= sizeof(size_t) && size <= 65536)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL, "%s of %zu bytes: set its size field to its sizeof", what,
			size);
}

static tutti_status check_lane(tutti_ping_t ping, int lane, int least)
{
	if (!ping)
		return tti_fail(TUTTI_EINVAL, "the ping is NULL");
	if (lane < least || lane >= ping->nlanes)
		return tti_fail(TUTTI_EINVAL, "there is no lane %d: this ping has %d", lane,
				ping->nlanes);
	return TUTTI_OK;
}

int tutti_ping_lane_count(tutti_ping_t ping)
{
	return ping ? ping->nlanes : 0;
}

tutti_status tutti_ping_get_lane(tutti_ping_t ping, int lane, int of_b, struct tutti_lane *out)
{
	TTI_TRY(check_lane(ping, lane, 0));
	if (!out)
		return tti_fail(TUTTI_EINVAL, "out is NULL: pass the address of a tutti_lane");
	return tti_lane_show(&ping->lanes[lane].side[of_b != 0], out);
}

tutti_status tutti_ping_get_measure(tutti_ping_t ping, int lane, struct tutti_ping_measure *out)
{
	const struct tti_ping_measure *from;
	struct tutti_ping_measure measure;

	TTI_TRY(check_lane(ping, lane, -1));
	if (!out)
		return tti_fail(TUTTI_EINVAL, "out is NULL: pass the address of a measure");
	TTI_TRY(check_size(out->size, "a struct tutti_ping_measure"));
	from = lane < 0 ? &ping->together : &ping->lanes[lane].measure;
	measure = (struct tutti_ping_measure){
		.size = out->size,
		.measured = from->measured != 0,
		.round_trips = (int)from->round_trips,
		.rtt_least_us = from->rtt_least_us,
		.rtt_us = from->rtt_us,
		.rtt_p99_us = from->rtt_p99_us,
		.ab_gbps = from->gbps[0],
		.ba_gbps = from->gbps[1],
		.both_ab_gbps = from->both_gbps[0],
		.both_ba_gbps = from->both_gbps[1],
		.a_resent = from->resent[0],
		.b_resent = from->resent[1],
		.a_starved = from->starved[0],
		.b_starved = from->starved[1],
	};
	memcpy(out, &measure, out->size < sizeof(measure) ? out->size : sizeof(measure));
	return TUTTI_OK;
}

int tutti_ping_finding_count(tutti_ping_t ping)
{
	return ping ? (int)ping->findings.n : 0;
}

tutti_status tutti_ping_get_finding(tutti_ping_t ping, int index, struct tutti_ping_finding *out)
{
	struct tutti_ping_finding finding;

	if (!ping || index < 0 || (size_t)index >= ping->findings.n)
		return tti_fail(TUTTI_EINVAL, "there is no finding %d: this ping has %d", index,
				tutti_ping_finding_count(ping));
	if (!out)
		return tti_fail(TUTTI_EINVAL, "out is NULL: pass the address of a finding");
	TTI_TRY(check_size(out->size, "a struct tutti_ping_finding"));
	finding = (struct tutti_ping_finding){
		.size = out->size,
		.lane = ping->findings.at[index].lane,
		.rule = ping->findings.at[index].rule,
		.severity = ping->findings.at[index].severity,
		.what = ping->findings.at[index].what,
		.remedy = ping->findings.at[index].remedy,
	};
	memcpy(out, &finding, out->size < sizeof(finding) ? out->size : sizeof(finding));
	return TUTTI_OK;
}
