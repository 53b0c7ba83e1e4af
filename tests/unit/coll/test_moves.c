/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of all ranks together are the call: run on plain arrays, in any order of ranks,
 * each output is right, written once, and nothing that is written is read by another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/moves.h"

#define N_MOST 9
#define COUNTS                                \
	{                                     \
		0, 1, 2, 15, 16, 17, 100, 145 \
	}
#define ROOM (145 * N_MOST)

struct board {
	long in[N_MOST][ROOM], out[N_MOST][ROOM];
	int written[N_MOST][ROOM]; /* by how many */
	int reader[N_MOST][ROOM];  /* of an input: who, -1: nobody, -2: several */
	int writer[N_MOST][ROOM];
};

static long value_of(int rank, size_t i)
{
	return (long)(i * 100 + 1) << rank;
}

static void move_all(struct board *b, const struct tti_move *move, int rank, int n)
{
	for (size_t i = 0; i < move->count; i++) {
		long value = 0;

		for (int from = 0; from < n; from++) {
			int *reader = &b->reader[from][move->from_at + i];

			if (move->from != TTI_EVERY && move->from != from)
				continue;
			value += b->in[from][move->from_at + i];
			*reader = *reader == -1 || *reader == rank ? rank : -2;
		}
		for (int to = 0; to < n; to++)
			if (move->to == TTI_EVERY || move->to == to) {
				b->out[to][move->to_at + i] = value;
				b->written[to][move->to_at + i]++;
				b->writer[to][move->to_at + i] = rank;
			}
	}
}

static long sum_of(size_t i, int n)
{
	long sum = 0;

	for (int rank = 0; rank < n; rank++)
		sum += value_of(rank, i);
	return sum;
}

static long wanted(tutti_collective coll, int root, int rank, int n, size_t count, size_t i)
{
	if (coll == TUTTI_ALL_REDUCE || coll == TUTTI_REDUCE)
		return sum_of(i, n);
	if (coll == TUTTI_REDUCE_SCATTER)
		return sum_of((size_t)rank * count + i, n);
	if (coll == TUTTI_BROADCAST)
		return value_of(root, i);
	return value_of((int)(i / count), i % count);
}

static void check_call(struct board *b, tutti_collective coll, int root, int n, size_t count)
{
	const size_t outs = coll == TUTTI_ALL_GATHER ? count * (size_t)n : count;

	memset(b, 0, sizeof(*b));
	memset(b->reader, -1, sizeof(b->reader));
	for (int rank = 0; rank < n; rank++)
		for (size_t i = 0; i < ROOM; i++)
			b->in[rank][i] = value_of(rank, i);
	for (int rank = n - 1; rank >= 0; rank--) {
		const struct tti_move move = tti_move_of(coll, root, rank, n, count, 16);

		move_all(b, &move, rank, n);
	}
	for (int rank = 0; rank < n; rank++)
		for (size_t i = 0; i < ROOM; i++) {
			const bool has = i < outs && (coll != TUTTI_REDUCE || rank == root);

			assert_int_equal(b->written[rank][i], has);
			if (has)
				assert_int_equal(b->out[rank][i],
						 wanted(coll, root, rank, n, count, i));
			/* In place the two are one. */
			if (has && coll != TUTTI_ALL_GATHER && coll != TUTTI_REDUCE_SCATTER &&
			    b->reader[rank][i] != -1)
				assert_int_equal(b->reader[rank][i], b->writer[rank][i]);
		}
}

static void parts_are_the_call(void **state)
{
	static const size_t counts[] = COUNTS;
	struct board *board = malloc(sizeof(*board));

	(void)state;
	assert_non_null(board);
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int n = 1; n <= N_MOST && tti_moves_know((tutti_collective)coll); n++)
			for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
				check_call(board, (tutti_collective)coll, 0, n, counts[c]);
				check_call(board, (tutti_collective)coll, n - 1, n, counts[c]);
			}
	free(board);
}

static void five_are_known(void **state)
{
	int known = 0;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		known += tti_moves_know((tutti_collective)coll);
	assert_int_equal(known, 5);
	assert_false(tti_moves_know(TUTTI_BARRIER));
	assert_false(tti_moves_know(TUTTI_HANDOFF));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_the_call),
		cmocka_unit_test(five_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
