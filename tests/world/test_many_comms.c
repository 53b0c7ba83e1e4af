/* SPDX-License-Identifier: BSD-3-Clause */
/* Many communicators of the same ranks at once: a parent, its duplicates and splits, and
 * theirs. On every rank several threads share them out, by its own dice, and call them in
 * random orders, which are others on each rank: on streams, in groups, or one at a time.
 * Calls of one communicator keep their order; nothing else does, and nothing must wait for
 * it. TEST_SEED (1) tries others, TEST_ROUNDS makes more of it (200). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/sanitizer.h"
#include "support/world.h"

#define RANKS   4
#define COMMS   7
#define THREADS 4
#define DEALS   3
#define MOST    3 /* calls of a communicator in a round */

/* The ranks with equal colors make communicator `id`; -1: not in it. */
static int color_of(int id, int rank)
{
	static const int colors[COMMS][RANKS] = {
		{ 0, 0, 0, 0 },  /* the parent                       */
		{ 0, 0, 0, 0 },  /* its duplicate                    */
		{ 0, 0, 0, 0 },  /* the duplicate of that            */
		{ 0, 1, 0, 1 },  /* split of the parent              */
		{ 0, 0, 1, 1 },  /* another one, of the duplicate    */
		{ 0, 1, 0, 1 },  /* the duplicate of the first split */
		{ -1, 0, 0, 0 }, /* all but one                      */
	};

	return colors[id][rank];
}

/* Bits of the ranks that are in it together with `rank`. */
static int members_of(int id, int rank)
{
	int mask = 0;

	for (int r = 0; r < RANKS; r++)
		if (color_of(id, r) == color_of(id, rank))
			mask |= 1 << r;
	return mask;
}

static int nth_member(int mask, int nth)
{
	for (; nth > 0; nth--)
		mask &= mask - 1;
	return __builtin_ctz((unsigned)mask);
}

/* -- A communicator of one rank ------------------------------------------------------- */

struct line {
	int id, rank;      /* which one; the rank in the parent */
	int mask, n, self; /* who is in it, how many, where here */
	tutti_comm_t comm;
	tutti_stream_t stream;
	uint64_t dice; /* alike on all its ranks: what is called next */
	int left;      /* calls still to be made in this round        */
	int done;
	struct what {
		int kind, root;
		size_t count;
		int *data, *in;
	} what[MOST];
};

static unsigned roll(uint64_t *dice, unsigned sides)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*dice >> 33) % sides;
}

enum { ALL_REDUCE, BROADCAST, PASS_ON, KINDS };

static int factor(const struct what *what, size_t i)
{
	return 1 + (int)((i + what->count) % 5);
}

/* Small mostly; through many slots at times. */
static void prepare(struct line *line)
{
	line->left = 1 + (int)roll(&line->dice, MOST);
	line->done = 0;
	for (int k = 0; k < line->left; k++) {
		struct what *what = &line->what[k];

		/* A group makes its sends before its collectives, a stream does not. */
		what->kind = (int)roll(&line->dice, k == 0 ? KINDS : PASS_ON);
		what->root = (int)roll(&line->dice, (unsigned)line->n);
		what->count = 1 + roll(&line->dice, roll(&line->dice, 40) == 0 ? 60000 : 600);
		what->data = calloc(what->count, sizeof(*what->data));
		what->in = calloc(what->count, sizeof(*what->in));
		for (size_t i = 0; i < what->count; i++)
			what->data[i] = (1 << line->rank) * factor(what, i);
	}
}

static tutti_status call_next(struct line *line, tutti_stream_t stream)
{
	struct what *what = &line->what[line->done++];
	tutti_comm_t comm = line->comm;

	if (what->kind == ALL_REDUCE)
		return tutti_all_reduce(what->data, what->in, what->count, TUTTI_INT32, TUTTI_SUM,
					comm, stream);
	if (what->kind == BROADCAST)
		return tutti_broadcast(what->data, what->in, what->count, TUTTI_INT32, what->root,
				       comm, stream);
	return tutti_send_recv(what->data, what->count, (line->self + 1) % line->n, what->in,
			       what->count, (line->self + line->n - 1) % line->n, TUTTI_INT32, comm,
			       stream);
}

static void check(struct line *line)
{
	for (int k = 0; k < line->left; k++) {
		struct what *what = &line->what[k];
		const int from =
			what->kind == BROADCAST ? what->root : (line->self + line->n - 1) % line->n;
		const int sum =
			what->kind == ALL_REDUCE ? line->mask : 1 << nth_member(line->mask, from);
		size_t wrong = 0;

		for (size_t i = 0; i < what->count; i++)
			wrong += what->in[i] != sum * factor(what, i);
		CHECK(wrong == 0);
		free(what->data);
		free(what->in);
	}
}

/* -- A thread with some of the communicators of its rank -------------------------------- */

struct player {
	pthread_t thread;
	struct line *lines[COMMS];
	int n, rounds;
	uint64_t dice; /* its own */
};

static _Atomic int norders; /* rounds of several communicators, of any thread */

/* Any communicator that has calls left, until none has. */
static void call_all(struct player *player, bool on_streams)
{
	struct line *ready[COMMS];
	int n = player->n;

	for (int i = 0; i < n; i++)
		ready[i] = player->lines[i];
	while (n > 0) {
		const int i = (int)roll(&player->dice, (unsigned)n);
		struct line *line = ready[i];

		CHECK_OK(call_next(line, on_streams ? line->stream : NULL));
		if (line->done == line->left)
			ready[i] = ready[--n];
	}
}

