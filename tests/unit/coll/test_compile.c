/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/compile/compile.h"
#include "util/error.h"

static void compile_one(tutti_collective coll, const char *algorithm, int rank, int n, int root,
			struct tti_compiled *out)
{
	const struct tti_algorithm *algo = tti_algorithm_find(coll, algorithm);
	struct tti_program prog;

	assert_non_null(algo);
	assert_int_equal(
		tti_program_build(algo,
				  &(struct tti_program_spec){ .rank = rank, .n = n, .root = root },
				  &prog),
		TUTTI_OK);
	assert_int_equal(tti_compile(&prog, out), TUTTI_OK);
	tti_program_release(&prog);
}

static int peer_of_in(const struct tti_compiled *c, const struct tti_operation *oper, int i)
{
	const struct tti_queue *queue = &c->queue[c->queue_of[oper->in + i]];

	assert_false(queue->is_send);
	return queue->peer;
}

static void direct_is_scatter_reduce_fanout_gather(void **state)
{
	struct tti_compiled c;

	(void)state;
	compile_one(TUTTI_ALL_REDUCE, "direct", 1, 4, 0, &c);
	assert_int_equal(c.nopers, 3 + 1 + 1 + 3);
	assert_int_equal(c.nqueues, 6);
	assert_int_equal(c.nlocal, 0);
	assert_int_equal(c.nscratch, 0);
	assert_false(c.exchange);
	for (int i = 0; i < 3; i++) {
		const struct tti_operation *send = &c.oper[i], *recv = &c.oper[5 + i];

		assert_int_equal(send->nout, 1);
		assert_int_equal(send->nin, 0);
		assert_int_equal(send->from, TTI_PLACE_INPUT);
		assert_int_equal(send->to, TTI_PLACE_NONE);
		assert_int_equal(send->npred, 0);
		assert_int_equal(c.step[i], i);
		/* The gathered chunk is written where the input may lie. */
		assert_int_equal(send->nsucc, 1);
		assert_int_equal(recv->nin, 1);
		assert_int_equal(recv->npred, 1);
		assert_int_equal(recv->from, TTI_PLACE_NONE);
		assert_int_equal(recv->to, TTI_PLACE_OUTPUT);
		assert_int_equal(recv->then, -1);
	}
	assert_int_equal(c.oper[3].nin, 3);
	assert_int_equal(peer_of_in(&c, &c.oper[3], 0), 0);
	assert_int_equal(peer_of_in(&c, &c.oper[3], 1), 2);
	assert_int_equal(peer_of_in(&c, &c.oper[3], 2), 3);
	assert_int_equal(c.oper[3].local_at, 1);
	assert_int_equal(c.oper[3].from, TTI_PLACE_INPUT);
	assert_int_equal(c.oper[3].to, TTI_PLACE_OUTPUT);
	assert_int_equal(c.oper[3].final, 1);
	assert_int_equal(c.oper[3].then, 4);
	assert_int_equal(c.oper[4].nout, 3);
	assert_int_equal(c.oper[4].from, TTI_PLACE_OUTPUT);
	assert_int_equal(c.oper[4].npred, 1);
	assert_int_equal(c.step[4], 6);
	tti_compiled_release(&c);
}

static void exchange_is_marked(void **state)
{
	struct tti_compiled c;

	(void)state;
	for (int n = 2; n < 6; n++) {
		compile_one(TUTTI_ALL_REDUCE, "exchange", n - 1, n, 0, &c);
		assert_true(c.exchange);
		assert_int_equal(c.nopers, 2);
		assert_int_equal(c.oper[0].nout, n - 1);
		assert_int_equal(c.oper[1].nin, n - 1);
		assert_int_equal(c.oper[1].local_at, n - 1);
		assert_int_equal(c.oper[1].npred, 1);
		tti_compiled_release(&c);
		compile_one(TUTTI_BARRIER, "exchange", 0, n, 0, &c);
		assert_true(c.exchange);
		tti_compiled_release(&c);
	}
	/* Of two ranks recursive doubling is the same. */
	compile_one(TUTTI_ALL_REDUCE, "recursive_doubling", 0, 2, 0, &c);
	assert_true(c.exchange);
	tti_compiled_release(&c);
	compile_one(TUTTI_ALL_REDUCE, "recursive_doubling", 0, 4, 0, &c);
	assert_false(c.exchange);
	tti_compiled_release(&c);
}

