/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_ENGINE_H
#define TTI_ENGINE_ENGINE_H

/* The engine of one communicator: runs compiled programs and point-to-point
 * transfers over links, without knowing why they were chosen.
 *
 *     program ──bind──▶ executable (links known) ──start──▶ job ──poll──▶ done
 *
 * Jobs of one engine run one after the other; jobs of different engines may be
 * polled in turn by one thread. A poll never blocks; tti_job_wait() blocks, and
 * waits as the machine wants it: spinning where every rank has a core of its own,
 * yielding at once where not, sleeping after some time in both.
 *
 * Per step: no allocation, no lock, no log, and no system call but what a
 * transport needs to move bytes.
 *
 * Owner: executables and jobs are the caller's.
 * Threads: one at a time per engine; *stop may be set by any. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/compile/compile.h"
#include "reduce/reducer.h"
#include "transport/transport.h"

#define TTI_ENGINE_PORTS 4

/* What the engine tells its owner, from the slow part of a wait only. */
struct tti_engine_events {
	void *self;
	/* A job has waited since `since_ns` (tti_now_ns) for `peer` (-1: unknown).
	 * Called every 50 ms or so. Not TUTTI_OK: the job ends with it. */
	tutti_status (*on_wait)(void *self, int64_t since_ns, int peer);
};

struct tti_engine_config {
	int rank, n;
	struct tti_port *ports[TTI_ENGINE_PORTS];
	int nports;
	const uint8_t *port_of; /* [n]: index into ports[]; outlives the engine    */
	bool oversubscribed;    /* more ranks than cores on this host              */
	/* Transfers are cut for a peer that reads while the next piece is written. The same on
	 * all ranks: who shares a core and waits for the next one lets others run, for each. */
	bool cuts;
	size_t cache_bytes;      /* of the last level, that this rank has of them   */
	int64_t spin_rounds;     /* < 0: chosen                                     */
	const _Atomic int *stop; /* nonzero: jobs end with TUTTI_EABORTED           */
	struct tti_engine_events events;
};

struct tti_engine {
	struct tti_engine_config config;
	struct tti_link **links; /* [n], NULL until connected                      */
	struct tti_port *active[TTI_ENGINE_PORTS]; /* those that need progress()   */
	int nactive;
	/* The one port to sleep on, NULL: none can; whether others must be looked at
	 * in between. */
	struct tti_port *sleeper;
	bool is_mixed;
	bool is_net; /* all peers are over a network, and this rank has a core */
	void *scratch;
	size_t scratch_bytes;
	uint32_t spin_rounds;
	const void **sources; /* [n + 1]: of the operation being run                       */
	struct tti_remote *inputs, *outputs; /* [n]: buffers of the peers of a memory program */
	/* Written by the executing thread, read by any. */
	_Atomic int32_t waiting_on;
};

TUTTI_CHECKED tutti_status tti_engine_init(struct tti_engine *engine,
					   const struct tti_engine_config *config);
/* Closes the links; the ports stay the caller's. Zeroed or half-built is fine. */
void tti_engine_release(struct tti_engine *engine);

/* -- Programs with their links ------------------------------------------- */

struct tti_executable; /* executable.h */

/* Takes *prog over in any case. */
TUTTI_CHECKED tutti_status tti_executable_create(struct tti_engine *engine,
						 struct tti_compiled *prog,
						 struct tti_executable **out);
void tti_executable_free(struct tti_executable *exec);
int tti_executable_nchunks(const struct tti_executable *exec);

/* -- Jobs ---------------------------------------------------------------- */

/* Where a chunk lies that is like no other: `slice` elements of it in each block, from element
 * `first` of the input, or `to` of the output, on. Where each chunk is by itself (by_chunk) its
 * messages have a tag of its own, and one that is sent may lie where the peer can copy it from
 * (rndv, see rndv.h; zeroed: it goes by messages). */
struct tti_extent {
	size_t first, to, count, slice;
	uint64_t tag;
	struct tti_memory_name rndv;
};

/* Where the chunks of a call lie: in rows of `parts` chunks each, one row or, where
 * chunks belong to ranks, one for each rank. A row has row_count elements, a chunk
 * chunk_count of them, those at the end of a row fewer or none. With extents there is one
 * row, and chunk_count is that of the longest. */
struct tti_layout {
	const struct tti_extent *extents; /* of each chunk, until the job is done; NULL: none */
	/* With extents: each chunk takes as many blocks as its own slices make, and on each link
	 * chunk follows chunk. The two ends of a link then need to know of no other. Else all
	 * chunks take as many blocks as the longest. */
	bool by_chunk;
	bool has_rndv; /* with by_chunk, of sends and receives (TUTTI_SEND_RECV): some may go by rendezvous */
	const void *input;
	void *output;
	size_t type_size;
	int parts;
	size_t chunk_count, row_count;
	size_t in_stride, out_stride; /* bytes from row to row */
	/* n: chunks belong to pairs of n ranks, row s * n + d being row d of s's input and row
	 * s of d's output. 0: a row is one row of both. */
	size_t paired;
};

struct tti_job;
struct tti_wait; /* wait.h */

/* What peers touch of a buffer of a rank, in bytes. */
struct tti_memory_buffer {
	struct tti_memory_name name;
	uint64_t nbytes; /* 0: nothing, and it has no name                       */
	uint64_t before; /* of the vector that it is a part of, where others count from its begin */
};

