/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs as kernels read them: nothing is lost, arrays lie apart, and what receives and sends on in
 * one pass moves no byte more than it must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coll/program.h"
#include "support/device_sum.h"
#include "util/mem.h"

#define RANKS 9

/* Of which arrays a program consists, in the order of their offsets. */
struct array {
	uint32_t at;
	size_t nbytes;
};

static const void *at(const struct tti_dev_program *prog, uint32_t offset)
{
	return (const char *)prog + offset;
}

static void check_arrays(const struct tti_compiled *from, const struct tti_dev_program *prog)
{
	const struct tti_dev_operation *op = at(prog, prog->operations);
	size_t messages = 0, peers = 0;
	struct array array[4];
	size_t end = sizeof(*prog);

	for (int32_t i = 0; i < prog->noperations; i++) {
		messages += (size_t)(op[i].nin + op[i].nout);
		peers += (size_t)(op[i].nget + op[i].nput);
	}
	array[0] = (struct array){ prog->operations, (size_t)prog->noperations * sizeof(*op) };
	array[1] = (struct array){ prog->queue_of, messages * sizeof(int32_t) };
	array[2] = (struct array){ prog->lane_of, (size_t)prog->nqueues * sizeof(int32_t) };
	array[3] = (struct array){ prog->peer_of, peers * sizeof(int32_t) };
	for (size_t i = 0; i < 4; i++) {
		assert_true(array[i].at >= end && array[i].at % 16 == 0);
		end = array[i].at + array[i].nbytes;
	}
	assert_true(end <= prog->nbytes);
	assert_int_equal(prog->nbytes % 16, 0);
	for (int32_t i = 0; i < prog->nqueues; i++)
		assert_int_equal(((const int32_t *)at(prog, prog->lane_of))[i],
				 2 * from->queue[i].peer + (from->queue[i].is_send != 0));
}

/* Which operation sends what operation `index` copies from input to output; -1: none before it, or it
 * copies nothing. */
static int32_t sender_of(const struct tti_compiled *from, int32_t index)
{
	const struct tti_operation *copy = &from->oper[index];

	if (from->coll == TUTTI_SEND_RECV || copy->sync || copy->from != TTI_PLACE_INPUT ||
	    copy->to != TTI_PLACE_OUTPUT || copy->nin + copy->nout + copy->nget + copy->nput > 0)
		return -1;
	for (int32_t i = 0; i < index; i++)
		if (from->oper[i].chunk == copy->chunk && from->oper[i].nout > 0 &&
		    from->oper[i].nin == 0 && from->oper[i].from == TTI_PLACE_INPUT)
			return i;
	return -1;
}

static bool copies(const struct tti_compiled *from, int32_t sender)
{
	for (int32_t i = sender + 1; i < from->nopers; i++)
		if (sender_of(from, i) == sender)
			return true;
	return false;
}

/* Every operation is there, in its order, with the queues that it had. */
static void check_operations(const struct tti_compiled *from, const struct tti_dev_program *prog)
{
	const struct tti_dev_operation *op = at(prog, prog->operations);
	const int32_t *queue_of = at(prog, prog->queue_of);
	int32_t k = 0;

	for (int32_t i = 0; i < from->nopers; i++, k++) {
		const struct tti_operation *old = &from->oper[i];

		if (sender_of(from, i) >= 0) {
			k--;
			continue;
		}
		assert_true(k < prog->noperations);
		assert_true(op[k].chunk == old->chunk && op[k].stage == old->stage);
		assert_int_equal(op[k].from, old->from);
		assert_int_equal(op[k].to, copies(from, i) ? TTI_PLACE_OUTPUT : old->to);
		assert_true(op[k].nin == old->nin && op[k].nget == old->nget);
		for (int32_t in = 0; in < old->nin; in++)
			assert_int_equal(queue_of[op[k].in + in], from->queue_of[old->in + in]);
		if (op[k].nin > 0 && op[k].nout > 0 && old->nout == 0) {
			old = &from->oper[++i];
			assert_true(old->nin == 0 && old->chunk == op[k].chunk &&
				    old->from == op[k].to);
		}
		assert_int_equal(op[k].nout, old->nout);
		for (int32_t out = 0; out < old->nout; out++)
			assert_int_equal(queue_of[op[k].out + out], from->queue_of[old->out + out]);
		assert_true(op[k].nin + op[k].nget + (op[k].from != TTI_PLACE_NONE) <=
			    prog->noperands);
		assert_true(op[k].nout + op[k].nput + (op[k].to != TTI_PLACE_NONE) <=
			    prog->noperands);
	}
	assert_int_equal(k, prog->noperations);
}

