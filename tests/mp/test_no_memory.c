/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that has no memory, or no thread, for a communicator that all make of another one: the others
 * hear of it where they wait, and the next one is made. One that has none for calls of a group: the
 * others hear of it, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>

#include "support/crew.h"
#include "util/fault.h"

#define N      3
#define VICTIM 1
/* Fails when all know who is in it. */
#define LATE   "core.setup:1"

static struct shared {
	_Atomic int failed; /* attempts of the victim */
} * shared;

typedef tutti_status (*make_fn)(tutti_comm_t comm, const tutti_config *config, tutti_comm_t *out);

static tutti_status split(tutti_comm_t comm, const tutti_config *config, tutti_comm_t *out)
{
	return tutti_comm_split(comm, 0, 0, out, config);
}

/* Rank 0, which it leaves out, does not call. */
static tutti_status shrink(tutti_comm_t comm, const tutti_config *config, tutti_comm_t *out)
{
	static const int twice[] = { 0, 0 };

	return tutti_comm_shrink(comm, twice, 2, out, config, TUTTI_SHRINK_DEFAULT);
}

static tutti_status group(tutti_comm_t comm, const tutti_config *config, tutti_comm_t *out)
{
	static const int ranks[] = { 2, 1, 0 };

	return tutti_comm_create_group(comm, ranks, N, 5, out, config);
}

/* All want too few ranks, which they find out together. */
static tutti_status grow(tutti_comm_t comm, const tutti_config *config, tutti_comm_t *out)
{
	return tutti_comm_grow(comm, N, NULL, -1, out, config);
}

/* What a call that returns at once has come to. */
static tutti_status finish(tutti_comm_t comm)
{
	tutti_status status = TUTTI_OK, made = TUTTI_AGAIN;

	while (status == TUTTI_OK && made == TUTTI_AGAIN) {
		status = tutti_comm_get_async_error(comm, &made);
		crew_nap_us(100);
	}
	return status == TUTTI_OK ? made : status;
}

static tutti_status sum_up(tutti_comm_t comm, int want)
{
	int one = 1, sum = 0;
	const tutti_status st = tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL);

	return st == TUTTI_OK && sum != want ? TUTTI_EINTERNAL : st;
}

static tutti_status complain(const char *fault, int rank, tutti_status st, const char *what)
{
	fprintf(stderr, "%s, rank %d: %s: %s: %s\n", fault, rank, what, tutti_status_name(st),
		tutti_last_error(NULL));
	return TUTTI_EINTERNAL;
}

/* The others call once the victim has failed, so that nothing else in its process takes memory; but it
 * fails late only when they have called. */
static tutti_status in_vain(tutti_comm_t comm, int rank, make_fn make, const char *fault)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t out = NULL;
	tutti_status st = sum_up(comm, N);
	const int failed = atomic_load(&shared->failed);

	if (st == TUTTI_OK)
		st = sum_up(comm, N);
	if (st != TUTTI_OK)
		return complain(fault, rank, st, tutti_last_error(comm));
	if (rank == 0 && make == shrink)
		return TUTTI_OK;
	config.blocking = strcmp(fault, "thread:1") != 0;
	if (rank == VICTIM) {
		tti_fault_set(fault);
		st = make(comm, &config, &out);
		tti_fault_set(NULL);
		atomic_fetch_add(&shared->failed, 1);
		return st == TUTTI_ENOMEM || st == TUTTI_ESYS || st == TUTTI_EINTERNAL
			       ? TUTTI_OK
			       : complain(fault, rank, st, tutti_last_error(comm));
	}
	while (strcmp(fault, LATE) != 0 && atomic_load(&shared->failed) == failed)
		crew_nap_us(100);
	st = make(comm, &config, &out);
	if (st == TUTTI_OK && !config.blocking)
		st = finish(out);
	if (st != TUTTI_EPEER || !strstr(tutti_last_error(out ? out : comm), "gave up"))
		return complain(fault, rank, st, tutti_last_error(out ? out : comm));
	tutti_comm_destroy(out);
	return TUTTI_OK;
}

/* They are in step. */
static tutti_status at_last(tutti_comm_t comm, int rank, make_fn make)
{
	tutti_comm_t out = NULL;
	tutti_status st;

	if (rank == 0 && make == shrink)
		return TUTTI_OK;
	st = make(comm, NULL, &out);
	if (make == grow)
		return st == TUTTI_EINVAL ? TUTTI_OK : complain("none", rank, st, "wrong numbers");
	if (st == TUTTI_OK)
		st = sum_up(out, make == shrink ? N - 1 : N);
	tutti_comm_destroy(out);
	return st == TUTTI_OK ? st : complain("none", rank, st, tutti_last_error(comm));
}

