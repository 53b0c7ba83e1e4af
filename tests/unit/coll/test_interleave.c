/* SPDX-License-Identifier: BSD-3-Clause */
/* A second opinion on checker and compiler: programs are run with numbers, in random
 * order, over several blocks, in place. What the checker accepts must come out
 * right here, whatever the order; programs broken at random are let in on purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/check/check.h"
#include "support/sanitizer.h"
#include "support/shapes.h"
#include "util/error.h"
#include "util/hash.h"

#define RANKS    7
#define CHUNKS   128
#define BLOCKS   2
#define BEHIND   1 /* blocks that a stage is behind the one before it */
#define OPERS    512
#define MESSAGES 512 /* of a link in all blocks */

/* How often each rank's contribution is in a value; the last: how often divided. */
struct value {
	uint8_t times[RANKS + 1];
};

/* An operation of a block: what a queue stands at. */
struct turn {
	int16_t block, oper;
};

struct rank {
	struct tti_compiled c;
	struct value memory[BLOCKS][4][CHUNKS]; /* by enum tti_place */
	int alias[CHUNKS]; /* the chunk whose output lies where this one's input does, -1: none */
	int npred[BLOCKS][OPERS];
	int sent[BLOCKS][OPERS]; /* messages of an operation that are out, -1: done */
	int unread[BLOCKS][OPERS];
	struct turn turn[2 * RANKS][BLOCKS * OPERS]; /* of each queue, in its order */
	int position[2 * RANKS];                     /* of each queue               */
};

struct link {
	struct value message[MESSAGES];
	int sent, taken;
};

struct world {
	int n, slots;
	bool shared; /* fan-outs take shared slots, else they are single messages */
	struct rank rank[RANKS];
	struct link link[RANKS][RANKS];
	int in_use[RANKS]; /* shared slots */
	uint64_t random;
};

static unsigned draw(uint64_t *random, unsigned below)
{
	*random = tti_hash_combine(*random, below);
	return (unsigned)(*random >> 33) % below;
}

static struct value *cell(struct rank *rank, int block, int place, int chunk)
{
	if (place == TTI_PLACE_INPUT && rank->alias[chunk] >= 0)
		return &rank->memory[block][TTI_PLACE_OUTPUT][rank->alias[chunk]];
	return &rank->memory[block][place][chunk];
}

/* The order of a queue: in each round an operation works on the block that its stage is at. */
static void line_up(struct rank *rank, int queue)
{
	const struct tti_queue *at = &rank->c.queue[queue];
	const int rounds = BLOCKS + BEHIND * (rank->c.nstages - 1);
	int n = 0;

	for (int round = 0; round < rounds; round++)
		for (int k = 0; k < at->n; k++) {
			const int32_t oper = rank->c.queued[at->first + k];
			const int block = round - BEHIND * rank->c.oper[oper].stage;

			if (block >= 0 && block < BLOCKS)
				rank->turn[queue][n++] =
					(struct turn){ (int16_t)block, (int16_t)oper };
		}
	assert_int_equal(n, BLOCKS * at->n);
}

static void set_up(struct world *w, const struct tti_program *prog, int n, bool in_place)
{
	w->n = n;
	memset(w->link, 0, sizeof(w->link));
	memset(w->in_use, 0, sizeof(w->in_use));
	for (int r = 0; r < n; r++) {
		struct rank *rank = &w->rank[r];
		struct tti_program placed = prog[r];

		memset(rank, 0, sizeof(*rank));
		placed.in_place = in_place;
		assert_int_equal(tti_compile(&placed, &rank->c), TUTTI_OK);
		assert_true(rank->c.nopers <= OPERS && rank->c.nchunks <= CHUNKS);
		for (int q = 0; q < rank->c.nqueues; q++)
			line_up(rank, q);
		for (int block = 0; block < BLOCKS; block++)
			for (int o = 0; o < rank->c.nopers; o++) {
				rank->npred[block][o] = rank->c.oper[o].npred;
				rank->unread[block][o] = rank->c.oper[o].nout;
			}
		for (int chunk = 0; chunk < rank->c.nchunks; chunk++) {
			const int twin = tti_chunk_twin(&prog[r], chunk);
			const bool shares = in_place && tti_chunk_is_input(&prog[r], chunk) &&
					    tti_chunk_is_output(&prog[r], twin);

			rank->alias[chunk] = shares ? twin : -1;
			for (int block = 0; block < BLOCKS; block++)
				if (tti_chunk_is_input(&prog[r], chunk))
					cell(rank, block, TTI_PLACE_INPUT, chunk)->times[r] = 1;
		}
	}
}

