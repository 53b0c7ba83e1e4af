/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: by ids and of all devices, with configs of every release, nonblocking, of others,
 * and their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "nccl/ranks.h"

static bool sums_to(ncclComm_t comm, int value, int wanted)
{
	int got = -1;

	return CHECK_OK(ncclAllReduce(&value, &got, 1, ncclInt32, ncclSum, comm, NULL)) &&
	       CHECK(got == wanted);
}

/* -- Configs -------------------------------------------------------------------------------- */

static const struct layout {
	unsigned int since;
	size_t nbytes;
	const char *last;
} layouts[] = {
#define FIELD(name, kind, offset, since)
#define LAYOUT(since, nbytes, last, release) { since, nbytes, #last },
#include "nccl/config_layouts.def"
#undef FIELD
#undef LAYOUT
};

static ncclResult_t init_alone(const void *config)
{
	ncclComm_t comm = NULL;
	ncclUniqueId id;
	ncclResult_t result;

	assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
	/* NCCL takes a pointer that it does not write through. */
	result = ncclCommInitRankConfig(&comm, 1, id, 0, (ncclConfig_t *)config);
	assert_int_equal(comm != NULL, result == ncclSuccess);
	assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
	return result;
}

/* What is behind a config of an older release is nothing: the memory ends there, and padding that is a
 * field today is filled with what would be refused. */
static void configs_of_every_release_are_read(void **state)
{
	(void)state;
	for (size_t at = 0; at < sizeof(layouts) / sizeof(layouts[0]); at++) {
		ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
		unsigned char *given = malloc(layouts[at].nbytes);

		assert_non_null(given);
		config.size = layouts[at].nbytes;
		config.version = layouts[at].since;
		config.blocking = 1;
		if (layouts[at].since < 21700)
			config.cgaClusterSize = -5;
		if (layouts[at].since < 22600)
			config.trafficClass = -5;
		if (layouts[at].since < 23007)
			config.graphStreamOrdering = -5;
		memcpy(given, &config, layouts[at].nbytes);
		assert_int_equal(init_alone(given), ncclSuccess);
		free(given);
	}
}

static void refuse_config(const ncclConfig_t *config, const char *word)
{
	assert_int_equal(init_alone(config), ncclInvalidArgument);
	assert_non_null(strstr(ncclGetLastError(NULL), word));
}

static void wrong_configs_are_refused_by_name(void **state)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

	(void)state;
	config.magic = 1;
	refuse_config(&config, "magic");
	config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
	config.version = 20000;
	refuse_config(&config, "version");
	config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
	config.size = 112;
	refuse_config(&config, "size");
	config.size = 0;
	refuse_config(&config, "size");
	config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
	config.minCTAs = 4;
	config.maxCTAs = 2;
	refuse_config(&config, "minCTAs");
#define INT(name)                                       \
	config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER; \
	config.name = -5;                               \
	refuse_config(&config, #name);
#define STRING(name)
#define FIELD(name, kind, offset, since) kind(name)
#define LAYOUT(since, nbytes, last, release)
#include "nccl/config_layouts.def"
#undef FIELD
#undef LAYOUT
#undef INT
#undef STRING
	config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
	config.netName = "IB";
	assert_int_equal(init_alone(&config), ncclInvalidArgument);
	config.netName = "Socket";
	config.commName = "alone";
	assert_int_equal(init_alone(&config), ncclSuccess);
	/* Of a release that is newer than this one. */
	config.version = 30000;
	config.size = sizeof(config) + 80;
	assert_int_equal(init_alone(&config), ncclSuccess);
}

/* -- Making ----------------------------------------------------------------------------------- */

