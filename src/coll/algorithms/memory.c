/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Collectives where every rank reaches the buffers of all: no chunk is passed on, each rank does
 * its part of the call where the data lies. No two ranks write the same element, and what one
 * writes no other reads. So all say that their buffers are ready, and in the end that they are
 * done; nothing in between. Where only the root's buffers are touched by others, the root alone
 * says so, and it alone waits in the end.
 *
 * Every byte is read once and written once, but for what several ranks want. */

/* The next rank comes first, so that not all come to one at a time. */
static int other(const struct tti_program *prog, int offset)
{
	return tti_wrap(prog->rank + offset, prog->n);
}

static void notify_all(struct tti_program *prog)
{
	for (int offset = 1; offset < prog->n; offset++)
		tti_notify(prog, other(prog, offset));
}

static void wait_for_all(struct tti_program *prog)
{
	for (int offset = 1; offset < prog->n; offset++)
		tti_wait(prog, other(prog, offset));
}

static void put_to_all(struct tti_program *prog, int chunk)
{
	for (int offset = 1; offset < prog->n; offset++)
		tti_put(prog, chunk, other(prog, offset));
}

void tti_memory_sync(struct tti_program *prog)
{
	prog->stage = 0;
	notify_all(prog);
	wait_for_all(prog);
}

/* The chunk of all inputs into one value. */
static void reduce_from_all(struct tti_program *prog, int chunk)
{
	const int last = prog->rank == prog->n - 1 ? prog->n - 2 : prog->n - 1;

	for (int peer = 0; peer < prog->n; peer++)
		if (peer != prog->rank)
			tti_get_reduce(prog, chunk, peer, peer == last);
}

void tti_memory_all_reduce(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	tti_memory_sync(prog);
	reduce_from_all(prog, prog->rank);
	put_to_all(prog, prog->rank);
	tti_memory_sync(prog);
}

void tti_memory_reduce(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	tti_memory_sync(prog);
	reduce_from_all(prog, prog->rank);
	if (prog->rank != prog->root)
		tti_put(prog, prog->rank, prog->root);
	tti_memory_sync(prog);
}

/* Each rank its own row; or, as one row may be all there is where each has a length of its own, a
 * part of every row. Rows are runs of their own, so partial results need room for one slice. */
void tti_memory_reduce_scatter(struct tti_program *prog)
{
	const int parts = prog->split.parts > 1 ? prog->n : 1;

	prog->nchunks = prog->n * parts;
	tti_memory_sync(prog);
	if (parts == 1)
		reduce_from_all(prog, prog->rank);
	for (int offset = 0; offset < prog->n && parts > 1; offset++) {
		const int owner = other(prog, offset);
		const int chunk = owner * parts + prog->rank;

		prog->stage = offset % 2;
		reduce_from_all(prog, chunk);
		if (owner != prog->rank)
			tti_put(prog, chunk, owner);
	}
	tti_memory_sync(prog);
}

void tti_memory_broadcast(struct tti_program *prog)
{
	const int chunk = prog->rank;

	prog->nchunks = prog->n;
	tti_memory_sync(prog);
	if (prog->rank == prog->root)
		tti_copy_chunk(prog, chunk);
	else
		tti_get(prog, chunk, prog->root);
	put_to_all(prog, chunk);
	tti_memory_sync(prog);
}

void tti_memory_all_gather(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	tti_memory_sync(prog);
	tti_copy_chunk(prog, prog->rank);
	put_to_all(prog, prog->rank);
	tti_memory_sync(prog);
}

/* Each other rank moves its row to or from the root. */
static void move_rows(struct tti_program *prog,
		      void (*move)(struct tti_program *prog, int chunk, int peer))
{
	prog->nchunks = prog->n;
	if (prog->rank == prog->root) {
		notify_all(prog);
		tti_copy_chunk(prog, prog->root);
		wait_for_all(prog);
	} else {
		tti_wait(prog, prog->root);
		move(prog, prog->rank, prog->root);
		tti_notify(prog, prog->root);
	}
}

void tti_memory_gather(struct tti_program *prog)
{
	move_rows(prog, tti_put);
}

void tti_memory_scatter(struct tti_program *prog)
{
	move_rows(prog, tti_get);
}

/* Two ranks swap what they have for each other in two halves: the lower rank does the first half,
 * both ways, the other rank the second half. So no rank waits for what another is doing, and each
 * may be in place. Pairs are runs of their own: slice after slice goes both ways. */
void tti_memory_all_to_all(struct tti_program *prog)
{
	const int rank = prog->rank, n = prog->n;

	prog->nchunks = 2 * n * n;
	tti_memory_sync(prog);
	for (int offset = 1; offset < n; offset++) {
		const int peer = other(prog, offset), half = rank > peer;

		prog->stage = offset % 2;
		tti_get(prog, 2 * (peer * n + rank) + half, peer);
		tti_put(prog, 2 * (rank * n + peer) + half, peer);
	}
	prog->stage = n % 2;
	for (int half = 0; half < 2; half++)
		tti_copy_chunk(prog, 2 * (rank * n + rank) + half);
	tti_memory_sync(prog);
}

/* Dissemination (Hensgen, Finkel and Manber, International Journal of Parallel Programming 1988):
 * after round k a rank has heard of the 2^k ranks before it, and there is nothing to move. */
void tti_memory_barrier(struct tti_program *prog)
{
	prog->nchunks = 1;
	for (int distance = 1; distance < prog->n; distance *= 2) {
		tti_notify(prog, other(prog, distance));
		tti_wait(prog, other(prog, -distance));
	}
}
