/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_COMPILE_PARTS_H
#define TTI_COLL_COMPILE_PARTS_H

/* Private to the compiler: compile.c compiles programs of messages, compile_memory.c memory
 * programs; both take from compile_step.c what a step may be and what it uses. */

#include "coll/compile/compile.h"
#include "util/arena.h"

struct tti_compile_edge {
	int32_t from, to;
};

struct tti_compile_chunk {
	int32_t writer;    /* operation that wrote it last, -1: none      */
	int32_t readers;   /* head of the list of readers since, -1: none */
	int32_t scratch;   /* which one of those in scratch, -1: not      */
	int32_t run;       /* the run of steps that wrote it last         */
	int32_t last_read; /* the last step that reads its input, of in place; -1: none */
	uint8_t place;     /* enum tti_place of its value                              */
	bool is_input, is_output;
	bool is_staged; /* in scratch until its twin's input has been read        */
};

struct tti_compile_reader {
	int32_t oper, next;
};

struct tti_compiler {
	struct tti_arena arena;
	const struct tti_program *prog;
	struct tti_compiled *out;
	struct tti_compile_chunk *chunk;
	int32_t *queue_at; /* of peer p: [2p] receives, [2p + 1] sends; -1: none yet */
	int32_t *seen;     /* of peer p: the row that had it last: its operation, or, in memory
			      programs, its first step                          */
	int32_t *common;   /* of peer p: how many of the fan-outs so far go there       */
	int32_t *stamp;    /* of queue q: the operation whose edges are being made      */
	int32_t nfanouts;
	int32_t bad_stage; /* an operation that waits for one of a later stage, -1: none */
	int32_t run;       /* of memory programs: the run that the next step is of       */
	int32_t nscratch;  /* in scratch in this run                                     */
	TTI_VEC(struct tti_operation) oper;
	TTI_VEC(struct tti_queue) queue;
	TTI_VEC(int32_t) queue_of;
	TTI_VEC(int32_t) peer_of;
	TTI_VEC(int32_t) step;
	TTI_VEC(int32_t) local;
	TTI_VEC(struct tti_compile_reader) reader;
	TTI_VEC(struct tti_compile_edge) edge;
	TTI_VEC(int32_t) queued;
	TTI_VEC(int32_t) succs;
};

tutti_status tti_compile_no_memory(const struct tti_compiler *c);

/* Check that step `index` can run where its chunk is now; quiet TUTTI_EINVAL: it cannot. */
TUTTI_CHECKED tutti_status tti_compile_check_step(const struct tti_compiler *c, size_t index);

/* Put the queues of n steps in a row into queue_of[]; those of receives and WAITs by rank. false:
 * out of memory. */
bool tti_compile_add_queues(struct tti_compiler *c, const struct tti_step *step, size_t n);

/* The place that step `index` writes a chunk to. In place this is scratch if a later step still
 * reads the input that lies there. */
enum tti_place tti_compile_target(struct tti_compiler *c, int chunk, size_t index);

/* Make all operations of a memory program. */
TUTTI_CHECKED tutti_status tti_compile_memory(struct tti_compiler *c);

#endif
