/* SPDX-License-Identifier: BSD-3-Clause */
#include "tag.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

bool tag_open(struct tag_stream *tag, int rank, int target_fd)
{
	int fds[2];

	tag->rank = rank;
	tag->take = NULL;
	tag->self = NULL;
	tag->target_fd = target_fd;
	tag->len = 0;
	tag->read_fd = -1;
	tag->write_fd = -1;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	tag->read_fd = fds[0];
	tag->write_fd = fds[1];
	return fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0;
}

static void put_line(const struct tag_stream *tag, const char *text, size_t len, bool is_whole)
{
	char prefix[24] = "";
	const int prefix_len =
		tag->rank < 0 ? 0 : snprintf(prefix, sizeof(prefix), "[%d] ", tag->rank);
	struct iovec parts[3] = {
		{ prefix, (size_t)prefix_len },
		{ (void *)(uintptr_t)text, len },
		/* A line without a number in front goes on in the next write. */
		{ (void *)(uintptr_t) "\n", tag->rank >= 0 || is_whole ? 1 : 0 },
	};
	ssize_t n;

	if (is_whole && tag->take && tag->take(tag->self, text, len))
		return;
	/* Nobody can be told if our own output is gone. */
	do
		n = writev(tag->target_fd, parts, 3);
	while (n < 0 && errno == EINTR);
}

static void put_lines(struct tag_stream *tag)
{
	const char *line = tag->text;
	size_t left = tag->len;
	const char *end;

	while ((end = memchr(line, '\n', left)) != NULL) {
		put_line(tag, line, (size_t)(end - line), true);
		left -= (size_t)(end - line) + 1;
		line = end + 1;
	}
	if (left == TAG_ROOM) {
		put_line(tag, line, left, false);
		left = 0;
	}
	memmove(tag->text, line, left);
	tag->len = left;
}

void tag_pump(struct tag_stream *tag)
{
	ssize_t n;

	while (tag->read_fd >= 0) {
		n = read(tag->read_fd, tag->text + tag->len, TAG_ROOM - tag->len);
		if (n > 0) {
			tag->len += (size_t)n;
			put_lines(tag);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		tag_close(tag);
	}
}

void tag_close(struct tag_stream *tag)
{
	if (tag->len)
		put_line(tag, tag->text, tag->len, false);
	tag->len = 0;
	if (tag->read_fd >= 0)
		close(tag->read_fd);
	if (tag->write_fd >= 0)
		close(tag->write_fd);
	tag->read_fd = -1;
	tag->write_fd = -1;
}
