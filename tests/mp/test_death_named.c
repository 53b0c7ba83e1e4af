/* SPDX-License-Identifier: BSD-3-Clause */
/* kill -9 of a rank while windows are used over a network, and while a communicator that was made of
 * another one is used and split: every other rank returns TUTTI_EPEER and names the dead one by its
 * number in the communicator of the call, with its process. TEST_KILLS says how many rounds (15),
 * TEST_SEED which. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "support/crew.h"

#define MOST_TIMES 100000
#define TEXT       512
/* Of half the ranks; a few ms as a rule, and 500 if only what is sent finds the death. */
#define MEDIAN_NS  INT64_C(250000000)

/* What a rank is told of a call of its child, which may not have been made yet; shared with its
 * process. */
static struct said {
	bool in_child;
	char text[TEXT];
} * said;

/* All ranks, numbered the other way round. */
static tutti_status in_child(struct crew *crew, int rank, tutti_comm_t comm,
			     tutti_status (*call)(int, tutti_comm_t))
{
	static tutti_comm_t child;
	tutti_status st = TUTTI_OK;

	if (!child)
		st = tutti_comm_split(comm, 0, crew->n - rank, &child, NULL);
	if (st == TUTTI_OK)
		st = call(rank, child);
	if (st != TUTTI_OK) {
		said[rank].in_child = child;
		snprintf(said[rank].text, TEXT, "%s", tutti_last_error(child));
		tutti_comm_destroy(child);
	}
	return st;
}

static tutti_status reduce(int rank, tutti_comm_t child)
{
	float value = (float)rank;

	return tutti_all_reduce(&value, &value, 1, TUTTI_FLOAT32, TUTTI_SUM, child, NULL);
}

static tutti_status split(int rank, tutti_comm_t child)
{
	tutti_comm_t grandchild = NULL;
	const tutti_status st = tutti_comm_split(child, rank % 2, rank, &grandchild, NULL);

	tutti_comm_destroy(grandchild);
	return st;
}

static tutti_status use_child(struct crew *crew, int rank, tutti_comm_t comm)
{
	return in_child(crew, rank, comm, reduce);
}

static tutti_status split_child(struct crew *crew, int rank, tutti_comm_t comm)
{
	return in_child(crew, rank, comm, split);
}

/* Round and round: put to the next rank and signal it. */
static tutti_status put(struct crew *crew, int rank, tutti_comm_t comm)
{
	const int next = (rank + 1) % crew->n, prev = (rank + crew->n - 1) % crew->n;
	static int memory[5000], words[5000];
	tutti_window_t window = NULL;
	tutti_status st = tutti_window_create(comm, memory, sizeof(memory), &window);

	while (st == TUTTI_OK && !atomic_load(&crew->stop)) {
		st = tutti_put(window, next, 0, words, sizeof(words), NULL);
		if (st == TUTTI_OK)
			st = tutti_signal(window, next, NULL);
		if (st == TUTTI_OK)
			st = tutti_wait_signal(window, prev, 1, NULL);
	}
	(void)tutti_window_destroy(window);
	return st;
}

static const struct {
	const char *name, *transport;
	tutti_status (*call)(struct crew *, int, tutti_comm_t);
	bool in_child;
} kinds[] = {
	{ "windows over tcp", "tcp", put, false },
	{ "calls of a child over shm", "shm", use_child, true },
	{ "calls of a child over tcp", "tcp", use_child, true },
	{ "splits of a child over shm", "shm", split_child, true },
	{ "splits of a child over tcp", "tcp", split_child, true },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct {
	int64_t ns[MOST_TIMES];
	int n, misnamed;
} found[KINDS];

static bool names(const char *text, int rank, pid_t pid)
{
	char name[32], process[32];

	snprintf(name, sizeof(name), "rank %d (", rank);
	snprintf(process, sizeof(process), "process %d)", (int)pid);
	return strstr(text, name) && strstr(text, process);
}

static void kill_one(size_t kind, int n, int victim, int after_us)
{
	struct crew *crew = crew_create(n, kinds[kind].transport, kinds[kind].call);
	int64_t killed_ns;
	int stuck;

	assert_int_equal(crew_start(crew), 0);
	crew_nap_us(after_us);
	killed_ns = crew_now_ns();
	kill(crew->rank[victim].pid, SIGKILL);
	stuck = crew_wait(crew, 20000, victim);
	for (int rank = 0; rank < n; rank++) {
		const struct crew_rank *own = &crew->rank[rank];
		const bool in_child = kinds[kind].in_child && said[rank].in_child;
		const char *text = in_child ? said[rank].text : own->text;

		if (rank == victim)
			continue;
		if (found[kind].n < MOST_TIMES)
			found[kind].ns[found[kind].n++] = own->failed_ns - killed_ns;
		if (own->status == TUTTI_EPEER && own->done &&
		    names(text, in_child ? n - 1 - victim : victim, crew->rank[victim].pid))
			continue;
		found[kind].misnamed++;
		print_error("%d ranks, %s, rank %d killed after %d us: rank %d has status %d after "
			    "%.3f s, done %d, \"%s\"\n",
			    n, kinds[kind].name, victim, after_us, rank, own->status,
			    (double)(own->failed_ns - killed_ns) / 1e9, own->done, text);
	}
	assert_int_equal(stuck, 0);
	crew_free(crew);
}

static int by_value(const void *left, const void *right)
{
	const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

static void named_and_soon(void **state)
{
	const char *asked = getenv("TEST_KILLS"), *given = getenv("TEST_SEED");
	const int rounds = asked ? atoi(asked) : 15;
	unsigned seed = given ? (unsigned)atoi(given) : (unsigned)time(NULL);
	bool wrong = false;

	(void)state;
	printf("TEST_SEED=%u\n", seed);
	said = mmap(NULL, CREW_MOST * sizeof(*said), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(said != MAP_FAILED);
	for (int round = 0; round < rounds; round++) {
		const int n = 3 + (int)(rand_r(&seed) % 6);

		kill_one((size_t)round % KINDS, n, (int)((unsigned)rand_r(&seed) % (unsigned)n),
			 (int)(rand_r(&seed) % 30000));
	}
	for (size_t kind = 0; kind < KINDS; kind++) {
		const int n = found[kind].n;
		const int64_t *ns = found[kind].ns;

		if (n == 0)
			continue;
		qsort(found[kind].ns, (size_t)n, sizeof(*ns), by_value);
		printf("%s: %d survivors, %d misnamed, median %.1f ms, worst %.1f ms\n",
		       kinds[kind].name, n, found[kind].misnamed, (double)ns[n / 2] / 1e6,
		       (double)ns[n - 1] / 1e6);
		wrong |= found[kind].misnamed > 0 || ns[n / 2] > MEDIAN_NS;
	}
	assert_false(wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_and_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
