/* SPDX-License-Identifier: BSD-3-Clause */
/* Mail that comes before its box: kept until then, and not lost silently where there is no memory. */
#include "ranks.h"

#include "boot/base.h"
#include "boot/family/office.h"
#include "util/fault.h"

#define N 2

struct counter {
	struct tti_box box;
	int ntaken, nmissed, ndown, missed_from;
};

static void take(struct tti_box *box, int from, const struct tti_mail *mail, size_t nbytes)
{
	(void)from;
	(void)mail;
	(void)nbytes;
	((struct counter *)box)->ntaken++;
}

static void go_down(struct tti_box *box, int peer, enum tti_down how, const char *why)
{
	(void)peer;
	(void)how;
	(void)why;
	((struct counter *)box)->ndown++;
}

static void miss(struct tti_box *box, int from)
{
	((struct counter *)box)->nmissed++;
	((struct counter *)box)->missed_from = from;
}

static struct counter make_counter(uint64_t context)
{
	return (struct counter){
		.box = { .context = context, .take = take, .down = go_down, .missed = miss }
	};
}

/* From rank 0 to rank 1, who has no memory for it. */
static void send_in_vain(struct tti_boot *const *world, uint64_t context)
{
	const struct tti_mail mail = { .context = context, .kind = TTI_MAIL_BLOCK };

	tti_fault_set("mem:1");
	assert_int_equal(world[0]->ops->mail(world[0], 1, &mail, TTI_MAIL_HEAD + 8), TUTTI_OK);
	tti_fault_set(NULL);
}

static void close_world(struct tti_boot **world)
{
	for (int rank = 0; rank < N; rank++)
		tti_boot_close(world[rank]);
}

static void a_box_hears_what_it_missed(void **state)
{
	struct counter theirs = make_counter(6), own = make_counter(7), again = make_counter(7);
	struct tti_boot *world[N];

	(void)state;
	CHECK_OK(tti_boot_local_create(N, NULL, world));
	send_in_vain(world, 7);
	tti_office_open(&world[1]->office, &theirs.box);
	assert_int_equal(theirs.nmissed, 0);
	tti_office_open(&world[1]->office, &own.box);
	assert_int_equal(own.nmissed, 1);
	assert_int_equal(own.missed_from, 0);
	assert_int_equal(own.ntaken, 0);
	tti_office_close(&world[1]->office, &own.box);
	/* Once. */
	tti_office_open(&world[1]->office, &again.box);
	assert_int_equal(again.nmissed, 0);
	tti_office_close(&world[1]->office, &again.box);
	tti_office_close(&world[1]->office, &theirs.box);
	close_world(world);
}

/* Before, such an exchange waited for its timeout. */
static void an_exchange_without_memory_ends(void **state)
{
	const struct tti_boot_config config = { .timeout_ms = 600000 };
	struct tti_boot *world[N], *subs[N];
	int values[N] = { 0 };

	(void)state;
	CHECK_OK(tti_boot_local_create(N, NULL, world));
	send_in_vain(world, 9);
	for (int rank = N - 1; rank >= 0; rank--) {
		CHECK_OK(tti_boot_sub_create(world[rank], 9, NULL, N, &config, &subs[rank]));
		assert_int_equal(tti_boot_all_gather(subs[rank], values, sizeof(values[0])),
				 TUTTI_EPEER);
		assert_non_null(strstr(tti_error_text(), "rank 1"));
		assert_non_null(strstr(tti_error_text(), "is out of memory for what rank 0 sent"));
	}
	for (int rank = 0; rank < N; rank++)
		tti_boot_close(subs[rank]);
	close_world(world);
}

/* Not even memory for a list is needed. */
static void all_boxes_hear_of_a_death(void **state)
{
	struct counter boxes[] = { make_counter(1), make_counter(2), make_counter(3) };
	struct tti_boot *world[N];
	struct tti_office *office;

	(void)state;
	CHECK_OK(tti_boot_local_create(N, NULL, world));
	office = &world[1]->office;
	for (int i = 0; i < 3; i++)
		tti_office_open(office, &boxes[i].box);
	tti_fault_set("mem:1");
	for (int i = 0; i < 2; i++)
		tti_office_down(office, 0, TTI_DOWN_DIED, true, "died", &boxes[1].box);
	tti_fault_set(NULL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(boxes[i].ndown, i != 1);
		tti_office_close(office, &boxes[i].box);
	}
	close_world(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_box_hears_what_it_missed),
		cmocka_unit_test(an_exchange_without_memory_ends),
		cmocka_unit_test(all_boxes_hear_of_a_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