static void tear_down(struct world *w)
{
	for (int r = 0; r < w->n; r++)
		tti_compiled_release(&w->rank[r].c);
}

/* Whether (block, oper) is the next one of queue q. */
static bool is_next(const struct rank *rank, int queue, int block, int oper)
{
	const struct turn *turn = &rank->turn[queue][rank->position[queue]];

	return rank->position[queue] < BLOCKS * rank->c.queue[queue].n && turn->block == block &&
	       turn->oper == oper;
}

static bool has_room(const struct world *w, int r, int queue, int block, int oper)
{
	const int peer = w->rank[r].c.queue[queue].peer;
	const struct link *link = &w->link[r][peer];

	return is_next(&w->rank[r], queue, block, oper) && link->sent - link->taken < w->slots;
}

static bool has_message(const struct world *w, int r, int queue, int block, int oper)
{
	const int peer = w->rank[r].c.queue[queue].peer;
	const struct link *link = &w->link[peer][r];

	return is_next(&w->rank[r], queue, block, oper) && link->sent > link->taken;
}

static bool may_run(const struct world *w, int r, int block, int o)
{
	const struct rank *rank = &w->rank[r];
	const struct tti_operation *oper = &rank->c.oper[o];
	int nready = 0;

	if (rank->npred[block][o] || rank->sent[block][o] < 0)
		return false;
	for (int i = 0; i < oper->nin; i++)
		if (!has_message(w, r, rank->c.queue_of[oper->in + i], block, o))
			return false;
	for (int i = rank->sent[block][o]; i < oper->nout; i++)
		nready += has_room(w, r, rank->c.queue_of[oper->out + i], block, o);
	if (w->shared && oper->nout > 1)
		return nready == oper->nout && w->in_use[r] < w->slots;
	/* Single messages go out one by one, in their order. */
	return !oper->nout ||
	       has_room(w, r, rank->c.queue_of[oper->out + rank->sent[block][o]], block, o);
}

static void add(struct value *value, const struct value *other)
{
	for (int i = 0; i <= RANKS; i++)
		value->times[i] = (uint8_t)(value->times[i] + other->times[i]);
}

static void take(struct world *w, int r, int queue, struct value *out)
{
	struct rank *rank = &w->rank[r];
	const int peer = rank->c.queue[queue].peer;
	struct rank *sender = &w->rank[peer];
	struct link *link = &w->link[peer][r];
	int q = 0;

	while (!sender->c.queue[q].is_send || sender->c.queue[q].peer != r)
		q++;
	const struct turn turn = sender->turn[q][link->taken];

	add(out, &link->message[link->taken++]);
	rank->position[queue]++;
	if (--sender->unread[turn.block][turn.oper] == 0 && w->shared &&
	    sender->c.oper[turn.oper].nout > 1)
		w->in_use[peer]--;
}

static void finish(struct rank *rank, int block, int o)
{
	const struct tti_operation *oper = &rank->c.oper[o];

	rank->sent[block][o] = -1;
	for (int i = 0; i < oper->nsucc; i++)
		rank->npred[block][rank->c.succs[oper->succ + i]]--;
}

