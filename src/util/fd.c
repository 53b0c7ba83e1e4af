/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/log.h"

/* How long a wait does not look at *stop. */
#define STEP_MS 50

void tti_fd_close(int *fd)
{
	const int error = errno;

	if (*fd >= 0 && !tti_fork_drop(*fd))
		close(*fd);
	*fd = -1;
	errno = error;
}

/* What errno says about a stream: the other side is gone, or it is our fault. */
static tutti_status stream_error(const char *what)
{
	switch (errno) {
	case EPIPE:
	case ECONNRESET:
	case ECONNABORTED:
	case ECONNREFUSED:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENETRESET:
		return tti_fail_quiet(TUTTI_EPEER, "%s: %m", what);
	default:
		return tti_fail_quiet(TUTTI_ESYS, "%s: %m", what);
	}
}

/* Wait a step for `events`; AGAIN: try again, whatever came. */
static tutti_status wait_step(int fd, short events, int64_t deadline_ns)
{
	struct pollfd entry = { .fd = fd, .events = events };
	const int wait_ms = tti_left_ms(deadline_ns, STEP_MS);

	if (wait_ms == 0)
		return tti_fail_quiet(TUTTI_ETIMEOUT, "no %s within the time limit",
				      events == POLLIN ? "data came" : "data was taken");
	if (poll(&entry, 1, wait_ms) < 0 && errno != EINTR)
		return stream_error("poll");
	return TUTTI_AGAIN;
}

static tutti_status check_stop(const _Atomic int *stop)
{
	if (stop && atomic_load_explicit(stop, memory_order_relaxed))
		return tti_fail_quiet(TUTTI_EABORTED, "stopped while talking to a peer");
	return TUTTI_OK;
}

/* One send() or recv() returned n: bytes moved in *moved, or AGAIN, or failed. */
static tutti_status step(int fd, ssize_t n, short events, int64_t deadline_ns, size_t *moved)
{
	const char *what = events == POLLIN ? "recv" : "send";

	*moved = 0;
	if (n > 0) {
		*moved = (size_t)n;
		return TUTTI_OK;
	}
	if (n == 0 && events == POLLIN)
		return tti_fail_quiet(TUTTI_EPEER, "the peer closed the connection");
	if (n == 0 || errno == EINTR)
		return TUTTI_AGAIN;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return wait_step(fd, events, deadline_ns);
	return stream_error(what);
}

tutti_status tti_fd_send_all(int fd, const void *data, size_t nbytes, int64_t deadline_ns,
			     const _Atomic int *stop)
{
	const char *at = data;

	while (nbytes > 0) {
		tutti_status status;
		size_t moved;

		TTI_TRY(check_stop(stop));
		status = step(fd, send(fd, at, nbytes, MSG_NOSIGNAL | MSG_DONTWAIT), POLLOUT,
			      deadline_ns, &moved);
		if (status < 0)
			return status;
		at += moved;
		nbytes -= moved;
	}
	return TUTTI_OK;
}

tutti_status tti_fd_recv_all(int fd, void *data, size_t nbytes, int64_t deadline_ns,
			     const _Atomic int *stop)
{
	char *at = data;

	while (nbytes > 0) {
		tutti_status status;
		size_t moved;

		TTI_TRY(check_stop(stop));
		status = step(fd, recv(fd, at, nbytes, MSG_DONTWAIT), POLLIN, deadline_ns, &moved);
		if (status < 0)
			return status;
		at += moved;
		nbytes -= moved;
	}
	return TUTTI_OK;
}

static void raise_limit(void)
{
	struct rlimit limit;
	rlim_t old;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	old = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		tti_log(TTI_LOG_INFO, TTI_CORE,
			"the limit of %llu open files cannot be raised to %llu: %m",
			(unsigned long long)old, (unsigned long long)limit.rlim_max);
}

void tti_fd_raise_limit(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, raise_limit);
}
