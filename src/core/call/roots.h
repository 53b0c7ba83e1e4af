/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_ROOTS_H
#define TTI_CORE_CALL_ROOTS_H

/* Ranks that name different roots in a short call may all send and none receive: then no rank
 * notices in that call. The next call finds the messages, or the end of the communicator does.
 * The last rooted calls are kept, to tell which of them a message belongs to.
 *
 * Owner: the communicator. Threads: the one that makes calls notes, the executing one explains. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

#define TTI_ROOTS_KEPT 16

struct tti_comm;

struct tti_rooted_call {
	uint64_t seq, packed; /* as published; seq 0: nothing */
	uint64_t choice;      /* of prepared.h */
	size_t count;
};

struct tti_roots {
	struct tti_rooted_call call[TTI_ROOTS_KEPT];
	unsigned newest;
	_Atomic uint64_t unexpected_tag; /* of the message that the last call did not expect */
};

/* A call that names a root has begun, with the values that were published. */
void tti_roots_note(struct tti_comm *comm, uint64_t packed, size_t count, uint64_t choice);

/* Whether a message of `peer` with that tag belongs to one of these calls, in which the peer named
 * another root; says so in buf. */
bool tti_roots_explain(struct tti_comm *comm, int peer, uint64_t tag, char *buf, size_t size);

/* Before the communicator ends: TUTTI_EMISMATCH, told to all ranks, if such a message has come. */
tutti_status tti_roots_check(struct tti_comm *comm);

#endif
