/* SPDX-License-Identifier: BSD-3-Clause */
/* A second opinion on the checker and the compiler of memory programs: they are run with numbers,
 * ranks in random order, each in slices of its own, in place or not, over chunks of uneven length.
 * What the checker accepts must come out right here; programs broken at random are let in on
 * purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/check/check.h"
#include "util/error.h"
#include "util/hash.h"

#define RANKS    5
#define CHUNKS   (2 * RANKS * RANKS)
#define ELEMENTS 6 /* of a chunk at most */

/* How often each rank's contribution is in an element; the last: how often divided. Of which
 * chunk it is. */
struct element {
	uint8_t times[RANKS + 1];
	uint8_t chunk;
};

struct rank {
	const struct tti_program *prog;
	struct tti_compiled c;
	struct element memory[2][CHUNKS][ELEMENTS]; /* inputs, outputs  */
	struct element scratch[CHUNKS][ELEMENTS];   /* one slice a chunk */
	int slice;                                  /* elements          */
	int run, end;                               /* operations of the run that is being done */
	int oper, block;                            /* what is next       */
	bool has_begun;
};

struct world {
	int n;
	struct rank rank[RANKS];
	int length[CHUNKS];
	int notified[RANKS][RANKS]; /* from, to: messages under way */
	uint64_t random;
	const char *fault;
};

static unsigned draw(uint64_t *random, unsigned below)
{
	*random = tti_hash_combine(*random, below);
	return (unsigned)(*random >> 33) % below;
}

static bool has_ended(const struct rank *rank)
{
	return rank->oper == rank->c.nopers;
}

static struct element *cell(struct rank *rank, bool is_output, int chunk, int at)
{
	const int twin = tti_chunk_twin(rank->prog, chunk);

	if (!is_output && rank->prog->in_place && tti_chunk_is_output(rank->prog, twin))
		return &rank->memory[1][twin][at];
	return &rank->memory[is_output][chunk][at];
}

/* Where a peer's memory is touched: it must be there, from its beginning to its end. */
static struct element *touch(struct world *w, int self, int owner, bool is_output, int chunk,
			     int at)
{
	struct rank *rank = &w->rank[owner];

	if (owner != self && (!rank->has_begun || has_ended(rank)))
		w->fault = "memory is touched before its owner has begun, or after it has ended";
	return cell(rank, is_output, chunk, at);
}

static void add(struct world *w, struct element *sum, const struct element *other, int chunk)
{
	for (int i = 0; i <= RANKS; i++)
		sum->times[i] = (uint8_t)(sum->times[i] + other->times[i]);
	if (other->chunk != chunk)
		w->fault = "another chunk is read";
}

/* One element of one operation. */
static void run_element(struct world *w, int self, const struct tti_operation *oper, int at)
{
	struct rank *rank = &w->rank[self];
	const int32_t *get = rank->c.peer_of + oper->get, *put = rank->c.peer_of + oper->put;
	struct element sum = { .chunk = (uint8_t)oper->chunk };

	if (oper->from == TTI_PLACE_SCRATCH)
		add(w, &sum, &rank->scratch[oper->scratch][at % rank->slice], oper->chunk);
	else if (oper->from != TTI_PLACE_NONE)
		add(w, &sum, cell(rank, oper->from == TTI_PLACE_OUTPUT, oper->chunk, at),
		    oper->chunk);
	for (int i = 0; i < oper->nget; i++)
		add(w, &sum, touch(w, self, get[i], false, oper->chunk, at), oper->chunk);
	sum.times[RANKS] = (uint8_t)(sum.times[RANKS] + oper->final);
	if (oper->to == TTI_PLACE_SCRATCH)
		rank->scratch[oper->scratch][at % rank->slice] = sum;
	else if (oper->to == TTI_PLACE_OUTPUT)
		*cell(rank, true, oper->chunk, at) = sum;
	for (int i = 0; i < oper->nput; i++)
		*touch(w, self, put[i], true, oper->chunk, at) = sum;
}

