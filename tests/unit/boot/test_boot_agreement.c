/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is left out of an agreement though it lives is told so, whomever it has asked before they decided. */
#include "ranks.h"

#include <pthread.h>
#include <sched.h>

#include "boot/base.h"
#include "boot/watch/agreement.h"
#include "util/bitset.h"
#include "util/error.h"

#define N       4
#define CONTEXT 77

/* The world of a test: ranks of one process, whose mail comes while it is sent. */
static struct tti_boot *world[N];
static struct tti_agreement *agreement[N];
static _Atomic int nmailed[N];
static const struct tti_boot_ops *ops;
static struct tti_boot_ops counting;

static tutti_status mail_and_count(struct tti_boot *boot, int peer, const struct tti_mail *mail,
				   size_t nbytes)
{
	const tutti_status status = ops->mail(boot, peer, mail, nbytes);

	atomic_fetch_add(&nmailed[boot->rank], 1);
	return status;
}

static int open_world(void **state)
{
	const uint64_t none[TTI_BITSET_WORDS(N)] = { 0 };

	(void)state;
	if (tti_boot_local_create(N, NULL, world) != TUTTI_OK)
		return -1;
	ops = world[0]->ops;
	counting = *ops;
	counting.mail = mail_and_count;
	for (int rank = 0; rank < N; rank++) {
		world[rank]->ops = &counting;
		nmailed[rank] = 0;
		if (tti_agreement_create(world[rank], CONTEXT, none, &agreement[rank]) != TUTTI_OK)
			return -1;
	}
	return 0;
}

static int close_world(void **state)
{
	(void)state;
	for (int rank = 0; rank < N; rank++)
		tti_agreement_free(agreement[rank]);
	for (int rank = 0; rank < N; rank++)
		tti_boot_close(world[rank]);
	return 0;
}

/* To `rank` it seems that `peer` is gone. */
static void go_down(int rank, int peer, enum tti_down how)
{
	tti_dispatcher_down(&world[rank]->dispatcher, peer, how, how == TTI_DOWN_DIED, "is gone",
			    NULL);
}

static void query(int coordinator, int rank)
{
	const struct tti_mail letter = { .context = CONTEXT, .kind = TTI_MAIL_QUERY };

	CHECK_OK(ops->mail(world[coordinator], rank, &letter, TTI_MAIL_HEAD));
}

static void join(int rank, int coordinator)
{
	const struct tti_mail letter = { .context = CONTEXT, .kind = TTI_MAIL_JOIN };

	CHECK_OK(ops->mail(world[rank], coordinator, &letter, TTI_MAIL_HEAD + sizeof(uint64_t)));
}

struct holder {
	int rank;
	tutti_status status;
	char text[256];
	uint64_t gone[TTI_BITSET_WORDS(N)];
	pthread_t thread;
};

static void *hold(void *arg)
{
	const struct tti_boot_config config = { .timeout_ms = 60000 };
	struct holder *self = arg;

	self->status = tti_agreement_wait(agreement[self->rank], &config, self->gone);
	snprintf(self->text, sizeof(self->text), "%s", tti_error_text());
	return NULL;
}

static void begin(struct holder *self, int rank)
{
	self->rank = rank;
	assert_int_equal(pthread_create(&self->thread, NULL, hold, self), 0);
}

/* Those of these bits, who find that the ranks of the others are gone. */
static void agree(uint64_t ranks)
{
	struct holder holders[N];

	for (int rank = 0; rank < N; rank++)
		if (ranks >> rank & 1)
			begin(&holders[rank], rank);
	for (int rank = 0; rank < N; rank++) {
		if (!(ranks >> rank & 1))
			continue;
		pthread_join(holders[rank].thread, NULL);
		CHECK_OK(holders[rank].status);
		assert_int_equal(holders[rank].gone[0], ~ranks & ((1u << N) - 1));
	}
}

/* It has asked so many ranks, and waits. */
static void await_mails(int rank, int n)
{
	while (nmailed[rank] < n)
		sched_yield();
}

static void is_told(struct holder *self)
{
	pthread_join(self->thread, NULL);
	assert_int_equal(self->status, TUTTI_EPEER);
	assert_non_null(strstr(self->text, "for dead, and go on without it"));
}

/* To the coordinator rank 3 is silent after it has joined. */
static void one_that_falls_silent_after_it_has_joined(void **state)
{
	struct holder late;

	(void)state;
	for (int rank = 0; rank < N; rank++)
		go_down(rank, 2, TTI_DOWN_DIED);
	begin(&late, 3);
	await_mails(3, 1);
	go_down(0, 3, TTI_DOWN_LOST);
	agree(1u << 0 | 1u << 1);
	is_told(&late);
}

/* Rank 3 does not reach the coordinator, rank 1, and the coordinator not it: it joins rank 2, who has heard of rank 1. */
static void one_that_has_joined_another_rank(void **state)
{
	struct holder late;

	(void)state;
	for (int rank = 0; rank < N; rank++)
		go_down(rank, 0, TTI_DOWN_DIED);
	query(1, 2);
	go_down(3, 1, TTI_DOWN_LOST);
	begin(&late, 3);
	await_mails(3, 1);
	go_down(1, 3, TTI_DOWN_LOST);
	agree(1u << 1 | 1u << 2);
	is_told(&late);
}

/* It has asked all, and none reaches it. */
static void the_speaker(void **state)
{
	struct holder late;

	(void)state;
	begin(&late, 0);
	await_mails(0, 3);
	for (int rank = 1; rank < N; rank++)
		go_down(rank, 0, TTI_DOWN_LOST);
	agree(1u << 1 | 1u << 2 | 1u << 3);
	is_told(&late);
}

/* All have joined it, which it reads when they have found another one. */
static void a_second_speaker(void **state)
{
	struct holder late = { .rank = 0 };

	(void)state;
	for (int rank = 1; rank < N; rank++) {
		join(rank, 0);
		go_down(rank, 0, TTI_DOWN_LOST);
	}
	agree(1u << 1 | 1u << 2 | 1u << 3);
	assert_int_equal(tti_agreement_check(agreement[1]), TUTTI_AGAIN);
	hold(&late);
	CHECK_OK(late.status);
	assert_int_equal(late.gone[0], 0);
	assert_int_equal(tti_agreement_check(agreement[0]), TUTTI_EPEER);
	for (int rank = 1; rank < N; rank++)
		assert_int_equal(tti_agreement_check(agreement[rank]), TUTTI_AGAIN);
}

/* Nobody heard of it until all others were through. */
static void one_that_comes_late(void **state)
{
	struct holder late;

	(void)state;
	for (int rank = 0; rank < 3; rank++)
		go_down(rank, 3, TTI_DOWN_LOST);
	agree(1u << 0 | 1u << 1 | 1u << 2);
	begin(&late, 3);
	is_told(&late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
		TEST(one_that_falls_silent_after_it_has_joined),
		TEST(one_that_has_joined_another_rank),
		TEST(the_speaker),
		TEST(a_second_speaker),
		TEST(one_that_comes_late),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
