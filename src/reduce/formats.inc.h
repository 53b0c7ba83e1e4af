/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of any set to memory and back, the small float formats by way of float32.
 * What is stored has been through v_canon_f32(): a NaN is 0x7fc00000.
 *
 * Vectors of a set are all of one length but for v_u16, which has a lane for each of
 * v_f32; v_w16 is a whole one. Those of complex numbers hold real and imaginary parts
 * in turn: where vectors have more than one lane (V_BYTES) they are those of floats.
 *
 * v_pick(a, b, yes, no) is a < b ? yes : no, lane by lane, for a, b < 2^31.
 * v_load_bytes() extends each byte's sign to 16 bits. */

#include "reduce/language.h"

#ifdef V_BYTES
typedef v_f32 v_c64;
typedef v_f64 v_c128;

V_INLINE v_c64 v_canon_c64(v_c64 x)
{
	return v_canon_f32(x);
}

V_INLINE v_c128 v_canon_c128(v_c128 x)
{
	return v_canon_f64(x);
}
#endif

/* X(name, vector) */
#define K_PLAIN_MAP(X) \
	X(u8, v_u8)    \
	X(u16, v_u16)  \
	X(w16, v_w16)  \
	X(u32, v_u32)  \
	X(u64, v_u64)  \
	X(f32, v_f32)  \
	X(f64, v_f64)  \
	X(c64, v_c64)  \
	X(c128, v_c128)

#ifdef __CUDACC__
#define X(name, vector)                                        \
	V_INLINE vector load_##name(const unsigned char *p)    \
	{                                                      \
		vector x;                                      \
                                                               \
		memcpy(&x, p, sizeof(x));                      \
		return x;                                      \
	}                                                      \
	V_INLINE void store_##name(unsigned char *p, vector x) \
	{                                                      \
		memcpy(p, &x, sizeof(x));                      \
	}
#else
#define X(name, vector)                                                      \
	typedef vector name##_at_any __attribute__((aligned(1), may_alias)); \
	V_INLINE vector load_##name(const unsigned char *p)                  \
	{                                                                    \
		return *(const name##_at_any *)p;                            \
	}                                                                    \
	V_INLINE void store_##name(unsigned char *p, vector x)               \
	{                                                                    \
		*(name##_at_any *)p = x;                                     \
	}
#endif
K_PLAIN_MAP(X)
#undef X

V_INLINE v_u32 v_bits(v_f32 x)
{
	v_u32 bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

V_INLINE v_f32 v_float(v_u32 bits)
{
	v_f32 x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

V_INLINE v_u32 v_splat(uint32_t x)
{
	return (v_u32){ 0 } + x;
}

V_INLINE v_f32 load_f16(const unsigned char *p)
{
	return v_from_half(load_u16(p));
}

V_INLINE void store_f16(unsigned char *p, v_f32 x)
{
	store_u16(p, v_to_half(x));
}

/* bfloat16 are taken two by two, as the halves of 32 bits: there a shift or a
 * mask makes a float32, with no move between lanes. */
struct v_pair {
	v_f32 low, high;
};

V_INLINE struct v_pair pair_add(struct v_pair a, struct v_pair b)
{
	return (struct v_pair){ a.low + b.low, a.high + b.high };
}

V_INLINE struct v_pair pair_mul(struct v_pair a, struct v_pair b)
{
	return (struct v_pair){ a.low * b.low, a.high * b.high };
}

V_INLINE struct v_pair pair_min(struct v_pair a, struct v_pair b)
{
	return (struct v_pair){ v_min_f32(a.low, b.low), v_min_f32(a.high, b.high) };
}

V_INLINE struct v_pair pair_max(struct v_pair a, struct v_pair b)
{
	return (struct v_pair){ v_max_f32(a.low, b.low), v_max_f32(a.high, b.high) };
}

V_INLINE struct v_pair pair_divide(struct v_pair x, int divisor)
{
	return (struct v_pair){ x.low / (float)divisor, x.high / (float)divisor };
}

V_INLINE struct v_pair pair_canon(struct v_pair x)
{
	return (struct v_pair){ v_canon_f32(x.low), v_canon_f32(x.high) };
}

V_INLINE struct v_pair load_bf16(const unsigned char *p)
{
	const v_u32 both = load_u32(p);

	return (struct v_pair){ v_float(both << 16), v_float(both & 0xffff0000U) };
}

/* To nearest even; the carry runs into the exponent, up to infinity. */
V_INLINE v_u32 round_bf16(v_f32 x)
{
	const v_u32 bits = v_bits(x);

	return bits + 0x7fffU + (bits >> 16 & 1U);
}

V_INLINE void store_bf16(unsigned char *p, struct v_pair x)
{
	store_u32(p, (round_bf16(x.high) & 0xffff0000U) | round_bf16(x.low) >> 16);
}

/* The upper half of a float16. */
V_INLINE v_f32 load_e5m2(const unsigned char *p)
{
	return v_from_half((v_u16)(v_load_bytes(p) << 8));
}

/* As a float16 it is 2^8 too small. The one NaN, all bits set, carries into bit 14
 * and only then makes an exponent of all ones. */
V_INLINE v_f32 load_e4m3(const unsigned char *p)
{
	const v_u16 half = (v_u16)((v_load_bytes(p) << 7) & 0xbf80);
	const v_u16 nan = (v_u16)((half + 0x80) & 0x4000);

	return v_from_half((v_u16)(half | nan)) * 256.0F;
}

/* float32 to a format of 7 - mbits bits of exponent and mbits of mantissa, to
 * nearest even; more than `most` (bits of a float32) becomes `most`. Below the
 * normal numbers an addition does the rounding: the sum's last bit is worth as
 * much as the format's. */
V_INLINE v_u32 to_fp8(v_f32 x, unsigned mbits, uint32_t most, uint32_t nan)
{
	const unsigned drop = 23 - mbits;
	const uint32_t bias = (1U << (6 - mbits)) - 1;
	const uint32_t least_normal = (127 - bias + 1) << 23;
	const v_u32 magic = v_splat((127 - bias + 1 + drop) << 23);
	const v_u32 bits = v_bits(x);
	const v_u32 mag = bits & 0x7fffffffU;
	const v_u32 capped = v_pick(v_splat(most), mag, v_splat(most), mag);
	const v_u32 half = (capped >> drop & 1U) + ((1U << (drop - 1)) - 1);
	const v_u32 normal = ((capped + half) >> drop) - ((127 - bias) << mbits);
	const v_u32 tiny = v_bits(v_float(capped) + v_float(magic)) - magic;
	const v_u32 code = v_pick(capped, v_splat(least_normal), tiny, normal);

	return v_pick(v_splat(0x7f800000U), mag, v_splat(nan), code | (bits >> 24 & 0x80U));
}

V_INLINE void store_e4m3(unsigned char *p, v_f32 x)
{
	v_store_bytes(p, to_fp8(x, 3, 0x43e00000U, 0x7f)); /* 448 */
}

/* MIN and MAX keep an infinity, which 65536 becomes; the others make it 57344. */
V_INLINE void store_e5m2(unsigned char *p, v_f32 x, tutti_op op)
{
	const bool chosen = op == TUTTI_MAX || op == TUTTI_MIN;

	v_store_bytes(p, to_fp8(x, 2, chosen ? 0x47800000U : 0x47600000U, 0x7e));
}
