/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fd.h"
#include "util/vec.h"

struct bytes {
	char *at;
	size_t n, room;
};

static const char *kind_of(mode_t mode)
{
	if (S_ISDIR(mode))
		return "a directory";
	if (S_ISFIFO(mode))
		return "a pipe";
	return S_ISSOCK(mode) ? "a socket" : "a device";
}

/* The size that stat() tells is not asked for: files below /proc have none. */
static tutti_status read_all(int fd, const char *path, size_t most, struct bytes *out)
{
	for (;;) {
		ssize_t n;

		if (!tti_vec_reserve((void **)&out->at, &out->room, out->n + 4096, 1))
			return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", path);
		n = read(fd, out->at + out->n, out->room - out->n - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tti_fail(TUTTI_ESYS, "read %s: %m", path);
		out->n += (size_t)n;
		out->at[out->n] = '\0';
		if (n == 0 || out->n > most)
			return TUTTI_OK;
	}
}

tutti_status tti_file_read(const char *path, const char *what, size_t most, char **text_out,
			   size_t *nbytes_out)
{
	struct bytes text = { 0 };
	struct stat info;
	tutti_status st;
	/* Not to wait for a writer, should it be a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return tti_fail(TUTTI_EINVAL, "%s %s: %m", what, path);
	if (fstat(fd, &info) < 0)
		st = tti_fail(TUTTI_ESYS, "%s %s: %m", what, path);
	else if (!S_ISREG(info.st_mode))
		st = tti_fail(TUTTI_EINVAL, "%s %s is %s, not a file", what, path,
			      kind_of(info.st_mode));
	else
		st = read_all(fd, path, most, &text);
	tti_fd_close(&fd);
	if (st != TUTTI_OK) {
		tti_vec_release(&text);
		return st;
	}
	*text_out = text.at;
	*nbytes_out = text.n;
	return TUTTI_OK;
}
