/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_BOUNCE_H
#define TTI_CORE_DEVICE_BOUNCE_H

/* Bounce buffers: memory of the program as the host reaches it, for what no kernel does. That is
 * messages, windows, and operators whose function is the program's. Memory of a device is copied to
 * the host and back, and each copy is waited for. The order of copies with streams is the caller's
 * business.
 *
 * Owner: the caller, tti_bounce_close(). Threads: any. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

struct tti_comm;
struct tti_gpu;

/* Whether the host does not reach it; NULL and ranks without a device: false. */
TUTTI_CHECKED tutti_status tti_is_of_device(const struct tti_comm *comm, const void *memory,
					    bool *out);

struct tti_bounce {
	void *host;          /* as the host reaches it: the program's own, or the copy */
	struct tti_gpu *gpu; /* NULL: it is the program's own */
	uint64_t at;         /* of the device's memory */
};

/* nbytes at `memory`, which may be NULL if that is 0. `reads`: what lies there is copied. After an error
 * nothing is held. */
TUTTI_CHECKED tutti_status tti_bounce_open(const struct tti_comm *comm, const void *memory,
					   size_t nbytes, bool reads, struct tti_bounce *out);
/* Copy so many bytes back, from the first on. */
TUTTI_CHECKED tutti_status tti_bounce_store(const struct tti_bounce *bounce, size_t nbytes);
/* Zeroed and closed ones are fine. */
void tti_bounce_close(struct tti_bounce *bounce);

#endif
