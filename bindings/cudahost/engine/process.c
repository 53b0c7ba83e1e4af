/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t tti_cuda_process_hash(uint32_t hash, const void *data, uint64_t nbytes)
{
	const unsigned char *const bytes = data;

	for (uint64_t i = 0; i < nbytes; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

/* A text, or -1 and errno. */
static ssize_t read_file(const char *path, char *out, size_t room)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int error;

	if (fd < 0)
		return -1;
	n = read(fd, out, room - 1);
	error = errno;
	close(fd);
	errno = error;
	if (n >= 0)
		out[n] = '\0';
	return n;
}

/* The 22nd of proc(5); the second is a name in parentheses, which may have any character. */
uint64_t tti_cuda_process_start(int pid)
{
	char path[64];
	char text[1024];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	errno = 0;
	if (read_file(path, text, sizeof(text)) <= 0)
		return 0;
	errno = 0;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++) {
		at = strchr(at, ' ');
		if (at)
			at++;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

uint32_t tti_cuda_process_space(void)
{
	uint32_t hash = TTI_CUDA_HASH_BEGIN;
	char text[128];
	ssize_t n = read_file("/proc/sys/kernel/random/boot_id", text, sizeof(text));

	if (n <= 0)
		return 0;
	hash = tti_cuda_process_hash(hash, text, (uint64_t)n);
	n = readlink("/proc/self/ns/pid", text, sizeof(text));
	if (n <= 0)
		return 0;
	hash = tti_cuda_process_hash(hash, text, (uint64_t)n);
	return hash ? hash : 1;
}