/* What a memory program needs to know beside its layout. */
struct tti_memory_call {
	tutti_collective coll;
	struct tti_memory_buffer send, recv; /* the own ones */
	bool is_ready;                       /* peers can address them */
	/* Where the row of each rank begins in the own output, and how long it is, in elements, if
	 * each peer is told of its own alone; until the job is done. NULL: all of it. */
	const size_t *displs, *counts;
	bool is_large; /* results go past the caches */
	/* Not all can: start another job in place of this one. */
	tutti_status (*fallback)(void *self, struct tti_job *job);
	void *self;
};

/* Where the data of an operation lies in one block, in bytes from where its places begin. */
struct tti_operand {
	size_t from, to, count, nbytes;
};

struct tti_job {
	struct tti_engine *engine;
	uint64_t tag;
	tutti_status status;   /* TUTTI_AGAIN while it runs */
	int mismatch_peer;     /* status is TUTTI_EMISMATCH: who sent another tag   */
	uint64_t mismatch_tag; /* that one                                          */
	size_t mismatch_bytes; /* of that message */
	int waiting_on;        /* a peer that something is wanted from, -1: nobody  */
	/* In place of that: what there was no room for, whose readers are waited for; NULL: nothing. */
	const struct tti_post *no_room;
	/* That of who runs the job, if a message may be waited for in the middle of an operation;
	 * else NULL. */
	struct tti_wait *wait;
	struct {
		struct tti_executable *exec;
		struct tti_layout layout;
		struct tti_reducer reducer;
		uintptr_t
			at[TTI_PLACE_SCRATCH + 1]; /* where each place begins                     */
		const struct tti_operand
			*operands;     /* [nopers]: of the one block; NULL: not known */
		bool in_order;         /* else as messages come                       */
		bool is_large;         /* more than the caches hold                   */
		size_t slice;          /* elements of a block                         */
		int32_t nblocks, base; /* base: the oldest that is not done           */
		int64_t left;          /* operations of blocks that are not done      */
		int32_t block, pos;    /* of operations in order, what comes next     */
		int32_t found;         /* messages of that operation that are there */
		/* Of a memory program: */
		bool is_memory;
		bool begins;     /* nobody has touched memory of another rank yet */
		bool is_refused; /* a rank's buffers cannot be addressed          */
		size_t staged;   /* where in scratch there is room for sources    */
		struct tti_memory_call memory;
	} program;
};

/* Start running a program: `slice_bytes` per step (<= the smallest slot). The
 * executable serves one job at a time. `reducer` is copied, what it points at stays the
 * caller's until the job is done; of a program that reduces nothing it is not looked at.
 * Buffers stay the caller's and must not change until the job is done. */
TUTTI_CHECKED tutti_status tti_job_program(struct tti_job *job, struct tti_engine *engine,
					   struct tti_executable *exec,
					   const struct tti_layout *layout,
					   const struct tti_reducer *reducer, size_t slice_bytes,
					   uint64_t tag);

/* How many bytes of each chunk a memory program works on at a time: the rank's own choice. */
size_t tti_memory_block_bytes(const struct tti_engine *engine, const struct tti_memory_call *call);

/* Start a memory program, if all ranks' buffers can be addressed, else what call->fallback
 * starts. For engines whose peers are all on one port that has memory. */
TUTTI_CHECKED tutti_status tti_job_memory(struct tti_job *job, struct tti_engine *engine,
					  struct tti_executable *exec,
					  const struct tti_layout *layout,
					  const struct tti_reducer *reducer,
					  const struct tti_memory_call *call, uint64_t tag);

/* Advance; whether anything moved. job->status tells when it is over. */
bool tti_job_poll(struct tti_job *job);

/* Run several jobs (of different engines) to their end; the first error. */
tutti_status tti_job_wait(struct tti_job *const *jobs, int n);

/* A call whose chunks fit a message each, or a single send or receive: what is the same for all
 * calls that differ in buffers alone is worked out once, and its operations are run in the order of
 * the program. The same messages and the same result as by tti_job_program(), so ranks may differ
 * in it.
 * Owner: the caller, tti_short_release(), zeroed is fine; the executable outlives it, and
 * what the reducer points at. */
struct tti_short {
	struct tti_job job;           /* all but buffers and tag */
	struct tti_operand *operands; /* [nopers]                */
	int32_t room;                 /* of operands                */
};

/* Whether each chunk is one message. */
bool tti_short_fits(const struct tti_layout *layout, size_t slice_bytes);
/* Zeroed, or prepared before: that is forgotten. The layout's buffers are not looked at. */
TUTTI_CHECKED tutti_status tti_short_prepare(struct tti_short *call, struct tti_engine *engine,
					     struct tti_executable *exec,
					     const struct tti_layout *layout,
					     const struct tti_reducer *reducer, size_t slice_bytes);
/* What was not expected is in call->job. */
tutti_status tti_short_run(struct tti_short *call, const void *input, void *output, uint64_t tag);
void tti_short_release(struct tti_short *call);

/* Bytes of each message of what one rank has for another alone, the last one may have fewer:
 * both sides compute it. Few enough for one to be read while others are written; many enough
 * for a message's own cost to count little. */
size_t tti_piece_bytes(const struct tti_engine *engine, int peer, size_t nbytes);

/* Whether a program reduces its one chunk in one exchange, which is one message whatever its
 * length. */
bool tti_executable_is_exchange(const struct tti_executable *exec);

#endif
