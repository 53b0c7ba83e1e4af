/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_REDUCE_KERNELS_H
#define TTI_REDUCE_KERNELS_H

/* What reduce.c chooses from: one table per instruction set, made by including
 * that set's vectors (<isa>.inc.h), then table.inc.h. A table exists only in a
 * build that TTI_REDUCE_HAVE_* says has it. Private to this folder. */

#include <stdbool.h>

#include "reduce/reduce.h"

#if defined(__x86_64__)
#define TTI_REDUCE_HAVE_X86 1
#else
#define TTI_REDUCE_HAVE_X86 0
#endif
#if defined(__aarch64__) && !defined(__AARCH64EB__)
#define TTI_REDUCE_HAVE_NEON 1
#else
#define TTI_REDUCE_HAVE_NEON 0
#endif

struct tti_reduce_table {
	tti_reduce_fn fns[TUTTI_TYPE_COUNT][TUTTI_OP_COUNT]; /* NULL where tutti_op_takes() is 0 */
};

extern const struct tti_reduce_table tti_reduce_table_scalar;
extern const struct tti_reduce_table tti_reduce_table_avx2;
extern const struct tti_reduce_table tti_reduce_table_avx512;
extern const struct tti_reduce_table tti_reduce_table_neon;

/* Whether the processor, the system and this build have it. */
bool tti_reduce_has_isa(enum tti_isa isa);

/* The best of this machine, asked once. */
enum tti_isa tti_reduce_best_isa(void);

/* Copy past the caches; ordered before later stores when they return. */
void tti_copy_nt_sse2(void *dst, const void *src, size_t nbytes);
void tti_copy_nt_avx2(void *dst, const void *src, size_t nbytes);
void tti_copy_nt_avx512(void *dst, const void *src, size_t nbytes);

/* The same through the caches. */
void tti_copy_avx2(void *dst, const void *src, size_t nbytes);
void tti_copy_avx512(void *dst, const void *src, size_t nbytes);

/* The same by one instruction of x86. */
void tti_copy_string(void *dst, const void *src, size_t nbytes);

/* Whether the processor is one of AMD's. Asked at each call, which costs nothing. */
bool tti_is_amd(void);

#endif
