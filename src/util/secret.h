/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_SECRET_H
#define TTI_UTIL_SECRET_H

/* Memory for what holds a key, or the secret of a job: pages of its own, which core dumps leave
 * out, and which are wiped when they are given back. Takes some microseconds; may fail by fault
 * injection (point "mem").
 * Threads: any. */

#include <stddef.h>

void *tti_secret_zalloc(size_t nbytes); /* zeroed                                 */
void tti_secret_free(void *memory);     /* of tti_secret_zalloc(); NULL is fine */

#endif
