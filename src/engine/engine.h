/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_ENGINE_H
#define TTI_ENGINE_ENGINE_H

/* The engine of one communicator: runs compiled programs and point-to-point
 * transfers over links, without knowing why they were chosen.
 *
 *     program ──bind──▶ bound (links known) ──start──▶ job ──poll──▶ done
 *
 * Jobs of one engine run one after the other; jobs of different engines may be
 * polled in turn by one thread. A poll never blocks; tti_job_wait() blocks, and
 * waits as the machine wants it: spinning where every rank has a core of its own,
 * yielding at once where not, sleeping after some time in both.
 *
 * Per step: no allocation, no lock, no log, and no system call but what a
 * transport needs to move bytes.
 *
 * Owner: tti_engine_release() frees all that is bound; jobs are the caller's.
 * Threads: one at a time per engine; *stop may be set by any. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/compile.h"
#include "coll/moves.h"
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
	bool crowded;           /* more ranks than cores on this host              */
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
	bool is_net;        /* all peers are over a network, and this rank has a core */
	int64_t dear_until; /* no yields before that (wait.c)                         */
	void *scratch;
	size_t scratch_bytes;
	uint32_t spin_rounds;
	const void **sources;     /* [n + 1]: of the operation being run               */
	void **inputs, **outputs; /* [n]: buffers of all ranks, of a direct job; NULL: none yet */
	/* Written by the executing thread, read by any. */
	_Atomic int32_t waiting_on;
};

TUTTI_CHECKED tutti_status tti_engine_init(struct tti_engine *engine,
					   const struct tti_engine_config *config);
/* Closes the links; the ports stay the caller's. Zeroed or half-built is fine. */
void tti_engine_release(struct tti_engine *engine);

/* -- Programs with their links ------------------------------------------- */

struct tti_bound; /* bound.h */

/* Takes *prog over in any case. */
TUTTI_CHECKED tutti_status tti_bound_create(struct tti_engine *engine, struct tti_compiled *prog,
					    struct tti_bound **out);
void tti_bound_free(struct tti_bound *bound);
int tti_bound_nchunks(const struct tti_bound *bound);

/* -- Jobs ---------------------------------------------------------------- */

/* Where a chunk lies that is like no other: `slice` elements of it in each block. */
struct tti_extent {
	size_t first, count, slice;
};

/* Where the chunks of a call lie: in rows of `parts` chunks each, one row or, where
 * chunks belong to ranks, one for each rank. A row has row_count elements, a chunk
 * chunk_count of them, those at the end of a row fewer or none. With extents there is one
 * row, and chunk_count is that of the longest. */