static void run(struct world *w, int r, int block, int o)
{
	struct rank *rank = &w->rank[r];
	const struct tti_operation *oper = &rank->c.oper[o];
	const bool at_once = w->shared && oper->nout > 1;
	struct value value = { { 0 } };

	if (oper->from != TTI_PLACE_NONE)
		value = *cell(rank, block, oper->from, oper->chunk);
	for (int i = 0; i < oper->nin; i++)
		take(w, r, rank->c.queue_of[oper->in + i], &value);
	if (oper->final)
		value.times[RANKS]++;
	if (oper->to != TTI_PLACE_NONE)
		*cell(rank, block, oper->to, oper->chunk) = value;
	w->in_use[r] += at_once;
	do {
		const int i = rank->sent[block][o];

		if (i == oper->nout)
			break;
		const int queue = rank->c.queue_of[oper->out + i];
		struct link *link = &w->link[r][rank->c.queue[queue].peer];

		assert_true(link->sent < MESSAGES);
		link->message[link->sent++] = value;
		rank->position[queue]++;
		rank->sent[block][o]++;
	} while (at_once);
	if (rank->sent[block][o] == oper->nout)
		finish(rank, block, o);
}

/* Any operation that may run, one by one; whether all have run in the end. */
static bool run_all(struct world *w)
{
	for (;;) {
		int nready = 0, chosen[3] = { 0 };
		bool left = false;

		for (int r = 0; r < w->n; r++)
			for (int block = 0; block < BLOCKS; block++)
				for (int o = 0; o < w->rank[r].c.nopers; o++) {
					left |= w->rank[r].sent[block][o] >= 0;
					if (!may_run(w, r, block, o) ||
					    draw(&w->random, (unsigned)++nready) != 0)
						continue;
					chosen[0] = r;
					chosen[1] = block;
					chosen[2] = o;
				}
		if (!nready)
			return !left;
		run(w, chosen[0], chosen[1], chosen[2]);
	}
}

static bool is_right(const struct tti_program *prog, const struct value *value, int chunk)
{
	const bool reduces = tti_collective_reduces(prog->coll);
	const bool from_root = prog->coll == TUTTI_BROADCAST || prog->coll == TUTTI_SCATTER;
	int source = prog->root;

	if (prog->coll == TUTTI_ALL_TO_ALL)
		source = tti_chunk_source(prog, chunk);
	else if (!reduces && !from_root)
		source = tti_chunk_owner(prog, chunk);
	for (int r = 0; r < prog->n; r++)
		if (value->times[r] != (reduces || r == source))
			return false;
	return !reduces || value->times[RANKS] == (prog->n > 1);
}

static bool outputs_are_right(struct world *w, const struct tti_program *prog)
{
	if (prog->coll == TUTTI_BARRIER)
		return true;
	for (int r = 0; r < w->n; r++)
		for (int block = 0; block < BLOCKS; block++)
			for (int chunk = 0; chunk < prog->nchunks; chunk++)
				if (tti_chunk_is_output(&prog[r], chunk) &&
				    !is_right(&prog[r],
					      cell(&w->rank[r], block, TTI_PLACE_OUTPUT, chunk),
					      chunk))
					return false;
	return true;
}

/* Rotates through slots, shared slots, in place. */
static void run_randomly(const struct tti_program *prog, int n, unsigned variant)
{
	static struct world w;
	bool done;

	w.random = variant;
	w.slots = 1 + (int)(variant / 4 % 2);
	w.shared = variant & 1;
	set_up(&w, prog, n, variant & 2);
	done = run_all(&w);
	if (!done || !outputs_are_right(&w, prog))
		fail_msg("%s %s of %d ranks, variant %u: %s", tutti_collective_name(prog->coll),
			 prog->algorithm, n, variant, done ? "wrong" : "stuck");
	tear_down(&w);
}

static void build(const struct tti_algorithm *algo, const struct tti_shape *shape, int n, int root,
		  struct tti_program *prog)
{
	for (int r = 0; r < n; r++)
		assert_int_equal(
			tti_program_build(algo,
					  &(struct tti_program_spec){
						  .shape = shape, .rank = r, .n = n, .root = root },
					  &prog[r]),
			TUTTI_OK);
}

static void release(struct tti_program *prog, int n)
{
	for (int r = 0; r < n; r++)
		tti_program_release(&prog[r]);
}

