/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls with a count for each rank against what they must give: ranks, how uneven, types, roots,
 * in place, displacements with gaps and buffers at any byte, transports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/sanitizer.h"
#include "support/world.h"
#include "tutti/inspect.h"

#define RANKS 9
#define GAP   3 /* elements between the parts of a buffer */

enum unevenness { EQUAL, NOTHING, ONE_HAS_ALL, RISING, ODD, UNEVENNESSES };

/* How much rank a has for rank b; of calls in which all have the same counts, b's count. */
static size_t count_of(enum unevenness how, size_t most, int a, int b, int n)
{
	switch (how) {
	case EQUAL:
		return most;
	case ONE_HAS_ALL:
		return b == n / 2 ? most : 0;
	case RISING:
		return most * (size_t)((a + b) % n) / (size_t)n;
	case ODD:
		return (size_t)(a * 7 + b * 13) % (most + 1);
	case NOTHING:
	case UNEVENNESSES:
		break;
	}
	return 0;
}

struct setup {
	tutti_collective coll;
	enum unevenness how;
	size_t most;
	tutti_type type;
	int root;
	bool in_place;
};

static bool is_pairwise(const struct setup *s)
{
	return s->coll == TUTTI_ALL_TO_ALL_V;
}

static bool reduces(const struct setup *s)
{
	return s->coll == TUTTI_REDUCE_SCATTER_V;
}

/* In place the counts of a pair are those of its other half. */
static size_t between(const struct setup *s, int from, int to, int n)
{
	if (!is_pairwise(s))
		return count_of(s->how, s->most, 0, to, n);
	if (s->in_place && from > to)
		return count_of(s->how, s->most, to, from, n);
	return count_of(s->how, s->most, from, to, n);
}

/* Small numbers, exact in every type. */
static int value(int rank, size_t i)
{
	return (int)((i * 5 + (size_t)rank * 3) % 7);
}

static void set(char *data, tutti_type type, size_t i, int number)
{
	const float f = (float)number;
	const double d = number;
	const signed char c = (signed char)number;

	if (type == TUTTI_INT8)
		memcpy(data + i, &c, sizeof(c));
	else if (type == TUTTI_FLOAT32)
		memcpy(data + i * sizeof(f), &f, sizeof(f));
	else
		memcpy(data + i * sizeof(d), &d, sizeof(d));
}

/* One rank's view: counts and displacements both ways, with gaps unless they are packed. */
struct view {
	size_t send_counts[RANKS], send_displs[RANKS], recv_counts[RANKS], recv_displs[RANKS];
	size_t sends, recvs; /* of the buffers */
};

static struct view look(const struct setup *s, int rank, int n)
{
	const size_t gap = reduces(s) ? 0 : GAP;
	struct view v = { 0 };

	for (int peer = 0; peer < n; peer++) {
		v.send_counts[peer] = between(s, rank, peer, n);
		v.recv_counts[peer] =
			is_pairwise(s) ? between(s, peer, rank, n) : between(s, 0, peer, n);
		v.send_displs[peer] = v.sends;
		v.recv_displs[peer] = v.recvs;
		v.sends += v.send_counts[peer] + gap;
		v.recvs += v.recv_counts[peer] + gap;
	}
	return v;
}

static tutti_status call(const struct setup *s, const struct view *v, int rank, char *send,
			 char *recv, tutti_comm_t comm)
{
	const size_t own = v->recv_counts[rank];
	/* What a rank does not need it need not have. */
	const size_t *const counts = rank == s->root ? v->recv_counts : NULL;
	const size_t *const displs = rank == s->root ? v->recv_displs : NULL;

	switch ((int)s->coll) {
	case TUTTI_ALL_TO_ALL_V:
		return tutti_all_to_all_v(send, v->send_counts, v->send_displs, recv,
					  v->recv_counts, v->recv_displs, s->type, comm, NULL);
	case TUTTI_GATHER_V:
		return tutti_gather_v(send, own, recv, counts, displs, s->type, s->root, comm,
				      NULL);
	case TUTTI_SCATTER_V:
		return tutti_scatter_v(send, counts, displs, recv, own, s->type, s->root, comm,
				       NULL);
	case TUTTI_ALL_GATHER_V:
		return tutti_all_gather_v(send, recv, v->recv_counts, v->recv_displs, s->type, comm,
					  NULL);
	default:
		return tutti_reduce_scatter_v(send, recv, v->send_counts, s->type, TUTTI_SUM, comm,
					      NULL);
	}
}

