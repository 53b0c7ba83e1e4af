/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_SECRET_H
#define TTI_UTIL_SECRET_H

/* Memory for keys and the secret of a job: pages of its own, which are not in core dumps, and are
 * wiped when they are freed. Takes some microseconds; may fail by fault injection (point "mem").
 * Threads: any. */

#include <stddef.h>

void *tti_secret_zalloc(size_t nbytes); /* zeroed                                 */
void tti_secret_free(void *memory);     /* of tti_secret_zalloc(); NULL is fine */

#endif
