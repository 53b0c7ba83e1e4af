/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_PARAMS_H
#define TTI_UTIL_PARAMS_H

/* The parameters of params.def. The environment is read once, at first use;
 * a value out of range is reported and the default used in its place, an unknown
 * TUTTI_* variable is reported with the nearest name.
 *
 * Threads: any; what tti_params() returns never changes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

typedef int64_t tti_param_INT;
typedef size_t tti_param_SIZE;
typedef bool tti_param_BOOL;
typedef int64_t tti_param_MS;
typedef int tti_param_ENUM;
typedef const char *tti_param_STR;    /* NULL if unset or empty */
typedef const char *tti_param_PATH;   /* NULL if unset or empty */
typedef const char *tti_param_SECRET; /* the same; never shown */

struct tti_param_values {
#define PARAM(field, variable, type, def, range, help) tti_param_##type field;
#include "util/params.def"
#undef PARAM
};

const struct tti_param_values *tti_params(void);

/* Read from an environ-like array instead: for tests. What is reported goes to
 * the log. Strings in *out are borrowed from env. */
tutti_status tti_params_read(char *const *env, struct tti_param_values *out);

/* A variable of somebody else (a launcher's, NCCL_DEBUG): the one home of
 * getenv(). NULL if unset. */
const char *tti_env_foreign(const char *name);

#endif