static make_fn made;
static const char *const *faults;

static tutti_status one_fails(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_status st = TUTTI_OK;

	for (int i = 0; faults[i] && st == TUTTI_OK; i++)
		st = in_vain(comm, rank, made, faults[i]);
	if (st == TUTTI_OK)
		st = at_last(comm, rank, made);
	crew->stop = 1;
	return st;
}

static void run(make_fn make, const char *const *list, const char *transport)
{
	struct crew *crew = crew_create(N, transport, one_fails);

	made = make;
	faults = list;
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < N; rank++)
		if (crew->rank[rank].status != TUTTI_OK)
			fail_msg("rank %d: %s: %s", rank,
				 tutti_status_name((tutti_status)crew->rank[rank].status),
				 crew->rank[rank].text);
	crew_free(crew);
}

static void splits(void **state)
{
	static const char *const list[] = { "mem:1",    "mem:2", "mem:4", "mem:6",
					    "thread:1", LATE,    NULL };

	(void)state;
	run(split, list, "shm,self");
	run(split, list, "tcp,self");
}

static void shrinks(void **state)
{
	static const char *const list[] = { "mem:1", "mem:2", "mem:3", "thread:1", NULL };

	(void)state;
	run(shrink, list, "shm,self");
}

static void grows(void **state)
{
	static const char *const list[] = { "mem:1", "mem:2", "thread:1", NULL };

	(void)state;
	run(grow, list, "shm,self");
}

/* It has called, and so is counted. */
static void groups(void **state)
{
	static const char *const list[] = { "thread:1", NULL };

	(void)state;
	run(group, list, "shm,self");
}

/* -- Calls of a group ------------------------------------------------------------------ */

static const char *fault_of_group;

/* One call of each; `fault` is one of the group's end. */
static tutti_status call_both(tutti_comm_t comm, tutti_comm_t other, const char *fault)
{
	const int one = 1;
	int sums[2] = { 0 };
	tutti_status st = tutti_group_start();

	if (st == TUTTI_OK)
		st = tutti_all_reduce(&one, &sums[0], 1, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	if (st == TUTTI_OK)
		st = tutti_all_reduce(&one, &sums[1], 1, TUTTI_INT32, TUTTI_SUM, other, NULL);
	tti_fault_set(fault);
	if (st == TUTTI_OK)
		st = tutti_group_end();
	else
		(void)!tutti_group_end();
	tti_fault_set(NULL);
	return st == TUTTI_OK && (sums[0] != N || sums[1] != N) ? TUTTI_EINTERNAL : st;
}

static tutti_status fail_in_group(struct crew *crew, int rank, tutti_comm_t comm)
{
	const int failed = atomic_load(&shared->failed);
	const bool is_victim = rank == VICTIM;
	tutti_comm_t other = NULL;
	tutti_status st = tutti_comm_dup(comm, &other, NULL);

	for (int i = 0; i < 2 && st == TUTTI_OK; i++)
		st = call_both(comm, other, NULL);
	if (st != TUTTI_OK)
		return complain(fault_of_group, rank, st, "before");
	while (!is_victim && atomic_load(&shared->failed) == failed)
		crew_nap_us(100);
	st = call_both(comm, other, is_victim ? fault_of_group : NULL);
	if (is_victim)
		atomic_fetch_add(&shared->failed, 1);
	/* Both are lost. */
	for (int i = 0; i < 2; i++) {
		if (st != TUTTI_EPEER || !strstr(tutti_last_error(i ? other : comm),
						 "rank 1 failed: group of 2: out of memory"))
			return complain(fault_of_group, rank, st, tutti_last_error(comm));
		st = tutti_barrier(i ? comm : other, NULL);
	}
	tutti_comm_destroy(other);
	crew->stop = 1;
	return TUTTI_OK;
}

static void calls_of_several_communicators(void **state)
{
	struct crew *crew = crew_create(N, "shm,self", fail_in_group);

	(void)state;
	/* The first allocation is the batch, the second what its calls run in side by side. */
	fault_of_group = "mem:2";
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < N; rank++)
		assert_int_equal(crew->rank[rank].status, TUTTI_OK);
	crew_free(crew);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits),
		cmocka_unit_test(shrinks),
		cmocka_unit_test(grows),
		cmocka_unit_test(groups),
		cmocka_unit_test(calls_of_several_communicators),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
