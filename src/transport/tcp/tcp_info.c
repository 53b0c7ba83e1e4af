/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <linux/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "util/clock.h"

static int count(const struct tti_link *base)
{
	return ((const struct tti_tcp_link *)base)->nlanes;
}

/* Ports are of no interest: they are others each time. */
static void format(const struct tti_addr *addr, char *buf, size_t size)
{
	struct tti_addr bare = *addr;

	bare.port = 0;
	if (bare.family)
		tti_addr_format(&bare, buf, size);
}

/* What the kernel knows of a connection and its NIC; nothing where it does not say. */
static void ask_kernel(const struct tti_tcp_conn *conn, struct tti_lane_info *out)
{
	struct tcp_info info;
	struct ifreq nic = { 0 };

	if (tti_tcp_conn_info(conn, &info)) {
		out->resent = info.tcpi_total_retrans;
		if (!out->rtt_ns)
			out->rtt_ns = (int64_t)info.tcpi_rtt * 1000;
	}
	if (!out->local_nic[0])
		return;
	memcpy(nic.ifr_name, out->local_nic, sizeof(nic.ifr_name));
	if (!ioctl(conn->fd, SIOCGIFMTU, &nic) && nic.ifr_mtu > 0)
		out->local_mtu = (uint32_t)nic.ifr_mtu;
}

static void get(const struct tti_link *base, int index, struct tti_lane_info *out)
{
	const struct tti_tcp_link *link = (const struct tti_tcp_link *)base;
	const struct tti_tcp_lane *lane;

	memset(out, 0, sizeof(*out));
	if (index < 0 || index >= link->nlanes)
		return;
	lane = &link->lane[index];
	snprintf(out->local_nic, sizeof(out->local_nic), "%s", lane->local_nic);
	snprintf(out->remote_nic, sizeof(out->remote_nic), "%s", lane->remote_nic);
	format(&lane->local, out->local_addr, sizeof(out->local_addr));
	format(&lane->remote, out->remote_addr, sizeof(out->remote_addr));
	out->local_mbps = lane->local_mbps;
	out->remote_mbps = lane->remote_mbps;
	out->up = link->conn[index] && !link->conn[index]->ended && !link->conn[index]->broken;
	out->gbps = lane->rate;
	out->rtt_ns = lane->rtt_ns;
	out->sent = lane->sent;
	out->losses = lane->losses;
	snprintf(out->trouble, sizeof(out->trouble), "%s", lane->trouble);
	if (out->up && link->conn[index]->waits_since)
		snprintf(out->trouble, sizeof(out->trouble), "no answer for %.1f s",
			 (double)(tti_now_ns() - link->conn[index]->waits_since) / 1e9);
	if (link->conn[index])
		ask_kernel(link->conn[index], out);
}

static void open_all(struct tti_link *base)
{
	struct tti_tcp_link *link = (struct tti_tcp_link *)base;

	link->wanted = true;
	tti_tcp_lanes_want(link);
}

static void only(struct tti_link *base, int lane)
{
	((struct tti_tcp_link *)base)->only = lane;
}

const struct tti_lane_ops tti_tcp_lane_ops = {
	.count = count,
	.get = get,
	.open_all = open_all,
	.only = only,
};