static void play_streams(struct player *player)
{
	const int first = (int)roll(&player->dice, (unsigned)player->n);

	call_all(player, true);
	for (int i = 0; i < player->n; i++)
		CHECK_OK(tutti_stream_synchronize(player->lines[(first + i) % player->n]->stream));
}

static void play_group(struct player *player)
{
	CHECK_OK(tutti_group_start());
	call_all(player, false);
	CHECK_OK(tutti_group_end());
}

static void *play(void *self)
{
	struct player *player = self;

	for (int round = 0; round < player->rounds; round++) {
		const unsigned way = roll(&player->dice, player->n == 1 ? 3 : 2);

		for (int i = 0; i < player->n; i++)
			prepare(player->lines[i]);
		if (way == 0)
			play_streams(player);
		else if (way == 1)
			play_group(player);
		else
			call_all(player, false);
		for (int i = 0; i < player->n; i++)
			check(player->lines[i]);
		atomic_fetch_add(&norders, player->n > 1);
		if (world_failures() > 0)
			break;
	}
	return NULL;
}

/* -- A rank ------------------------------------------------------------------------------ */

static void open_lines(tutti_comm_t parent, int rank, uint64_t seed, struct line *lines)
{
	tutti_comm_t comms[COMMS] = { parent };

	CHECK_OK(tutti_comm_dup(parent, &comms[1], NULL));
	CHECK_OK(tutti_comm_dup(comms[1], &comms[2], NULL));
	CHECK_OK(tutti_comm_split(parent, color_of(3, rank), rank, &comms[3], NULL));
	CHECK_OK(tutti_comm_split(comms[1], color_of(4, rank), rank, &comms[4], NULL));
	CHECK_OK(tutti_comm_dup(comms[3], &comms[5], NULL));
	CHECK_OK(tutti_comm_split(parent, color_of(6, rank), rank, &comms[6], NULL));
	for (int id = 0; id < COMMS; id++) {
		const int mask = members_of(id, rank);

		lines[id] = (struct line){ .id = id, .rank = rank, .mask = mask };
		lines[id].comm = comms[id];
		lines[id].n = __builtin_popcount((unsigned)mask);
		lines[id].self = __builtin_popcount((unsigned)mask & ((1u << rank) - 1));
		lines[id].dice = seed * 64 + (unsigned)id * 8 + (unsigned)color_of(id, rank) + 1;
		CHECK_OK(tutti_stream_create(&lines[id].stream));
	}
}

/* Share them out among the threads, and play. */
static void deal(struct line *lines, int rounds, uint64_t *dice)
{
	struct player players[THREADS] = { 0 };
	int order[COMMS], n = 0;

	for (int id = 0; id < COMMS; id++)
		if (lines[id].comm)
			order[n++] = id;
	for (int i = 0; i < n; i++) {
		const int k = i + (int)roll(dice, (unsigned)(n - i)), id = order[k];
		struct player *player = &players[i % THREADS];

		order[k] = order[i];
		player->lines[player->n++] = &lines[id];
	}
	for (int t = 0; t < THREADS; t++) {
		players[t].rounds = rounds;
		players[t].dice = *dice + (unsigned)t * 1000003u;
		if (pthread_create(&players[t].thread, NULL, play, &players[t]) != 0)
			abort();
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(players[t].thread, NULL);
	(void)roll(dice, 2);
}

struct game {
	uint64_t seed;
	int rounds;
};

static void one_rank(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct game *game = arg;
	uint64_t dice = game->seed * 977 + (unsigned)rank;
	struct line lines[COMMS];

	(void)n;
	open_lines(comm, rank, game->seed, lines);
	for (int i = 0; i < DEALS && world_failures() == 0; i++)
		deal(lines, game->rounds, &dice);
	for (int id = 0; id < COMMS; id++) {
		CHECK_OK(tutti_stream_destroy(lines[id].stream));
		if (id > 0 && lines[id].comm)
			CHECK_OK(tutti_comm_destroy(lines[id].comm));
	}
}

static void any_order(void **state)
{
	/* A deadlock is an error of the call. */
	static const struct world worlds[] = {
		{ .n = RANKS, .timeout_ms = 30000 },
		{ .n = RANKS, .timeout_ms = 30000, .sockets = true },
		{ .n = RANKS, .timeout_ms = 30000, .sockets = true, .transport = "tcp" },
	};
	const char *seed = getenv("TEST_SEED"), *rounds = getenv("TEST_ROUNDS");
	struct game game = {
		.seed = seed ? strtoull(seed, NULL, 10) : 1,
		.rounds = rounds      ? atoi(rounds)
			  : SANITIZED ? 20
				      : 200,
	};

	(void)state;
	printf("seed %llu\n", (unsigned long long)game.seed);
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		struct timespec from, to;

		atomic_store(&norders, 0);
		clock_gettime(CLOCK_MONOTONIC, &from);
		assert_int_equal(world_run(&worlds[i], one_rank, &game), 0);
		clock_gettime(CLOCK_MONOTONIC, &to);
		printf("%d random orders in %.2f s\n", atomic_load(&norders),
		       (double)(to.tv_sec - from.tv_sec) +
			       (double)(to.tv_nsec - from.tv_nsec) * 1e-9);
		/* 6 or 7 communicators, 4 threads: two or three of them have several. */
		assert_true(atomic_load(&norders) >= RANKS * DEALS * game.rounds * 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
