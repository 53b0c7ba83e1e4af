/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch/loop.h"

#include <errno.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/mem.h"
#include "util/secret.h"

tutti_status tti_loop_init(struct tti_loop *loop)
{
	loop->dead = NULL;
	loop->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epfd < 0)
		return tti_fail(TUTTI_ESYS, "epoll_create1: %m%s",
				errno == EMFILE ? " (raise the limit of open files, ulimit -n)"
						: "");
	return TUTTI_OK;
}

static void free_dead(struct tti_loop *loop)
{
	while (loop->dead) {
		struct tti_ear *ear = loop->dead;

		loop->dead = ear->next_dead;
		if (ear->is_secret)
			tti_secret_free(ear);
		else
			tti_free(ear);
	}
}

void tti_loop_release(struct tti_loop *loop)
{
	free_dead(loop);
	tti_fd_close(&loop->epfd);
}

tutti_status tti_loop_add(struct tti_loop *loop, int fd, uint32_t events, struct tti_ear *ear)
{
	struct epoll_event event = { .events = events, .data.ptr = ear };

	if (epoll_ctl(loop->epfd, EPOLL_CTL_ADD, fd, &event) < 0)
		return tti_fail(TUTTI_ESYS, "epoll_ctl: %m");
	return TUTTI_OK;
}

void tti_loop_change(struct tti_loop *loop, int fd, uint32_t events, struct tti_ear *ear)
{
	struct epoll_event event = { .events = events, .data.ptr = ear };

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

	for (int i = 0; i < n; i++) {
		struct tti_ear *ear = events[i].data.ptr;

		if (!ear->dead)
			ear->hear(ear, events[i].events);
	}
	free_dead(loop);
}

void tti_loop_bury(struct tti_loop *loop, struct tti_ear *ear)
{
	ear->dead = true;
	ear->next_dead = loop->dead;
	loop->dead = ear;
}

int tti_loop_left(int64_t deadline_ns)
{
	return deadline_ns == TTI_NEVER ? -1 : tti_left_ms(deadline_ns, 60000);
}
