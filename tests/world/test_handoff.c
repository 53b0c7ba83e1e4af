/* SPDX-License-Identifier: BSD-3-Clause */
/* Handoffs between any sides: right data, in place too, groups and streams, what is wrong
 * with arguments, sides that differ between ranks, plans that do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/comm.h"
#include "core/handle.h"
#include "core/handoff/handoff.h"
#include "support/sanitizer.h"
#include "support/world.h"
#include "util/fault.h"

#define MOST  16
#define GUARD 64

/* -- Calls ----------------------------------------------------------------------------- */

struct handoff {
	int from_ranks[MOST], to_ranks[MOST];
	tutti_side from, to;
	size_t count;
	tutti_type type;
	bool in_place;
	tutti_stream_t stream;
};

static char byte_at(size_t i)
{
	return (char)(i * 37 + i / 251 + 11);
}

static int place_on(const tutti_side *side, int rank)
{
	for (int i = 0; i < side->n; i++)
		if (side->ranks[i] == rank)
			return i;
	return -1;
}

/* In bytes; as long as nothing if the rank is not on the side. */
static void range_of(const struct handoff *h, const tutti_side *side, int rank, size_t *first,
		     size_t *length)
{
	const size_t size = tutti_type_size(h->type);
	const int place = place_on(side, rank);

	*first = 0;
	*length = place < 0 ? 0 : h->count;
	if (place >= 0 && side->sharded)
		tutti_part(h->count, side->n, place, first, length);
	*first *= size;
	*length *= size;
}

struct buffers {
	char *memory, *send, *recv;
	size_t first_sent, sent, first_got, got;
};

/* In place all lies in one vector; else in one of each, with something between. */
static void fill(const struct handoff *h, int rank, struct buffers *b)
{
	const size_t nbytes = h->count * tutti_type_size(h->type);
	const size_t other = h->in_place ? 0 : nbytes + GUARD;

	range_of(h, &h->from, rank, &b->first_sent, &b->sent);
	range_of(h, &h->to, rank, &b->first_got, &b->got);
	b->memory = malloc(2 * nbytes + 3 * GUARD);
	memset(b->memory, 0x55, 2 * nbytes + 3 * GUARD);
	b->send = b->memory + GUARD + b->first_sent;
	b->recv = b->memory + GUARD + other + b->first_got;
	for (size_t i = 0; i < b->sent; i++)
		b->send[i] = byte_at(b->first_sent + i);
}

static void verify(const struct handoff *h, int rank, struct buffers *b)
{
	const size_t nbytes = h->count * tutti_type_size(h->type);
	const size_t other = h->in_place ? 0 : nbytes + GUARD;
	char *want = malloc(2 * nbytes + 3 * GUARD);

	memset(want, 0x55, 2 * nbytes + 3 * GUARD);
	for (size_t i = 0; i < b->sent; i++)
		want[GUARD + b->first_sent + i] = byte_at(b->first_sent + i);
	for (size_t i = 0; i < b->got; i++)
		want[GUARD + other + b->first_got + i] = byte_at(b->first_got + i);
	if (!CHECK(memcmp(want, b->memory, 2 * nbytes + 3 * GUARD) == 0))
		fprintf(stderr, "  rank %d, %zu of %s, %d%s to %d%s%s\n", rank, h->count,
			tutti_type_name(h->type), h->from.n, h->from.sharded ? " parts" : "",
			h->to.n, h->to.sharded ? " parts" : "", h->in_place ? ", in place" : "");
	free(want);
	free(b->memory);
}

static tutti_status call(const struct handoff *h, tutti_comm_t comm, const struct buffers *b)
{
	return tutti_handoff(b->sent ? b->send : NULL, b->got ? b->recv : NULL, h->count, h->type,
			     &h->from, &h->to, comm, h->stream);
}

static void call_and_verify(const struct handoff *h, tutti_comm_t comm, int rank)
{
	struct buffers b;

	fill(h, rank, &b);
	CHECK_OK(call(h, comm, &b));
	verify(h, rank, &b);
}

static void neighbours(tutti_side *side, int *ranks, int first, int n, int sharded)
{
	for (int i = 0; i < n; i++)
		ranks[i] = first + i;
	*side = (tutti_side){ ranks, n, sharded };
}

