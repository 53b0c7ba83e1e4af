/* SPDX-License-Identifier: BSD-3-Clause */
/* The exported functions that are done, and the table of all. Each counts the call, and fails where
 * that was asked for; else it waits if it is one that may, and calls its body. */
#include <stdbool.h>

#include "driver/driver_api.h"
#include "driver/symbols.h"
#include "engine/calls.h"
#include "engine/drain.h"

#define BODY(name, params, args, wait)                         \
	CUresult tti_##name params;                            \
	CUresult name params                                   \
	{                                                      \
		const int failed = tti_cuda_call_enter(#name); \
		if (failed)                                    \
			return (CUresult)failed;               \
		wait;                                          \
		return tti_##name args;                        \
	}
#define CALL(name, params, args)   BODY(name, params, args, (void)0)
#define CALL_W(name, params, args) BODY(name, params, args, tti_cuda_drain_all())
#define CALL_Z(name, params, args) CALL(name, params, args) CALL(name##_ptsz, params, args)
#define CALL_D(name, params, args) CALL(name, params, args) CALL(name##_ptds, params, args)
#include "driver/calls.def"

const struct tti_driver_symbol tti_driver_symbols[] = {
#define REASON(name, text)
#define PLAIN(name, base, since)             { #base, since, false, (void (*)(void))name },
#define THREAD(name, base, since)            { #base, since, true, (void (*)(void))name },
#define DONE(name, base, since)              PLAIN(name, base, since)
#define DONE_Z(name, base, since, z)         PLAIN(name, base, since) THREAD(name##_ptsz, base, z)
#define DONE_D(name, base, since, d)         PLAIN(name, base, since) THREAD(name##_ptds, base, d)
#define REFUSED(name, base, since, why)      DONE(name, base, since)
#define REFUSED_Z(name, base, since, z, why) DONE_Z(name, base, since, z)
#define REFUSED_D(name, base, since, d, why) DONE_D(name, base, since, d)
#include "driver/functions.def"
};

const int tti_driver_nsymbols = sizeof(tti_driver_symbols) / sizeof(tti_driver_symbols[0]);
