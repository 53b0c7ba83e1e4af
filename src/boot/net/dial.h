/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_DIAL_H
#define TTI_BOOT_DIAL_H

/* Connect to a peer that has several candidate addresses: the first at once, the
 * next ones soon after, until one has proven itself. What does not answer costs
 * a tenth of a second, not a timeout.
 *
 * Owner: who started it stops it. Threads: the loop's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/net/auth.h"
#include "boot/net/loop.h"
#include "boot/net/wire.h"

struct tti_dial_config {
	const struct tti_addr *addrs; /* copied; IPv6 link-local: any interface */
	size_t naddrs;
	/* So many of the first ones have been the peer's for sure. They are tried again
	 * and again while others do not answer; if one refuses, the peer is gone. */
	size_t nproven;
	enum tti_auth_kind kind;
	const uint8_t *secret; /* borrowed while it runs                          */
	struct tti_wire_who who;
	int64_t deadline_ns;
	int64_t give_up_ns; /* every candidate has failed: retry, but not after this */
	int64_t connect_ms; /* how long one try waits for an answer, 0: 5 seconds */
	/* The peer listened before anybody was told where: who is refused by all candidates for a
	 * tenth of a second need not go on. */
	bool listens;
	void (*on_ready)(
		void *self); /* tti_dial_step() is to be called; NULL: the loop's wait ends */
	void *self;
};

struct tti_dial;

TUTTI_CHECKED tutti_status tti_dial_start(struct tti_loop *loop,
					  const struct tti_dial_config *config,
					  struct tti_dial **out);

/* Go on. TUTTI_OK: *out is connected, proven, in no loop, and the caller's. TUTTI_AGAIN: call again when heard, or at *again_ns. Else it has
 * failed: quietly, the text says how each candidate did. TUTTI_EPEER: the peer is gone.
 * TUTTI_ESYS: this process cannot have a socket, and the text says why. Of a root,
 * TUTTI_EMISMATCH: it is of another version; TUTTI_EPROTO: for seconds, it held another secret. */
TUTTI_CHECKED tutti_status tti_dial_step(struct tti_dial *dial, struct tti_tunnel **out,
					 int64_t *again_ns);

/* After a failure: whether the peer does not listen there any more: at one of the proven addresses, or
 * at all, nobody does or somebody else, who holds another secret or is another rank. No answer in time
 * says nothing of the kind, nor does a connection that was closed: the peer may be stopped, busy, or
 * full. */
bool tti_dial_is_refused(const struct tti_dial *dial);

/* Whether somebody listens at one of the addresses, who may be busy. */
bool tti_dial_is_answered(const struct tti_dial *dial);

/* Also after success and failure. NULL is fine. */
void tti_dial_stop(struct tti_dial *dial);

/* Whether this host has the address. */
bool tti_dial_is_ours(const struct tti_addr *addr);

#endif
