/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_FLIGHT_H
#define TTI_CORE_DEVICE_FLIGHT_H

/* A call of a rank with a device, from its start to its end: a flight. Its program runs in a kernel.
 * For the host it is a job of the engine whose poll looks at what the kernel writes, and moves
 * messages between pinned memory and links where some peer is reached so (proxy.h).
 *
 *     tti_flight_start()     in place of tti_job_program()
 *     tti_flights_launch()   kernels of calls of several ranks, into a stream
 *
 * Then the thread that made the call waits for the job (tti_job_wait()), and
 *
 *     tti_flight_end()       takes the flight back;
 *
 * or the call is on a stream of the program, and
 *
 *     tti_flight_let_go()    leaves it to a thread of the communicator (landing.c), which waits for
 *                            one flight after the other.
 *
 * A flight whose stream is captured may be repeated at any time, without the host, until its graph
 * is gone. If it has messages for the proxy, its graph has a host function that says when they begin.
 * What graphs use outlives the communicator: where there are graphs when that ends, its kernels are
 * told to stop, and the device and its flights are freed after the last graph (open.h).
 *
 * Owner: the communicator. Threads: the one that makes calls, in the turn of the call
 * (tti_sequence_wait_launched()), but where it says otherwise. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/device/device.h"
#include "core/device/proxy.h"
#include "engine/engine.h"

struct tti_args;
struct tti_comm;
struct tti_executable;
struct tti_gpu_capture;
struct tti_prepared;

/* A call as it is numbered: what ranks that ask are told, and its end needs. */
struct tti_flight_call {
	struct tti_args *args; /* [nargs], the flight's: counted and copied */
	int nargs;
	uint64_t seq, sign, split;
};

/* Who is told of a flight that is let go: before, and of its end, on its thread. */
struct tti_flight_told {
	void (*begins)(void *self);
	void (*landed)(void *self, tutti_status status);
	void *self;
	const _Atomic int *awaited; /* threads that wait for it; outlives the flight */
};

enum tti_landing_kind {
	TTI_LANDING_ONCE,
	TTI_LANDING_RECORDED, /* a graph has it: nothing runs */
	TTI_LANDING_REPEATED, /* a graph runs it, and it has messages for the proxy */
	TTI_LANDING_COUNTED,  /* all flights of a call's number are over */
	TTI_LANDING_GONE,     /* no graph has it any more */
};

/* What the thread of landing.c does next. */
struct tti_landing {
	struct tti_landing *next;
	struct tti_comm *comm;
	struct tti_flight *flight; /* NULL: COUNTED */
	uint64_t order;            /* REPEATED: of its beginning */
	enum tti_landing_kind kind;
};

/* A program with its layout, as the kernel runs it. */
struct tti_flight_part {
	struct tti_dev_call call; /* what the kernel is told */
	struct tti_device_program *program;
	struct tti_device_room *extents; /* NULL: none */
};

struct tti_lent;

struct tti_flight {
	struct tti_flight *next; /* of those that are free, or over */
	struct tti_comm *comm;
	struct tti_flights *flights; /* also when the communicator is gone */
	struct tti_flight_part main;
	/* Of a memory program: what runs if the buffers of some rank are not reached; else its
	 * program is NULL. */
	struct tti_flight_part fallback;
	const struct tti_lent *lent[2]; /* where its buffers lie; NULL: nobody touches that one */
	int32_t *peers;                 /* [npeers]: of both programs; NULL: of the only one */
	int npeers;
	int type;         /* of the kernel; -1: nothing is reduced */
	uint64_t number;  /* that the kernel writes at its end */
	void *stream;     /* in which it is launched, and */
	uint64_t launch;  /* which launch of the process that is, from 1 */
	bool is_launched; /* so the kernel ends, or the device has failed */
	bool is_captured;
	bool has_messages; /* for the proxy */
	bool is_called;    /* its stream has the host function that says that it begins */
	_Atomic int begun; /* how often that was called */
	uint64_t order;    /* of the last time among all flights; under the lock */
	struct tti_proxy proxy;
	uint64_t *messages; /* [nmessages]: of each queue of the program */
	int32_t nmessages;
	/* The last look at what the kernel says of itself. */
	uint64_t where;
	int64_t looked_ns, examined_ns;
	/* If it is let go: */
	struct tti_job job;
	struct tti_flight_call shown;
	struct tti_flight_told told;
	bool is_shown; /* before its stream has come to it */
	struct tti_landing landing;
	struct tti_landing gone; /* from its graph */
};

