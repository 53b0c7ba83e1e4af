/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_MEMFD_H
#define TTI_TRANSPORT_MEMFD_H

/* Sparse files without a name that processes share: the last one that holds one frees it. Sealed,
 * so that nobody can pull the memory away under the others.
 *
 * Errors are quiet. Threads: any. */

#include <stdint.h>

#include "tutti/status.h"

/* A file of so many bytes, 0 all of them. */
TUTTI_CHECKED tutti_status tti_memfd_create(const char *name, uint64_t nbytes, int *fd);

/* Whether what another process passed is such a file: else TUTTI_EPROTO. */
TUTTI_CHECKED tutti_status tti_memfd_check(int fd, uint64_t nbytes);

#endif
