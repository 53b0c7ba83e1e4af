/* SPDX-License-Identifier: BSD-3-Clause */
/* Of each type its operators, and what K_RUN makes of them (operators.inc.h), over the vectors that
 * were included before. */

#include "reduce/formats.inc.h"

/* An integer of up to 32 bits divided by one that is not negative, cut off. Hosts divide vectors of
 * doubles, which gives the exact quotient; GPUs are slow at that. */
#ifdef __CUDACC__
#define K_QUOTIENT(lane, x, divisor) ((lane)((x) / (divisor)))
#else
#define K_QUOTIENT(lane, x, divisor) ((lane)((double)(x) / (divisor)))
#endif

/* A complex number in memory. */
struct k_c64 {
	float part[2];
};

struct k_c128 {
	double part[2];
};

#define K_NAME               i8
#define K_ELEM               int8_t
#define K_VEC                v_u8
#define K_LANE               int8_t
#define K_LOAD               load_u8
#define K_STORE(p, x, op)    store_u8(p, x)
#define K_MIN                v_min_i8
#define K_MAX                v_max_i8
#define K_DIVIDE(x, divisor) K_QUOTIENT(int8_t, x, divisor)
#include "reduce/operators.inc.h"

#define K_NAME               u8
#define K_ELEM               uint8_t
#define K_VEC                v_u8
#define K_LANE               uint8_t
#define K_LOAD               load_u8
#define K_STORE(p, x, op)    store_u8(p, x)
#define K_MIN                v_min_u8
#define K_MAX                v_max_u8
#define K_DIVIDE(x, divisor) K_QUOTIENT(uint8_t, x, divisor)
#include "reduce/operators.inc.h"

#define K_NAME               i16
#define K_ELEM               int16_t
#define K_VEC                v_w16
#define K_LANE               int16_t
#define K_LOAD               load_w16
#define K_STORE(p, x, op)    store_w16(p, x)
#define K_MUL                v_mul_w16
#define K_MIN                v_min_i16
#define K_MAX                v_max_i16
#define K_DIVIDE(x, divisor) K_QUOTIENT(int16_t, x, divisor)
#include "reduce/operators.inc.h"

#define K_NAME               u16
#define K_ELEM               uint16_t
#define K_VEC                v_w16
#define K_LANE               uint16_t
#define K_LOAD               load_w16
#define K_STORE(p, x, op)    store_w16(p, x)
#define K_MUL                v_mul_w16
#define K_MIN                v_min_u16
#define K_MAX                v_max_u16
#define K_DIVIDE(x, divisor) K_QUOTIENT(uint16_t, x, divisor)
#include "reduce/operators.inc.h"

#define K_NAME               i32
#define K_ELEM               int32_t
#define K_VEC                v_u32
#define K_LANE               int32_t
#define K_LOAD               load_u32
#define K_STORE(p, x, op)    store_u32(p, x)
#define K_MIN                v_min_i32
#define K_MAX                v_max_i32
#define K_DIVIDE(x, divisor) K_QUOTIENT(int32_t, x, divisor)
#include "reduce/operators.inc.h"

#define K_NAME               u32
#define K_ELEM               uint32_t
#define K_VEC                v_u32
#define K_LANE               uint32_t
#define K_LOAD               load_u32
#define K_STORE(p, x, op)    store_u32(p, x)
#define K_MIN                v_min_u32
#define K_MAX                v_max_u32
#define K_DIVIDE(x, divisor) K_QUOTIENT(uint32_t, x, divisor)
#include "reduce/operators.inc.h"

#define K_NAME               i64
#define K_ELEM               int64_t
#define K_VEC                v_u64
#define K_LANE               int64_t
#define K_LOAD               load_u64
#define K_STORE(p, x, op)    store_u64(p, x)
#define K_MIN                v_min_i64
#define K_MAX                v_max_i64
#define K_DIVIDE(x, divisor) ((x) / (divisor))
#include "reduce/operators.inc.h"

#define K_NAME               u64
#define K_ELEM               uint64_t
#define K_VEC                v_u64
#define K_LANE               uint64_t
#define K_LOAD               load_u64
#define K_STORE(p, x, op)    store_u64(p, x)
#define K_MIN                v_min_u64
#define K_MAX                v_max_u64
#define K_DIVIDE(x, divisor) ((x) / (uint64_t)(divisor))
#include "reduce/operators.inc.h"

