/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/calls.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/host_abi.h"
#include "engine/internal.h"

#define UNKNOWN 999 /* CUDA_ERROR_UNKNOWN */

static _Atomic uint64_t ncalls;

/* From `first` up to `end`, both counted from 1; none if they are equal. */
static struct {
	_Atomic uint64_t first, end;
	_Atomic int error;
} failing;

uint64_t tti_cuda_calls(void)
{
	return atomic_load(&ncalls);
}

static void set(uint64_t first, uint64_t n, int error)
{
	atomic_store(&failing.end, 0); /* none meanwhile */
	atomic_store(&failing.error, error > 0 ? error : UNKNOWN);
	atomic_store(&failing.first, first);
	atomic_store(&failing.end, n > UINT64_MAX - first ? UINT64_MAX : first + n);
}

void tti_cuda_fail_calls(uint64_t skipped, uint64_t n, int error)
{
	set(atomic_load(&ncalls) + skipped + 1, n, error);
}

int tti_cuda_call_enter(const char *name)
{
	uint64_t call;

	tti_cuda_settings_read();
	call = atomic_fetch_add_explicit(&ncalls, 1, memory_order_relaxed) + 1;
	if (call >= atomic_load_explicit(&failing.end, memory_order_acquire) ||
	    call < atomic_load_explicit(&failing.first, memory_order_relaxed))
		return 0;
	return tti_cuda_fail(atomic_load(&failing.error),
			     "%s(): call %llu of the driver fails with %d, as it was asked to "
			     "(TUTTI_CUDAHOST_FAIL)",
			     name, (unsigned long long)call, atomic_load(&failing.error));
}

int tti_cuda_calls_read(const char *value, char *wrong, size_t size)
{
	unsigned long long call;
	long error = UNKNOWN;
	char *end;

	if (!value)
		return 0;
	errno = 0;
	call = strtoull(value, &end, 10);
	if (end != value && *end == ':') {
		const char *text = end + 1;

		error = strtol(text, &end, 10);
		if (end == text)
			error = 0;
	}
	if (errno == 0 && *value >= '0' && *value <= '9' && !*end && call && error > 0 &&
	    error <= UNKNOWN) {
		set(call, 1, (int)error);
		return 0;
	}
	snprintf(wrong, size,
		 "it is not CALL or CALL:ERROR, as 17:2 to let the 17th call of the driver fail "
		 "with CUDA_ERROR_OUT_OF_MEMORY");
	return -1;
}
