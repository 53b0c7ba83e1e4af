/* SPDX-License-Identifier: BSD-3-Clause */
/* Where guarded memory is reached, also while other ranges come and go. */
#include "engine/reach.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { NSTAYS = 100, NCHANGES = 2000, PAGE = 4096 };

/* Addresses that are only compared: those that stay, with room for one that comes between. */
static char *place(int i)
{
	return (char *)(uintptr_t)(0x100000000u + (uintptr_t)i * 2 * PAGE);
}

static char *other(int i)
{
	return (char *)(uintptr_t)(0x700000000u - (uintptr_t)i * 2 * PAGE);
}

static int add(char *address, size_t nbytes, char *reach)
{
	return tti_cuda_reach_add(&(struct tti_cuda_reach_range){
		.address = address, .nbytes = nbytes, .reach = reach, .owner = 3, .devices = 5 });
}

static char *find(const char *address)
{
	struct tti_cuda_reached found;

	return tti_cuda_reach_find(address, &found) ? found.at : NULL;
}

static void ranges_have_ends(void **state)
{
	(void)state;
	assert_null(find(place(0)));
	assert_int_equal(0, add(place(1), PAGE, other(1)));
	assert_int_equal(0, add(place(0), PAGE, other(0)));
	assert_null(find(place(0) - 1));
	assert_ptr_equal(find(place(0)), other(0));
	assert_ptr_equal(find(place(0) + PAGE - 1), other(0) + PAGE - 1);
	assert_null(find(place(0) + PAGE));
	assert_ptr_equal(find(place(1) + 5), other(1) + 5);
	assert_null(find(place(2)));
	tti_cuda_reach_remove(place(0));
	assert_null(find(place(0)));
	assert_ptr_equal(find(place(1)), other(1));
	tti_cuda_reach_remove(place(2));
	tti_cuda_reach_remove(place(1));
	assert_null(find(place(1)));
}

static void ranges_say_who_has_access(void **state)
{
	struct tti_cuda_reached found;

	(void)state;
	assert_int_equal(0, add(place(0), PAGE, other(0)));
	assert_true(tti_cuda_reach_find(place(0), &found));
	assert_int_equal(found.owner, 3);
	assert_int_equal(found.devices, 5);
	assert_false(found.is_plain);
	tti_cuda_reach_allow(place(0), 7);
	tti_cuda_reach_allow(place(1), 9);
	assert_true(tti_cuda_reach_find(place(0), &found));
	assert_int_equal(found.devices, 7);
	tti_cuda_reach_remove(place(0));
	assert_int_equal(0, tti_cuda_reach_add(&(struct tti_cuda_reach_range){
				    place(0), PAGE, other(0), 0, true, 0 }));
	assert_true(tti_cuda_reach_find(place(0), &found));
	assert_true(found.is_plain && found.owner == 0);
	tti_cuda_reach_remove(place(0));
	assert_int_equal(0, add(place(0), PAGE, place(0))); /* not kept: it is there */
	assert_false(tti_cuda_reach_find(place(0), &found));
}

static atomic_bool is_over;
static atomic_long nlooks;

static void *look(void *nothing)
{
	for (int i = 0; !atomic_load(&is_over); i = (i + 1) % NSTAYS) {
		if (find(place(i) + 7) != other(i) + 7 || find(place(i) - 1)) {
			atomic_store(&is_over, true);
			return &is_over;
		}
		atomic_fetch_add_explicit(&nlooks, 1, memory_order_relaxed);
	}
	return nothing;
}

static void lookups_find_what_stays_while_others_change(void **state)
{
	pthread_t looks[2];
	void *wrong;

	(void)state;
	for (int i = 0; i < NSTAYS; i++)
		assert_int_equal(0, add(place(i), PAGE, other(i)));
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&looks[i], NULL, look, NULL), 0);
	/* Also until both have looked at all. */
	for (int i = 0;
	     i < NCHANGES || (atomic_load(&nlooks) < 4 * NSTAYS && !atomic_load(&is_over)); i++) {
		char *between = place(i % NSTAYS) + PAGE;

		assert_int_equal(0, add(between, PAGE / 2, other(i % NSTAYS) + PAGE));
		assert_ptr_equal(find(between), other(i % NSTAYS) + PAGE);
		tti_cuda_reach_remove(between);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(looks[i], &wrong), 0);
		assert_null(wrong);
	}
	for (int i = 0; i < NSTAYS; i++)
		tti_cuda_reach_remove(place(i));
	assert_null(find(place(0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_have_ends),
		cmocka_unit_test(ranges_say_who_has_access),
		cmocka_unit_test(lookups_find_what_stays_while_others_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
