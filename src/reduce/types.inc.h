/* SPDX-License-Identifier: BSD-3-Clause */
/* All types' kernels over the vectors that were included before, as the table
 * TABLE. */

#include "reduce/formats.inc.h"

#define K_INLINE static inline __attribute__((always_inline))

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

/* Up to 32 bits a quotient in double, cut off, is the exact one. */
#define K_NAME               i8
#define K_ELEM               int8_t
#define K_VEC                v_u8
#define K_LANE               int8_t
#define K_LOAD               load_u8
#define K_STORE(p, x, op)    store_u8(p, x)
#define K_MIN                v_min_i8
#define K_MAX                v_max_i8
#define K_DIVIDE(x, divisor) ((int8_t)((double)(x) / (divisor)))
#include "reduce/kernel.inc.h"

#define K_NAME               u8
#define K_ELEM               uint8_t
#define K_VEC                v_u8
#define K_LANE               uint8_t
#define K_LOAD               load_u8
#define K_STORE(p, x, op)    store_u8(p, x)
#define K_MIN                v_min_u8
#define K_MAX                v_max_u8
#define K_DIVIDE(x, divisor) ((uint8_t)((double)(x) / (divisor)))
#include "reduce/kernel.inc.h"

#define K_NAME               i16
#define K_ELEM               int16_t
#define K_VEC                v_w16
#define K_LANE               int16_t
#define K_LOAD               load_w16
#define K_STORE(p, x, op)    store_w16(p, x)
#define K_MUL                v_mul_w16
#define K_MIN                v_min_i16
#define K_MAX                v_max_i16
#define K_DIVIDE(x, divisor) ((int16_t)((double)(x) / (divisor)))
#include "reduce/kernel.inc.h"

#define K_NAME               u16
#define K_ELEM               uint16_t
#define K_VEC                v_w16
#define K_LANE               uint16_t
#define K_LOAD               load_w16
#define K_STORE(p, x, op)    store_w16(p, x)
#define K_MUL                v_mul_w16
#define K_MIN                v_min_u16
#define K_MAX                v_max_u16
#define K_DIVIDE(x, divisor) ((uint16_t)((double)(x) / (divisor)))
#include "reduce/kernel.inc.h"

#define K_NAME               i32
#define K_ELEM               int32_t
#define K_VEC                v_u32
#define K_LANE               int32_t
#define K_LOAD               load_u32
#define K_STORE(p, x, op)    store_u32(p, x)
#define K_MIN                v_min_i32
#define K_MAX                v_max_i32
#define K_DIVIDE(x, divisor) ((int32_t)((double)(x) / (divisor)))
#include "reduce/kernel.inc.h"

#define K_NAME               u32
#define K_ELEM               uint32_t
#define K_VEC                v_u32
#define K_LANE               uint32_t
#define K_LOAD               load_u32
#define K_STORE(p, x, op)    store_u32(p, x)
#define K_MIN                v_min_u32
#define K_MAX                v_max_u32
#define K_DIVIDE(x, divisor) ((uint32_t)((double)(x) / (divisor)))
#include "reduce/kernel.inc.h"

#define K_NAME               i64
#define K_ELEM               int64_t
#define K_VEC                v_u64
#define K_LANE               int64_t
#define K_LOAD               load_u64
#define K_STORE(p, x, op)    store_u64(p, x)
#define K_MIN                v_min_i64
#define K_MAX                v_max_i64
#define K_DIVIDE(x, divisor) ((x) / (divisor))
#include "reduce/kernel.inc.h"

#define K_NAME               u64
#define K_ELEM               uint64_t
#define K_VEC                v_u64
#define K_LANE               uint64_t
#define K_LOAD               load_u64
#define K_STORE(p, x, op)    store_u64(p, x)
#define K_MIN                v_min_u64
#define K_MAX                v_max_u64
#define K_DIVIDE(x, divisor) ((x) / (uint64_t)(divisor))
#include "reduce/kernel.inc.h"

#define K_NAME            f32
#define K_ELEM            float
#define K_VEC             v_f32
#define K_LANE            float
#define K_LOAD            load_f32
#define K_STORE(p, x, op) store_f32(p, x)
#define K_MIN             v_min_f32
#define K_MAX             v_max_f32
#define K_CANON           v_canon_f32
#include "reduce/kernel.inc.h"