static bool has_all(const struct setup *s, bool is_send)
{
	const bool sends_all =
		s->coll == TUTTI_ALL_TO_ALL_V || s->coll == TUTTI_SCATTER_V || reduces(s);
	const bool gets_all = s->coll == TUTTI_ALL_TO_ALL_V || s->coll == TUTTI_GATHER_V ||
			      s->coll == TUTTI_ALL_GATHER_V;

	return is_send ? sends_all : gets_all;
}

/* What must be in the receive buffer after the call, gaps untouched. */
static void expect(const struct setup *s, const struct view *v, int rank, int n, char *want)
{
	for (int from = 0; from < n; from++) {
		const struct view theirs = look(s, from, n);
		const size_t first = has_all(s, true) ? theirs.send_displs[rank] : 0;
		const size_t place = has_all(s, false) ? v->recv_displs[from] : 0;
		const size_t count =
			has_all(s, false) ? v->recv_counts[from] : v->recv_counts[rank];

		if ((s->coll == TUTTI_GATHER_V && rank != s->root) ||
		    (s->coll == TUTTI_SCATTER_V && from != s->root))
			continue;
		for (size_t i = 0; i < count; i++) {
			int number = value(from, first + i);

			for (int other = 0; reduces(s) && other < n; other++)
				number += other == from ? 0 : value(other, first + i);
			set(want, s->type, place + i, number);
		}
	}
}

static void run_one(const struct setup *s, tutti_comm_t comm, int rank, int n)
{
	const size_t size = tutti_type_size(s->type);
	const struct view v = look(s, rank, n);
	const size_t room = ((v.sends > v.recvs ? v.sends : v.recvs) + 1) * size + 16;
	const size_t own_at = has_all(s, true) ? v.send_displs[rank] : v.recv_displs[rank];
	char *memory = malloc(2 * room), *want = malloc(room), *send, *recv;

	/* Not aligned to anything but the type: what a view into a record is. */
	send = memory + size;
	recv = memory + room + 8 - (room % 8) + size;
	if (s->in_place && is_pairwise(s))
		recv = send;
	else if (s->in_place && has_all(s, true))
		recv = send + own_at * size;
	else if (s->in_place)
		send = recv + own_at * size;
	memset(memory, 0x55, 2 * room);
	for (size_t i = 0; i < (has_all(s, true) ? v.sends : v.recv_counts[rank]); i++)
		set(send, s->type, i, value(rank, i));
	memcpy(want, recv, (has_all(s, false) ? v.recvs : v.recv_counts[rank]) * size);
	expect(s, &v, rank, n, want);
	if (CHECK_OK(call(s, &v, rank, send, recv, comm)) &&
	    !CHECK(memcmp(want, recv, (has_all(s, false) ? v.recvs : v.recv_counts[rank]) * size) ==
		   0))
		fprintf(stderr, "  %s n=%d rank=%d how=%d most=%zu root=%d in_place=%d type=%s\n",
			tutti_collective_name(s->coll), n, rank, (int)s->how, s->most, s->root,
			s->in_place, tutti_type_name(s->type));
	free(memory);
	free(want);
}

static const tutti_collective colls[] = { TUTTI_ALL_TO_ALL_V, TUTTI_GATHER_V, TUTTI_SCATTER_V,
					  TUTTI_ALL_GATHER_V, TUTTI_REDUCE_SCATTER_V };

