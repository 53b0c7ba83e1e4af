/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "boot/boot.h"
#include "core/call/timeout.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/fork.h"
#include "util/secret.h"

/* What the file holds; the text of rank 0's error may follow. */
struct page {
	char mark[16];
	char host[40];     /* the boot id of the kernel that rank 0 runs on; "": not known */
	char has_locks[8]; /* "lock" where rank 0 holds one                            */
	tutti_unique_id id;
};

#define MARK       "Tutti meeting 1\n"
#define WORDS_MOST 1024

struct tti_meeting {
	int fd; /* of rank 0; -1: of another rank */
	tutti_unique_id id;
	char path[];
};

/* What is found at the name. */
struct finding {
	struct stat file;
	struct page page;
	char words[WORDS_MOST];
	bool is_whole;    /* the id is in it           */
	bool has_ended;   /* its rank 0 is there no more */
	bool is_own_host; /* made on this host         */
};

/* Rank 0 holds the lock on byte 0 until it closes the file or ends; a forked child does not have
 * the file. A process that removes a file without a lock holds both bytes meanwhile, so that only
 * one removes it. */
#define BYTES_HELD    1
#define BYTES_REMOVAL 2

static int lock_bytes(int fd, short type, off_t nbytes)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = nbytes };

	return fcntl(fd, F_OFD_SETLK, &lock);
}

static bool is_held_by_other(int error)
{
	return error == EAGAIN || error == EACCES;
}

static void read_host(char *out, size_t size)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd >= 0 ? read(fd, out, size - 1) : 0;

	out[n > 0 ? n : 0] = '\0';
	tti_fd_close(&fd);
}

/* The maker of the file decides with whom this rank talks, so it must be a process of the same
 * user. */
static tutti_status check_maker(const char *path, int fd, struct stat *out)
{
	if (fstat(fd, out) < 0)
		return tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot look at %s: %m", path);
	if (!S_ISREG(out->st_mode) || out->st_uid != geteuid() || (out->st_mode & 077))
		return tti_fail(TUTTI_EUSAGE,
				"TUTTI_COMM_FILE=%s is not what rank 0 makes: it has mode %03o and "
				"belongs to user %u, and must be a file of mode 600 of user %u; "
				"remove it, or name one in a folder of your own",
				path, out->st_mode & 0777, out->st_uid, geteuid());
	return TUTTI_OK;
}

