/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/loop.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/mem.h"
#include "util/secret.h"

tutti_status tti_loop_init(struct tti_loop *loop)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };

	loop->deferred = NULL;
	loop->epfd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->epfd < 0 || loop->wake_fd < 0 ||
	    epoll_ctl(loop->epfd, EPOLL_CTL_ADD, loop->wake_fd, &event) < 0)
		return tti_fail(TUTTI_ESYS, "epoll_create1 and eventfd: %m%s",
				errno == EMFILE ? " (raise the limit of open files, ulimit -n)"
						: "");
	return TUTTI_OK;
}

static void free_deferred(struct tti_loop *loop)
{
	while (loop->deferred) {
		struct tti_event_handler *handler = loop->deferred;

		loop->deferred = handler->next_free;
		if (handler->is_secret)
			tti_secret_free(handler);
		else
			tti_free(handler);
	}
}

void tti_loop_release(struct tti_loop *loop)
{
	free_deferred(loop);
	tti_fd_close(&loop->wake_fd);
	tti_fd_close(&loop->epfd);
}

tutti_status tti_loop_add(struct tti_loop *loop, int fd, uint32_t events,
			  struct tti_event_handler *handler)
{
	struct epoll_event event = { .events = events, .data.ptr = handler };

	if (epoll_ctl(loop->epfd, EPOLL_CTL_ADD, fd, &event) < 0)
		return tti_fail(TUTTI_ESYS, "epoll_ctl: %m");
	return TUTTI_OK;
}

void tti_loop_change(struct tti_loop *loop, int fd, uint32_t events,
		     struct tti_event_handler *handler)
{
	struct epoll_event event = { .events = events, .data.ptr = handler };

	(void)epoll_ctl(loop->epfd, EPOLL_CTL_MOD, fd, &event);
}

void tti_loop_drop(struct tti_loop *loop, int fd)
{
	(void)epoll_ctl(loop->epfd, EPOLL_CTL_DEL, fd, NULL);
}

void tti_loop_close(struct tti_loop *loop, int *fd)
{
	if (*fd >= 0)
		tti_loop_drop(loop, *fd);
	tti_fd_close(fd);
}

void tti_loop_wait(struct tti_loop *loop, int timeout_ms)
{
	struct epoll_event events[64];
	const int n = epoll_wait(loop->epfd, events, 64, timeout_ms);
	eventfd_t count;

	for (int i = 0; i < n; i++) {
		struct tti_event_handler *handler = events[i].data.ptr;

		if (!handler)
			(void)eventfd_read(loop->wake_fd, &count);
		else if (!handler->freed && handler->handle)
			handler->handle(handler, events[i].events);
	}
	free_deferred(loop);
}

void tti_loop_wake(struct tti_loop *loop)
{
	(void)eventfd_write(loop->wake_fd, 1);
}

void tti_loop_free_later(struct tti_loop *loop, struct tti_event_handler *handler)
{
	handler->freed = true;
	handler->next_free = loop->deferred;
	loop->deferred = handler;
}

int tti_loop_left(int64_t deadline_ns)
{
	return deadline_ns == TTI_NEVER ? -1 : tti_left_ms(deadline_ns, 60000);
}