static void all_of_them(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const tutti_type types[] = { TUTTI_FLOAT32, TUTTI_INT8, TUTTI_FLOAT64 };
	static const size_t most[] = { 1, 5, 200, 4097, 70001 };
	const size_t sizes = *(const size_t *)arg;
	size_t turn = 0;

	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++)
		for (int how = 0; how < UNEVENNESSES; how++)
			for (size_t m = 0; m < sizes; m++, turn++)
				for (int in_place = 0; in_place < 2; in_place++) {
					const struct setup setup = { .coll = colls[c],
								     .how = (enum unevenness)how,
								     .most = most[m],
								     .type = types[turn % 3],
								     .root = (int)(turn / 3) % n,
								     .in_place = in_place };

					run_one(&setup, comm, rank, n);
				}
}

static void every_case(const char *transport, const char *algo, const int *ranks, size_t nranks,
		       size_t sizes)
{
	for (size_t r = 0; r < nranks; r++) {
		const struct world world = { .n = ranks[r], .transport = transport, .algo = algo };

		if (world_run(&world, all_of_them, &sizes) > 0)
			fail_msg("%s over %s, %d ranks", algo ? algo : "", transport, ranks[r]);
	}
}

static void shared_memory(void **state)
{
	static const int ranks[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };

	(void)state;
	every_case("shm", NULL, ranks, SANITIZED ? 4 : 9, SANITIZED ? 4 : 5);
	every_case("shm", "all_gather:ring;reduce_scatter:ring", ranks + 2, SANITIZED ? 1 : 4, 4);
	every_case("shm", "all_gather:bruck", ranks + 4, 1, 4);
}

static void sockets(void **state)
{
	static const int ranks[] = { 2, 3, 5 };

	(void)state;
	every_case("tcp", NULL, ranks, SANITIZED ? 2 : 3, 4);
}

/* -- In groups, on streams ----------------------------------------------------------- */

/* Arrays are the caller's again as soon as the call has returned. */
static void queued(tutti_comm_t comm, int rank, int n, void *arg)
{
	const bool on_stream = *(const bool *)arg;
	const struct setup setup = {
		.coll = TUTTI_ALL_TO_ALL_V, .how = RISING, .most = 900, .type = TUTTI_FLOAT32
	};
	struct view v = look(&setup, rank, n), saved = v;
	float *send = calloc(v.sends, sizeof(*send)), *recv = calloc(v.recvs, sizeof(*recv));
	int out = rank + 1, in = 0;
	tutti_stream_t stream = NULL;

	for (size_t i = 0; i < v.sends; i++)
		send[i] = (float)value(rank, i);
	if (on_stream)
		CHECK_OK(tutti_stream_create(&stream));
	else
		CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_all_to_all_v(send, v.send_counts, v.send_displs, recv, v.recv_counts,
				    v.recv_displs, TUTTI_FLOAT32, comm, stream));
	memset(&v, 0xff, sizeof(v));
	CHECK_OK(tutti_send_recv(&out, 1, (rank + 1) % n, &in, 1, (rank + n - 1) % n, TUTTI_INT32,
				 comm, stream));
	if (on_stream)
		CHECK_OK(tutti_stream_synchronize(stream));
	else
		CHECK_OK(tutti_group_end());
	CHECK(in == (rank + n - 1) % n + 1);
	for (int from = 0; from < n; from++) {
		const struct view theirs = look(&setup, from, n);

		for (size_t i = 0; i < saved.recv_counts[from]; i++)
			if (!CHECK(recv[saved.recv_displs[from] + i] ==
				   (float)value(from, theirs.send_displs[rank] + i)))
				break;
	}
	CHECK(tutti_stream_destroy(stream) == TUTTI_OK);
	free(send);
	free(recv);
}

