/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CAMPAIGN_TRAFFIC_H
#define TESTS_CAMPAIGN_TRAFFIC_H

/* The messages of a round: who sends what to whom, as it follows from a seed on all ranks. */

#include "campaign/ranks.h"

#define TRAFFIC_N       4 /* ranks, at most */
#define TRAFFIC_THREADS 2 /* of each        */
#define TRAFFIC_TAGS    3 /* of each thread: what it sends with them is for the same thread */
#define TRAFFIC_SENDS   24
#define TRAFFIC_BYTES   ((size_t)4 << 20)

struct message {
	int dest, tag;
	size_t nbytes;
	uint64_t key;
	_Atomic bool has_come; /* on its receiver */
};

struct traffic {
	int n, ncalls; /* ranks, collectives beside the messages */
	enum world world;
	/* Receives are of any source and tag, on both threads; else each thread receives what has its
	 * tags, in order. */
	bool is_any;
	struct message sends[TRAFFIC_N][TRAFFIC_THREADS][TRAFFIC_SENDS];
	int nsends[TRAFFIC_N][TRAFFIC_THREADS];
};

/* The one of this round. It is drawn before the ranks begin, each of which has its own from then on. */
extern struct traffic traffic;

/* Returns how many messages there are. */
int traffic_draw(uint64_t seed);

/* The bytes of a message. */
void traffic_fill(uint8_t *bytes, const struct message *message);
bool traffic_is_filled(const uint8_t *bytes, const struct message *message);

#endif
