/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce/kernels.h"

#if TTI_REDUCE_HAVE_X86

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* Stores through the caches are in order. */
static inline void no_fence(void)
{
}

#define COPY       void tti_copy_nt_avx512
#define COPY_VEC   __m512i
#define COPY_STORE _mm512_stream_si512
#define COPY_FENCE _mm_sfence
#include "reduce/copy.inc.h"

#define COPY       void tti_copy_avx512
#define COPY_VEC   __m512i
#define COPY_STORE _mm512_store_si512
#define COPY_FENCE no_fence
#include "reduce/copy.inc.h"

#endif
