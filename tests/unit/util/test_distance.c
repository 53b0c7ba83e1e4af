/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/distance.h"

static int distance(const char *a, const char *b)
{
	return tti_distance(a, strlen(a), b, strlen(b));
}

static void distances(void **state)
{
	static const struct {
		const char *a, *b;
		int want;
	} known[] = {
		{ "", "", 0 },
		{ "abc", "", 3 },
		{ "abc", "abc", 0 },
		{ "abc", "ABC", 0 },
		{ "kitten", "sitting", 3 },
		{ "ab", "ba", 1 },
		{ "slot", "slto", 1 },
		{ "slot", "slots", 1 },
		{ "a", "b", 1 },
		{ "flaw", "lawn", 2 },
		{ "xabcdefx", "xabcfedx", 2 },
	};
	char longest[66];

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_int_equal(distance(known[i].a, known[i].b), known[i].want);
		assert_int_equal(distance(known[i].b, known[i].a), known[i].want);
	}
	memset(longest, 'x', sizeof(longest));
	longest[65] = '\0';
	assert_int_equal(distance(longest, "x"), INT_MAX);
	assert_int_equal(distance("x", longest), INT_MAX);
	longest[64] = '\0';
	assert_int_equal(distance(longest, "x"), 63);
}

/* A change of one character is a distance of at most 1; bounds by length. */
static void distance_is_a_measure(void **state)
{
	(void)state;
	srandom(4);
	for (int round = 0; round < 5000; round++) {
		char a[32] = "", b[32] = "";
		const int na = (int)(random() % 20), nb = (int)(random() % 20);
		int d;

		for (int i = 0; i < na; i++)
			a[i] = (char)('a' + random() % 3);
		for (int i = 0; i < nb; i++)
			b[i] = (char)('a' + random() % 3);
		d = distance(a, b);
		assert_int_equal(d, distance(b, a));
		assert_true(d >= abs(na - nb) && d <= (na > nb ? na : nb));
		assert_true((d == 0) == (strcmp(a, b) == 0));
		if (na) {
			memcpy(b, a, sizeof(a));
			b[random() % na] = 'z';
			assert_int_equal(distance(a, b), 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances),
		cmocka_unit_test(distance_is_a_measure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
