/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fd.h"
#include "util/mem.h"
#include "util/strbuf.h"
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

/* -- Writing ----------------------------------------------------------------------- */

static tutti_status write_all(int fd, const char *text, size_t nbytes, const char *path)
{
	while (nbytes > 0) {
		const ssize_t n = write(fd, text, nbytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tti_fail(TUTTI_ESYS, "write %s: %m", path);
		text += n;
		nbytes -= (size_t)n;
	}
	return TUTTI_OK;
}

/* A name beside `path` that no other process or host has, freed with tti_free(). */
static char *name_beside(const char *path)
{
	struct tti_strbuf name = { 0 };
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		number = (uint64_t)getpid();
	tti_strbuf_addf(&name, "%s.%016" PRIx64, path, number);
	return tti_strbuf_take(&name);
}

static tutti_status replace(const char *path, const char *text, size_t nbytes)
{
	char *beside = name_beside(path);
	tutti_status st;
	int fd = -1;

	if (!beside)
		return tti_fail(TUTTI_ENOMEM, "writing %s: out of memory", path);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		st = tti_fail(TUTTI_ESYS, "create %s: %m", beside);
		goto done;
	}
	st = write_all(fd, text, nbytes, beside);
	if (close(fd) < 0 && st == TUTTI_OK)
		st = tti_fail(TUTTI_ESYS, "write %s: %m", beside);
	if (st == TUTTI_OK && rename(beside, path) < 0)
		st = tti_fail(TUTTI_ESYS, "rename %s to %s: %m", beside, path);
	if (st != TUTTI_OK)
		unlink(beside);

done:
	tti_free(beside);
	return st;
}

tutti_status tti_file_replace(const char *path, const char *text, size_t nbytes)
{
	char *real = realpath(path, NULL);
	struct stat info;
	tutti_status st;

	if (real && stat(real, &info) == 0 && !S_ISREG(info.st_mode))
		st = tti_fail(TUTTI_EINVAL, "%s is not a regular file: name one to write to", path);
	else
		st = replace(real ? real : path, text, nbytes);
	free(real);
	return st;
}
