/* SPDX-License-Identifier: BSD-3-Clause */
/* Which NICs are paired, for hosts that are only described. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/tcp_pairs.h"

/* "eth0 10.0.0.1/24 fd00::1/64; docker0 172.17.0.1/16": a NIC and its addresses; one may
 * begin with its speed: "eth1 @1000 10.0.1.1/24". */
static void add_nic(struct tti_tcp_card *card, char *text)
{
	char *rest = NULL, *word = strtok_r(text, " ", &rest);
	struct tti_tcp_nic *nic = &card->nic[card->nnics];

	assert_true(card->nnics < TTI_TCP_NICS_MOST);
	nic->is = (struct tti_iface){ .index = (uint32_t)card->nnics + 1, .running = true };
	snprintf(nic->is.name, sizeof(nic->is.name), "%s", word);
	nic->is.kind = !strcmp(word, "lo")           ? TTI_IFACE_LOOPBACK
		       : !strncmp(word, "docker", 6) ? TTI_IFACE_BRIDGE
						     : TTI_IFACE_NIC;
	while ((word = strtok_r(NULL, " ", &rest))) {
		struct tti_addr *addr = &card->addr[card->naddrs];
		char *slash = strchr(word, '/');

		if (*word == '@') {
			nic->is.mbps = (uint32_t)strtoul(word + 1, NULL, 10);
			continue;
		}
		*slash = 0;
		addr->family = strchr(word, ':') ? 6 : 4;
		assert_int_equal(inet_pton(addr->family == 4 ? AF_INET : AF_INET6, word, addr->ip),
				 1);
		if (addr->family == 6 && addr->ip[0] == 0xfe)
			addr->scope = nic->is.index;
		card->prefix[card->naddrs] = (uint8_t)strtoul(slash + 1, NULL, 10);
		card->nic_of[card->naddrs++] = (uint8_t)card->nnics;
	}
	card->nnics++;
}

static struct tti_tcp_card host(const char *text)
{
	struct tti_tcp_card card = { .slots = 1, .slot_bytes = 1 };
	char copy[1024], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *nic = strtok_r(copy, ";", &rest); nic; nic = strtok_r(NULL, ";", &rest))
		add_nic(&card, nic);
	return card;
}

/* "1 2": over routers, all may go by the NICs with these indexes. NULL: there is none. */
static bool by_list(void *context, const struct tti_addr *from, const struct tti_addr *to,
		    uint32_t index)
{
	const char *list = context;

	(void)from;
	(void)to;
	return list && strchr(list, (int)('0' + index)) != NULL;
}

/* What comes out, as "eth0-eth0 eth1-eth1". */
static const char *propose(const char *a, const char *b, char *routes, const char *first,
			   size_t most)
{
	static char text[1024];
	const struct tti_tcp_card mine = host(a), theirs = host(b);
	uint8_t order[TTI_TCP_NICS_MOST];
	struct tti_tcp_pair pair[64];
	struct tti_tcp_ways ways;
	size_t n = 0, len = 0;

	for (size_t i = 0; i < mine.nnics; i++)
		if (first && !strcmp(mine.nic[i].is.name, first))
			order[n++] = (uint8_t)i;
	for (size_t i = 0; i < mine.nnics; i++)
		if (!first || strcmp(mine.nic[i].is.name, first) != 0)
			order[n++] = (uint8_t)i;
	tti_tcp_ways_find(&mine, &theirs, -1, by_list, routes, &ways);
	n = tti_tcp_pairs_add(&mine, &theirs, &ways, order, pair, 0, most);
	text[0] = 0;
	for (size_t i = 0; i < n; i++) {
		const struct tti_tcp_way *way = &ways.at[pair[i].mine][pair[i].theirs];

		assert_int_equal(mine.nic_of[way->from], pair[i].mine);
		assert_int_equal(theirs.nic_of[way->to], pair[i].theirs);
		assert_int_equal(mine.addr[way->from].family, theirs.addr[way->to].family);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s-%s", len ? " " : "",
					mine.nic[pair[i].mine].is.name,
					theirs.nic[pair[i].theirs].is.name);
	}
	return text;
}

