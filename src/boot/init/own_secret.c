/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/init/own_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/params.h"

#define REMEDY "set TUTTI_COMM_SECRET to the same random text on all ranks"

static tutti_status find_path(char *out)
{
	const char *folder = tti_env_foreign("XDG_CONFIG_HOME");
	const char *home = tti_env_foreign("HOME");
	const bool is_config = folder && *folder == '/';

	if (!is_config && (!home || *home != '/'))
		return tti_fail(TUTTI_EUSAGE,
				"the secret of this job is to be that of the user, in ~/.config, "
				"but HOME=\"%s\" is no folder: " REMEDY,
				home ? home : "");
	if (snprintf(out, PATH_MAX, "%s%s/tutti/secret", is_config ? folder : home,
		     is_config ? "" : "/.config") >= PATH_MAX - 16)
		return tti_fail(TUTTI_EUSAGE, "HOME or XDG_CONFIG_HOME is too long: " REMEDY);
	return TUTTI_OK;
}

/* The two folders above the file. A failure shows when the file is made. */
static void make_folders(const char *path)
{
	char folder[PATH_MAX];
	char *slash;

	(void)snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	*slash = '\0';
	slash = strrchr(folder, '/');
	*slash = '\0';
	(void)mkdir(folder, 0700);
	*slash = '/';
	(void)mkdir(folder, 0700);
}

/* The file is completed under another name and then linked to this one, unless this one exists: that is
 * atomic on NFS, too. */
static tutti_status make_file(const char *path)
{
	char name[PATH_MAX], text[65];
	uint8_t random[32];
	bool good;
	int fd;

	make_folders(path);
	(void)snprintf(name, sizeof(name), "%.*s.XXXXXX", PATH_MAX - 16, path);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return tti_fail(TUTTI_EUSAGE,
				"cannot make the file %s, which is to hold the secret of jobs of "
				"this user: %m; make its folder writable, or " REMEDY,
				path);
	randombytes_buf(random, sizeof(random));
	sodium_bin2hex(text, sizeof(text), random, sizeof(random));
	text[64] = '\n';
	good = write(fd, text, sizeof(text)) == (ssize_t)sizeof(text) && fsync(fd) == 0 &&
	       (link(name, path) == 0 || errno == EEXIST);
	sodium_memzero(random, sizeof(random));
	sodium_memzero(text, sizeof(text));

	const tutti_status st =
		good ? TUTTI_OK : tti_fail(TUTTI_ESYS, "cannot write %s: %m; " REMEDY, path);

	unlink(name);
	tti_fd_close(&fd);
	if (good)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "%s has the secret of this user's jobs", path);
	return st;
}

static tutti_status read_file(struct tti_own_secret *out, int fd)
{
	struct stat file;
	ssize_t n;

	if (fstat(fd, &file) < 0)
		return tti_fail(TUTTI_ESYS, "cannot look at %s: %m", out->path);
	if (!S_ISREG(file.st_mode) || file.st_uid != geteuid() || (file.st_mode & 077))
		return tti_fail(TUTTI_EUSAGE,
				"%s has mode %03o and belongs to user %u; it must be a file of "
				"mode 600 of user %u: remove it, and the next job makes it anew",
				out->path, file.st_mode & 0777, file.st_uid, geteuid());
	n = read(fd, out->text, sizeof(out->text) - 1);
	if (n < 0)
		return tti_fail(TUTTI_ESYS, "cannot read %s: %m", out->path);
	out->text[n] = '\0';
	out->text[strcspn(out->text, "\r\n")] = '\0';
	if (strlen(out->text) < 16)
		return tti_fail(TUTTI_EUSAGE,
				"%s has a first line of %zu bytes, which is no secret: remove it, "
				"and the next job makes it anew",
				out->path, strlen(out->text));
	return TUTTI_OK;
}

tutti_status tti_own_secret_read(struct tti_own_secret *out)
{
	tutti_status st;
	int fd;

	memset(out, 0, sizeof(*out));
	tti_assert(sodium_init() >= 0);
	TTI_TRY(find_path(out->path));
	fd = open(out->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT) {
		TTI_TRY(make_file(out->path));
		fd = open(out->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	if (fd < 0)
		return tti_fail(TUTTI_EUSAGE,
				"cannot open %s, the secret of this user: %m; " REMEDY, out->path);
	st = read_file(out, fd);
	tti_fd_close(&fd);
	return st;
}
