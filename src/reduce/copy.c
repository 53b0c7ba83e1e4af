/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce/kernels.h"

#include <string.h>

#include "util/clock.h"
#include "util/measured.h"
#include "util/sanitizer.h"

/* Two things are slow on AMD's processors (util/measured.h), so on these
 *   - a cache line that another core has read is written past the caches. To own such a line again
 *     takes some 30 ns, one line after the other; 7 to 9 ns between near cores, and nothing where writer
 *     and reader take turns on one core, and then memory is slower. The scheduler, or the host of a
 *     virtual machine, may move a reader at any time, so copies are timed;
 *   - "rep movsb" takes 0.5 to 0.9 of the time of a vector loop, also for lines that another core has
 *     read. But it takes 16 times as long where the target is up to 15 bytes behind the source, modulo
 *     4 KiB, and no less than the loop up to 31 bytes. So no copy is left to the C library, which does
 *     not check that. */
#define ALIAS_BYTES ((uintptr_t)4 << 10)
#define ALIAS_LEAST 32

/* A part of one copy in so many is timed, the clock's own time included. */
#define TIMED_BYTES ((size_t)4 << 10)
#define TIMED_FAR   63
#define TIMED_NEAR  7

#define LINE_BYTES 64

#if TTI_REDUCE_HAVE_X86

#include <cpuid.h>
#include <emmintrin.h>
#include <stdatomic.h>
#include <stdint.h>

#define COPY       void tti_copy_nt_sse2
#define COPY_VEC   __m128i
#define COPY_STORE _mm_stream_si128
#define COPY_FENCE _mm_sfence
#include "reduce/copy.inc.h"

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

/* Asked once, as tti_reduce_best_isa(): whether "rep movsb" is said to be fast, both long (ERMS)
 * and short (FSRM). */
static bool has_fast_strings(void)
{
	static _Atomic int answer = -1;
	unsigned eax, ebx, ecx, edx;
	int fast = atomic_load_explicit(&answer, memory_order_relaxed);

	if (fast < 0) {
		fast = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ebx >> 9 & 1 &&
		       edx >> 4 & 1;
		atomic_store_explicit(&answer, fast, memory_order_relaxed);
	}
	return fast;
}

static bool is_alias(const void *dst, const void *src)
{
	const uintptr_t behind = ((uintptr_t)dst - (uintptr_t)src) % ALIAS_BYTES;

	return behind > 0 && behind < ALIAS_LEAST;
}

/* Every x86 has it: it is fast or not. The sanitizers do not see what it touches. */
void tti_copy_string(void *dst, const void *src, size_t nbytes)
{
#if TTI_SANITIZED
	memcpy(dst, src, nbytes);
#else
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(nbytes) : : "memory");
#endif
}

/* Asked once: CLDEMOTE, a hint. Processors that do not know it do nothing. */
bool tti_copies_for_reader(void)
{
	static _Atomic int answer = -1;
	unsigned eax, ebx, ecx, edx;
	int demotes = atomic_load_explicit(&answer, memory_order_relaxed);

	if (demotes < 0) {
		demotes = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ecx >> 25 & 1;
		atomic_store_explicit(&answer, demotes, memory_order_relaxed);
	}
	return demotes;
}

static inline void demote(char *line)
{
	__asm__ volatile("cldemote %0" : : "m"(*line));
}

static void copy_cached(void *dst, const void *src, size_t nbytes)
{
	const enum tti_isa best = nbytes >= TTI_COPY_VECTOR_LEAST && tti_is_amd()
					  ? tti_reduce_best_isa()
					  : TTI_ISA_SCALAR;

	if (nbytes >= TTI_COPY_STRING_LEAST && tti_is_amd() && !is_alias(dst, src) &&
	    has_fast_strings())
		tti_copy_string(dst, src, nbytes);
	else if (best == TTI_ISA_AVX512)
		tti_copy_avx512(dst, src, nbytes);
	else if (best == TTI_ISA_AVX2)
		tti_copy_avx2(dst, src, nbytes);
	else
		memcpy(dst, src, nbytes);
}

#else

static void copy_nt(void *dst, const void *src, size_t nbytes)
{
	memcpy(dst, src, nbytes);
}

static void copy_cached(void *dst, const void *src, size_t nbytes)
{
	memcpy(dst, src, nbytes);
}

bool tti_copies_for_reader(void)
{
	return false;
}

static inline void demote(char *line)
{
	(void)line;
}

#endif

void tti_copy(void *dst, const void *src, size_t nbytes, int hint_large)
{
	if (nbytes == 0 || dst == src)
		return;
	if (hint_large)
		copy_nt(dst, src, nbytes);
	else
		copy_cached(dst, src, nbytes);
}

void tti_copy_for_reader(void *dst, const void *src, size_t nbytes)
{
	for (size_t at = 0; at < nbytes; at += LINE_BYTES) {
		char *const line = (char *)dst + at;

		memcpy(line, (const char *)src + at,
		       nbytes - at < LINE_BYTES ? nbytes - at : LINE_BYTES);
		demote(line);
	}
}

void tti_copy_way_note(struct tti_copy_way *way, size_t nbytes, int64_t ns)
{
	way->is_near = ns < (int64_t)(nbytes / 64 * TTI_NEAR_LINE_NS);
	way->left = way->is_near ? TIMED_NEAR : TIMED_FAR;
}

bool tti_copies_past(size_t nbytes)
{
	return nbytes >= TTI_COPY_PAST_LEAST && tti_is_amd();
}

bool tti_copy_way_through(struct tti_copy_way *way, size_t nbytes)
{
	if (!tti_copies_past(nbytes))
		return true;
	if (!way || !way->is_near || !way->left)
		return false;
	way->left--;
	return true;
}

void tti_copy_out(struct tti_copy_way *way, void *dst, const void *src, size_t nbytes)
{
	const size_t part = nbytes < TIMED_BYTES ? nbytes : TIMED_BYTES;
	int64_t began;

	if (!way || !tti_copies_past(nbytes)) {
		tti_copy(dst, src, nbytes, tti_copies_past(nbytes));
		return;
	}
	if (way->left > 0) {
		way->left--;
		tti_copy(dst, src, nbytes, !way->is_near);
		return;
	}
	began = tti_now_ns();
	tti_copy(dst, src, part, false);
	tti_copy_way_note(way, part, tti_now_ns() - began);
	tti_copy((char *)dst + part, (const char *)src + part, nbytes - part, !way->is_near);
}
