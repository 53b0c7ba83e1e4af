/* SPDX-License-Identifier: BSD-3-Clause */
/* What needs no other rank: version, texts, both names, parameters, encryption, properties, teams, and
 * that what only a GPU can do is refused with a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nccl/ranks.h"

static ncclComm_t comm;

static void refused(ncclResult_t result, ncclResult_t wanted)
{
	assert_int_equal(result, wanted);
	assert_string_not_equal(ncclGetLastError(NULL), "");
}

static void version_and_texts(void **state)
{
	int version = 0;

	(void)state;
	assert_int_equal(ncclGetVersion(&version), ncclSuccess);
	assert_int_equal(version, NCCL_VERSION_CODE);
	refused(ncclGetVersion(NULL), ncclInvalidArgument);
	for (int result = -1; result <= ncclNumResults; result++) {
		assert_string_not_equal(ncclGetErrorString((ncclResult_t)result), "");
		for (int other = 0; other < result && result < ncclNumResults; other++)
			assert_string_not_equal(ncclGetErrorString((ncclResult_t)result),
						ncclGetErrorString((ncclResult_t)other));
	}
	ncclResetDebugInit();
	ncclResetDebugInitInternal();
}

/* Both names are of one function while no profiler has taken the first. */
static void both_names(void **state)
{
	(void)state;
	assert_ptr_equal(ncclAllReduce, pncclAllReduce);
	assert_ptr_equal(ncclGroupEnd, pncclGroupEnd);
}

static ncclParamHandle_t bound(const char *name)
{
	ncclParamHandle_t param = NULL;

	assert_int_equal(ncclParamBind(&param, name), ncclSuccess);
	return param;
}

/* A number is given in each type that holds it. */
static void numbers(void **state)
{
	const ncclParamHandle_t slot = bound("TUTTI_SHM_SLOT"), slots = bound("TUTTI_SHM_SLOTS");
	const ncclParamHandle_t spin = bound("TUTTI_SPIN"), debug = bound("TUTTI_DEBUG");
	int64_t i64 = 0;
	uint64_t u64 = 0;
	int32_t i32 = 0;
	uint32_t u32 = 0;
	int16_t i16 = 0;
	uint16_t u16 = 0;
	int8_t i8 = 0;
	uint8_t u8 = 0;

	(void)state;
	assert_int_equal(ncclParamGetI64(slot, &i64), ncclSuccess);
	assert_int_equal(ncclParamGetU64(slot, &u64), ncclSuccess);
	assert_int_equal(ncclParamGetI32(slot, &i32), ncclSuccess);
	assert_int_equal(ncclParamGetU32(slot, &u32), ncclSuccess);
	assert_true(i64 == 262144 && u64 == 262144 && i32 == 262144 && u32 == 262144);
	refused(ncclParamGetI16(slot, &i16), ncclInvalidArgument);
	refused(ncclParamGetU16(slot, &u16), ncclInvalidArgument);
	refused(ncclParamGetI8(slot, &i8), ncclInvalidArgument);
	refused(ncclParamGetU8(slot, &u8), ncclInvalidArgument);
	assert_int_equal(ncclParamGetI16(slots, &i16), ncclSuccess);
	assert_int_equal(ncclParamGetU16(slots, &u16), ncclSuccess);
	assert_int_equal(ncclParamGetI8(slots, &i8), ncclSuccess);
	assert_int_equal(ncclParamGetU8(slots, &u8), ncclSuccess);
	assert_true(i16 == 2 && u16 == 2 && i8 == 2 && u8 == 2);
	assert_int_equal(ncclParamGetI8(spin, &i8), ncclSuccess);
	assert_int_equal(i8, -1);
	refused(ncclParamGetU64(spin, &u64), ncclInvalidArgument);
	refused(ncclParamGetI64(debug, &i64), ncclInvalidArgument);
}

