/* SPDX-License-Identifier: BSD-3-Clause */
/* Somebody in the middle of all connections of a job: he reads, and at some place flips a bit,
 * leaves something out, repeats, moves or makes up bytes, or takes a connection over. A job that
 * is encrypted ends in an error, or goes on right; it never has wrong data, never hangs, and he
 * reads nothing. TEST_MIDDLE_JOBS and TEST_MIDDLE_SEED: more of it by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/crew.h"
#include "support/middle.h"
#include "support/sanitizer.h"

/* The library's, too. */
int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return middle_connect(fd, to, len);
}

#define RANKS       3
#define TEXT        "this is known!! "
#define WORDS       ((size_t)5000)
#define BYTES       ((size_t)40000)
#define ROUNDS      12
/* So many pieces pass until three ranks have met, and more. */
#define INIT_PIECES 36
/* What is known at once, on a machine that is ten times slower. */
#define SOON_NS     INT64_C(30000000000)

static bool encrypts;
static int boot_ms;

static void prepare(struct crew *crew, int rank)
{
	char number[16];

	(void)crew;
	(void)rank;
	snprintf(number, sizeof(number), "%d", boot_ms);
	setenv("TUTTI_BOOT_TIMEOUT_MS", number, 1);
	setenv("TUTTI_SOCKET_FAMILY", "AF_INET", 1);
	setenv("TUTTI_SOCKET_IFNAME", "lo", 1);
	setenv("TUTTI_ENCRYPT", encrypts ? "1" : "0", 1);
}

static tutti_status right(tutti_status st, bool is_right)
{
	return st == TUTTI_OK && !is_right ? TUTTI_EINTERNAL : st;
}

/* Sums, and a text that goes round as a collective. */
static tutti_status collectives(tutti_comm_t comm, int rank, int n, int round)
{
	static int words[WORDS];
	static char text[BYTES], all[RANKS * BYTES];
	bool same = true;
	tutti_status st;

	for (size_t i = 0; i < WORDS; i++)
		words[i] = rank + round + (int)i;
	st = tutti_all_reduce(words, words, WORDS, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	for (size_t i = 0; i < WORDS; i++)
		same &= words[i] == n * (n - 1) / 2 + n * (round + (int)i);
	st = right(st, same);
	for (size_t i = 0; i < BYTES; i++)
		text[i] = TEXT[i % (sizeof(TEXT) - 1)];
	if (st == TUTTI_OK)
		st = tutti_all_gather(text, all, BYTES, TUTTI_UINT8, comm, NULL);
	for (int i = 0; i < n; i++)
		same &= memcmp(all + (size_t)i * BYTES, text, BYTES) == 0;
	return right(st, same);
}

/* The text as a message, and through a window. */
static tutti_status pairs(tutti_comm_t comm, tutti_window_t window, const char *own, int rank,
			  int n)
{
	static char text[BYTES], got[BYTES];
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	tutti_status st;

	for (size_t i = 0; i < BYTES; i++)
		text[i] = TEXT[i % (sizeof(TEXT) - 1)];
	memset(got, 0, BYTES);
	st = tutti_send_recv(text, BYTES, next, got, BYTES, prev, TUTTI_UINT8, comm, NULL);
	st = right(st, memcmp(got, text, BYTES) == 0);
	if (st == TUTTI_OK)
		st = tutti_put(window, next, 0, text, BYTES, NULL);
	if (st == TUTTI_OK)
		st = tutti_signal(window, next, NULL);
	if (st == TUTTI_OK)
		st = tutti_wait_signal(window, prev, 1, NULL);
	return right(st, memcmp(own, text, BYTES) == 0);
}

static tutti_status job(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_window_t window = NULL;
	tutti_comm_t child = NULL;
	char *memory = calloc(1, BYTES);
	tutti_status st = tutti_window_create(comm, memory, BYTES, &window);

	for (int round = 0; st == TUTTI_OK && round < ROUNDS; round++) {
		st = collectives(comm, rank, crew->n, round);
		if (st == TUTTI_OK)
			st = pairs(comm, window, memory, rank, crew->n);
		if (st == TUTTI_OK && round == ROUNDS / 2)
			st = tutti_comm_split(comm, 0, rank, &child, NULL);
		if (st == TUTTI_OK && child)
			st = collectives(child, rank, crew->n, round);
	}
	tutti_comm_destroy(child);
	tutti_window_destroy(window);
	free(memory);
	atomic_store(&crew->stop, 1);
	return st;
}

struct outcome {
	uint64_t pieces;
	bool found, attacked, named;
	int failed; /* ranks */
};

static struct outcome run(enum middle_attack attack, uint64_t victim, uint64_t seed)
{
	struct middle *middle = middle_start(attack, victim, seed, TEXT);
	struct crew *crew = crew_create(RANKS, "tcp", job);
	struct outcome out = { 0 };
	int stuck;

	crew->prepare = prepare;
	/* Of a rank that waits in a window, nothing follows on other connections. */
	crew->timeout_ms = 20000;
	if (crew_start(crew))
		atomic_store(&crew->stop, 1);
	stuck = crew_wait(crew, 200000, -1);
	for (int rank = 0; rank < RANKS; rank++) {
		const struct crew_rank *own = &crew->rank[rank];

		out.failed += own->status != TUTTI_OK;
		out.named |= strstr(own->text, "somebody on the network") != NULL;
		if (stuck || own->status == TUTTI_EINTERNAL ||
		    (attack == MIDDLE_READ && own->status != TUTTI_OK))
			fail_msg("attack %d on piece %llu, seed %llu: %d ranks hang, rank %d: "
				 "%d, %s",
				 (int)attack, (unsigned long long)victim, (unsigned long long)seed,
				 stuck, rank, own->status, own->text);
	}
	out.pieces = atomic_load(&middle->pieces);
	out.found = atomic_load(&middle->found);
	out.attacked = atomic_load(&middle->attacked);
	crew_free(crew);
	middle_stop(middle);
	return out;
}

/* That there would be something to read is seen without encryption. */
static void nothing_can_be_read(void **state)
{
	(void)state;
	boot_ms = 100000;
	encrypts = false;
	assert_true(run(MIDDLE_READ, 0, 1).found);
	encrypts = true;
	assert_false(run(MIDDLE_READ, 0, 1).found);
}

static uint64_t from_environment(const char *name, uint64_t usual)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : usual;
}

