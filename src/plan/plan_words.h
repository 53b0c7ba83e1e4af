/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_WORDS_H
#define TTI_PLAN_WORDS_H

/* Links and rates in words, as plans and reports name them.
 * Threads: any. */

#include "plan/search/loads.h"

/* "switch 0000:17:00.0 to CPU0 (PCI)": the link of a row, in one direction. */
#define TTI_LINK_WORDS 128
void tti_link_words(const struct tti_loads *loads, uint32_t row, char buf[TTI_LINK_WORDS]);
/* "24.0", "0.125". */
void tti_gbps_words(double gbps, char buf[24]);

#endif