/* The flights of a communicator. */
struct tti_flights {
	struct tti_flight *free;
	uint64_t number;
	struct tti_device_room *words; /* the kernel writes number << 8 | result there, 8 bytes */
	void *stream;                  /* of calls on no stream; NULL: not yet */
	/* The last launch in a stream of the program: the next one comes after it. */
	void *last;
	uint64_t last_number;
	bool has_last;
	void *checked; /* the last stream of the program that is of this GPU */
	bool has_checked;
	/* The same in a capture. */
	void *captured_last, *captured_event;
	uint64_t capture; /* its id; 0: none yet */

	/* Under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct tti_landing *first, **end;
	struct tti_flight *now; /* that the thread waits for; NULL: none */
	uint64_t nbegun;
	int nlandings;           /* of the list, and the one that the thread is at */
	struct tti_flight *over; /* ended, for the thread that makes calls */
	bool is_closing, is_closed;
	bool has_lost;             /* there was no memory to note what a graph repeats */
	struct tti_device *orphan; /* the communicator is gone: to be freed after the last graph */
	_Atomic int ncaptured;     /* flights that graphs have; any thread reads it */
	pthread_t thread;
	bool has_thread;

	/* Of circle.c. */
	struct tti_comm *of;
	struct tti_flights *next;
	bool has_warned; /* of its thread */
};

/* Start `executable` on the rank's device; arguments as of tti_job_program(). `args`: type and
 * operator; NULL: nothing is reduced. *job is ready to be launched, and its `self` is the flight. */
TUTTI_CHECKED tutti_status tti_flight_start(struct tti_comm *comm, struct tti_job *job,
					    struct tti_executable *executable,
					    const struct tti_layout *layout,
					    const struct tti_args *args, size_t slice_bytes,
					    uint64_t tag);
/* What peers touch of the buffers of a call; no bytes: nothing. */
struct tti_flight_buffers {
	uint64_t input, output;
	size_t input_bytes, output_bytes;
};

/* Before the flight of a job is launched: it goes by the memory program of its call, if there is one
 * and the buffers of all ranks are reached, and only else by the program that was started. An error
 * is the job's. */
void tti_flight_prefer_memory(struct tti_job *job, const struct tti_args *args,
			      const struct tti_prepared *prepared);

/* Whom it talks to; how many those are. */
int tti_flight_peers(const struct tti_flight *flight, const int32_t **out);

/* The flight of a job; NULL: the engine runs it. */
struct tti_flight *tti_flight_of(const struct tti_job *job);

/* Whether it has all lanes. If not, it may be launched only once all calls before it are done. */
bool tti_flight_has_lanes(const struct tti_flight *flight);

/* A stream of CUDA that is the program's. */
struct tti_flight_stream {
	void *cuda;
};

/* Before a call takes part in anything: TUTTI_EINVAL: the stream is of another GPU. */
TUTTI_CHECKED tutti_status tti_flight_check_stream(struct tti_comm *comm,
						   const struct tti_flight_stream *stream);

/* Launch those of n jobs that are flights and have not failed: those of one GPU and type together.
 * args[i]: of the call of job i, for ranks that ask while lanes are made. A flight that cannot be
 * launched has the error in its job's status. streams[i]: where; NULL: in streams of the library's,
 * and all calls before these are done. */
void tti_flights_launch(struct tti_job *const *jobs, const struct tti_args *const *args, int n,
			const struct tti_flight_stream *const *streams);

