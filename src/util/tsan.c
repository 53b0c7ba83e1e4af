/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/tsan.h"

#ifdef TTI_TSAN
/* Addresses only. Two messages that share one are ordered as well, which hides no more than
 * a data race between them. */
#define PLACES 64

void *tti_tsan_place(uint32_t from, uint32_t to)
{
	static char places[PLACES][PLACES][8];

	return places[from % PLACES][to % PLACES];
}
#endif
