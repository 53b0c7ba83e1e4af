/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_ROOT_GROUP_H
#define TTI_BOOT_ROOT_GROUP_H

/* With several roots, each serves a contiguous group of ranks; sizes differ by one rank at most.
 *
 *     ranks   0 1 2 3 4 | 5 6 7 8 | 9 10 11 12      3 roots
 *     root 0  . . . . . + 5                         and the first of the next group,
 *     root 1              . . . . + 9               so that the last one learns where
 *     root 2                        . .  .  .  + 0  its neighbour is
 *
 * Pure. */

#include "boot/net/wire.h"
#include "tutti/status.h"

struct tti_group {
	int nranks, nroots, iroot;
	int first, size;
};

struct tti_group tti_group_make(int nranks, int nroots, int iroot);

/* The root at which a rank checks in; 0: also of one that is none of nranks. */
int tti_group_of(int nranks, int nroots, int rank);

/* The rank in seat i of a root. Seat `size` is of the first rank of the next group. */
int tti_group_rank(const struct tti_group *group, int i);

/* Whether a check-in is consistent in itself. Quiet. */
TUTTI_CHECKED tutti_status tti_checkin_check(const struct tti_wire_checkin *checkin);

#endif
