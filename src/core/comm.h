/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_COMM_H
#define TTI_CORE_COMM_H

/* The communicator: the one place where bootstrap, transports, programs and engine
 * meet. Only core includes this header.
 *
 * Order of calls: each call takes a sequence number when it is made and runs when all calls
 * before it are done, on the caller's thread (NULL stream) or on its stream's. So
 * all ranks run their calls in the order in which the program made them.
 *
 * End: the first bad news (a peer died, ranks called different things, abort, a
 * deadline) is its asynchronous error (comm_error.h): every call from then on returns it.
 *
 * Owner: the handle (handle.h). Threads: fields say. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "boot/watch/watch.h"
#include "coll/choose/choose.h"
#include "core/call/counts.h"
#include "core/call/layout.h"
#include "core/call/memory.h"
#include "core/call/operators.h"
#include "core/call/prepared.h"
#include "core/call/roots.h"
#include "core/call/timeout.h"
#include "core/call/transfers.h"
#include "core/handoff/handoff.h"
#include "core/init/agree.h"
#include "core/init/meeting.h"
#include "core/init/tuning.h"
#include "engine/engine.h"
#include "tutti/inspect.h"
#include "tutti/tutti.h"

#define TTI_ERROR_TEXT      1024
#define TTI_AGREEMENTS_KEPT 8
#define TTI_LISTS_KEPT      8 /* programs of sends and receives */

/* What a rank does in a call of the user's: some begin with calls of their own, under its number. */
enum tti_stage {
	TTI_STAGE_CALL,    /* the call itself                      */
	TTI_STAGE_ROOTS,   /* of a rooted one, with TUTTI_CHECK=1  */
	TTI_STAGE_SOURCES, /* of a handoff, with TUTTI_CHECK=1     */
	TTI_STAGE_VERDICT, /* of a handoff that is planned         */
	TTI_STAGE_SHAPE,
	TTI_STAGE_PROOFS,
	TTI_STAGES
};

/* One call as the user made it. Of a handoff `root` is a hash of its sides, which come as
 * the user passed them (from, to), and counted once the call is kept. */
struct tti_args {
	tutti_collective coll;
	const void *send;
	void *recv;
	size_t count;
	tutti_type type;
	tutti_op op;                 /* reproducible, if the communicator is, too */
	struct tti_operator *custom; /* of op; NULL: it is one of TUTTI_OP_MAP    */
	int root;                    /* or the peer of a send or receive */
	bool is_send;
	const tutti_side *from, *to;
	struct tti_sides *sides;
	/* Of calls with a count for each rank: in elements, the user's until the call is kept;
	 * NULL where this rank has none. Where all ranks have the same, `count` is their sum and
	 * `root` a hash of them. */
	const size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
	struct tti_counts *counts;
	/* As TUTTI_ALGO, of the communicator or of tutti_comm_set_algorithm() when the call was made; NULL:
	 * chosen. Alike texts of a communicator are one text. */
	const char *algo;
	/* The call of the user's that this one is a part of, and which ranks compare and are told
	 * of in its place; NULL: it is the user's. */
	const struct tti_args *part_of;
	enum tti_stage stage;
};

/* What the executing thread publishes about the current call, for on_ask: a
 * sequence lock, so that what is read belongs together. */
struct tti_current_call {
	_Atomic uint32_t version, running;
	_Atomic uint32_t stage; /* enum tti_stage */
	_Atomic uint64_t seq, signature, count;
	_Atomic uint64_t shape; /* tti_args_shape() */
	_Atomic uint64_t cut;   /* of its program, as tti_program_cut() packs it; 0: it has none */
	/* The last handoff, under comm->lock. */
	struct tti_sides *sides;
	uint64_t handoff_seq;
};

