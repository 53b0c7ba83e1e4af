/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_MOCK_H
#define TESTS_SUPPORT_MOCK_H

/* A transport in memory whose every delay is decided by the test. It has the ports of all ranks
 * of a job, one thread uses them all, and nothing moves by itself: a message that was committed
 * can be peeked, and a slot that was released can be reserved again, only after mock_tick() has
 * said so. All decisions follow from the seed, so a failure can be repeated.
 *
 * Misuse becomes wrong data. A slot is filled with garbage when it is reserved and copied when it
 * is committed, so what is written later does not arrive; a message turns into garbage when it is
 * released. Writing past a slot is counted as a breach.
 *
 * Owner: mock_free() frees ports and links. Threads: one at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

enum mock_pace {
	MOCK_AT_ONCE,    /* messages and credits arrive with the call that makes them       */
	MOCK_RANDOM,     /* each tick, some of what is under way arrives                   */
	MOCK_ONE_BY_ONE, /* each tick, one message or credit of one link arrives           */
	MOCK_STARVED,    /* messages arrive each tick, credits one at a time               */
	MOCK_BURSTS,     /* nothing arrives for many ticks, then all                       */
	MOCK_LOPSIDED,   /* some links deliver only when no other has anything under way    */
};
#define MOCK_PACES 6

struct mock_config {
	int n;
	size_t slot_bytes;
	size_t inline_bytes;
	int slots; /* of a link, per direction; also the shared slots of a fan-out */
	enum mock_pace pace;
	uint64_t seed;
	bool fans;         /* the transport has fan-outs                                  */
	bool fans_short;   /* as of struct tti_port                                       */
	bool sends;        /* links have send(), which refuses at random                  */
	bool shares_slots; /* as of struct tti_link_ops                                   */
	bool has_progress; /* messages leave in progress() only; until then they are unsent */
	bool has_lanes;    /* the transport says that links have lanes, like a network's   */
	size_t piece_bytes;
	/* How memory of one rank is reached by the others; TTI_REACH_SLOTS: not at all, and the
	 * transport has no memory. */
	enum tti_reach memory;
	/* The receiver looks at the slot that the sender has written, as in shared memory, so what
	 * is written after the commit does arrive. */
	bool one_copy;
};

struct mock;

struct mock *mock_create(const struct mock_config *config);
void mock_free(struct mock *mock);
struct tti_port *mock_port(struct mock *mock, int rank);

/* Let some messages and credits arrive, as the pace says. False: none did. */
bool mock_tick(struct mock *mock);
/* Let all of them arrive. False: none were under way. */
bool mock_flush(struct mock *mock);
/* Whether no message is left that was sent and not received. */
bool mock_is_quiet(const struct mock *mock);
/* Bytes that a rank has copied from memory of others, or found there, so far. */
uint64_t mock_reached(const struct mock *mock, int rank);
/* Messages that have been committed so far from one rank to another. */
uint64_t mock_sent(const struct mock *mock, int from, int to);
/* From now on connecting these two fails on the first of them, unless they are connected. */
void mock_refuse(struct mock *mock, int rank, int peer, tutti_status status);
/* From now on a rank finds no memory of others that is mapped, and copies none that is not. */
void mock_break_memory(struct mock *mock, int rank, tutti_status status);
/* How often a slot was written past its end so far. */
int mock_breaches(const struct mock *mock);

/* Call fn whenever a rank was refused a slot or a message, or made progress: for tests in which
 * a rank waits inside the engine. NULL: nothing. */
void mock_on_idle(struct mock *mock, void (*fn)(void *self, int rank), void *self);

#endif