#define K_NAME            f32
#define K_ELEM            float
#define K_VEC             v_f32
#define K_LANE            float
#define K_LOAD            load_f32
#define K_STORE(p, x, op) store_f32(p, x)
#define K_MIN             v_min_f32
#define K_MAX             v_max_f32
#define K_CANON           v_canon_f32
#include "reduce/operators.inc.h"

#define K_NAME            f64
#define K_ELEM            double
#define K_VEC             v_f64
#define K_LANE            double
#define K_LOAD            load_f64
#define K_STORE(p, x, op) store_f64(p, x)
#define K_MIN             v_min_f64
#define K_MAX             v_max_f64
#define K_CANON           v_canon_f64
#include "reduce/operators.inc.h"

#define K_NAME            f16
#define K_ELEM            uint16_t
#define K_VEC             v_f32
#define K_LANE            float
#define K_LOAD            load_f16
#define K_STORE(p, x, op) store_f16(p, x)
#define K_MIN             v_min_f32
#define K_MAX             v_max_f32
#define K_CANON           v_canon_f32
#include "reduce/operators.inc.h"

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
#include "reduce/operators.inc.h"

#define K_NAME            e4m3
#define K_ELEM            uint8_t
#define K_VEC             v_f32
#define K_LANE            float
#define K_LOAD            load_e4m3
#define K_STORE(p, x, op) store_e4m3(p, x)
#define K_MIN             v_min_f32
#define K_MAX             v_max_f32
#define K_CANON           v_canon_f32
#include "reduce/operators.inc.h"

#define K_NAME            e5m2
#define K_ELEM            uint8_t
#define K_VEC             v_f32
#define K_LANE            float
#define K_LOAD            load_e5m2
#define K_STORE(p, x, op) store_e5m2(p, x, op)
#define K_MIN             v_min_f32
#define K_MAX             v_max_f32
#define K_CANON           v_canon_f32
#include "reduce/operators.inc.h"

#define K_NAME               c64
#define K_ELEM               struct k_c64
#define K_VEC                v_c64
#define K_LANE               struct k_c64
#define K_LOAD               load_c64
#define K_STORE(p, x, op)    store_c64(p, x)
#define K_MUL                v_mul_c64
#define K_CANON              v_canon_c64
#define K_DIVIDE(x, divisor) ((x) / (float)(divisor))
#include "reduce/operators.inc.h"

#define K_NAME               c128
#define K_ELEM               struct k_c128
#define K_VEC                v_c128
#define K_LANE               struct k_c128
#define K_LOAD               load_c128
#define K_STORE(p, x, op)    store_c128(p, x)
#define K_MUL                v_mul_c128
#define K_CANON              v_canon_c128
#define K_DIVIDE(x, divisor) ((x) / (double)(divisor))
#include "reduce/operators.inc.h"

/* Signed or not is one and the same to them. */
#define K_NAME            b8
#define K_ELEM            uint8_t
#define K_VEC             v_u8
#define K_LANE            uint8_t
#define K_LOAD            load_u8
#define K_STORE(p, x, op) store_u8(p, x)
#define K_BITS            1
#define K_MIN             v_min_u8
#include "reduce/operators.inc.h"

#define K_NAME            b16
#define K_ELEM            uint16_t
#define K_VEC             v_w16
#define K_LANE            uint16_t
#define K_LOAD            load_w16
#define K_STORE(p, x, op) store_w16(p, x)
#define K_BITS            1
#define K_MIN             v_min_u16
#include "reduce/operators.inc.h"

#define K_NAME            b32
#define K_ELEM            uint32_t
#define K_VEC             v_u32
#define K_LANE            uint32_t
#define K_LOAD            load_u32
#define K_STORE(p, x, op) store_u32(p, x)
#define K_BITS            1
#define K_MIN             v_min_u32
#include "reduce/operators.inc.h"

#define K_NAME            b64
#define K_ELEM            uint64_t
#define K_VEC             v_u64
#define K_LANE            uint64_t
#define K_LOAD            load_u64
#define K_STORE(p, x, op) store_u64(p, x)
#define K_BITS            1
#define K_MIN             v_min_u64
#include "reduce/operators.inc.h"