/* What is known about a rank that a call waits for. Under comm->lock. */
struct tti_stall {
	int suspect;       /* who was asked last, -1: nobody          */
	int64_t began_ns;  /* of the wait that this is about          */
	int64_t asked_ns;  /* since when the suspect is silent        */
	int64_t round_ns;  /* when a round of asking began last       */
	int64_t warned_ns; /* when the last warning was written       */
	bool answered;
	int hops;        /* along the chain of who waits for whom, this round */
	int left;        /* the suspect said goodbye: looks since then that found nothing */
	int64_t left_ns; /* since when these were enough; 0: they are not */
};

/* A program, found by what it was made of: a struct tti_program_key, the steps of a list of sends
 * and receives, or the parts of a handoff (handoff.h). */
struct tti_program_kept {
	tutti_collective coll;
	void *key;
	size_t key_bytes;
	uint64_t used; /* when last */
	struct tti_bound *bound;
};

/* No padding: keys are compared byte by byte. */
struct tti_program_key {
	const struct tti_algorithm *algo;
	struct tti_cut cut;
	int32_t root, in_place;
};

/* What was chosen for calls of some kind and size class. */
struct tti_choice_kept {
	uint64_t key;
	const char *algo; /* of the calls */
	struct tti_choice choice;
	uint64_t hash; /* of the choice: ranks that run together have the same */
};

struct tti_programs {
	TTI_VEC(struct tti_choice_kept) choices;
	TTI_VEC(struct tti_program_kept) kept;
	uint64_t uses;
};

enum tti_comm_state {
	TTI_COMM_INIT,
	TTI_COMM_READY,
	TTI_COMM_FINALIZED,
	TTI_COMM_ZOMBIE, /* only its bootstrap lives on, for its children */
};

/* What went wrong on a communicator, in words: made with the first of them, as most have
 * none. */
struct tti_comm_texts {
	char last[TTI_ERROR_TEXT];
	char async_error[TTI_ERROR_TEXT];
	char out[TTI_ERROR_TEXT]; /* the copy of `last` that tutti_last_error() handed out */
};

struct tti_comm {
	int rank, n;
	char name[64];
	struct tti_timeouts timeouts; /* of calls; under lock */
	struct tti_timeout boot_timeout;
	int64_t config_boot_timeout_ms;
	char *algo;                      /* pinned algorithms, NULL: none */
	_Atomic(const char *) call_algo; /* those of calls that are made now */
	TTI_VEC(char *) algos;           /* all others that calls had; under lock */
	char *transports;                /* as they were asked for        */
	bool reproducible;               /* all reductions                */
	bool encrypt;                    /* what goes over TCP            */
	int traffic_class;               /* of data there, 0: the system's */
	_Atomic int state;               /* enum tti_comm_state */

	/* Children that wait for other ranks of this one, under its lock: see tti_comm_follow(). */
	struct tti_comm *followers, *next_follower;
	bool follows_deaths;
	/* Written once under `lock`; status and stop read by any thread. */
	_Atomic int stop;
	_Atomic int async_error;           /* a tutti_status <= TUTTI_STATUS_LOST, or 0 */
	_Atomic bool async_error_is_known; /* a call has returned it */
	pthread_mutex_t lock;
	struct tti_comm_texts *texts; /* under lock; NULL: there was no error */

	/* Init on a thread of its own (nonblocking, or inside a group). */
	bool has_init_thread;
	pthread_t init_thread;
	_Atomic int init_status; /* TUTTI_AGAIN while it runs */

	/* Descent (child.h). The root is the first of all, maybe this one. */
	struct tti_comm *root;
	_Atomic int users; /* of a root: itself and all that descend from it */
	int *in_root;      /* [n]: which rank of the root each one is; NULL: it is the root */
	uint64_t context;  /* its number among them, 0: it is the root       */
	uint64_t nsplits;  /* made of it so far; who makes calls counts      */
	uint64_t nshrinks, nagreement_calls, ngrows;
	struct tti_callers *callers; /* under lock; NULL: it made none of some ranks yet */
	/* Of a root: agreements whose decision a rank may still ask for, under lock. */
	struct tti_agreement *agreements[TTI_AGREEMENTS_KEPT];
	unsigned nagreements;