/* TUTTI_AGAIN: there is none. */
static tutti_status open_file(const char *path, int mode, int *fd, struct stat *file)
{
	tutti_status st;

	*fd = tti_fork_close(open(path, mode | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
	if (*fd < 0 && errno == ENOENT)
		return TUTTI_AGAIN;
	if (*fd < 0 && errno == ELOOP)
		return tti_fail(TUTTI_EUSAGE,
				"TUTTI_COMM_FILE=%s is a symbolic link: name the file itself",
				path);
	if (*fd < 0)
		return tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot open %s: %m", path);
	st = check_maker(path, *fd, file);
	if (st != TUTTI_OK)
		tti_fd_close(fd);
	return st;
}

/* Whether the file's rank 0 is known to be gone. */
static bool is_abandoned(int fd, struct finding *found)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = BYTES_HELD };

	if (*found->words)
		return true;
	if (!found->is_own_host || !*found->page.has_locks || fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return false;
	/* It is being removed: there will be another one. */
	if (lock.l_type != F_UNLCK && lock.l_len == BYTES_REMOVAL)
		found->is_whole = false;
	return lock.l_type == F_UNLCK;
}

static tutti_status read_page(const char *path, int fd, struct finding *found)
{
	static const tutti_unique_id none;
	char host[sizeof(found->page.host)];
	ssize_t n = pread(fd, &found->page, sizeof(found->page), 0);

	if (n < 0)
		return tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot read %s: %m", path);
	if (n > 0 && memcmp(found->page.mark, MARK, (size_t)n < 16 ? (size_t)n : 16) != 0)
		return tti_fail(TUTTI_EUSAGE,
				"TUTTI_COMM_FILE=%s exists already and is not what rank 0 makes: "
				"remove it, or name another file",
				path);
	found->is_whole = n == (ssize_t)sizeof(found->page);
	if (!found->is_whole)
		return TUTTI_OK;
	read_host(host, sizeof(host));
	found->page.host[sizeof(found->page.host) - 1] = '\0';
	found->is_own_host = *host && strcmp(host, found->page.host) == 0;
	n = pread(fd, found->words, sizeof(found->words) - 1, sizeof(found->page));
	found->words[n > 0 ? n : 0] = '\0';
	/* Rank 0 has no id and is about to write why. */
	if (!*found->words && memcmp(&found->page.id, &none, sizeof(none)) == 0)
		found->is_whole = false;
	found->has_ended = is_abandoned(fd, found);
	return TUTTI_OK;
}

/* -- Rank 0 ------------------------------------------------------------------------- */

static tutti_status name_is_taken(const char *path)
{
	return tti_fail(TUTTI_EUSAGE,
			"TUTTI_COMM_FILE=%s is in use by another job: name a file of its own for "
			"each job",
			path);
}

static bool is_at(const char *path, const struct stat *file)
{
	struct stat now;

	return lstat(path, &now) == 0 && now.st_ino == file->st_ino && now.st_dev == file->st_dev;
}

/* The file of an earlier run. TUTTI_AGAIN: the name may be free now. */
static tutti_status remove_old(const char *path)
{
	struct finding found = { 0 };
	tutti_status st;
	int fd;

	TTI_TRY(open_file(path, O_RDWR, &fd, &found.file));
	st = read_page(path, fd, &found);
	if (st != TUTTI_OK)
		goto done;
	if (found.is_whole && !found.has_ended && !(found.is_own_host && *found.page.has_locks)) {
		st = tti_fail(TUTTI_EUSAGE,
			      "TUTTI_COMM_FILE=%s exists already, and cannot be told from one that "
			      "is in use: remove it, or name another file for each run",
			      path);
		goto done;
	}
	if (lock_bytes(fd, F_WRLCK, BYTES_REMOVAL) < 0 && is_held_by_other(errno)) {
		st = name_is_taken(path);
		goto done;
	}
	if (is_at(path, &found.file) && unlink(path) < 0)
		st = tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot remove the old %s: %m", path);
	else
		st = TUTTI_AGAIN;
done:
	tti_fd_close(&fd);
	return st;
}

/* Create the file, which must not exist: in a folder that all users may write to, another user
 * could have put an id there. TUTTI_AGAIN: the name was taken a moment ago. */
static tutti_status create_file(const char *path, bool *has_locks, int *out)
{
	struct stat file;
	int fd = tti_fork_close(
		open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));

	if (fd < 0 && errno == EEXIST)
		return remove_old(path);
	if (fd < 0)
		return tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot create %s: %m", path);
	*has_locks = lock_bytes(fd, F_WRLCK, BYTES_HELD) == 0;
	/* Between the two calls another process took the file for an old one. */
	if ((!*has_locks && is_held_by_other(errno)) ||
	    (fstat(fd, &file) == 0 && file.st_nlink == 0)) {
		tti_fd_close(&fd);
		return TUTTI_AGAIN;
	}
	*out = fd;
	return TUTTI_OK;
}

static tutti_status make(const char *path, struct tti_meeting **out)
{
	const size_t len = strlen(path) + 1;

	*out = tti_secret_zalloc(sizeof(**out) + len);
	if (!*out)
		return tti_fail(TUTTI_ENOMEM, "TUTTI_COMM_FILE=%s: out of memory", path);
	memcpy((*out)->path, path, len);
	(*out)->fd = -1;
	return TUTTI_OK;
}

tutti_status tti_meeting_open(const char *path, tutti_unique_id *id, struct tti_meeting **out)
{
	struct tti_meeting *meeting;
	struct page page = { .mark = { 0 } };
	bool has_locks = false;
	tutti_status st = TUTTI_AGAIN;
	int copy;

	TTI_TRY(make(path, &meeting));
	for (int tries = 0; tries < 100 && st == TUTTI_AGAIN; tries++)
		st = create_file(path, &has_locks, &meeting->fd);
	if (st != TUTTI_OK) {
		tti_secret_free(meeting);
		return st == TUTTI_AGAIN ? name_is_taken(path) : st;
	}
	st = tti_boot_id_create(&page.id);
	memcpy(page.mark, MARK, sizeof(page.mark));
	if (has_locks)
		memcpy(page.has_locks, "lock", 4);
	read_host(page.host, sizeof(page.host));
	if (pwrite(meeting->fd, &page, sizeof(page), 0) != (ssize_t)sizeof(page) && st == TUTTI_OK)
		st = tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot write %s: %m", path);
	if (st == TUTTI_OK)
		*id = page.id;
	explicit_bzero(&page.id, sizeof(page.id));
	if (st != TUTTI_OK) {
		tti_meeting_close(meeting, false);
		return st;
	}
	/* NFS shows written data to other hosts when a file descriptor is closed, a duplicate
	 * included; otherwise only half a minute later. */
	copy = tti_fork_close(fcntl(meeting->fd, F_DUPFD_CLOEXEC, 0));
	tti_fd_close(&copy);
	*out = meeting;
	return TUTTI_OK;
}

