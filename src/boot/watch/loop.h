/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_LOOP_H
#define TTI_BOOT_LOOP_H

/* epoll with callbacks. Who wants to hear of a descriptor embeds an ear as the
 * FIRST member of a heap object and may bury the object at any time, inside a
 * callback too: it is freed when no event of this round can name it any more.
 *
 * Owner: who holds the struct. Threads: one. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "tutti/status.h"

struct tti_ear {
	void (*hear)(struct tti_ear *ear, uint32_t events);
	struct tti_ear *next_dead;
	bool dead;
	bool is_secret; /* made by tti_secret_zalloc() */
};

struct tti_loop {
	int epfd;
	struct tti_ear *dead;
};

TUTTI_CHECKED tutti_status tti_loop_init(struct tti_loop *loop);
void tti_loop_release(struct tti_loop *loop); /* after all ears are buried */

/* Events are EPOLLIN and so on; a descriptor leaves the loop by tti_loop_drop() or
 * tti_loop_close(). Closing alone does not do: the kernel goes on to name the ear while a child
 * of fork(), or a system call of another thread, has the same connection. */
TUTTI_CHECKED tutti_status tti_loop_add(struct tti_loop *loop, int fd, uint32_t events,
					struct tti_ear *ear);
void tti_loop_change(struct tti_loop *loop, int fd, uint32_t events, struct tti_ear *ear);
void tti_loop_drop(struct tti_loop *loop, int fd);
void tti_loop_close(struct tti_loop *loop, int *fd); /* -1 is fine, and is what is left */

/* Wait once, at most timeout_ms (-1: for ever), and call the ears. */
void tti_loop_wait(struct tti_loop *loop, int timeout_ms);

/* Free the object when it is safe. Its descriptors are the caller's. */
void tti_loop_bury(struct tti_loop *loop, struct tti_ear *ear);

/* ms until the deadline for tti_loop_wait(): -1 for TTI_NEVER. */
int tti_loop_left(int64_t deadline_ns);

#endif