static bool has_stages(const struct tti_program *prog, int n)
{
	for (int r = 0; r < n; r++)
		for (size_t i = 0; i < prog[r].steps.n; i++)
			if (prog[r].steps.at[i].stage > 0)
				return true;
	return false;
}

/* Memory programs and handoffs have tests of their own. */
static bool has_case(const struct tti_algorithm *algo)
{
	return !algo->needs_memory && algo->coll != TUTTI_HANDOFF;
}

static void algorithms_come_out_right(void **state)
{
	const struct tti_algorithm *algo;
	struct tti_program prog[RANKS];

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= RANKS && has_case(algo); n++) {
				build(algo, NULL, n, n / 2, prog);
				for (unsigned variant = 0; variant < 8; variant++)
					run_randomly(prog, n, variant);
				release(prog, n);
			}
}

/* Over rings in any order, trees and groups: programs of several stages among them. */
static void shapes_come_out_right(void **state)
{
	const struct tti_algorithm *algo;
	struct tti_program prog[RANKS];
	uint64_t seed = 1;
	int staged = 0;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int kind = 0; kind < SHAPE_KINDS && has_case(algo); kind++) {
				const int n = 3 + (int)(seed % (SANITIZED ? 2 : 3));
				struct tti_shape *shape =
					shape_draw(n, (enum shape_kind)kind, seed++);

				build(algo, shape, n, (int)(seed % (uint64_t)n), prog);
				staged += has_stages(prog, n);
				for (unsigned variant = 0; variant < 8; variant += 3)
					run_randomly(prog, n, variant);
				release(prog, n);
				tti_shape_free(shape);
			}
	/* Two of all_reduce, one each of others, all_to_all among them. */
	assert_true(staged >= 6);
}

/* One thing less, more, elsewhere or otherwise. */
static void break_one(struct tti_program *prog, int n, uint64_t *random)
{
	struct tti_program *at = &prog[draw(random, (unsigned)n)];
	struct tti_step *step, *other, saved;

	if (!at->steps.n)
		return;
	step = &at->steps.at[draw(random, (unsigned)at->steps.n)];
	other = &at->steps.at[draw(random, (unsigned)at->steps.n)];
	switch (draw(random, 7)) {
	case 0:
		memmove(step, step + 1,
			(size_t)(at->steps.at + at->steps.n - step - 1) * sizeof(*step));
		at->steps.n--;
		break;
	case 1:
		step->chunk = (int)draw(random, (unsigned)at->nchunks);
		break;
	case 2:
		step->peer = (int)draw(random, (unsigned)n);
		break;
	case 3:
		step->kind = (enum tti_step_kind)draw(random, 4);
		break;
	case 4:
		step->final = !step->final;
		break;
	default:
		saved = *step;
		*step = *other;
		*other = saved;
		break;
	}
}

static void what_is_accepted_is_right(void **state)
{
	const struct tti_algorithm *algo;
	struct tti_program prog[RANKS];
	int accepted = 0, refused = 0;
	uint64_t random = 1;

	(void)state;
	for (int round = 0; round < 100; round++)
		for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
			for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++) {
				const int n = 2 + (int)draw(&random, 3);
				struct tti_shape *shape = NULL;

				/* A barrier has no result to be right or wrong. */
				if (!has_case(algo) || coll == TUTTI_BARRIER)
					continue;
				if (draw(&random, 2))
					shape = shape_draw(n, SHAPE_GROUPS, random);
				build(algo, shape, n, (int)draw(&random, (unsigned)n), prog);
				for (unsigned k = 0; k <= draw(&random, 2); k++)
					break_one(prog, n, &random);
				if (tti_program_check(prog, n, 1, TTI_ORDER_ANY) == TUTTI_OK) {
					accepted++;
					for (unsigned variant = 0; variant < 8; variant++)
						run_randomly(prog, n, variant);
				} else {
					refused++;
				}
				release(prog, n);
				tti_shape_free(shape);
			}
	/* Both happen, or this test says nothing. */
	assert_true(accepted > 100);
	assert_true(refused > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(algorithms_come_out_right),
		cmocka_unit_test(shapes_come_out_right),
		cmocka_unit_test(what_is_accepted_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