static void parameters(void **state)
{
	const ncclParamHandle_t debug = bound("NCCL_DEBUG");
	ncclParamHandle_t param;
	const char *text, **names;
	char bytes[64];
	int n = 0, length = 0;

	(void)state;
	/* One thing by two names. */
	assert_int_equal(ncclParamGetStr(debug, &text), ncclSuccess);
	assert_string_equal(text, "NONE");
	assert_int_equal(ncclParamGetParameter("TUTTI_DEBUG", &text, &length), ncclSuccess);
	assert_string_equal(text, "NONE");
	assert_int_equal(length, 4);
	assert_int_equal(ncclParamGet(debug, bytes, sizeof(bytes), &n), ncclSuccess);
	assert_int_equal(n, 5);
	assert_string_equal(bytes, "NONE");
	refused(ncclParamGet(debug, bytes, 4, &n), ncclInvalidArgument);
	/* NCCL's name was in the environment when the library was loaded. */
	assert_int_equal(ncclParamGetStr(bound("TUTTI_SOCKET_IFNAME"), &text), ncclSuccess);
	assert_string_equal(text, "lo");
	refused(ncclParamBind(&param, "NCCL_NO_SUCH_THING"), ncclInvalidArgument);
	refused(ncclParamBind(&param, NULL), ncclInvalidArgument);
	refused(ncclParamGetStr(NULL, &text), ncclInvalidArgument);
	refused(ncclParamGetStr(debug, NULL), ncclInvalidArgument);
	assert_int_equal(ncclParamGetAllParameterKeys(&names, &n), ncclSuccess);
	assert_true(n > 50);
	for (int i = 0; i < n; i++)
		assert_int_equal(ncclParamGetParameter(names[i], &text, NULL), ncclSuccess);
	ncclParamDumpAll();
}

static void encryption(void **state)
{
	ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;

	(void)state;
	assert_int_equal(ncclSetEncryption(&config), ncclSuccess);
	config.mode = NCCL_ENCRYPTION_MODE_PSK;
	config.psk = "secret";
	refused(ncclSetEncryption(&config), ncclInvalidUsage);
	config.mode = 5;
	refused(ncclSetEncryption(&config), ncclInvalidArgument);
	config.magic = 0;
	refused(ncclSetEncryption(&config), ncclInvalidArgument);
	refused(ncclSetEncryption(NULL), ncclInvalidArgument);
}

static void properties(void **state)
{
	ncclCommProperties_t all = NCCL_COMM_PROPERTIES_INITIALIZER, old = all;
	uint64_t bytes = 1;
	int device = -1;

	(void)state;
	assert_int_equal(ncclCommQueryProperties(comm, &all), ncclSuccess);
	assert_int_equal(all.nRanks, 1);
	assert_int_equal(all.rank, 0);
	assert_int_equal(all.nLsaTeams, 1);
	assert_true(all.hostRmaSupport && !all.deviceApiSupport && !all.multimemSupport);
	/* Of a smaller struct nothing behind it is written. */
	old.size = offsetof(ncclCommProperties_t, hostRmaSupport);
	old.commHash = 12345;
	assert_int_equal(ncclCommQueryProperties(comm, &old), ncclSuccess);
	assert_int_equal(old.commHash, 12345);
	assert_false(old.hostRmaSupport);
	old.magic = 0;
	refused(ncclCommQueryProperties(comm, &old), ncclInvalidArgument);
	refused(ncclCommQueryProperties(comm, NULL), ncclInvalidArgument);
	for (int stat = 0; stat < 4; stat++) {
		assert_int_equal(ncclCommMemStats(comm, (ncclCommMemStat_t)stat, &bytes),
				 ncclSuccess);
		assert_int_equal(bytes, 0);
	}
	refused(ncclCommMemStats(comm, (ncclCommMemStat_t)4, &bytes), ncclInvalidArgument);
	assert_int_equal(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclSuccess);
	assert_int_equal(ncclCommResume(comm), ncclSuccess);
	refused(ncclCommSuspend(comm, 8), ncclInvalidArgument);
	assert_int_equal(ncclCommCuDevice(comm, &device), ncclSuccess);
	assert_int_equal(device, 0);
	refused(ncclCommCuDevice(comm, NULL), ncclInvalidArgument);
	refused(ncclCommCount(NULL, &device), ncclInvalidArgument);
	refused(ncclMemAlloc(NULL, 5), ncclInvalidArgument);
	refused(ncclGetUniqueId(NULL), ncclInvalidArgument);
}

