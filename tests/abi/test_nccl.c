/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs that were compiled for NCCL pass and get: sizes, offsets and values of
 * bindings/nccl, and that its lists agree with its headers. scripts/check_nccl_abi compares the
 * same with NVIDIA's own headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nccl/nccl_device.h"

#define IS_AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), "ABI")
#define HAS(type, nbytes)           _Static_assert(sizeof(type) == (nbytes), "ABI")

HAS(ncclUniqueId, 128);
HAS(ncclResult_t, 4);
HAS(ncclDataType_t, 4);
HAS(ncclRedOp_t, 4);
HAS(ncclScalarResidence_t, 4);
_Static_assert(ncclSuccess == 0 && ncclInProgress == 7 && ncclTimeout == 8, "ABI");
_Static_assert(ncclFloat32 == 7 && ncclBfloat16 == 9 && ncclFloat8e5m2 == 11, "ABI");
_Static_assert(ncclAvg == 4 && ncclNumOps == 5 && ncclMaxRedOp == INT_MAX, "ABI");
_Static_assert(NCCL_VERSION_CODE == NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), "ABI");
_Static_assert(NCCL_VERSION(2, 8, 4) == 2804 && NCCL_VERSION(2, 9, 6) == 20906, "ABI");

HAS(ncclConfig_t, 120);
IS_AT(ncclConfig_t, size, 0);
IS_AT(ncclConfig_t, magic, 8);
IS_AT(ncclConfig_t, version, 12);
#define FIELD(name, kind, offset, since) IS_AT(ncclConfig_t, name, offset);
#define LAYOUT(since, nbytes, last, release)
#include "nccl/config_layouts.def"
#undef FIELD
#undef LAYOUT

HAS(ncclCollConfig_t, 72);
IS_AT(ncclCollConfig_t, ext, 16);
IS_AT(ncclCollConfig_t, minCTAs, 24);
IS_AT(ncclCollConfig_t, maxCTAs, 28);
IS_AT(ncclCollConfig_t, nvlsCTAs, 32);
IS_AT(ncclCollConfig_t, cgaClusterSize, 36);
IS_AT(ncclCollConfig_t, algSelection, 40);
IS_AT(ncclCollConfig_t, forceAlgSelection, 48);
IS_AT(ncclCollConfig_t, CTAPolicy, 52);
IS_AT(ncclCollConfig_t, userProfilerTag, 56);
IS_AT(ncclCollConfig_t, launchCompletionEvent, 64);

HAS(ncclConfigExt_t, 24);
IS_AT(ncclConfigExt_t, key.optionId, 12);
IS_AT(ncclConfigExt_t, val, 16);
HAS(ncclSimInfo_t, 24);
IS_AT(ncclSimInfo_t, estimatedTime, 16);
HAS(ncclWaitSignalDesc_t, 16);
HAS(ncclEncryptionConfig_t, 32);
IS_AT(ncclEncryptionConfig_t, mode, 16);
IS_AT(ncclEncryptionConfig_t, psk, 24);

HAS(ncclTeam_t, 12);
HAS(ncclCommProperties_t, 152);
IS_AT(ncclCommProperties_t, rank, 16);
IS_AT(ncclCommProperties_t, cudaDev, 24);
IS_AT(ncclCommProperties_t, deviceApiSupport, 32);
IS_AT(ncclCommProperties_t, ginType, 36);
IS_AT(ncclCommProperties_t, nLsaTeams, 40);
IS_AT(ncclCommProperties_t, hostRmaSupport, 44);
IS_AT(ncclCommProperties_t, commHash, 56);
IS_AT(ncclCommProperties_t, ginSupport, 72);
IS_AT(ncclCommProperties_t, devCommRuntimeVersionSize, 136);
IS_AT(ncclCommProperties_t, cftCountedSupport, 146);
HAS(ncclDevCommRequirements_t, 120);
HAS(ncclDevComm_t, 248);

/* Each function of the list is declared. */
#define FUNCTION(name, since, kind, text) \
	_Static_assert(sizeof(&(name)) == sizeof(void (*)(void)), "ABI");
#define UNPROFILED(name, since, kind, text) FUNCTION(name, since, kind, text)
#include "nccl/functions.def"
#undef FUNCTION
#undef UNPROFILED

enum kind { CALL, LINES, FIXED, GAP, GPU };

