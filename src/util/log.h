/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_LOG_H
#define TTI_UTIL_LOG_H

/* One logger: level and subsystem. TUTTI_DEBUG=WARN|INFO|TRACE (NCCL_DEBUG is
 * understood too), TUTTI_DEBUG_SUBSYS=boot,shm or ^coll, TUTTI_DEBUG_FILE
 * (%h host, %p pid). A line is written with one write(): lines of several ranks
 * do not mix.
 *
 * Threads: any. Never on the per-step path. */

#include <stdbool.h>

#include "tutti/status.h"

enum tti_log_level {
	TTI_LOG_NONE,
	TTI_LOG_WARN,
	TTI_LOG_INFO,
	TTI_LOG_TRACE,
};

/* X(name, text) */
#define TTI_LOG_SUBSYS_MAP(X) \
	X(CORE, "core")       \
	X(BOOT, "boot")       \
	X(GPU, "gpu")         \
	X(SHM, "shm")         \
	X(TCP, "tcp")         \
	X(COLL, "coll")       \
	X(ENGINE, "engine")   \
	X(TOPO, "topo")       \
	X(PLAN, "plan")       \
	X(ENV, "env")

enum tti_log_subsys {
#define X(name, text) TTI_##name,
	TTI_LOG_SUBSYS_MAP(X)
#undef X
};

bool tti_log_enabled(enum tti_log_level level, enum tti_log_subsys subsys);

/* Formats and writes if enabled; errno is kept. */
TUTTI_PRINTF(3, 4)
void tti_log(enum tti_log_level level, enum tti_log_subsys subsys, const char *fmt, ...);

/* An error that is returned, too, at level WARN: not shown on a terminal after
 * tti_log_set_errors(false), while nothing beyond the default is asked for. */
TUTTI_PRINTF(1, 2) void tti_log_error(const char *fmt, ...);
void tti_log_set_errors(bool shown);

/* Name this thread's rank in its log lines ("[2] "); -1 for none. */
void tti_log_set_rank(int rank);

#endif
