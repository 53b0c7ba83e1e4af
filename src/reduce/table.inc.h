/* SPDX-License-Identifier: BSD-3-Clause */
/* All types' kernels over the vectors that were included before, as the table TABLE. */

struct k_pass {
	unsigned char *dst, *dst2;
	const void *const *src;
	int nsrc, divisor;
};

static inline void k_copy(const struct k_pass *pass, size_t nbytes)
{
	if (nbytes == 0)
		return;
	if (pass->dst != pass->src[0])
		memcpy(pass->dst, pass->src[0], nbytes);
	if (pass->dst2 && pass->dst2 != pass->src[0])
		memcpy(pass->dst2, pass->src[0], nbytes);
}

#define K_RUN "reduce/kernel.inc.h"
#include "reduce/types.inc.h"

#define ADDED(name)   [TUTTI_SUM] = name##_sum, [TUTTI_PROD] = name##_prod, [TUTTI_AVG] = name##_avg
#define ORDERED(name) [TUTTI_MAX] = name##_max, [TUTTI_MIN] = name##_min
#define BITWISE(name) \
	[TUTTI_BAND] = name##_band, [TUTTI_BOR] = name##_bor, [TUTTI_BXOR] = name##_bxor
#define LOGICAL(name) \
	[TUTTI_LAND] = name##_land, [TUTTI_LOR] = name##_lor, [TUTTI_LXOR] = name##_lxor

#define FLOAT(name)         ADDED(name), ORDERED(name)
#define INTEGER(name, bits) FLOAT(name), BITWISE(bits), LOGICAL(bits)

const struct tti_reduce_table TABLE = {
	.fns = {
		[TUTTI_INT8] = { INTEGER(i8, b8) },
		[TUTTI_UINT8] = { INTEGER(u8, b8) },
		[TUTTI_INT16] = { INTEGER(i16, b16) },
		[TUTTI_UINT16] = { INTEGER(u16, b16) },
		[TUTTI_INT32] = { INTEGER(i32, b32) },
		[TUTTI_UINT32] = { INTEGER(u32, b32) },
		[TUTTI_INT64] = { INTEGER(i64, b64) },
		[TUTTI_UINT64] = { INTEGER(u64, b64) },
		[TUTTI_FLOAT16] = { FLOAT(f16) },
		[TUTTI_FLOAT32] = { FLOAT(f32) },
		[TUTTI_FLOAT64] = { FLOAT(f64) },
		[TUTTI_BFLOAT16] = { FLOAT(bf16) },
		[TUTTI_FLOAT8_E4M3] = { FLOAT(e4m3) },
		[TUTTI_FLOAT8_E5M2] = { FLOAT(e5m2) },
		/* Of any byte that is not zero as of 1. */
		[TUTTI_BOOL] = {
			[TUTTI_SUM] = b8_lor,
			[TUTTI_PROD] = b8_land,
			[TUTTI_MAX] = b8_lor,
			[TUTTI_MIN] = b8_land,
			[TUTTI_BAND] = b8_land,
			[TUTTI_BOR] = b8_lor,
			[TUTTI_BXOR] = b8_lxor,
			LOGICAL(b8),
		},
		[TUTTI_COMPLEX64] = { ADDED(c64) },
		[TUTTI_COMPLEX128] = { ADDED(c128) },
	},
};
