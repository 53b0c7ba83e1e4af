/* SPDX-License-Identifier: BSD-3-Clause */
/* What the model takes algorithms to do is counted in their programs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "coll/program.h"
#include "plan/tune/tune_terms.h"

#define MOST 64

/* In units of the vector: over the border of the busiest node one way, through sockets of
 * the busiest rank, and out of slots by the busiest rank; and messages. */
struct counts {
	double wire, socket, read, far_messages;
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static void count_rank(const struct tti_program *prog, const uint32_t *node, double *out,
		       double *in, struct counts *counts)
{
	/* All to all: the vector is what one rank sends. */
	const double chunks = prog->nchunks / (prog->coll == TUTTI_ALL_TO_ALL ? prog->n : 1);
	double far = 0, near = 0;

	for (size_t i = 0; i < prog->steps.n; i++) {
		const struct tti_step *step = &prog->steps.at[i];

		if (step->kind == TTI_COPY)
			continue;
		if (node[step->peer] == node[prog->rank])
			near += step->kind != TTI_SEND;
		else
			far++;
		if (node[step->peer] != node[prog->rank])
			*(step->kind == TTI_SEND ? out : in) += 1.0 / chunks;
	}
	counts->far_messages = larger(counts->far_messages, far);
	counts->socket = larger(counts->socket, far / chunks);
	counts->read = larger(counts->read, near / chunks);
}

static struct counts count(const struct tti_algorithm *algo, const struct tti_shape *shape,
			   const uint32_t *node)
{
	double out[MOST] = { 0 }, in[MOST] = { 0 };
	struct counts counts = { 0 };

	for (int rank = 0; rank < (int)shape->n; rank++) {
		struct tti_program prog;

		assert_int_equal(tti_program_build(algo,
						   &(struct tti_program_spec){ .shape = shape,
									       .rank = rank,
									       .n = (int)shape->n },
						   &prog),
				 TUTTI_OK);
		count_rank(&prog, node, &out[node[rank]], &in[node[rank]], &counts);
		tti_program_release(&prog);
	}
	for (uint32_t i = 0; i < shape->ngroups; i++)
		counts.wire = larger(counts.wire, larger(out[i], in[i]));
	return counts;
}

static bool within(double model, double counted, double factor)
{
	return model <= counted * factor + 1e-9 && counted <= model * factor + 1e-9;
}

static bool is_power_of_two(uint32_t n)
{
	return (n & (n - 1)) == 0;
}

/* Where numbers are powers of two the model is exact; else what stands in for others moves
 * the load about. */
static void check(const struct tti_algorithm *algo, const struct tti_shape *shape, uint32_t nodes,
		  const struct counts *counted)
{
	const uint32_t ranks = shape->n / nodes;
	const struct tti_tune_machine machine =
		tti_tune_machine_of_groups(shape->n, nodes, ranks, ranks);
	const double factor = is_power_of_two(shape->n) ? 1.001 : 2;
	struct tti_tune_terms terms;
	enum tti_tune_algo name;

	assert_true(tti_tune_algo_find(algo->name, &name));
	assert_true(tti_tune_host_terms(&machine, algo->coll, name, &terms));
	if (!within(terms.wire, counted->wire, factor) ||
	    !within(terms.socket, counted->socket, factor) ||
	    !within(terms.far_messages, counted->far_messages, factor) ||
	    !within(terms.read, counted->read, factor))
		fail_msg("%s %s, %u x %u: wire %g, %g counted; socket %g, %g; read %g, %g; "
			 "messages between nodes %g, %g",
			 tutti_collective_name(algo->coll), algo->name, nodes, ranks, terms.wire,
			 counted->wire, terms.socket, counted->socket, terms.read, counted->read,
			 terms.far_messages, counted->far_messages);
}

static void model_counts_as_programs_do(void **state)
{
	static const uint32_t sizes[][2] = { { 1, 2 }, { 1, 4 }, { 1, 8 }, { 2, 1 }, { 3, 1 },
					     { 4, 1 }, { 8, 1 }, { 2, 2 }, { 2, 4 }, { 3, 4 },
					     { 4, 4 }, { 5, 3 }, { 8, 8 } };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint32_t n = sizes[i][0] * sizes[i][1];
		struct tti_shape *shape = NULL;
		uint32_t node[MOST];

		for (uint32_t rank = 0; rank < n; rank++)
			node[rank] = rank / sizes[i][1];
		assert_int_equal(tti_shape_of_groups(node, n, &shape), TUTTI_OK);
		for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++) {
			const struct tti_algorithm *algo;

			/* A barrier moves no bytes, and sends and handoffs are not predicted. */
			for (int k = 0; coll != TUTTI_BARRIER && coll != TUTTI_SEND_RECV &&
					coll != TUTTI_HANDOFF &&
					(algo = tti_algorithm_at((tutti_collective)coll, k));
			     k++) {
				struct counts counted;

				/* Sends no bytes; its time is not predicted. */
				if (algo->needs_memory)
					continue;
				counted = count(algo, shape, node);
				check(algo, shape, sizes[i][0], &counted);
			}
		}
		tti_shape_free(shape);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(model_counts_as_programs_do) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