/* A NOTIFY or a WAIT, or nothing, if a message is not there. */
static bool sync(struct world *w, int self, const struct tti_operation *oper)
{
	const struct tti_compiled *c = &w->rank[self].c;

	for (int i = 0; i < oper->nin; i++)
		if (!w->notified[c->queue[c->queue_of[oper->in + i]].peer][self])
			return false;
	for (int i = 0; i < oper->nout; i++)
		if (w->notified[self][c->queue[c->queue_of[oper->out + i]].peer])
			return false;
	for (int i = 0; i < oper->nin; i++)
		w->notified[c->queue[c->queue_of[oper->in + i]].peer][self]--;
	for (int i = 0; i < oper->nout; i++)
		w->notified[self][c->queue[c->queue_of[oper->out + i]].peer]++;
	return true;
}

static void begin_run(struct rank *rank)
{
	const struct tti_operation *oper = rank->c.oper;

	rank->run = rank->end = rank->oper;
	rank->block = 0;
	while (rank->end < rank->c.nopers && !oper[rank->end].sync &&
	       oper[rank->end].stage == oper[rank->run].stage)
		rank->end++;
}

/* The next operation of a rank, on one slice. Whether there was one that it could do. */
static bool step(struct world *w, int self)
{
	struct rank *rank = &w->rank[self];
	const struct tti_operation *oper = &rank->c.oper[rank->oper];
	const int first = rank->block * rank->slice, last = first + rank->slice;

	if (has_ended(rank) || (oper->sync && !sync(w, self, oper)))
		return false;
	rank->has_begun = true;
	for (int at = first; !oper->sync && at < last && at < w->length[oper->chunk]; at++)
		run_element(w, self, oper, at);
	rank->oper++;
	if (!oper->sync && rank->oper == rank->end && last < ELEMENTS) {
		rank->block++;
		rank->oper = rank->run;
	} else if (oper->sync || rank->oper == rank->end) {
		begin_run(rank);
	}
	return true;
}

/* -- A call ------------------------------------------------------------------------ */

static void set_up(struct world *w, const struct tti_program *prog, int n, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->n = n;
	w->random = seed;
	/* Chunks that share memory have one length. */
	for (int chunk = 0; chunk < prog->nchunks; chunk++)
		w->length[chunk] = (int)draw(&w->random, ELEMENTS + 1);
	for (int chunk = 0; chunk < prog->nchunks; chunk++)
		w->length[chunk] =
			w->length[tti_chunk_twin(prog, chunk) < chunk ? tti_chunk_twin(prog, chunk)
								      : chunk];
	for (int r = 0; r < n; r++) {
		struct rank *rank = &w->rank[r];

		rank->prog = &prog[r];
		rank->slice = 1 + (int)draw(&w->random, ELEMENTS);
		assert_int_equal(tti_compile(&prog[r], &rank->c), TUTTI_OK);
		begin_run(rank);
		for (int chunk = 0; chunk < prog->nchunks; chunk++)
			for (int at = 0; at < ELEMENTS && tti_chunk_is_input(&prog[r], chunk);
			     at++) {
				cell(rank, false, chunk, at)->times[r] = 1;
				cell(rank, false, chunk, at)->chunk = (uint8_t)chunk;
			}
	}
}

static bool is_right(const struct tti_program *prog, const struct element *element, int chunk)
{
	const bool reduces = tti_collective_reduces(prog->coll);
	const bool from_root = prog->coll == TUTTI_BROADCAST || prog->coll == TUTTI_SCATTER;
	int source = prog->root;

	if (prog->coll == TUTTI_ALL_TO_ALL)
		source = tti_chunk_source(prog, chunk);
	else if (!reduces && !from_root)
		source = tti_chunk_owner(prog, chunk);
	for (int r = 0; r < prog->n; r++)
		if (element->times[r] != (reduces || r == source))
			return false;
	return element->chunk == chunk && (!reduces || element->times[RANKS] == (prog->n > 1));
}

