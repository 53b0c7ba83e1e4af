/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_BED_H
#define TESTS_SUPPORT_BED_H

/* A test bed for the engine: the engines of all ranks of a job over mock transports (mock.h),
 * driven by one thread. The bed decides in which order ranks are polled and, between polls, what
 * arrives; both follow from the seed. All ports are traced, so a breach of the contract of
 * transport.h is found whatever comes out.
 *
 * Owner: bed_release(). Threads: not synchronised. */

#include <stdatomic.h>
#include <stdio.h>

#include "engine/engine.h"
#include "support/mock.h"
#include "support/trace.h"

#define BED_RANKS 33 /* at most */

/* Which rank is polled next. */
enum bed_order {
	BED_RANDOM,
	BED_IN_TURN,
	BED_STICKY,    /* one until it can do no more, then another         */
	BED_ONE_SLOW,  /* one is polled only when all others can do no more */
	BED_BACKWARDS, /* in turn, the last first                           */
};
#define BED_ORDERS 5

struct bed_config {
	int n;
	struct mock_config mock; /* n and seed are the bed's */
	enum bed_order order;
	/* Ranks of the same third are on one port, others on a second, which is like a network. */
	bool is_split;
	int lossy_percent; /* 0: nothing is refused that could be granted */
	bool oversubscribed, cuts;
	size_t cache_bytes;
	uint64_t seed;
};

/* Anything that the engine may meet. */
void bed_draw(struct bed_config *out, int n, uint64_t seed);

struct bed_port {
	struct mock *mock;
	struct trace *trace[BED_RANKS];
	struct lossy *lossy[BED_RANKS];
};

struct bed {
	struct bed_config config;
	int nports;
	struct bed_port port[2];
	uint8_t port_of[BED_RANKS][BED_RANKS];
	struct tti_engine engine[BED_RANKS];
	struct tti_job job[BED_RANKS];
	_Atomic int stop; /* as of struct tti_engine_config, of all ranks */
	uint64_t random;
	int turn;
	char breach[320]; /* the first breach of a contract, "": none */
};

void bed_init(struct bed *bed, const struct bed_config *config);
void bed_release(struct bed *bed);

enum bed_end {
	BED_DONE,  /* all jobs have succeeded                                         */
	BED_ENDED, /* all jobs have ended, or can do no more since another has failed */
	BED_STUCK, /* some can do no more, though everything has arrived              */
};

/* What the ranks do: `n` jobs each, one after the other; a rank may begin with its next while
 * others are at an earlier one. */
struct bed_work {
	int n;
	/* Start job `at` of a rank in bed->job[rank]. */
	void (*start)(void *self, struct bed *bed, int rank, int at);
	/* It has succeeded; NULL: nothing is to be done. */
	void (*done)(void *self, struct bed *bed, int rank, int at);
	void *self;
};

enum bed_end bed_run(struct bed *bed, const struct bed_work *work);

/* Let each rank run on a stack of its own, all on this thread, for what waits inside the engine: the
 * next one runs whenever one was refused a slot or a message. BED_STUCK: none could go on, and
 * all were stopped (TUTTI_EABORTED). */
enum bed_end bed_run_in_turns(struct bed *bed, void (*body)(void *self, struct bed *bed, int rank),
			      void *self);

/* Whether no message is left, and no contract was broken; if not, bed->breach says what. */
bool bed_is_clean(struct bed *bed);

/* The port of a rank by which it reaches a peer. */
struct tti_port *bed_port(const struct bed *bed, int rank, int peer);
/* Messages sent so far from one rank to another. */
uint64_t bed_sent(const struct bed *bed, int from, int to);

/* The configuration, what each rank waits for, and the last events of its ports. */
void bed_print(const struct bed *bed, FILE *out);

#endif