static void set_sides(struct handoff *h, int from, int nfrom, int from_parts, int to, int nto,
		      int to_parts)
{
	*h = (struct handoff){ .count = 1000, .type = TUTTI_FLOAT32 };
	neighbours(&h->from, h->from_ranks, from, nfrom, from_parts);
	neighbours(&h->to, h->to_ranks, to, nto, to_parts);
}

/* Hosts as a test wants them; links stay what they are. */
static void set_hosts(tutti_comm_t handle, int n, int per_host)
{
	struct tti_comm *comm;

	if (!CHECK_OK(tti_handle_enter(handle, &comm)))
		return;
	for (int rank = 0; rank < n; rank++)
		comm->host_of[rank] = rank / per_host * per_host;
	tti_handle_leave(handle);
}

/* -- Right data ------------------------------------------------------------------------ */

static void draw_side(unsigned *seed, int n, int *ranks, tutti_side *side)
{
	int all[MOST];

	for (int i = 0; i < n; i++)
		all[i] = i;
	*side = (tutti_side){ ranks, 1 + rand_r(seed) % n, rand_r(seed) % 2 };
	for (int i = 0; i < side->n; i++) {
		const int k = i + rand_r(seed) % (n - i), rank = all[k];

		all[k] = all[i];
		ranks[i] = rank;
	}
}

static void draw(unsigned *seed, int n, struct handoff *h)
{
	static const tutti_type types[] = { TUTTI_FLOAT32, TUTTI_INT8, TUTTI_FLOAT64,
					    TUTTI_FLOAT16 };
	static const size_t counts[] = {
		0, 1, 3, 17, 1000, 4099, 20000, SANITIZED ? 9999 : 300001
	};

	*h = (struct handoff){ 0 };
	draw_side(seed, n, h->from_ranks, &h->from);
	draw_side(seed, n, h->to_ranks, &h->to);
	h->type = types[rand_r(seed) % 4];
	h->count = counts[rand_r(seed) % 8];
	h->in_place = rand_r(seed) % 3 == 0;
}

/* More sides than are kept, and each again: with another count, and with the same. */
static void many_sides(tutti_comm_t comm, int rank, int n, void *arg)
{
	const unsigned first = *(unsigned *)arg;

	set_hosts(comm, n, 1 + (int)first % 4);
	for (unsigned round = 0; round < (SANITIZED ? 20 : 45); round++) {
		unsigned seed = first * 1000 + round % (TTI_HANDOFFS_KEPT + 5);
		struct handoff h;

		draw(&seed, n, &h);
		call_and_verify(&h, comm, rank);
		h.count += round % 5;
		call_and_verify(&h, comm, rank);
		call_and_verify(&h, comm, rank);
	}
}

static void any_sides(void **state)
{
	static const struct {
		const char *transport;
		int n;
	} worlds[] = { { "shm", 1 }, { "shm", 2 }, { "shm", 5 }, { "shm", 12 }, { "tcp", 6 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		const struct world world = { .n = worlds[i].n, .transport = worlds[i].transport };

		for (unsigned seed = 1; seed <= (SANITIZED ? 1 : 2); seed++)
			if (world_run(&world, many_sides, &seed) > 0)
				fail_msg("%s, %d ranks, seed %u", worlds[i].transport, world.n,
					 seed);
	}
}

/* Counts whose parts are cut in several orders. */
static void many_cuts(tutti_comm_t comm, int rank, int n, void *arg)
{
	(void)arg;
	for (int round = 0; round < 2; round++)
		for (size_t count = 0; count < 16; count++) {
			struct handoff h;

			set_sides(&h, 0, 5, 1, n - 3, 3, 1);
			h.count = count;
			call_and_verify(&h, comm, rank);
		}
}

static void orders_of_cuts(void **state)
{
	const struct world world = { .n = 7, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, many_cuts, NULL), 0);
}

