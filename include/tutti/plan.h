/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_PLAN_H
#define TUTTI_PLAN_H

/* Old names of persistent.h, which version 0.2 takes away. Each function does what its new name does,
 * and the arguments, errors and threads are the same. (A plan is now that of a job's channels alone:
 * tutti_plan_t in insight.h.) */

#include "tutti/persistent.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Deprecated: tutti_persistent_t. */
typedef tutti_persistent_t tutti_call_plan_t TUTTI_DEPRECATED("tutti_persistent_t");

/* Deprecated: tutti_persistent_create(), with the same `call`. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_create(const tutti_call *call, tutti_comm_t comm,
						       tutti_persistent_t *out)
	TUTTI_DEPRECATED("tutti_persistent_create");

/* Deprecated: tutti_persistent_start(). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_start(tutti_persistent_t persistent,
						      tutti_stream_t stream)
	TUTTI_DEPRECATED("tutti_persistent_start");

/* Deprecated: tutti_persistent_wait(). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_wait(tutti_persistent_t persistent)
	TUTTI_DEPRECATED("tutti_persistent_wait");

/* Deprecated: tutti_persistent_destroy(). */
TUTTI_API tutti_status tutti_plan_destroy(tutti_persistent_t persistent)
	TUTTI_DEPRECATED("tutti_persistent_destroy");

#ifdef __cplusplus
}
#endif

#endif
