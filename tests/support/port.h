/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_PORT_H
#define TESTS_SUPPORT_PORT_H

/* A port for a listener that comes later. It lies below those that the system gives to others by
 * itself (ip_local_port_range), so that no connection of a busy machine takes it meanwhile. */

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline bool port_is_free(uint16_t port)
{
	const struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
	const bool is_free =
		fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0;

	if (fd >= 0)
		close(fd);
	return is_free;
}

/* The first of so many in a row; 0: none were found. */
static inline uint16_t ports_for_later(int n)
{
	enum { FIRST = 10240, END = 32768, TRIES = 1000 };
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (uint32_t i = 0; i < TRIES; i++) {
		const uint32_t drawn =
			(uint32_t)now.tv_nsec / 1000 + (uint32_t)getpid() * 101 + i * 7;
		const uint16_t first = (uint16_t)(FIRST + drawn % (uint32_t)(END - n - FIRST));
		int nfree = 0;

		while (nfree < n && port_is_free((uint16_t)(first + nfree)))
			nfree++;
		if (nfree == n)
			return first;
	}
	return 0;
}

static inline uint16_t port_for_later(void)
{
	return ports_for_later(1);
}

#endif
