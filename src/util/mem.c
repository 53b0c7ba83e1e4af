/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/mem.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/fault.h"

static bool faulted(void)
{
	if (!tti_fault("mem"))
		return false;
	errno = ENOMEM;
	return true;
}

/* Asked for nothing, malloc() may give NULL, which would read as a failure. */
static size_t at_least_one(size_t nbytes)
{
	return nbytes ? nbytes : 1;
}

void *tti_alloc(size_t nbytes)
{
	return faulted() ? NULL : malloc(at_least_one(nbytes));
}

void *tti_zalloc(size_t nbytes)
{
	return faulted() ? NULL : calloc(1, at_least_one(nbytes));
}

void *tti_calloc(size_t count, size_t nbytes)
{
	if (faulted())
		return NULL;
	return calloc(at_least_one(count), at_least_one(nbytes));
}

void *tti_realloc(void *old, size_t nbytes)
{
	return faulted() ? NULL : realloc(old, at_least_one(nbytes));
}

void *tti_aligned_zalloc(size_t align, size_t nbytes)
{
	void *memory;
	int error;

	if (faulted())
		return NULL;
	if (align < sizeof(void *))
		align = sizeof(void *);
	error = posix_memalign(&memory, align, at_least_one(nbytes));
	if (error) {
		errno = error;
		return NULL;
	}
	memset(memory, 0, at_least_one(nbytes));
	return memory;
}

char *tti_strdup(const char *text)
{
	return faulted() ? NULL : strdup(text);
}

void tti_free(void *memory)
{
	free(memory);
}
