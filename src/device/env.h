/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_ENV_H
#define TTI_DEVICE_ENV_H

/* One thread of a block in a call: what it works on, how it waits, and what words are.
 *
 * A thread that waits ends in one of two ways: what it waits for is there, or the call ends early.
 * Then it has given up; it goes on to the next barrier that asks whether somebody has
 * (tti_dev_barrier_any()), and there all threads of the block leave together.
 *
 * Owner: struct tti_dev_env is of one thread. Threads: each its own. */

#include "device/world.h"

struct tti_dev_env {
	struct tti_dev_world world;
	struct tti_dev_shared *shared;
	uint32_t gave_up;
	uint32_t
		refused; /* of a memory program: it knows of a rank whose buffers are not reached */
	uint32_t index, round; /* where it stands */
	uint32_t turn;         /* of shared->work[] */
};

/* Sources and results of the operation that runs, and what is kept: a compiler sees that all of it is
 * memory of the block. */
TTI_DEV_FN struct tti_dev_end *tti_dev_sources(struct tti_dev_shared *shared)
{
	return (struct tti_dev_end *)(shared + 1);
}

TTI_DEV_FN struct tti_dev_end *tti_dev_results(struct tti_dev_shared *shared)
{
	return tti_dev_sources(shared) + shared->noperands;
}

/* -- Waiting --------------------------------------------------------------------------------- */

/* What a block does next. */
enum tti_dev_next {
	TTI_DEV_NEXT_ENDS,  /* the call ends early */
	TTI_DEV_NEXT_NONE,  /* all is done */
	TTI_DEV_NEXT_RUNS,  /* an operation */
	TTI_DEV_NEXT_OTHER, /* another call in the place of this one */
};

/* Zeroed: it has not begun. */
struct tti_dev_wait {
	uint32_t looks;
	uint32_t shows; /* this thread says what the block waits for */
};

enum tti_dev_seen {
	TTI_DEV_SEEN_END = 1,   /* the call ends */
	TTI_DEV_SEEN_SHOWN = 2, /* this thread says what it waits for */
};

/* The slow part of a wait: whether the call ends, and who says what the block waits for (waits_for 0:
 * not this thread). */
TTI_DEV_COLD uint32_t tti_dev_look(struct tti_dev_shared *shared, uint32_t who,
				   struct tti_dev_progress now)
{
	struct tti_dev_progress *progress = &shared->control->progress[shared->block];
	uint32_t shows;

	if (tti_dev_load_32(&shared->control->stop) == TTI_DEV_STOP_ALL ||
	    tti_dev_load_32(&shared->state->reported)) {
		tti_dev_raise(&shared->verdict, TTI_DEV_STOPPED);
		return TTI_DEV_SEEN_END;
	}
	if (!now.waits_for)
		return 0;
	shows = tti_dev_swap_if(&shared->shown, 0, who);
	if (shows != 0 && shows != who)
		return 0;
	tti_dev_store_32(&progress->operation, now.operation);
	tti_dev_store_32(&progress->round, now.round);
	tti_dev_store_32(&progress->is_room, now.is_room);
	tti_dev_store_32(&progress->looks, now.looks);
	tti_dev_store_32(&progress->waits_for, now.waits_for);
	return TTI_DEV_SEEN_SHOWN;
}

TTI_DEV_FN uint32_t tti_dev_look_up(struct tti_dev_env *env, int32_t peer, uint32_t is_room,
				    uint32_t looks)
{
	struct tti_dev_progress now;
	uint32_t seen;

	now.waits_for = 1 + (uint32_t)peer;
	now.operation = env->index;
	now.round = env->round;
	now.is_room = is_room;
	now.looks = looks;
	seen = tti_dev_look(env->shared, 1 + tti_dev_tid(&env->world), now);
	env->gave_up |= seen & TTI_DEV_SEEN_END;
	return seen;
}

/* Between two looks at what is waited for: a message of `peer`, or room at it. 0: the call ends. */
TTI_DEV_FN int tti_dev_wait_on(struct tti_dev_env *env, struct tti_dev_wait *wait, int32_t peer,
			       uint32_t is_room)
{
	if (env->gave_up)
		return 0;
	tti_dev_relax(&env->world, ++wait->looks);
	if (wait->looks % TTI_DEV_LOOKS == 0)
		wait->shows |=
			tti_dev_look_up(env, peer, is_room, wait->looks) & TTI_DEV_SEEN_SHOWN;
	return !env->gave_up;
}

