/* SPDX-License-Identifier: BSD-3-Clause */
#include "campaign/places.h"

/* Parts of different length where a call takes a count for each rank. */
#define SPREAD 8
#define MOST   20000
#define ROOM   (MOST_RANKS * (MOST + SPREAD))

static int32_t to_send[ROOM], received[ROOM];

/* -- Data that is known ----------------------------------------------------------- */

static int32_t input(const struct actor *a, int rank, size_t i)
{
	return (int32_t)((uint32_t)rank * 1009u + (uint32_t)a->step * 31u + (uint32_t)i);
}

static int32_t input_sum(const struct actor *a, size_t i)
{
	int32_t sum = 0;

	for (int rank = 0; rank < a->n; rank++)
		sum += input(a, rank, i);
	return sum;
}

static void fill(const struct actor *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to_send[i] = input(a, a->rank, i);
}

/* received[at + i] is what `from` has at first + i. */
static void expect(struct actor *a, tutti_status status, size_t at, size_t n, int from,
		   size_t first)
{
	for (size_t i = 0; i < n && status == TUTTI_OK; i++)
		a->wrong |= received[at + i] != input(a, from, first + i);
}

static void expect_sum(struct actor *a, tutti_status status, size_t n, size_t first)
{
	for (size_t i = 0; i < n && status == TUTTI_OK; i++)
		a->wrong |= received[i] != input_sum(a, first + i);
}

/* Of all ranks, one block after the other. */
static void expect_all(struct actor *a, tutti_status status, size_t block, size_t n, size_t first)
{
	for (int rank = 0; rank < a->n; rank++)
		expect(a, status, (size_t)rank * block, n, rank, first);
}

/* Counts and displacements: what `rank` has for each, or has at all with rank 0. */
struct parts {
	size_t counts[MOST_RANKS], displs[MOST_RANKS], packed[MOST_RANKS];
};

static struct parts parts_of(const struct actor *a, int rank)
{
	struct parts parts = { 0 };
	size_t sum = 0;

	for (int other = 0; other < a->n; other++) {
		parts.counts[other] = a->count + (size_t)(rank + other) % SPREAD;
		parts.displs[other] = (size_t)other * (a->count + SPREAD);
		parts.packed[other] = sum;
		sum += parts.counts[other];
	}
	return parts;
}

/* -- Collectives -------------------------------------------------------------------- */

static tutti_status all_reduce(struct actor *a)
{
	fill(a, a->count);

	const tutti_status st = tutti_all_reduce(to_send, received, a->count, TUTTI_INT32,
						 TUTTI_SUM, a->comm, NULL);

	expect_sum(a, st, a->count, 0);
	return st;
}

static tutti_status reduce(struct actor *a)
{
	fill(a, a->count);

	const tutti_status st = tutti_reduce(to_send, received, a->count, TUTTI_INT32, TUTTI_SUM,
					     a->root, a->comm, NULL);

	if (a->rank == a->root)
		expect_sum(a, st, a->count, 0);
	return st;
}

static tutti_status broadcast(struct actor *a)
{
	fill(a, a->count);

	const tutti_status st =
		tutti_broadcast(to_send, received, a->count, TUTTI_INT32, a->root, a->comm, NULL);

	expect(a, st, 0, a->count, a->root, 0);
	return st;
}

static tutti_status all_gather(struct actor *a)
{
	fill(a, a->count);

	const tutti_status st =
		tutti_all_gather(to_send, received, a->count, TUTTI_INT32, a->comm, NULL);

	expect_all(a, st, a->count, a->count, 0);
	return st;
}

static tutti_status reduce_scatter(struct actor *a)
{
	fill(a, a->count * (size_t)a->n);

	const tutti_status st = tutti_reduce_scatter(to_send, received, a->count, TUTTI_INT32,
						     TUTTI_SUM, a->comm, NULL);

	expect_sum(a, st, a->count, a->count * (size_t)a->rank);
	return st;
}

static tutti_status all_to_all(struct actor *a)
{
	fill(a, a->count * (size_t)a->n);

	const tutti_status st =
		tutti_all_to_all(to_send, received, a->count, TUTTI_INT32, a->comm, NULL);

	expect_all(a, st, a->count, a->count, a->count * (size_t)a->rank);
	return st;
}

static tutti_status gather(struct actor *a)
{
	fill(a, a->count);

	const tutti_status st =
		tutti_gather(to_send, received, a->count, TUTTI_INT32, a->root, a->comm, NULL);

	if (a->rank == a->root)
		expect_all(a, st, a->count, a->count, 0);
	return st;
}

static tutti_status scatter(struct actor *a)
{
	fill(a, a->count * (size_t)a->n);

	const tutti_status st =
		tutti_scatter(to_send, received, a->count, TUTTI_INT32, a->root, a->comm, NULL);

	expect(a, st, 0, a->count, a->root, a->count * (size_t)a->rank);
	return st;
}

