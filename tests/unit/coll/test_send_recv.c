/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of sends and receives, and calls with counts that only two ranks know, by messages and in
 * memory: whatever the counts and the order of peers on each rank, they are proven; and no step of a
 * program in memory is one too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/algorithms/send_recv.h"
#include "coll/check/check.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "util/error.h"

#define RANKS   33
#define VECTORS (SANITIZED ? 150 : 1000)
#define MOST    (RANKS * RANKS) /* transfers of all ranks */

struct list {
	int n, ntransfers;
	int nsteps[RANKS];
	struct tti_transfer_step step[RANKS][2 * MOST];
};

static struct list list;
static uint64_t random_state;

static int draw(int n)
{
	return (int)(next_random(&random_state) % (uint64_t)n);
}

static void begin(int n)
{
	list.n = n;
	list.ntransfers = 0;
	memset(list.nsteps, 0, sizeof(list.nsteps));
}

static void add_step(int rank, enum tti_transfer_kind kind, int peer, int chunk)
{
	list.step[rank][list.nsteps[rank]++] =
		(struct tti_transfer_step){ .kind = kind, .peer = peer, .chunk = chunk };
}

static void add_transfer(int from, int to)
{
	const int chunk = list.ntransfers++;

	add_step(from, TTI_TRANSFER_SEND, to, chunk);
	add_step(to, TTI_TRANSFER_RECV, from, chunk);
}

/* Neighbours in a rank's list change places, but for two transfers that go the same way with one
 * peer, and for what a rank sends itself. */
static void shuffle(int rank)
{
	struct tti_transfer_step *step = list.step[rank];

	for (int k = 0; list.nsteps[rank] > 1 && k < 4 * list.nsteps[rank]; k++) {
		const int at = draw(list.nsteps[rank] - 1);
		const struct tti_transfer_step first = step[at];

		if (first.peer == step[at + 1].peer &&
		    (first.peer == rank || first.kind == step[at + 1].kind))
			continue;
		step[at] = step[at + 1];
		step[at + 1] = first;
	}
}

/* A group, as its ranks list it. */
static void draw_group(int n)
{
	const int ntransfers = draw(4 * n + 1);

	begin(n);
	for (int i = 0; i < ntransfers; i++)
		add_transfer(draw(n), draw(n));
	for (int rank = 0; rank < n; rank++)
		shuffle(rank);
}

/* An all_to_all_v, gather_v or scatter_v of random counts, as core/prepare/transfers.c lists it: in round k to
 * the k-th rank after each, then from the k-th before it, then what is its own. Where `root` is not
 * -1, ranks have something for it alone, or from it. */
static void draw_counts(int n, int root, bool gathers)
{
	static int chunk[RANKS][RANKS];

	begin(n);
	for (int from = 0; from < n; from++)
		for (int to = 0; to < n; to++) {
			const bool is_in = root < 0 || (gathers ? to : from) == root;

			/* Of nothing there is no message in memory. */
			chunk[from][to] = is_in && draw(3) ? list.ntransfers++ : -1;
		}
	for (int rank = 0; rank < n; rank++) {
		for (int round = 1; round < n; round++)
			if (chunk[rank][(rank + round) % n] >= 0)
				add_step(rank, TTI_TRANSFER_SEND, (rank + round) % n,
					 chunk[rank][(rank + round) % n]);
		for (int round = 1; round < n; round++)
			if (chunk[(rank + n - round) % n][rank] >= 0)
				add_step(rank, TTI_TRANSFER_RECV, (rank + n - round) % n,
					 chunk[(rank + n - round) % n][rank]);
		if (chunk[rank][rank] >= 0)
			add_step(rank, TTI_TRANSFER_COPY, rank, chunk[rank][rank]);
	}
}

static void build(bool in_memory, struct tti_program *prog)
{
	for (int rank = 0; rank < list.n; rank++)
		assert_int_equal((in_memory ? tti_send_recv_in_memory : tti_send_recv_program)(
					 list.step[rank], list.nsteps[rank],
					 list.ntransfers ? list.ntransfers : 1, rank, list.n,
					 &prog[rank]),
				 TUTTI_OK);
}

static void release(struct tti_program *prog)
{
	for (int rank = 0; rank < list.n; rank++)
		tti_program_release(&prog[rank]);
}

static void must_be_proven(bool in_memory, int vector)
{
	struct tti_program prog[RANKS];

	build(in_memory, prog);
	if (tti_program_check(prog, list.n, 1, TTI_ORDER_ANY) != TUTTI_OK)
		fail_msg("vector %d, %d ranks, %d transfers, %s: %s", vector, list.n,
			 list.ntransfers, in_memory ? "in memory" : "by messages",
			 tti_error_text());
	release(prog);
}

/* A step less, or one that is about another chunk. */
static void must_be_refused(int vector)
{
	struct tti_program prog[RANKS];
	struct tti_program *at = &prog[draw(list.n)];
	struct tti_step *step;
	size_t index;

	build(true, prog);
	index = at->steps.n ? (size_t)draw((int)at->steps.n) : 0;
	step = at->steps.n ? &at->steps.at[index] : NULL;
	if (at->steps.n && !tti_step_is_sync(step->kind) && list.ntransfers > 1 && draw(2))
		step->chunk = (step->chunk + 1) % list.ntransfers;
	else if (at->steps.n)
		memmove(step, step + 1, (--at->steps.n - index) * sizeof(*step));
	if (list.nsteps[at - prog] && tti_program_check(prog, list.n, 1, TTI_ORDER_ANY) == TUTTI_OK)
		fail_msg("vector %d, %d ranks: accepted without step %zu of rank %d", vector,
			 list.n, index, (int)(at - prog));
	release(prog);
}

static void groups_are_proven(void **state)
{
	(void)state;
	random_state = 1;
	for (int vector = 0; vector < VECTORS; vector++) {
		draw_group(1 + vector % RANKS);
		must_be_proven(true, vector);
		must_be_refused(vector);
	}
}

static void calls_by_pairs_are_proven(void **state)
{
	(void)state;
	random_state = 2;
	for (int vector = 0; vector < VECTORS; vector++) {
		const int n = 1 + vector % RANKS, kind = draw(3);

		draw_counts(n, kind ? draw(n) : -1, kind == 1);
		must_be_proven(true, vector);
		must_be_proven(false, vector);
		must_be_refused(vector);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_proven),
		cmocka_unit_test(calls_by_pairs_are_proven),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
