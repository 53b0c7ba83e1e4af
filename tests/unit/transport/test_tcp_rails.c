/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes over several NICs: two ranks in one process, each in a network namespace of its own,
 * with cables between them. Without the right to make namespaces nothing is tested. */
#include "unit/transport/tcp_rails.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/fault.h"

static uint64_t bytes_out(int host, int nic)
{
	char text[64] = "";
	FILE *file;

	on(host, "ip -s -o link show eth%d | sed 's/.*TX:[^0-9]*//;s/ .*//' >/tmp/tutti-%d", nic,
	   (int)getpid());
	snprintf(text, sizeof(text), "/tmp/tutti-%d", (int)getpid());
	file = fopen(text, "re");
	assert_non_null(file);
	unlink(text);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	return strtoull(text, NULL, 10);
}

/* All that goes on a lane leaves by its NICs, in both directions. */
static void check_traffic(struct world *world, int lanes)
{
	for (int lane = 0; lane < lanes; lane++) {
		uint64_t before[2];

		for (int rank = 0; rank < 2; rank++) {
			tcp->lanes->only(world->link[rank][1 - rank], lane);
			before[rank] = bytes_out(rank, lane);
		}
		transfer(world, 100);
		for (int rank = 0; rank < 2; rank++) {
			tcp->lanes->only(world->link[rank][1 - rank], -1);
			assert_in_range(bytes_out(rank, lane) - before[rank], 2000000, 2400000);
		}
	}
}

/* -- Finding them ------------------------------------------------------------ */

static void two_networks(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	begin(&world, 0, 1);
	check_lane(&world, 0, "eth0", "eth0");
	open_all(&world, 2);
	check_lane(&world, 0, "eth0", "eth0");
	check_lane(&world, 1, "eth1", "eth1");
	check_traffic(&world, 2);
	transfer(&world, 300);
	world_end(&world);
}

/* Much is moved: then they are opened without being asked for. */
static void traffic_opens_lanes(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	begin(&world, 0, 1);
	transfer(&world, 3);
	idle(&world, 50);
	assert_int_equal(end(&world, 1)->nconns, 1);
	transfer(&world, 50);
	await(&world, 2);
	world_end(&world);
}

/* The kernel would send all by the first NIC. */
static void one_network(void **state)
{
	struct world world;

	(void)state;
	for (int n = 0; n < 3; n++) {
		char addr[2][32];

		for (int i = 0; i < 2; i++)
			snprintf(addr[i], sizeof(addr[i]), "10.1.0.%d/24", 2 * n + i + 1);
		cable(n, addr[0], addr[1]);
	}
	begin(&world, 0, 1);
	open_all(&world, 3);
	for (int n = 0; n < 3; n++) {
		char name[8];

		snprintf(name, sizeof(name), "eth%d", n);
		check_lane(&world, n, name, name);
	}
	check_traffic(&world, 3);
	world_end(&world);
}

/* The hosts number their only NIC differently. */
static void only_addresses_of_the_link(void **state)
{
	struct world world;

	(void)state;
	on(1, "ip link add other0 type veth peer name other1");
	cable(0, "fe80::1/64", "fe80::2/64");
	begin(&world, 0, 1);
	check_lane(&world, 0, "eth0", "eth0");
	transfer(&world, 10);
	world_end(&world);
}

static void only_ipv6(void **state)
{
	struct world world;

	(void)state;
	cable(0, "fd01::1/64", "fd01::2/64");
	cable(1, "fd02::1/64", "fd02::2/64");
	begin(&world, 0, 1);
	open_all(&world, 2);
	check_lane(&world, 1, "eth1", "eth1");
	check_traffic(&world, 2);
	world_end(&world);
}

