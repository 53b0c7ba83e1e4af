/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lanes a message may go to when they have shares, and when a lane falls behind: the rule alone,
 * with a clock of the test's own. */
#include "unit/transport/tcp_world.h"

#include "util/mem.h"

#define MS TTI_NS_PER_MS

static struct tti_tcp_conn well = { .fd = -1 };
static int64_t now;

/* A link of n lanes, each of NICs of its own. */
static struct tti_tcp_link *make(const double *shares, int n)
{
	static struct tti_tcp_assignment assignment = { .n = 1 };
	struct tti_tcp_link *link = tti_zalloc(sizeof(*link));

	assert_non_null(link);
	link->assignment = &assignment;
	link->nlanes = n;
	for (int i = 0; i < n; i++) {
		link->conn[i] = &well;
		link->lane[i].share = shares[i];
		link->lane[i].local_nic[0] = (char)('a' + i);
	}
	return link;
}

static void drop(struct tti_tcp_link *link)
{
	tti_free(link);
}

/* One message; returns its lane: the last one that is free and may get it, -1: none. */
static int deal_to(struct tti_tcp_link *link, const bool *free, const bool *idle, size_t nbytes)
{
	static const int lane[] = { 0, 1, 2, 3 };
	bool may[TTI_TCP_LANES_MOST];
	bool barred = false;
	int nmay = 0, taken = -1;

	tti_tcp_shares_admit(link, lane, idle, link->nlanes, nbytes, may);
	for (int k = 0; k < link->nlanes; k++) {
		nmay += may[k];
		barred |= free[k] && !may[k];
		if (free[k] && may[k])
			taken = k;
	}
	assert_true(nmay > 0);
	tti_tcp_shares_waited(link, taken < 0 && barred, now);
	if (taken >= 0)
		link->lane[taken].dealt += nbytes;
	return taken;
}

/* The same, where each lane has something to send. */
static int deal(struct tti_tcp_link *link, const bool *free, size_t nbytes)
{
	static const bool none[TTI_TCP_LANES_MOST];

	return deal_to(link, free, none, nbytes);
}

static const struct {
	int n;
	double share[4];
} rows[] = {
	{ 2, { 1, 1 } },
	{ 2, { 3, 1 } },
	{ 2, { 1, 0.4 } },
	{ 3, { 5, 2, 1 } },
	{ 4, { 0.1, 0.2, 0.3, 0.4 } },
};

/* Deals 8000 messages of all lengths to lanes that can take all, and compares what each lane got with
 * its share: it may be so far away, and by this part of all. */
static void check_shares(size_t row, const bool *idle, double away, double part)
{
	static const bool all[4] = { true, true, true, true };
	struct tti_tcp_link *link = make(rows[row].share, rows[row].n);
	double sum = 0, total = 0, got[4] = { 0 };

	for (int k = 0; k < rows[row].n; k++)
		sum += rows[row].share[k];
	for (int i = 0; i < 8000; i++) {
		const size_t nbytes = 5000 + (size_t)i * 7919 % 100000;
		const int taken = deal_to(link, all, idle, nbytes);

		assert_in_range(taken, 0, rows[row].n - 1);
		total += (double)nbytes;
		got[taken] += (double)nbytes;
		now += MS / 10;
		for (int k = 0; k < rows[row].n; k++)
			assert_true(got[k] <= total * (rows[row].share[k] / sum + part) + away);
	}
	assert_true(tti_tcp_shares_hold(link));
	drop(link);
}

/* Where lanes are idle, each gets its share within two messages and what is lost to rounding. Where
 * they are not, and each message takes the last lane that it may: within 1 MiB, which a lane may get
 * ahead again as older messages are forgotten. */
static void no_lane_gets_much_more_than_its_share(void **state)
{
	static const bool none[4], all[4] = { true, true, true, true };

	(void)state;
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		check_shares(row, all, 210000, 1.0 / 512);
		check_shares(row, none, 1200000, 1.0 / 16);
	}
}

/* Two sockets of a pair of NICs have its share together. */
static void sockets_of_a_pair_share(void **state)
{
	static const double shares[] = { 1, 1, 1 };
	static const bool all[] = { true, true, true };
	struct tti_tcp_link *link = make(shares, 3);

	(void)state;
	link->lane[2].local_nic[0] = link->lane[0].local_nic[0];
	for (int i = 0; i < 2400; i++)
		assert_true(deal(link, all, 10000) >= 0);
	assert_in_range(link->lane[0].dealt, 3800000, 6000000);
	assert_in_range(link->lane[1].dealt, 11000000, 13200000);
	assert_in_range(link->lane[2].dealt, 6000000, 7200000);
	drop(link);
}

