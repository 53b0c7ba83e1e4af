/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce/kernels.h"

#if TTI_REDUCE_HAVE_NEON

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TABLE tti_reduce_table_neon
#include "reduce/neon.inc.h"
/* After the vectors. */
#include "reduce/table.inc.h"

#endif
