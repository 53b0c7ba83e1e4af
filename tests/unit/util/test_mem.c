/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/arena.h"
#include "util/fault.h"
#include "util/mem.h"
#include "util/secret.h"
#include "util/vec.h"

/* The sanitizers take an absurd size for a bug of the program, unless told. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static int no_faults(void **state)
{
	(void)state;
	tti_fault_set(NULL);
	return 0;
}

static bool all_zero(const unsigned char *at, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		if (at[i])
			return false;
	return true;
}

/* A NULL would read as out of memory. */
static void nothing_is_an_address_too(void **state)
{
	void *memory[] = { tti_alloc(0), tti_zalloc(0), tti_calloc(0, 5), tti_realloc(NULL, 0),
			   tti_aligned_zalloc(64, 0) };

	(void)state;
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		assert_non_null(memory[i]);
		tti_free(memory[i]);
	}
	tti_free(NULL);
	tti_secret_free(NULL);
}

static void zeroed_aligned_and_copied(void **state)
{
	char *text = tti_strdup("a rank");

	(void)state;
	assert_string_equal(text, "a rank");
	tti_free(text);
	for (size_t align = 1; align <= 4096; align *= 2) {
		unsigned char *memory = tti_aligned_zalloc(align, 100);

		assert_non_null(memory);
		assert_int_equal((uintptr_t)memory % align, 0);
		assert_true(all_zero(memory, 100));
		tti_free(memory);
	}
	assert_null(tti_aligned_zalloc(24, 8));
	assert_int_equal(errno, EINVAL);
}

static void secrets_are_zeroed_aligned_and_apart(void **state)
{
	unsigned char *memory[20];

	(void)state;
	for (size_t i = 0; i < 20; i++) {
		const size_t nbytes = i * i * 97;

		memory[i] = tti_secret_zalloc(nbytes);
		assert_non_null(memory[i]);
		assert_int_equal((uintptr_t)memory[i] % 64, 0);
		assert_true(all_zero(memory[i], nbytes));
		memset(memory[i], (int)i, nbytes);
	}
	for (size_t i = 0; i < 20; i++) {
		for (size_t at = 0; at < i * i * 97; at++)
			assert_int_equal(memory[i][at], i);
		tti_secret_free(memory[i]);
	}
	assert_null(tti_secret_zalloc(SIZE_MAX / 4));
	assert_int_equal(errno, ENOMEM);
}

static void products_do_not_overflow(void **state)
{
	volatile size_t half = SIZE_MAX / 2;

	(void)state;
	assert_null(tti_calloc(half, 3));
	assert_null(tti_calloc(3, half));
}

/* Every way to get memory is a pass of the point "mem". */
static void each_can_be_made_to_fail(void **state)
{
	char *kept = tti_strdup("kept");
	void *memory[6];

	(void)state;
	for (int which = 0; which < 6; which++) {
		const char *const lists[] = {
			"mem:1", "mem:2", "mem:3", "mem:4", "mem:5", "mem:6"
		};

		tti_fault_set(lists[which]);
		memory[0] = tti_alloc(8);
		memory[1] = tti_zalloc(8);
		memory[2] = tti_calloc(2, 4);
		memory[3] = tti_realloc(NULL, 8);
		memory[4] = tti_aligned_zalloc(16, 8);
		memory[5] = tti_strdup("text");
		for (int i = 0; i < 6; i++) {
			assert_true((memory[i] == NULL) == (i == which));
			tti_free(memory[i]);
		}
	}
	tti_fault_set("mem:1");
	errno = 0;
	assert_null(tti_secret_zalloc(8));
	assert_int_equal(errno, ENOMEM);
	tti_fault_set("mem:1");
	errno = 0;
	assert_null(tti_realloc(kept, 100000));
	assert_int_equal(errno, ENOMEM);
	assert_string_equal(kept, "kept");
	tti_free(kept);
}

static void arena_gives_zeroed_memory_apart(void **state)
{
	struct tti_arena arena = { NULL };
	unsigned char *at[400];
	size_t nbytes[400];

	(void)state;
	srandom(2);
	for (size_t i = 0; i < 400; i++) {
		const size_t align = (size_t)1 << random() % 10;

		/* Some of them larger than a block. */
		nbytes[i] = (size_t)random() % (i % 50 == 49 ? 50000 : 300);
		at[i] = tti_arena_alloc_aligned(&arena, align, nbytes[i]);
		assert_non_null(at[i]);
		assert_int_equal((uintptr_t)at[i] % align, 0);
		assert_true(all_zero(at[i], nbytes[i]));
		memset(at[i], (int)(i % 255) + 1, nbytes[i]);
	}
	for (size_t i = 0; i < 400; i++)
		for (size_t byte = 0; byte < nbytes[i]; byte++)
			assert_int_equal(at[i][byte], i % 255 + 1);
	tti_arena_release(&arena);
	assert_null(arena.head);
	tti_arena_release(&arena);
}