/* The others go ahead a little, then they wait; what was held back then goes where it is due. */
static void a_full_lane_is_waited_for(void **state)
{
	static const double shares[] = { 1, 1 };
	static const bool first[] = { true, false }, second[] = { false, true };
	struct tti_tcp_link *link = make(shares, 2);
	int n = 0;

	(void)state;
	while (deal(link, second, 10000) == 1)
		n++;
	assert_in_range(n, 20, 220);
	assert_int_equal(deal(link, second, 10000), -1);
	for (int i = 0; i < n; i++)
		assert_int_equal(deal(link, first, 10000), 0);
	assert_true(tti_tcp_shares_hold(link));
	drop(link);
}

/* When the lanes change, what was dealt before is past. */
static void nobody_catches_up_with_the_past(void **state)
{
	static const double shares[] = { 1, 1 };
	static const bool both[] = { true, true };
	static const int first[] = { 0 };
	struct tti_tcp_link *link = make(shares, 2);
	bool may;
	int second = 0;

	(void)state;
	tti_tcp_shares_admit(link, first, both, 1, 10000, &may);
	assert_true(may);
	link->lane[0].dealt += 20000000;
	for (int i = 0; i < 100; i++)
		second += deal_to(link, both, both, 10000) == 1;
	assert_in_range(second, 49, 51);
	drop(link);
}

/* In each step of 0.1 ms a lane can take a message, but the first one in `good` of 8 only. */
static void run(struct tti_tcp_link *link, int good, int steps)
{
	for (int i = 0; i < steps && tti_tcp_shares_hold(link); i++) {
		bool free[] = { i % 8 < good, true };
		int k;

		while ((k = deal(link, free, 100000)) >= 0)
			free[k] = false;
		now += MS / 10;
	}
}

/* The time is over until which it would stay as it is. */
static void review(struct tti_tcp_link *link)
{
	now = link->dealer.again_at;
	tti_tcp_shares_review(link, now);
}

static void who_falls_behind_loses_work(void **state)
{
	static const double shares[] = { 1, 1 };
	struct tti_tcp_link *link = make(shares, 2);

	(void)state;
	run(link, 8, 5000);
	assert_true(tti_tcp_shares_hold(link));
	run(link, 7, 5000);
	assert_true(tti_tcp_shares_hold(link));
	assert_in_range(link->lane[1].dealt - link->lane[0].dealt, 0, 2400000);
	run(link, 4, 5000);
	assert_false(tti_tcp_shares_hold(link));
	/* It was not the lane's fault, as all carry alike, or nothing is known: then the shares hold,
	 * for a second at least. */
	tti_tcp_shares_review(link, now);
	assert_false(tti_tcp_shares_hold(link));
	link->lane[0].rate = 2.7;
	link->lane[1].rate = 3;
	review(link);
	assert_true(tti_tcp_shares_hold(link));
	run(link, 4, 9900);
	assert_true(tti_tcp_shares_hold(link));
	run(link, 4, 5000);
	assert_false(tti_tcp_shares_hold(link));
	link->lane[0].rate = 0;
	review(link);
	assert_true(tti_tcp_shares_hold(link));
	/* It is: it stays that way as long as it is slow. */
	now = link->dealer.again_at;
	run(link, 4, 5000);
	assert_false(tti_tcp_shares_hold(link));
	link->lane[0].rate = 1;
	for (int i = 0; i < 10; i++) {
		review(link);
		assert_false(tti_tcp_shares_hold(link));
		assert_true(link->lane[0].fell_behind && !link->lane[1].fell_behind);
	}
	assert_in_range(link->dealer.again_at - now, 60000 * MS, 60000 * MS);
	link->lane[0].rate = 2.7;
	review(link);
	assert_true(tti_tcp_shares_hold(link));
	drop(link);
}

/* Who has nothing to send for long waits for nobody. */
static void pauses_are_no_waiting(void **state)
{
	static const double shares[] = { 1, 1 };
	static const bool second[] = { false, true };
	struct tti_tcp_link *link = make(shares, 2);

	(void)state;
	while (deal(link, second, 10000) == 1)
		;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(deal(link, second, 10000), -1);
		now += 30 * MS;
	}
	assert_true(tti_tcp_shares_hold(link));
	drop(link);
}

/* Of lanes without a share, or that are gone, nobody waits for one. */
static void shares_hold_where_there_are_some(void **state)
{
	static const double none[] = { 0, 0 }, one[] = { 0, 1 };
	struct tti_tcp_link *link = make(none, 2);

	(void)state;
	assert_false(tti_tcp_shares_hold(link));
	drop(link);
	link = make(one, 2);
	assert_true(tti_tcp_shares_hold(link));
	link->conn[1] = NULL;
	assert_false(tti_tcp_shares_hold(link));
	link->conn[1] = &well;
	link->assignment = NULL;
	assert_false(tti_tcp_shares_hold(link));
	drop(link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_lane_gets_much_more_than_its_share),
		cmocka_unit_test(sockets_of_a_pair_share),
		cmocka_unit_test(a_full_lane_is_waited_for),
		cmocka_unit_test(nobody_catches_up_with_the_past),
		cmocka_unit_test(who_falls_behind_loses_work),
		cmocka_unit_test(pauses_are_no_waiting),
		cmocka_unit_test(shares_hold_where_there_are_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
