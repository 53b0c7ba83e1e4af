/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fd.h"
#include "util/mem.h"
#include "util/vec.h"

/* openat2(RESOLVE_IN_ROOT) would also follow links inside the root. But clusters run kernels
 * that lack it and containers that forbid it, and the real path would have to come from /proc.
 * So this file follows links itself, in the same way everywhere. */

#define MAX_LINKS 40 /* as the kernel has it */

/* -- Resolving ---------------------------------------------------------------------- */

/* A path that is being resolved: `done` has no links and is relative to the root, "" the root. */
struct lookup {
	char done[PATH_MAX];
	char todo[PATH_MAX];
};

static void go_up(char *done)
{
	char *slash = strrchr(done, '/');

	*(slash ? slash : done) = '\0';
}

static bool go_down(char *done, const char *name, size_t len)
{
	const size_t used = strlen(done);
	const int n =
		snprintf(done + used, PATH_MAX - used, "%s%.*s", used ? "/" : "", (int)len, name);

	return (size_t)n < PATH_MAX - used;
}

/* Put the target of a link in front of the rest of the path. */
static bool follow(struct lookup *lookup, const char *rest, const char *target)
{
	char both[PATH_MAX];
	const int n = snprintf(both, sizeof(both), "%s/%s", target, rest);

	if ((size_t)n >= sizeof(both))
		return false;
	memcpy(lookup->todo, both, (size_t)n + 1);
	if (target[0] == '/')
		lookup->done[0] = '\0';
	else
		go_up(lookup->done);
	return true;
}

/* Resolve lookup->todo to lookup->done without leaving the root. The last part need not exist. */
static bool resolve(int fd, struct lookup *lookup)
{
	char target[PATH_MAX];
	const char *at = lookup->todo;
	int nlinks = 0;

	lookup->done[0] = '\0';
	for (;;) {
		size_t len;
		ssize_t n;

		at += strspn(at, "/");
		len = strcspn(at, "/");
		if (len == 0)
			return true;
		if (len == 1 && at[0] == '.') {
			at += len;
			continue;
		}
		if (len == 2 && at[0] == '.' && at[1] == '.') {
			go_up(lookup->done);
			at += len;
			continue;
		}
		if (!go_down(lookup->done, at, len))
			return false;
		at += len;
		n = readlinkat(fd, lookup->done, target, sizeof(target) - 1);
		if (n < 0 && errno == EINVAL)
			continue; /* there, and no link */
		if (n < 0 || n == (ssize_t)sizeof(target) - 1 || ++nlinks > MAX_LINKS)
			return false;
		target[n] = '\0';
		if (!follow(lookup, at, target))
			return false;
		at = lookup->todo;
	}
}

static bool resolve_format(const struct tti_sysfs *root, struct lookup *lookup, const char *fmt,
			   va_list args)
{
	const int n = vsnprintf(lookup->todo, sizeof(lookup->todo), fmt, args);

	return n >= 0 && (size_t)n < sizeof(lookup->todo) && resolve(root->fd, lookup);
}

/* The path that `done` names, for the kernel. */
static const char *name_of(const struct lookup *lookup)
{
	return lookup->done[0] ? lookup->done : ".";
}

/* -- Reading ------------------------------------------------------------------------ */

/* Only regular files are read: opening a device may have effects, and a FIFO would block. */
static ssize_t read_at(int dir, const char *path, void *buf, size_t size)
{
	struct stat info;
	size_t have = 0;
	ssize_t n = 1;
	int fd;

	if (fstatat(dir, path, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode))
		return -1;
	fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while (have < size && n != 0) {
		n = read(fd, (char *)buf + have, size - have);
		if (n > 0)
			have += (size_t)n;
		else if (n < 0 && errno != EINTR)
			break;
	}
	tti_fd_close(&fd);
	return n < 0 && have == 0 ? -1 : (ssize_t)have;
}

static ssize_t read_format(const struct tti_sysfs *root, void *buf, size_t size, const char *fmt,
			   va_list args)
{
	struct lookup lookup;

	if (!resolve_format(root, &lookup, fmt, args))
		return -1;
	return read_at(root->fd, name_of(&lookup), buf, size);
}

static bool line_format(const struct tti_sysfs *root, char *buf, size_t size, const char *fmt,
			va_list args)
{
	const ssize_t n = read_format(root, buf, size - 1, fmt, args);

	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\r\n")] = '\0';
	return n >= 0;
}

ssize_t tti_sysfs_bytes(const struct tti_sysfs *root, void *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	ssize_t n;

	va_start(args, fmt);
	n = read_format(root, buf, size, fmt, args);
	va_end(args);
	return n;
}

bool tti_sysfs_line(const struct tti_sysfs *root, char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	bool ok;

	va_start(args, fmt);
	ok = line_format(root, buf, size, fmt, args);
	va_end(args);
	return ok;
}

/* "-1", "42 ", "0x1a"; a leading zero does not make it octal. */
static bool to_int(const char *text, int64_t *out)
{
	const char *digits = text + strspn(text, " \t");
	const bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	char *end;
	long long value;

	errno = 0;
	value = strtoll(digits, &end, hex ? 16 : 10);
	if (end == digits || errno != 0 || end[strspn(end, " \t")] != '\0')
		return false;
	*out = value;
	return true;
}

