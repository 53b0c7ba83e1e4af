/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_LOOP_H
#define TTI_BOOT_LOOP_H

/* An event loop: epoll with callbacks. An object that waits for a descriptor embeds an event
 * handler as its FIRST member and lies on the heap. tti_loop_free_later() may be called at any
 * time, from within a callback too: the object is freed once no event of this round can name it.
 *
 * Owner: whoever holds the struct. Threads: one; tti_loop_wake() any. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "tutti/status.h"

struct tti_event_handler {
	/* NULL: an event only ends tti_loop_wait(). */
	void (*handle)(struct tti_event_handler *handler, uint32_t events);
	struct tti_event_handler *next_free;
	bool freed;     /* it waits to be freed           */
	bool is_secret; /* tti_secret_zalloc() has made it */
};

struct tti_loop {
	int epfd, wake_fd;
	struct tti_event_handler *deferred; /* to be freed */
};

/* After a failure, too, the loop is to be released. */
TUTTI_CHECKED tutti_status tti_loop_init(struct tti_loop *loop);
void tti_loop_release(struct tti_loop *loop); /* after all objects are to be freed */

/* Events are EPOLLIN and so on. A descriptor leaves the loop by tti_loop_drop() or
 * tti_loop_close(). Closing it is not enough: the kernel goes on to report events for the handler
 * while a child of fork(), or a system call of another thread, has the same connection. */
TUTTI_CHECKED tutti_status tti_loop_add(struct tti_loop *loop, int fd, uint32_t events,
					struct tti_event_handler *handler);
void tti_loop_change(struct tti_loop *loop, int fd, uint32_t events,
		     struct tti_event_handler *handler);
void tti_loop_drop(struct tti_loop *loop, int fd);
void tti_loop_close(struct tti_loop *loop, int *fd); /* -1 is fine, and is what is left */

/* Wait once, at most timeout_ms (-1: for ever), and call the handlers. */
void tti_loop_wait(struct tti_loop *loop, int timeout_ms);
/* The wait that is under way ends, or the next one does. */
void tti_loop_wake(struct tti_loop *loop);

/* The object is freed when that is safe. Its descriptors are the caller's. */
void tti_loop_free_later(struct tti_loop *loop, struct tti_event_handler *handler);

/* ms until the deadline for tti_loop_wait(): -1 for TTI_NEVER. */
int tti_loop_left(int64_t deadline_ns);

#endif