	struct tti_boot *boot;
	bool watching;
	struct tti_port *ports[TTI_ENGINE_PORTS];
	int nports;
	uint8_t *port_of;          /* [n] */
	int *host_of;              /* [n]: the lowest rank that shares memory with each */
	struct tti_wiring *wiring; /* what handoffs are planned by; NULL: not known */
	char transport[32];
	int nhosts;
	bool crowded_here, crowded_somewhere;
	struct tti_reach_figures figures; /* of its ports; zeroed: none measured */
	bool is_outsider;           /* a split left this rank out: the handle is the group's */
	size_t slot_bytes;          /* the smallest of the ports */
	struct tti_nic_names *nics; /* which this rank should begin with; NULL: any     */
	struct tti_nic_wires wires; /* by which it talks to neighbours in channels      */
	struct tti_plan *plan;      /* NULL: there was nothing to choose, or a child    */
	struct tti_shape *shape;    /* how programs lie over the ranks; NULL: by number */
	struct tti_tuning tuning;
	struct tti_engine engine;
	bool has_engine;
	struct tti_memory memory;
	bool may_tcp;                             /* among the transports asked for */
	TTI_VEC(struct tutti_window *) windows;   /* under lock                     */
	TTI_VEC(struct tutti_channel *) channels; /* of messages, under lock      */

	_Atomic(const char *) last_algorithm; /* for those who ask */

	/* Calls made, calls done (sequence.h); a futex word for those that wait. */
	_Atomic uint64_t issued, done;
	_Atomic uint32_t sequence_word, sequence_waiters;
	/* A call of the user's is under way, which has this address on its stack; NULL: none is. */
	_Atomic(const void *) in_call;

	/* The executing thread's. */
	uint64_t seq;
	struct tti_programs programs;
	struct tti_prepared_calls *prepared; /* NULL: there was no call yet */
	struct tti_operator_list operators;
	struct tti_handoff_kept *handoffs; /* [TTI_HANDOFFS_KEPT]; NULL: there was none yet */
	struct tti_transfers transfers;
	struct tti_roots roots;
	struct tti_extents extents;

	struct tti_current_call current;
	struct tti_stall stall;
	struct tti_call *answer; /* the last one to it, under lock; NULL: there was none yet */
};

/* -- init.c ----------------------------------------------------------------- */

/* TUTTI_EINVAL: what is wrong with it. NULL is fine. */
TUTTI_CHECKED tutti_status tti_config_check(const tutti_config *config);

/* tutti_comm_init_rank_config() with an id that others read from a file of this rank, NULL: there is
 * none. The meeting is taken over, and closed when all have come or the init has failed. Errors name
 * the file `secret_path`, if it is not "": it has the secret that the ranks prove. */
TUTTI_CHECKED tutti_status tti_comm_init_met(tutti_comm_t *out, int nranks, int rank,
					     const tutti_unique_id *id, struct tti_meeting *meeting,
					     const char *secret_path, const tutti_config *config);

/* -- setup.c ---------------------------------------------------------------- */

/* Roll call, transports, topologies, plan, engine, watch. `boot` was connected, which
 * began at began_ns, and is taken over. Of a child, parent's ranks ranks[0 .. n-1], roll
 * call and plan are derived from those of the root; else `parent` is NULL. */
TUTTI_CHECKED tutti_status tti_comm_setup(struct tti_comm *comm, struct tti_boot *boot,
					  const tutti_config *config, const struct tti_comm *parent,
					  const int *ranks, int64_t began_ns);

/* How to open a port of a transport for this communicator. */
struct tti_port_config tti_port_config_of(const struct tti_comm *comm,
					  const struct tti_transport *transport);

/* -- programs.c ------------------------------------------------------------- */

/* Which program a call needs. */
struct tti_program_need {
	tutti_collective coll; /* one that has programs (coll/collective.h)               */
	int root;
	bool in_place;        /* of this rank, where it makes a difference                 */
	bool uneven;          /* rows have lengths of their own                            */
	enum tti_reach reach; /* how all ranks reach each other's buffers           */
	size_t nbytes;        /* of the whole vector                                */
	enum tti_order order;
	const char *algo; /* of its arguments */
};