static void teams(ncclComm_t self, int rank, int n, void *arg)
{
	const ncclTeam_t world = ncclTeamWorld(self), lsa = ncclTeamLsa(self);
	const ncclTeam_t rail = ncclTeamRail(self), cft = ncclTeamCft(self, NCCL_CFT_TEAM_FLAT);

	(void)arg;
	CHECK(world.nRanks == n && world.rank == rank && world.stride == 1);
	CHECK(rail.nRanks == n && rail.rank == rank && rail.stride == 1);
	CHECK(lsa.nRanks == 1 && lsa.rank == 0);
	CHECK(cft.nRanks == 1 && ncclTeamCftMultimem(self).nRanks == 1);
	for (int at = 0; at < n; at++)
		CHECK(ncclTeamRankToWorld(self, world, at) == at);
	CHECK(ncclTeamRankToWorld(self, lsa, 0) == rank);
	CHECK(ncclTeamRankToLsa(self, lsa, 0) == 0);
	CHECK(ncclTeamRankToLsa(self, world, rank) == 0);
}

static void teams_are_arithmetic(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(3, teams, NULL), 0);
}

static void what_only_a_gpu_can_do(void **state)
{
	static const ncclTeam_t team = { 1, 0, 1 };
	static const ncclMultimemHandle_t multimem;
	ncclDevCommRequirements_t wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
	ncclDevComm_t devcomm;
	void *at;

	(void)state;
	refused(ncclDevCommCreate(comm, &wanted, &devcomm), ncclInvalidUsage);
	refused(ncclDevCommDestroy(comm, NULL), ncclInvalidUsage);
	refused(ncclGetMultimemDeviceLeInfo(NULL, 0, NULL, NULL), ncclInvalidUsage);
	refused(ncclGetCftDeviceLeInfo(NULL, 0, 0, team, NULL, NULL), ncclInvalidUsage);
	refused(ncclGetPeerDeviceLeInfo(NULL, 0, 0, NULL, NULL), ncclInvalidUsage);
	refused(ncclLsaBarrierCreateRequirement(team, 1, NULL, NULL), ncclInvalidUsage);
	refused(ncclGinBarrierCreateRequirement(comm, team, 1, NULL, NULL), ncclInvalidUsage);
	refused(ncclLLA2ACreateRequirement(1, 1, NULL, NULL), ncclInvalidUsage);
	refused(ncclGinOutboxCreateRequirement(1, 1, NULL, NULL), ncclInvalidUsage);
	refused(ncclGinInboxA2ACreateRequirement(team, 1, 1, NULL, NULL), ncclInvalidUsage);
	refused(ncclGetMultimemDevicePointer(NULL, 0, multimem, &at), ncclInvalidArgument);
	assert_int_equal(ncclLLA2ACalcSlots(8, 8), 0);
}

static int make(void **state)
{
	(void)state;
	return (int)ncclCommInitAll(&comm, 1, NULL);
}

static int end(void **state)
{
	(void)state;
	return (int)ncclCommDestroy(comm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_and_texts),
		cmocka_unit_test(both_names),
		cmocka_unit_test(numbers),
		cmocka_unit_test(parameters),
		cmocka_unit_test(encryption),
		cmocka_unit_test(properties),
		cmocka_unit_test(teams_are_arithmetic),
		cmocka_unit_test(what_only_a_gpu_can_do),
	};

	return cmocka_run_group_tests(tests, make, end);
}