/* What one communicator keeps is bounded. */
static void is_bounded(tutti_comm_t handle, int rank, int n, void *arg)
{
	struct tti_comm *comm;
	int kept = 0, programs = 0;

	(void)arg;
	for (int from = 0; from < n; from++)
		for (int to = 0; to < n; to++)
			for (int parts = 1; parts < 3 && to + parts <= n; parts++) {
				struct handoff h;

				set_sides(&h, from, 1, 0, to, parts, parts - 1);
				call_and_verify(&h, handle, rank);
			}
	if (!CHECK_OK(tti_handle_enter(handle, &comm)))
		return;
	for (int i = 0; i < TTI_HANDOFFS_KEPT; i++)
		kept += comm->handoffs[i].sides != NULL;
	for (size_t i = 0; i < comm->programs.kept.n; i++)
		programs += comm->programs.kept.at[i].coll == TUTTI_HANDOFF;
	CHECK(kept == TTI_HANDOFFS_KEPT);
	CHECK(programs == TTI_HANDOFF_PROGRAMS_KEPT);
	tti_handle_leave(handle);
}

static void least_recently_used(void **state)
{
	const struct world world = { .n = 7, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, is_bounded, NULL), 0);
}

/* -- How ranks agree on the plan ----------------------------------------------------------- */

/* One rank holds another plan than the others: none goes on, and the next call is as any. */
static void one_differs(tutti_comm_t comm, int rank, int n, void *arg)
{
	static _Atomic int named;
	struct handoff h;
	struct buffers b;

	(void)arg;
	set_sides(&h, 0, 2, 0, 2, n - 2, 0);
	fill(&h, rank, &b);
	CHECK(call(&h, comm, &b) == TUTTI_EPLAN);
	for (size_t i = 0; i < b.got; i++)
		CHECK(b.recv[i] == 0x55);
	free(b.memory);
	if (strstr(tutti_last_error(comm), "cannot use the plan"))
		atomic_fetch_add(&named, 1);
	else
		CHECK(strstr(tutti_last_error(comm), "came to rank") != NULL);
	call_and_verify(&h, comm, rank);
	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK(atomic_load(&named) == n - 1);
}

/* Of communicators that are made of another one, with rank 0 of that and without; their ranks
 * in another order. Over TCP each rank is a host, so there is a topology to go by. */
static void in_children(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t child;

	(void)arg;
	for (int colors = 1; colors <= 2; colors++) {
		const int size = (n - rank % colors + colors - 1) / colors;
		struct handoff h;

		CHECK_OK(tutti_comm_split(comm, rank % colors, -rank, &child, NULL));
		set_sides(&h, 0, 1, 0, 1, size - 1, 0);
		call_and_verify(&h, child, size - 1 - rank / colors);
		set_sides(&h, 1, size - 1, 1, 0, size, 0);
		call_and_verify(&h, child, size - 1 - rank / colors);
		CHECK_OK(tutti_comm_destroy(child));
	}
}

/* Handoffs of two communicators in one group, of sides that none of them has a plan of, not in the
 * same order on all ranks. */
static void side_by_side(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t both[2] = { comm, NULL };

	(void)arg;
	CHECK_OK(tutti_comm_dup(comm, &both[1], NULL));
	for (int first = 0; first + 1 < n; first++) {
		struct handoff h[2];
		struct buffers b[2];

		for (int i = 0; i < 2; i++) {
			set_sides(&h[i], first, 1, 0, first + 1 - i, n - first - 1, i);
			fill(&h[i], rank, &b[i]);
		}
		CHECK_OK(tutti_group_start());
		for (int i = 0; i < 2; i++) {
			const int which = (i + rank) % 2;

			CHECK_OK(call(&h[which], both[which], &b[which]));
		}
		CHECK_OK(tutti_group_end());
		for (int i = 0; i < 2; i++)
			verify(&h[i], rank, &b[i]);
	}
	CHECK_OK(tutti_comm_destroy(both[1]));
}

static void one_plan(void **state)
{
	const struct world shm = { .n = 5, .transport = "shm" };
	const struct world tcp = { .n = 6, .transport = "tcp" };

	(void)state;
	tti_fault_set("core.handoff:3");
	assert_int_equal(world_run(&shm, one_differs, NULL), 0);
	tti_fault_set(NULL);
	assert_int_equal(world_run(&tcp, in_children, NULL), 0);
	assert_int_equal(world_run(&shm, side_by_side, NULL), 0);
	assert_int_equal(world_run(&tcp, side_by_side, NULL), 0);
}

