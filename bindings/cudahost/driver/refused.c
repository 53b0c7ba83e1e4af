/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that there are not: each says so and why. They are called with what a program passes,
 * of which they look at nothing. */
#include "driver/driver_api.h"
#include "engine/device.h"

static CUresult refuse(const char *name, const char *why)
{
	return (CUresult)tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED, "%s() is not there: %s", name, why);
}

#define REASON(name, text) static const char why_##name[] = text;
#define DONE(name, base, since)
#define DONE_Z(name, base, since, zsince)
#define DONE_D(name, base, since, dsince)
#define REFUSED(name, base, since, why)          \
	CUresult name(void)                      \
	{                                        \
		return refuse(#name, why_##why); \
	}
#define REFUSED_Z(name, base, since, zsince, why) \
	REFUSED(name, base, since, why) REFUSED(name##_ptsz, base, zsince, why)
#define REFUSED_D(name, base, since, dsince, why) \
	REFUSED(name, base, since, why) REFUSED(name##_ptds, base, dsince, why)
#include "driver/functions.def"