#define A2     "eth0 10.0.0.1/24;eth1 10.0.1.1/24"
#define B2     "eth0 10.0.0.2/24;eth1 10.0.1.2/24"
#define A4     A2 ";eth2 10.0.2.1/24;eth3 10.0.3.1/24"
#define B4     B2 ";eth2 10.0.2.2/24;eth3 10.0.3.2/24"
#define SAME_A "eth0 10.0.0.1/16;eth1 10.0.0.2/16;eth2 10.0.0.3/16;eth3 10.0.0.4/16"
#define SAME_B "eth0 10.0.1.1/16;eth1 10.0.1.2/16;eth2 10.0.1.3/16;eth3 10.0.1.4/16"

static const struct {
	const char *what, *mine, *theirs;
	const char *routes, *expected;
} rows[] = {
	{ "1 x 1", "eth0 10.0.0.1/24", "eth0 10.0.0.2/24", NULL, "eth0-eth0" },
	{ "2 x 2", A2, B2, NULL, "eth0-eth0 eth1-eth1" },
	{ "4 x 4", A4, B4, NULL, "eth0-eth0 eth1-eth1 eth2-eth2 eth3-eth3" },
	{ "2 x 4, rails of which two lead nowhere", A2, B4, NULL, "eth0-eth0 eth1-eth1" },
	{ "2 x 4, one network", "eth0 10.0.0.1/16;eth1 10.0.0.2/16", SAME_B, NULL,
	  "eth0-eth0 eth1-eth1 eth0-eth2 eth1-eth3" },
	{ "4 x 2, one network", SAME_A, "eth0 10.0.1.1/16;eth1 10.0.1.2/16", NULL,
	  "eth0-eth0 eth1-eth1 eth2-eth0 eth3-eth1" },
	{ "1 x 4, one network", "eth0 10.0.0.1/16", SAME_B, NULL,
	  "eth0-eth0 eth0-eth1 eth0-eth2 eth0-eth3" },
	{ "4 x 1, one network", SAME_A, "eth0 10.0.1.1/16", NULL,
	  "eth0-eth0 eth1-eth0 eth2-eth0 eth3-eth0" },
	{ "4 x 4, one network", SAME_A, SAME_B, NULL, "eth0-eth0 eth1-eth1 eth2-eth2 eth3-eth3" },
	{ "rails that are crossed", A2, "eth0 10.0.1.2/24;eth1 10.0.0.2/24", NULL,
	  "eth0-eth1 eth1-eth0" },
	{ "names before places", "a 10.0.0.1/16;b 10.0.0.2/16", "c 10.0.1.1/16;a 10.0.1.2/16", NULL,
	  "a-a b-c" },
	{ "speeds before names", "a @1000 10.0.0.1/16;b @10000 10.0.0.2/16",
	  "a @10000 10.0.1.1/16;b @1000 10.0.1.2/16", NULL, "a-b b-a" },
	{ "routed, rules for both", "eth0 10.0.0.1/24;eth1 10.0.1.1/24",
	  "eth0 10.1.0.1/24;eth1 10.1.1.1/24", "12", "eth0-eth0 eth1-eth1" },
	{ "routed, one route", "eth0 10.0.0.1/24;eth1 10.0.1.1/24",
	  "eth0 10.1.0.1/24;eth1 10.1.1.1/24", "1", "eth0-eth0 eth0-eth1" },
	{ "routed, no route", A2, "eth0 10.1.0.1/24", NULL, "" },
	{ "a network in common goes before a router", "eth0 10.0.0.1/24;eth1 10.0.1.1/24",
	  "eth0 10.9.0.2/24;eth1 10.0.0.2/24", "12", "eth0-eth1 eth1-eth0" },
	{ "point to point", "eth0 10.0.0.0/31", "eth0 10.0.0.1/31", NULL, "eth0-eth0" },
	{ "hosts of a cloud: each is alone in its network", "eth0 10.0.0.1/32", "eth0 10.0.0.2/32",
	  "1", "eth0-eth0" },
	{ "networks of different size", "eth0 10.0.0.1/8", "eth0 10.0.1.2/24", NULL, "" },
	{ "IPv6 only", "eth0 fd00::1/64;eth1 fd01::1/64", "eth0 fd00::2/64;eth1 fd01::2/64", NULL,
	  "eth0-eth0 eth1-eth1" },
	{ "one NIC by IPv4, one by IPv6", "eth0 10.0.0.1/24 fd00::1/64;eth1 fd01::1/64",
	  "eth0 10.0.0.2/24 fd00::2/64;eth1 fd01::2/64", NULL, "eth0-eth0 eth1-eth1" },
	{ "links alone are tried straight", "eth0 fe80::1/64;eth1 fe80::2/64",
	  "eth0 fe80::3/64;eth1 fe80::4/64", NULL, "eth0-eth0 eth1-eth1" },
	{ "a link alone only where there is nothing else",
	  "eth0 10.0.0.1/24 fe80::1/64;eth1 fe80::2/64",
	  "eth0 10.0.0.2/24 fe80::3/64;eth1 fe80::4/64", NULL, "eth0-eth0" },
	{ "bridges are left out", "eth0 10.0.0.1/24;docker0 172.17.0.1/16",
	  "eth0 10.0.0.2/24;docker0 172.17.0.2/16", NULL, "eth0-eth0" },
	{ "but where there is nothing else", "docker0 172.17.0.1/16", "docker0 172.17.0.2/16", NULL,
	  "docker0-docker0" },
	{ "the same address on both sides is nobody else's", "eth0 10.0.0.1/24;br 192.168.1.1/24",
	  "eth0 10.0.0.2/24;br 192.168.1.1/24", NULL, "eth0-eth0" },
	{ "loopback is no NIC", "lo 127.0.0.1/8", "lo 127.0.0.2/8", NULL, "" },
	{ "1 Gbit/s beside 100", "eth0 @1000 10.0.0.1/24;eth1 @100000 10.0.1.1/24",
	  "eth0 @1000 10.0.0.2/24;eth1 @100000 10.0.1.2/24", NULL, "eth1-eth1" },
	{ "1 Gbit/s beside 10", "eth0 @1000 10.0.0.1/24;eth1 @10000 10.0.1.1/24",
	  "eth0 @1000 10.0.0.2/24;eth1 @10000 10.0.1.2/24", NULL, "eth0-eth0 eth1-eth1" },
	{ "a way for each goes before the best way for one", "eth0 10.0.0.1/24;eth1 10.0.0.2/24",
	  "eth0 10.0.0.3/24;eth1 10.1.0.3/24", "1", "eth0-eth1 eth1-eth0" },
	{ "nothing in common", "eth0 10.0.0.1/24", "eth0 fd00::1/64", NULL, "" },
	{ "nothing there", "", "eth0 fd00::1/64", NULL, "" },
};

