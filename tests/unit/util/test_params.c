/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"
#include "util/param_parse.h"
#include "util/params.h"
#include "util/params_read.h"

/* Whether `text` is accepted, and what as. */
static void accepts(enum tti_param_type type, const char *range, const char *text, int64_t want)
{
	struct tti_param_parsed value = { -99, NULL };

	if (!tti_param_parse(type, range, text, &value))
		fail_msg("\"%s\" within \"%s\" is refused", text, range);
	if (value.number != want)
		fail_msg("\"%s\" is %" PRId64 ", not %" PRId64, text, value.number, want);
}

static void refuses(enum tti_param_type type, const char *range, const char *text)
{
	struct tti_param_parsed value = { -99, NULL };

	if (tti_param_parse(type, range, text, &value))
		fail_msg("\"%s\" within \"%s\" is accepted", text, range);
	assert_int_equal(value.number, -99);
}

static void integers(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"-",
		"+",
		"--1",
		"1x",
		"x1",
		"0x10",
		"1.5",
		"1 2",
		"1K",
		"1e3",
		"1\n",
		"\xd9\xa1",
		"\xff",
		"true",
		"- 1",
		"9223372036854775808",
		"99999999999999999999999999",
	};

	(void)state;
	accepts(TTI_PARAM_INT, "", "0", 0);
	accepts(TTI_PARAM_INT, "", "-17", -17);
	accepts(TTI_PARAM_INT, "", "+17", 17);
	accepts(TTI_PARAM_INT, "", " 17\t", 17);
	accepts(TTI_PARAM_INT, "", "0017", 17);
	accepts(TTI_PARAM_INT, "", "9223372036854775807", INT64_MAX);
	accepts(TTI_PARAM_INT, "", "-9223372036854775807", -INT64_MAX);
	accepts(TTI_PARAM_MS, "1:", "120000", 120000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		refuses(TTI_PARAM_INT, "", bad[i]);
		refuses(TTI_PARAM_MS, "", bad[i]);
	}
}

static void sizes_and_their_suffixes(void **state)
{
	static const char *const bad[] = { "K", "-1", "-1K", "1KK", "1KB", "1T", "1 K", "K1", "" };

	(void)state;
	accepts(TTI_PARAM_SIZE, "", "0", 0);
	accepts(TTI_PARAM_SIZE, "", "0G", 0);
	accepts(TTI_PARAM_SIZE, "", "1000", 1000);
	accepts(TTI_PARAM_SIZE, "", "4K", 4096);
	accepts(TTI_PARAM_SIZE, "", "4k", 4096);
	accepts(TTI_PARAM_SIZE, "", "3M", 3 << 20);
	accepts(TTI_PARAM_SIZE, "", "2g", INT64_C(2) << 30);
	accepts(TTI_PARAM_SIZE, "", "8589934591G", INT64_C(8589934591) << 30);
	refuses(TTI_PARAM_SIZE, "", "8589934592G");
	refuses(TTI_PARAM_SIZE, "", "9223372036854775807K");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(TTI_PARAM_SIZE, "", bad[i]);
}

static void ranges_include_their_ends(void **state)
{
	(void)state;
	accepts(TTI_PARAM_INT, "1:64", "1", 1);
	accepts(TTI_PARAM_INT, "1:64", "64", 64);
	refuses(TTI_PARAM_INT, "1:64", "0");
	refuses(TTI_PARAM_INT, "1:64", "65");
	accepts(TTI_PARAM_INT, "-1:", "-1", -1);
	accepts(TTI_PARAM_INT, "-1:", "9223372036854775807", INT64_MAX);
	refuses(TTI_PARAM_INT, "-1:", "-2");
	accepts(TTI_PARAM_INT, ":7", "-9223372036854775807", -INT64_MAX);
	refuses(TTI_PARAM_INT, ":7", "8");
	accepts(TTI_PARAM_INT, ":", "8", 8);
	accepts(TTI_PARAM_SIZE, "4K:64M", "4096", 4096);
	accepts(TTI_PARAM_SIZE, "4K:64M", "64M", 64 << 20);
	refuses(TTI_PARAM_SIZE, "4K:64M", "4095");
	refuses(TTI_PARAM_SIZE, "4K:64M", "67108865");
}