static void one_rank_copies(void **state)
{
	static const tutti_collective coll[] = { TUTTI_ALL_REDUCE,     TUTTI_BROADCAST,
						 TUTTI_REDUCE,         TUTTI_ALL_GATHER,
						 TUTTI_REDUCE_SCATTER, TUTTI_ALL_TO_ALL,
						 TUTTI_GATHER,         TUTTI_SCATTER };
	const struct tti_algorithm *algo;
	struct tti_compiled c;

	(void)state;
	for (size_t k = 0; k < sizeof(coll) / sizeof(coll[0]); k++)
		for (int i = 0; (algo = tti_algorithm_at(coll[k], i)); i++) {
			compile_one(coll[k], algo->name, 0, 1, 0, &c);
			assert_int_equal(c.nopers, c.nchunks);
			assert_int_equal(c.nlocal, c.nchunks);
			for (int o = 0; o < c.nopers; o++) {
				assert_int_equal(c.oper[o].from, TTI_PLACE_INPUT);
				assert_int_equal(c.oper[o].to, TTI_PLACE_OUTPUT);
				assert_int_equal(c.oper[o].nin + c.oper[o].nout, 0);
				assert_int_equal(c.local[o], o);
				/* A copy that is added, or one that the program says. */
				assert_true(c.step[o] == -1 || c.step[o] == o);
			}
			tti_compiled_release(&c);
		}
	compile_one(TUTTI_BARRIER, "exchange", 0, 1, 0, &c);
	assert_int_equal(c.nopers, 0);
	tti_compiled_release(&c);
}

static void partial_sums_go_to_scratch(void **state)
{
	struct tti_compiled c;

	(void)state;
	compile_one(TUTTI_REDUCE_SCATTER, "ring", 0, 3, 0, &c);
	assert_true(c.nscratch > 0);
	assert_int_equal(c.oper[1].to, TTI_PLACE_SCRATCH);
	assert_int_equal(c.oper[1].then, 2);
	assert_int_equal(c.oper[2].from, TTI_PLACE_SCRATCH);
	assert_int_equal(c.oper[3].to, TTI_PLACE_OUTPUT);
	tti_compiled_release(&c);
	compile_one(TUTTI_REDUCE, "chain", 2, 3, 0, &c);
	assert_true(c.nscratch > 0);
	tti_compiled_release(&c);
	compile_one(TUTTI_REDUCE, "chain", 0, 3, 0, &c);
	assert_int_equal(c.nscratch, 0);
	tti_compiled_release(&c);
}

/* before[a][b]: a is done before b starts, by edges and queues. */
static void order_of(const struct tti_compiled *c, uint8_t *before)
{
	const int n = c->nopers;

	memset(before, 0, (size_t)n * (size_t)n);
	for (int a = 0; a < n; a++)
		for (int s = 0; s < c->oper[a].nsucc; s++) {
			assert_true(c->succs[c->oper[a].succ + s] > a);
			before[a * n + c->succs[c->oper[a].succ + s]] = 1;
		}
	for (int q = 0; q < c->nqueues; q++)
		for (int k = 1; k < c->queue[q].n; k++) {
			const int32_t *at = &c->queued[c->queue[q].first + k];

			assert_true(at[0] > at[-1]);
			before[at[-1] * n + at[0]] = 1;
		}
	for (int a = n - 1; a >= 0; a--)
		for (int b = a + 1; b < n; b++)
			if (before[a * n + b])
				for (int z = b + 1; z < n; z++)
					before[a * n + z] |= before[b * n + z];
}

