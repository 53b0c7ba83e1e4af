/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_BOUND_H
#define TTI_ENGINE_BOUND_H

/* A compiled program with its links, and the state of the one job that runs it.
 * Internal to the engine. */

#include "engine/engine.h"
#include "util/arena.h"

/* Where a queue stands: its next operation is o = queued[first + pos], of block
 * round - late[o]. */
struct tti_cursor {
	int32_t round, pos;
};

/* How far an operation is: the block that is its next, and how many it has. */
struct tti_progress {
	int32_t next, end;
};

/* Of an operation of a program of sends and receives whose data is not sent but lent: the message
 * names it, and is released when the peer has copied it (lend.h). */
struct tti_lent {
	void *message;          /* the one that names the data, until it is copied */
	struct tti_remote from; /* of a receive: where the data lies */
	size_t done;            /* bytes of it                       */
};

/* A message to one link, or to several of one port by fan-out. */
struct tti_post {
	struct tti_port *port; /* fan-out: the port; else NULL */
	struct tti_link *const *links;
	int n;
	struct tti_copy_way *way; /* as of tti_copy_out(): how the slot is written */
	void *slot;               /* reserved, for the operation being run         */
};

/* An operation with its links, once they are there. */
struct tti_linked {
	const struct tti_oper *op;
	struct tti_link **in;        /* [op->nin]: which its messages come by      */
	struct tti_post *post, *end; /* what it sends: from the one to the other */
};

struct tti_bound {
	struct tti_compiled prog; /* owned                                      */
	struct tti_link **link;   /* [nqueues]                                  */
	int32_t *peers;           /* that must be connected, npeers of them     */
	int32_t npeers;
	bool connected;
	/* Several operations receive, no link has two messages one way in a block, and no operation
	 * waits for another. */
	bool is_free;
	struct tti_linked *linked;     /* [nopers]                                   */
	struct tti_post *post;         /* all operations'                              */
	struct tti_link **end;         /* of all messages of operations, in and out    */
	int32_t *lead;                 /* [nopers]: the queue that looks after it, -1  */
	int32_t *pred, *pred_of;       /* of each operation: those it waits for; [nopers + 1] */
	struct tti_cursor *cursor;     /* [nqueues]                                 */
	struct tti_progress *progress; /* [nopers]                              */
	struct tti_lent *lent;         /* [nopers]; NULL: not of sends and receives */
	int32_t *left;                 /* [window]: operations not done             */
	int32_t *late;                 /* [nopers]: rounds that it is behind, for its stage  */
	int32_t latest;                /* of these; rounds are as many more than blocks      */
	int32_t window;
	int32_t done; /* of a notification: peers that were told or heard */
	struct tti_arena arena;
};

/* TUTTI_AGAIN while links to peers are missing, *peer is one of them. */
TUTTI_CHECKED tutti_status tti_bound_connect(struct tti_engine *engine, struct tti_bound *bound,
					     int *peer);

#endif