static void tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *routes = rows[i].routes ? strdup(rows[i].routes) : NULL;
		const char *got = propose(rows[i].mine, rows[i].theirs, routes, NULL, 16);

		if (strcmp(got, rows[i].expected) != 0)
			fail_msg("%s: %s, not %s", rows[i].what, got, rows[i].expected);
		free(routes);
	}
}

static void the_order_is_a_wish(void **state)
{
	(void)state;
	assert_string_equal(propose(A4, B4, NULL, "eth2", 16),
			    "eth2-eth2 eth0-eth0 eth1-eth1 eth3-eth3");
	assert_string_equal(propose(A4, B4, NULL, "eth2", 1), "eth2-eth2");
	assert_string_equal(propose(A4, B4, NULL, NULL, 3), "eth0-eth0 eth1-eth1 eth2-eth2");
	assert_string_equal(propose("eth0 10.0.0.1/16;eth1 10.0.0.2/16", SAME_B, NULL, "eth1", 1),
			    "eth1-eth1");
}

/* What is there stays, and only what is missing is added. */
static void pairs_are_added(void **state)
{
	const struct tti_tcp_card mine = host(SAME_A), theirs = host(SAME_B);
	const uint8_t order[TTI_TCP_NICS_MOST] = { 0, 1, 2, 3 };
	struct tti_tcp_pair pair[16] = { { 0, 1 } };
	struct tti_tcp_ways ways;

	(void)state;
	tti_tcp_ways_find(&mine, &theirs, -1, by_list, NULL, &ways);
	assert_int_equal(tti_tcp_pairs_add(&mine, &theirs, &ways, order, pair, 1, 16), 4);
	assert_int_equal(pair[0].theirs, 1);
	for (int i = 1; i < 4; i++)
		assert_int_equal(pair[i].mine, i);
	assert_int_equal(pair[1].theirs, 0);
	assert_int_equal(tti_tcp_pairs_add(&mine, &theirs, &ways, order, pair, 4, 16), 4);
	/* One of them does not work: its NICs are tried with others. */
	ways.at[3][3].kind = TTI_TCP_WAY_NONE;
	assert_int_equal(tti_tcp_pairs_add(&mine, &theirs, &ways, order, pair, 3, 16), 5);
	assert_int_equal(pair[3].mine, 3);
	assert_int_not_equal(pair[3].theirs, 3);
	assert_int_equal(pair[4].theirs, 3);
	assert_int_not_equal(pair[4].mine, 3);
}

