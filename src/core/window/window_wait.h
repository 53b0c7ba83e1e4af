/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_WINDOW_WINDOW_WAIT_H
#define TTI_CORE_WINDOW_WINDOW_WAIT_H

/* How calls on a window wait. Threads: each wait belongs to one. */

#include <stdint.h>

#include "tutti/window.h"
#include "util/clock.h"

/* The longest sleep of a wait. */
#define TTI_WINDOW_NAP_NS (2 * TTI_NS_PER_MS)

/* How long a wait has gone on. Zeroed: not at all. nap_ns: how long the caller should sleep now. */
struct tti_window_wait {
	int64_t since_ns, nap_ns;
	uint32_t rounds;
};

/* Nothing moved: look whether to go on waiting for `peer` and for `what`, then spin or yield. */
TUTTI_CHECKED tutti_status tti_window_backoff(struct tutti_window *window,
					      struct tti_window_wait *wait, int peer,
					      const char *what);

#endif
