/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_FAMILY_FOLLOW_H
#define TTI_CORE_FAMILY_FOLLOW_H

/* A communicator that is made of another one follows it: the error of the other one ends the
 * making, on all ranks that wait in it, so that nobody waits for a rank that will not come.
 *
 * Threads: the one that makes it. */

#include "tutti/status.h"

struct tti_comm;
struct tti_maker;

void tti_child_follow(const struct tti_maker *maker, struct tti_comm *comm);
/* The making of `comm` has ended with `status`. Returns the status of it: where the death of a
 * rank of the parent ended it, the parent's error, which names the rank by its number there. */
TUTTI_CHECKED tutti_status tti_child_unfollow(const struct tti_maker *maker, struct tti_comm *comm,
					      tutti_status status);

#endif
