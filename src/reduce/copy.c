/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce/kernels.h"

#include <string.h>

#if TTI_REDUCE_HAVE_X86

#include <emmintrin.h>
#include <stdint.h>

#define NT_COPY   void tti_copy_nt_sse2
#define NT_VEC    __m128i
#define NT_STREAM _mm_stream_si128
#include "reduce/copy_nt.inc.h"

static void copy_nt(void *dst, const void *src, size_t nbytes)
{
	const enum tti_isa best = tti_reduce_best_isa();

	if (best == TTI_ISA_AVX512)
		tti_copy_nt_avx512(dst, src, nbytes);
	else if (best == TTI_ISA_AVX2)
		tti_copy_nt_avx2(dst, src, nbytes);
	else
		tti_copy_nt_sse2(dst, src, nbytes);
}

#else

static void copy_nt(void *dst, const void *src, size_t nbytes)
{
	memcpy(dst, src, nbytes);
}

#endif

void tti_copy(void *dst, const void *src, size_t nbytes, int hint_large)
{
	if (nbytes == 0 || dst == src)
		return;
	if (hint_large)
		copy_nt(dst, src, nbytes);
	else
		memcpy(dst, src, nbytes);
}