struct tti_layout {
	const struct tti_extent *extents; /* of each chunk, until the job is done; NULL: none */
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

/* One transfer of a point-to-point batch. */
struct tti_transfer {
	int peer;
	bool is_send;
	char *data; /* read only if it is a send */
	size_t nbytes;
	uint64_t tag;
	size_t message_bytes; /* of each message, the last one may have fewer; 0: as is best */
	/* Of a receive into the memory of a send to the same peer: bytes are written only once
	 * that send is past them. NULL: none. */
	const struct tti_transfer *after;
	/* Of a send: where the data lies, for the peer to copy it from there; zeroed: it goes by
	 * messages. Not of one that a receive waits for as above: two such would wait for each
	 * other. */
	struct tti_memory_name name;
	/* The engine's: */
	const char *there; /* of a receive from where the data lies */
	bool is_offered;   /* of a send that is named: it was said  */
	size_t done;
	int32_t next; /* the next one in the same direction with the same peer, -1 */
	int32_t last; /* of a head: the last one of its list                      */
};

struct tti_job;

/* A collective on buffers that peers may be able to address: one of those of
 * coll/moves.h, and what runs it if not all can. */
struct tti_direct {
	struct tti_moved what;
	const void *input;
	void *output;
	size_t type_size;
	/* Where the row of each rank begins in the own output, in elements, if that is what
	 * peers are told; until the job is done. */
	const size_t *places;
	/* Of one that multiplies nothing: inputs are read where they are. */
	struct tti_reducer reducer;
	/* Of the own buffers, each if this rank has one that others may touch; both zeroed: not
	 * to be had. */
	struct tti_memory_name send, recv;
	/* Of a buffer, on the ranks that have one; 0: no other rank reads, or writes, it. Not of
	 * outputs of reduce_scatter_v and of a handoff, where each has its own. */
	size_t send_bytes, recv_bytes;
	size_t total_bytes; /* of all buffers of the host */
	/* All can: it is run so. */
	void (*taken)(void *self);
	/* Not all can: start another job in place of this one. */
	tutti_status (*otherwise)(void *self, struct tti_job *job);
	void *self;
};

enum tti_job_kind {
	TTI_JOB_PROGRAM,
	TTI_JOB_TRANSFERS,
	TTI_JOB_DIRECT, /* becomes another where not all can */
};

struct tti_job {
	struct tti_engine *engine;
	enum tti_job_kind kind;
	uint64_t tag;
	tutti_status status; /* TUTTI_AGAIN while it runs */
	int mismatch_peer;   /* status is TUTTI_EMISMATCH: who sent another tag   */
	int waiting_on;      /* a peer that something is wanted from, -1: nobody  */
	union {
		struct {
			struct tti_bound *bound;
			struct tti_layout layout;
			struct tti_reducer reducer;
			bool is_large;         /* more than the caches hold               */
			size_t slice;          /* elements per step                         */
			int32_t nblocks, base; /* base: the oldest that is not done */
			int32_t local_block, local_pos;
		} program;
		struct {
			struct tti_transfer *list;
			int32_t n;
			int32_t *heads; /* first unfinished of each direction       */
			int32_t nheads;
		} transfers;
		struct {
			struct tti_direct call;
			struct tti_move move; /* the one of the own that is being made */
			int index;            /* its number  */
			size_t done;          /* elements of it */
			bool plain, is_large;
			int phase;
			int32_t told, heard; /* the next peer, as a distance from the own rank */
		} direct;
	};
};

/* Start running a program: `slice_bytes` per step (<= the smallest slot). The
 * bound program serves one job at a time. `reducer` is copied, what it points at stays the
 * caller's until the job is done; of a program that reduces nothing it is not looked at.
 * Buffers stay the caller's and must not change until the job is done. */
TUTTI_CHECKED tutti_status tti_job_program(struct tti_job *job, struct tti_engine *engine,
					   struct tti_bound *bound, const struct tti_layout *layout,
					   const struct tti_reducer *reducer, size_t slice_bytes,
					   uint64_t tag);

/* Start a batch: all at once, each direction of each peer in order of the list.
 * The list stays the caller's; `heads` is room for n indices. */
void tti_job_transfers(struct tti_job *job, struct tti_engine *engine, struct tti_transfer *list,
		       int32_t n, int32_t *heads);
/* The same where no two go the same way with one peer. */
void tti_job_transfers_apart(struct tti_job *job, struct tti_engine *engine,
			     struct tti_transfer *list, int32_t n, int32_t *heads);

/* Start a collective of several ranks where the data lies, if all can, else as call->otherwise
 * does. For engines whose peers are all on one port that has memory. */
TUTTI_CHECKED tutti_status tti_job_direct(struct tti_job *job, struct tti_engine *engine,
					  const struct tti_direct *call, uint64_t tag);

/* Advance; whether anything moved. job->status tells when it is over. */
bool tti_job_poll(struct tti_job *job);

/* Run several jobs (of different engines) to their end; the first error. */
tutti_status tti_job_wait(struct tti_job *const *jobs, int n);

/* The short way of a call whose chunks fit a message each: straight through, one operation
 * after the other, once its links are connected. What is the same for all calls that differ in
 * buffers alone is worked out once. Same messages, same result as the general way, so ranks may
 * differ in it.
 * Owner: the caller, tti_straight_release(), zeroed is fine; the bound program outlives it, and
 * what the reducer points at. */
struct tti_spot {
	size_t from, to; /* of an operation, in bytes from where its places begin */
	size_t count, nbytes;
};

struct tti_straight {
	struct tti_job job;    /* all but buffers and tag */
	struct tti_spot *spot; /* [nopers]                */
	int32_t room;          /* of spot                 */
	bool is_exchange;      /* of the whole vector: shorter still */
};

bool tti_straight_fits(const struct tti_bound *bound, const struct tti_layout *layout,
		       size_t slice_bytes);
/* Zeroed, or prepared before: that is forgotten. The layout's buffers are not looked at. */
TUTTI_CHECKED tutti_status tti_straight_prepare(struct tti_straight *call,
						struct tti_engine *engine, struct tti_bound *bound,
						const struct tti_layout *layout,
						const struct tti_reducer *reducer,
						size_t slice_bytes);
/* `mismatch_peer` as of a job. */
tutti_status tti_straight_run(struct tti_straight *call, const void *input, void *output,
			      uint64_t tag, int *mismatch_peer);
void tti_straight_release(struct tti_straight *call);

/* A transfer that is named to nobody, with a peer that is connected: one message, or in pieces
 * (transport.h). */
bool tti_straight_reaches(const struct tti_engine *engine, int peer, size_t nbytes);
tutti_status tti_straight_send(struct tti_engine *engine, int peer, const void *data, size_t nbytes,
			       uint64_t tag);
/* TUTTI_AGAIN: what comes is something else, and was not taken: the general way knows.
 * `mismatch_peer` as of a job. */
tutti_status tti_straight_recv(struct tti_engine *engine, int peer, void *data, size_t nbytes,
			       uint64_t tag, int *mismatch_peer);

/* Whether a program reduces its one chunk in one exchange, which goes straight whatever its
 * length, if it is one message. */
bool tti_bound_is_exchange(const struct tti_bound *bound);

#endif
