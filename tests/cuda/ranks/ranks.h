/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CUDA_RANKS_H
#define TESTS_CUDA_RANKS_H

/* Ranks with devices on the driver of the host: as threads of this process, or as processes. What a
 * test does with variables of its own it does in a child, which has read none yet and has no driver.
 *
 * Owner: ranks_end(). Threads: the test's. */

#include "core/comm.h"
#include "core/device/device.h"
#include "tutti/tutti.h"

#define RANKS_MOST 8
#define NO_DEVICE  (-1)

struct ranks {
	int n;
	tutti_comm_t comm[RANKS_MOST]; /* NULL where that failed */
	tutti_status status[RANKS_MOST];
	char text[RANKS_MOST][512]; /* of the error */
};

/* devices[n]: NO_DEVICE for a rank that asks for none. Fails the test unless all succeed, or all
 * fail and `may_fail`. */
void ranks_make(struct ranks *ranks, int n, const int *devices, bool may_fail);
void ranks_end(struct ranks *ranks);
/* fn(comm, rank) on a thread for each. */
void ranks_do(struct ranks *ranks, void (*fn)(tutti_comm_t comm, int rank));

/* The inside of a communicator; it stays while the handle does. */
struct tti_comm *ranks_inside(tutti_comm_t handle);

/* Lanes from this rank to all others, made by the thread that makes its calls. */
tutti_status ranks_connect(struct tti_comm *comm);
/* What each rank writes into its lanes arrives at the other end, of every block; all ranks of a
 * communicator whose lanes are made, of this process. */
void ranks_check_lanes(struct tti_comm *const *comms, int n);

/* Whether its kernels were told to end. */
bool ranks_are_stopped(struct tti_comm *comm);

/* Write a counter of the first block's lane to a peer, which may have ended. */
tutti_status ranks_write_to(const struct tti_comm *comm, int peer);

/* Nothing of a GPU is held in this process, but for libraries. */
void ranks_assert_nothing_held(void);

/* The same where ranks are processes: each writes its part, then all look at theirs. */
void ranks_write_lanes(const struct tti_comm *comm);
void ranks_look_at_lanes(const struct tti_comm *comm);

/* -- Processes --------------------------------------------------------------------- */

struct process {
	int rank;
	tutti_comm_t comm;
	struct tti_comm *inside;
	struct shared *shared;
};

/* All processes, but those that were killed, have come here as often. */
void process_meet(const struct process *process);

/* Which rank kills itself with SIGKILL when it calls process_die(); -1: none. */
struct processes {
	int n;
	const int *devices;
	const char *const *variables; /* "A=1", ..., NULL */
	/* Variable of its own for each rank, or NULL. */
	const char *own_variable;
	int victim;
	void (*fn)(const struct process *process);
};
/* Fails the test unless all end with success, but for the victim. Nothing may be held when fn has
 * returned and the communicator is destroyed. */
void processes_run(const struct processes *processes);
void process_die(const struct process *process);

/* fn in a child, with variables "A=1", ..., NULL; fails the test unless it ends with success. */
void in_child(void (*fn)(void), const char *const *variables);

#endif
