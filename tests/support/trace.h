/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_TRACE_H
#define TESTS_SUPPORT_TRACE_H

/* A decorator that holds both sides of the contract of transport.h against what they do, and
 * keeps the last calls for a report. It finds: a commit of something else than was reserved, a
 * message longer than a slot, a release without a peek, a message that changes before it is
 * released, a reserve that is repeated and gives another room, and any use of a closed link.
 *
 * Owner: trace_free(), which takes it off. Threads: as the port. */

#include <stdint.h>
#include <stdio.h>

#include "transport/transport.h"

enum trace_kind { TRACE_RESERVE, TRACE_COMMIT, TRACE_SEND, TRACE_PEEK, TRACE_RELEASE, TRACE_CLOSE };

struct trace_event {
	enum trace_kind kind;
	int peer;
	size_t nbytes;
	uint64_t tag;
	int fan; /* how many links share the slot; 1: a message of this link alone */
	bool is_refused;
};

struct trace;

/* Of a port without links. */
struct trace *trace_create(struct tti_port *port);
void trace_free(struct trace *trace);

/* The first breach, NULL: none so far. */
const char *trace_breach(const struct trace *trace);
/* Messages committed to a peer so far (each once for a fan-out), and released from it. */
uint64_t trace_sent(const struct trace *trace, int peer);
uint64_t trace_received(const struct trace *trace, int peer);
/* How many fan-outs were committed. */
uint64_t trace_fans(const struct trace *trace);
/* The last events, oldest first; peeks that found nothing are left out. */
void trace_print(const struct trace *trace, FILE *out);

#endif