/* How a program goes through the data: bytes of a step, parts, stripes, and how other ranks'
 * buffers are reached. */
enum tti_program_reach { TTI_BY_SLOTS, TTI_BY_MEMORY, TTI_BY_MEMORY_PINNED, TTI_BY_COPIES };
static inline uint64_t tti_program_cut(size_t slice_bytes, struct tti_cut cut,
				       enum tti_program_reach reach)
{
	return (uint64_t)slice_bytes << 26 | (uint64_t)(cut.parts & 0xfff) << 14 |
	       (uint64_t)(cut.stripes & 0xfff) << 2 | reach;
}

/* The program, and what it was chosen by: until the next choice. */
TUTTI_CHECKED tutti_status tti_programs_get(struct tti_comm *comm,
					    const struct tti_program_need *need,
					    const struct tti_choice_kept **choice_out,
					    struct tti_bound **out);
/* How long such a call should take by messages. It looks at nothing that calls change. TUTTI_EUNSUPPORTED:
 * its algorithm is one that there is no model of. */
TUTTI_CHECKED tutti_status tti_programs_predict(const struct tti_comm *comm,
						const struct tti_program_need *need,
						struct tti_tune_time *out);
void tti_programs_release(struct tti_comm *comm);

/* The program that is kept by such a key; NULL: there is none. */
struct tti_bound *tti_programs_find(struct tti_comm *comm, tutti_collective coll, const void *key,
				    size_t key_bytes);
/* Bind a program, and keep it: for the life of the communicator, but of sends and receives, and of
 * handoffs, until TTI_LISTS_KEPT, or TTI_HANDOFF_PROGRAMS_KEPT, others were used since. Takes *prog
 * over. */
TUTTI_CHECKED tutti_status tti_programs_add(struct tti_comm *comm, const void *key,
					    size_t key_bytes, struct tti_program *prog,
					    struct tti_bound **out);
/* Compile a program, which it takes over, and bind it to links. */
TUTTI_CHECKED tutti_status tti_programs_bind(struct tti_comm *comm, struct tti_program *prog,
					     struct tti_bound **out);

/* -- call.c ----------------------------------------------------------------- */

/* Of a call that reduces, which is reproducible if the communicator is; the other arguments
 * are not looked at. */
TUTTI_CHECKED tutti_status tti_args_find_operator(const struct tti_comm *comm,
						  struct tti_args *args);
TUTTI_CHECKED tutti_status tti_args_check(const struct tti_comm *comm, const struct tti_args *args);

/* Whether send and receive buffer are one. */
bool tti_args_in_place(const struct tti_comm *comm, const struct tti_args *args);

/* Which elements this rank reads at send, or writes at recv: all from the first to the last. */
void tti_args_range(const struct tti_comm *comm, const struct tti_args *args, bool is_send,
		    struct tti_range *out);

/* Several calls that run together: those of one communicator in order, all its
 * sends and receives first and at once; communicators side by side. */
struct tti_batch_item {
	struct tti_comm *comm;
	uint64_t seqno;
	struct tti_args *args; /* [nargs], transfers first */
	int nargs, ntransfers;
	/* The collective of the round that runs; NULL: its sends and receives, or there is none left. */
	const struct tti_args *now;
	tutti_status status;
};

/* Run a call that was prepared for such arguments (prepared.h), now: the turn is the caller's. */
tutti_status tti_call_run_prepared(struct tti_comm *comm, const struct tti_args *args,
				   struct tti_prepared *call);
/* Run one call in its turn, which the caller gives back. `call`: as it was prepared for such
 * arguments (prepared.h); NULL: it was not. */
tutti_status tti_call_run(struct tti_comm *comm, uint64_t seqno, const struct tti_args *args,
			  struct tti_prepared *call);
