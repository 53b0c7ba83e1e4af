/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CAMPAIGN_PLACES_H
#define TESTS_CAMPAIGN_PLACES_H

/* What the ranks of a round do, over and over, while one of them dies. What is received is compared
 * with what was sent. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

#define MOST_RANKS 8
#define MOST_COUNT 20000

/* One rank in its process. */
struct actor {
	tutti_comm_t comm;
	int rank, n;
	/* Alike on all ranks. */
	size_t count;
	int root, step;

	/* Made by a step, kept for the next ones, destroyed by actor_release(). */
	tutti_comm_t child;
	tutti_channel_t channel;
	tutti_window_t window;
	tutti_stream_t stream;
	int32_t *memory; /* of the window */

	/* The ranks of the child that a call is on, by their numbers there, where those are not as in
	 * `comm`. A step that fails leaves them as they are; 0 of them: it failed elsewhere. */
	int members[MOST_RANKS], nmembers;
	/* Set by a step: received data is not what was sent. */
	bool wrong;
};

void actor_release(struct actor *actor);

enum place_kind {
	PLACE_CALLS,    /* steps on a communicator that is up             */
	PLACE_INIT,     /* the death is while it is made                 */
	PLACE_GROW,     /* ... while new ranks join                      */
	PLACE_FINALIZE, /* ... while the others wait in tutti_comm_finalize() */
};

struct place {
	const char *name;
	enum place_kind kind;
	tutti_status (*step)(struct actor *actor);
};

extern const struct place places[];
extern const int nplaces;

/* Whether a rank may destroy what its steps keep while the others are in a step: no window, and no
 * channel on which all wait for whoever sends. */
bool place_may_leave(const struct place *place);

/* A sum over all ranks: what is called before and after anything else. */
tutti_status place_sum(struct actor *actor);

/* The number of a rank in the communicator of the call that failed on `actor`'s rank; -1: it is not
 * in it. */
int place_number(const struct actor *actor, int rank);

/* What is at `i` of the data that a rank sends in this step. */
int32_t place_input(const struct actor *actor, int rank, size_t i);

/* channels.c: messages to the next rank, which waits for them by name; to all others, by one thread,
 * while another one receives from whoever comes first; a channel for one message. */
tutti_status place_message(struct actor *actor);
tutti_status place_message_any(struct actor *actor);
tutti_status place_channel(struct actor *actor);

#endif