static tutti_status all_to_all_v(struct actor *a)
{
	const struct parts p = parts_of(a, a->rank);

	fill(a, (a->count + SPREAD) * (size_t)a->n);

	const tutti_status st = tutti_all_to_all_v(to_send, p.counts, p.displs, received, p.counts,
						   p.displs, TUTTI_INT32, a->comm, NULL);

	for (int rank = 0; rank < a->n; rank++)
		expect(a, st, p.displs[rank], p.counts[rank], rank, p.displs[a->rank]);
	return st;
}

static tutti_status gather_v(struct actor *a)
{
	const struct parts p = parts_of(a, 0);

	fill(a, p.counts[a->rank]);

	const tutti_status st = tutti_gather_v(to_send, p.counts[a->rank], received, p.counts,
					       p.displs, TUTTI_INT32, a->root, a->comm, NULL);

	for (int rank = 0; rank < a->n && a->rank == a->root; rank++)
		expect(a, st, p.displs[rank], p.counts[rank], rank, 0);
	return st;
}

static tutti_status scatter_v(struct actor *a)
{
	const struct parts p = parts_of(a, 0);

	fill(a, (a->count + SPREAD) * (size_t)a->n);

	const tutti_status st =
		tutti_scatter_v(to_send, p.counts, p.displs, received, p.counts[a->rank],
				TUTTI_INT32, a->root, a->comm, NULL);

	expect(a, st, 0, p.counts[a->rank], a->root, p.displs[a->rank]);
	return st;
}

static tutti_status all_gather_v(struct actor *a)
{
	const struct parts p = parts_of(a, 0);

	fill(a, p.counts[a->rank]);

	const tutti_status st = tutti_all_gather_v(to_send, received, p.counts, p.displs,
						   TUTTI_INT32, a->comm, NULL);

	for (int rank = 0; rank < a->n; rank++)
		expect(a, st, p.displs[rank], p.counts[rank], rank, 0);
	return st;
}

static tutti_status reduce_scatter_v(struct actor *a)
{
	const struct parts p = parts_of(a, 0);

	fill(a, (a->count + SPREAD) * (size_t)a->n);

	const tutti_status st = tutti_reduce_scatter_v(to_send, received, p.counts, TUTTI_INT32,
						       TUTTI_SUM, a->comm, NULL);

	expect_sum(a, st, p.counts[a->rank], p.packed[a->rank]);
	return st;
}

static tutti_status barrier(struct actor *a)
{
	return tutti_barrier(a->comm, NULL);
}

/* From the root, which holds all of it, to a part for each. */
static tutti_status handoff(struct actor *a)
{
	static const int ranks[MOST_RANKS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const tutti_side from = { &a->root, 1, 0 }, to = { ranks, a->n, 1 };
	size_t first, n;

	fill(a, a->count);

	const tutti_status st =
		tutti_handoff(to_send, received, a->count, TUTTI_INT32, &from, &to, a->comm, NULL);

	tutti_part(a->count, a->n, a->rank, &first, &n);
	expect(a, st, 0, n, a->root, first);
	return st;
}

tutti_status place_sum(struct actor *a)
{
	int32_t one = 1;
	const tutti_status st =
		tutti_all_reduce(&one, &one, 1, TUTTI_INT32, TUTTI_SUM, a->comm, NULL);

	a->wrong |= st == TUTTI_OK && one != a->n;
	return st;
}

int place_number_in_child(const struct actor *a, int rank)
{
	int number = 0;

	if (rank % 2 != a->rank % 2)
		return -1;
	for (int other = rank + 2; other < a->n; other += 2)
		number++;
	return number;
}

void actor_release(struct actor *a)
{
	tutti_status st = tutti_window_destroy(a->window);

	(void)tutti_stream_destroy(a->stream);
	(void)tutti_comm_destroy(a->child);
	if (a->memory)
		st = tutti_mem_free(a->memory, a->comm);
	(void)tutti_comm_destroy(a->comm);
	(void)st; /* the communicator may be lost */
}

/* In this order, which seeds rely on. */
const struct place places[] = {
	{ "all_reduce", PLACE_CALLS, all_reduce },
	{ "reduce", PLACE_CALLS, reduce },
	{ "broadcast", PLACE_CALLS, broadcast },
	{ "all_gather", PLACE_CALLS, all_gather },
	{ "reduce_scatter", PLACE_CALLS, reduce_scatter },
	{ "all_to_all", PLACE_CALLS, all_to_all },
	{ "gather", PLACE_CALLS, gather },
	{ "scatter", PLACE_CALLS, scatter },
	{ "all_to_all_v", PLACE_CALLS, all_to_all_v },
	{ "gather_v", PLACE_CALLS, gather_v },
	{ "scatter_v", PLACE_CALLS, scatter_v },
	{ "all_gather_v", PLACE_CALLS, all_gather_v },
	{ "reduce_scatter_v", PLACE_CALLS, reduce_scatter_v },
	{ "barrier", PLACE_CALLS, barrier },
	{ "handoff", PLACE_CALLS, handoff },
	{ "init", PLACE_INIT, place_sum },
	{ "grow", PLACE_GROW, place_sum },
	{ "finalize", PLACE_FINALIZE, place_sum },
};
const int nplaces = sizeof(places) / sizeof(places[0]);
