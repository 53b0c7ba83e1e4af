/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MEMORY_H
#define TTI_CORE_MEMORY_H

/* Memory that the ranks of a communicator can address, and calls on it.
 *
 * Owner: the communicator. Threads: the executing thread, but for what memory.h promises. */

#include "engine/engine.h"
#include "util/vec.h"

struct tti_comm;
struct tti_args;
struct tti_prepared;

struct tti_memory {
	struct tti_port *port;            /* by which memory is shared, NULL: none */
	bool reaches_all;                 /* all other ranks are on it              */
	TTI_VEC(struct tutti_reg *) regs; /* under comm->lock */
	/* Calls of each kind since the last one that used it, of those that might have. */
	uint32_t unused[TUTTI_COLLECTIVE_COUNT];
};

/* Once the ports are known; release also if that never came. */
void tti_memory_init(struct tti_comm *comm);
void tti_memory_release(struct tti_comm *comm);

/* Whether a call of so many bytes (whole vector) may be served by a memory program: all ranks share
 * memory, and it is long enough, or a forced algorithm may ask for one. */
bool tti_memory_may_serve(const struct tti_comm *comm, const struct tti_args *args, size_t nbytes);
/* Whether a call that has a memory program asks if all buffers can be addressed: the same on all
 * ranks, as all make the same calls. Once for each call. */
bool tti_memory_asks(struct tti_comm *comm, const struct tti_args *args,
		     const struct tti_prepared *call);

/* How a send (send_recv) or a handoff of so many bytes may go (coll/choose.h), alike on all its
 * ranks. */
TUTTI_CHECKED tutti_status tti_memory_ways(const struct tti_comm *comm, tutti_collective coll,
					   size_t nbytes, unsigned *out);
/* Where bytes that go to `peer` lie, if they may go so and it can address them; zeroed: by messages.
 * TUTTI_EUNSUPPORTED: they may not go by messages. */
TUTTI_CHECKED tutti_status tti_memory_offer(const struct tti_comm *comm, unsigned ways, int peer,
					    const void *data, size_t nbytes,
					    struct tti_memory_name *out);

/* What the engine is to know of it, but for what is done otherwise; buffers are counted from where
 * those of the call begin. */
void tti_memory_describe(const struct tti_comm *comm, const struct tti_args *args,
			 const struct tti_prepared *call, struct tti_memory_call *out);

#endif
