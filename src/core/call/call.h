/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_CALL_H
#define TTI_CORE_CALL_CALL_H

/* From a user's call to a job of the engine.
 *
 * Threads: the one that executes the calls of the communicator. */

#include <stdbool.h>
#include <stdint.h>

#include "core/device/flight.h"
#include "tutti/tutti.h"

struct tti_args;
struct tti_call_room;
struct tti_comm;
struct tti_prepared;
struct tti_running_call;

/* The stream of a call in a group. Streams are ordered by their first calls. */
struct tti_call_place {
	tutti_stream_t stream;
	size_t order;
};

/* The calls of one communicator in a group. */
struct tti_call_item {
	struct tti_comm *comm;
	uint64_t seqno;
	struct tti_args *args;              /* [nargs], stream by stream, transfers of each first */
	const struct tti_call_place *place; /* [nargs]; NULL: all are on one stream */
	int nargs, nbegun;
	/* What runs now: one collective, or so many sends and receives; 0: nothing. */
	const struct tti_args *now;
	int nnow;
	struct tti_running_call *run; /* while it does */
	struct tti_staged *staged;    /* NULL: its buffers are the program's */
	/* In a stream of the program: which, who is told, calls that were launched, and what counts
	 * their end. */
	struct tti_flight_stream to;
	struct tti_flight_told told;
	int nlaunched;
	struct tti_landing *landing;
	tutti_status status;
};

/* Run a call that was prepared for such arguments (prepared.h), now: those before it are done. */
tutti_status tti_call_run_prepared(struct tti_comm *comm, const struct tti_args *args,
				   struct tti_prepared *call);
/* Run one call when those before it are done, but do not count it as done. `call`: as it was
 * prepared for such arguments (prepared.h); NULL: it was not. No handoffs (batch.h). */
tutti_status tti_call_run(struct tti_comm *comm, uint64_t seqno, const struct tti_args *args,
			  struct tti_prepared *call);

/* Room to run calls of n communicators side by side: one allocation, tti_free(); NULL: out of
 * memory. */
struct tti_call_room *tti_call_room_create(int n);
/* Run side by side what items[i].now are. An item that has failed is left alone. `room`: for n;
 * may be NULL for one. */
void tti_call_run_all(struct tti_call_item *items, int n, struct tti_call_room *room);
/* This rank, alone, has no memory for a call: the others wait for it, so they are notified. */
tutti_status tti_call_fail_alone(struct tti_comm *comm, const struct tti_args *args,
				 tutti_status status);

/* -- On devices (core/device) ---------------------------------------------------------- */

/* Whether a call runs in a kernel. What the library calls for itself is in memory of the host, and
 * functions of the program run on the host (staged.h). */
bool tti_call_is_on_device(const struct tti_comm *comm, const struct tti_args *args);

/* As tti_call_run_all(), for ranks with devices, in streams of CUDA of the program (items[i].to): the
 * calls go on when this returns, and items[i].told is told of each. */
void tti_call_launch_all(struct tti_call_item *items, int n, struct tti_call_room *room);
/* Until nothing of the communicator runs on the device: its links are free. */
void tti_call_await_turn(const struct tti_call_item *item);

/* A call that was launched: ranks that ask are told of it from now on; its job is over, as the thread
 * that waited for it says. */
void tti_call_show(struct tti_comm *comm, const struct tti_flight_call *call);
tutti_status tti_call_finish(struct tti_comm *comm, const struct tti_args *args, int n,
			     const struct tti_job *job, tutti_status status);

/* Ranks that ask are told of `args`, or of the user's call that they are a part of, with number `seq`. */
void tti_call_publish(struct tti_comm *comm, uint64_t seq, uint64_t sign, uint64_t split,
		      const struct tti_args *args);
/* Around what is no call of all ranks: ranks that ask are told of `packed` (args.h). */
void tti_call_begin(struct tti_comm *comm, uint64_t packed);
void tti_call_end(struct tti_comm *comm);

#endif
