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

/* One rank in its process. */
struct actor {
	tutti_comm_t comm;
	int rank, n;
	/* Alike on all ranks. */
	size_t count;
	int root, step;

	/* Made by a step, kept for the next ones, destroyed by actor_release(). */
	tutti_comm_t child;
	tutti_window_t window;
	tutti_stream_t stream;
	int32_t *memory; /* of the window */

	/* Set by a step that fails: the communicator of the call, which has `child` or `comm`, or none. */
	bool in_child;
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

/* Whether its steps keep a window, which only all ranks together destroy. */
bool place_has_window(const struct place *place);

/* A sum over all ranks: what is called before and after anything else. */
tutti_status place_sum(struct actor *actor);

/* The number of a rank in the child that `split` makes on `actor`'s rank, -1: it is not in it. */
int place_number_in_child(const struct actor *actor, int rank);

#endif
