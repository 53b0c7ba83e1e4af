/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/pmi/pmi_library.h"

#include <dlfcn.h>
#include <string.h>

#include "util/error.h"

tutti_status tti_pmi_library_load(const char *file, int flags, const char *whose,
				  const char *remedy, const struct tti_pmi_symbol *symbols,
				  void *table)
{
	void *const library = dlopen(file, RTLD_NOW | flags);

	if (!library)
		return tti_fail(TUTTI_EUNSUPPORTED, "%s needs %s: %s; %s", whose, file, dlerror(),
				remedy);
	for (; symbols->name; symbols++) {
		void *const function = dlsym(library, symbols->name);

		if (!function) {
			dlclose(library);
			return tti_fail(TUTTI_EUNSUPPORTED, "%s needs %s, which has no %s(); %s",
					whose, file, symbols->name, remedy);
		}
		/* Pointers to functions and to data are alike where there is dlsym(). */
		memcpy((char *)table + symbols->at, &function, sizeof(function));
	}
	return TUTTI_OK;
}
