/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/fork.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/vec.h"

_Atomic int tti_fork_own_pid;

/* A program that closes all its files, these too, may get the number for a file of its own: the inode
 * tells. */
struct file {
	int fd;
	ino_t inode;
};

static struct {
	pthread_mutex_t lock;
	TTI_VEC(struct file) all;
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
	for (size_t i = 0; i < files.all.n; i++)
		if (inode_of(files.all.at[i].fd) == files.all.at[i].inode)
			close(files.all.at[i].fd);
	files.all.n = 0;
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
	for (size_t i = files.all.n; i-- > 0;)
		if (files.all.at[i].fd == fd)
			return &files.all.at[i];
	return NULL;
}

int tti_fork_close(int fd)
{
	const ino_t inode = fd >= 0 ? inode_of(fd) : 0;
	struct file *known;

	if (!inode)
		return fd;
	tti_fork_watch();
	pthread_mutex_lock(&files.lock);
	known = find(fd);
	/* Without memory a child keeps the file: a death may be found late. */
	if (known)
		known->inode = inode;
	else
		(void)tti_vec_push(&files.all, ((struct file){ .fd = fd, .inode = inode }));
	pthread_mutex_unlock(&files.lock);
	return fd;
}

bool tti_fork_drop(int fd)
{
	struct file *known;

	pthread_mutex_lock(&files.lock);
	known = find(fd);
	if (known) {
		*known = files.all.at[--files.all.n];
		close(fd);
	}
	pthread_mutex_unlock(&files.lock);
	return known;
}
