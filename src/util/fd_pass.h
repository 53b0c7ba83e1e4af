/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_FD_PASS_H
#define TTI_UTIL_FD_PASS_H

/* File descriptors that go to another process over a unix socket.
 *
 * Errors are quiet. Threads: any. */

#include <stdbool.h>
#include <stddef.h>

#include "tutti/status.h"

/* Pass a file to the process at the other end of a unix socket, with some bytes that are the first
 * there: there is room for them. TUTTI_EPEER: it closed the connection. */
TUTTI_CHECKED tutti_status tti_fd_pass(int socket, const void *data, size_t nbytes, int fd);

/* Take what was passed so. *fd is the caller's. TUTTI_AGAIN: it has not come; TUTTI_EPROTO: it is
 * something else. */
TUTTI_CHECKED tutti_status tti_fd_take(int socket, void *data, size_t nbytes, int *fd);

/* Whether the process at the other end is of the user of this one. */
bool tti_fd_is_same_user(int socket);

#endif
