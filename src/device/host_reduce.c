/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes of every type, as threads of the host make them: compiled once, by themselves, as they take a
 * compiler ten times as long as the rest of the interpreter. */
#include "device/host_run.h"

#include "device/reduce.h"

#define X(family)                                                                              \
	static __attribute__((noinline)) void reduce_##family(struct tti_dev_env *env,         \
							      const struct tti_dev_pass *pass) \
	{                                                                                      \
		tti_dev_pass_##family(env, pass);                                              \
	}
TTI_DEV_FAMILY_MAP(X)
#undef X

void tti_dev_reduce(struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	static void (*const fns[TUTTI_TYPE_COUNT])(struct tti_dev_env *,
						   const struct tti_dev_pass *) = {
#define X(name, family) [TUTTI_##name] = reduce_##family,
		TTI_DEV_TYPE_MAP(X)
#undef X
	};

	if (tti_dev_is_copy(pass))
		tti_dev_pass_copy(env, pass);
	else
		fns[pass->type](env, pass);
}
