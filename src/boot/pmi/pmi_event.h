/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_PMI_EVENT_H
#define TTI_BOOT_PMI_EVENT_H

/* The end of something that a library of a launcher does in another thread, and that may come when
 * nobody waits for it any more. Nothing that still runs then is used again: see tti_pmi_share_id().
 *
 * Owner: both threads; each calls its one of the two functions once, and the last call frees it. */

#include <stdint.h>

#include "tutti/status.h"

struct tti_pmi_event;

/* NULL: out of memory. */
struct tti_pmi_event *tti_pmi_event_create(void);

/* It has ended with the library's `status`. */
void tti_pmi_event_end(struct tti_pmi_event *event, int status);

/* Wait until then. TUTTI_ETIMEOUT: until the deadline in vain; *status is not written. Quiet: the caller
 * knows what it waited for. */
TUTTI_CHECKED tutti_status tti_pmi_event_wait(struct tti_pmi_event *event, int64_t deadline_ns,
					      int *status);

/* Wait so for the end of `call`, which a thread of its own makes. After TUTTI_ETIMEOUT, quiet as well, the
 * thread goes on; what `call` uses has to last as long as the process. */
TUTTI_CHECKED tutti_status tti_pmi_event_call(int (*call)(void), int64_t deadline_ns, int *status);

/* TUTTI_ETIMEOUT, for a rank that has waited for all others. */
TUTTI_CHECKED tutti_status tti_pmi_event_late(void);

#endif