/* Neighbours, and a network beyond a router that both have a route to, by source. */
static void rules_by_source(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/32", "10.2.1.2/32");
	for (int i = 0; i < 2; i++) {
		on(i, "ip route add %s dev eth1 table 7", i ? "10.1.1.1" : "10.2.1.2");
		on(i, "ip route add default via %s dev eth1 onlink table 7",
		   i ? "10.1.1.1" : "10.2.1.2");
		on(i, "ip rule add from %s table 7", i ? "10.2.1.2" : "10.1.1.1");
	}
	begin(&world, 0, 1);
	open_all(&world, 2);
	check_lane(&world, 1, "eth1", "eth1");
	check_traffic(&world, 2);
	world_end(&world);
}

static void the_preferred_nic_is_first(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	cable(2, "10.1.2.1/24", "10.1.2.2/24");
	begin_with(&world, 0, 1, "eth1");
	check_lane(&world, 0, "eth1", "eth1");
	open_all(&world, 3);
	check_lane(&world, 1, "eth0", "eth0");
	check_lane(&world, 2, "eth2", "eth2");
	world_end(&world);
	/* One that leads nowhere is as good as none. */
	on(0, "ip addr flush dev eth2");
	begin_with(&world, 0, 1, "eth2");
	check_lane(&world, 0, "eth0", "eth0");
	world_end(&world);
}

static void as_many_as_are_allowed(void **state)
{
	static const struct {
		int lanes, sockets, expected;
	} row[] = {
		{ 1, 1, 1 }, { 1, 4, 1 }, { 0, 2, 4 }, { 3, 2, 2 }, { 0, 8, 16 }, { 0, 16, 16 }
	};
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin(&world, row[i].lanes, row[i].sockets);
		open_all(&world, row[i].expected);
		transfer(&world, 50);
		assert_int_equal(end(&world, 1)->nconns, row[i].expected);
		world_end(&world);
	}
}

/* Until rank 1 says so of that lane, or anything. */
static void await_trouble(struct world *world, int lane, const char *text)
{
	const int64_t deadline = tti_deadline(60000);

	while (tcp->lanes->count(world->link[1][0]) <= lane || !info(world, 1, lane).trouble[0] ||
	       !strstr(info(world, 1, lane).trouble, text)) {
		idle(world, 10);
		assert_true(tti_now_ns() < deadline);
	}
}

/* -- Trouble ----------------------------------------------------------------- */

static void a_rail_that_is_cut_comes_back(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	begin(&world, 0, 1);
	open_all(&world, 2);
	for (int rail = 1; rail >= 0; rail--) {
		on(rail, "ip link set eth%d down", rail);
		transfer(&world, 200);
		assert_int_equal(end(&world, 1)->nconns, 1);
		while (!strstr(info(&world, 1, rail).trouble, "no carrier"))
			idle(&world, 10);
		on(rail, "ip link set eth%d up", rail);
		await(&world, 2);
		transfer(&world, 50);
		assert_string_equal(info(&world, 1, rail).trouble, "");
		assert_true(info(&world, 1, rail).losses > 0);
	}
	check_traffic(&world, 2);
	world_end(&world);
}

/* It has carried too little to have others, but then it needs one. */
static void the_only_lane_is_cut(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	begin(&world, 0, 1);
	check_lane(&world, 0, "eth0", "eth0");
	transfer(&world, 3);
	assert_int_equal(end(&world, 1)->nconns, 1);
	on(0, "ip link set eth0 down");
	transfer(&world, 3);
	assert_true(info(&world, 1, 1).up);
	assert_false(info(&world, 1, 0).up);
	world_end(&world);
}

static void a_rail_that_is_down_at_start(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	for (int host = 0; host < 2; host++)
		on(host, "ip link set eth0 down");
	begin(&world, 0, 1);
	open_all(&world, 1);
	transfer(&world, 20);
	await_trouble(&world, 1, "no carrier");
	assert_int_equal(tcp->lanes->count(world.link[1][0]), 2);
	assert_false(info(&world, 1, 1).up);
	for (int host = 0; host < 2; host++)
		on(host, "ip link set eth0 up");
	await(&world, 2);
	check_lane(&world, 0, "eth1", "eth1");
	check_lane(&world, 1, "eth0", "eth0");
	transfer(&world, 20);
	world_end(&world);
}

