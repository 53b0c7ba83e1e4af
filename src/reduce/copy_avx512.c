/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce/kernels.h"

#if TTI_REDUCE_HAVE_X86

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define NT_COPY   void tti_copy_nt_avx512
#define NT_VEC    __m512i
#define NT_STREAM _mm512_stream_si512
#include "reduce/copy_nt.inc.h"

#endif