static const struct function {
	const char *name;
	int since;
	enum kind kind;
	const char *text;
} functions[] = {
#define FUNCTION(name, since, kind, text)   { #name, since, kind, text },
#define UNPROFILED(name, since, kind, text) FUNCTION(name, since, kind, text)
#include "nccl/functions.def"
#undef FUNCTION
#undef UNPROFILED
};

#define FUNCTION_COUNT (sizeof(functions) / sizeof(functions[0]))

static void functions_stand_once_and_with_a_sentence(void **state)
{
	(void)state;
	assert_int_equal(FUNCTION_COUNT, 97);
	for (size_t at = 0; at < FUNCTION_COUNT; at++) {
		const struct function *function = &functions[at];

		assert_true(function->since >= 21403 && function->since <= NCCL_VERSION_CODE);
		assert_true(strlen(function->text) > 10);
		assert_int_equal(function->text[strlen(function->text) - 1], '.');
		for (size_t before = 0; before < at; before++)
			assert_string_not_equal(function->name, functions[before].name);
	}
}

static const struct field {
	const char *name;
	size_t nbytes, offset;
	int since;
} fields[] = {
#define INT                              int
#define STRING                           const char *
#define FIELD(name, kind, offset, since) { #name, sizeof(kind), offset, since },
#define LAYOUT(since, nbytes, last, release)
#include "nccl/config_layouts.def"
#undef FIELD
#undef LAYOUT
#undef INT
#undef STRING
};

static const struct layout {
	int since;
	size_t nbytes;
	const char *last;
} layouts[] = {
#define FIELD(name, kind, offset, since)
#define LAYOUT(since, nbytes, last, release) { since, nbytes, #last },
#include "nccl/config_layouts.def"
#undef FIELD
#undef LAYOUT
};

#define FIELD_COUNT  (sizeof(fields) / sizeof(fields[0]))
#define LAYOUT_COUNT (sizeof(layouts) / sizeof(layouts[0]))

/* The last field ends where the layout ends, but for padding to 8 bytes. */
static void layouts_end_with_their_last_field(void **state)
{
	(void)state;
	assert_int_equal(LAYOUT_COUNT, 11);
	for (size_t at = 0; at < LAYOUT_COUNT; at++) {
		const struct field *last = NULL;

		for (size_t f = 0; f < FIELD_COUNT; f++)
			if (fields[f].since <= layouts[at].since)
				last = &fields[f];
		assert_non_null(last);
		assert_string_equal(last->name, layouts[at].last);
		assert_int_equal(last->since, layouts[at].since);
		assert_int_equal((last->offset + last->nbytes + 7) / 8 * 8, layouts[at].nbytes);
		assert_true(at == 0 || layouts[at].since > layouts[at - 1].since);
	}
	assert_int_equal(layouts[LAYOUT_COUNT - 1].nbytes, sizeof(ncclConfig_t));
}

static void initialisers_say_what_they_are(void **state)
{
	const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	const ncclCollConfig_t call = NCCL_COLLCONFIG_INITIALIZER;
	const ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;
	const ncclEncryptionConfig_t encryption = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
	const ncclCommProperties_t properties = NCCL_COMM_PROPERTIES_INITIALIZER;
	const ncclDevCommRequirements_t requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;

	(void)state;
	assert_int_equal(config.size, sizeof(config));
	assert_int_equal(config.magic, 0xcafebeef);
	assert_int_equal(config.version, 23203);
	assert_int_equal(config.nvlsHostMode, INT_MIN);
	assert_null(config.netName);
	assert_null(config.commName);
	assert_int_equal(call.size, sizeof(call));
	assert_int_equal(call.forceAlgSelection, 1);
	assert_int_equal(call.userProfilerTag, 0);
	assert_int_equal(sim.magic, 0x74685283);
	assert_true(sim.estimatedTime < 0);
	assert_int_equal(encryption.mode, NCCL_ENCRYPTION_MODE_NONE);
	assert_int_equal(properties.size, sizeof(properties));
	assert_int_equal(requirements.ginContextCount, 4);
	assert_int_equal(requirements.ginTrafficClass, INT_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_stand_once_and_with_a_sentence),
		cmocka_unit_test(layouts_end_with_their_last_field),
		cmocka_unit_test(initialisers_say_what_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