void tti_meeting_close(struct tti_meeting *meeting, bool have_met)
{
	const char *words = tti_error_text();
	struct stat file;

	if (!meeting)
		return;
	if (meeting->fd < 0) {
		tti_secret_free(meeting);
		return;
	}
	if (!have_met && pwrite(meeting->fd, words, strlen(words), sizeof(struct page)) < 0)
		have_met = true; /* without a text it is of no use to anybody */
	if (have_met && fstat(meeting->fd, &file) == 0 && is_at(meeting->path, &file))
		unlink(meeting->path);
	tti_fd_close(&meeting->fd);
	tti_secret_free(meeting);
}

/* -- The others ----------------------------------------------------------------------- */

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static tutti_status look(const char *path, struct finding *found)
{
	tutti_status st;
	int fd;

	memset(found, 0, sizeof(*found));
	st = open_file(path, O_RDONLY, &fd, &found->file);
	if (st == TUTTI_AGAIN)
		return TUTTI_OK;
	TTI_TRY(st);
	st = read_page(path, fd, found);
	tti_fd_close(&fd);
	return st;
}

static const char *words_of(const struct finding *found)
{
	return *found->words ? found->words
			     : "(none: it was killed, or it left before it had finished its init)";
}

static tutti_status waited_in_vain(const char *path, const struct finding *found,
				   const struct tti_timeout *timeout)
{
	const long long ms = (long long)timeout->ms;

	if (found->has_ended)
		return tti_fail(
			TUTTI_ETIMEOUT,
			"rank 0 has not written TUTTI_COMM_FILE=%s within %lld ms "
			"(%s); the file there is of a rank 0 that had ended before this rank came, "
			"with the error: %s",
			path, ms, timeout->source, words_of(found));
	return tti_fail(TUTTI_ETIMEOUT,
			"rank 0 has not written TUTTI_COMM_FILE=%s within %lld ms (%s)", path, ms,
			timeout->source);
}

tutti_status tti_meeting_read(const char *path, const struct tti_timeout *timeout,
			      tutti_unique_id *id, struct tti_meeting **out)
{
	const int64_t deadline = tti_deadline(timeout->ms);
	struct timespec nap = { .tv_nsec = 500 * 1000 };
	struct finding found;
	struct stat first;
	tutti_status st;

	TTI_TRY(look(path, &found));
	first = found.file;
	while (!found.is_whole || found.has_ended) {
		/* A file that was there before this rank may be of an earlier run. */
		if (found.has_ended && !is_unchanged(&first, &found.file))
			return tti_fail(TUTTI_EPEER,
					"rank 0 has ended, though this rank waits for it at "
					"TUTTI_COMM_FILE=%s; its error: %s",
					path, words_of(&found));
		if (tti_now_ns() > deadline)
			return waited_in_vain(path, &found, timeout);
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < 20 * 1000 * 1000)
			nap.tv_nsec += nap.tv_nsec / 4;
		TTI_TRY(look(path, &found));
	}
	st = make(path, out);
	if (st == TUTTI_OK)
		*id = (*out)->id = found.page.id;
	explicit_bzero(&found.page.id, sizeof(found.page.id));
	return st;
}

tutti_status tti_meeting_explain(const struct tti_meeting *meeting, tutti_status status)
{
	char text[WORDS_MOST];
	struct finding found;
	tutti_status st;
	bool is_other;

	if (!meeting || meeting->fd >= 0 || (status != TUTTI_EPEER && status != TUTTI_ETIMEOUT))
		return status;
	(void)snprintf(text, sizeof(text), "%s", tti_error_text());
	st = look(meeting->path, &found);
	/* Without a text rank 0 was killed. Equal texts have one cause. */
	is_other = memcmp(&found.page.id, &meeting->id, sizeof(meeting->id)) != 0;
	explicit_bzero(&found.page.id, sizeof(found.page.id));
	if (st != TUTTI_OK || !found.is_whole || !*found.words || strstr(found.words, text) ||
	    is_other) {
		tti_error_set(text);
		return status;
	}
	return tti_fail(status, "%s; rank 0 has ended with the error: %s", text, found.words);
}
