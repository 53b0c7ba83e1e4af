/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_AGREEMENT_H
#define TTI_BOOT_AGREEMENT_H

/* How the ranks that are left of a communicator agree on who is left.
 *
 * The lowest rank that a rank does not know to be dead is its coordinator:
 *
 *     all       JOIN, with the dead they know of    ─▶ coordinator
 *     coordinator   QUERY to all it has not heard of    ─▶ who is dead cannot be reached
 *     coordinator   once all others have come: DECISION  ─▶ all that are left
 *
 * Should the coordinator die, the next one asks all again. Who has a decision answers with it,
 * also after the call: so if a rank that lives has got one, it is everybody's. Who is heard
 * of is not dead, whatever others say.
 *
 * Who waits asks again every second: what it sent may have been dropped with a connection, or
 * have come to a rank that takes it for dead since, or to one that is not the others' coordinator.
 * So a rank that the others have left out, since they could not reach it, is told by whoever it asks.
 *
 * A coordinator that was silent for too long may find that all have joined it, while they have joined
 * the next one. Then there are two decisions, but one communicator at most, as all its ranks have to meet:
 * who gets a decision of a rank that its own leaves out answers with that.
 *
 * Owner: tti_agreement_free(). Threads: one holds it; mail may come any time. */

#include <stdint.h>

#include "boot/boot.h"

struct tti_agreement;

/* `parent` is of any kind, and watches; context as in tti_boot_sub_create(). out: bits of
 * parent's ranks that shall not be part of it in any case. */
TUTTI_CHECKED tutti_status tti_agreement_create(struct tti_boot *parent, uint64_t context,
						const uint64_t *out,
						struct tti_agreement **agreement);

/* Wait for the decision: gone[TTI_BITSET_WORDS(nranks)] are the same bits on all ranks that
 * are left. TUTTI_ETIMEOUT names who neither came nor died; TUTTI_EPEER: the others take
 * this rank for dead; TUTTI_EABORTED. */
TUTTI_CHECKED tutti_status tti_agreement_wait(struct tti_agreement *agreement,
					      const struct tti_boot_config *config, uint64_t *gone);

/* While the ranks of a decision meet, whether others have one that leaves this rank out: TUTTI_EPEER;
 * TUTTI_AGAIN: not as far as is known. */
TUTTI_CHECKED tutti_status tti_agreement_check(struct tti_agreement *agreement);

/* Answer no more. NULL is fine. */
void tti_agreement_free(struct tti_agreement *agreement);

#endif
