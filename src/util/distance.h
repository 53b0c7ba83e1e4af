/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_DISTANCE_H
#define TTI_UTIL_DISTANCE_H

/* How far a word that somebody wrote is from one that exists. Threads: any. */

#include <stddef.h>

/* How many letters must be put in, left out, changed or swapped with the next one to make
 * b[0 .. nb-1] of a[0 .. na-1], without regard to case (Damerau, CACM 1964, in the variant that
 * changes each place once). INT_MAX if one of them is longer than 64. */
int tti_distance(const char *a, size_t na, const char *b, size_t nb);

#endif
