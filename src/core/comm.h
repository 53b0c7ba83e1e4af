/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_COMM_H
#define TTI_CORE_COMM_H

/* The communicator: the one place where bootstrap, transports, programs and engine
 * meet. Only core includes this header.
 *
 * Order of calls: each call takes a ticket when it is made and runs when all calls
 * before it are done, on the caller's thread (NULL stream) or on its stream's. So
 * all ranks run their calls in the order in which the program made them.
 *
 * End: the first bad news (a peer died, ranks called different things, abort, a
 * deadline) is the communicator's fate: every call from then on returns it.
 *
 * Owner: the handle (handle.h). Threads: fields say. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "boot/watch.h"
#include "coll/choose.h"
#include "core/agree.h"
#include "core/tuning.h"
#include "engine/engine.h"
#include "tutti/inspect.h"
#include "tutti/tutti.h"

#define TTI_ERROR_TEXT   1024
#define TTI_SIZE_CLASSES 65
#define TTI_MOST_SETS    64 /* algorithms in use */

/* One call as the user made it. */
struct tti_args {
	tutti_collective coll;
	const void *send;
	void *recv;
	size_t count;
	tutti_type type;
	tutti_op op;
	int root; /* or the peer of a send or receive */
	bool is_send;
};

/* What the executing thread publishes about the current call, for on_ask: a
 * sequence lock, so that what is read belongs together. */
struct tti_current_call {
	_Atomic uint32_t version, running;
	_Atomic uint64_t seq, signature, count;
	_Atomic uint64_t shape; /* tti_args_shape() */
};

/* What is known about a rank that a call waits for. Under comm->lock. */
struct tti_stall {
	int suspect;       /* who was asked last, -1: nobody          */
	int64_t began_ns;  /* of the wait that this is about          */
	int64_t asked_ns;  /* since when the suspect is silent        */
	int64_t round_ns;  /* when a round of asking began last       */
	int64_t warned_ns; /* when the last warning was written       */
	bool answered;
	int hops; /* along the chain of who waits for whom, this round */
	int left; /* the suspect said goodbye: looks since then that found nothing */
	struct tti_call answer;
};

/* An algorithm in use, with its programs by root. */
struct tti_program_set {
	const struct tti_algorithm *algo;
	struct tti_bound **by_root; /* [n] for rooted collectives, else [1] */
};

struct tti_choice_entry {
	struct tti_program_set *set;
	size_t slice_bytes;
};

enum tti_comm_state {
	TTI_COMM_INIT,
	TTI_COMM_READY,
	TTI_COMM_FINALIZED,
};

struct tti_comm {
	int rank, n;
	char name[64];
	int64_t timeout_ms; /* of a call, 0: none */
	char *algo;         /* pinned algorithms, NULL: none */
	_Atomic int state;  /* enum tti_comm_state */

	/* Fate: written once under `lock`; status and stop read by any thread. */
	_Atomic int stop;
	_Atomic int fate; /* a tutti_status <= TUTTI_STATUS_LOST, or 0 */
	pthread_mutex_t lock;
	char error[TTI_ERROR_TEXT];     /* last error of any call, under lock   */
	char error_out[TTI_ERROR_TEXT]; /* what tutti_last_error() handed out   */
	char fate_text[TTI_ERROR_TEXT];

	/* Init on a thread of its own (nonblocking, or inside a group). */
	bool has_init_thread;
	pthread_t init_thread;
	_Atomic int init_status; /* TUTTI_AGAIN while it runs */

	struct tti_boot *boot;
	bool watching;
	struct tti_port *ports[TTI_ENGINE_PORTS];
	int nports;
	uint8_t *port_of; /* [n] */
	char transport[32];
	int nhosts;
	bool crowded_here, crowded_somewhere;
	size_t slot_bytes, inline_bytes; /* the smallest of the ports */
	struct tti_plan *plan;           /* NULL: there was nothing to choose                */
	struct tti_shape *shape;         /* how programs lie over the ranks; NULL: by number */
	struct tti_tuning tuning;
	struct tti_engine engine;
	bool has_engine;

	_Atomic(const char *) last_algorithm; /* for those who ask */

	/* Turns: tickets of calls made, calls done; turn is a futex word. */
	_Atomic uint64_t issued, done;
	_Atomic uint32_t turn, turn_waiters;

	/* The executing thread's. */
	uint64_t seq;
	struct tti_choice_entry choice[TUTTI_COLLECTIVE_COUNT][TTI_SIZE_CLASSES];
	struct tti_program_set sets[TTI_MOST_SETS];
	int nsets;

	struct tti_current_call current;
	struct tti_stall stall;
};

/* -- handle.c: what the user holds ---------------------------------------- */

/* A handle outlives its communicator: it is never given back to the heap, so that
 * a call on a destroyed one is an error and not a crash. */
struct tutti_comm {
	_Atomic(struct tti_comm *) comm;
	_Atomic int users;       /* calls that are looking at comm */
	struct tutti_comm *next; /* free handles, oldest first */
};

TUTTI_CHECKED tutti_status tti_handle_create(struct tti_comm *comm, struct tutti_comm **out);
void tti_handle_free(struct tutti_comm *handle);

