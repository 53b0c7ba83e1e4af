/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions by their names: cuGetProcAddress(). */
#include <string.h>

#include "driver/driver.h"
#include "driver/symbols.h"
#include "engine/facts.h"

/* The newest that the program's release knows. Where the thread's own is asked for, no other takes
 * its place. */
static const struct tti_driver_symbol *find(const char *base, int release, bool per_thread,
					    bool *is_known)
{
	const struct tti_driver_symbol *best = NULL;
	bool has_own = false; /* the function has one for a thread's own stream */

	*is_known = false;
	for (int i = 0; i < tti_driver_nsymbols; i++) {
		const struct tti_driver_symbol *at = &tti_driver_symbols[i];

		if (strcmp(at->base, base) != 0)
			continue;
		*is_known = true;
		has_own |= at->is_per_thread;
		if (at->since > release || (at->is_per_thread && !per_thread))
			continue;
		if (!best || at->is_per_thread > best->is_per_thread ||
		    (at->is_per_thread == best->is_per_thread && at->since >= best->since))
			best = at;
	}
	return best && per_thread && has_own && !best->is_per_thread ? NULL : best;
}

static int check(const char *base, void **out, int release, cuuint64_t flags)
{
	int bad = tti_driver_need(base, "cuGetProcAddress");

	if (!bad)
		bad = tti_driver_need(out, "cuGetProcAddress");
	if (bad)
		return bad;
	*out = NULL;
	if (release > TTI_CUDA_RELEASE)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cuGetProcAddress: %s of release %d: this is the driver of %d",
				     base, release, TTI_CUDA_RELEASE);
	if (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
				  CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
		return tti_cuda_fail(TTI_CUDA_EINVAL, "cuGetProcAddress: flags 0x%llx: 0, 1, 2",
				     (unsigned long long)flags);
	return TTI_CUDA_OK;
}

/* Not found is no error: *out is NULL then, and the status says why. */
CUresult cuGetProcAddress_v2(const char *base, void **out, int release, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	const bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const struct tti_driver_symbol *found;
	bool is_known;
	const int bad = check(base, out, release, flags);

	if (bad)
		return tti_driver_result(bad);
	found = find(base, release, per_thread, &is_known);
	if (found)
		memcpy(out, &found->function, sizeof(*out));
	if (status && found)
		*status = CU_GET_PROC_ADDRESS_SUCCESS;
	else if (status)
		*status = is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return CUDA_SUCCESS;
}

/* The first version has no status. */
CUresult cuGetProcAddress(const char *base, void **out, int release, cuuint64_t flags)
{
	const CUresult rc = cuGetProcAddress_v2(base, out, release, flags, NULL);

	if (rc || *out)
		return rc;
	return tti_driver_fail(CUDA_ERROR_NOT_FOUND,
			       "cuGetProcAddress: release %d has no function %s", release, base);
}
