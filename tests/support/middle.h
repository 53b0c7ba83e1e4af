/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_MIDDLE_H
#define TESTS_SUPPORT_MIDDLE_H

/* Somebody in the middle: a process through which all TCP connections of the test's other
 * processes go. It looks for a text in what passes, and attacks once. The program of the test
 * defines connect(), for the library too, and has it do what middle_connect() does. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum middle_attack {
	MIDDLE_READ,       /* nothing is changed                               */
	MIDDLE_FLIP,       /* one bit                                          */
	MIDDLE_DROP,       /* some bytes, or all of what came                  */
	MIDDLE_REPLAY,     /* the same once more                               */
	MIDDLE_REORDER,    /* the second part before the first                 */
	MIDDLE_INSERT,     /* bytes that nobody sent                           */
	MIDDLE_FLIP_FIRST, /* one bit of the first byte                       */
	MIDDLE_TAKE_OVER,  /* from here on the middle speaks to one side alone */
	MIDDLE_ATTACKS,
};

/* In memory that all processes share. */
struct middle {
	enum middle_attack attack;
	uint64_t victim; /* which piece of what passes is attacked: its number, from 0 */
	uint64_t seed;
	char text[32]; /* what is looked for */
	_Atomic int port, attacked, found;
	_Atomic uint64_t pieces, bytes; /* that passed */
	pid_t pid;
};

/* From now on, in processes that are forked later too, connections go through the middle. */
struct middle *middle_start(enum middle_attack attack, uint64_t victim, uint64_t seed,
			    const char *text);
void middle_stop(struct middle *middle);

/* connect(): the system's, unless there is somebody in the middle and it is TCP over IPv4. */
int middle_connect(int fd, const struct sockaddr *to, socklen_t len);

#endif
