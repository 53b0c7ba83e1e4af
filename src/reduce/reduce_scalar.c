/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce/kernels.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TABLE tti_reduce_table_scalar
#include "reduce/scalar.inc.h"
/* After the vectors. */
#include "reduce/table.inc.h"
