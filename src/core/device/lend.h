/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_LEND_H
#define TTI_CORE_DEVICE_LEND_H

/* Memory of the program that kernels of other ranks read and write: where memory programs find their
 * buffers (device/run_memory.h).
 *
 * A rank lends an allocation to all peers at once, when a call on registered memory, or on memory of
 * tutti_mem_alloc(), first comes to it. For peers of its process it lets their GPUs reach the memory
 * where it is. Peers in other processes are asked (boot/watch/requests.h): a thread of theirs maps the
 * allocation and says where. So no rank has to make a call for it, and ranks need not register the
 * same, or at the same time. What is lent is taken back when no registration covers any of it any
 * more; peers unmap it before that returns.
 *
 * A rank that ends takes all back. A peer that has died has mapped nothing any more.
 *
 *     rank a                                     rank b, in another process
 *     export the allocation ── its name ──▶      map it, once
 *     table of the GPU      ◀── its address ──
 *
 * Only where all ranks have GPUs that reach each other (tti_devices.all_mapped).
 *
 * Owner: the communicator. Threads: the executing one, but where it says otherwise. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

struct tti_comm;

/* An allocation that was lent. It stays until it is taken back. */
struct tti_lent {
	uint64_t base;
	size_t nbytes;
	uint64_t table;   /* uint64_t[n] in memory of the GPU: where each peer reaches `base` */
	bool is_captured; /* a graph may tell peers of it at any time: it stays until the end */
};

/* When the watch runs: peers may lend to this rank. Does nothing on other communicators. */
TUTTI_CHECKED tutti_status tti_lending_begin(struct tti_comm *comm);
/* Before the watch ends, when no call is left. NULL, and a communicator that has failed, are fine. */
void tti_lending_end(struct tti_comm *comm);

/* The allocation that a buffer of a call lies in, lent to all peers. *out NULL: they do not reach it,
 * as it is not registered, not of one allocation, or of a kind that cannot be shared. */
TUTTI_CHECKED tutti_status tti_lend(struct tti_comm *comm, uint64_t buffer, size_t nbytes,
				    const struct tti_lent **out);
/* A graph has it. */
void tti_lent_capture(struct tti_comm *comm, const struct tti_lent *lent);

/* Take back what lies in these bytes and is not registered otherwise; no call uses it any more. Any
 * thread. */
void tti_lending_take_back(struct tti_comm *comm, const void *memory, size_t nbytes);

/* The same for all communicators of the process. */
void tti_lending_take_back_everywhere(uint64_t memory, size_t nbytes);

/* How many allocations are lent now. Any thread. */
size_t tti_lending_count(const struct tti_comm *comm);

#endif
