/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PREPARE_MEMORY_H
#define TTI_CORE_PREPARE_MEMORY_H

/* Memory that the ranks of a communicator can address, and calls on it.
 *
 * Owner: the communicator. Threads: the executing thread, but for what tutti/memory.h promises. */

#include "engine/engine.h"
#include "util/vec.h"

struct tti_comm;
struct tti_args;
struct tti_prepared;

/* Memory that was registered. */
struct tutti_reg {
	void *memory;
	size_t nbytes;
};

struct tti_memory {
	struct tti_port *port;            /* by which memory is shared, NULL: none */
	bool reaches_all;                 /* all other ranks are on it              */
	TTI_VEC(struct tutti_reg *) regs; /* under comm->lock */
	/* Of calls of each collective that might use it: how many since the last one that did. */
	uint32_t unused[TUTTI_COLLECTIVE_COUNT];
};

/* Once the ports are known; release also if that never came. */
void tti_memory_init(struct tti_comm *comm);
void tti_memory_release(struct tti_comm *comm);

/* Whether a call of so many bytes (whole vector) may be served by a memory program: all ranks share
 * memory, and the call is long enough, or forces an algorithm. */
bool tti_memory_may_serve(const struct tti_comm *comm, const struct tti_args *args, size_t nbytes);
/* Whether a call that has a memory program asks the other ranks if all buffers can be addressed:
 * the same on all ranks, as all make the same calls. Once for each call. */
bool tti_memory_asks(struct tti_comm *comm, const struct tti_args *args,
		     const struct tti_prepared *call);

/* How a send (send_recv) or a handoff of so many bytes may go (coll/choose/choose.h): the same
 * on all its ranks. */
TUTTI_CHECKED tutti_status tti_memory_ways(const struct tti_comm *comm, tutti_collective coll,
					   size_t nbytes, unsigned *out);
/* The name of data that goes to `peer`, if it may go by memory and the peer can address it;
 * zeroed: it goes by messages. TUTTI_EUNSUPPORTED: it may not go by messages. */
TUTTI_CHECKED tutti_status tti_memory_offer(const struct tti_comm *comm, unsigned ways, int peer,
					    const void *data, size_t nbytes,
					    struct tti_memory_name *out);

/* What other ranks touch of the buffers of a call that a device runs by a memory program. */
struct tti_flight_buffers;
void tti_memory_touched(const struct tti_comm *comm, const struct tti_args *args,
			struct tti_flight_buffers *out);

/* Describe a call to the engine, but for its fallback; buffers are counted from where those of
 * the call begin. */
void tti_memory_describe(const struct tti_comm *comm, const struct tti_args *args,
			 const struct tti_prepared *call, struct tti_memory_call *out);

#endif
