/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_HANDOFF_HANDOFF_PLAN_H
#define TTI_CORE_HANDOFF_HANDOFF_PLAN_H

/* What comes before a handoff: its plan, and with TUTTI_CHECK the proof that its sources are equal.
 *
 * Threads: the one that executes the calls of the communicators. */

#include "core/call/call.h"

/* Whether such calls come before what item->now is. */
bool tti_handoff_has_calls(const struct tti_call_item *item);

/* Plan, and compare the sources of, those of the handoffs among items[i].now that need it, side by
 * side, by calls of their own. items[i].status is the result, the same on all ranks of a
 * communicator. */
void tti_handoffs_plan(struct tti_call_item *items, int n);

#endif
