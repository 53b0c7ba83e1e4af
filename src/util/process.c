/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.h"
#include "util/hash.h"

/* What the kernel says of a process (proc(5)). */
struct stat_line {
	char state;
	int nthreads;
	unsigned long long start; /* in ticks since the kernel began */
};

/* At most size - 1 bytes, and a 0; false: it cannot be read. */
static bool read_text(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;

	out[n > 0 ? n : 0] = '\0';
	tti_fd_close(&fd);
	return n > 0;
}

static bool read_stat(pid_t pid, struct stat_line *out)
{
	char path[64], text[1024];
	const char *name_end;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!read_text(path, text, sizeof(text)))
		return false;
	/* "PID (NAME) STATE ...", and a name may have parentheses of its own. */
	name_end = strrchr(text, ')');
	return name_end &&
	       sscanf(name_end,
		      ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d %*s "
		      "%llu",
		      &out->state, &out->nthreads, &out->start) == 3;
}

/* Of several threads the first may have ended alone. */
static bool is_over(const struct stat_line *line)
{
	return (line->state == 'Z' || line->state == 'X') && line->nthreads <= 1;
}

/* The kernel and the space of process numbers; 0: /proc does not show it. */
static uint32_t find_place(void)
{
	char kernel[64], self[16], number[16];
	const ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);
	struct stat space;
	uint64_t hash;

	if (n < 0 || !read_text("/proc/sys/kernel/random/boot_id", kernel, sizeof(kernel)) ||
	    stat("/proc/self/ns/pid", &space) < 0)
		return 0;
	self[n] = '\0';
	(void)snprintf(number, sizeof(number), "%d", (int)getpid());
	if (strcmp(self, number) != 0)
		return 0;
	hash = tti_hash_combine(tti_hash_bytes(kernel, strlen(kernel)), space.st_ino);
	return (uint32_t)(hash >> 32) | 1;
}

uint64_t tti_process_identity(pid_t pid)
{
	const uint32_t place = find_place();
	struct stat_line line;

	if (!place || !read_stat(pid, &line) || is_over(&line))
		return 0;
	return (uint64_t)place << 32 | (uint32_t)line.start;
}

bool tti_process_is_here(uint64_t identity)
{
	return identity && identity >> 32 == find_place();
}

bool tti_process_has_ended(pid_t pid, uint64_t identity)
{
	struct stat_line line;

	if (!tti_process_is_here(identity))
		return false;
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return true;
	return read_stat(pid, &line) &&
	       (is_over(&line) || (uint32_t)line.start != (uint32_t)identity);
}