/* What is wrong in the end, NULL: nothing. */
static const char *outcome(struct world *w, const struct tti_program *prog)
{
	for (int r = 0; r < w->n; r++)
		if (!has_ended(&w->rank[r]))
			return "stuck";
	for (int r = 0; r < w->n; r++)
		for (int chunk = 0; chunk < prog->nchunks; chunk++)
			for (int at = 0; at < w->length[chunk]; at++)
				if (tti_chunk_is_output(&prog[r], chunk) &&
				    !is_right(&prog[r], cell(&w->rank[r], true, chunk, at), chunk))
					return "an output is wrong";
	return w->fault;
}

static void run_randomly(const struct tti_program *prog, int n, uint64_t seed)
{
	static struct world w;
	bool moved = true;

	set_up(&w, prog, n, seed);
	while (moved) {
		/* Some ranks are far behind others, now one, then another. */
		const int start = (int)draw(&w.random, (unsigned)n);
		const int times = 1 + (int)draw(&w.random, 6);

		moved = false;
		for (int offset = 0; offset < n && !moved; offset++)
			for (int k = 0; k < times && step(&w, (start + offset) % n); k++)
				moved = true;
	}
	if (outcome(&w, prog))
		fail_msg("%s of %d ranks, seed %d: %s", tutti_collective_name(prog->coll), n,
			 (int)seed, outcome(&w, prog));
	for (int r = 0; r < n; r++)
		tti_compiled_release(&w.rank[r].c);
}

/* -- Programs ---------------------------------------------------------------------- */

static void build(const struct tti_algorithm *algo, int n, uint64_t *random,
		  struct tti_program *prog)
{
	const int root = (int)draw(random, (unsigned)n), parts = 1 + (int)draw(random, 2);

	for (int r = 0; r < n; r++) {
		const struct tti_program_spec spec = { .split = { parts, 0 },
						       .rank = r,
						       .n = n,
						       .root = root,
						       .in_place = draw(random, 2) };

		assert_int_equal(tti_program_build(algo, &spec, &prog[r]), TUTTI_OK);
	}
}

static void release(struct tti_program *prog, int n)
{
	for (int r = 0; r < n; r++)
		tti_program_release(&prog[r]);
}

static void algorithms_come_out_right(void **state)
{
	struct tti_program prog[RANKS];
	uint64_t random = 1;
	int runs = 0;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++) {
		const struct tti_algorithm *algo =
			tti_algorithm_find((tutti_collective)coll, "memory");

		/* A barrier has no data; handoffs have a test of their own. */
		for (int round = 0;
		     algo && coll != TUTTI_BARRIER && coll != TUTTI_HANDOFF && round < 200;
		     round++, runs++) {
			/* A program of one rank says no copies: it is run as any other. */
			const int n = 2 + round % (RANKS - 1);

			build(algo, n, &random, prog);
			run_randomly(prog, n, random);
			release(prog, n);
		}
	}
	assert_int_equal(runs, 9 * 200);
}

/* One thing less, elsewhere, or otherwise. */
static void break_one(struct tti_program *prog, int n, uint64_t *random)
{
	struct tti_program *at = &prog[draw(random, (unsigned)n)];
	struct tti_step *step = &at->steps.at[draw(random, (unsigned)at->steps.n)];
	struct tti_step *next = step + (step + 1 < at->steps.at + at->steps.n);
	struct tti_step *any = &at->steps.at[draw(random, (unsigned)at->steps.n)], saved = *step;

	switch (draw(random, 8)) {
	case 0:
		memmove(step, step + 1,
			(size_t)(at->steps.at + at->steps.n - step - 1) * sizeof(*step));
		at->steps.n--;
		break;
	case 1:
		step->peer = (int)draw(random, (unsigned)n);
		break;
	case 2:
		step->stage = (int)draw(random, 2);
		break;
	case 3:
		at->in_place = !at->in_place;
		break;
	case 4:
	case 5:
		*step = *next;
		*next = saved;
		break;
	default:
		*step = *any;
		*any = saved;
		break;
	}
}

