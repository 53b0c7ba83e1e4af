/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_FORK_H
#define TTI_UTIL_FORK_H

/* What a process that this one forks must not have: threads do not come with it, so it cannot use
 * what the library has made here, and connections that it kept open would hide the death of this
 * process from other ranks.
 *
 * Threads: any. */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "tutti/status.h"

/* From the first call on, children are noticed. */
void tti_fork_watch(void);

/* No child is forked meanwhile, so it finds whole what is shared by all threads and changed under
 * this lock, and can go on with it. Held for short; files are neither opened nor closed under it by
 * the functions below. */
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

/* A file that is closed in children, until tti_fd_close() closes it here; -1 is fine. Returns fd.
 * Sockets that peers watch, and files whose locks end with this process (F_OFD_SETLK). */
int tti_fork_close(int fd);

/* A socket that is such a file from the start: no child is forked between. As socket() and, of a
 * listener that does not wait, accept4(): close on exec; what is accepted does not wait either. */
int tti_fork_socket(int family, int type);
int tti_fork_accept(int listener, struct sockaddr *from, socklen_t *len);

/* Close such a file here. No child is forked meanwhile, so none has it open without closing it, or
 * closes what gets the number next. False: fd is no such file, and is left open. */
bool tti_fork_drop(int fd);

#endif
