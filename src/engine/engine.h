/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_ENGINE_H
#define TTI_ENGINE_ENGINE_H

/* The engine of one communicator: runs compiled programs and point-to-point
 * transfers over links, without knowing why they were chosen.
 *
 *     program ──bind──▶ executable (links known) ──start──▶ job ──poll──▶ done
 *
 * Jobs of one engine run one after the other; one thread may poll jobs of different engines in
 * turn. A poll never blocks. tti_job_wait() blocks: it spins where every rank has a core of its
 * own, yields where ranks share cores, and sleeps after some time in both cases (wait.h).
 *
 * A step allocates nothing, takes no lock, logs nothing, and makes no system call but those of the
 * transport that move bytes.
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

/* Called by the engine, in the slow part of a wait only. */
struct tti_engine_events {
	void *self;
	/* A job has waited since `since_ns` (tti_now_ns) for `peer` (-1: unknown). Called every 50
	 * ms or so. Anything but TUTTI_OK ends the job. */
	tutti_status (*on_wait)(void *self, int64_t since_ns, int peer);
};

struct tti_engine_config {
	int rank, n;
	struct tti_port *ports[TTI_ENGINE_PORTS];
	int nports;
	const uint8_t *port_of; /* [n]: index into ports[]; outlives the engine    */
	bool oversubscribed;    /* more ranks than cores on this host              */
	/* Cut transfers into pieces, of which the peer reads one while the next one is written.
	 * Alike on all ranks, and not where ranks share a core: each piece would cost a context
	 * switch. */
	bool cuts;
	size_t cache_bytes;      /* share of this rank in the last level of caches  */
	int64_t spin_rounds;     /* < 0: chosen                                     */
	const _Atomic int *stop; /* nonzero: jobs end with TUTTI_EABORTED           */
	struct tti_engine_events events;
};

struct tti_engine {
	struct tti_engine_config config;
	struct tti_link **links; /* [n], NULL until connected                      */
	struct tti_port *active[TTI_ENGINE_PORTS]; /* those that need progress()   */
	int nactive;
	/* The one port to sleep on, NULL: none can; is_mixed: other ports must be looked at in
	 * between. */
	struct tti_port *sleeper;
	bool is_mixed;
	bool is_net; /* all peers are over a network, and this rank has a core */
	void *scratch;
	size_t scratch_bytes;
	uint32_t spin_rounds;
	const void **sources; /* [n + 1]: of the operation being run                       */
	struct tti_remote *inputs, *outputs; /* [n]: buffers of the peers of a memory program */
	/* The executing thread writes it, any thread reads it. */
	_Atomic int32_t waiting_on;
};

TUTTI_CHECKED tutti_status tti_engine_init(struct tti_engine *engine,
					   const struct tti_engine_config *config);
/* Closes the links; the ports stay the caller's. Zeroed or half-built is fine. */
void tti_engine_release(struct tti_engine *engine);

/* -- Programs with their links ------------------------------------------- */

struct tti_executable; /* executable.h */

/* Takes *prog, also on failure. */
TUTTI_CHECKED tutti_status tti_executable_create(struct tti_engine *engine,
						 struct tti_compiled *prog,
						 struct tti_executable **out);
void tti_executable_free(struct tti_executable *exec);
int tti_executable_nchunks(const struct tti_executable *exec);
const struct tti_compiled *tti_executable_compiled(const struct tti_executable *exec);

/* -- Jobs ---------------------------------------------------------------- */

/* Where a chunk lies that has a length of its own: from element `first` of the input, or `to` of
 * the output, on, with `slice` elements in each block. With by_chunk its messages have a tag of
 * their own, and a chunk that is sent may name its data for the peer to copy (rndv.h; zeroed: it
 * goes by messages). */
struct tti_extent {
	size_t first, to, count, slice;
	uint64_t tag;
	struct tti_memory_name rndv;
};

/* Where the chunks of a call lie: in rows of `parts` chunks each. There is one row, or, where
 * chunks belong to ranks, one for each rank. A row has row_count elements, a chunk chunk_count of
 * them, the last chunks of a row fewer or none. With extents there is one row, and chunk_count is
 * that of the longest chunk. */
struct tti_layout {
	const struct tti_extent *extents; /* of each chunk, until the job is done; NULL: none */
	/* With extents: each chunk takes as many blocks as it has slices, and on each link one
	 * chunk follows the other, so that the two ends of a link need to know of no other link.
	 * Otherwise all chunks take as many blocks as the longest. */
	bool by_chunk;
	bool has_rndv; /* with by_chunk, of sends and receives (TUTTI_SEND_RECV): some may go by rendezvous */
	const void *input;
	void *output;
	size_t type_size;
	int parts;
	size_t chunk_count, row_count;
	size_t in_stride, out_stride; /* bytes from row to row */
	/* n: chunks belong to pairs of n ranks; row s * n + d is row d of the input of s and row s
	 * of the output of d. 0: a row has the same number in both. */
	size_t paired;
};

struct tti_job;
struct tti_wait; /* wait.h */

/* The part of a buffer of a rank that peers touch. */
struct tti_memory_buffer {
	struct tti_memory_name name;
	uint64_t nbytes; /* 0: nothing, and there is no name                             */
	uint64_t before; /* bytes of the whole vector before it, where peers count from there */
};

