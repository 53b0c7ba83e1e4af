/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of GPUs (kernels.h) that reduce floats.
 * Compiled by nvcc alone. */

#include "device/reduce.h"

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

/* The host asks for a kernel of each family by its name: none is left out above. */
#define X(family) static_assert(sizeof(&tutti_run_##family) > 0);
TTI_DEV_FLOAT_FAMILY_MAP(X)
#undef X