static void groups_and_streams(void **state)
{
	const struct world world = { .n = 4 };

	(void)state;
	for (int on_stream = 0; on_stream < 2; on_stream++)
		assert_int_equal(world_run(&world, queued, &(bool){ on_stream }), 0);
}

/* -- What does not fit together ------------------------------------------------------- */

static void refused(tutti_status st, const char *fragment)
{
	if (!CHECK(st == TUTTI_EMISMATCH) || !CHECK(strstr(tutti_last_error(NULL), fragment)))
		fprintf(stderr, "  %d, \"%s\" lacks \"%s\"\n", (int)st, tutti_last_error(NULL),
			fragment);
}

/* A rank whose part is over may learn of it in the next call. */
static tutti_status then_barrier(tutti_status st, tutti_comm_t comm)
{
	return st == TUTTI_OK ? tutti_barrier(comm, NULL) : st;
}

static void wrong_pair(tutti_comm_t comm, int rank, int n, void *arg)
{
	size_t sends[3] = { 4, 4, 4 }, recvs[3] = { 4, 4, 4 }, displs[3] = { 0, 4, 8 };
	int a[16] = { 0 }, b[16];

	(void)n;
	(void)arg;
	if (rank == 1)
		sends[2] = 3;
	refused(then_barrier(tutti_all_to_all_v(a, sends, displs, b, recvs, displs, TUTTI_INT32,
						comm, NULL),
			     comm),
		"rank 2 takes 4 elements from rank 1, which sends another number");
}

static void wrong_part(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t counts[3] = { 2, 2, 2 }, displs[3] = { 0, 2, 4 };
	int a[8] = { 0 }, b[8];

	(void)n;
	(void)arg;
	refused(then_barrier(tutti_gather_v(a, rank == 2 ? 5 : 2, b, counts, displs, TUTTI_INT32, 0,
					    comm, NULL),
			     comm),
		"rank 0 takes 2 elements from rank 2, which sends another number");
}

static void wrong_root(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t counts[3] = { 2, 2, 2 }, displs[3] = { 0, 2, 4 };
	int a[8] = { 0 }, b[8];

	(void)n;
	(void)arg;
	refused(then_barrier(tutti_scatter_v(a, counts, displs, b, 2, TUTTI_INT32,
					     rank == 2 ? 2 : 0, comm, NULL),
			     comm),
		"called different things");
}

static void wrong_counts(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t counts[3] = { 2, rank == 1 ? 1 : 2, rank == 1 ? 3 : 2 };
	const size_t displs[3] = { 0, 3, 6 };
	int a[8] = { 0 }, b[12];

	(void)n;
	(void)arg;
	refused(then_barrier(tutti_all_gather_v(a, b, counts, displs, TUTTI_INT32, comm, NULL),
			     comm),
		"6 x int32 in all, counts ");
}

static void mismatches(void **state)
{
	static const world_fn cases[] = { wrong_pair, wrong_part, wrong_root, wrong_counts };
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t t = 0; t < 2; t++) {
			const struct world world = { .n = 3,
						     .transport = transports[t],
						     .timeout_ms = 20000 };

			if (world_run(&world, cases[i], NULL) > 0)
				fail_msg("case %zu over %s", i, transports[t]);
		}
}

/* TUTTI_CHECK=1: the second rank's part would lie over the first one's. */
static void one_place_for_two(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t counts[2] = { 3, 3 }, displs[2] = { 0, 2 };
	int a[4] = { 0 }, b[8];

	(void)rank;
	(void)n;
	(void)arg;
	CHECK(tutti_all_gather_v(a, b, counts, displs, TUTTI_INT32, comm, NULL) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(NULL), "received from two ranks overlaps"));
}

static void parts_that_overlap(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, one_place_for_two, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_memory),      cmocka_unit_test(sockets),
		cmocka_unit_test(groups_and_streams), cmocka_unit_test(mismatches),
		cmocka_unit_test(parts_that_overlap),
	};

	/* Read once, by the first call. */
	setenv("TUTTI_CHECK", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
