/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp_route.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct question {
	struct nlmsghdr head;
	struct rtmsg route;
	uint8_t attributes[96];
};

int tti_tcp_route_open(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

static void add(struct question *question, uint16_t type, const void *data, size_t nbytes)
{
	struct rtattr attribute = { .rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(nbytes) };
	uint8_t *at = (uint8_t *)question + NLMSG_ALIGN(question->head.nlmsg_len);

	memcpy(at, &attribute, sizeof(attribute));
	memcpy(at + RTA_LENGTH(0), data, nbytes);
	question->head.nlmsg_len =
		(uint32_t)(NLMSG_ALIGN(question->head.nlmsg_len) + RTA_ALIGN(attribute.rta_len));
}

static bool ask(int fd, const struct tti_addr *from, const struct tti_addr *to, uint32_t index)
{
	const size_t nbytes = to->family == 4 ? 4 : 16;
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct question question = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			  .nlmsg_type = RTM_GETROUTE,
			  .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = to->family == 4 ? AF_INET : AF_INET6,
			   .rtm_dst_len = (uint8_t)(nbytes * 8),
			   .rtm_src_len = (uint8_t)(nbytes * 8) },
	};

	add(&question, RTA_DST, to->ip, nbytes);
	add(&question, RTA_SRC, from->ip, nbytes);
	if (index)
		add(&question, RTA_OIF, &index, sizeof(index));
	return sendto(fd, &question, question.head.nlmsg_len, 0, (const struct sockaddr *)&kernel,
		      sizeof(kernel)) == (ssize_t)question.head.nlmsg_len;
}

static void read_answer(const uint8_t *at, size_t left, struct tti_tcp_route *out)
{
	struct rtattr attribute;

	while (left >= sizeof(attribute)) {
		memcpy(&attribute, at, sizeof(attribute));
		if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > left)
			return;
		if (attribute.rta_type == RTA_OIF &&
		    attribute.rta_len >= RTA_LENGTH(sizeof(out->index)))
			memcpy(&out->index, at + RTA_LENGTH(0), sizeof(out->index));
		if (attribute.rta_type == RTA_GATEWAY || attribute.rta_type == RTA_VIA)
			out->gateway = true;
		if (RTA_ALIGN(attribute.rta_len) >= left)
			return;
		at += RTA_ALIGN(attribute.rta_len);
		left -= RTA_ALIGN(attribute.rta_len);
	}
}

bool tti_tcp_route_ask(int fd, const struct tti_addr *from, const struct tti_addr *to,
		       uint32_t index, struct tti_tcp_route *out)
{
	uint8_t bytes[4096];
	struct nlmsghdr head;
	struct rtmsg route;
	ssize_t got;

	memset(out, 0, sizeof(*out));
	if (fd < 0 || !ask(fd, from, to, index))
		return false;
	/* The kernel has answered before the question returns. */
	got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (got < (ssize_t)NLMSG_LENGTH(sizeof(route)))
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (head.nlmsg_type != RTM_NEWROUTE || head.nlmsg_len > (size_t)got ||
	    head.nlmsg_len < NLMSG_LENGTH(sizeof(route)))
		return false;
	memcpy(&route, bytes + NLMSG_LENGTH(0), sizeof(route));
	out->local = route.rtm_type == RTN_LOCAL;
	if (route.rtm_type != RTN_UNICAST && !out->local)
		return false;
	read_answer(bytes + NLMSG_SPACE(sizeof(route)), head.nlmsg_len - NLMSG_SPACE(sizeof(route)),
		    out);
	return out->index != 0;
}

/* Bound to an interface without a route there, the kernel takes everybody for a neighbour. */
bool tti_tcp_route_leaves(void *fd, const struct tti_addr *from, const struct tti_addr *to,
			  uint32_t index)
{
	struct tti_tcp_route route;

	if (tti_tcp_route_ask(*(const int *)fd, from, to, 0, &route) && !route.local &&
	    route.index == index)
		return true;
	return tti_tcp_route_ask(*(const int *)fd, from, to, index, &route) && !route.local &&
	       route.index == index && route.gateway;
}
