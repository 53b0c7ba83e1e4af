/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_TRANSPORT_TCP_HOSTS_H
#define TESTS_UNIT_TRANSPORT_TCP_HOSTS_H

/* Two hosts that are network namespaces of this process, with cables between them: sockets
 * belong to the host that was entered when they were made. */
#include "unit/transport/tcp_world.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct net {
	int home, host[2];
	bool possible;
} net;

static inline void enter(int fd)
{
	assert_int_equal(setns(fd, CLONE_NEWNET), 0);
}

/* A line for the shell, run on that host. */
static inline void on(int host, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void on(int host, const char *format, ...)
{
	char line[512];
	va_list args;
	pid_t pid;
	int status;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	enter(net.host[host]);
	pid = fork();
	if (!pid) {
		execlp("timeout", "timeout", "100", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	enter(net.home);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("%s: %d", line, status);
}

static inline int here(void)
{
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static inline void make_hosts(void)
{
	net.home = here();
	for (int i = 0; i < 2; i++) {
		net.possible = unshare(CLONE_NEWNET) == 0;
		net.host[i] = here();
		if (!net.possible)
			return;
		enter(net.home);
		on(i, "ip link set lo up");
	}
}

static inline void remove_hosts(void)
{
	enter(net.home);
	for (int i = 0; i < 2 && net.possible; i++)
		close(net.host[i]);
	close(net.home);
}

/* A cable, eth`n` on both hosts, with these addresses. */
static inline void cable(int n, const char *addr0, const char *addr1)
{
	const char *const addr[2] = { addr0, addr1 };

	on(0, "ip link add eth%d type veth peer name eth%d netns /proc/%d/fd/%d", n, n,
	   (int)getpid(), net.host[1]);
	for (int i = 0; i < 2; i++)
		on(i, "ip addr add %s dev eth%d %s && ip link set eth%d up", addr[i], n,
		   strchr(addr[i], ':') ? "nodad" : "", n);
	/* The kernel takes a moment, up to a second, to believe in a carrier. */
	for (int i = 0; i < 2; i++)
		on(i, "until ip -br link show eth%d | grep -q ' UP '; do sleep 0.05; done", n);
}

#endif
