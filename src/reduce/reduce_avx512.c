/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce/kernels.h"

#if TTI_REDUCE_HAVE_X86

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TABLE tti_reduce_table_avx512
#include "reduce/avx512.inc.h"
/* After the vectors. */
#include "reduce/table.inc.h"

#endif
