/* SPDX-License-Identifier: BSD-3-Clause */
/* What is found wrong with figures of a link, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "insight/ping/ping.h"
#include "util/mem.h"

/* Two ranks with two healthy lanes of 1 Gbit/s. */
static tutti_ping_t healthy(void)
{
	tutti_ping_t ping = tti_zalloc(sizeof(*ping));

	assert_non_null(ping);
	ping->rank[0] = 3;
	ping->rank[1] = 7;
	ping->reached = true;
	ping->nlanes = 2;
	ping->lanes = tti_calloc(2, sizeof(*ping->lanes));
	assert_non_null(ping->lanes);
	for (int i = 0; i < 2; i++) {
		struct tti_ping_lane *lane = &ping->lanes[i];

		for (int s = 0; s < 2; s++) {
			struct tti_lane_info *side = &lane->side[s];

			snprintf(side->local_nic, sizeof(side->local_nic), "eth%d", i);
			snprintf(side->local_addr, sizeof(side->local_addr), "10.0.%d.%d", i,
				 s + 1);
			side->local_mbps = 1000;
			side->local_mtu = 1500;
			side->up = true;
		}
		lane->measure = (struct tti_ping_measure){
			.measured = 1,
			.round_trips = 1000,
			.rtt_least_us = 20,
			.rtt_us = 25,
			.rtt_p99_us = 60,
			.gbps = { 0.118, 0.117 },
			.least = { 0.118, 0.117 },
			.both_gbps = { 0.117, 0.117 },
			.sent = { 10000000, 10000000 },
			.resent = { 10, 0 },
		};
	}
	ping->together = ping->lanes[0].measure;
	ping->together.gbps[0] = ping->together.gbps[1] = 0.234;
	return ping;
}

/* The findings of `ping`, "rule:severity:lane " each; the texts of all in *texts. */
static const char *found(tutti_ping_t ping, char *texts, size_t size)
{
	static char rules[512];

	rules[0] = texts[0] = 0;
	assert_int_equal(tti_ping_find(ping), TUTTI_OK);
	for (int i = 0; i < tutti_ping_finding_count(ping); i++) {
		struct tutti_ping_finding f = TUTTI_PING_FINDING_INIT;
		const size_t at = strlen(rules), text_at = strlen(texts);

		assert_int_equal(tutti_ping_get_finding(ping, i, &f), TUTTI_OK);
		snprintf(rules + at, sizeof(rules) - at, "%s:%s:%d ", f.rule, f.severity, f.lane);
		snprintf(texts + text_at, size - text_at, "%s\n", f.what);
		assert_true(strlen(f.remedy) > 10);
	}
	tutti_ping_free(ping);
	return rules;
}

static char texts[4096];
#define FOUND(ping) found(ping, texts, sizeof(texts))
#define SAYS(text)  assert_non_null(strstr(texts, text))

static void nothing_is_wrong_with_a_healthy_link(void **state)
{
	(void)state;
	assert_string_equal(FOUND(healthy()), "");
}

static void slow_lanes_are_named(void **state)
{
	tutti_ping_t ping = healthy();

	(void)state;
	ping->lanes[1].measure.gbps[0] = ping->lanes[1].measure.least[0] = 0.08;
	ping->lanes[1].measure.gbps[1] = ping->lanes[1].measure.least[1] = 0.1;
	assert_string_equal(FOUND(ping), "slow:error:1 ");
	SAYS("lane 1 (rank 3 eth1 10.0.1.1 - rank 7 eth1 10.0.1.2) carries 0.08 GB/s from rank 3 "
	     "to "
	     "rank 7, 64 % of the 0.125");

	/* Nothing is known of the NICs: only that the other lane is quicker. */
	ping = healthy();
	for (int s = 0; s < 2; s++) {
		ping->lanes[1].side[s].local_mbps = 0;
		ping->lanes[1].measure.gbps[s] = 0.0118;
	}
	ping->together.gbps[0] = ping->together.gbps[1] = 0.13;
	assert_string_equal(FOUND(ping), "uneven:info:1 ");
	SAYS("the best of the other lanes 0.11");

	/* What one end does not know, the other may. */
	ping = healthy();
	ping->lanes[0].side[1].local_mbps = 0;
	ping->lanes[0].side[0].remote_mbps = 10000;
	ping->lanes[0].side[0].local_mbps = 10000;
	assert_string_equal(FOUND(ping), "slow:error:0 slow:error:0 ");
}