static void all_devices_of_a_process(void **state)
{
	static const int devices[] = { 3, 1, 2 }, twice[] = { 0, 1, 0 };
	ncclComm_t comms[3];
	int got[3], device, count, rank;

	(void)state;
	assert_int_equal(ncclCommInitAll(comms, 3, twice), ncclInvalidUsage);
	assert_non_null(strstr(ncclGetLastError(NULL), "NCCL_MULTI_RANK_GPU_ENABLE"));
	assert_int_equal(ncclCommInitAll(comms, 0, NULL), ncclInvalidArgument);
	assert_int_equal(ncclCommInitAll(NULL, 2, NULL), ncclInvalidArgument);
	assert_int_equal(ncclCommInitAll(comms, 3, devices), ncclSuccess);
	assert_int_equal(ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			ncclAllReduce(&devices[i], &got[i], 1, ncclInt32, ncclMax, comms[i], NULL),
			ncclSuccess);
	assert_int_equal(ncclGroupEnd(), ncclSuccess);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(got[i], 3);
		assert_int_equal(ncclCommCuDevice(comms[i], &device), ncclSuccess);
		assert_int_equal(device, devices[i]);
		assert_int_equal(ncclCommCount(comms[i], &count), ncclSuccess);
		assert_int_equal(count, 3);
		assert_int_equal(ncclCommUserRank(comms[i], &rank), ncclSuccess);
		assert_int_equal(rank, i);
	}
	/* One after the other in one thread: nobody waits for the others. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ncclCommFinalize(comms[i]), ncclSuccess);
		assert_int_equal(ncclCommDestroy(comms[i]), ncclSuccess);
	}
	assert_int_equal(ncclCommDestroy(comms[0]), ncclInvalidUsage);
	assert_int_equal(ncclCommCount(comms[0], &count), ncclInvalidUsage);
	assert_non_null(strstr(ncclGetLastError(comms[0]), "destroyed"));
}

/* In one thread, where an init that waited for others would wait for ever. */
static void inits_in_a_group(void **state)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comms[3] = { NULL };
	ncclUniqueId id;
	ncclResult_t result;

	(void)state;
	for (int blocking = 1; blocking >= 0; blocking--) {
		config.blocking = blocking;
		assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
		assert_int_equal(ncclGroupStart(), ncclSuccess);
		for (int i = 0; i < 3; i++)
			assert_int_equal(ncclCommInitRankConfig(&comms[i], 3, id, i, &config),
					 ncclSuccess);
		if (!blocking) {
			assert_int_equal(ncclCommGetAsyncError(comms[0], &result), ncclSuccess);
			assert_int_equal(result, ncclInProgress);
		}
		result = ncclGroupEnd();
		assert_true(result == ncclSuccess || (!blocking && result == ncclInProgress));
		for (int i = 0; i < 3; i++)
			do {
				assert_int_equal(ncclCommGetAsyncError(comms[i], &result),
						 ncclSuccess);
				usleep(1000);
			} while (result == ncclInProgress);
		assert_int_equal(result, ncclSuccess);
		assert_int_equal(ncclGroupStart(), ncclSuccess);
		for (int i = 0; i < 3; i++)
			assert_int_equal(ncclCommDestroy(comms[i]), ncclSuccess);
		assert_int_equal(ncclGroupEnd(), ncclSuccess);
	}
}

/* What is to be made at the end of a group that fails is not made, and says so. */
static void a_spoiled_group_makes_nothing(void **state)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL;
	ncclUniqueId id;
	ncclResult_t result;

	(void)state;
	config.blocking = 0;
	assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
	assert_int_equal(ncclGroupStart(), ncclSuccess);
	assert_int_equal(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclSuccess);
	assert_int_equal(ncclCommInitAll(NULL, 1, NULL), ncclInvalidArgument);
	assert_int_equal(ncclGroupEnd(), ncclInvalidArgument);
	assert_int_equal(ncclCommGetAsyncError(comm, &result), ncclSuccess);
	assert_int_equal(result, ncclInvalidUsage);
	assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
	assert_int_equal(ncclGroupEnd(), ncclInvalidUsage);
}

static void scalable(void **state)
{
	ncclUniqueId ids[2];
	ncclComm_t comms[4];

	(void)state;
	assert_int_equal(ncclGetUniqueId(&ids[0]), ncclSuccess);
	assert_int_equal(ncclGetUniqueId(&ids[1]), ncclSuccess);
	assert_int_equal(ncclCommInitRankScalable(&comms[0], 4, 0, 0, ids, NULL),
			 ncclInvalidArgument);
	assert_int_equal(ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ncclCommInitRankScalable(&comms[i], 4, i, 2, ids, NULL),
				 ncclSuccess);
	assert_int_equal(ncclGroupEnd(), ncclSuccess);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ncclCommDestroy(comms[i]), ncclSuccess);
}

/* -- Of others ---------------------------------------------------------------------------------- */

