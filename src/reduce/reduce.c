/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce/reduce.h"

#include <stdatomic.h>

#include "reduce/kernels.h"

#if TTI_REDUCE_HAVE_X86

#include <cpuid.h>

/* A question __builtin_cpu_supports() of some compilers does not know. */
static bool has_f16c(void)
{
	unsigned eax, ebx, ecx, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

/* Asks the processor and whether the system saves the registers. */
bool tti_reduce_has_isa(enum tti_isa isa)
{
	__builtin_cpu_init();
	switch (isa) {
	case TTI_ISA_SCALAR:
		return true;
	case TTI_ISA_AVX2:
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
		       has_f16c();
	case TTI_ISA_AVX512:
		return tti_reduce_has_isa(TTI_ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
		       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
		       __builtin_cpu_supports("avx512dq");
	case TTI_ISA_NEON:
	case TTI_ISA_COUNT:
		break;
	}
	return false;
}

bool tti_is_amd(void)
{
	return __builtin_cpu_is("amd");
}

#else

bool tti_is_amd(void)
{
	return false;
}

bool tti_reduce_has_isa(enum tti_isa isa)
{
	return isa == TTI_ISA_SCALAR || (isa == TTI_ISA_NEON && TTI_REDUCE_HAVE_NEON);
}

#endif

static const struct tti_reduce_table *const tables[TTI_ISA_COUNT] = {
	[TTI_ISA_SCALAR] = &tti_reduce_table_scalar,
#if TTI_REDUCE_HAVE_X86
	[TTI_ISA_AVX2] = &tti_reduce_table_avx2,
	[TTI_ISA_AVX512] = &tti_reduce_table_avx512,
#endif
#if TTI_REDUCE_HAVE_NEON
	[TTI_ISA_NEON] = &tti_reduce_table_neon,
#endif
};

tti_reduce_fn tti_reduce_get_isa(tutti_type type, tutti_op op, enum tti_isa isa)
{
	if ((unsigned)type >= TUTTI_TYPE_COUNT || (unsigned)op >= TUTTI_OP_COUNT)
		return NULL;
	if ((unsigned)isa >= TTI_ISA_COUNT || !tables[isa] || !tti_reduce_has_isa(isa))
		return NULL;
	return tables[isa]->fns[type][op];
}

/* Asked once: under a hypervisor the question costs microseconds, and a call of a few
 * bytes takes less. The answer is the same whoever asks, so who comes first is all one. */
enum tti_isa tti_reduce_best_isa(void)
{
	static const enum tti_isa best_first[] = { TTI_ISA_AVX512, TTI_ISA_AVX2, TTI_ISA_NEON };
	static _Atomic int answer = -1;
	int isa = atomic_load_explicit(&answer, memory_order_relaxed);

	if (isa >= 0)
		return (enum tti_isa)isa;
	isa = TTI_ISA_SCALAR;
	for (size_t i = sizeof(best_first) / sizeof(best_first[0]); i-- > 0;)
		if (tables[best_first[i]] && tti_reduce_has_isa(best_first[i]))
			isa = (int)best_first[i];
	atomic_store_explicit(&answer, isa, memory_order_relaxed);
	return (enum tti_isa)isa;
}

tti_reduce_fn tti_reduce_get(tutti_type type, tutti_op op)
{
	const enum tti_isa best = tti_reduce_best_isa();
	tti_reduce_fn fn;

	if ((unsigned)type >= TUTTI_TYPE_COUNT || (unsigned)op >= TUTTI_OP_COUNT)
		return NULL;
	fn = tables[best]->fns[type][op];
	return fn ? fn : tables[TTI_ISA_SCALAR]->fns[type][op];
}

const char *tti_isa_name(enum tti_isa isa)
{
	static const char *const names[TTI_ISA_COUNT] = {
		[TTI_ISA_SCALAR] = "scalar",
		[TTI_ISA_AVX2] = "avx2",
		[TTI_ISA_AVX512] = "avx512",
		[TTI_ISA_NEON] = "neon",
	};

	return (unsigned)isa < TTI_ISA_COUNT ? names[isa] : "?";
}