bool tti_sysfs_int(const struct tti_sysfs *root, int64_t *out, const char *fmt, ...)
{
	char line[64];
	va_list args;
	bool ok;

	va_start(args, fmt);
	ok = line_format(root, line, sizeof(line), fmt, args);
	va_end(args);
	return ok && to_int(line, out);
}

/* `lookup` leads to an entry that exists. */
static bool real_format(const struct tti_sysfs *root, struct lookup *lookup, const char *fmt,
			va_list args)
{
	struct stat info;

	return resolve_format(root, lookup, fmt, args) &&
	       fstatat(root->fd, name_of(lookup), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

bool tti_sysfs_exists(const struct tti_sysfs *root, const char *fmt, ...)
{
	struct lookup lookup;
	va_list args;
	bool ok;

	va_start(args, fmt);
	ok = real_format(root, &lookup, fmt, args);
	va_end(args);
	return ok;
}

bool tti_sysfs_real(const struct tti_sysfs *root, char *buf, size_t size, const char *fmt, ...)
{
	struct lookup lookup;
	va_list args;
	bool ok;

	va_start(args, fmt);
	ok = real_format(root, &lookup, fmt, args);
	va_end(args);
	return ok && (size_t)snprintf(buf, size, "%s", name_of(&lookup)) < size;
}

bool tti_sysfs_real_name(const struct tti_sysfs *root, char *buf, size_t size, const char *fmt, ...)
{
	const char *slash;
	struct lookup lookup;
	va_list args;
	bool ok;

	va_start(args, fmt);
	ok = real_format(root, &lookup, fmt, args);
	va_end(args);
	if (!ok)
		return false;
	slash = strrchr(lookup.done, '/');
	return (size_t)snprintf(buf, size, "%s", slash ? slash + 1 : name_of(&lookup)) < size;
}

size_t tti_sysfs_parent(const char *path, size_t len)
{
	while (len > 0 && path[len - 1] != '/')
		len--;
	return len > 0 ? len - 1 : 0;
}

/* -- Directories -------------------------------------------------------------------- */

/* The names one after another, each with its terminating zero. */
struct name_text {
	TTI_VEC(char) text;
	size_t n;
};

static bool add_name(struct name_text *names, const char *name)
{
	for (;; name++) {
		if (!tti_vec_push(&names->text, *name))
			return false;
		if (!*name)
			break;
	}
	names->n++;
	return true;
}

static bool read_names(DIR *dir, struct name_text *names)
{
	const struct dirent *entry;

	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    !add_name(names, entry->d_name))
			return false;
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One allocation: the pointers, then the names. */
static char **to_array(const struct name_text *names)
{
	char **array = tti_alloc(names->n * sizeof(*array) + names->text.n + 1);
	char *at;

	if (!array)
		return NULL;
	at = (char *)(array + names->n);
	if (names->n > 0)
		memcpy(at, names->text.at, names->text.n);
	for (size_t i = 0; i < names->n; i++) {
		array[i] = at;
		at += strlen(at) + 1;
	}
	if (names->n > 0)
		qsort(array, names->n, sizeof(*array), by_name);
	return array;
}

/* NULL: it is no directory, or cannot be read. */
static DIR *open_dir(int root, const char *path)
{
	int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		tti_fd_close(&fd);
	return dir;
}

tutti_status tti_sysfs_list(const struct tti_sysfs *root, char ***names_out, size_t *n_out,
			    const char *fmt, ...)
{
	struct name_text names = { 0 };
	struct lookup lookup;
	DIR *dir = NULL;
	va_list args;
	bool ok = true;

	*names_out = NULL;
	*n_out = 0;
	va_start(args, fmt);
	if (resolve_format(root, &lookup, fmt, args))
		dir = open_dir(root->fd, name_of(&lookup));
	va_end(args);
	if (!dir)
		return TUTTI_OK;
	ok = read_names(dir, &names);
	closedir(dir);
	if (ok)
		*names_out = to_array(&names);
	*n_out = *names_out ? names.n : 0;
	tti_vec_release(&names.text);
	return *names_out ? TUTTI_OK
			  : tti_fail(TUTTI_ENOMEM, "no memory for the names in %s", lookup.done);
}

/* -- The root ----------------------------------------------------------------------- */

static bool is_this_machine(int fd)
{
	struct stat given, root;

	return fstat(fd, &given) == 0 && stat("/", &root) == 0 && given.st_dev == root.st_dev &&
	       given.st_ino == root.st_ino;
}

static bool has_sys(const struct tti_sysfs *root)
{
	char path[PATH_MAX];
	struct stat info;

	return tti_sysfs_real(root, path, sizeof(path), "sys") &&
	       fstatat(root->fd, path, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

tutti_status tti_sysfs_open(const char *path, struct tti_sysfs *out)
{
	struct tti_sysfs root = { .path = path ? path : "/" };

	root.fd = open(root.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root.fd < 0)
		return tti_fail(TUTTI_EINVAL,
				"%s cannot be opened as a captured machine: %m; name the directory "
				"that has sys/ in it, unpacked",
				root.path);
	if (!has_sys(&root)) {
		tti_fd_close(&root.fd);
		return tti_fail(TUTTI_EINVAL,
				"%s has no directory sys/ in it: name the top of a captured "
				"machine, or mount /sys",
				root.path);
	}
	root.captured = !is_this_machine(root.fd);
	*out = root;
	return TUTTI_OK;
}

void tti_sysfs_close(struct tti_sysfs *root)
{
	tti_fd_close(&root->fd);
}
