/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_FORK_H
#define TTI_UTIL_FORK_H

/* Forked children. Threads are not copied into a child, so it cannot use what the library has made
 * here; and connections that it kept open would hide the death of this process from other ranks.
 *
 * Threads: any. */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "tutti/status.h"

/* From the first call on, children are noticed. */
void tti_fork_watch(void);

/* No child is forked while this lock is held, so that it finds whole what all threads share and
 * change under the lock. Held for short times; the functions below neither open nor close files
 * under it. */
void tti_fork_lock(void);
void tti_fork_unlock(void);

/* The number of this process, also in a child; 0: tti_fork_watch() was not called. */
extern _Atomic int tti_fork_own_pid;
static inline int tti_fork_pid(void)
{
	return atomic_load_explicit(&tti_fork_own_pid, memory_order_relaxed);
}

/* TUTTI_EUSAGE: `handle`, a `what`, was made by process `pid`, and this is a child of it. */
TUTTI_CHECKED tutti_status tti_fork_refuse(const char *what, const void *handle, int pid);
static inline tutti_status tti_fork_check(const char *what, const void *handle, int pid)
{
	return pid == tti_fork_pid() ? TUTTI_OK : tti_fork_refuse(what, handle, pid);
}

/* Have a file closed in children, until tti_fd_close() closes it here; -1 is fine. Returns fd. For
 * sockets that peers watch, and files whose locks end with this process (F_OFD_SETLK). */
int tti_fork_close(int fd);

/* A socket that is such a file from the start, as no child is forked in between. Like socket() and,
 * for a nonblocking listener, accept4(): close on exec; accepted sockets are nonblocking, too. */
int tti_fork_socket(int family, int type);
int tti_fork_accept(int listener, struct sockaddr *from, socklen_t *len);

/* Close such a file here. No child is forked meanwhile, so that none keeps it open, or closes the
 * next file of that number. False: fd is no such file, and stays open. */
bool tti_fork_drop(int fd);

#endif
