/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose turn it is when lanes have shares, and when a lane falls behind: the rule alone, with a
 * clock of the test's own. */
#include "unit/transport/tcp_world.h"

#include "util/mem.h"

#define MS TTI_NS_PER_MS

static struct tti_tcp_conn well = { .fd = -1 };
static int64_t now;

/* A link of n lanes, each of NICs of its own. */
static struct tti_tcp_link *make(const double *shares, int n)
{
	static struct tti_tcp_wish wish = { .n = 1 };
	struct tti_tcp_link *link = tti_zalloc(sizeof(*link));

	assert_non_null(link);
	link->wish = &wish;
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

/* One message; returns its lane. */
static int deal(struct tti_tcp_link *link, const bool *free, size_t nbytes)
{
	static const int lane[] = { 0, 1, 2, 3 };
	const int k = tti_tcp_shares_pick(link, lane, free, link->nlanes, nbytes, now);

	if (k >= 0)
		link->lane[k].dealt += nbytes;
	return k;
}

/* No lane is ever more than a message away from its share of what was dealt. */
static void messages_are_dealt_by_shares(void **state)
{
	static const double shares[][4] = {
		{ 1, 1 }, { 3, 1 }, { 1, 0.4 }, { 5, 2, 1 }, { 0.1, 0.2, 0.3, 0.4 }
	};
	static const int n[] = { 2, 2, 2, 3, 4 };
	static const bool all[4] = { true, true, true, true };

	(void)state;
	for (size_t row = 0; row < sizeof(n) / sizeof(n[0]); row++) {
		struct tti_tcp_link *link = make(shares[row], n[row]);
		double sum = 0, total = 0;

		for (int i = 0; i < n[row]; i++)
			sum += shares[row][i];
		for (int i = 0; i < 2000; i++) {
			const size_t nbytes = 5000 + (size_t)i * 7919 % 100000;

			total += (double)nbytes;
			assert_in_range(deal(link, all, nbytes), 0, n[row] - 1);
			now += MS / 10;
			for (int k = 0; k < n[row]; k++) {
				const double away =
					(double)link->lane[k].dealt - total * shares[row][k] / sum;

				assert_true(away < 2 * 105000 && away > -2 * 105000);
			}
		}
		assert_true(tti_tcp_shares_hold(link));
		drop(link);
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
	for (int i = 0; i < 400; i++)
		assert_true(deal(link, all, 10000) >= 0);
	assert_in_range(link->lane[0].dealt, 990000, 1010000);
	assert_in_range(link->lane[1].dealt, 1990000, 2010000);
	assert_in_range(link->lane[2].dealt, 990000, 1010000);
	drop(link);
}

/* The others go ahead a little, then they wait; what was held back then goes where it is due. */
static void a_full_lane_is_waited_for(void **state)
{
	static const double shares[] = { 1, 1 };
	static const bool second[] = { false, true }, both[] = { true, true };
	struct tti_tcp_link *link = make(shares, 2);
	int n = 0;

	(void)state;
	while (deal(link, second, 10000) == 1)
		n++;
	assert_in_range(n, 20, 200);
	assert_int_equal(deal(link, second, 10000), -1);
	for (int i = 0; i < n; i++)
		assert_int_equal(deal(link, both, 10000), 0);
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
	int second = 0;

	(void)state;
	link->lane[0].dealt = 100000000;
	assert_int_equal(tti_tcp_shares_pick(link, first, both, 1, 10000, now), 0);
	link->lane[0].dealt += 100000000;
	for (int i = 0; i < 100; i++)
		second += deal(link, both, 10000) == 1;
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
	assert_in_range(link->lane[1].dealt - link->lane[0].dealt, 0, 1200000);
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
	link->wish = NULL;
	assert_false(tti_tcp_shares_hold(link));
	drop(link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_dealt_by_shares),
		cmocka_unit_test(sockets_of_a_pair_share),
		cmocka_unit_test(a_full_lane_is_waited_for),
		cmocka_unit_test(nobody_catches_up_with_the_past),
		cmocka_unit_test(who_falls_behind_loses_work),
		cmocka_unit_test(pauses_are_no_waiting),
		cmocka_unit_test(shares_hold_where_there_are_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