/* A notify and its wait, both away. */
static void drop_message(struct tti_program *prog, int n, uint64_t *random)
{
	const int from = (int)draw(random, (unsigned)n);
	const int to = (from + 1 + (int)draw(random, (unsigned)n - 1)) % n;
	const enum tti_step_kind kind[] = { TTI_NOTIFY, TTI_WAIT };

	for (int end = 0; end < 2; end++) {
		struct tti_program *at = &prog[end ? to : from];

		for (size_t i = 0; i < at->steps.n; i++)
			if (at->steps.at[i].kind == kind[end] &&
			    at->steps.at[i].peer == (end ? from : to)) {
				memmove(&at->steps.at[i], &at->steps.at[i + 1],
					(at->steps.n - i - 1) * sizeof(*at->steps.at));
				at->steps.n--;
				break;
			}
	}
}

static void what_is_accepted_is_right(void **state)
{
	struct tti_program prog[RANKS];
	int accepted = 0, refused = 0;
	uint64_t random = 7;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		const struct tti_algorithm *algo =
			tti_algorithm_find((tutti_collective)(round % TUTTI_BARRIER), "memory");
		const int n = 2 + (int)draw(&random, RANKS - 1);

		assert_non_null(algo);
		build(algo, n, &random, prog);
		if (draw(&random, 4) == 0)
			drop_message(prog, n, &random);
		else
			break_one(prog, n, &random);
		if (tti_program_check(prog, n, 1, TTI_ORDER_ANY) == TUTTI_OK) {
			accepted++;
			for (uint64_t variant = 0; variant < 8; variant++)
				run_randomly(prog, n, variant);
		} else {
			assert_non_null(strstr(tti_error_text(), "rank "));
			refused++;
		}
		release(prog, n);
	}
	/* Both happen, or this test says nothing. */
	assert_true(accepted > 300);
	assert_true(refused > 1000);
}

/* -- Drawn ------------------------------------------------------------------------- */

static void meet(struct tti_program *prog)
{
	for (int peer = 0; peer < prog->n; peer++)
		if (peer != prog->rank)
			tti_notify(prog, peer);
	for (int peer = 0; peer < prog->n; peer++)
		if (peer != prog->rank)
			tti_wait(prog, peer);
}

/* An all_reduce in which the owner of a chunk reduces it for itself and for some others, and all
 * others do it for themselves: who is in place must not write what others still read. */
static void draw_program(uint64_t plan, uint64_t *random, struct tti_program *prog)
{
	const int n = prog->n, rank = prog->rank;

	prog->nchunks = n;
	meet(prog);
	for (int chunk = 0; chunk < prog->nchunks; chunk++) {
		const int owner = chunk;
		const unsigned served = draw(&plan, 4) ? (1U << n) - 1 : draw(&plan, 1U << n);
		const int last = rank == n - 1 ? n - 2 : n - 1;

		for (int peer = 0; peer < n && (rank == owner || !(served >> rank & 1)); peer++)
			if (peer != rank)
				tti_get_reduce(prog, chunk, peer, peer == last);
		for (int peer = 0; peer < n && rank == owner; peer++)
			if (peer != rank && served >> peer & 1)
				tti_put(prog, chunk, peer);
		if (draw(&plan, 3) == 0)
			meet(prog);
	}
	meet(prog);
	prog->in_place = draw(random, 2);
}

static void drawn_programs_are_right(void **state)
{
	struct tti_program prog[RANKS];
	int accepted = 0, refused = 0;
	uint64_t random = 3;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		const int n = 2 + round % (RANKS - 1);

		for (int r = 0; r < n; r++) {
			prog[r] = (struct tti_program){
				.coll = TUTTI_ALL_REDUCE, .algorithm = "drawn", .rank = r, .n = n
			};
			draw_program((uint64_t)round, &random, &prog[r]);
		}
		if (tti_program_check(prog, n, 1, TTI_ORDER_ANY) == TUTTI_OK) {
			accepted++;
			for (uint64_t variant = 0; variant < 8; variant++)
				run_randomly(prog, n, variant);
		} else {
			assert_non_null(strstr(tti_error_text(), "rank "));
			refused++;
		}
		release(prog, n);
	}
	assert_true(accepted > 200);
	assert_true(refused > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(algorithms_come_out_right),
		cmocka_unit_test(what_is_accepted_is_right),
		cmocka_unit_test(drawn_programs_are_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