/* A result that need not be written is read by nobody before it is written anew, and is no output. */
static void check_dropped(const struct tti_dev_program *prog)
{
	const struct tti_dev_operation *op = at(prog, prog->operations);

	for (int32_t i = 0; i < prog->noperations; i++) {
		int32_t next = i + 1;

		if (!op[i].is_dropped)
			continue;
		assert_true((op[i].nin > 0 && op[i].nout > 0) ||
			    (op[i].nput > 0 && op[i].to == TTI_PLACE_SCRATCH));
		while (next < prog->noperations &&
		       (op[next].chunk != op[i].chunk ||
			(op[next].from != op[i].to && op[next].to != op[i].to)))
			next++;
		if (next < prog->noperations)
			assert_int_not_equal(op[next].from, op[i].to);
		else
			assert_int_equal(op[i].to, TTI_PLACE_SCRATCH);
	}
}

static void check_program(const struct tti_algorithm *algo, int n, int rank)
{
	const struct tti_program_spec spec = { .rank = rank,
					       .n = n,
					       .split = { .parts = 1 + n % 2 } };
	struct tti_dev_program *prog = NULL;
	struct tti_compiled compiled;
	struct tti_program steps;

	assert_int_equal(tti_program_build(algo, &spec, &steps), TUTTI_OK);
	assert_int_equal(tti_compile(&steps, &compiled), TUTTI_OK);
	assert_int_equal(tti_dev_flatten(&compiled, &prog), TUTTI_OK);
	check_arrays(&compiled, prog);
	check_operations(&compiled, prog);
	check_dropped(prog);
	assert_true(tti_dev_window(prog) > prog->skew * (prog->nstages - 1));
	assert_int_equal(tti_dev_window(prog) & (tti_dev_window(prog) - 1), 0);
	tti_free(prog);
	tti_compiled_release(&compiled);
	tti_program_release(&steps);
}

static void programs_are_whole(void **state)
{
	const struct tti_algorithm *algo;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= RANKS; n++)
				for (int rank = 0; rank < n; rank++)
					check_program(algo, n, rank);
}

/* Of n chunks a rank sends one; n - 2 times it receives, reduces and sends; once more, and then the
 * result is written as well; n - 2 times it receives, writes and sends; and at last receives. */
static void a_ring_moves_what_it_must(void **state)
{
	static struct device_sum sum;

	(void)state;
	for (int n = 2; n <= SUM_RANKS; n++) {
		const struct device_config config = {
			.n = n, .nblocks = 2, .nthreads = 2, .nslots = 2, .words = n % 2
		};
		const size_t count = (size_t)n * 100;
		const uint64_t chunks = 1 + 2 * (uint64_t)(n - 2) + 2 + (uint64_t)(n - 2) + 1;

		device_sum_init(&sum, &config, "ring", count, 30);
		assert_int_equal(device_run(&sum.bed, sum.call, 1), DEVICE_DONE);
		assert_int_equal(device_sum_wrong(&sum), 0);
		assert_int_equal(sum.bed.traffic.read, (uint64_t)n * chunks * 100 * sizeof(float));
		assert_int_equal(sum.bed.traffic.written,
				 (uint64_t)n * chunks * 100 * sizeof(float));
		device_sum_release(&sum);
	}
}

/* An operation whose operands no block has room for is refused, and the text names a remedy. */
static void too_many_operands_are_refused(void **state)
{
	const int n = TTI_DEV_OPERANDS_MAX + 2;
	const struct tti_algorithm *algo = tti_algorithm_find(TUTTI_ALL_REDUCE, "exchange");
	const struct tti_program_spec spec = { .rank = 0, .n = n };
	struct tti_dev_program *prog = NULL;
	struct tti_compiled compiled;
	struct tti_program steps;

	(void)state;
	assert_int_equal(tti_program_build(algo, &spec, &steps), TUTTI_OK);
	assert_int_equal(tti_compile(&steps, &compiled), TUTTI_OK);
	assert_int_equal(tti_dev_flatten(&compiled, &prog), TUTTI_EUNSUPPORTED);
	assert_null(prog);
	tti_compiled_release(&compiled);
	tti_program_release(&steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_are_whole),
		cmocka_unit_test(a_ring_moves_what_it_must),
		cmocka_unit_test(too_many_operands_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