TTI_DEV_FN void tti_dev_wait_over(struct tti_dev_env *env, const struct tti_dev_wait *wait)
{
	if (!wait->shows)
		return;
	tti_dev_store_32(&env->shared->control->progress[env->shared->block].waits_for, 0);
	tti_dev_store_shared(&env->shared->shown, 0);
}

/* Wait until a counter is at_least; 0: the call ends. */
TTI_DEV_FN int tti_dev_wait_counter(struct tti_dev_env *env, const uint64_t *counter,
				    uint64_t at_least, int32_t peer, uint32_t is_room,
				    uint64_t *value)
{
	struct tti_dev_wait wait = { 0, 0 };

	TTI_DEV_ROLLED
	for (;;) {
		*value = tti_dev_load_acquire(counter);
		if (*value >= at_least)
			break;
		if (!tti_dev_wait_on(env, &wait, peer, is_room))
			return 0;
	}
	tti_dev_wait_over(env, &wait);
	return 1;
}

/* -- Messages that do not fit ---------------------------------------------------------------- */

/* The first one is told, once and for all: the host reads it while kernels of later calls, which meet
 * what this one leaves, may still run. */
TTI_DEV_COLD void tti_dev_tell_mismatch(struct tti_dev_state *state, struct tti_dev_shared *shared,
					struct tti_dev_report *report, int32_t peer,
					struct tti_dev_head came, struct tti_dev_head own)
{
	tti_dev_raise(&shared->verdict, TTI_DEV_MISMATCH);
	if (tti_dev_swap_if(&state->reported, 0, 1) != 0 || tti_dev_load_32(&report->result))
		return;
	report->peer = peer;
	report->tag = came.tag;
	report->nbytes = came.nbytes;
	report->own_tag = own.tag;
	report->own_nbytes = own.nbytes;
	tti_dev_store_release_32(&report->result, TTI_DEV_MISMATCH);
}

/* Whether a message is what this rank expects; if not, the call ends. */
TTI_DEV_FN void tti_dev_check_head(struct tti_dev_env *env, int32_t peer,
				   const struct tti_dev_head *came, const struct tti_dev_head *own)
{
	if (came->tag == own->tag && came->nbytes == own->nbytes)
		return;
	env->gave_up = 1;
	tti_dev_tell_mismatch(env->shared->state, env->shared, &env->shared->control->report, peer,
			      *came, *own);
}

/* -- Units: 16 bytes of data, or four words ---------------------------------------------------- */

struct tti_dev_unit {
	uint64_t part[2];
};

#define TTI_DEV_UNIT 16

/* Of the words of the message that comes after so many. Not 0, as words are at first: a message may be
 * longer than all that were in its slot before. */
TTI_DEV_FN uint32_t tti_dev_flag_after(uint64_t seq)
{
	const uint32_t number = (uint32_t)(seq + 1);

	return number ? number : (uint32_t)1 << 31;
}

TTI_DEV_FN uint64_t tti_dev_word(uint64_t data, uint32_t flag)
{
	return (data & UINT32_MAX) | (uint64_t)flag << 32;
}

/* Unit `index` of a message by words, where `at` begins. Zeroes: the call ends. */
TTI_DEV_FN struct tti_dev_unit tti_dev_await_words(struct tti_dev_env *env, const uint64_t *at,
						   uint64_t index, uint32_t flag, int32_t peer)
{
	struct tti_dev_wait wait = { 0, 0 };
	struct tti_dev_unit unit = { { 0, 0 } };
	uint64_t a, b, c, d;

	at += 4 * index;
	TTI_DEV_ROLLED
	for (;;) {
		tti_dev_load_words(at, &a, &b);
		tti_dev_load_words(at + 2, &c, &d);
		if (a >> 32 == flag && b >> 32 == flag && c >> 32 == flag && d >> 32 == flag)
			break;
		if (!tti_dev_wait_on(env, &wait, peer, 0))
			return unit;
	}
	tti_dev_wait_over(env, &wait);
	unit.part[0] = (a & UINT32_MAX) | b << 32;
	unit.part[1] = (c & UINT32_MAX) | d << 32;
	return unit;
}

TTI_DEV_FN void tti_dev_send_words(uint64_t *at, uint64_t index, uint32_t flag,
				   struct tti_dev_unit unit)
{
	at += 4 * index;
	tti_dev_store_words(at, tti_dev_word(unit.part[0], flag),
			    tti_dev_word(unit.part[0] >> 32, flag));
	tti_dev_store_words(at + 2, tti_dev_word(unit.part[1], flag),
			    tti_dev_word(unit.part[1] >> 32, flag));
}

#endif