static void booleans_and_enums(void **state)
{
	(void)state;
	accepts(TTI_PARAM_BOOL, "", "0", 0);
	accepts(TTI_PARAM_BOOL, "", "1", 1);
	refuses(TTI_PARAM_BOOL, "", "2");
	refuses(TTI_PARAM_BOOL, "", "-1");
	refuses(TTI_PARAM_BOOL, "", "yes");
	accepts(TTI_PARAM_ENUM, "NONE|WARN|INFO", "NONE", 0);
	accepts(TTI_PARAM_ENUM, "NONE|WARN|INFO", "warn", 1);
	accepts(TTI_PARAM_ENUM, "NONE|WARN|INFO", "Info", 2);
	refuses(TTI_PARAM_ENUM, "NONE|WARN|INFO", "INF");
	refuses(TTI_PARAM_ENUM, "NONE|WARN|INFO", "INFOS");
	refuses(TTI_PARAM_ENUM, "NONE|WARN|INFO", "NONE|WARN");
	refuses(TTI_PARAM_ENUM, "NONE|WARN|INFO", "1");
	refuses(TTI_PARAM_ENUM, "NONE|WARN|INFO", "");
}

static void strings_are_borrowed(void **state)
{
	static const char text[] = "eth,^lo";
	struct tti_param_parsed value;

	(void)state;
	assert_true(tti_param_parse(TTI_PARAM_STR, "", text, &value));
	assert_ptr_equal(value.text, text);
	assert_true(tti_param_parse(TTI_PARAM_SECRET, "", "", &value));
	assert_null(value.text);
}

/* What is shown can be put back into the environment. */
static void formatted_values_parse_to_the_same(void **state)
{
	struct tti_param_parsed value;
	char buf[32];

	(void)state;
	srandom(3);
	for (int round = 0; round < 20000; round++) {
		int64_t number =
			(int64_t)((uint64_t)random() << 32 ^ (uint64_t)random()) >> random() % 63;

		if (random() % 2)
			number &= -(INT64_C(1) << random() % 40);
		tti_param_format(TTI_PARAM_SIZE, "", number, buf, sizeof(buf));
		assert_true(tti_param_parse(TTI_PARAM_SIZE, "", buf, &value));
		assert_true(value.number == number);
		tti_param_format(TTI_PARAM_INT, "", -number, buf, sizeof(buf));
		assert_true(tti_param_parse(TTI_PARAM_INT, "", buf, &value));
		assert_true(value.number == -number);
	}
	tti_param_format(TTI_PARAM_SIZE, "", 256 << 10, buf, sizeof(buf));
	assert_string_equal(buf, "256K");
	tti_param_format(TTI_PARAM_SIZE, "", 0, buf, sizeof(buf));
	assert_string_equal(buf, "0");
	tti_param_format(TTI_PARAM_ENUM, "NONE|WARN|INFO", 2, buf, sizeof(buf));
	assert_string_equal(buf, "INFO");
	tti_param_format(TTI_PARAM_BOOL, "", 1, buf, sizeof(buf));
	assert_string_equal(buf, "1");
}

static void quoting_shows_only_ascii(void **state)
{
	char buf[16];

	(void)state;
	tti_param_quote("plain", 5, buf, sizeof(buf));
	assert_string_equal(buf, "plain");
	tti_param_quote("a\n\xc3", 3, buf, sizeof(buf));
	assert_string_equal(buf, "a\\x0a\\xc3");
	tti_param_quote("0123456789abcdef", 16, buf, sizeof(buf));
	assert_string_equal(buf, "0123456789ab...");
	tti_param_quote("0123456789ab\x1b", 13, buf, sizeof(buf));
	assert_string_equal(buf, "0123456789ab...");
	tti_param_quote("", 0, buf, sizeof(buf));
	assert_string_equal(buf, "");
}

