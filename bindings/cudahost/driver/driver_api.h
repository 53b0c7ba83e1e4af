/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the driver, with CUDA's own names. functions.def lists all, calls.def those that
 * are done. */
#ifndef TUTTI_CUDAHOST_DRIVER_API_H
#define TUTTI_CUDAHOST_DRIVER_API_H

#include "driver/driver_abi_streams.h"

#define DECLARE(name, params) CUresult name params;

#pragma GCC visibility push(default)

#define CALL(name, params, args)   DECLARE(name, params)
#define CALL_Z(name, params, args) CALL(name, params, args) CALL(name##_ptsz, params, args)
#define CALL_D(name, params, args) CALL(name, params, args) CALL(name##_ptds, params, args)
#include "driver/calls.def"
#undef CALL
#undef CALL_Z
#undef CALL_D
#undef DECLARE

#ifndef TTI_CUDA_H
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
#pragma GCC visibility pop

#endif