static void check_order(const struct tti_compiled *c)
{
	const int n = c->nopers;
	uint8_t *before = malloc((size_t)n * (size_t)n + 1);
	int *npred = calloc((size_t)n + 1, sizeof(*npred));

	assert_non_null(before);
	assert_non_null(npred);
	order_of(c, before);
	for (int a = 0; a < n; a++) {
		const struct tti_operation *oper = &c->oper[a];

		for (int s = 0; s < oper->nsucc; s++)
			npred[c->succs[oper->succ + s]]++;
		for (int b = a + 1; b < n; b++)
			if (c->oper[b].chunk == oper->chunk && (oper->to || c->oper[b].to))
				assert_true(before[a * n + b]);
	}
	for (int a = 0; a < n; a++) {
		const int then = c->oper[a].then;

		assert_int_equal(c->oper[a].npred, npred[a]);
		if (then < 0)
			continue;
		assert_int_equal(c->oper[then].npred, 1);
		assert_true(c->oper[a].nin > 0 && c->oper[then].nout > 0);
		assert_int_equal(c->oper[then].from, c->oper[a].to);
	}
	free(npred);
	free(before);
}

/* Whatever two operations do to one chunk is in order, for all algorithms of messages. */
static void conflicts_are_ordered(void **state)
{
	const struct tti_algorithm *algo;
	struct tti_compiled c;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= 12; n++)
				for (int rank = 0; rank < n; rank++) {
					compile_one(algo->coll, algo->name, rank, n, n / 2, &c);
					if (!c.is_memory)
						check_order(&c);
					tti_compiled_release(&c);
				}
}

/* Fan-outs without a common queue could take the shared slots in any order. */
static void fanouts_share_a_queue(void **state)
{
	struct tti_program prog = {
		.coll = TUTTI_BROADCAST, .algorithm = "test", .n = 8, .nchunks = 3
	};
	struct tti_compiled c;

	(void)state;
	tti_send(&prog, 0, 1);
	tti_send(&prog, 0, 2);
	tti_send(&prog, 0, 3);
	tti_send(&prog, 1, 4); /* shares none */
	tti_send(&prog, 1, 5);
	tti_send(&prog, 2, 3);
	tti_send(&prog, 2, 6);
	assert_int_equal(tti_compile(&prog, &c), TUTTI_OK);
	assert_int_equal(c.nopers, 4 + 3);
	assert_int_equal(c.oper[0].nout, 3);
	assert_int_equal(c.oper[1].nout, 1);
	assert_int_equal(c.oper[2].nout, 1);
	assert_int_equal(c.oper[3].nout, 2);
	assert_int_equal(c.nlocal, 3);
	tti_compiled_release(&c);
	tti_program_release(&prog);
}

static void rows_end_at_final_and_at_a_second_message_of_a_peer(void **state)
{
	struct tti_program prog = {
		.coll = TUTTI_ALL_REDUCE, .algorithm = "test", .n = 4, .nchunks = 1
	};
	struct tti_compiled c;

	(void)state;
	tti_recv_reduce(&prog, 0, 3, false);
	tti_recv_reduce(&prog, 0, 1, false);
	tti_recv_reduce(&prog, 0, 3, true);
	tti_recv_reduce(&prog, 0, 2, false);
	assert_int_equal(tti_compile(&prog, &c), TUTTI_OK);
	assert_int_equal(c.nopers, 3);
	assert_int_equal(c.oper[0].nin, 2);
	assert_int_equal(peer_of_in(&c, &c.oper[0], 0), 1);
	assert_int_equal(peer_of_in(&c, &c.oper[0], 1), 3);
	assert_int_equal(c.oper[1].final, 1);
	assert_int_equal(c.oper[2].final, 0);
	/* The second waits for the first in their queue, the third by an edge. */
	assert_int_equal(c.oper[1].npred, 0);
	assert_int_equal(c.oper[2].npred, 1);
	tti_compiled_release(&c);
	tti_program_release(&prog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(direct_is_scatter_reduce_fanout_gather),
		cmocka_unit_test(exchange_is_marked),
		cmocka_unit_test(one_rank_copies),
		cmocka_unit_test(partial_sums_go_to_scratch),
		cmocka_unit_test(conflicts_are_ordered),
		cmocka_unit_test(fanouts_share_a_queue),
		cmocka_unit_test(rows_end_at_final_and_at_a_second_message_of_a_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