static void read_of_nothing_gives_the_defaults(void **state)
{
	char *env[] = { NULL };
	struct tti_param_values params;

	(void)state;
	memset(&params, 0xa5, sizeof(params));
	assert_int_equal(tti_params_read(env, &params), TUTTI_OK);
	assert_int_equal(params.debug, TTI_LOG_WARN);
	assert_int_equal(params.rank, -1);
	assert_int_equal(params.shm_slot, 256 << 10);
	assert_int_equal(params.boot_timeout_ms, 120000);
	assert_int_equal(params.socket_family, 0);
	assert_string_equal(params.transport, "auto");
	assert_null(params.comm_id);
	assert_null(params.comm_secret);
	assert_null(params.debug_file);
}

static void read_takes_what_is_set(void **state)
{
	char id[] = "TUTTI_COMM_ID=10.0.0.1:4000";
	char *env[] = { "PATH=/bin",
			"TUTTI_RANK=3",
			id,
			"TUTTI_SHM_SLOT=1M",
			"TUTTI_DEBUG=trace",
			"TUTTI_SOCKET_FAMILY=af_inet6",
			"TUTTI_TIMEOUT_MS=250",
			"TUTTI_TRANSPORT=tcp",
			"TUTTI_COMM_SECRET=a=b",
			"TUTTI_RANK=4",
			NULL };
	struct tti_param_values params;

	(void)state;
	assert_int_equal(tti_params_read(env, &params), TUTTI_OK);
	assert_int_equal(params.rank, 3);
	assert_ptr_equal(params.comm_id, id + strlen("TUTTI_COMM_ID="));
	assert_int_equal(params.shm_slot, 1 << 20);
	assert_int_equal(params.debug, TTI_LOG_TRACE);
	assert_int_equal(params.socket_family, 2);
	assert_int_equal(params.timeout_ms, 250);
	assert_string_equal(params.transport, "tcp");
	assert_string_equal(params.comm_secret, "a=b");
}

static void empty_is_unset(void **state)
{
	char *env[] = { "TUTTI_RANK=",  "TUTTI_TRANSPORT=", "TUTTI_COMM_ID=",
			"TUTTI_DEBUG=", "NCCL_DEBUG=INFO",  NULL };
	struct tti_param_values params;

	(void)state;
	assert_int_equal(tti_params_read(env, &params), TUTTI_OK);
	assert_int_equal(params.rank, -1);
	assert_string_equal(params.transport, "auto");
	assert_null(params.comm_id);
	assert_int_equal(params.debug, TTI_LOG_INFO);
}

static void bad_values_and_odd_entries_are_harmless(void **state)
{
	char *env[] = { "TUTTI_RANK=\xff\xfe",
			"TUTTI_NRANKS=99999999999999999999",
			"TUTTI_SHM_SLOT=1",
			"TUTTI_SHM_SLOTS=65",
			"TUTTI_DEBUG=LOUD",
			"TUTTI_STALL_MS",
			"=",
			"",
			"TUTTI_",
			"TUTTI_=",
			"TUTTI_\xc3\x28=1",
			"TUTTI_RANK2=1",
			NULL };
	char *none[] = { NULL };
	struct tti_param_values params, defaults;

	(void)state;
	assert_int_equal(tti_params_read(none, &defaults), TUTTI_OK);
	assert_int_equal(tti_params_read(env, &params), TUTTI_OK);
	assert_int_equal(params.rank, -1);
	assert_int_equal(params.nranks, -1);
	assert_int_equal(params.shm_slot, defaults.shm_slot);
	assert_int_equal(params.shm_slots, defaults.shm_slots);
	assert_int_equal(params.debug, TTI_LOG_WARN);
	assert_int_equal(params.stall_ms, 10000);
}

