/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_PROBE_H
#define TTI_ENGINE_PROBE_H

/* Messages between two ranks outside of any program, to measure their link. They use the links
 * and the waiting of collectives.
 *
 * All functions block. They end early as jobs do: by a stop, by the failure of a port, by the
 * answer of on_wait.
 * Owner: the caller. Threads: the executing one of the engine. */

#include "engine/engine.h"

/* The link to `peer` is there on TUTTI_OK. TUTTI_AGAIN: it could not be made until
 * deadline_ns; *why (the port's, until its next failure) says what was tried. */
TUTTI_CHECKED tutti_status tti_probe_reach(struct tti_engine *engine, int peer, int64_t deadline_ns,
					   const char **why);

/* A probe of the link to one other rank; the link is there. */
struct tti_probe {
	struct tti_engine *engine;
	int peer;
	uint64_t tag;
	bool mismatch; /* the peer sent another tag, or another length: TUTTI_EMISMATCH */
};

/* One message of nbytes <= the port's slot_bytes. A send may still be under way when
 * it returns. */
TUTTI_CHECKED tutti_status tti_probe_send(struct tti_probe *probe, const void *data, size_t nbytes);
TUTTI_CHECKED tutti_status tti_probe_recv(struct tti_probe *probe, void *data, size_t nbytes);
/* Wait until the system has taken all that was sent. */
TUTTI_CHECKED tutti_status tti_probe_flush(struct tti_probe *probe);

/* Send and receive as many messages as the link carries in a time, in one direction or both. The
 * other side runs the same with the directions exchanged. */
struct tti_flow {
	bool sends, receives;
	char *out, *in; /* of nbuffer bytes, at least a slot each; gone through in turn */
	size_t nbuffer;
	int64_t lasts_ns;   /* no message begins later, at either end                       */
	uint64_t most;      /* bytes to send, 0: as many as go                              */
	int64_t horizon_ns; /* what is under way should take no longer than this            */
	uint64_t sent;      /* bytes */
	/* Received bytes and their time, without the beginning. */
	uint64_t nbytes;
	int64_t took_ns;
};
TUTTI_CHECKED tutti_status tti_probe_flow(struct tti_probe *probe, struct tti_flow *flow);

#endif
