/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_PMI_EVENT_H
#define TTI_BOOT_PMI_EVENT_H

/* The end of something that a library of a launcher does in another thread, and that may come when
 * nobody waits for it any more.
 *
 * Owner: both threads; each calls its one of the two functions once, and the last call frees it. */

#include <stdint.h>

#include "tutti/status.h"

struct tti_pmi_event;

/* NULL: out of memory. */
struct tti_pmi_event *tti_pmi_event_create(void);

/* It has ended with the library's `status`. */
void tti_pmi_event_end(struct tti_pmi_event *event, int status);

/* Wait until then. TUTTI_ETIMEOUT: until the deadline in vain; *status is not written. */
TUTTI_CHECKED tutti_status tti_pmi_event_wait(struct tti_pmi_event *event, int64_t deadline_ns,
					      int *status);

#endif
