/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_PROGRAM_H
#define TTI_COLL_PROGRAM_H

/* A program is what one rank does in one collective call: a list of steps. An algorithm emits
 * steps and touches no buffer, no thread, no socket.
 *
 * The data is `nchunks` chunks. A chunk's value at this rank is at first its input (if the
 * rank has one: see the layout below), and then what a step has last written.
 *
 *     SEND         the chunk's value goes to peer
 *     RECV         what comes from peer becomes the chunk's value
 *     RECV_REDUCE  value = value op what comes from peer
 *     COPY         the chunk's input becomes its output (no peer)
 *
 * There are five more for ranks that reach each other's buffers:
 *
 *     GET          what the peer's input holds for the chunk becomes the chunk's value
 *     GET_REDUCE   value = value op what the peer's input holds for the chunk
 *     PUT          the chunk's value goes into the peer's output
 *     NOTIFY       a message of 0 bytes to peer: what this rank did before has happened
 *     WAIT         until the peer's next NOTIFY is here
 *
 * A program with any of these is a memory program. It has no SEND, RECV or RECV_REDUCE; its
 * NOTIFYs and WAITs do not look at their chunk. Each rank runs its steps strictly in
 * their order. The k-th WAIT of b for a waits for the k-th NOTIFY of a to b. A rank may touch
 * the buffers of a peer after it has waited for the peer, and until it sends a NOTIFY that the
 * peer waits for before its end; either may go by way of other ranks. COPY says that the
 * owner copies a chunk from input to output; nothing is copied that no step says.
 *
 * A program begins with its first meeting: the NOTIFYs and WAITs before any step that moves data,
 * up to the first NOTIFYs or WAITs in a row that name a peer once more. The NOTIFYs of the first
 * meeting say where the buffers of the rank are, or that nobody reaches them. So WAITs of the
 * peer's first meeting wait for them, and all ranks wait there for each rank whose buffers others
 * touch, as all must know where they are.
 *
 * This is not asked of sends and receives (send_recv), which are between two ranks each: the NOTIFY
 * ahead of a GET says where the data of that GET lies, and nobody else has to know.
 *
 * Steps in a row that have the same stage, between two steps that are NOTIFY or WAIT, are
 * a run. A rank may do a run block by block, in slices of its own choice, each block through
 * all steps of the run. So a partial result, which is neither input nor output, is kept for one
 * slice only: no later run sees it.
 *
 * A rank is in place if its input and output are one buffer. The input of a chunk then lies where
 * the output of the same chunk does, so that a COPY of it moves nothing. In all_to_all the input of
 * the pair (s, d) lies where the output of the pair (d, s) does. Some ranks may be in place and
 * others not.
 *
 * In all other programs two steps of a rank run in program order if they touch the
 * same chunk and one of them writes it, or the same peer in the same direction. All others
 * may overlap. A link is a FIFO: the k-th RECV or RECV_REDUCE of b from a gets the k-th SEND
 * of a to b; both name the same chunk.
 *
 * A long call runs the program several times, each time over a block: a slice of every
 * chunk. Within a block every step is one message. On a link the messages of a block come
 * after those of the block before, so blocks could not overlap where one link carries both
 * the beginning and the end of a block. Therefore steps have pipeline stages, 0 and up: the
 * steps of a later stage run among the steps of later blocks, with a skew of a fixed number of
 * blocks for each stage (engine/program.c). A step's stage is not less than that of any step
 * that it waits for, and both ends of a message have the same stage.
 *
 * Owner: tti_program_release(). Threads: not synchronised; const use by any. */

#include <stdbool.h>
#include <stdint.h>

#include "coll/collective.h"
#include "coll/shape.h"
#include "tutti/inspect.h"
#include "util/vec.h"

enum tti_step_kind {
	TTI_SEND,
	TTI_RECV,
	TTI_RECV_REDUCE,
	TTI_COPY,
	TTI_GET,
	TTI_GET_REDUCE,
	TTI_PUT,
	TTI_NOTIFY,
	TTI_WAIT,
	TTI_STEP_KINDS /* how many there are */
};

