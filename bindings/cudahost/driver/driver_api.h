/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the driver, with CUDA's own names. functions.def lists all, calls.def those that
 * are done.
 *
 * What is exported counts the call (entry.c) and then calls the body. With TTI_DRIVER_BODIES, which
 * driver.h defines, the same name is the body, whose symbol is "tti_" and the name: a function that
 * is done with the help of another calls that one's body, and is one call. */
#ifndef TUTTI_CUDAHOST_DRIVER_API_H
#define TUTTI_CUDAHOST_DRIVER_API_H

#include "driver/driver_abi_streams.h"

#ifdef TTI_DRIVER_BODIES
#define DECLARE(name, params) CUresult name params __asm__("tti_" #name);
#else
#define DECLARE(name, params) CUresult name params;
#pragma GCC visibility push(default)
#endif

#define CALL(name, params, args)   DECLARE(name, params)
#define CALL_Z(name, params, args) CALL(name, params, args) CALL(name##_ptsz, params, args)
#define CALL_D(name, params, args) CALL(name, params, args) CALL(name##_ptds, params, args)
#define CALL_W(name, params, args) CALL(name, params, args)
#include "driver/calls.def"
#undef CALL
#undef CALL_Z
#undef CALL_D
#undef CALL_W
#undef DECLARE

#if !defined(TTI_CUDA_H) && !defined(TTI_DRIVER_BODIES)
#define REASON(name, text)
#define DONE(name, base, since)
#define DONE_Z(name, base, since, zsince)
#define DONE_D(name, base, since, dsince)
#define REFUSED(name, base, since, why)           CUresult name(void);
#define REFUSED_Z(name, base, since, zsince, why) CUresult name(void), name##_ptsz(void);
#define REFUSED_D(name, base, since, dsince, why) CUresult name(void), name##_ptds(void);
#include "driver/functions.def"
#undef REASON
#undef DONE
#undef DONE_Z
#undef DONE_D
#undef REFUSED
#undef REFUSED_Z
#undef REFUSED_D
#endif
#ifndef TTI_DRIVER_BODIES
#pragma GCC visibility pop
#endif

#endif
