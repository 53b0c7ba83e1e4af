/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_AGREEMENT_H
#define TTI_BOOT_AGREEMENT_H

/* The ranks that are left of a communicator agree on which ranks are left. The lowest rank that a rank
 * does not know to be dead is its coordinator:
 *
 *     all           JOIN, with the dead that they know     ─▶ coordinator
 *     coordinator   QUERY to all that have not joined      ─▶ a rank that is dead cannot be reached
 *     coordinator   after all others have joined: DECISION ─▶ all that are left
 *
 * If the coordinator dies, the next one asks all again. A rank that has a decision answers with it, also
 * after the call: so once a rank that lives has a decision, all ranks get the same. A rank that sends
 * something is not dead, whatever others say.
 *
 * A rank that waits asks again every second. What it sent may have been dropped with a connection, or
 * have come to a rank that takes it for dead since, or to one that is not the others' coordinator. So
 * a rank that the others left out, since they could not reach it, hears that from any rank it asks.
 *
 * A coordinator that was silent for too long may find that all have joined it, while they have joined
 * the next one. Then there are two decisions, but at most one communicator, as all its ranks have to
 * meet: a rank that gets a decision of a rank that its own decision leaves out answers with its own.
 *
 * Owner: tti_agreement_free(). Threads: one waits for it; mail may come at any time. */

#include <stdint.h>

#include "boot/boot.h"

struct tti_agreement;

/* `parent` is of any kind, and watches. The context is as in tti_boot_sub_create(). out: bits of ranks of
 * the parent that are to be left out in any case. */
TUTTI_CHECKED tutti_status tti_agreement_create(struct tti_boot *parent, uint64_t context,
						const uint64_t *out,
						struct tti_agreement **agreement);

/* Wait for the decision: gone[TTI_BITSET_WORDS(nranks)], the same bits on all ranks that are left.
 * TUTTI_ETIMEOUT names the ranks that neither joined nor died; TUTTI_EPEER: the others take this rank
 * for dead; TUTTI_EABORTED. */
TUTTI_CHECKED tutti_status tti_agreement_wait(struct tti_agreement *agreement,
					      const struct tti_boot_config *config, uint64_t *gone);

/* To be called while the ranks of a decision meet. TUTTI_EPEER: others have a decision that leaves this
 * rank out; TUTTI_AGAIN: not as far as this rank knows. */
TUTTI_CHECKED tutti_status tti_agreement_check(struct tti_agreement *agreement);

/* Ranks that ask get no answer afterwards. NULL is fine. */
void tti_agreement_free(struct tti_agreement *agreement);

#endif