/* The communicator of a handle, of any state, to be given back with leave(): it is not
 * freed before. TUTTI_EINVAL: NULL; TUTTI_EUSAGE: destroyed; then there is nothing to
 * give back. */
TUTTI_CHECKED tutti_status tti_handle_enter(struct tutti_comm *handle, struct tti_comm **out);
void tti_handle_leave(struct tutti_comm *handle);

/* Take the communicator out of the handle, to free it: no call gets it any more, and
 * those that have it have left. NULL: another thread was first. */
struct tti_comm *tti_handle_take(struct tutti_comm *handle);

/* -- comm.c: fate, errors, turns ------------------------------------------ */

struct tti_comm *tti_comm_create(int rank, int n, const tutti_config *config);
/* Ends the watch, closes links and ports, frees. Half-built is fine. */
void tti_comm_free(struct tti_comm *comm);

/* The communicator is lost; the first news wins. Any thread. */
void tti_comm_lose(struct tti_comm *comm, tutti_status status, const char *text);

/* Tell everybody, this rank included. */
void tti_comm_tell(struct tti_comm *comm, tutti_status status, int culprit, const char *text);

/* Keep this thread's error text as the communicator's; returns `status`. */
tutti_status tti_comm_note(struct tti_comm *comm, tutti_status status);

/* The status and text of a lost communicator as this thread's error. */
tutti_status tti_comm_fate(struct tti_comm *comm);

/* TUTTI_OK if calls are allowed now: init done, not finalized, not lost. Does not wait
 * for an init that is under way: TUTTI_EUSAGE. */
TUTTI_CHECKED tutti_status tti_comm_usable(struct tti_comm *comm);

uint64_t tti_turn_take(struct tti_comm *comm);
/* Until all before are done. */
void tti_turn_wait(struct tti_comm *comm, uint64_t ticket);
void tti_turn_done(struct tti_comm *comm);

/* -- setup.c ---------------------------------------------------------------- */

/* Roll call, transports, topologies, plan, engine, watch. `boot` was connected, which
 * began at began_ns, and is taken over. */
TUTTI_CHECKED tutti_status tti_comm_setup(struct tti_comm *comm, struct tti_boot *boot,
					  const tutti_config *config, int64_t began_ns);

/* -- programs.c ------------------------------------------------------------- */

/* The program for a call of `nbytes` (whole vector), bound, and its slice. */
TUTTI_CHECKED tutti_status tti_programs_get(struct tti_comm *comm, tutti_collective coll, int root,
					    size_t nbytes, struct tti_bound **out,
					    size_t *slice_bytes);
void tti_programs_release(struct tti_comm *comm);

/* -- call.c ----------------------------------------------------------------- */

TUTTI_CHECKED tutti_status tti_args_check(const struct tti_comm *comm, const struct tti_args *args);

/* Several calls that run together: those of one communicator in order, all its
 * sends and receives first and at once; communicators side by side. */
struct tti_batch_item {
	struct tti_comm *comm;
	uint64_t ticket;
	struct tti_args *args; /* [nargs], transfers first */
	int nargs, ntransfers;
	struct tti_transfer *transfers; /* [ntransfers], and room for heads */
	int32_t *heads;
	tutti_status status;
};

/* Run one collective now: the turn is the caller's. */
tutti_status tti_call_run(struct tti_comm *comm, const struct tti_args *args);

/* Run all items (turns are waited for and given back); the first error. */
tutti_status tti_batch_run(struct tti_batch_item *items, int n);

/* All of a call but buffers and count in one number, and back. */
static inline uint64_t tti_args_shape(const struct tti_args *args)
{
	return (uint64_t)args->coll | (uint64_t)args->type << 8 | (uint64_t)args->op << 16 |
	       (uint64_t)args->is_send << 24 | (uint64_t)(uint32_t)args->root << 32;
}

static inline struct tti_args tti_args_of_shape(uint64_t shape, size_t count)
{
	return (struct tti_args){ .coll = (tutti_collective)(shape & 0xff),
				  .count = count,
				  .type = (tutti_type)(shape >> 8 & 0xff),
				  .op = (tutti_op)(shape >> 16 & 0xff),
				  .root = (int)(uint32_t)(shape >> 32),
				  .is_send = shape >> 24 & 1 };
}

/* A human's view of a call: "all_reduce(1024 x float32, sum)". */
void tti_args_format(const struct tti_args *args, char *buf, size_t size);

/* -- stall.c: why does a call not end --------------------------------------- */

tutti_status tti_stall_on_wait(void *comm, int64_t since_ns, int peer);
void tti_stall_on_ask(void *comm, struct tti_call *out);
void tti_stall_on_answer(void *comm, int peer, const struct tti_call *call);
void tti_stall_on_lost(void *comm, const struct tti_news *news);

/* Messages of `peer` belong to another call: find out which, tell everybody. */
tutti_status tti_stall_mismatch(struct tti_comm *comm, int peer);

/* A port failed: wait a moment for news that say why, else tell everybody. */
tutti_status tti_stall_port_failed(struct tti_comm *comm, tutti_status status);

#endif