/* "send" and so on, as in texts. */
const char *tti_step_name(enum tti_step_kind kind);

/* NOTIFY or WAIT. */
static inline bool tti_step_is_sync(enum tti_step_kind kind)
{
	return kind == TTI_NOTIFY || kind == TTI_WAIT;
}

/* Whether a step is of memory programs only. */
static inline bool tti_step_is_memory(enum tti_step_kind kind)
{
	return kind >= TTI_GET;
}

struct tti_step {
	enum tti_step_kind kind;
	int chunk;
	int peer;   /* own rank for COPY                                         */
	int stage;  /* see above                                                 */
	bool final; /* RECV_REDUCE, GET_REDUCE: completes the reduction (AVG divides
		       here). Of several in a row on one chunk, this is the last  */
};

/* How finely an algorithm splits the data for its pipeline, chosen by the size of the data; equal
 * on all ranks. Zeroed: as coarsely as it can.
 *
 *     parts    chunks that a round of a ring carries: one is on its way and being reduced
 *              while the others are sent (0: 1)
 *              (reduce_scatter in memory: if more than 1, every rank reduces a part of
 *              each row, as is right for rows of any length)
 *     stripes  the most members of each group that talk to other groups (0: all)
 *
 * An algorithm ignores what it has no use for. */
struct tti_split {
	int parts, stripes;
};

/* Which chunks a rank has as input and must have as output.
 *
 *     all_reduce      any number: all in, all out
 *     broadcast       any number: all in at the root, all out everywhere
 *     reduce          any number: all in, all out at the root
 *     all_gather      n * parts chunks: own in, all out
 *     reduce_scatter  n * parts chunks: all in, own out
 *     all_to_all      n * n * parts chunks: of each pair of ranks (s, d) `parts` in a row,
 *                     those of pair s * n + d: in at s, out at d
 *     gather          n * parts chunks: own in, all out at the root
 *     scatter         n * parts chunks: all in at the root, own out
 *     barrier         1 chunk, empty: as all_reduce of nothing, where hearing of
 *                     a rank twice does no harm
 *     send_recv       one chunk per message: in and out as `ends` says; where that is empty,
 *                     in where a rank's first step on it is SEND, or another rank GETs it,
 *                     out where it is RECV or GET
 *     handoff         any number, each in and out as `ends` says
 *
 * "Any number": the vector is cut into that many equal parts. n * parts: what each rank
 * owns is cut into `parts` equal parts, chunk c being of rank c / parts.
 */
#define TTI_END_INPUT  1
#define TTI_END_OUTPUT 2

struct tti_program {
	tutti_collective coll;
	const char *algorithm;         /* static string, or borrowed from who made it */
	const struct tti_shape *shape; /* while steps are emitted; NULL: by number   */
	int rank, n, root;
	bool in_place;          /* this rank's input and output are one buffer        */
	struct tti_split split; /* while steps are emitted; parts >= 1               */
	int nchunks;
	int stage; /* of the steps that are added next */
	TTI_VEC(struct tti_step) steps;
	TTI_VEC(uint8_t) ends; /* stated: of each chunk, TTI_END_INPUT, TTI_END_OUTPUT */
	bool failed;           /* out of memory while steps were added */
};

void tti_program_release(struct tti_program *prog);

/* Append; a failure is remembered in prog->failed. */
void tti_send(struct tti_program *prog, int chunk, int peer);
void tti_recv(struct tti_program *prog, int chunk, int peer);
void tti_recv_reduce(struct tti_program *prog, int chunk, int peer, bool final);
void tti_copy_chunk(struct tti_program *prog, int chunk);
void tti_get(struct tti_program *prog, int chunk, int peer);
void tti_get_reduce(struct tti_program *prog, int chunk, int peer, bool final);
void tti_put(struct tti_program *prog, int chunk, int peer);
void tti_notify(struct tti_program *prog, int peer);
void tti_wait(struct tti_program *prog, int peer);

/* Whether it has a step that only memory programs have. */
bool tti_program_is_memory(const struct tti_program *prog);

