/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_MEMFD_H
#define TTI_TRANSPORT_MEMFD_H

/* Sparse files without a name that processes share: the last one that holds one frees it. Sealed,
 * so that nobody can pull the memory away under the others.
 *
 * Errors are quiet. Threads: any. */

#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

/* A file of so many bytes, 0 all of them. */
TUTTI_CHECKED tutti_status tti_memfd_create(const char *name, uint64_t nbytes, int *fd);

/* Whether what another process passed is such a file: else TUTTI_EPROTO. */
TUTTI_CHECKED tutti_status tti_memfd_check(int fd, uint64_t nbytes);

/* Pass a file to the process at the other end of a unix socket, with some bytes that are the first
 * there: there is room for them. TUTTI_EPEER: it closed the connection. */
TUTTI_CHECKED tutti_status tti_memfd_send(int socket, const void *data, size_t nbytes, int fd);

/* Take what was passed so. *fd is the caller's. TUTTI_AGAIN: it has not come; TUTTI_EPROTO: it is
 * something else. */
TUTTI_CHECKED tutti_status tti_memfd_recv(int socket, void *data, size_t nbytes, int *fd);

#endif
