/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/clp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"

#define LIBRARY "libClp.so.1"

/* Written once, by load(). */
static struct {
	pthread_once_t once;
	struct tti_clp call;
	char why[256]; /* it cannot be used; "": it can */
} solver = { .once = PTHREAD_ONCE_INIT };

static void load(void)
{
	static const struct {
		const char *symbol;
		size_t at;
	} table[] = {
#define X(field, function) { #function, offsetof(struct tti_clp, field) },
		TTI_CLP_MAP(X)
#undef X
	};
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);

	if (!library) {
		(void)snprintf(solver.why, sizeof(solver.why), "%s", dlerror());
		return;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		void *const function = dlsym(library, table[i].symbol);

		if (!function) {
			(void)snprintf(solver.why, sizeof(solver.why), LIBRARY " has no %s()",
				       table[i].symbol);
			dlclose(library);
			return;
		}
		/* Pointers to functions and to data are alike where there is dlsym(). */
		memcpy((char *)&solver.call + table[i].at, &function, sizeof(function));
	}
}

const char *tti_clp_missing(void)
{
	pthread_once(&solver.once, load);
	return solver.why[0] ? solver.why : NULL;
}

tutti_status tti_clp_get(const struct tti_clp **out)
{
	if (tti_clp_missing())
		return tti_fail(TUTTI_EUNSUPPORTED,
				"planning needs the solver Clp (package coinor-libclp1): %s",
				solver.why);
	*out = &solver.call;
	return TUTTI_OK;
}
