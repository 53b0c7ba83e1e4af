/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_PMI_LIBRARY_H
#define TTI_BOOT_PMI_LIBRARY_H

/* A library of a launcher, loaded at run time and never unloaded. Threads: one at a time. */

#include <stddef.h>

#include "tutti/status.h"

struct tti_pmi_symbol {
	const char *name;
	size_t at; /* of the pointer to it, in the table */
};

/* Load `file` as dlopen() finds it and fill the table of functions; if it is loaded already, by MPI or
 * by a call before, that one serves. `symbols` end with a name of NULL. TUTTI_EUNSUPPORTED: it is not
 * there, or has not all of them; `whose` says in the text who needs it, `remedy` what to do. With
 * RTLD_GLOBAL in `flags` its plug-ins find what they need of it without saying so. */
TUTTI_CHECKED tutti_status tti_pmi_library_load(const char *file, int flags, const char *whose,
						const char *remedy,
						const struct tti_pmi_symbol *symbols, void *table);

#endif
