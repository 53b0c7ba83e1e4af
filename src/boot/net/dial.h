/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_DIAL_H
#define TTI_BOOT_DIAL_H

/* Connect to a peer that has several candidate addresses: the first one at once, the next ones soon
 * after, until one of them completes the handshake. A candidate that does not answer costs a tenth of
 * a second, not a timeout.
 *
 * Owner: whoever started it stops it. Threads: the loop's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/net/auth.h"
#include "boot/net/loop.h"
#include "boot/net/wire.h"

struct tti_dial_config {
	const struct tti_addr *addrs; /* copied; IPv6 link-local: any interface */
	size_t naddrs;
	/* So many of the first candidates were the peer's for sure. They are tried again and again while
	 * others do not answer; if one refuses, the peer is gone. */
	size_t nproven;
	enum tti_auth_kind kind;
	const uint8_t *secret; /* borrowed while it runs                          */
	struct tti_wire_who who;
	int64_t deadline_ns;
	int64_t give_up_ns; /* all candidates have failed: try again, but not after this */
	int64_t connect_ms; /* how long a try waits for an answer, 0: 5 seconds */
	/* The peer listened before it told its addresses: if all of them refuse for a tenth of a second,
	 * it is gone. */
	bool listens;
	void (*on_ready)(
		void *self); /* tti_dial_step() is to be called; NULL: the loop's wait ends */
	void *self;
};

struct tti_dial;

TUTTI_CHECKED tutti_status tti_dial_start(struct tti_loop *loop,
					  const struct tti_dial_config *config,
					  struct tti_dial **out);

/* Go on. TUTTI_OK: *out is connected, proven, in no loop, and the caller's. TUTTI_AGAIN: call again on
 * on_ready(), or at *again_ns. An error is quiet; its text says how each candidate failed. TUTTI_EPEER:
 * the peer is gone. TUTTI_ESYS: this process cannot have a socket. If the peer is a root:
 * TUTTI_EMISMATCH: it has another version; TUTTI_EPROTO: it has held another secret for seconds. */
TUTTI_CHECKED tutti_status tti_dial_step(struct tti_dial *dial, struct tti_tunnel **out,
					 int64_t *again_ns);

/* After a failure: whether the peer does not listen any more. At one of the proven addresses, or at all
 * addresses, nobody listens, or a process that holds another secret or is another rank. An address
 * that does not answer in time, or closes the connection, does not count: the peer may be stopped,
 * busy, or full. */
bool tti_dial_is_refused(const struct tti_dial *dial);

/* Whether a process, which may be busy, listens at one of the addresses. */
bool tti_dial_is_answered(const struct tti_dial *dial);

/* Fine at any time, after success and failure too. NULL is fine. */
void tti_dial_stop(struct tti_dial *dial);

/* Whether this host has the address. */
bool tti_dial_is_ours(const struct tti_addr *addr);

#endif
