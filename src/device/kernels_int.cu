/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of GPUs (kernels.h) that reduce integers, and tutti_run_copy for calls that reduce
 * nothing. Compiled by nvcc alone. */

#include "device/reduce.h"

#define K_FAMILY int8
#include "device/kernel.inc.h"

#define K_FAMILY int16
#include "device/kernel.inc.h"

#define K_FAMILY int32
#include "device/kernel.inc.h"

#define K_FAMILY int64
#include "device/kernel.inc.h"

#define K_FAMILY copy
#include "device/kernel.inc.h"

/* The host asks for a kernel of each family by its name: none is left out above. */
#define X(family) static_assert(sizeof(&tutti_run_##family) > 0);
TTI_DEV_INT_FAMILY_MAP(X)
X(copy)
#undef X
