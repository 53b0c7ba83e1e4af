/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/lanes.h"

#include <stdio.h>
#include <string.h>

#include "core/comm_error.h"
#include "core/handle.h"
#include "core/sequence.h"
#include "util/error.h"

/* What is known of the lanes of a link. */

static const struct tti_lane_ops *ops_of(const struct tti_port *port)
{
	return port->transport->lanes;
}

int tti_lanes_count(const struct tti_port *port, const struct tti_link *link)
{
	return ops_of(port) ? ops_of(port)->count(link) : 1;
}

void tti_lanes_get(const struct tti_port *port, const struct tti_link *link, int lane,
		   struct tti_lane_info *out)
{
	const char *nic = port->transport == &tti_transport_shm ? "memory" : "";

	memset(out, 0, sizeof(*out));
	if (lane >= tti_lanes_count(port, link))
		return;
	if (ops_of(port)) {
		ops_of(port)->get(link, lane, out);
		return;
	}
	snprintf(out->local_nic, sizeof(out->local_nic), "%s", nic);
	snprintf(out->remote_nic, sizeof(out->remote_nic), "%s", nic);
	out->up = true;
}

/* -- For the user ------------------------------------------------------------------- */

tutti_status tti_lane_show(const struct tti_lane_info *info, struct tutti_lane *out)
{
	struct tutti_lane lane = {
		.size = out->size,
		.local_mbps = info->local_mbps,
		.remote_mbps = info->remote_mbps,
		.local_mtu = info->local_mtu,
		.up = info->up,
		.gbps = info->gbps,
		.rtt_us = (double)info->rtt_ns / 1e3,
		.sent = info->sent,
		.resent = info->resent,
		.losses = info->losses,
	};

	if (out->size < sizeof(size_t) || out->size > 65536)
		return tti_fail(TUTTI_EINVAL,
				"a struct tutti_lane of %zu bytes: set its size field to "
				"sizeof(struct tutti_lane)",
				out->size);
	memcpy(lane.local_nic, info->local_nic, sizeof(lane.local_nic));
	memcpy(lane.remote_nic, info->remote_nic, sizeof(lane.remote_nic));
	memcpy(lane.local_address, info->local_addr, sizeof(lane.local_address));
	memcpy(lane.remote_address, info->remote_addr, sizeof(lane.remote_address));
	memcpy(lane.trouble, info->trouble, sizeof(lane.trouble));
	memcpy(out, &lane, out->size < sizeof(lane) ? out->size : sizeof(lane));
	return TUTTI_OK;
}

/* An element of a caller's array whose elements may be of another size than ours. */
static struct tutti_lane *element(struct tutti_lane *out, int i)
{
	return (struct tutti_lane *)(void *)((char *)out + (size_t)i * out->size);
}

static tutti_status show_all(struct tti_comm *comm, int peer, struct tutti_lane *out, int most,
			     int *count_out)
{
	const struct tti_port *port = comm->ports[comm->port_of[peer]];
	const struct tti_link *link = comm->engine.links[peer];
	struct tti_lane_info info;

	*count_out = 0;
	if (!link && ops_of(port))
		return TUTTI_OK;
	*count_out = tti_lanes_count(port, link);
	for (int i = 0; i < *count_out && i < most; i++) {
		tti_lanes_get(port, link, i, &info);
		TTI_TRY(tti_lane_show(&info, element(out, i)));
	}
	return TUTTI_OK;
}

static tutti_status check(struct tti_comm *comm, int peer)
{
	TTI_TRY(tti_comm_usable(comm));
	if (peer < 0 || peer >= comm->n)
		return tti_fail(TUTTI_EINVAL, "there is no rank %d: ranks are 0 to %d", peer,
				comm->n - 1);
	return TUTTI_OK;
}

static tutti_status lanes(struct tti_comm *comm, int peer, struct tutti_lane *out, int most,
			  int *count_out)
{
	uint64_t seqno;
	tutti_status st;

	TTI_TRY(check(comm, peer));
	if (peer == comm->rank)
		return tti_fail(TUTTI_EINVAL, "rank %d has no lanes to itself", peer);
	TTI_TRY(tti_sequence_may_wait(comm));
	/* Links belong to the thread that runs calls. */
	seqno = tti_sequence_take(comm);
	tti_sequence_turn(comm, seqno);
	st = show_all(comm, peer, out, most, count_out);
	tti_sequence_done(comm);
	return st;
}

tutti_status tutti_comm_lanes(tutti_comm_t handle, int peer, struct tutti_lane *out, int most,
			      int *count_out)
{
	struct tti_comm *comm;

	if (!count_out || most < 0 || (most > 0 && !out))
		return tti_handle_fail(
			handle, TUTTI_EINVAL,
			"tutti_comm_lanes(): most is %d, out is %p and count_out is %p: pass "
			"room for that many lanes, and the address of their number",
			most, (void *)out, (void *)count_out);
	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, lanes(comm, peer, out, most, count_out));
}

tutti_status tutti_comm_transport(tutti_comm_t handle, int peer, const char **out)
{
	struct tti_comm *comm;
	tutti_status st;

	TTI_TRY(tti_handle_check_out(handle, out, "a const char *"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	st = check(comm, peer);
	if (st == TUTTI_OK)
		*out = comm->ports[comm->port_of[peer]]->transport->name;
	return tti_handle_end(handle, comm, st);
}
