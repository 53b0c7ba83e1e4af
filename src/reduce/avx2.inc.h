/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of 256 bits: AVX2 and F16C. */

#include <immintrin.h>

#define V_BYTES 32

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
	X(u32, v_u32, epu32)

#define X(name, vector, suffix)                                             \
	static inline vector v_min_##name(vector a, vector b)               \
	{                                                                   \
		return (vector)_mm256_min_##suffix((__m256i)a, (__m256i)b); \
	}                                                                   \
	static inline vector v_max_##name(vector a, vector b)               \
	{                                                                   \
		return (vector)_mm256_max_##suffix((__m256i)a, (__m256i)b); \
	}
V_ORDER_MAP(X)
#undef X

static inline v_u64 v_min_i64(v_u64 a, v_u64 b)
{
	const __m256i more = _mm256_cmpgt_epi64((__m256i)a, (__m256i)b);

	return (v_u64)_mm256_blendv_epi8((__m256i)a, (__m256i)b, more);
}

static inline v_u64 v_max_i64(v_u64 a, v_u64 b)
{
	const __m256i more = _mm256_cmpgt_epi64((__m256i)a, (__m256i)b);

	return (v_u64)_mm256_blendv_epi8((__m256i)b, (__m256i)a, more);
}

/* Whether a > b: the comparison is a signed one. */
static inline __m256i above_u64(v_u64 a, v_u64 b)
{
	const __m256i top = _mm256_set1_epi64x(INT64_MIN);

	return _mm256_cmpgt_epi64(_mm256_xor_si256((__m256i)a, top),
				  _mm256_xor_si256((__m256i)b, top));
}

static inline v_u64 v_min_u64(v_u64 a, v_u64 b)
{
	return (v_u64)_mm256_blendv_epi8((__m256i)a, (__m256i)b, above_u64(a, b));
}

static inline v_u64 v_max_u64(v_u64 a, v_u64 b)
{
	return (v_u64)_mm256_blendv_epi8((__m256i)b, (__m256i)a, above_u64(a, b));
}

static inline v_f32 v_canon_f32(v_f32 x)
{
	return _mm256_blendv_ps(x, _mm256_set1_ps(__builtin_nanf("")),
				_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static inline v_f64 v_canon_f64(v_f64 x)
{
	return _mm256_blendv_pd(x, _mm256_set1_pd(__builtin_nan("")),
				_mm256_cmp_pd(x, x, _CMP_UNORD_Q));
}

/* The instruction gives its second operand if the two are equal or one is NaN.
 * Asked both ways round and joined bit by bit: of two zeros OR gives -0 and AND
 * +0, and a NaN stays one under OR; under AND it need not. */
static inline v_f32 v_min_f32(v_f32 a, v_f32 b)
{
	return _mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a));
}

static inline v_f32 v_max_f32(v_f32 a, v_f32 b)
{
	const __m256 most = _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a));

	return _mm256_or_ps(most, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}

static inline v_f64 v_min_f64(v_f64 a, v_f64 b)
{
	return _mm256_or_pd(_mm256_min_pd(a, b), _mm256_min_pd(b, a));
}

static inline v_f64 v_max_f64(v_f64 a, v_f64 b)
{
	const __m256d most = _mm256_and_pd(_mm256_max_pd(a, b), _mm256_max_pd(b, a));

	return _mm256_or_pd(most, _mm256_cmp_pd(a, b, _CMP_UNORD_Q));
}

static inline v_w16 v_mul_w16(v_w16 a, v_w16 b)
{
	return a * b;
}

/* (a + bi)(c + di), from a * (c + di) and b * (d + ci). */
static inline v_f32 v_mul_c64(v_f32 a, v_f32 b)
{
	return _mm256_addsub_ps(_mm256_moveldup_ps(a) * b,
				_mm256_movehdup_ps(a) * _mm256_permute_ps(b, 0xb1));
}

static inline v_f64 v_mul_c128(v_f64 a, v_f64 b)
{
	return _mm256_addsub_pd(_mm256_movedup_pd(a) * b,
				_mm256_permute_pd(a, 0xf) * _mm256_permute_pd(b, 0x5));
}

static inline v_u32 v_pick(v_u32 a, v_u32 b, v_u32 yes, v_u32 no)
{
	return (v_u32)_mm256_blendv_epi8((__m256i)no, (__m256i)yes,
					 _mm256_cmpgt_epi32((__m256i)b, (__m256i)a));
}

static inline v_u16 v_load_bytes(const unsigned char *p)
{
	return (v_u16)_mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p));
}

static inline v_u32 v_widen(v_u16 x)
{
	return (v_u32)_mm256_cvtepu16_epi32((__m128i)x);
}

static inline v_u16 v_narrow(v_u32 x)
{
	return (v_u16)_mm_packus_epi32(_mm256_castsi256_si128((__m256i)x),
				       _mm256_extracti128_si256((__m256i)x, 1));
}

static inline void v_store_bytes(unsigned char *p, v_u32 x)
{
	const __m128i words = (__m128i)v_narrow(x);

	_mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
}

static inline v_f32 v_from_half(v_u16 x)
{
	return _mm256_cvtph_ps((__m128i)x);
}

static inline v_u16 v_to_half(v_f32 x)
{
	return (v_u16)_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* The whole words among nbytes. */
static inline __m256i words_below(size_t nbytes)
{
	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(nbytes / 4)),
				  _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The bytes after the last whole word. */
static inline void copy_odd(unsigned char *to, const unsigned char *from, size_t nbytes)
{
	const size_t at = nbytes & ~(size_t)3;

	if (nbytes & 2)
		memcpy(to + at, from + at, 2);
	if (nbytes & 1)
		to[nbytes - 1] = from[nbytes - 1];
}

static inline void v_rest_in(void *buf, const void *p, size_t nbytes)
{
	_mm256_storeu_si256(buf, _mm256_maskload_epi32(p, words_below(nbytes)));
	copy_odd(buf, p, nbytes);
}

static inline void v_rest_out(void *p, const void *buf, size_t nbytes)
{
	_mm256_maskstore_epi32(p, words_below(nbytes), _mm256_loadu_si256(buf));
	copy_odd(p, buf, nbytes);
}