static void what_is_shared_with_nccl(void **state)
{
	static const struct {
		char *nccl, *tutti;
		const char *want;
	} cases[] = {
		{ "NCCL_TOPO_FILE=/a", "X=", "/a" },
		{ "NCCL_TOPO_FILE=/a", "TUTTI_TOPO_FILE=/b", "/b" },
		{ "NCCL_TOPO_FILE=", "X=", NULL },
		{ "NCCL_SHM_SLOT=1M", "X=", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *env[] = { cases[i].nccl, cases[i].tutti, "NCCL_P2P_LEVEL=PHB", NULL };
		struct tti_param_values params;

		assert_int_equal(tti_params_read(env, &params), TUTTI_OK);
		if (cases[i].want)
			assert_string_equal(params.topo_file, cases[i].want);
		else
			assert_null(params.topo_file);
		assert_int_equal(params.p2p_level, 4);
		assert_int_equal(params.shm_slot, 256 << 10);
	}
}

static void nccl_debug_is_understood(void **state)
{
	static const struct {
		char *nccl, *tutti;
		int want;
	} cases[] = {
		{ "NCCL_DEBUG=VERSION", "X=", TTI_LOG_WARN },
		{ "NCCL_DEBUG=WARN", "X=", TTI_LOG_WARN },
		{ "NCCL_DEBUG=info", "X=", TTI_LOG_INFO },
		{ "NCCL_DEBUG=ABORT", "X=", TTI_LOG_WARN },
		{ "NCCL_DEBUG=TRACE", "X=", TTI_LOG_TRACE },
		{ "NCCL_DEBUG=NONE", "X=", TTI_LOG_NONE },
		{ "NCCL_DEBUG=nonsense", "X=", TTI_LOG_WARN },
		{ "NCCL_DEBUG=INFO", "TUTTI_DEBUG=NONE", TTI_LOG_NONE },
		{ "NCCL_DEBUG=INFO", "TUTTI_DEBUG=nonsense", TTI_LOG_WARN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *env[] = { cases[i].nccl, cases[i].tutti, NULL };
		struct tti_param_values params;

		assert_int_equal(tti_params_read(env, &params), TUTTI_OK);
		assert_int_equal(params.debug, cases[i].want);
	}
}

static const char *const type_names[] = {
#define X(name, text) text,
	TTI_PARAM_TYPE_MAP(X)
#undef X
};

/* Every row of params.def: a name of ours, a help text, a default in range. */
static void the_table_is_sound(void **state)
{
	(void)state;
	assert_true(tti_param_count() > 20);
	for (int i = 0; i < tti_param_count(); i++) {
		const struct tti_param_desc *desc = tti_param_desc(i);
		struct tti_param_parsed value;
		unsigned type = 0;

		assert_memory_equal(desc->variable, "TUTTI_", 6);
		assert_true(strlen(desc->help) > 5);
		while (strcmp(type_names[type], desc->type) != 0)
			assert_true(++type < sizeof(type_names) / sizeof(type_names[0]));
		assert_true(
			tti_param_parse((enum tti_param_type)type, desc->range, desc->def, &value));
		for (int other = 0; other < i; other++)
			assert_string_not_equal(desc->variable, tti_param_desc(other)->variable);
	}
	assert_null(tti_param_desc(-1));
	assert_null(tti_param_desc(tti_param_count()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),
		cmocka_unit_test(sizes_and_their_suffixes),
		cmocka_unit_test(ranges_include_their_ends),
		cmocka_unit_test(booleans_and_enums),
		cmocka_unit_test(strings_are_borrowed),
		cmocka_unit_test(formatted_values_parse_to_the_same),
		cmocka_unit_test(quoting_shows_only_ascii),
		cmocka_unit_test(read_of_nothing_gives_the_defaults),
		cmocka_unit_test(read_takes_what_is_set),
		cmocka_unit_test(empty_is_unset),
		cmocka_unit_test(bad_values_and_odd_entries_are_harmless),
		cmocka_unit_test(what_is_shared_with_nccl),
		cmocka_unit_test(nccl_debug_is_understood),
		cmocka_unit_test(the_table_is_sound),
	};

	/* Quiet: the reports are looked at in test_params_env.c. */
	setenv("TUTTI_DEBUG", "NONE", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
