/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_ROOT_H
#define TTI_BOOT_ROOT_H

/* The root: a thread where ranks check in. It tells each rank where the next rank of the ring listens,
 * and tells all ranks who is missing when the first of them can wait no longer. A rank keeps its
 * connection until its ring stands, and then says goodbye. If a connection ends without that, or a rank
 * says why it gives up, the root tells all others that are still on their way.
 *
 * Owner: a detached root owns itself. Threads: any. */

#include <stdint.h>

#include "tutti/status.h"

struct tti_root;

/* Serve on listen_fd, which is taken over (closed on failure too), and end when all ranks have met,
 * or after timeout_ms. *out is to be ended with tti_root_join(), which NULL is fine for; out NULL: the
 * root is detached. */
TUTTI_CHECKED tutti_status tti_root_start(int listen_fd, const uint8_t *secret, int64_t timeout_ms,
					  struct tti_root **out);

enum tti_root_end {
	TTI_ROOT_DONE = 1, /* all ranks have met                                 */
	TTI_ROOT_SOON,     /* the rank that serves it gives up: all are told, and
			  those that come within a second               */
	TTI_ROOT_NOW,
};

void tti_root_join(struct tti_root *root, enum tti_root_end how);

#endif
