/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_SEARCH_CHECK_H
#define TESTS_SUPPORT_SEARCH_CHECK_H

/* Whether what a search found is right. Threads: any. */

#include "plan/search/search.h"

/* By independent means: every channel visits all members once and is connected, no
 * row is over its capacity, the total is the sum and not over the bound, heads are
 * distinct. TUTTI_EINTERNAL with the first breach. */
TUTTI_CHECKED tutti_status tti_local_check(const struct tti_loads *loads, bool both_ways,
					   const struct tti_local *search);

#endif
