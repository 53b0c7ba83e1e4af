/* SPDX-License-Identifier: BSD-3-Clause */
/* Mail that comes before its mailbox: kept until then, and not lost silently where there is no memory. */
#include "ranks.h"

#include "boot/base.h"
#include "boot/family/dispatcher.h"
#include "util/fault.h"

#define N 2

struct counter {
	struct tti_mailbox mailbox;
	int ntaken, nmissed, ndown, missed_from;
};

static void take(struct tti_mailbox *mailbox, int from, const struct tti_mail *mail, size_t nbytes)
{
	(void)from;
	(void)mail;
	(void)nbytes;
	((struct counter *)mailbox)->ntaken++;
}

static void go_down(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why)
{
	(void)peer;
	(void)how;
	(void)why;
	((struct counter *)mailbox)->ndown++;
}

static void miss(struct tti_mailbox *mailbox, int from)
{
	((struct counter *)mailbox)->nmissed++;
	((struct counter *)mailbox)->missed_from = from;
}

static struct counter make_counter(uint64_t context)
{
	return (struct counter){
		.mailbox = { .context = context, .take = take, .down = go_down, .missed = miss }
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
	tti_dispatcher_open(&world[1]->dispatcher, &theirs.mailbox);
	assert_int_equal(theirs.nmissed, 0);
	tti_dispatcher_open(&world[1]->dispatcher, &own.mailbox);
	assert_int_equal(own.nmissed, 1);
	assert_int_equal(own.missed_from, 0);
	assert_int_equal(own.ntaken, 0);
	tti_dispatcher_close(&world[1]->dispatcher, &own.mailbox);
	/* Once. */
	tti_dispatcher_open(&world[1]->dispatcher, &again.mailbox);
	assert_int_equal(again.nmissed, 0);
	tti_dispatcher_close(&world[1]->dispatcher, &again.mailbox);
	tti_dispatcher_close(&world[1]->dispatcher, &theirs.mailbox);
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
	struct counter mailboxes[] = { make_counter(1), make_counter(2), make_counter(3) };
	struct tti_boot *world[N];
	struct tti_dispatcher *dispatcher;

	(void)state;
	CHECK_OK(tti_boot_local_create(N, NULL, world));
	dispatcher = &world[1]->dispatcher;
	for (int i = 0; i < 3; i++)
		tti_dispatcher_open(dispatcher, &mailboxes[i].mailbox);
	tti_fault_set("mem:1");
	for (int i = 0; i < 2; i++)
		tti_dispatcher_down(dispatcher, 0, TTI_DOWN_DIED, true, "died",
				    &mailboxes[1].mailbox);
	tti_fault_set(NULL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mailboxes[i].ndown, i != 1);
		tti_dispatcher_close(dispatcher, &mailboxes[i].mailbox);
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
