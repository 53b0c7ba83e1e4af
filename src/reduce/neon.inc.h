/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of 128 bits: what every aarch64 has. */

#include <arm_neon.h>

#define V_BYTES 16

typedef uint8x16_t v_u8;
typedef uint16x4_t v_u16;
typedef uint16x8_t v_w16;
typedef uint32x4_t v_u32;
typedef uint64x2_t v_u64;
typedef float32x4_t v_f32;
typedef float64x2_t v_f64;

static inline v_u8 v_min_i8(v_u8 a, v_u8 b)
{
	return vreinterpretq_u8_s8(vminq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}

static inline v_u8 v_max_i8(v_u8 a, v_u8 b)
{
	return vreinterpretq_u8_s8(vmaxq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}

static inline v_u8 v_min_u8(v_u8 a, v_u8 b)
{
	return vminq_u8(a, b);
}

static inline v_u8 v_max_u8(v_u8 a, v_u8 b)
{
	return vmaxq_u8(a, b);
}

static inline v_w16 v_min_i16(v_w16 a, v_w16 b)
{
	return vreinterpretq_u16_s16(vminq_s16(vreinterpretq_s16_u16(a), vreinterpretq_s16_u16(b)));
}

static inline v_w16 v_max_i16(v_w16 a, v_w16 b)
{
	return vreinterpretq_u16_s16(vmaxq_s16(vreinterpretq_s16_u16(a), vreinterpretq_s16_u16(b)));
}

static inline v_w16 v_min_u16(v_w16 a, v_w16 b)
{
	return vminq_u16(a, b);
}

static inline v_w16 v_max_u16(v_w16 a, v_w16 b)
{
	return vmaxq_u16(a, b);
}

static inline v_w16 v_mul_w16(v_w16 a, v_w16 b)
{
	return vmulq_u16(a, b);
}

static inline v_u32 v_min_i32(v_u32 a, v_u32 b)
{
	return vreinterpretq_u32_s32(vminq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b)));
}

static inline v_u32 v_max_i32(v_u32 a, v_u32 b)
{
	return vreinterpretq_u32_s32(vmaxq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b)));
}

static inline v_u32 v_min_u32(v_u32 a, v_u32 b)
{
	return vminq_u32(a, b);
}

static inline v_u32 v_max_u32(v_u32 a, v_u32 b)
{
	return vmaxq_u32(a, b);
}

static inline v_u64 v_min_i64(v_u64 a, v_u64 b)
{
	return vbslq_u64(vcltq_s64(vreinterpretq_s64_u64(a), vreinterpretq_s64_u64(b)), a, b);
}

static inline v_u64 v_max_i64(v_u64 a, v_u64 b)
{
	return vbslq_u64(vcgtq_s64(vreinterpretq_s64_u64(a), vreinterpretq_s64_u64(b)), a, b);
}

static inline v_u64 v_min_u64(v_u64 a, v_u64 b)
{
	return vbslq_u64(vcltq_u64(a, b), a, b);
}

static inline v_u64 v_max_u64(v_u64 a, v_u64 b)
{
	return vbslq_u64(vcgtq_u64(a, b), a, b);
}

static inline v_f32 v_canon_f32(v_f32 x)
{
	return vbslq_f32(vceqq_f32(x, x), x, vdupq_n_f32(__builtin_nanf("")));
}

static inline v_f64 v_canon_f64(v_f64 x)
{
	return vbslq_f64(vceqq_f64(x, x), x, vdupq_n_f64(__builtin_nan("")));
}

/* FMIN and FMAX pass a NaN on and order the two zeros by themselves. */
static inline v_f32 v_min_f32(v_f32 a, v_f32 b)
{
	return vminq_f32(a, b);
}

static inline v_f32 v_max_f32(v_f32 a, v_f32 b)
{
	return vmaxq_f32(a, b);
}

static inline v_f64 v_min_f64(v_f64 a, v_f64 b)
{
	return vminq_f64(a, b);
}

static inline v_f64 v_max_f64(v_f64 a, v_f64 b)
{
	return vmaxq_f64(a, b);
}

/* (a + bi)(c + di), from a * (c + di) and b * (-d + ci): what is negated is subtracted exactly. */
static inline v_f32 v_mul_c64(v_f32 a, v_f32 b)
{
	const v_f32 sign = { -1, 1, -1, 1 };
	const v_f32 across = vmulq_f32(vtrn2q_f32(a, a), vrev64q_f32(b));

	return vaddq_f32(vmulq_f32(vtrn1q_f32(a, a), b), vmulq_f32(across, sign));
}

static inline v_f64 v_mul_c128(v_f64 a, v_f64 b)
{
	const v_f64 sign = { -1, 1 };
	const v_f64 across = vmulq_f64(vtrn2q_f64(a, a), vextq_f64(b, b, 1));

	return vaddq_f64(vmulq_f64(vtrn1q_f64(a, a), b), vmulq_f64(across, sign));
}

static inline v_u32 v_pick(v_u32 a, v_u32 b, v_u32 yes, v_u32 no)
{
	return vbslq_u32(vcltq_u32(a, b), yes, no);
}

static inline v_u16 v_load_bytes(const unsigned char *p)
{
	uint32_t four;

	memcpy(&four, p, sizeof(four));
	return vreinterpret_u16_s16(vget_low_s16(vmovl_s8(vcreate_s8(four))));
}

static inline v_u32 v_widen(v_u16 x)
{
	return vmovl_u16(x);
}

static inline v_u16 v_narrow(v_u32 x)
{
	return vmovn_u32(x);
}

static inline void v_store_bytes(unsigned char *p, v_u32 x)
{
	const uint16x4_t words = vmovn_u32(x);
	const uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
	const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);

	memcpy(p, &four, sizeof(four));
}

static inline v_f32 v_from_half(v_u16 x)
{
	return vcvt_f32_f16(vreinterpret_f16_u16(x));
}

static inline v_u16 v_to_half(v_f32 x)
{
	return vreinterpret_u16_f16(vcvt_f16_f32(x));
}

/* Without a call, for fewer than 16 bytes. */
static inline void copy_few(unsigned char *to, const unsigned char *from, size_t nbytes)
{
	size_t at = 0;

	if (nbytes & 8) {
		memcpy(to, from, 8);
		at = 8;
	}
	if (nbytes & 4) {
		memcpy(to + at, from + at, 4);
		at += 4;
	}
	if (nbytes & 2) {
		memcpy(to + at, from + at, 2);
		at += 2;
	}
	if (nbytes & 1)
		to[at] = from[at];
}

static inline void v_rest_in(void *buf, const void *p, size_t nbytes)
{
	copy_few(buf, p, nbytes);
}

static inline void v_rest_out(void *p, const void *buf, size_t nbytes)
{
	copy_few(p, buf, nbytes);
}
