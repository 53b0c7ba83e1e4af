/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_REQUESTS_H
#define TTI_BOOT_REQUESTS_H

/* A rank of a communicator asks others to do something, by mail, and waits for their answers. A rank
 * that is asked does it on a thread of its own, whatever its other threads do, so the one who asks need
 * not be in a call that the other one is in.
 *
 * A rank that waits asks again every second, as mail may be dropped with a connection; each request is
 * done once.
 *
 * Owner: tti_requests_free(). Threads: any may ask, one at a time. */

#include <stdatomic.h>
#include <stdint.h>

#include "boot/boot.h"

#define TTI_REQUEST_BYTES 256
#define TTI_ANSWER_BYTES  256

struct tti_requests;

struct tti_requests_config {
	struct tti_boot *boot; /* of any kind, and watches; outlives the requests */
	uint64_t context;      /* of mail, the same on all its ranks */
	/* Do what `from` asks for; `answer` is zeroed. May block. */
	void (*serve)(void *self, int from, const uint8_t request[TTI_REQUEST_BYTES],
		      uint8_t answer[TTI_ANSWER_BYTES]);
	void *self;
	const _Atomic int *stop; /* nonzero: nobody waits any more */
};

/* From now on others are answered, also those that have asked before. */
TUTTI_CHECKED tutti_status tti_requests_create(const struct tti_requests_config *config,
					       struct tti_requests **out);
/* Others that ask hear that this rank has left. NULL is fine. */
void tti_requests_free(struct tti_requests *requests);

struct tti_errand {
	int peer; /* not the rank itself */
	uint8_t data[TTI_REQUEST_BYTES];
	uint8_t answer[TTI_ANSWER_BYTES];
	/* TUTTI_EPEER: the peer has left or died. TUTTI_EABORTED: *stop was set. TUTTI_ETIMEOUT. */
	tutti_status status;
};

/* Ask n peers, each once, at the same time, and wait for all answers; timeout_ms 0: as long as it
 * takes. */
void tti_requests_ask(struct tti_requests *requests, struct tti_errand *asked, int n,
		      int64_t timeout_ms);

#endif
