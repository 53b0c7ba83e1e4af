/* SPDX-License-Identifier: BSD-3-Clause */
#include "campaign/places.h"

#include <string.h>

/* Parts of different length where a call takes a count for each rank. */
#define SPREAD 8
#define ROOM   (MOST_RANKS * (MOST_COUNT + SPREAD))

#define LONG_MS 3600000

static int32_t to_send[ROOM], received[ROOM];

/* -- Data that is known ----------------------------------------------------------- */

int32_t place_input(const struct actor *a, int rank, size_t i)
{
	return (int32_t)((uint32_t)rank * 1009u + (uint32_t)a->step * 31u + (uint32_t)i);
}

static int32_t input_sum(const struct actor *a, size_t i)
{
	int32_t sum = 0;

	for (int rank = 0; rank < a->n; rank++)
		sum += place_input(a, rank, i);
	return sum;
}

static void fill(const struct actor *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to_send[i] = place_input(a, a->rank, i);
}

/* received[at + i] is what `from` has at first + i. */
static void expect(struct actor *a, tutti_status status, size_t at, size_t n, int from,
		   size_t first)
{
	for (size_t i = 0; i < n && status == TUTTI_OK; i++)
		a->wrong |= received[at + i] != place_input(a, from, first + i);
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

/* One after the other, each some times: what is between ranks is full of one when the next comes. Each
 * has a timeout of its own, which is never over, or none. */
static tutti_status mixed(struct actor *a)
{
	static tutti_status (*const calls[])(struct actor *) = {
		all_reduce, gather, broadcast, reduce_scatter, scatter,
		all_gather, reduce, barrier,   all_to_all,
	};
	const size_t run = (size_t)a->step / 12;
	const tutti_status st =
		tutti_comm_set_timeout(a->comm, a->step % 3 ? LONG_MS + a->step * 10 + a->rank : 0);

	return st ? st : calls[(run + a->count) * 7 % (sizeof(calls) / sizeof(calls[0]))](a);
}

/* -- Sends, streams, windows --------------------------------------------------------- */

static int behind(const struct actor *a, int by)
{
	return (a->rank + a->n - by) % a->n;
}

static tutti_status send_recv(struct actor *a)
{
	fill(a, a->count);

	const tutti_status st = tutti_send_recv(to_send, a->count, (a->rank + 1) % a->n, received,
						a->count, behind(a, 1), TUTTI_INT32, a->comm, NULL);

	expect(a, st, 0, a->count, behind(a, 1), 0);
	return st;
}

/* To the next rank and the one after, from the two before. */
static tutti_status group(struct actor *a)
{
	tutti_status st = tutti_group_start(), end;

	fill(a, a->count);
	for (int by = 1; by <= 2 && st == TUTTI_OK; by++) {
		st = tutti_send(to_send, a->count, TUTTI_INT32, (a->rank + by) % a->n, a->comm,
				NULL);
		if (st == TUTTI_OK)
			st = tutti_recv(received + (size_t)by * a->count, a->count, TUTTI_INT32,
					behind(a, by), a->comm, NULL);
	}
	end = tutti_group_end();
	st = st ? st : end;
	for (int by = 1; by <= 2; by++)
		expect(a, st, (size_t)by * a->count, a->count, behind(a, by), 0);
	return st;
}

/* What the stream said of its calls. */
struct told {
	int ncalls;
	tutti_status first; /* of those that are not TUTTI_OK */
};

static void take_note(tutti_status status, void *arg)
{
	struct told *told = arg;

	told->ncalls++;
	told->first = told->first ? told->first : status;
}

static tutti_status stream(struct actor *a)
{
	struct told told = { 0, TUTTI_OK };
	tutti_status st = TUTTI_OK, end;
	int nqueued = 0;

	if (!a->stream)
		st = tutti_stream_create(&a->stream);
	fill(a, a->count);
	for (int i = 0; i < 3 && st == TUTTI_OK; i++) {
		st = tutti_all_reduce(to_send, received, a->count, TUTTI_INT32, TUTTI_SUM, a->comm,
				      a->stream);
		if (st == TUTTI_OK)
			st = tutti_stream_call(a->stream, take_note, &told);
		nqueued += st == TUTTI_OK;
	}
	end = a->stream ? tutti_stream_synchronize(a->stream) : TUTTI_OK;
	a->wrong |= told.ncalls != nqueued || told.first != end;
	st = st ? st : end;
	expect_sum(a, st, a->count, 0);
	return st;
}

static tutti_status make_window(struct actor *a)
{
	const size_t nbytes = 2 * (MOST_COUNT + SPREAD) * sizeof(*a->memory);
	tutti_status st = TUTTI_OK;
	void *memory;

	if (!a->memory) {
		st = tutti_mem_alloc(&memory, nbytes, a->rank % 2 ? a->comm : NULL);
		a->memory = st == TUTTI_OK ? memory : NULL;
	}
	if (st == TUTTI_OK && !a->window)
		st = tutti_window_create(a->comm, a->memory, nbytes, &a->window);
	return st;
}

/* To the next rank, into one half and the other in turn; who is behind may be one step ahead. */
static tutti_status put(struct actor *a)
{
	const size_t half = a->step % 2 ? MOST_COUNT + SPREAD : 0;
	const int next = (a->rank + 1) % a->n;
	tutti_status st = make_window(a);

	fill(a, a->count);
	if (st == TUTTI_OK)
		st = tutti_put(a->window, next, half * sizeof(*to_send), to_send,
			       a->count * sizeof(*to_send), NULL);
	if (st == TUTTI_OK)
		st = tutti_signal(a->window, next, NULL);
	if (st == TUTTI_OK)
		st = tutti_wait_signal(a->window, behind(a, 1), 1, NULL);
	for (size_t i = 0; i < a->count && st == TUTTI_OK; i++)
		a->wrong |= a->memory[half + i] != place_input(a, behind(a, 1), i);
	return st ? st : tutti_barrier(a->comm, NULL);
}

static tutti_status get(struct actor *a)
{
	const size_t half = a->step % 2 ? MOST_COUNT + SPREAD : 0;
	tutti_status st = make_window(a);

	for (size_t i = 0; i < a->count && st == TUTTI_OK; i++)
		a->memory[half + i] = place_input(a, a->rank, i);
	if (st == TUTTI_OK)
		st = tutti_barrier(a->comm, NULL);
	if (st == TUTTI_OK)
		st = tutti_get(a->window, behind(a, 1), half * sizeof(*received), received,
			       a->count * sizeof(*received), NULL);
	expect(a, st, 0, a->count, behind(a, 1), 0);
	return st;
}

/* -- Communicators --------------------------------------------------------------------- */

/* Another rank has heard of a death in the parent, and has left the child for that: the parent's next
 * call tells. */
static bool has_left_child(tutti_status status)
{
	return status == TUTTI_EPEER && strstr(tutti_last_error(NULL), "left");
}

/* What was just made of so many ranks is used once, or the error is that of making it. */
static tutti_status use_child(struct actor *a, tutti_status made, int expected)
{
	int32_t one = 1;

	if (made != TUTTI_OK) {
		if (!strstr(tutti_last_error(NULL), "number in the communicator that was being"))
			a->nmembers = 0;
		return made;
	}
	made = tutti_all_reduce(&one, &one, 1, TUTTI_INT32, TUTTI_SUM, a->child, NULL);
	if (has_left_child(made))
		one = expected;
	else if (made != TUTTI_OK)
		return made;
	a->wrong |= one != expected;
	a->nmembers = 0;
	made = tutti_comm_destroy(a->child);
	a->child = NULL;
	return made;
}

/* Backwards, so that nobody keeps its number. */
static void add_member(struct actor *a, int rank)
{
	a->members[a->nmembers++] = rank;
}

static tutti_status split(struct actor *a)
{
	for (int rank = a->n - 1; rank >= 0; rank--)
		if (rank % 2 == a->rank % 2)
			add_member(a, rank);
	return use_child(a, tutti_comm_split(a->comm, a->rank % 2, -a->rank, &a->child, NULL),
			 a->nmembers);
}

static bool is_lost(tutti_comm_t comm)
{
	tutti_status status;

	return tutti_comm_get_async_error(comm, &status) != TUTTI_OK || status != TUTTI_OK;
}

/* Every third rank is in none, and waits for the others in a call on the parent. A rank that leaves
 * before it has come ends the making alone, and the parent's call tells of it. */
static tutti_status create_group(struct actor *a)
{
	tutti_status st = TUTTI_OK;

	for (int rank = a->n - 1; rank >= 0 && a->rank % 3 < 2; rank--)
		if (rank % 3 < 2)
			add_member(a, rank);
	if (a->nmembers)
		st = use_child(a,
			       tutti_comm_create_group(a->comm, a->members, a->nmembers, a->step,
						       &a->child, NULL),
			       a->nmembers);
	if (st == TUTTI_EPEER && !is_lost(a->comm)) {
		a->nmembers = 0;
		st = TUTTI_OK;
	}
	return st ? st : tutti_barrier(a->comm, NULL);
}

static tutti_status dup(struct actor *a)
{
	return use_child(a, tutti_comm_dup(a->comm, &a->child, NULL), a->n);
}

static tutti_status shrink(struct actor *a)
{
	return use_child(a,
			 tutti_comm_shrink(a->comm, NULL, 0, &a->child, NULL, TUTTI_SHRINK_DEFAULT),
			 a->n);
}

bool place_may_leave(const struct place *place)
{
	return place->step != put && place->step != get && place->step != place_message_any;
}

tutti_status place_sum(struct actor *a)
{
	int32_t one = 1;
	const tutti_status st =
		tutti_all_reduce(&one, &one, 1, TUTTI_INT32, TUTTI_SUM, a->comm, NULL);

	a->wrong |= st == TUTTI_OK && one != a->n;
	return st;
}

int place_number(const struct actor *a, int rank)
{
	if (!a->nmembers)
		return rank;
	for (int number = 0; number < a->nmembers; number++)
		if (a->members[number] == rank)
			return number;
	return -1;
}

void actor_release(struct actor *a)
{
	tutti_status st = tutti_window_destroy(a->window);

	(void)tutti_channel_destroy(a->channel);
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
	{ "mixed", PLACE_CALLS, mixed },
	{ "send_recv", PLACE_CALLS, send_recv },
	{ "group", PLACE_CALLS, group },
	{ "stream", PLACE_CALLS, stream },
	{ "put", PLACE_CALLS, put },
	{ "get", PLACE_CALLS, get },
	{ "split", PLACE_CALLS, split },
	{ "dup", PLACE_CALLS, dup },
	{ "shrink", PLACE_CALLS, shrink },
	{ "create_group", PLACE_CALLS, create_group },
	{ "channel", PLACE_CALLS, place_channel },
	{ "message", PLACE_CALLS, place_message },
	{ "message_any", PLACE_CALLS, place_message_any },
	{ "init", PLACE_INIT, place_sum },
	{ "grow", PLACE_GROW, place_sum },
	{ "finalize", PLACE_FINALIZE, place_sum },
};
const int nplaces = sizeof(places) / sizeof(places[0]);
