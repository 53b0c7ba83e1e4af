/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/tcp_route.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/fd.h"
#include "util/fork.h"

int tti_tcp_bind_device(int fd, const char *device)
{
	if (tti_fault("tcp.device")) {
		errno = EPERM;
		return -1;
	}
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device));
}

static bool has_carrier(int fd, const char *device)
{
	struct ifreq ask = { 0 };

	memcpy(ask.ifr_name, device, IFNAMSIZ);
	return ioctl(fd, SIOCGIFFLAGS, &ask) ||
	       ((ask.ifr_flags & IFF_UP) && (ask.ifr_flags & IFF_RUNNING));
}

/* Whether what comes from that address leaves by that NIC anyway. */
static bool leads_there(const struct tti_tcp_rail *rail)
{
	struct tti_tcp_route route;
	int fd = tti_tcp_route_open();
	const bool known = tti_tcp_route_ask(fd, &rail->from, &rail->to, 0, &route);

	tti_fd_close(&fd);
	return known && route.index == if_nametoindex(rail->device);
}

/* Kernels before 5.7 let only root bind to a device. */
static bool bind_device(int fd, const struct tti_tcp_rail *rail, char why[TTI_TCP_WHY])
{
	if (!tti_tcp_bind_device(fd, rail->device))
		return true;
	if (errno != EPERM) {
		snprintf(why, TTI_TCP_WHY, "it cannot be bound to %s (%s)", rail->device,
			 strerror(errno));
		return false;
	}
	if (leads_there(rail))
		return true;
	snprintf(why, TTI_TCP_WHY,
		 "without a rule for its address, and not bound, it leaves by "
		 "another NIC than %s",
		 rail->device);
	return false;
}

/* The address says where answers go to, the device by which NIC all leaves. */
static bool bind_to(int fd, const struct tti_tcp_rail *rail, char why[TTI_TCP_WHY])
{
	struct sockaddr_storage from;
	const socklen_t size = tti_addr_to_sock(&rail->from, &from);
	const int yes = 1;

	if (!has_carrier(fd, rail->device)) {
		snprintf(why, TTI_TCP_WHY, "%s has no carrier", rail->device);
		return false;
	}
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&from, size)) {
		snprintf(why, TTI_TCP_WHY, "its address on %s is gone (%s)", rail->device,
			 strerror(errno));
		return false;
	}
	return bind_device(fd, rail, why);
}

int tti_tcp_rail_connect(struct tti_tcp_port *port, const struct tti_tcp_rail *rail,
			 char why[TTI_TCP_WHY], int *error)
{
	struct sockaddr_storage to;
	const socklen_t size = tti_addr_to_sock(&rail->to, &to);
	int fd = tti_fork_socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK);

	*error = 0;
	if (fd < 0) {
		*error = errno;
		snprintf(why, TTI_TCP_WHY, "%s", strerror(errno));
		return -1;
	}
	if (tti_tcp_conn_tune(port, fd)) {
		snprintf(why, TTI_TCP_WHY, "%s", tti_error_text());
	} else if (rail->from.family && !bind_to(fd, rail, why)) {
		/* It may work later. */
	} else if (connect(fd, (struct sockaddr *)&to, size) && errno != EINPROGRESS) {
		*error = errno;
		snprintf(why, TTI_TCP_WHY, "%s", strerror(errno));
	} else {
		return fd;
	}
	tti_fd_close(&fd);
	return -1;
}
