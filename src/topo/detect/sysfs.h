/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_SYSFS_H
#define TTI_TOPO_DETECT_SYSFS_H

/* Detection reads all files below one directory: "/" of this machine, or the top of a
 * captured one, which has sys/ and proc/ below it. No path and no symbolic link leads out
 * of it.
 *
 * Paths are relative: "sys/bus/pci/devices".
 * Owner: who holds the struct; tti_sysfs_close().
 * Threads: several may read through one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tutti/status.h"

struct tti_sysfs {
	int fd;
	bool captured;    /* not "/": CPUID and NVML would speak of another machine */
	const char *path; /* borrowed */
};

/* `path` NULL or "/": this machine. TUTTI_EINVAL if it is no directory or has no sys/. */
TUTTI_CHECKED tutti_status tti_sysfs_open(const char *path, struct tti_sysfs *out);
void tti_sysfs_close(struct tti_sysfs *root);

/* The first line of a file without its end, cut to fit. false: the file is absent or not
 * readable, and buf is "". */
TUTTI_PRINTF(4, 5)
bool tti_sysfs_line(const struct tti_sysfs *root, char *buf, size_t size, const char *fmt, ...);
/* Up to size bytes; -1: absent. */
TUTTI_PRINTF(4, 5)
ssize_t tti_sysfs_bytes(const struct tti_sysfs *root, void *buf, size_t size, const char *fmt, ...);
/* A number, decimal or with 0x. false: absent or no number. */
TUTTI_PRINTF(3, 4)
bool tti_sysfs_int(const struct tti_sysfs *root, int64_t *out, const char *fmt, ...);
TUTTI_PRINTF(2, 3) bool tti_sysfs_exists(const struct tti_sysfs *root, const char *fmt, ...);

/* The real path of an entry, relative to the root, links resolved inside it.
 * false: absent, or a link that leads nowhere. */
TUTTI_PRINTF(4, 5)
bool tti_sysfs_real(const struct tti_sysfs *root, char *buf, size_t size, const char *fmt, ...);

/* The last part of that path, as the driver behind a link "driver". false: absent or too long. */
TUTTI_PRINTF(4, 5)
bool tti_sysfs_real_name(const struct tti_sysfs *root, char *buf, size_t size, const char *fmt,
			 ...);
/* The length of the directory that an entry is in, of the first `len` bytes of a path; 0 at the
 * top. */
size_t tti_sysfs_parent(const char *path, size_t len);

/* The names in a directory, sorted by name, without . and ..; none if absent.
 * *names_out is one allocation, freed with free(). */
TUTTI_CHECKED TUTTI_PRINTF(4, 5) tutti_status
	tti_sysfs_list(const struct tti_sysfs *root, char ***names_out, size_t *n_out,
		       const char *fmt, ...);

#endif
