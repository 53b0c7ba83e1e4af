/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CAMPAIGN_LANES_H
#define TESTS_CAMPAIGN_LANES_H

/* The threads of a rank that send its part of the traffic, and receive what is for it. */

#include "campaign/traffic.h"

#define MOST_PENDING 4
#define RANK_TEXT    400

struct rank {
	int rank;
	tutti_comm_t comm;
	tutti_channel_t channel;
	_Atomic int told;    /* what went wrong first is told */
	_Atomic int awaited; /* messages that no thread has taken on to receive */
	char *text;          /* [RANK_TEXT], for what went wrong */
};

/* A receive that is under way. */
struct pending {
	tutti_request_t request;
	uint8_t *room;
	int source, tag;
};

/* One thread; zeroed but for the first ones. */
struct lane {
	struct rank *rank;
	int thread;
	uint64_t random;
	int nleft[TRAFFIC_TAGS]; /* to be received */

	int nsent, npending;
	tutti_request_t sends[TRAFFIC_SENDS];
	uint8_t *sent[TRAFFIC_SENDS];
	struct pending pending[MOST_PENDING]; /* the oldest first */
	bool good;
};

/* What went wrong, of which the first is kept. Returns false. */
bool rank_complain(struct rank *rank, const char *what, tutti_status status);

/* A thread: all of its lane. */
void *lane_run(void *lane);

#endif
