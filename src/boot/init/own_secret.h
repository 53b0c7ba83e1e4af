/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_OWN_SECRET_H
#define TTI_BOOT_OWN_SECRET_H

/* The secret of this user, for jobs whose launcher gives an address and no secret: the text of the file
 * tutti/secret in XDG_CONFIG_HOME or ~/.config, which no other user may read. The first process that
 * asks makes the file; if several do at once, on hosts that share the folder, all get the same secret.
 * Hosts that do not share the folder need a copy of the file. Threads: any. */

#include <limits.h>

#include "tutti/status.h"

struct tti_own_secret {
	char path[PATH_MAX];
	char text[129];
};

/* The caller wipes *out. TUTTI_EUSAGE: there is no such folder, or others may read the file. */
TUTTI_CHECKED tutti_status tti_own_secret_read(struct tti_own_secret *out);

#endif