static void nothing_can_be_changed(void **state)
{
	const uint64_t njobs = from_environment("TEST_MIDDLE_JOBS", 18);
	uint64_t seed = from_environment("TEST_MIDDLE_SEED", 1), pieces, all = 0;
	int failed = 0, named = 0;

	(void)state;
	boot_ms = 100000;
	encrypts = true;
	pieces = run(MIDDLE_READ, 0, seed).pieces;
	boot_ms = 5000;
	for (uint64_t i = 0; i < njobs; i++) {
		const enum middle_attack attack =
			(enum middle_attack)(1 + i % (MIDDLE_ATTACKS - 1));
		struct outcome out;

		seed = seed * UINT64_C(6364136223846793005) + 1;
		out = run(attack, (seed >> 33) % pieces, seed);
		assert_false(out.found);
		all += out.pieces;
		failed += out.failed > 0;
		named += out.named;
	}
	printf("%llu jobs, %llu pieces: %d ended with an error, %d of them told of somebody\n",
	       (unsigned long long)njobs, (unsigned long long)all, failed, named);
	assert_true(failed > 0 && named > 0);
}

/* Whatever of the first pieces it is, from the handshakes on: nobody waits for the time limit. */
static void a_change_during_init_is_known_at_once(void **state)
{
	(void)state;
	boot_ms = 100000;
	encrypts = true;
	for (uint64_t victim = 0; victim < INIT_PIECES; victim += SANITIZED ? 2 : 1) {
		const int64_t began = crew_now_ns();
		const struct outcome out = run(MIDDLE_FLIP_FIRST, victim, victim + 1);

		if (crew_now_ns() - began > SOON_NS)
			fail_msg("piece %llu: %lld ms, %d ranks failed", (unsigned long long)victim,
				 (long long)(crew_now_ns() - began) / 1000000, out.failed);
	}
}

static void some_only(struct crew *crew, int rank)
{
	boot_ms = 100000;
	prepare(crew, rank);
	setenv("TUTTI_ENCRYPT", rank == 2 ? "1" : "0", 1);
}

static void ranks_must_agree(void **state)
{
	struct crew *crew = crew_create(RANKS, NULL, job);

	(void)state;
	crew->prepare = some_only;
	assert_int_not_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 200000, -1), 0);
	for (int rank = 0; rank < RANKS; rank++) {
		assert_int_equal(crew->rank[rank].status, TUTTI_EINVAL);
		assert_non_null(strstr(crew->rank[rank].text,
				       "rank 2 has another TUTTI_ENCRYPT, or `encrypt`"));
	}
	crew_free(crew);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_can_be_read),
		cmocka_unit_test(nothing_can_be_changed),
		cmocka_unit_test(a_change_during_init_is_known_at_once),
		cmocka_unit_test(ranks_must_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
