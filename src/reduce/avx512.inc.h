/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of 512 bits: AVX-512 F, BW, VL and DQ, nothing newer. */

#include <immintrin.h>

#define V_BYTES 64

typedef uint8_t v_u8 __attribute__((vector_size(V_BYTES)));
typedef uint16_t v_u16 __attribute__((vector_size(V_BYTES / 2)));
typedef uint16_t v_w16 __attribute__((vector_size(V_BYTES)));
typedef uint32_t v_u32 __attribute__((vector_size(V_BYTES)));
typedef uint64_t v_u64 __attribute__((vector_size(V_BYTES)));
typedef float v_f32 __attribute__((vector_size(V_BYTES)));
typedef double v_f64 __attribute__((vector_size(V_BYTES)));

/* X(name, vector, suffix of the intrinsic) */
#define V_ORDER_MAP(X)       \
	X(i8, v_u8, epi8)    \
	X(u8, v_u8, epu8)    \
	X(i16, v_w16, epi16) \
	X(u16, v_w16, epu16) \
	X(i32, v_u32, epi32) \
	X(u32, v_u32, epu32) \
	X(i64, v_u64, epi64) \
	X(u64, v_u64, epu64)

#define X(name, vector, suffix)                                             \
	static inline vector v_min_##name(vector a, vector b)               \
	{                                                                   \
		return (vector)_mm512_min_##suffix((__m512i)a, (__m512i)b); \
	}                                                                   \
	static inline vector v_max_##name(vector a, vector b)               \
	{                                                                   \
		return (vector)_mm512_max_##suffix((__m512i)a, (__m512i)b); \
	}
V_ORDER_MAP(X)
#undef X

static inline v_f32 v_canon_f32(v_f32 x)
{
	const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);

	return _mm512_mask_mov_ps(x, nan, _mm512_set1_ps(__builtin_nanf("")));
}

static inline v_f64 v_canon_f64(v_f64 x)
{
	const __mmask8 nan = _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q);

	return _mm512_mask_mov_pd(x, nan, _mm512_set1_pd(__builtin_nan("")));
}

/* The instruction gives its second operand if the two are equal or one is NaN.
 * Asked both ways round and joined bit by bit: of two zeros OR gives -0 and AND
 * +0, and a NaN stays one under OR; under AND it need not. */
static inline v_f32 v_min_f32(v_f32 a, v_f32 b)
{
	return _mm512_or_ps(_mm512_min_ps(a, b), _mm512_min_ps(b, a));
}

static inline v_f32 v_max_f32(v_f32 a, v_f32 b)
{
	const __m512 most = _mm512_and_ps(_mm512_max_ps(a, b), _mm512_max_ps(b, a));
	const __mmask16 nan = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);

	return _mm512_mask_mov_ps(most, nan, _mm512_set1_ps(__builtin_nanf("")));
}

static inline v_f64 v_min_f64(v_f64 a, v_f64 b)
{
	return _mm512_or_pd(_mm512_min_pd(a, b), _mm512_min_pd(b, a));
}

static inline v_f64 v_max_f64(v_f64 a, v_f64 b)
{
	const __m512d most = _mm512_and_pd(_mm512_max_pd(a, b), _mm512_max_pd(b, a));
	const __mmask8 nan = _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);

	return _mm512_mask_mov_pd(most, nan, _mm512_set1_pd(__builtin_nan("")));
}

static inline v_w16 v_mul_w16(v_w16 a, v_w16 b)
{
	return a * b;
}

/* (a + bi)(c + di), from a * (c + di) and b * (d + ci). */
static inline v_f32 v_mul_c64(v_f32 a, v_f32 b)
{
	const v_f32 straight = _mm512_moveldup_ps(a) * b;
	const v_f32 across = _mm512_movehdup_ps(a) * _mm512_permute_ps(b, 0xb1);

	return _mm512_mask_sub_ps(straight + across, 0x5555, straight, across);
}

static inline v_f64 v_mul_c128(v_f64 a, v_f64 b)
{
	const v_f64 straight = _mm512_movedup_pd(a) * b;
	const v_f64 across = _mm512_permute_pd(a, 0xff) * _mm512_permute_pd(b, 0x55);

	return _mm512_mask_sub_pd(straight + across, 0x55, straight, across);
}

static inline v_u32 v_pick(v_u32 a, v_u32 b, v_u32 yes, v_u32 no)
{
	const __mmask16 less = _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b);

	return (v_u32)_mm512_mask_mov_epi32((__m512i)no, less, (__m512i)yes);
}

static inline v_u16 v_load_bytes(const unsigned char *p)
{
	return (v_u16)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
}

static inline void v_store_bytes(unsigned char *p, v_u32 x)
{
	_mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)x));
}

static inline v_u32 v_widen(v_u16 x)
{
	return (v_u32)_mm512_cvtepu16_epi32((__m256i)x);
}

static inline v_u16 v_narrow(v_u32 x)
{
	return (v_u16)_mm512_cvtepi32_epi16((__m512i)x);
}

static inline v_f32 v_from_half(v_u16 x)
{
	return _mm512_cvtph_ps((__m256i)x);
}

static inline v_u16 v_to_half(v_f32 x)
{
	/* Not _mm512_cvtps_ph(): without optimisation gcc has it as a macro, in which
	 * it converts -1 to a mask. */
	return (v_u16)_mm512_maskz_cvtps_ph(0xffff, x,
					    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Less than a vector. Not by one load or store with a mask, which would touch the line behind where
 * the vector crosses it, whatever the mask says: behind a message of a line is the next one's,
 * which another core writes at the time. */
static inline __mmask64 v_below(size_t nbytes)
{
	return (UINT64_C(1) << nbytes) - 1;
}

static inline void v_rest_in(void *buf, const void *p, size_t nbytes)
{
	const __mmask64 some = v_below(nbytes);
	const char *const end = (const char *)p + 32;
	__m512i x;

	if (nbytes <= 16)
		x = _mm512_zextsi128_si512(_mm_maskz_loadu_epi8((__mmask16)some, p));
	else if (nbytes <= 32)
		x = _mm512_zextsi256_si512(_mm256_maskz_loadu_epi8((__mmask32)some, p));
	else if (nbytes <= 48)
		x = _mm512_inserti32x4(_mm512_zextsi256_si512(_mm256_loadu_si256(p)),
				       _mm_maskz_loadu_epi8((__mmask16)(some >> 32), end), 2);
	else
		x = _mm512_maskz_loadu_epi8(some, p);
	_mm512_storeu_si512(buf, x);
}

static inline void v_rest_out(void *p, const void *buf, size_t nbytes)
{
	const __mmask64 some = v_below(nbytes);
	const __m512i x = _mm512_loadu_si512(buf);

	if (nbytes <= 16) {
		_mm_mask_storeu_epi8(p, (__mmask16)some, _mm512_castsi512_si128(x));
	} else if (nbytes <= 32) {
		_mm256_mask_storeu_epi8(p, (__mmask32)some, _mm512_castsi512_si256(x));
	} else if (nbytes <= 48) {
		_mm256_storeu_si256(p, _mm512_castsi512_si256(x));
		_mm_mask_storeu_epi8((char *)p + 32, (__mmask16)(some >> 32),
				     _mm512_extracti32x4_epi32(x, 2));
	} else {
		_mm512_mask_storeu_epi8(p, some, x);
	}
}