static void arena_defaults_and_text(void **state)
{
	struct tti_arena arena = { NULL };
	char *text;

	(void)state;
	text = tti_arena_strdup(&arena, "plan");
	assert_string_equal(text, "plan");
	assert_string_equal(tti_arena_strdup(&arena, ""), "");
	for (int i = 0; i < 20; i++)
		assert_int_equal((uintptr_t)tti_arena_alloc(&arena, 3) % 16, 0);
	assert_non_null(tti_arena_alloc(&arena, 0));
	assert_int_equal((uintptr_t)tti_arena_alloc_aligned(&arena, 1 << 16, 5) % (1 << 16), 0);
	assert_string_equal(text, "plan");
	tti_arena_release(&arena);
}

static void arena_out_of_memory(void **state)
{
	struct tti_arena arena = { NULL };

	(void)state;
	assert_null(tti_arena_alloc(&arena, SIZE_MAX));
	assert_null(tti_arena_alloc(&arena, SIZE_MAX / 8));
	assert_null(tti_arena_alloc_aligned(&arena, SIZE_MAX / 2 + 1, 1));
	tti_fault_set("mem:1");
	assert_null(tti_arena_strdup(&arena, "text"));
	assert_non_null(tti_arena_alloc(&arena, 8));
	assert_null(tti_arena_alloc(&arena, SIZE_MAX));
	tti_arena_release(&arena);
}

static void vec_grows_and_keeps(void **state)
{
	TTI_VEC(int) numbers = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_true(tti_vec_push(&numbers, i * 3));
	assert_int_equal(numbers.n, 1000);
	assert_true(numbers.room >= 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(numbers.at[i], i * 3);
	tti_vec_release(&numbers);
	assert_null(numbers.at);
	assert_int_equal(numbers.n, 0);
	assert_int_equal(numbers.room, 0);
	assert_true(tti_vec_push(&numbers, 1));
	tti_vec_release(&numbers);
}

static void vec_out_of_memory_is_as_before(void **state)
{
	TTI_VEC(struct { char bytes[24]; }) items = { 0 };
	void *at;
	size_t room;

	(void)state;
	tti_fault_set("mem:1");
	assert_false(tti_vec_grow(&items));
	assert_null(items.at);
	assert_true(tti_vec_grow(&items));
	items.n = items.room;
	at = items.at;
	room = items.room;
	tti_fault_set("mem:1");
	assert_false(tti_vec_grow(&items));
	assert_ptr_equal(items.at, at);
	assert_int_equal(items.room, room);
	assert_int_equal(items.n, room);
	tti_vec_release(&items);
}

static void vec_sizes_do_not_overflow(void **state)
{
	TTI_VEC(uint64_t) words = { 0 };

	(void)state;
	assert_false(tti_vec_reserve((void **)&words.at, &words.room, SIZE_MAX, sizeof(*words.at)));
	assert_false(tti_vec_reserve((void **)&words.at, &words.room, SIZE_MAX / 2 + 2, 1));
	/* A product that would wrap around to a few bytes. */
	assert_false(tti_vec_reserve((void **)&words.at, &words.room, SIZE_MAX / 8 + 2, 8));
	assert_null(words.at);
	assert_int_equal(words.room, 0);
	assert_true(tti_vec_reserve((void **)&words.at, &words.room, 9, 8));
	assert_true(words.room >= 9);
	assert_true(tti_vec_reserve((void **)&words.at, &words.room, 3, 8));
	assert_true(words.room >= 9);
	tti_vec_release(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_an_address_too, no_faults),
		cmocka_unit_test_setup(zeroed_aligned_and_copied, no_faults),
		cmocka_unit_test_setup(secrets_are_zeroed_aligned_and_apart, no_faults),
		cmocka_unit_test_setup(products_do_not_overflow, no_faults),
		cmocka_unit_test_setup_teardown(each_can_be_made_to_fail, no_faults, no_faults),
		cmocka_unit_test_setup(arena_gives_zeroed_memory_apart, no_faults),
		cmocka_unit_test_setup(arena_defaults_and_text, no_faults),
		cmocka_unit_test_setup_teardown(arena_out_of_memory, no_faults, no_faults),
		cmocka_unit_test_setup(vec_grows_and_keeps, no_faults),
		cmocka_unit_test_setup_teardown(vec_out_of_memory_is_as_before, no_faults,
						no_faults),
		cmocka_unit_test_setup(vec_sizes_do_not_overflow, no_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
