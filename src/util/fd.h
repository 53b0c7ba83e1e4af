/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_FD_H
#define TTI_UTIL_FD_H

/* File descriptors. All are made close-on-exec. Threads: any. */

#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

/* Close and set to -1; -1 is fine. */
void tti_fd_close(int *fd);

/* Move all nbytes over a nonblocking or blocking stream socket, or fail:
 * TUTTI_ETIMEOUT after the deadline (tti_deadline()), TUTTI_EPEER when the other
 * side closed, TUTTI_EABORTED when *stop (may be NULL) became nonzero, TUTTI_ESYS.
 * Quiet: the caller knows whom it talked to. SIGPIPE is not raised. */
TUTTI_CHECKED tutti_status tti_fd_send_all(int fd, const void *data, size_t nbytes,
					   int64_t deadline_ns, const _Atomic int *stop);
TUTTI_CHECKED tutti_status tti_fd_recv_all(int fd, void *data, size_t nbytes, int64_t deadline_ns,
					   const _Atomic int *stop);

/* Lift RLIMIT_NOFILE to its hard limit, once. */
void tti_fd_raise_limit(void);

#endif
