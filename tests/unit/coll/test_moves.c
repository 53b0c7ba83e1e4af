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

static void read_by(int *reader, int rank)
{
	*reader = *reader == -1 || *reader == rank ? rank : -2;
}

static void write_by(struct board *b, int rank, int to, size_t at, long value)
{
	b->out[to][at] = value;
	b->written[to][at]++;
	b->writer[to][at] = rank;
}

static void move_all(struct board *b, const struct tti_move *move, int rank, int n)
{
	for (size_t i = 0; i < move->count; i++) {
		long value = 0;

		for (int from = 0; from < n; from++) {
			if (move->from != TTI_EVERY && move->from != from)
				continue;
			value += b->in[from][move->from_at + i];
			read_by(&b->reader[from][move->from_at + i], rank);
		}
		for (int to = 0; to < n; to++)
			if (move->to == TTI_EVERY || move->to == to)
				write_by(b, rank, to, move->to_at + i, value);
		if (!move->swaps)
			continue;
		read_by(&b->reader[move->to][move->back_from_at + i], rank);
		write_by(b, rank, move->from, move->back_to_at + i,
			 b->in[move->to][move->back_from_at + i]);
	}
}

static long sum_of(size_t i, int n)
{
	long sum = 0;

	for (int rank = 0; rank < n; rank++)
		sum += value_of(rank, i);
	return sum;
}

/* Counts of calls that have them: some of them 0. */
static size_t count_of(int rank, size_t count)
{
	return rank % 3 == 1 ? 0 : count > (size_t)rank ? count - (size_t)rank : 0;
}

static size_t sum_of_counts(int n, size_t count)
{
	size_t sum = 0;

	for (int rank = 0; rank < n; rank++)
		sum += count_of(rank, count);
	return sum;
}

struct want {
	bool has; /* this element is written */
	long value;
};

static struct want wanted(const struct tti_moved *call, int rank, size_t i)
{
	const size_t all = call->count * (size_t)call->n;
	size_t before = 0;

	switch ((int)call->coll) {
	case TUTTI_ALL_REDUCE:
	case TUTTI_REDUCE:
		return (struct want){ i < call->count && (call->coll == TUTTI_ALL_REDUCE ||
							  rank == call->root),
				      sum_of(i, call->n) };
	case TUTTI_REDUCE_SCATTER:
		return (struct want){ i < call->count,
				      sum_of((size_t)rank * call->count + i, call->n) };
	case TUTTI_REDUCE_SCATTER_V:
		for (int r = 0; r < rank; r++)
			before += call->counts[r];
		return (struct want){ i < call->counts[rank], sum_of(before + i, call->n) };
	case TUTTI_BROADCAST:
		return (struct want){ i < call->count, value_of(call->root, i) };
	case TUTTI_SCATTER:
		return (struct want){ i < call->count,
				      value_of(call->root, (size_t)rank * call->count + i) };
	case TUTTI_ALL_TO_ALL:
		return i >= all ? (struct want){ 0 }
				: (struct want){ true, value_of((int)(i / call->count),
								(size_t)rank * call->count +
									i % call->count) };
	default: /* gathers */
		if (i >= all || (call->coll == TUTTI_GATHER && rank != call->root))
			return (struct want){ 0 };
		return (struct want){ true, value_of((int)(i / call->count), i % call->count) };
	}
}

/* Where output and input may be one in the very places, what is written none but the writer
 * reads. */
static bool may_be_one(tutti_collective coll)
{
	return coll == TUTTI_ALL_REDUCE || coll == TUTTI_REDUCE || coll == TUTTI_BROADCAST ||
	       coll == TUTTI_ALL_TO_ALL;
}

static void check_call(struct board *b, tutti_collective coll, int root, int n, size_t count)
{
	size_t counts[N_MOST];
	const bool is_uneven = coll == TUTTI_REDUCE_SCATTER_V;
	const struct tti_moved call = { .coll = coll,
					.root = root,
					.n = n,
					.count = is_uneven ? sum_of_counts(n, count) : count,
					.counts = coll == TUTTI_REDUCE_SCATTER_V ? counts : NULL,
					.grain = 16 };

	for (int rank = 0; rank < n; rank++)
		counts[rank] = count_of(rank, count);
	memset(b, 0, sizeof(*b));
	memset(b->reader, -1, sizeof(b->reader));
	for (int rank = 0; rank < n; rank++)
		for (size_t i = 0; i < ROOM; i++)
			b->in[rank][i] = value_of(rank, i);
	for (int rank = n - 1; rank >= 0; rank--)
		for (int index = 0; index < tti_moves_each(&call); index++) {
			const struct tti_move move = tti_move_at(&call, rank, index);

			move_all(b, &move, rank, n);
		}
	for (int rank = 0; rank < n; rank++)
		for (size_t i = 0; i < ROOM; i++) {
			const struct want want = wanted(&call, rank, i);

			assert_int_equal(b->written[rank][i], want.has);
			if (want.has)
				assert_int_equal(b->out[rank][i], want.value);
			if (want.has && may_be_one(coll) && b->reader[rank][i] != -1)
				assert_int_equal(b->reader[rank][i], b->writer[rank][i]);
		}
}