static void split(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t half, none = comm, all;
	int count = 0, got = 0;

	(void)arg;
	CHECK_OK(ncclCommSplit(comm, rank % 2, -rank, &half, NULL));
	CHECK_OK(ncclCommCount(half, &count));
	CHECK(count == n / 2);
	CHECK_OK(ncclCommUserRank(half, &got));
	CHECK(got == (n - 1 - rank) / 2);
	sums_to(half, 1, n / 2);
	CHECK_OK(ncclCommDestroy(half));
	CHECK_OK(ncclCommSplit(comm, rank == 0 ? 0 : NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
	CHECK((none != NULL) == (rank == 0));
	CHECK_OK(ncclCommDestroy(none));
	config.commName = "all";
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclCommSplit(comm, 0, rank, &all, &config));
	CHECK_OK(ncclGroupEnd());
	sums_to(all, rank, n * (n - 1) / 2);
	CHECK_OK(ncclCommDestroy(all));
	CHECK_REFUSED(ncclCommSplit(comm, -3, 0, &all, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclCommSplit(comm, 0, 0, NULL, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclCommSplit(NULL, 0, 0, &all, NULL), ncclInvalidArgument);
}

static void nonblocking_child(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t child;
	ncclResult_t result;

	(void)arg;
	(void)rank;
	config.blocking = 0;
	result = ncclCommSplit(comm, 0, 0, &child, &config);
	CHECK(result == ncclSuccess || result == ncclInProgress);
	while (result == ncclInProgress) {
		usleep(500);
		CHECK_OK(ncclCommGetAsyncError(child, &result));
	}
	sums_to(child, 1, n);
	result = ncclCommFinalize(child);
	while (result == ncclInProgress)
		CHECK_OK(ncclCommGetAsyncError(child, &result));
	CHECK_OK(ncclCommDestroy(child));
}

static void shrink(ncclComm_t comm, int rank, int n, void *arg)
{
	int without[] = { 1 }, got = -1;
	ncclComm_t rest;

	(void)arg;
	CHECK_REFUSED(ncclCommShrink(comm, without, 1, &rest, NULL, 8), ncclInvalidArgument);
	CHECK_REFUSED(ncclCommShrink(comm, NULL, 1, &rest, NULL, 0), ncclInvalidArgument);
	for (int flags = NCCL_SHRINK_DEFAULT; rank != 1 && flags <= NCCL_SHRINK_ABORT; flags++) {
		CHECK_OK(ncclCommShrink(comm, without, 1, &rest, NULL, flags));
		CHECK_OK(ncclCommUserRank(rest, &got));
		CHECK(got == (rank > 1 ? rank - 1 : rank));
		sums_to(rest, 1, n - 1);
		CHECK_OK(ncclCommDestroy(rest));
	}
	ranks_meet();
}

static ncclUniqueId grow_id;

/* The last rank leaves the first communicator, and joins again as a new one. */
static void grow(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclComm_t smaller = NULL, larger = NULL;
	ncclUniqueId second;

	(void)arg;
	CHECK_OK(ncclCommSplit(comm, rank < n - 1 ? 0 : NCCL_SPLIT_NOCOLOR, rank, &smaller, NULL));
	if (rank == 0) {
		CHECK_OK(ncclCommGetUniqueId(smaller, &grow_id));
		CHECK_REFUSED(ncclCommGetUniqueId(smaller, &second), ncclInvalidUsage);
	}
	ranks_meet();
	if (rank < n - 1)
		CHECK_OK(ncclCommGrow(smaller, n, rank == 0 ? &grow_id : NULL, -1, &larger, NULL));
	else
		CHECK_OK(ncclCommGrow(NULL, n, &grow_id, rank, &larger, NULL));
	sums_to(larger, rank, n * (n - 1) / 2);
	if (rank == 0)
		CHECK_OK(ncclCommGetUniqueId(smaller, &second));
	CHECK_OK(ncclCommDestroy(larger));
	CHECK_OK(ncclCommDestroy(smaller));
}

/* -- The end ----------------------------------------------------------------------------------- */

static void aborted(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclResult_t result = ncclSuccess;
	int value = 1, got;

	(void)arg;
	sums_to(comm, 1, n);
	/* Nobody is still in that call. */
	ranks_meet();
	if (rank == 0) {
		CHECK_OK(ncclCommAbort(comm));
		ranks_ended();
		CHECK_REFUSED(ncclCommCount(comm, &got), ncclInvalidUsage);
		return;
	}
	result = ncclAllReduce(&value, &got, 1, ncclInt32, ncclSum, comm, NULL);
	CHECK(result == ncclRemoteError);
	CHECK(*ncclGetLastError(comm) != '\0');
	CHECK_OK(ncclCommGetAsyncError(comm, &result));
	CHECK(result == ncclRemoteError);
}

static void revoked(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclResult_t result = ncclSuccess;
	ncclComm_t rest;
	int value = 1, got;

	(void)arg;
	CHECK_REFUSED(ncclCommRevoke(comm, 1), ncclInvalidArgument);
	ranks_meet();
	if (rank == 0)
		CHECK_OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
	while (result == ncclSuccess)
		result = ncclAllReduce(&value, &got, 1, ncclInt32, ncclSum, comm, NULL);
	CHECK(result == ncclInvalidUsage);
	CHECK_OK(ncclCommShrink(comm, NULL, 0, &rest, NULL, NCCL_SHRINK_ABORT));
	sums_to(rest, 1, n);
	CHECK_OK(ncclCommDestroy(rest));
	CHECK_OK(ncclGroupStart());
	CHECK_REFUSED(ncclCommSplit(comm, 0, 0, &rest, NULL), ncclInvalidUsage);
	(void)ncclGroupEnd();
	CHECK_OK(ncclCommSplit(comm, rank == 1 ? 7 : NCCL_SPLIT_NOCOLOR, 0, &rest, NULL));
	CHECK((rest != NULL) == (rank == 1));
	if (rest) {
		sums_to(rest, 5, 5);
		CHECK_OK(ncclCommDestroy(rest));
	}
	/* And once more, in the other order. */
	CHECK_OK(ncclCommSplit(comm, 0, -rank, &rest, NULL));
	CHECK_OK(ncclCommUserRank(rest, &got));
	CHECK(got == n - 1 - rank);
	sums_to(rest, 1, n);
	CHECK_OK(ncclCommDestroy(rest));
}

/* A rank that is gone by then is told of, with how to go on. */
static void revoked_and_left(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclResult_t result = ncclSuccess;
	ncclComm_t part = NULL;
	int value = 1, got;

	(void)arg;
	(void)n;
	ranks_meet();
	if (rank == 0)
		CHECK_OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
	while (result == ncclSuccess)
		result = ncclAllReduce(&value, &got, 1, ncclInt32, ncclSum, comm, NULL);
	if (rank == 2) {
		CHECK_OK(ncclCommAbort(comm));
		ranks_ended();
	}
	ranks_meet();
	if (rank == 2)
		return;
	CHECK(ncclCommSplit(comm, 0, 0, &part, NULL) == ncclRemoteError);
	CHECK(strstr(ncclGetLastError(comm), "2 of 3 ranks") != NULL);
	CHECK(part == NULL);
}

static void finalized(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclResult_t result = ncclInternalError;
	int value = 1, got;

	(void)arg;
	(void)rank;
	sums_to(comm, 1, n);
	CHECK_OK(ncclCommFinalize(comm));
	CHECK_REFUSED(ncclAllReduce(&value, &got, 1, ncclInt32, ncclSum, comm, NULL),
		      ncclInvalidUsage);
	CHECK_REFUSED(ncclCommFinalize(comm), ncclInvalidUsage);
	CHECK_OK(ncclCommGetAsyncError(comm, &result));
	CHECK(result == ncclSuccess);
	CHECK_OK(ncclCommCount(comm, &got));
}

static void communicators_of_others(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(4, split, NULL), 0);
	assert_int_equal(ranks_run(3, nonblocking_child, NULL), 0);
	assert_int_equal(ranks_run(4, shrink, NULL), 0);
	assert_int_equal(ranks_run(3, grow, NULL), 0);
}

static void their_end(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(3, aborted, NULL), 0);
	assert_int_equal(ranks_run(3, revoked, NULL), 0);
	assert_int_equal(ranks_run(3, revoked_and_left, NULL), 0);
	assert_int_equal(ranks_run(3, finalized, NULL), 0);
	assert_int_equal(ncclCommDestroy(NULL), ncclSuccess);
	assert_int_equal(ncclCommAbort(NULL), ncclSuccess);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(configs_of_every_release_are_read),
		cmocka_unit_test(wrong_configs_are_refused_by_name),
		cmocka_unit_test(all_devices_of_a_process),
		cmocka_unit_test(inits_in_a_group),
		cmocka_unit_test(a_spoiled_group_makes_nothing),
		cmocka_unit_test(scalable),
		cmocka_unit_test(communicators_of_others),
		cmocka_unit_test(their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