/* -- Groups and streams ------------------------------------------------------------------ */

/* Two handoffs and an all_reduce as a group, on the NULL stream and on another, the sides
 * gone before the group's end. */
static void grouped(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_stream_t stream = NULL;
	float sum = 1;

	(void)arg;
	CHECK_OK(tutti_stream_create(&stream));
	for (int round = 0; round < 4; round++) {
		struct handoff there, back;
		struct buffers b[2];

		set_sides(&there, 0, 2, round & 1, 2, n - 2, 0);
		set_sides(&back, 2, n - 2, 0, 0, 2, round & 1);
		there.stream = back.stream = round < 2 ? NULL : stream;
		fill(&there, rank, &b[0]);
		fill(&back, rank, &b[1]);
		CHECK_OK(tutti_group_start());
		CHECK_OK(call(&there, comm, &b[0]));
		CHECK_OK(call(&back, comm, &b[1]));
		CHECK_OK(tutti_all_reduce(&sum, &sum, 1, TUTTI_FLOAT32, TUTTI_MAX, comm,
					  there.stream));
		memset(there.to_ranks, 0xff, sizeof(there.to_ranks));
		memset(back.from_ranks, 0xff, sizeof(back.from_ranks));
		CHECK_OK(tutti_group_end());
		CHECK_OK(tutti_stream_synchronize(stream));
		neighbours(&there.to, there.to_ranks, 2, n - 2, 0);
		neighbours(&back.from, back.from_ranks, 2, n - 2, 0);
		verify(&there, rank, &b[0]);
		verify(&back, rank, &b[1]);
	}
	CHECK_OK(tutti_stream_destroy(stream));
}

/* A group that a wrong call spoils runs nothing and leaves nothing. */
static void spoilt(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct handoff good, bad;
	struct buffers b;

	(void)arg;
	set_sides(&good, 0, 1, 0, 1, n - 1, 0);
	set_sides(&bad, 0, 1, 0, 1, n - 1, 0);
	bad.from.n = 0;
	fill(&good, rank, &b);
	CHECK_OK(tutti_group_start());
	CHECK_OK(call(&good, comm, &b));
	CHECK(call(&bad, comm, &b) == TUTTI_EINVAL);
	CHECK(tutti_group_end() == TUTTI_EINVAL);
	for (size_t i = 0; i < b.got; i++)
		CHECK(b.recv[i] == 0x55);
	free(b.memory);
	call_and_verify(&good, comm, rank);
}

static void groups(void **state)
{
	const struct world world = { .n = 5, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, grouped, NULL), 0);
	assert_int_equal(world_run(&world, spoilt, NULL), 0);
}

/* -- Errors -------------------------------------------------------------------------------- */

static void expect(tutti_comm_t comm, tutti_status got, const char *text)
{
	CHECK(got == TUTTI_EINVAL);
	if (!CHECK(strstr(tutti_last_error(comm), text) != NULL))
		fprintf(stderr, "  \"%s\" has no \"%s\"\n", tutti_last_error(comm), text);
}