#define K_NAME            f64
#define K_ELEM            double
#define K_VEC             v_f64
#define K_LANE            double
#define K_LOAD            load_f64
#define K_STORE(p, x, op) store_f64(p, x)
#define K_MIN             v_min_f64
#define K_MAX             v_max_f64
#define K_CANON           v_canon_f64
#include "reduce/kernel.inc.h"

#define K_NAME            f16
#define K_ELEM            uint16_t
#define K_VEC             v_f32
#define K_LANE            float
#define K_LOAD            load_f16
#define K_STORE(p, x, op) store_f16(p, x)
#define K_MIN             v_min_f32
#define K_MAX             v_max_f32
#define K_CANON           v_canon_f32
#include "reduce/kernel.inc.h"

#define K_NAME               bf16
#define K_ELEM               uint16_t
#define K_VEC                struct v_pair
#define K_LANE               float
#define K_LOAD               load_bf16
#define K_STORE(p, x, op)    store_bf16(p, x)
#define K_ADD                pair_add
#define K_MUL                pair_mul
#define K_MIN                pair_min
#define K_MAX                pair_max
#define K_CANON              pair_canon
#define K_DIVIDE(x, divisor) pair_divide(x, divisor)
#include "reduce/kernel.inc.h"

#define K_NAME            e4m3
#define K_ELEM            uint8_t
#define K_VEC             v_f32
#define K_LANE            float
#define K_LOAD            load_e4m3
#define K_STORE(p, x, op) store_e4m3(p, x)
#define K_MIN             v_min_f32
#define K_MAX             v_max_f32
#define K_CANON           v_canon_f32
#include "reduce/kernel.inc.h"

#define K_NAME            e5m2
#define K_ELEM            uint8_t
#define K_VEC             v_f32
#define K_LANE            float
#define K_LOAD            load_e5m2
#define K_STORE(p, x, op) store_e5m2(p, x, op)
#define K_MIN             v_min_f32
#define K_MAX             v_max_f32
#define K_CANON           v_canon_f32
#include "reduce/kernel.inc.h"

#define K_NAME               c64
#define K_ELEM               float _Complex
#define K_VEC                v_c64
#define K_LANE               float _Complex
#define K_LOAD               load_c64
#define K_STORE(p, x, op)    store_c64(p, x)
#define K_MUL                v_mul_c64
#define K_CANON              v_canon_c64
#define K_DIVIDE(x, divisor) ((x) / (float)(divisor))
#include "reduce/kernel.inc.h"

#define K_NAME               c128
#define K_ELEM               double _Complex
#define K_VEC                v_c128
#define K_LANE               double _Complex
#define K_LOAD               load_c128
#define K_STORE(p, x, op)    store_c128(p, x)
#define K_MUL                v_mul_c128
#define K_CANON              v_canon_c128
#define K_DIVIDE(x, divisor) ((x) / (double)(divisor))
#include "reduce/kernel.inc.h"

/* Signed or not is one and the same to them. */
#define K_NAME            b8
#define K_ELEM            uint8_t
#define K_VEC             v_u8
#define K_LANE            uint8_t
#define K_LOAD            load_u8
#define K_STORE(p, x, op) store_u8(p, x)
#define K_BITS            1
#define K_MIN             v_min_u8
#include "reduce/kernel.inc.h"

#define K_NAME            b16
#define K_ELEM            uint16_t
#define K_VEC             v_w16
#define K_LANE            uint16_t
#define K_LOAD            load_w16
#define K_STORE(p, x, op) store_w16(p, x)
#define K_BITS            1
#define K_MIN             v_min_u16
#include "reduce/kernel.inc.h"

#define K_NAME            b32
#define K_ELEM            uint32_t
#define K_VEC             v_u32
#define K_LANE            uint32_t
#define K_LOAD            load_u32
#define K_STORE(p, x, op) store_u32(p, x)
#define K_BITS            1
#define K_MIN             v_min_u32
#include "reduce/kernel.inc.h"

#define K_NAME            b64
#define K_ELEM            uint64_t
#define K_VEC             v_u64
#define K_LANE            uint64_t
#define K_LOAD            load_u64
#define K_STORE(p, x, op) store_u64(p, x)
#define K_BITS            1
#define K_MIN             v_min_u64
#include "reduce/kernel.inc.h"

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