/* The rank that a chunk belongs to, where chunks belong to ranks. */
static inline int tti_chunk_owner(const struct tti_program *prog, int chunk)
{
	return chunk / (prog->nchunks / prog->n);
}

/* The ranks that a chunk of all_to_all comes from and goes to. */
static inline int tti_chunk_source(const struct tti_program *prog, int chunk)
{
	return chunk / (prog->nchunks / prog->n);
}

static inline int tti_chunk_dest(const struct tti_program *prog, int chunk)
{
	return chunk / (prog->nchunks / prog->n / prog->n) % prog->n;
}

/* In place: the chunk whose output lies where the input of `chunk` does, and the other way
 * round, at a rank that has both. */
static inline int tti_chunk_twin(const struct tti_program *prog, int chunk)
{
	const int parts = prog->nchunks / prog->n / prog->n;

	if (!tti_collective_is_by_pair(prog->coll))
		return chunk;
	return (tti_chunk_dest(prog, chunk) * prog->n + tti_chunk_source(prog, chunk)) * parts +
	       chunk % parts;
}

bool tti_chunk_is_input(const struct tti_program *prog, int chunk);
bool tti_chunk_is_output(const struct tti_program *prog, int chunk);

/* The order in which a collective that reduces combines contributions. A later value keeps
 * what an earlier one asks for. */
enum tti_order {
	TTI_ORDER_ANY,      /* as they come                                           */
	TTI_ORDER_RANKS,    /* from the left, ((r0 op r1) op r2) ..., in any number of
			       reductions, each of which goes on where another ended   */
	TTI_ORDER_ONE_PASS, /* the same in one reduction of all                        */
};

/* Properties of an algorithm that decide its slices, parts and stripes. */
enum tti_trait {
	TTI_TRAIT_DIRECT = 1,   /* every rank sends its part to every other one, which reads it */
	TTI_TRAIT_RING = 2,     /* goes round rings, of ranks or, with groups, of groups: what a
				 * round carries may be cut into parts                      */
	TTI_TRAIT_PIPELINE = 4, /* passes block after block on: with groups, from group to group */
	TTI_TRAIT_GROUPS = 8,   /* inside the groups of a shape and, in stripes, between them    */
	TTI_TRAIT_ORDERED = 16, /* pays for an order: not for calls that need none               */
};

/* An algorithm emits the steps of prog->rank among prog->n ranks (n >= 1) and sets
 * prog->nchunks. prog is zeroed but for coll, shape, split, rank, n, root, in_place. The order of
 * the steps is one that does not deadlock even if they run strictly one after the other, with one
 * slot per link. */
struct tti_algorithm {
	const char *name;
	tutti_collective coll;
	void (*emit)(struct tti_program *prog);
	unsigned traits; /* enum tti_trait */
	const char *help;
	enum tti_order order; /* that it keeps, over every shape and cut */
	bool needs_memory;    /* makes memory programs: for ranks that reach each other's buffers */
	/* A user's algorithm has the programs of all its ranks in place of emit. They are
	 * copied. */
	const struct tti_program *programs;
};

/* Whether it is for n ranks: a user's is for one number of them. */
bool tti_algorithm_fits(const struct tti_algorithm *algo, int n);

/* All of a collective: the i-th, NULL past the last; by name, NULL if none. */
const struct tti_algorithm *tti_algorithm_at(tutti_collective coll, int index);
const struct tti_algorithm *tti_algorithm_find(tutti_collective coll, const char *name);

/* The most ranks of a program: counts of operands are 16 bits wide (compile.h). */
#define TTI_PROGRAM_RANKS_MAX 32767

/* The call that the program of one rank is built for. */
struct tti_program_spec {
	const struct tti_shape *shape; /* of n ranks; NULL: by number. Borrowed for the call only */
	struct tti_split split;        /* zeroed: as coarse as can be */
	int rank, n, root;
	bool in_place;
};

TUTTI_CHECKED tutti_status tti_program_build(const struct tti_algorithm *algo,
					     const struct tti_program_spec *spec,
					     struct tti_program *out);

#endif
