/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of one lane, or of one complex number. The reference that every other set must equal bit
 * for bit, and what runs on GPUs. */

#include "reduce/language.h"

typedef uint8_t v_u8;
typedef uint16_t v_u16;
typedef uint16_t v_w16;
typedef uint32_t v_u32;
typedef uint64_t v_u64;
typedef float v_f32;
typedef double v_f64;
#ifdef __CUDACC__
template <typename part> struct v_complex {
	part re, im;

	__device__ part operator[](int i) const
	{
		return i ? im : re;
	}
	__device__ v_complex operator+(v_complex other) const
	{
		return { re + other.re, im + other.im };
	}
	__device__ v_complex operator/(part divisor) const
	{
		return { re / divisor, im / divisor };
	}
};
typedef v_complex<float> v_c64;
typedef v_complex<double> v_c128;
#else
typedef float v_c64 __attribute__((vector_size(8)));
typedef double v_c128 __attribute__((vector_size(16)));
#endif

/* X(name, vector, lane) */
#define V_ORDER_MAP(X)          \
	X(i8, v_u8, int8_t)     \
	X(u8, v_u8, uint8_t)    \
	X(i16, v_w16, int16_t)  \
	X(u16, v_w16, uint16_t) \
	X(i32, v_u32, int32_t)  \
	X(u32, v_u32, uint32_t) \
	X(i64, v_u64, int64_t)  \
	X(u64, v_u64, uint64_t)

#define X(name, vector, lane)                            \
	V_INLINE vector v_min_##name(vector a, vector b) \
	{                                                \
		return (lane)a < (lane)b ? a : b;        \
	}                                                \
	V_INLINE vector v_max_##name(vector a, vector b) \
	{                                                \
		return (lane)a > (lane)b ? a : b;        \
	}
V_ORDER_MAP(X)
#undef X

/* As int it would overflow. */
V_INLINE v_w16 v_mul_w16(v_w16 a, v_w16 b)
{
	return (v_w16)((uint32_t)a * b);
}

V_INLINE v_f32 v_canon_f32(v_f32 x)
{
	return x == x ? x : __builtin_nanf("");
}

V_INLINE v_f64 v_canon_f64(v_f64 x)
{
	return x == x ? x : __builtin_nan("");
}

/* Equal numbers are one and the same but for the two zeros. */
V_INLINE v_f32 v_min_f32(v_f32 a, v_f32 b)
{
	if (a != a || b != b)
		return __builtin_nanf("");
	return a < b || (a == b && signbit(a)) ? a : b;
}

V_INLINE v_f32 v_max_f32(v_f32 a, v_f32 b)
{
	if (a != a || b != b)
		return __builtin_nanf("");
	return a > b || (a == b && !signbit(a)) ? a : b;
}

V_INLINE v_f64 v_min_f64(v_f64 a, v_f64 b)
{
	if (a != a || b != b)
		return __builtin_nan("");
	return a < b || (a == b && signbit(a)) ? a : b;
}

V_INLINE v_f64 v_max_f64(v_f64 a, v_f64 b)
{
	if (a != a || b != b)
		return __builtin_nan("");
	return a > b || (a == b && !signbit(a)) ? a : b;
}

V_INLINE v_c64 v_canon_c64(v_c64 x)
{
	return (v_c64){ v_canon_f32(x[0]), v_canon_f32(x[1]) };
}

V_INLINE v_c128 v_canon_c128(v_c128 x)
{
	return (v_c128){ v_canon_f64(x[0]), v_canon_f64(x[1]) };
}

V_INLINE v_c64 v_mul_c64(v_c64 a, v_c64 b)
{
	return (v_c64){ a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0] };
}

V_INLINE v_c128 v_mul_c128(v_c128 a, v_c128 b)
{
	return (v_c128){ a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0] };
}

V_INLINE v_u32 v_pick(v_u32 a, v_u32 b, v_u32 yes, v_u32 no)
{
	return a < b ? yes : no;
}

V_INLINE v_u16 v_load_bytes(const unsigned char *p)
{
	return (v_u16)(int8_t)p[0];
}

V_INLINE void v_store_bytes(unsigned char *p, v_u32 x)
{
	p[0] = (unsigned char)x;
}

V_INLINE v_u32 v_widen(v_u16 x)
{
	return x;
}

V_INLINE v_u16 v_narrow(v_u32 x)
{
	return (v_u16)x;
}

#ifdef __CUDA_ARCH__
/* What GPUs do themselves, to nearest even, denormals too; but they have another NaN. */
V_INLINE v_f32 v_from_half(v_u16 x)
{
	v_f32 value;

	asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x));
	return value;
}

V_INLINE v_u16 v_to_half(v_f32 x)
{
	v_u16 half;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
	return x == x ? half : 0x7e00;
}
#else
/* A number below 2^-14 is made by a subtraction of two that are not small, so
 * that the processor's treatment of denormals does not matter. */
V_INLINE v_f32 v_from_half(v_u16 x)
{
	const uint32_t mag = (x & 0x7fffU) << 13;
	const uint32_t sign = (x & 0x8000U) << 16;
	const uint32_t exponent = mag & 0x1fU << 23;
	const uint32_t tiny_bits = 113U << 23;
	uint32_t bits = mag + (112U << 23);
	float value, tiny;

	if (exponent == 0x1fU << 23) {
		bits += 112U << 23;
	} else if (exponent == 0) {
		bits += 1U << 23;
		memcpy(&value, &bits, sizeof(value));
		memcpy(&tiny, &tiny_bits, sizeof(tiny));
		value -= tiny;
		memcpy(&bits, &value, sizeof(bits));
	}
	bits |= sign;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Below 2^-14 an addition does the rounding: the sum's last bit is worth 2^-24. */
V_INLINE v_u16 v_to_half(v_f32 x)
{
	const float tiny = 0.5F;
	uint32_t bits, sign, sum_bits;
	float sum;

	memcpy(&bits, &x, sizeof(bits));
	sign = bits >> 16 & 0x8000U;
	bits &= 0x7fffffffU;
	if (bits > 0x7f800000U)
		return 0x7e00;
	if (bits >= 143U << 23)
		return (v_u16)(sign | 0x7c00U);
	if (bits < 113U << 23) {
		memcpy(&sum, &bits, sizeof(sum));
		sum += tiny;
		memcpy(&sum_bits, &sum, sizeof(sum_bits));
		return (v_u16)(sign | (sum_bits - (126U << 23)));
	}
	bits += 0xfffU + (bits >> 13 & 1U) - (112U << 23);
	return (v_u16)(sign | bits >> 13);
}
#endif

/* The other half of a pair. */
V_INLINE void v_rest_in(void *buf, const void *p, size_t nbytes)
{
	memcpy(buf, p, nbytes);
}

V_INLINE void v_rest_out(void *p, const void *buf, size_t nbytes)
{
	memcpy(p, buf, nbytes);
}
