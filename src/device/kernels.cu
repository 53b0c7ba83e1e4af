/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of GPUs (kernels.h), one for each family of types that are reduced, and tutti_run_copy for
 * calls that reduce nothing: compiled by nvcc alone, into tutti_kernels.fatbin. */

#include "device/reduce.h"

#define K_FAMILY int8
#include "device/kernel.inc.h"

#define K_FAMILY int16
#include "device/kernel.inc.h"

#define K_FAMILY int32
#include "device/kernel.inc.h"

#define K_FAMILY int64
#include "device/kernel.inc.h"

#define K_FAMILY float16
#include "device/kernel.inc.h"

#define K_FAMILY bfloat16
#include "device/kernel.inc.h"

#define K_FAMILY float32
#include "device/kernel.inc.h"

#define K_FAMILY float64
#include "device/kernel.inc.h"

#define K_FAMILY float8_e4m3
#include "device/kernel.inc.h"

#define K_FAMILY float8_e5m2
#include "device/kernel.inc.h"

#define K_FAMILY copy
#include "device/kernel.inc.h"

/* The host asks for a kernel of each family by its name: none is left out above. */
#define X(family) static_assert(sizeof(&tutti_run_##family) > 0);
TTI_DEV_FAMILY_MAP(X)
X(copy)
#undef X
