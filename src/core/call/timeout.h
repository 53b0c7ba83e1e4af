/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_TIMEOUT_H
#define TTI_CORE_CALL_TIMEOUT_H

/* How long calls may take, and the making of communicators. The timeout of a call is the one
 * that was set when it took its sequence number (sequence.h), however long it waits for calls
 * before it. So a later timeout is kept with the number of the first call that has it.
 *
 * Owner: the communicator. Threads: any; under the communicator's lock. */

#include <stdatomic.h>
#include <stdint.h>

#include "tutti/tutti.h"
#include "util/vec.h"

struct tti_comm;

struct tti_timeout {
	int64_t ms;         /* 0: none; more for the making of a communicator */
	uint64_t from;      /* the first seqno that goes by it               */
	const char *source; /* as the user knows it                           */
};

struct tti_timeouts {
	struct tti_timeout first;
	TTI_VEC(struct tti_timeout) later; /* by `from` */
	_Atomic int64_t newest_ms;         /* of the last of them, */
	_Atomic int config_ms;             /* and what children without a config get */
};

/* A variable that is set wins over the config. */
void tti_timeouts_init(struct tti_timeouts *timeouts, const tutti_config *config);
void tti_timeouts_release(struct tti_timeouts *timeouts);

/* Of the making of a communicator. `config` is the caller's: it may be NULL, or of an older
 * size. */
struct tti_timeout tti_timeout_of_boot(const tutti_config *config);

/* Of the call that runs; of a call that would be made now. */
struct tti_timeout tti_timeout_of_call(struct tti_comm *comm);
struct tti_timeout tti_timeout_newest(struct tti_comm *comm);

#endif