/* -- Properties -------------------------------------------------------------- */

static uint64_t seed = 88172645463325252u;

static unsigned dice(unsigned sides)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed % sides);
}

static struct tti_tcp_card random_host(int side, unsigned networks)
{
	struct tti_tcp_card card = { .slots = 1 };
	const unsigned n = 1 + dice(TTI_TCP_NICS_MOST);

	for (unsigned i = 0; i < n; i++) {
		char text[64];

		snprintf(text, sizeof(text), "eth%u @%u 10.%u.%d.%u/16", i,
			 1000 * (dice(3) ? 0 : 1 + dice(4)), dice(networks), side, i);
		add_nic(&card, text);
	}
	return card;
}

static void every_nic_that_can_help_does(void **state)
{
	(void)state;
	for (int round = 0; round < 2000; round++) {
		const unsigned networks = 1 + dice(6);
		const struct tti_tcp_card mine = random_host(1, networks);
		const struct tti_tcp_card theirs = random_host(2, networks);
		uint8_t order[TTI_TCP_NICS_MOST];
		int of_mine[TTI_TCP_NICS_MOST] = { 0 }, of_theirs[TTI_TCP_NICS_MOST] = { 0 };
		struct tti_tcp_pair pair[64];
		struct tti_tcp_ways ways;
		size_t n;

		for (uint8_t i = 0; i < TTI_TCP_NICS_MOST; i++)
			order[i] = i;
		tti_tcp_ways_find(&mine, &theirs, -1, by_list, NULL, &ways);
		n = tti_tcp_pairs_add(&mine, &theirs, &ways, order, pair, 0, 64);
		assert_true(n <= mine.nnics + theirs.nnics);
		for (size_t i = 0; i < n; i++) {
			assert_true(ways.at[pair[i].mine][pair[i].theirs].kind);
			of_mine[pair[i].mine]++;
			of_theirs[pair[i].theirs]++;
		}
		for (size_t i = 0; i < mine.nnics; i++)
			for (size_t k = 0; k < theirs.nnics; k++) {
				if (!ways.at[i][k].kind)
					continue;
				assert_true(of_mine[i] && of_theirs[k]);
			}
		if (networks > 1)
			continue;
		/* All reach all: nobody has two more than another. */
		for (size_t i = 0; i < mine.nnics; i++)
			for (size_t k = 0; k < mine.nnics; k++)
				assert_true(abs(of_mine[i] - of_mine[k]) <= 1);
		for (size_t i = 0; i < theirs.nnics; i++)
			for (size_t k = 0; k < theirs.nnics; k++)
				assert_true(abs(of_theirs[i] - of_theirs[k]) <= 1);
		assert_int_equal(n, mine.nnics > theirs.nnics ? mine.nnics : theirs.nnics);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables),
		cmocka_unit_test(the_order_is_a_wish),
		cmocka_unit_test(pairs_are_added),
		cmocka_unit_test(every_nic_that_can_help_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
