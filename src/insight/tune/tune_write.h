/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_TUNE_WRITE_H
#define TTI_INSIGHT_TUNE_WRITE_H

/* Tune files, written and kept: libraries only read them (plan/tune/tune.h). Threads: any. */

#include "plan/tune/tune.h"
#include "util/strbuf.h"

/* As text that tti_tune_read() takes, with the sources as comments. */
void tti_tune_write(const struct tti_tune_table *table, struct tti_strbuf *out);

/* Write it where tti_tune_path() says, or to `path`; folders are made. */
TUTTI_CHECKED tutti_status tti_tune_keep(const char *path, const char *text, size_t nbytes);

#endif
