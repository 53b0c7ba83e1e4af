/* SPDX-License-Identifier: BSD-3-Clause */
/* From the small float formats to float32 and back, for vectors of any set.
 * What is stored has been through v_canon_f32(): a NaN is 0x7fc00000.
 *
 * v_pick(a, b, yes, no) is a < b ? yes : no, lane by lane, for a, b < 2^31. */

static inline v_u32 v_bits(v_f32 x)
{
	v_u32 bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline v_f32 v_float(v_u32 bits)
{
	v_f32 x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline v_u32 v_splat(uint32_t x)
{
	return (v_u32){ 0 } + x;
}

static inline v_u16 load_u16(const unsigned char *p)
{
	v_u16 x;

	memcpy(&x, p, sizeof(x));
	return x;
}

static inline v_f32 load_f16(const unsigned char *p)
{
	return v_from_half(load_u16(p));
}

static inline void store_f16(unsigned char *p, v_f32 x)
{
	const v_u16 half = v_to_half(x);

	memcpy(p, &half, sizeof(half));
}

static inline v_f32 load_bf16(const unsigned char *p)
{
	return v_float(v_widen(load_u16(p)) << 16);
}

/* The carry of the rounding runs into the exponent, up to infinity. */
static inline void store_bf16(unsigned char *p, v_f32 x)
{
	const v_u32 bits = v_bits(x);
	const v_u16 top = v_narrow((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);

	memcpy(p, &top, sizeof(top));
}

/* The upper half of a float16. */
static inline v_f32 load_e5m2(const unsigned char *p)
{
	return v_from_half((v_u16)(v_load_bytes(p) << 8));
}

/* As a float16 it is 2^8 too small, and the one NaN is 480 in place of it. */
static inline v_f32 load_e4m3(const unsigned char *p)
{
	const v_u16 x = v_load_bytes(p);
	const v_u16 half = (v_u16)((x & 0x80) << 8 | (x & 0x7f) << 7);
	const v_u32 bits = v_bits(v_from_half(half) * 256.0F);
	const v_u32 mag = bits & 0x7fffffffU;

	return v_float(v_pick(v_splat(0x43e00000U), mag, v_splat(0x7fc00000U), bits));
}

/* float32 to a format of 7 - mbits bits of exponent and mbits of mantissa, to
 * nearest even; more than `most` (bits of a float32) becomes `most`. Below the
 * normal numbers an addition does the rounding: the sum's last bit is worth as
 * much as the format's. */
static inline v_u32 to_fp8(v_f32 x, unsigned mbits, uint32_t most, uint32_t nan)
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

static inline void store_e4m3(unsigned char *p, v_f32 x)
{
	v_store_bytes(p, to_fp8(x, 3, 0x43e00000U, 0x7f)); /* 448 */
}

/* MIN and MAX keep an infinity, which 65536 becomes; the others make it 57344. */
static inline void store_e5m2(unsigned char *p, v_f32 x, tutti_op op)
{
	const bool chosen = op == TUTTI_MAX || op == TUTTI_MIN;

	v_store_bytes(p, to_fp8(x, 2, chosen ? 0x47800000U : 0x47600000U, 0x7e));
}
