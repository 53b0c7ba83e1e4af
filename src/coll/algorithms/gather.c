/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Gather and scatter: to one root and from it, each rank's own chunk. The root gets or sends
 * all of it whatever the way, so flat moves the least and in one hop; binomial trees have
 * ceil(log2 n) peers at the root in place of n - 1. In the tree of the root's numbering
 * rank v hangs on v without its lowest bit and has below it all up to v plus that bit. */

void tti_flat_gather(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	if (prog->rank != prog->root)
		tti_send(prog, prog->rank, prog->root);
	for (int offset = 1; offset < prog->n && prog->rank == prog->root; offset++) {
		const int peer = tti_wrap(prog->root - offset, prog->n);

		tti_recv(prog, peer, peer);
	}
}

void tti_flat_scatter(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	if (prog->rank != prog->root)
		tti_recv(prog, prog->rank, prog->root);
	for (int offset = 1; offset < prog->n && prog->rank == prog->root; offset++) {
		const int peer = tti_wrap(prog->root + offset, prog->n);

		tti_send(prog, peer, peer);
	}
}

/* -- Binomial ---------------------------------------------------------------------- */

static int number_of(const struct tti_program *prog)
{
	return tti_wrap(prog->rank - prog->root, prog->n);
}

static int rank_of(const struct tti_program *prog, int number)
{
	return tti_wrap(prog->root + number, prog->n);
}

/* How many ranks hang on one, itself included. */
static int below(const struct tti_program *prog, int number)
{
	const int all = number ? number & -number : prog->n;

	return all < prog->n - number ? all : prog->n - number;
}

/* Which of `number`'s children has `further` ranks after it below itself. */
static int child_of(int number, int further)
{
	int bit = 1;

	while (2 * bit <= further)
		bit *= 2;
	return number + bit;
}

void tti_binomial_gather(struct tti_program *prog)
{
	const int number = number_of(prog), parent = rank_of(prog, number & (number - 1));

	prog->nchunks = prog->n;
	for (int further = 0; further < below(prog, number); further++) {
		const int chunk = rank_of(prog, number + further);

		if (further > 0)
			tti_recv(prog, chunk, rank_of(prog, child_of(number, further)));
		if (number > 0)
			tti_send(prog, chunk, parent);
	}
}

/* Chunks that have furthest to go are sent first. */
void tti_binomial_scatter(struct tti_program *prog)
{
	const int number = number_of(prog), parent = rank_of(prog, number & (number - 1));

	prog->nchunks = prog->n;
	for (int further = below(prog, number) - 1; further >= 0; further--) {
		const int chunk = rank_of(prog, number + further);

		if (number > 0)
			tti_recv(prog, chunk, parent);
		if (further > 0)
			tti_send(prog, chunk, rank_of(prog, child_of(number, further)));
	}
}