/* The job is over, and all ranks were told if it has failed. Wait until the kernel has ended too, and
 * take the flight back. */
void tti_flight_end(struct tti_flight *flight);

/* Which messages the proxy has to move, from the beginning. Any thread. */
TUTTI_CHECKED tutti_status tti_flight_set_proxy(struct tti_flight *flight);

/* Before its first call, as any thread may ask then whether calls are under way. tti_flights_free() ends it. */
TUTTI_CHECKED tutti_status tti_flights_create(struct tti_device *device);
/* Before a launch, in its turn: flights of the communicator can be let go. */
TUTTI_CHECKED tutti_status tti_flights_prepare(struct tti_comm *comm);
/* It was launched in a stream of the program, and flight->shown is set; `job` and `told` are copied. */
void tti_flight_let_go(struct tti_flight *flight, const struct tti_job *job,
		       const struct tti_flight_told *told);
/* All flights of a number were let go: once they are over the call is done (sequence.h). `landing` is
 * one of the heap, and no longer the caller's. */
void tti_flights_count(struct tti_comm *comm, struct tti_landing *landing);
/* Wait for all that were let go. */
void tti_flights_await(struct tti_comm *comm);
/* Wait until no kernel that has begun runs, also if a graph has launched it. A memory program that a graph
 * launches from now on ends at once. */
void tti_flights_end_graphs(struct tti_comm *comm);

/* When no call is left: the thread ends, and what graphs do not use is freed. */
void tti_flights_close(struct tti_comm *comm);
/* Then the rest, unless there are graphs: in that case false, and the device is buried (open.h) once
 * they are gone. */
bool tti_flights_free(struct tti_device *device);

/* Whether kernels of the rank's device reach a buffer of a call; the names are for texts. */
TUTTI_CHECKED tutti_status tti_device_check_buffer(const struct tti_device *device,
						   const char *call, const char *which,
						   uintptr_t buffer, size_t nbytes);

/* -- Between the files of flights ------------------------------------------------- */

/* Fill in a part of a flight, whose program is on the device (direct.c). */
TUTTI_CHECKED tutti_status tti_flight_fill(struct tti_flight *flight, struct tti_flight_part *part,
					   struct tti_executable *executable,
					   const struct tti_layout *layout,
					   const struct tti_args *args, size_t slice_bytes,
					   uint64_t tag);
/* What kernels of all flights share is there. */
TUTTI_CHECKED tutti_status tti_flights_make_ready(struct tti_device *device);
/* Free one that nobody uses. */
void tti_flight_release(struct tti_flight *flight);
/* Whether a block has found a message of another call: then the job ends with that. Any thread. */
bool tti_flight_has_mismatch(const struct tti_device *device, struct tti_job *job);

/* The thread's part: a kernel of the flight is about to begin. A thread of the driver. */
void tti_landing_begins(void *flight);
/* The number of the last flight whose kernel has ended. Any thread. */
uint64_t tti_flights_ended(const struct tti_flights *flights);
/* Wait until the kernel has ended, or cannot any more. Any thread. */
void tti_flight_await(struct tti_flight *flight);
/* A graph is to have the flight: before its launch. */
TUTTI_CHECKED tutti_status tti_flight_capture(struct tti_flight *flight,
					      const struct tti_gpu_capture *capture);
/* Whether two are ranks of one communicator, whose kernels wait for each other: each has a secret of its own. */
bool tti_flights_are_of_one(const struct tti_comm *a, const struct tti_comm *b);
/* Which peer the kernel waits for, -1: none. *where differs once it has gone on. Any thread. */
int tti_flight_waits_for(const struct tti_device *device, uint64_t *where);
/* Whether all blocks that wait for a peer have looked again, and found nothing, since this was last true.
 * Under the lock of the communicator. */
bool tti_flight_has_looked(struct tti_device *device, int peer);
/* What is over comes back to the list of free flights. */
void tti_flights_reap(struct tti_flights *flights);

#endif
