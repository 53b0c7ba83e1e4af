/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_FILE_H
#define TTI_UTIL_FILE_H

/* Whole files. Threads: any. */

#include <stddef.h>

#include "tutti/status.h"

/* Read a regular file, with a 0 behind its bytes that does not count; freed with tti_free(). The
 * error text begins with `what`: "topology file". A file of more than `most` bytes is read in part,
 * and *nbytes_out is more than `most`: the caller refuses it. TUTTI_EINVAL: it cannot be opened, or
 * is no regular file. */
TUTTI_CHECKED tutti_status tti_file_read(const char *path, const char *what, size_t most,
					 char **text_out, size_t *nbytes_out);

/* Write a whole file or none of it: a temporary file in the same directory is renamed. A path that
 * exists and is no regular file is refused; a symbolic link is followed. */
TUTTI_CHECKED tutti_status tti_file_replace(const char *path, const char *text, size_t nbytes);

#endif