/* What a memory program needs besides its layout. */
struct tti_memory_call {
	tutti_collective coll;
	struct tti_memory_buffer send, recv; /* the own ones */
	bool is_ready;                       /* peers can address them */
	/* Where the row of each rank begins in the own output, and its length, in elements, if each
	 * peer is told of its own row alone; until the job is done. NULL: peers are told of all. */
	const size_t *displs, *counts;
	bool is_large; /* results go past the caches */
	/* The buffers of some rank cannot be addressed: start another job in place of this one. */
	tutti_status (*fallback)(void *self, struct tti_job *job);
	void *self;
};

/* Where the data of an operation lies in one block: offsets in its places, elements, bytes. */
struct tti_operand {
	size_t from, to, count, nbytes;
};

struct tti_job {
	struct tti_engine *engine;
	uint64_t tag;
	tutti_status status;   /* TUTTI_AGAIN while it runs */
	int mismatch_peer;     /* status is TUTTI_EMISMATCH: the rank that sent another tag */
	uint64_t mismatch_tag; /* that tag                                                  */
	size_t mismatch_bytes; /* of that message                                           */
	int waiting_on;        /* the peer that the job waits for, -1: none                 */
	/* The job waits for room for this instead, so for its readers; NULL: it does not. */
	const struct tti_post *no_room;
	/* The wait of the thread, if an operation may wait for a message; else NULL. */
	struct tti_wait *wait;
	/* Of a job that its maker runs (tti_job_polled()): */
	bool (*poll)(struct tti_job *job); /* NULL: the engine runs it */
	void *self;
	int64_t waits_since_ns; /* for a peer (tti_now_ns()); 0: it waits for nobody */
	int64_t nap_ns;         /* how long its thread may sleep; 0: 50 us */
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
		bool begins;     /* no rank has touched memory of another yet        */
		bool is_refused; /* the buffers of some rank cannot be addressed     */
		size_t staged;   /* offset in scratch of the room for sources        */
		struct tti_memory_call memory;
	} program;
};

/* Start running a program, with `slice_bytes` per step (at most the smallest slot). An executable
 * serves one job at a time. `reducer` is copied, and not read if the program reduces nothing. What
 * it points at and the buffers belong to the caller, and must not change until the job is done. */
TUTTI_CHECKED tutti_status tti_job_program(struct tti_job *job, struct tti_engine *engine,
					   struct tti_executable *exec,
					   const struct tti_layout *layout,
					   const struct tti_reducer *reducer, size_t slice_bytes,
					   uint64_t tag);

/* How many bytes of each chunk a memory program works on at a time; ranks may differ in it. */
size_t tti_memory_block_bytes(const struct tti_engine *engine, const struct tti_memory_call *call);

/* Start a memory program if the buffers of all ranks can be addressed, else what call->fallback
 * starts. For engines whose peers are all on one port that has memory. */
TUTTI_CHECKED tutti_status tti_job_memory(struct tti_job *job, struct tti_engine *engine,
					  struct tti_executable *exec,
					  const struct tti_layout *layout,
					  const struct tti_reducer *reducer,
					  const struct tti_memory_call *call, uint64_t tag);

/* Start a job that the caller runs, in place of a program, among those of the engine: on its links,
 * if `poll` likes, or elsewhere. `poll` advances it and returns whether anything moved. It does not
 * block. It sets job->status when the job is over; until then job->waits_since_ns, and
 * job->waiting_on while it waits for a peer. The time limit of a call is for such waits alone. */
void tti_job_polled(struct tti_job *job, struct tti_engine *engine,
		    bool (*poll)(struct tti_job *job), void *self);

/* Advance; whether anything moved. job->status tells when the job is over. */
bool tti_job_poll(struct tti_job *job);

/* Run several jobs (of different engines) to their end; the first error. */
tutti_status tti_job_wait(struct tti_job *const *jobs, int n);

/* A call whose chunks fit one message each, or a single send or receive. What does not depend on
 * the buffers is worked out once, and operations run in the order of the program. Messages and
 * results are those of tti_job_program(), so ranks may differ in which they use.
 * Owner: the caller, tti_short_release(), zeroed is fine. The executable, and what the reducer
 * points at, outlive it. */
struct tti_short {
	struct tti_job job;           /* all but buffers and tag */
	struct tti_operand *operands; /* [nopers]                */
	int32_t room;                 /* of operands                */
};

/* Whether each chunk is one message. */
bool tti_short_fits(const struct tti_layout *layout, size_t slice_bytes);
/* `call` is zeroed, or prepared before. The buffers of the layout are not read. */
TUTTI_CHECKED tutti_status tti_short_prepare(struct tti_short *call, struct tti_engine *engine,
					     struct tti_executable *exec,
					     const struct tti_layout *layout,
					     const struct tti_reducer *reducer, size_t slice_bytes);
/* Details of a mismatch are in call->job. */
tutti_status tti_short_run(struct tti_short *call, const void *input, void *output, uint64_t tag);
void tti_short_release(struct tti_short *call);

/* Bytes of each message but the last of a transfer between two ranks, alike on both: few enough
 * that one message is read while others are written, many enough that the cost per message counts
 * little. */
size_t tti_piece_bytes(const struct tti_engine *engine, int peer, size_t nbytes);

/* Whether the program reduces its one chunk in one exchange, as one message of any length. */
bool tti_executable_is_exchange(const struct tti_executable *exec);

#endif
