/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CAMPAIGN_RANKS_H
#define TESTS_CAMPAIGN_RANKS_H

/* The ranks of one round: processes that work until a call fails, and tell what they saw in memory
 * that they share with the driver, which is no rank. */

#include "campaign/places.h"

#include <sys/types.h>

#define MOST_VICTIMS 2

enum world { WORLD_SHM, WORLD_TCP, WORLD_BOTH, WORLD_ONE_CORE, NWORLDS };
extern const char *const world_names[NWORLDS];

/* Of the process of a rank, before its first call. */
void world_enter(enum world world, int rank);
const char *world_transport(enum world world);

/* How ranks end or are held up. */
enum how {
	HOW_KILLED,
	HOW_EXIT_NOW, /* exit status 0, at any moment                       */
	HOW_SEGV,
	HOW_TWO,     /* two are killed close together                       */
	HOW_EXITS,   /* exit(0) between two calls, communicators alive      */
	HOW_LEAVES,  /* destroys what it has between two calls, then exit(0) */
	HOW_ABORTS,  /* tutti_comm_abort() between two calls                */
	HOW_STOPPED, /* SIGSTOP for a while: nobody has died                 */
	NHOWS,
};

struct rank_state {
	pid_t pid;
	_Atomic int is_up,
		is_waiting; /* has its communicator; is in the call that the death is in */
	_Atomic long steps;
	_Atomic int64_t ended_ns; /* of a rank that ends by itself: just before      */
	_Atomic int status;       /* of the first call that failed                   */
	_Atomic int64_t failed_ns;
	_Atomic int is_over; /* all is released and looked at                       */
	bool wrong;
	/* Of the victims, in the communicator of the call that failed; -1: not in it. */
	int number[MOST_VICTIMS];
	char text[512], leaks[160];
};

struct room {
	const struct place *place;
	enum world world;
	enum how how;
	int n, nold; /* nold: there from the start; the others join by PLACE_GROW */
	int victim[MOST_VICTIMS], nvictims;
	size_t count;
	int root;
	tutti_unique_id id, new_id;
	_Atomic int has_id, go, has_new_id;
	_Atomic int ends;   /* the victim shall end by itself                    */
	_Atomic int enough; /* HOW_STOPPED: all have gone on                     */
	struct rank_state rank[MOST_RANKS];
};

/* The process of a rank; returns its exit status. */
int rank_run(struct room *room, int rank);

/* What a process holds: open descriptors, threads, mapped segments of the library. */
struct held {
	int fds, threads, segments;
};
struct held held_now(void);
/* The same, once the heap of the process is there, which stays. The environment is read by then. */
struct held held_first(void);

/* Whether it is no more than before, at once or soon; else `buf` says what is left. */
bool held_no_more(const struct held *before, char *buf, size_t size);

/* What a round draws: 0 to `below` - 1. */
uint64_t draw(uint64_t *state, uint64_t below);

int64_t now_ns(void);
void nap_us(int us);

#endif
