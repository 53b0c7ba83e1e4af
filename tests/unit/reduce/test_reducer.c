/* SPDX-License-Identifier: BSD-3-Clause */
/* What is no kernel alone: inputs multiplied first, and the user's operators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reduce/reducer.h"

#define SOURCES 5
#define MOST    5000
#define GUARD   0xa5

/* Sources, and room for results on any alignment. */
static _Alignas(64) unsigned char data[SOURCES][16 * MOST + 16];
static unsigned char result[16 * MOST + 64], second[16 * MOST + 64];
static unsigned char product[16 * MOST + 16], expected[16 * MOST + 16];

static const size_t counts[] = { 1, 7, 255, 256, 257, 1000, MOST };
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

static void fill(void)
{
	uint64_t state = 1;

	for (int s = 0; s < SOURCES; s++)
		for (size_t i = 0; i < sizeof(data[s]); i++) {
			state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
			data[s][i] = (unsigned char)(state >> 56);
		}
}

static void check_written(const unsigned char *area, size_t offset, size_t nbytes)
{
	assert_memory_equal(area + offset, expected, nbytes);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(i < offset ? area[i] : area[nbytes + i], GUARD);
}

/* By whole arrays: the product, then the sum. */
static void expect_premul(tutti_type type, const void *scalar, int nsrc, int input_at, size_t count)
{
	const size_t size = tutti_type_size(type);
	static unsigned char factors[16 * MOST];
	const void *pair[] = { data[input_at], factors }, *all[SOURCES];

	for (size_t i = 0; i < count; i++)
		memcpy(factors + i * size, scalar, size);
	tti_reduce_get(type, TUTTI_PROD)(product, NULL, pair, 2, count, 0);
	for (int s = 0; s < nsrc; s++)
		all[s] = s == input_at ? product : data[s];
	tti_reduce_get(type, TUTTI_SUM)(expected, NULL, all, nsrc, count, 0);
}

static void check_premul(tutti_type type, const void *scalar, int nsrc, int input_at, size_t count)
{
	struct tti_reducer reducer = tti_reducer_of(type, TUTTI_SUM, 9);
	const size_t nbytes = count * tutti_type_size(type);
	const void *src[SOURCES];
	static struct tti_scalars scalars;

	for (int s = 0; s < nsrc; s++)
		src[s] = data[s];
	tti_scalars_fill(&scalars, scalar, type);
	reducer.scalars = &scalars;
	memset(result, GUARD, sizeof(result));
	memset(second, GUARD, sizeof(second));
	expect_premul(type, scalar, nsrc, input_at, count);
	tti_reducer_run(&reducer, result + count % 64, second + 5, src, nsrc, input_at, count,
			true);
	check_written(result, count % 64, nbytes);
	check_written(second, 5, nbytes);
}

static void inputs_are_multiplied_once(void **state)
{
	(void)state;
	fill();
	for (int type = 0; type < TUTTI_TYPE_COUNT; type++)
		for (int nsrc = 1; nsrc <= SOURCES; nsrc += 2)
			for (size_t c = 0; c < NCOUNTS; c++)
				check_premul((tutti_type)type, data[1] + 1 + c, nsrc, (int)c % nsrc,
					     counts[c]);
}

/* Of what comes from others nothing is. */
static void others_are_taken_as_they_are(void **state)
{
	const float values[] = { 1, 2, 3 }, factor = 10;
	struct tti_reducer reducer = tti_reducer_of(TUTTI_FLOAT32, TUTTI_SUM, 3);
	const void *src[] = { &values[0], &values[1], &values[2] };
	struct tti_scalars scalars;
	float got;

	(void)state;
	tti_scalars_fill(&scalars, &factor, TUTTI_FLOAT32);
	reducer.scalars = &scalars;
	tti_reducer_run(&reducer, &got, NULL, src, 3, -1, 1, true);
	assert_true(got == 6);
	src[0] = &values[0], src[1] = &values[1], src[2] = &values[2];
	tti_reducer_run(&reducer, &got, NULL, src, 3, 1, 1, true);
	assert_true(got == 24);
}

static void averages_divide_at_the_end(void **state)
{
	const int32_t values[] = { 5, 6 };
	const struct tti_reducer reducer = tti_reducer_of(TUTTI_INT32, TUTTI_AVG, 4);
	const void *src[] = { &values[0], &values[1] };
	int32_t got;

	(void)state;
	tti_reducer_run(&reducer, &got, NULL, src, 2, 0, 1, false);
	assert_int_equal(got, 11);
	tti_reducer_run(&reducer, &got, NULL, src, 2, 0, 1, true);
	assert_int_equal(got, 2);
}

/* x -> a x + b as (a, b): neither commutes nor forgives another order. */
static uint64_t then(uint64_t first, uint64_t second_map)
{
	const uint32_t a = (uint32_t)(first >> 32), b = (uint32_t)first;
	const uint32_t c = (uint32_t)(second_map >> 32), d = (uint32_t)second_map;

	return (uint64_t)(c * a) << 32 | (uint32_t)(c * b + d);
}

struct seen {
	size_t elements, calls;
};

static void compose(void *inout, const void *in, size_t count, tutti_type type, void *arg)
{
	struct seen *seen = arg;
	uint64_t *to = inout;
	const uint64_t *from = in;

	assert_int_equal(type, TUTTI_UINT64);
	assert_true(count > 0 && (uintptr_t)inout % 64 == 0 && (uintptr_t)in % 64 == 0);
	for (size_t i = 0; i < count; i++)
		to[i] = then(from[i], to[i]);
	seen->elements += count;
	seen->calls++;
}

static void users_operators_go_from_the_left(void **state)
{
	struct seen seen = { 0, 0 };
	const struct tti_reducer reducer = { .type = TUTTI_UINT64, .user = compose, .arg = &seen };

	(void)state;
	fill();
	for (int nsrc = 1; nsrc <= SOURCES; nsrc++)
		for (size_t c = 0; c < NCOUNTS; c++) {
			const void *src[SOURCES];

			/* Not aligned; the result goes where one of them is. */
			for (int s = 0; s < nsrc; s++)
				src[s] = data[s] + 1;
			for (size_t i = 0; i < counts[c]; i++) {
				uint64_t all, next;

				memcpy(&all, data[0] + 1 + 8 * i, 8);
				for (int s = 1; s < nsrc; s++) {
					memcpy(&next, data[s] + 1 + 8 * i, 8);
					all = then(all, next);
				}
				memcpy(expected + 8 * i, &all, 8);
			}
			memcpy(result, data[nsrc / 2], sizeof(data[0]));
			src[nsrc / 2] = result + 1;
			seen = (struct seen){ 0, 0 };
			tti_reducer_run(&reducer, result + 1, second + 3, src, nsrc, 0, counts[c],
					true);
			assert_memory_equal(result + 1, expected, 8 * counts[c]);
			assert_memory_equal(second + 3, expected, 8 * counts[c]);
			assert_int_equal(seen.elements, counts[c] * (size_t)(nsrc - 1));
		}
	/* In blocks, not one by one. */
	assert_true(seen.calls < 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inputs_are_multiplied_once),
		cmocka_unit_test(others_are_taken_as_they_are),
		cmocka_unit_test(averages_divide_at_the_end),
		cmocka_unit_test(users_operators_go_from_the_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