/* The signature of a call of all ranks, and what of its arguments is in it. */
uint64_t tti_call_signature(uint64_t seq, uint64_t part);
uint64_t tti_call_signature_part(const struct tti_args *args);
/* The tag of the messages of a send and its receive. */
uint64_t tti_call_transfer_tag(const struct tti_args *args);

/* Run all items (turns are waited for and given back); the first error. */
tutti_status tti_batch_run(struct tti_batch_item *items, int n);
/* The same where the turns are the caller's: each item has its status. */
void tti_batch_rounds(struct tti_batch_item *items, int n);

/* What a call that is kept for later holds on to. */
struct tti_args tti_args_take(const struct tti_args *args);
void tti_args_drop(const struct tti_args *args);

/* What ranks compare of the count: 0 where each has its own. */
static inline size_t tti_args_common_count(const struct tti_args *args)
{
	return tti_is_by_pairs(args->coll) ? 0 : args->count;
}

/* All of a call but buffers and count in one number, and back. */
static inline uint64_t tti_args_shape(const struct tti_args *args)
{
	return (uint64_t)args->coll | (uint64_t)args->type << 8 | (uint64_t)args->op << 16 |
	       (uint64_t)args->is_send << 31 | (uint64_t)(uint32_t)args->root << 32;
}

static inline struct tti_args tti_args_of_shape(uint64_t shape, size_t count)
{
	return (struct tti_args){ .coll = (tutti_collective)(shape & 0xff),
				  .count = count,
				  .type = (tutti_type)(shape >> 8 & 0xff),
				  .op = (tutti_op)(shape >> 16 & ((1 << TTI_OP_BITS) - 1)),
				  .root = (int)(uint32_t)(shape >> 32),
				  .is_send = shape >> 31 & 1 };
}

/* What a rank that measures its link to `peer` says it is doing, as a shape. */
#define TTI_PING_COLL 0xff
static inline uint64_t tti_ping_shape(int peer)
{
	return TTI_PING_COLL | (uint64_t)(uint32_t)peer << 32;
}

/* Around what is no call of all ranks: tell those who ask what this one does; what a
 * failure means for the communicator. */
void tti_call_begin(struct tti_comm *comm, uint64_t shape);
void tti_call_end(struct tti_comm *comm);
tutti_status tti_call_settle(struct tti_comm *comm, tutti_status status, int mismatch_peer);

/* A human's view of a call: "all_reduce(1024 x float32, sum)". `sides`: of a handoff. */
void tti_args_format(const struct tti_args *args, const char *sides, char *buf, size_t size);

/* -- stall.c: why does a call not end --------------------------------------- */

tutti_status tti_stall_on_wait(void *comm, int64_t since_ns, int peer);
void tti_stall_on_ask(void *comm, struct tti_call *out);
void tti_stall_on_answer(void *comm, int peer, const struct tti_call *call);
void tti_stall_on_lost(void *comm, const struct tti_failure *failure);

/* Messages of `peer` belong to another call: find out which, tell everybody. `expected`: what
 * else may be wrong, if the peer is in this very call; or NULL. */
tutti_status tti_stall_mismatch(struct tti_comm *comm, int peer, const char *expected);

/* Give news some time to come in, as a connection broke; whether the communicator is lost by
 * then. `user`: the one whose end ends this one, too, and is as good a reason; NULL: there is none. */
bool tti_stall_await_news(const struct tti_comm *comm, const struct tti_comm *user);

/* Whether something of a rank that has left since `left_ns` may be on its way. */
bool tti_stall_may_still_come(const struct tti_comm *comm, int peer, int64_t left_ns);

/* What a port says of its failure, with the name of the peer: a transport knows its number alone. */
void tti_stall_name_failure(const struct tti_comm *comm, int peer, const char *failure, char *buf,
			    size_t size);

/* A port failed: wait a moment for news that say why, else tell everybody. */
tutti_status tti_stall_port_failed(struct tti_comm *comm, struct tti_comm *user,
				   tutti_status status);

#endif
