/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of handoffs: the checker sees what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "coll/handoff_shape.h"
#include "util/error.h"

/* 0 and 1 to 2, 3, 4; half of it over either pair. */
struct block {
	struct tti_handoff_shape head;
	struct tti_handoff_stripe stripe[2];
	struct tti_handoff_hop hop[4];
};

static const int two[] = { 0, 1 }, three[] = { 2, 3, 4 };
static const struct block good = {
	{ 2, 4 },
	{ { 0, 2, -1, -1, 0, 2048, 0, 2 }, { 1, 3, -1, -1, 2048, 4096, 2, 2 } },
	{ { 2, 3 }, { 3, 4 }, { 3, 4 }, { 4, 2 } },
};

static void assert_bad(const struct block *block, const char *text)
{
	const struct tti_handoff_call call = { 6, { two, 2, 0 }, { three, 3, 0 } };
	int depth;

	assert_int_equal(tti_handoff_shape_check(&call, &block->head, sizeof(*block), &depth),
			 TUTTI_EPLAN);
	if (!strstr(tti_error_text(), text))
		fail_msg("%s: no \"%s\"", tti_error_text(), text);
}

#define BAD(text, ...)                   \
	do {                             \
		struct block bad = good; \
		__VA_ARGS__;             \
		assert_bad(&bad, text);  \
	} while (0)

static void breaches(void **state)
{
	const struct tti_handoff_call call = { 6, { two, 2, 0 }, { three, 3, 0 } };
	const struct tti_handoff_call parts = { 6, { two, 2, 1 }, { three, 3, 1 } };
	int depth = 0;

	(void)state;
	assert_int_equal(tti_handoff_shape_check(&call, &good.head, sizeof(good), &depth),
			 TUTTI_OK);
	assert_int_equal(depth, 3);
	assert_int_equal(tti_handoff_shape_check(&call, &good.head, sizeof(good) - 4, &depth),
			 TUTTI_EPLAN);
	assert_int_equal(tti_handoff_shape_check(&parts, &good.head, sizeof(good), &depth),
			 TUTTI_EPLAN);
	BAD("are not what", bad.head.nstripes = 3);
	BAD("are not what", bad.head.nhops = UINT32_MAX);
	BAD("no such rank", bad.stripe[1].from = 6);
	BAD("no such rank", bad.stripe[0].to = -1);
	BAD("no such rank", bad.hop[3].to = 6);
	BAD("there is none", bad.stripe[0].source = 0);
	BAD("there is none", bad.stripe[0].dest = 2);
	BAD("is from", bad.stripe[0].end = 0);
	BAD("is from", bad.stripe[1].end = 4097);
	BAD("has hops", bad.stripe[1].n = 3);
	BAD("has hops", bad.stripe[1].first = 5);
	BAD("what it has not", bad.stripe[0].from = 5);
	BAD("what it has not", bad.hop[0].from = 4);
	BAD("what it has already", bad.hop[1].to = 2);
	BAD("what it has already", bad.stripe[1].begin = 2047);
	BAD("shall not have", bad.hop[1].to = 5);
	BAD("rank 4 never gets what is behind 0", bad.stripe[0].n = 1);
	BAD("rank 2 never gets what is behind 2047", bad.stripe[0].end = 2047);
	BAD("rank 2 never gets what is behind 4000", bad.stripe[1].end = 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(breaches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
