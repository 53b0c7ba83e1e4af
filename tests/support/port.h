/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_PORT_H
#define TESTS_SUPPORT_PORT_H

/* A port for a listener that comes later. It lies below those that the system gives to others by
 * itself (ip_local_port_range), so that no connection of a busy machine takes it meanwhile. */

#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "boot/iface.h"

/* 0: none was found. */
static inline uint16_t port_for_later(void)
{
	enum { FIRST = 10240, END = 32768, TRIES = 1000 };
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (uint32_t i = 0; i < TRIES; i++) {
		const uint32_t drawn =
			(uint32_t)now.tv_nsec / 1000 + (uint32_t)getpid() * 101 + i * 7;
		uint16_t port = (uint16_t)(FIRST + drawn % (END - FIRST));
		int fd;

		if (tti_listen(&port, 1, &fd) == TUTTI_OK) {
			close(fd);
			return port;
		}
	}
	return 0;
}

#endif