/* Each rank has a place of its own for a row, so a row is one vector from 0 on. */
static void uneven_rows_begin_where_told(void **state)
{
	const size_t counts[3] = { 7, 0, 100 };
	const struct tti_moved call = {
		.coll = TUTTI_ALL_GATHER_V, .n = 3, .count = 107, .counts = counts, .grain = 16
	};

	(void)state;
	assert_int_equal(tti_moves_each(&call), 1);
	for (int rank = 0; rank < 3; rank++) {
		const struct tti_move move = tti_move_at(&call, rank, 0);

		assert_int_equal(move.from, rank);
		assert_int_equal(move.to, TTI_EVERY);
		assert_int_equal(move.from_at, 0);
		assert_int_equal(move.to_at, 0);
		assert_int_equal(move.count, counts[rank]);
	}
}

static void check_handoff(struct board *b, const struct tti_moved *call)
{
	memset(b, 0, sizeof(*b));
	memset(b->reader, -1, sizeof(b->reader));
	/* All sources have parts of the vector of rank 0. */
	for (int k = 0; k < call->from->n; k++) {
		size_t first = 0, count = call->count;

		if (call->from->sharded)
			tutti_part(call->count, call->from->n, k, &first, &count);
		for (size_t i = 0; i < count; i++)
			b->in[call->from->ranks[k]][i] = value_of(0, first + i);
	}
	for (int rank = 0; rank < call->n; rank++)
		for (int index = 0; index < tti_moves_each(call); index++) {
			const struct tti_move move = tti_move_at(call, rank, index);

			move_all(b, &move, rank, call->n);
		}
	for (int rank = 0; rank < call->n; rank++) {
		const size_t gets = tti_moves_side_count(call, call->to, rank);
		size_t first = 0, count;

		for (int k = 0; k < call->to->n && call->to->sharded; k++)
			if (call->to->ranks[k] == rank)
				tutti_part(call->count, call->to->n, k, &first, &count);
		for (size_t i = 0; i < ROOM; i++) {
			assert_int_equal(b->written[rank][i], i < gets);
			if (i < gets)
				assert_int_equal(b->out[rank][i], value_of(0, first + i));
		}
	}
}

/* Sides of any kind, that meet or do not; ranks of neither take part in the work. */
static void handoffs(void **state)
{
	static const int ranks[] = { 4, 1, 3, 0, 2, 5, 6 };
	static const size_t counts[] = COUNTS;
	struct board *board = malloc(sizeof(*board));

	(void)state;
	assert_non_null(board);
	for (int k = 0; k < 5 * 5 * 4; k++)
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			const tutti_side from = { ranks, 1 + k % 5, k / 25 & 1 };
			const tutti_side to = { ranks + k % 3, 1 + k / 5 % 5, k / 50 };
			const struct tti_moved call = { .coll = TUTTI_HANDOFF,
							.n = 7,
							.count = counts[c],
							.from = &from,
							.to = &to,
							.grain = 16 };

			check_handoff(board, &call);
			assert_int_equal(tti_moves_touch(&call, 4), counts[c] > 0);
			assert_false(tti_moves_touch(&call, 6) && k % 3 + to.n < 7);
		}
	free(board);
}

static void parts_are_the_call(void **state)
{
	static const size_t counts[] = COUNTS;
	struct board *board = malloc(sizeof(*board));

	(void)state;
	assert_non_null(board);
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int n = 1; n <= N_MOST && tti_moves_know((tutti_collective)coll) &&
				coll != TUTTI_ALL_GATHER_V && coll != TUTTI_HANDOFF;
		     n++)
			for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
				check_call(board, (tutti_collective)coll, 0, n, counts[c]);
				check_call(board, (tutti_collective)coll, n - 1, n, counts[c]);
			}
	free(board);
}

static void eleven_are_known(void **state)
{
	int known = 0;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		known += tti_moves_know((tutti_collective)coll);
	assert_int_equal(known, 11);
	assert_false(tti_moves_know(TUTTI_BARRIER));
	assert_false(tti_moves_know(TUTTI_SEND_RECV));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_the_call),
		cmocka_unit_test(uneven_rows_begin_where_told),
		cmocka_unit_test(handoffs),
		cmocka_unit_test(eleven_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
