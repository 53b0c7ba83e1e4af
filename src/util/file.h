/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_FILE_H
#define TTI_UTIL_FILE_H

/* Whole files. Threads: any. */

#include <stddef.h>

#include "tutti/status.h"

/* All bytes of a regular file, with a 0 behind them that does not count; freed with
 * tti_free(). `what` it is begins the error text: "topology file". Of a file of more than
 * `most` bytes some more than that are read: the caller refuses it. TUTTI_EINVAL: it cannot
 * be opened, or is no file. */
TUTTI_CHECKED tutti_status tti_file_read(const char *path, const char *what, size_t most,
					 char **text_out, size_t *nbytes_out);

/* The whole file or none of it: a temporary one beside it that is renamed. A path that is
 * there and is no regular file is refused; a symbolic link is followed. */
TUTTI_CHECKED tutti_status tti_file_replace(const char *path, const char *text, size_t nbytes);

#endif
