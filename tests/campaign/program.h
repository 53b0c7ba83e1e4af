/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CAMPAIGN_PROGRAM_H
#define TESTS_CAMPAIGN_PROGRAM_H

/* A random program of calls: what ranks do in which order, as it follows from a seed on all of them.
 *
 * All ranks take the same steps. A step waits for earlier steps alone, so the program cannot hang,
 * whichever streams a rank takes and whenever it waits for them, which each rank draws for itself.
 *
 * Threads: each rank has a program of its own. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/calls.h"

#define PROGRAM_RANKS    6
#define PROGRAM_COMMS    5                 /* at a time */
#define PROGRAM_GRAPHS   3                 /* at a time */
#define PROGRAM_ITEMS    5                 /* of a group */
#define PROGRAM_MESSAGES 8                 /* of an exchange */
#define PROGRAM_BYTES    ((size_t)1 << 20) /* of the buffers of a call on a rank, at most */
#define WINDOW_BYTES     ((size_t)40000)   /* that a rank puts, at most */

/* Where ranks are. */
struct setting {
	int n, nprocesses;
	bool has_devices;
	int process[PROGRAM_RANKS]; /* of each rank; a process has ranks that follow each other */
	bool is_crowd
		[PROGRAM_RANKS];   /* one thread of the process makes the calls of all its ranks */
	bool has_crowd;            /* any */
	int device[PROGRAM_RANKS]; /* -1: none */
	const char *variables[8];  /* "A=1", ..., NULL: of all processes */
	bool has_hosts;            /* each process believes to be on a host of its own */
	bool has_windows;          /* they are possible over these transports */
};

struct message_of {
	int from, to; /* of the communicator */
	size_t nbytes;
};

/* What is waited for as one: a collective, or sends and receives. */
struct item {
	int comm;
	bool is_exchange;
	struct call call;
	struct message_of message[PROGRAM_MESSAGES];
	int nmessages;
	uint64_t seed;
};

enum step_kind {
	STEP_CALLS,   /* one item, or a group of them               */
	STEP_CAPTURE, /* the items become a graph                   */
	STEP_REPLAY,  /* `times` times                              */
	STEP_DROP,    /* the end of a graph                         */
	STEP_WINDOW_MAKE,
	STEP_WINDOW_USE,
	STEP_WINDOW_END,
	STEP_MAKE, /* a communicator of another                  */
	STEP_END,  /* of a communicator, its graphs and window   */
	STEPS,
};
extern const char *const step_names[STEPS];

enum making { BY_SPLIT, BY_DUP, BY_SHRINK, BY_GROUP, MAKINGS };

struct step {
	enum step_kind kind;
	struct item item[PROGRAM_ITEMS];
	int nitems;
	bool is_group;
	/* All wait for the items before the next step, as they have operators of the program's, which
	 * all ranks make and destroy in one order. */
	bool is_awaited;
	int graph, times;
	int comm;
	/* STEP_MAKE: `comm` is the parent. */
	enum making how;
	int child, color[PROGRAM_RANKS], key[PROGRAM_RANKS];
	int ranks[PROGRAM_RANKS], nranks; /* of the parent: members, or who is left out */
	bool is_blocking;
	bool is_finalized; /* STEP_END */
	/* STEP_WINDOW_USE: each rank puts to the one that is so much further. */
	int by;
	size_t nbytes;
	uint64_t seed;
};

/* A communicator, or several that one split has made: members are those of each rank. */
struct model_comm {
	bool exists, has_window;
	int group[PROGRAM_RANKS]; /* of each rank: which of several; -1: in none */
	int n[PROGRAM_RANKS];     /* of each rank: how many are in its own         */
	int place[PROGRAM_RANKS]; /* of each rank: its number there                */
};

struct model_graph {
	bool exists, is_once;
	bool has_comm[PROGRAM_COMMS];
};

struct program {
	struct setting setting;
	struct model_comm comm[PROGRAM_COMMS];
	struct model_graph graph[PROGRAM_GRAPHS];
	uint64_t random;
};

uint64_t program_draw(uint64_t *random, uint64_t below);

void program_init(struct program *program, uint64_t seed, bool has_devices);
/* The next one. The model is as it is after it. */
void program_next(struct program *program, struct step *out);

#endif