static void one_direction_is_told_from_the_other(void **state)
{
	tutti_ping_t ping = healthy();

	(void)state;
	ping->lanes[0].measure.gbps[1] = ping->lanes[0].measure.least[1] = 0.0118;
	ping->lanes[0].side[0].local_mbps = 0;
	ping->lanes[0].side[1].local_mbps = 0;
	ping->together.gbps[1] = 0.13;
	assert_string_equal(FOUND(ping), "one-way:error:0 uneven:info:0 one-way:info:-1 ");
	SAYS("rank 7 to rank 3 0.0118 GB/s, the other way 0.118, 10.0 times as much");
	SAYS("all lanes together of rank 3 and rank 7: rank 7 to rank 3 0.13");
}

/* A busy machine excuses what varies, and nothing that is the same each time. */
static void other_work_is_an_excuse(void **state)
{
	(void)state;
	for (int steady = 0; steady < 2; steady++) {
		tutti_ping_t ping = healthy();
		struct tti_ping_measure *m = &ping->lanes[0].measure;

		ping->lanes[0].side[0].local_mbps = 0;
		m->gbps[1] = 0.07;
		m->least[1] = steady ? 0.069 : 0.02;
		m->starved[1] = 0.4;
		ping->together.gbps[1] = 0.19;
		assert_string_equal(FOUND(ping), steady ? "one-way:error:0 " : "one-way:info:0 ");
		if (!steady)
			SAYS("rank 7 40 %");
	}
	for (int oversubscribed = 0; oversubscribed < 2; oversubscribed++) {
		tutti_ping_t ping = healthy();

		ping->oversubscribed = oversubscribed;
		ping->lanes[1].measure.rtt_p99_us = 4000;
		assert_string_equal(FOUND(ping),
				    oversubscribed ? "latency:info:1 " : "latency:warning:1 ");
		SAYS("1 % of round trips take 4000 us");
	}
}

static void memory_is_no_lane_with_addresses(void **state)
{
	tutti_ping_t ping = healthy();

	(void)state;
	ping->is_local = true;
	ping->nlanes = 1;
	memset(ping->lanes[0].side, 0, sizeof(ping->lanes[0].side));
	ping->lanes[0].side[0].up = ping->lanes[0].side[1].up = true;
	ping->lanes[0].measure.gbps[0] = 9;
	ping->lanes[0].measure.gbps[1] = 5;
	assert_string_equal(FOUND(ping), "one-way:warning:0 ");
	SAYS("the shared memory of rank 3 and rank 7");
}

static void settings_and_losses_are_told(void **state)
{
	tutti_ping_t ping = healthy();

	(void)state;
	ping->lanes[1].side[1].local_mtu = 9000;
	ping->lanes[1].side[0].losses = 2;
	ping->lanes[0].measure.resent[1] = 500;
	snprintf(ping->lanes[0].side[1].trouble, 128, "eth0 and eth1 share 10.0.0.0/24");
	assert_string_equal(FOUND(ping),
			    "odd:warning:0 resent:warning:0 lost:warning:1 mtu:warning:1 ");
	SAYS("as rank 7 sees it: eth0 and eth1 share 10.0.0.0/24");
	SAYS("rank 7 had to send 500 packets again, about 7.0 % of all");
	SAYS("was lost 2 times");
	SAYS("MTU 1500 at rank 3, 9000 at rank 7");
}

static void what_is_down_is_told(void **state)
{
	tutti_ping_t ping = healthy();

	(void)state;
	ping->lanes[1].side[1].up = false;
	memset(&ping->lanes[1].measure, 0, sizeof(ping->lanes[1].measure));
	snprintf(ping->lanes[1].side[1].trouble, 128, "10.0.1.1: No route to host");
	assert_string_equal(FOUND(ping), "lane-down:error:1 ");
	SAYS("lane 1 (rank 3 eth1 10.0.1.1 - rank 7 eth1 10.0.1.2) is not up: 10.0.1.1: No route");

	ping = healthy();
	ping->reached = false;
	ping->nlanes = 0;
	ping->why = tti_strdup("rank 7 cannot connect to rank 3 (10.0.0.1: No route to host)");
	assert_string_equal(FOUND(ping), "unreachable:error:-1 ");
	SAYS("rank 3 and rank 7 do not reach each other: rank 7 cannot connect");
}

static void lanes_that_share_are_told(void **state)
{
	tutti_ping_t ping = healthy();

	(void)state;
	ping->together.gbps[0] = ping->together.gbps[1] = 0.12;
	assert_string_equal(FOUND(ping), "together:info:-1 ");
	SAYS("one by one they make 0.23");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_wrong_with_a_healthy_link),
		cmocka_unit_test(slow_lanes_are_named),
		cmocka_unit_test(one_direction_is_told_from_the_other),
		cmocka_unit_test(other_work_is_an_excuse),
		cmocka_unit_test(memory_is_no_lane_with_addresses),
		cmocka_unit_test(settings_and_losses_are_told),
		cmocka_unit_test(what_is_down_is_told),
		cmocka_unit_test(lanes_that_share_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
