/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_EXECUTABLE_H
#define TTI_ENGINE_EXECUTABLE_H

/* A compiled program with its links, and the state of the one job that runs it. Internal to the
 * engine. */

#include "engine/engine.h"
#include "util/arena.h"

/* Where a queue stands: its next operation is o = queued[first + pos], of block
 * round - skew[o]. */
struct tti_cursor {
	int32_t round, pos;
};

/* The next block of an operation, and how many blocks it has. */
struct tti_progress {
	int32_t next, end;
};

/* A send or receive whose data goes by rendezvous (rndv.h). */
struct tti_rndv {
	void *message;          /* the one that names the data, until it is copied */
	struct tti_remote from; /* of a receive: where the data lies */
	size_t done;            /* bytes of it                       */
};

/* A message to one link, or to several of one port by fan-out. */
struct tti_post {
	struct tti_port *port; /* fan-out: the port; else NULL */
	struct tti_link *const *links;
	int n;
	struct tti_copy_way *way; /* how tti_copy_out() writes the slot       */
	void *slot;               /* reserved for the operation that runs now */
};

/* An operation with its links, once they are there. */
struct tti_linked {
	const struct tti_operation *op;
	struct tti_link **in;        /* [op->nin]: the links of its messages */
	struct tti_post *post, *end; /* its posts are post .. end - 1        */
};

struct tti_executable {
	struct tti_compiled prog; /* owned                                      */
	struct tti_link **link;   /* [nqueues]                                  */
	int32_t *peers;           /* that must be connected, npeers of them     */
	int32_t npeers;
	bool connected;
	/* Several operations receive, no link has two messages in one direction of a block, and no
	 * operation waits for another. */
	bool is_free;
	struct tti_linked *linked;     /* [nopers]                                   */
	struct tti_post *post;         /* all operations'                              */
	struct tti_link **end;         /* of all messages of operations, in and out    */
	int32_t *lead;                 /* [nopers]: the queue that looks after it, -1  */
	int32_t *pred, *pred_of;       /* of each operation: those it waits for; [nopers + 1] */
	struct tti_cursor *cursor;     /* [nqueues]                                 */
	struct tti_progress *progress; /* [nopers]                              */
	struct tti_rndv *rndv;         /* [nopers]; NULL: not of sends and receives */
	int32_t *left;                 /* [window]: operations not done             */
	int32_t *skew;                 /* [nopers]: rounds that it is behind, for its stage  */
	int32_t max_skew;              /* of these; rounds are as many more than blocks      */
	int32_t window;
	int32_t done; /* of a notification: peers that were told or heard */
	struct tti_arena arena;
};

/* Go on connecting to the peers of a job; whether the links are there. */
bool tti_job_connect(struct tti_job *job);

/* Whether the links are there; connects while they are not. */
static inline bool tti_job_is_connected(struct tti_job *job)
{
	return job->program.exec->connected || tti_job_connect(job);
}

/* The job cannot go on before that peer does something; -1: nobody in particular. */
static inline void tti_job_awaits(struct tti_job *job, int peer)
{
	job->waiting_on = peer;
	job->no_room = NULL;
}

/* A job is not over while the system has not taken all that was committed. */
static inline void tti_job_hold_unsent(struct tti_job *job)
{
	const struct tti_engine *engine = job->engine;

	for (int i = 0; job->status == TUTTI_OK && i < engine->nactive; i++) {
		if (engine->active[i]->unsent == 0)
			continue;
		job->status = TUTTI_AGAIN;
		tti_job_awaits(job, -1); /* nobody in particular */
	}
}

/* Set where the places of a program begin. They are integers, since a call may move nothing and
 * have no buffers. */
static inline void tti_job_place(struct tti_job *job, const void *input, void *output)
{
	job->program.at[TTI_PLACE_INPUT] = (uintptr_t)input;
	job->program.at[TTI_PLACE_OUTPUT] = (uintptr_t)output;
	job->program.at[TTI_PLACE_SCRATCH] = (uintptr_t)job->engine->scratch;
}

/* The tag of the messages of an operation. */
static inline uint64_t tti_job_tag(const struct tti_job *job, const struct tti_operation *op)
{
	const struct tti_layout *layout = &job->program.layout;

	return layout->by_chunk ? layout->extents[op->chunk].tag : job->tag;
}

#endif
