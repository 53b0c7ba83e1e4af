/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/span.h"

#include <search.h>
#include <stdint.h>

/* Spans that overlap are equal, so that whatever is searched is a span, too. */
static int compare(const void *one, const void *other)
{
	const struct tti_cuda_span *const a = one;
	const struct tti_cuda_span *const b = other;
	const uintptr_t at = (uintptr_t)a->base;
	const uintptr_t bt = (uintptr_t)b->base;

	if (at < bt)
		return bt - at < a->nbytes ? 0 : -1;
	return at - bt < b->nbytes ? 0 : 1;
}

void *tti_cuda_span_find(void *const *set, const void *address, size_t nbytes)
{
	const struct tti_cuda_span sought = { (char *)(uintptr_t)address, nbytes ? nbytes : 1 };
	void *const *const found = tfind(&sought, set, compare);

	return found ? *found : NULL;
}

bool tti_cuda_span_add(void **set, struct tti_cuda_span *span)
{
	return tsearch(span, set, compare);
}

void tti_cuda_span_remove(void **set, const struct tti_cuda_span *span)
{
	(void)tdelete(span, set, compare);
}
