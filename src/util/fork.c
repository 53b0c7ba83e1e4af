/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"

_Atomic int tti_fork_own_pid;

/* A program that closes all its files, these too, may get the number for a file of its own: the
 * inode tells. */
struct file {
	int fd;
	ino_t inode;
};

/* In pages of its own: malloc() under the lock would wait for one that has its own lock held while
 * a process forks, as that of libtutti-malloc.so has, and waits for this one. */
static struct {
	pthread_mutex_t lock;
	struct file *all;
	size_t n, room;
} files = { .lock = PTHREAD_MUTEX_INITIALIZER };

static ino_t inode_of(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 ? file.st_ino : 0;
}

static void before_fork(void)
{
	pthread_mutex_lock(&files.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&files.lock);
}

/* Only what may be called between fork() and exec(). */
static void in_child(void)
{
	atomic_store(&tti_fork_own_pid, (int)getpid());
	for (size_t i = 0; i < files.n; i++)
		if (inode_of(files.all[i].fd) == files.all[i].inode)
			close(files.all[i].fd);
	files.n = 0;
	pthread_mutex_unlock(&files.lock);
}

static void begin(void)
{
	atomic_store(&tti_fork_own_pid, (int)getpid());
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

void tti_fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, begin);
}

void tti_fork_lock(void)
{
	tti_fork_watch();
	pthread_mutex_lock(&files.lock);
}

void tti_fork_unlock(void)
{
	pthread_mutex_unlock(&files.lock);
}

tutti_status tti_fork_refuse(const char *what, const void *handle, int pid)
{
	return tti_fail(TUTTI_EUSAGE,
			"%s %p was made by process %d, and this is process %d, its child: it can "
			"be used in process %d only",
			what, handle, pid, tti_fork_pid(), pid);
}

/* Under the lock; NULL: it is not in the list. */
static struct file *find(int fd)
{
	for (size_t i = files.n; i-- > 0;)
		if (files.all[i].fd == fd)
			return &files.all[i];
	return NULL;
}

/* Under the lock. */
static bool make_room(void)
{
	const size_t least = 4096 / sizeof(*files.all);
	const size_t more = files.room ? files.room * 2 : least;
	void *at;

	if (files.n < files.room)
		return true;
	at = mmap(NULL, more * sizeof(*files.all), PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return false;
	if (files.room) {
		memcpy(at, files.all, files.n * sizeof(*files.all));
		munmap(files.all, files.room * sizeof(*files.all));
	}
	files.all = at;
	files.room = more;
	return true;
}

/* Under the lock. Without memory a child keeps the file: a death may be found late. */
static void add(int fd)
{
	const ino_t inode = fd >= 0 ? inode_of(fd) : 0;
	struct file *known;

	if (!inode)
		return;
	known = find(fd);
	if (known)
		known->inode = inode;
	else if (make_room())
		files.all[files.n++] = (struct file){ .fd = fd, .inode = inode };
}

int tti_fork_close(int fd)
{
	const int error = errno;

	tti_fork_lock();
	add(fd);
	tti_fork_unlock();
	errno = error;
	return fd;
}

int tti_fork_socket(int family, int type)
{
	int fd;

	tti_fork_lock();
	fd = socket(family, type | SOCK_CLOEXEC, 0);
	add(fd);
	tti_fork_unlock();
	return fd;
}

int tti_fork_accept(int listener, struct sockaddr *from, socklen_t *len)
{
	int fd;

	tti_fork_lock();
	fd = accept4(listener, from, len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	add(fd);
	tti_fork_unlock();
	return fd;
}

bool tti_fork_drop(int fd)
{
	struct file *known;

	pthread_mutex_lock(&files.lock);
	known = find(fd);
	if (known) {
		*known = files.all[--files.n];
		close(fd);
	}
	pthread_mutex_unlock(&files.lock);
	return known;
}
