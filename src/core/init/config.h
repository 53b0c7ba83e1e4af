/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_CONFIG_H
#define TTI_CORE_INIT_CONFIG_H

/* What a caller asks for of a new communicator. Pure. */

#include "tutti/tutti.h"

/* The caller's config, of any size, as one of ours; NULL: the defaults. TUTTI_EINVAL: what is wrong
 * with it. check(): that alone. */
TUTTI_CHECKED tutti_status tti_config_read(const tutti_config *given, tutti_config *out);
TUTTI_CHECKED tutti_status tti_config_check(const tutti_config *config);

#endif
