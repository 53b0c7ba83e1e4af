/* SPDX-License-Identifier: BSD-3-Clause */
/* NICs that were assigned to a link: they carry their shares. Without the right to make namespaces
 * nothing is tested. */
#include "unit/transport/tcp_rails.h"

/* One after the other, so that no lane is ever full. */
static void trickle(struct world *world, uint64_t messages)
{
	const int64_t deadline = tti_deadline(20000);

	for (uint64_t i = 0; i < messages; i++) {
		for (int rank = 0; rank < 2; rank++)
			assert_true(put(world->link[rank][1 - rank], 20000, i));
		for (int rank = 0; rank < 2; rank++)
			while (!take(world->link[rank][1 - rank], 20000, i)) {
				drive(world);
				assert_true(tti_now_ns() < deadline);
			}
	}
}

/* The NICs that were assigned carry all, in their shares; others only once these are cut. */
static void assigned_nics_carry_their_shares(void **state)
{
	uint64_t before[3];
	struct world world;

	(void)state;
	for (int n = 0; n < 3; n++) {
		char addr[2][32];

		for (int i = 0; i < 2; i++)
			snprintf(addr[i], sizeof(addr[i]), "10.1.%d.%d/24", n, i + 1);
		cable(n, addr[0], addr[1]);
	}
	want("eth1", 1);
	want("eth2", 3);
	begin(&world, 0, 1);
	check_lane(&world, 0, "eth2", "eth2");
	open_all(&world, 3);
	check_lane(&world, 1, "eth1", "eth1");
	for (int lane = 0; lane < 3; lane++)
		before[lane] = info(&world, 1, lane).sent;
	trickle(&world, 400);
	assert_in_range(info(&world, 1, 0).sent - before[0], 5900000, 6100000);
	assert_in_range(info(&world, 1, 1).sent - before[1], 1900000, 2100000);
	assert_int_equal(info(&world, 1, 2).sent, 0);
	assert_int_equal(info(&world, 0, 2).sent, 0);
	/* Another assignment is in place of this one, whenever it comes. */
	want("eth0", 1);
	want("eth2", 0);
	assign(&world);
	trickle(&world, 20);
	assert_int_equal(info(&world, 1, 2).sent, 400000);
	on(0, "ip link set eth0 down");
	transfer(&world, 200);
	assert_false(info(&world, 1, 2).up);
	on(0, "ip link set eth0 up");
	await(&world, 3);
	before[2] = info(&world, 1, 2).sent;
	trickle(&world, 20);
	assert_int_equal(info(&world, 1, 2).sent - before[2], 400000);
	assign(&world);
	assert_null(end(&world, 1)->assignment);
	transfer(&world, 50);
	world_end(&world);
}

/* What cannot be: the others are used, as if it had not been asked for. */
static void assigned_nics_that_are_not_there(void **state)
{
	struct world world;

	(void)state;
	cable(0, "10.1.0.1/24", "10.1.0.2/24");
	cable(1, "10.1.1.1/24", "10.1.1.2/24");
	want("eth7", 1);
	begin(&world, 0, 1);
	assert_null(end(&world, 0)->assignment);
	check_lane(&world, 0, "eth0", "eth0");
	open_all(&world, 2);
	transfer(&world, 300);
	/* Nor can NICs of different networks talk. */
	want("eth1", 1);
	want("eth0", 1);
	strcpy(assigned[1].remote_nic, "eth1");
	assign(&world);
	assert_null(end(&world, 0)->assignment);
	assert_null(end(&world, 1)->assignment);
	transfer(&world, 300);
	want("eth1", 1);
	assign(&world);
	assert_non_null(end(&world, 0)->assignment);
	assert_non_null(end(&world, 1)->assignment);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(assigned_nics_carry_their_shares),
		test(assigned_nics_that_are_not_there),
	};

	make_hosts();
	remove_hosts();
	if (!net.possible) {
		puts("no right to make network namespaces: skipped");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
