/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_TUNE_PATH_H
#define TTI_PLAN_TUNE_PATH_H

/* The path of the tune file that has what `tutti tune` measured on a machine. The file may be used
 * if the machine and the version of Tutti that it names are these.
 * Threads: any. */

#include <stdbool.h>
#include <stddef.h>

#include "tutti/status.h"

struct tti_strbuf;
struct tti_tune_table;

#define TTI_TUNE_MACHINE_BYTES 160

/* "AuthenticAMD 25.17, 64 CPUs, x86_64, Linux 6.1.0": alike for machines of a kind, so that
 * a file in a folder that they share is for all of them. */
void tti_tune_this_machine(char *buf, size_t size);
/* "0.3.1" */
void tti_tune_this_version(char *buf, size_t size);

/* $XDG_CACHE_HOME/tutti/tune-HASH, of the machine's text; in ~/.cache if that is not set.
 * TUTTI_EINVAL: nor is HOME. */
TUTTI_CHECKED tutti_status tti_tune_path(struct tti_strbuf *out);

/* The tables that go before the built-in one, to be freed; NULL: none. */
struct tti_tune_used {
	struct tti_tune_table *named;    /* of TUTTI_TUNE_FILE; that it is "none" is no table */
	struct tti_tune_table *measured; /* else of this machine                              */
};
/* A file that is named must be good: TUTTI_EINVAL. One at tti_tune_path() that is of another
 * machine or version, or no tune file at all, is ignored, which is logged. */
TUTTI_CHECKED tutti_status tti_tune_read_used(struct tti_tune_used *out);

#endif
