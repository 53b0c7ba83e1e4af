/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_COMM_H
#define TTI_CORE_COMM_H

/* The communicator: the one place where bootstrap, transports, programs and engine
 * meet. lifetime.h makes and ends it, comm_error.h has its error state, sequence.h the order of its
 * calls.
 *
 * Owner: the handle (handle.h). Threads: fields say. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/call/current_call.h"
#include "core/call/roots.h"
#include "core/call/timeout.h"
#include "core/init/nics.h"
#include "core/init/tuning.h"
#include "core/prepare/layout.h"
#include "core/prepare/memory.h"
#include "core/prepare/operators.h"
#include "core/prepare/prepared.h"
#include "core/prepare/programs.h"
#include "core/prepare/transfers.h"
#include "core/stall.h"
#include "engine/engine.h"
#include "tutti/tutti.h"
#include "util/vec.h"

#define TTI_ERROR_TEXT      1024
#define TTI_AGREEMENTS_KEPT 8

struct tti_boot;
struct tti_call;
struct tti_callers;
struct tti_device;
struct tti_devices;
struct tti_agreement;
struct tti_handoff_kept;
struct tti_plan;
struct tti_prepared_calls;
struct tti_shape;
struct tti_wiring;
struct tutti_channel;
struct tutti_window;

enum tti_comm_state {
	TTI_COMM_INIT,
	TTI_COMM_READY,
	TTI_COMM_FINALIZED,
	TTI_COMM_ZOMBIE, /* only its bootstrap lives on, for its children */
};

/* The texts of a communicator's errors. Allocated with the first error, as most communicators have
 * none. */
struct tti_comm_texts {
	char last[TTI_ERROR_TEXT];
	char async_error[TTI_ERROR_TEXT];
	char out[TTI_ERROR_TEXT]; /* the copy of `last` that tutti_last_error() handed out */
};

/* How often it was shrunk by name, for each list of ranks that was left: those that are left out do
 * not count with them. `first` is there without memory (shrink.c). */
struct tti_shrink_count {
	uint64_t ranks, times; /* a hash of the ranks */
};
struct tti_shrinks {
	struct tti_shrink_count first;
	TTI_VEC(struct tti_shrink_count) others;
};

struct tti_comm {
	int rank, n;
	char name[64];
	struct tti_timeouts timeouts; /* of calls; under lock */
	struct tti_timeout boot_timeout;
	int64_t config_boot_timeout_ms;
	char *algo;                      /* forced algorithms, NULL: none */
	_Atomic(const char *) call_algo; /* of calls that are made now */
	TTI_VEC(char *) algos;           /* others that calls had; under lock */
	char *transports;                /* as they were asked for        */
	bool reproducible;               /* all reductions                */
	bool encrypt;                    /* what goes over TCP            */
	int traffic_class;               /* of data there, 0: the system's */
	_Atomic int state;               /* enum tti_comm_state */

	/* Children whose making waits for other ranks of this one (follow.h); under its lock. */
	struct tti_comm *followers, *next_follower;
	bool follows_deaths;
	/* Written once under `lock`; any thread reads `stop` and the status. */
	_Atomic int stop;
	_Atomic int async_error;           /* a tutti_status <= TUTTI_STATUS_LOST, or 0 */
	_Atomic bool async_error_is_known; /* a call has returned it */
	pthread_mutex_t lock;
	struct tti_comm_texts *texts; /* under lock; NULL: there was no error */

	/* Init on a thread of its own (nonblocking, or inside a group). */
	bool has_init_thread;
	pthread_t init_thread;
	_Atomic int init_status; /* TUTTI_AGAIN while it runs */

	/* Descent (child.h). The root is the first communicator of the family, maybe this one. */
	struct tti_comm *root;
	_Atomic int users; /* of a root: its family, with itself */
	int *in_root;      /* [n]: which rank of the root each one is; NULL: it is the root */
	uint64_t context;  /* its number among them, 0: it is the root       */
	uint64_t nsplits;  /* made of it so far; counted by the thread that makes calls */
	uint64_t nagreement_calls, ngrows;
	struct tti_shrinks shrinks;
	struct tti_callers *callers; /* under lock; NULL: no create_group yet */
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
	bool oversubscribed_here, oversubscribed_somewhere;
	struct tti_reach_figures figures; /* of its ports; zeroed: none measured */
	bool is_outsider; /* a split left this rank out: the handle is the group's */
	/* Of a message of a call, at most, the same on all ranks; and of one that the engine moves,
	 * which is as much where no rank has a device: the smallest slot of the ports. */
	size_t slot_bytes, host_slot_bytes;
	struct tti_nic_names *nics; /* which this rank should begin with; NULL: any     */
	struct tti_nic_wires wires; /* by which it talks to neighbours in channels      */
	struct tti_plan *plan;      /* NULL: there was nothing to choose, or a child    */
	struct tti_shape *shape;    /* how programs lie over the ranks; NULL: by number */
	struct tti_tuning tuning;
	struct tti_engine engine;
	bool has_engine;
	struct tti_devices *devices; /* what ranks with GPUs have in common; NULL: none has one */
	struct tti_device *device;   /* of this rank; NULL: it has none */
	int device_wish;             /* config.device */
	struct tti_memory memory;
	bool may_tcp;                             /* among the transports asked for */
	TTI_VEC(struct tutti_window *) windows;   /* under lock                     */
	TTI_VEC(struct tutti_channel *) channels; /* of messages, under lock      */

	_Atomic(const char *) last_algorithm; /* of the last call; any thread reads it */

	/* Calls made, calls done (sequence.h); a futex word for those that wait. */
	_Atomic uint64_t issued, done;
	/* All before this number were launched on a device, or are done; of the thread that makes
	 * calls. */
	uint64_t launched;
	_Atomic uint32_t sequence_word, sequence_waiters;
	/* Who uses the links, where somebody looks after them between calls (tend.h). */
	bool is_tended;
	_Atomic uint32_t links_user; /* enum tti_links_user */
	struct tti_comm *next_tended;
	/* Of a root: those of its family that are tended. */
	struct tti_comm *tended;
	pthread_mutex_t tend_lock;
	/* The user's call that is under way: an address on its stack; NULL: none is. */
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
	struct tti_call *answer; /* of the last rank that was asked, under lock; NULL: none yet */
};

#endif