static void wrong_arguments(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const int zero[] = { 0 }, twice[] = { 1, 0, 1 }, high[] = { 0, 3 }, low[] = { -1 };
	static const int both[] = { 0, 1, 2 };
	const tutti_side one = { zero, 1, 0 }, all = { both, 3, 0 }, parts = { both, 3, 1 };
	const tutti_side empty = { zero, 0, 0 }, many = { zero, 4, 0 }, none = { NULL, 1, 0 };
	const tutti_side dup = { twice, 3, 0 }, over = { high, 2, 0 }, under = { low, 1, 0 };
	const tutti_side odd = { zero, 1, 2 };
	float a[64] = { 0 }, b[64] = { 0 };

	(void)arg;
	(void)n;
#define TRY(send, recv, count, from, to) \
	tutti_handoff(send, recv, count, TUTTI_FLOAT32, from, to, comm, NULL)
	expect(comm, TRY(a, b, 8, NULL, &all), "from is NULL");
	expect(comm, TRY(a, b, 8, &one, NULL), "to is NULL");
	expect(comm, TRY(a, b, 8, &empty, &all), "from->n is 0");
	expect(comm, TRY(a, b, 8, &one, &many), "to->n is 4");
	expect(comm, TRY(a, b, 8, &none, &all), "from->ranks is NULL");
	expect(comm, TRY(a, b, 8, &dup, &all), "from->ranks[2] is 1");
	expect(comm, TRY(a, b, 8, &one, &over), "to->ranks[1] is 3");
	expect(comm, TRY(a, b, 8, &under, &all), "from->ranks[0] is -1");
	expect(comm, TRY(a, b, 8, &odd, &all), "from->sharded is 2");
	expect(comm, TRY(a, NULL, 8, &one, &all), "receive buffer of 32 bytes is NULL");
	expect(comm, TRY(a, b, SIZE_MAX / 8, &one, &all), "overflow");
	expect(comm, tutti_handoff(a, b, 8, (tutti_type)99, &one, &all, comm, NULL),
	       "there is no type 99");
	if (rank == 0)
		expect(comm, TRY(NULL, b, 8, &one, &all), "send buffer of 32 bytes is NULL");
	/* Of a part the elements lie elsewhere than in the whole: only rank 0's do not. */
	expect(comm, TRY(a, a + 1, 9, &parts, &all), "overlap but are not in place");
	if (rank > 0)
		expect(comm, TRY(a, a, 9, &parts, &all), "overlap but are not in place");
	/* None of it has harmed the communicator. */
	CHECK_OK(TRY(a, b, 64, &one, &all));
	CHECK_OK(TRY(rank == 0 ? a : NULL, b, 0, &one, &all));
#undef TRY
}

static void arguments(void **state)
{
	const struct world world = { .n = 3, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, wrong_arguments, NULL), 0);
}

/* -- Sides that differ ------------------------------------------------------------------- */

struct disagreement {
	int odd; /* the rank that passes other sides */
	int from, to, nto;
	const char *sides;
};

static void disagree(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct disagreement *d = arg;
	struct handoff h;
	struct buffers b;
	tutti_status st;

	(void)n;
	set_sides(&h, 0, 1, 0, 1, 3, 0);
	if (rank == d->odd)
		set_sides(&h, d->from, 1, 0, d->to, d->nto, 0);
	fill(&h, rank, &b);
	st = call(&h, comm, &b);
	/* Who has nothing to do, or has sent all, may be done before it is known. */
	if (st == TUTTI_OK)
		st = tutti_barrier(comm, NULL);
	for (int i = 0; st == TUTTI_OK && i < 3000; i++) {
		usleep(10000);
		CHECK_OK(tutti_comm_get_async_error(comm, &st));
	}
	CHECK(st == TUTTI_EMISMATCH);
	if (!CHECK(strstr(tutti_last_error(comm), "from 0 to 1-3") &&
		   strstr(tutti_last_error(comm), d->sides)))
		fprintf(stderr, "  rank %d: %s\n", rank, tutti_last_error(comm));
	free(b.memory);
}

static void mismatch(void **state)
{
	static struct disagreement cases[] = {
		/* It thinks that it gets nothing; waits for another one; sends to one alone. */
		{ .odd = 3, .from = 0, .to = 1, .nto = 2, .sides = "from 0 to 1-2" },
		{ .odd = 2, .from = 1, .to = 2, .nto = 2, .sides = "from 1 to 2-3" },
		{ .odd = 0, .from = 0, .to = 1, .nto = 1, .sides = "from 0 to 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct world world = { .n = 4,
					     .transport = i == 1 ? "tcp" : "shm",
					     .sockets = true,
					     .timeout_ms = 20000 };

		if (world_run(&world, disagree, &cases[i]) > 0)
			fail_msg("case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_sides),
		cmocka_unit_test(orders_of_cuts),
		cmocka_unit_test(least_recently_used),
		cmocka_unit_test(one_plan),
		cmocka_unit_test(groups),
		cmocka_unit_test(arguments),
		cmocka_unit_test(mismatch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
