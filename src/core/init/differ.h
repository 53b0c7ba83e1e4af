/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_DIFFER_H
#define TTI_CORE_INIT_DIFFER_H

/* What differs between two texts that should be one, in words. Pure. */

#include <stddef.h>

struct tti_differ_texts {
	const char *a, *b; /* A is the first of them */
	size_t a_bytes, b_bytes;
};

void tti_differ_topology(const struct tti_differ_texts *texts, char *why, size_t size);
void tti_differ_plan(const struct tti_differ_texts *texts, char *why, size_t size);

#endif