/* The other side hears nothing: no pair with that NIC works, which is said. */
static void a_rail_that_leads_nowhere(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	begin(&world, 0, 1);
	on(0, "ip addr flush dev eth1");
	open_all(&world, 1);
	await_trouble(&world, 1, "");
	assert_false(info(&world, 1, 1).up);
	transfer(&world, 50);
	on(0, "ip addr add 10.1.1.1/24 dev eth1");
	await(&world, 2);
	check_lane(&world, 1, "eth1", "eth1");
	world_end(&world);
}

/* Packets for eth1 are heard by eth0: its own port is closed there. */
static void a_nic_that_another_one_answers_for(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	begin(&world, 0, 1);
	for (size_t i = 0; i < TTI_TCP_NICS_MOST; i++) {
		struct tti_tcp_port *port = tti_tcp_port_of(world.port[0]);

		if (port->nic_fd[i] < 0)
			continue;
		close(port->nic_fd[i]);
		port->nic_fd[i] = -1;
	}
	open_all(&world, 2);
	assert_true(info(&world, 1, 1).up);
	assert_non_null(strstr(info(&world, 1, 1).trouble, "comes in by another one"));
	transfer(&world, 50);
	world_end(&world);
}

/* As with a kernel before 5.7, for who is not root. */
static void forbid_devices(void)
{
	char list[512] = "tcp.device:1";
	size_t len = strlen(list);

	for (int i = 2; i <= 16; i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, ",tcp.device:%d", i);
	tti_fault_set(list);
}

static void not_bound_to_a_device(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	cable(2, "10.1.0.3/24", "10.1.0.4/24");
	forbid_devices();
	begin(&world, 0, 1);
	/* eth1 has a network of its own, eth2 that of eth0. */
	open_all(&world, 2);
	check_lane(&world, 1, "eth1", "eth1");
	await_trouble(&world, 2, "by another NIC than eth2");
	tti_fault_set(NULL);
	transfer(&world, 50);
	world_end(&world);
}

/* A pair that never works makes room for others: the only cable of eth1 is gone, but its
 * network is reached by the other one's. */
static void its_nics_are_paired_anew(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	on(0,
	   "ip link add eth1 type veth peer name blind && ip link set blind addrgenmode none up");
	on(0, "ip addr add 10.1.0.3/24 dev eth1 && ip link set eth1 up");
	on(1,
	   "ip link add eth1 type veth peer name blind && ip link set blind addrgenmode none up");
	on(1, "ip addr add 10.1.0.4/24 dev eth1 && ip link set eth1 up");
	begin(&world, 0, 1);
	open_all(&world, 1);
	for (int i = 0; i < 100 && tcp->lanes->count(world.link[1][0]) < 4; i++)
		idle(&world, 100);
	/* eth1 with eth1, then eth1 with eth0 and eth0 with eth1. */
	assert_int_equal(tcp->lanes->count(world.link[1][0]), 4);
	transfer(&world, 50);
	world_end(&world);
}

/* -- Ends -------------------------------------------------------------------- */

static void closes_while_lanes_open(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	for (int turns = 0; turns < 40; turns++) {
		begin(&world, 0, 2);
		for (int rank = 0; rank < 2; rank++)
			tcp->lanes->open_all(world.link[rank][1 - rank]);
		for (int i = 0; i < turns; i++)
			drive(&world);
		world_end(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(two_networks),
		test(traffic_opens_lanes),
		test(one_network),
		test(only_addresses_of_the_link),
		test(only_ipv6),
		test(rules_by_source),
		test(the_preferred_nic_is_first),
		test(as_many_as_are_allowed),
		test(a_rail_that_is_cut_comes_back),
		test(the_only_lane_is_cut),
		test(a_rail_that_is_down_at_start),
		test(a_rail_that_leads_nowhere),
		test(a_nic_that_another_one_answers_for),
		test(not_bound_to_a_device),
		test(its_nics_are_paired_anew),
		test(closes_while_lanes_open),
	};

	make_hosts();
	remove_hosts();
	if (!net.possible) {
		puts("no right to make network namespaces: skipped");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
