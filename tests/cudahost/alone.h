/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the engine that run in processes of their own, so that each has its variables, its limits
 * and its memory, and the process of cmocka never begins with CUDA.
 *
 * In such a process CHECK() says what is wrong and ends it. A test fails if its process does. */
#ifndef TESTS_CUDAHOST_ALONE_H
#define TESTS_CUDAHOST_ALONE_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/device.h"
#include "support/sanitizer.h"

#define MIB            ((size_t)1 << 20)
#define ALONE_SECONDS  300 /* more than anything takes */
#define ALONE_FAULTED  42
#define ALONE_UNTESTED 77

#define CHECK(condition)                                           \
	do {                                                       \
		if (!(condition))                                  \
			alone_die(__FILE__, __LINE__, #condition); \
	} while (0)
/* The call fails so, with a text that has `words`. */
#define FAILS(error, words, call)                            \
	do {                                                 \
		CHECK((call) == (error));                    \
		CHECK(strstr(tti_cuda_error_text(), words)); \
	} while (0)
#define GOOD(call) CHECK((call) == 0)

__attribute__((noreturn)) static inline void alone_die(const char *file, int line, const char *what)
{
	(void)fprintf(stderr, "%s:%d: %s is not so; errno %s; last error: %s\n", file, line, what,
		      strerror(errno), tti_cuda_error_text());
	_exit(1);
}

static inline pid_t alone_start(void (*body)(void *arg), void *arg)
{
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)alarm(ALONE_SECONDS);
		body(arg);
		exit(0); /* with the search for leaks */
	}
	CHECK(pid > 0);
	return pid;
}

/* The exit status, or 128 + signal. */
static inline int alone_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void alone_run(void (*body)(void *arg), void *arg)
{
	const int status = alone_wait(alone_start(body, arg));

	if (status == ALONE_UNTESTED)
		skip();
	assert_int_equal(status, 0);
}

/* Whether a byte can be read (or written, with `writes`), found out in a thread's own signal
 * handler. */
static sigjmp_buf alone_back;

static inline void alone_on_fault(int number)
{
	(void)number;
	siglongjmp(alone_back, 1);
}

static inline bool alone_can_access(void *address, bool writes)
{
	volatile char *const byte = address;
	const struct sigaction action = { .sa_handler = alone_on_fault };
	struct sigaction before;
	volatile bool can = false;

	(void)sigaction(SIGSEGV, &action, &before);
	if (sigsetjmp(alone_back, 1) == 0) {
		const char is = *byte;

		if (writes)
			*byte = is;
		can = true;
	}
	(void)sigaction(SIGSEGV, &before, NULL);
	return can;
}

/* Open descriptors and mappings of the library's files. */
static inline int alone_count(const char *path, const char *words)
{
	FILE *const file = fopen(path, "re");
	char line[1024];
	int n = 0;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, words) != NULL;
	(void)fclose(file);
	return n;
}

static inline int alone_maps(void)
{
	return alone_count("/proc/self/maps", "memfd:tutti_cudahost");
}

/* Of all that is mapped or reserved. */
static inline long alone_address_pages(void)
{
	FILE *const file = fopen("/proc/self/statm", "re");
	long n = 0;

	CHECK(file && fscanf(file, "%ld", &n) == 1);
	(void)fclose(file);
	return n;
}

/* The descriptors that are ours, up to 16 of them in out[]. */
static inline int alone_files(int out[16])
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		char path[64];
		char target[256] = "";

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof(target) - 1) > 0 &&
		    strstr(target, "memfd:tutti_cudahost") && n < 16)
			out[n++] = fd;
	}
	return n;
}

static inline int alone_nfiles(void)
{
	int files[16];

	return alone_files(files);
}

static inline uint32_t alone_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Messages between two of these processes: a pair of sockets. A side that is gone ends the other. */
static inline void alone_send(int socket, const void *data, size_t nbytes)
{
	CHECK(send(socket, data, nbytes, MSG_NOSIGNAL) == (ssize_t)nbytes);
}

static inline void alone_recv(int socket, void *data, size_t nbytes)
{
	CHECK(recv(socket, data, nbytes, MSG_WAITALL) == (ssize_t)nbytes);
}

#endif
