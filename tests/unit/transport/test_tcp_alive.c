/* SPDX-License-Identifier: BSD-3-Clause */
/* ALIVE, which an encrypted link sends while it is quiet, next to credits, calls and lanes that are lost. */
#include "unit/transport/tcp_world.h"

#include <sys/socket.h>

static struct tti_tcp_link *inside(const struct world *world, int rank)
{
	return (struct tti_tcp_link *)world->link[rank][1 - rank];
}

/* The time for ALIVE has come on this rank. */
static void say_alive(const struct world *world, int rank)
{
	struct tti_tcp_port *port = tti_tcp_port_of(world->port[rank]);

	port->watch_at = port->alive_at = 0;
	tti_tcp_port_watch(port, tti_now_ns());
}

static void expect_no_failure(const struct world *world)
{
	for (int rank = 0; rank < 2; rank++) {
		if (world->port[rank]->failure)
			fail_msg("rank %d: %s", rank, world->port[rank]->failure_text);
	}
}

static void open_lanes(struct world *world, int lanes)
{
	const int64_t deadline = tti_deadline(20000);

	world_pair(world, 8, 4096, lanes);
	for (int rank = 0; rank < 2; rank++) {
		inside(world, rank)->wanted = true;
		tti_tcp_lanes_want(inside(world, rank));
	}
	while (inside(world, 0)->nconns < lanes || inside(world, 1)->nconns < lanes) {
		world_progress(world);
		assert_true(tti_now_ns() < deadline);
	}
}

/* Lane `index` told the latest credit, then every lane said the same with ALIVE: when that lane is
 * lost, no other one tells it once more, which the peer would refuse. */
static void what_was_told_with_alive_is_not_told_again(void **state)
{
	enum { LANES = 3 };

	(void)state;
	for (int index = 0; index < LANES; index++) {
		const int64_t deadline = tti_deadline(20000);
		struct world world;

		open_lanes(&world, LANES);
		tcp->lanes->only(world.link[0][1], index);
		for (uint64_t i = 0; i < 8; i++) {
			assert_true(put(world.link[0][1], 4096, i));
			take_soon(&world, world.link[1][0], 4096, i);
		}
		assert_true(inside(&world, 1)->conn[index]->told > 0);
		say_alive(&world, 1);
		shutdown(inside(&world, 1)->conn[index]->fd, SHUT_RDWR);
		while (!inside(&world, 0)->lane[index].losses ||
		       !inside(&world, 1)->lane[index].losses) {
			world_progress(&world);
			expect_no_failure(&world);
			assert_true(tti_now_ns() < deadline);
		}
		tcp->lanes->only(world.link[0][1], -1);
		for (uint64_t i = 8; i < 40; i++) {
			while (!put(world.link[0][1], 4096, i)) {
				world_progress(&world);
				expect_no_failure(&world);
				assert_true(tti_now_ns() < deadline);
			}
			take_soon(&world, world.link[1][0], 4096, i);
			expect_no_failure(&world);
		}
		world_end(&world);
	}
}

/* ALIVE until the peer, which reads nothing, has no room for more. */
static size_t fill_with_alive(struct world *world)
{
	const int small = 1;
	size_t stuck;

	world_open(world, 2, 4, 4 << 20, 1);
	world->options.sndbuf = 4096;
	world_start(world);
	world_join(world);
	world_link(world, 0, 1);
	assert_int_equal(setsockopt(inside(world, 1)->conn[0]->fd, SOL_SOCKET, SO_RCVBUF, &small,
				    sizeof(small)),
			 0);
	for (int i = 0; i < 20 && !inside(world, 0)->unsent; i++)
		say_alive(world, 0);
	stuck = inside(world, 0)->unsent;
	assert_true(stuck > 0);
	assert_int_equal(world->port[0]->unsent, 0);
	return stuck;
}

/* A peer that is busy elsewhere holds back no call with others. */
static void no_call_waits_for_alive(void **state)
{
	const int64_t deadline = tti_deadline(20000);
	struct world world;
	size_t stuck;

	(void)state;
	stuck = fill_with_alive(&world);
	for (int i = 0; i < 3; i++)
		say_alive(&world, 0);
	assert_in_range(inside(&world, 0)->unsent, 1, stuck);
	assert_int_equal(world.port[0]->unsent, 0);
	assert_true(put(world.link[0][1], 100, 0));
	assert_int_equal(world.port[0]->unsent, tti_tcp_wire_bytes(inside(&world, 0), 100));
	take_soon(&world, world.link[1][0], 100, 0);
	while (world.port[0]->unsent || inside(&world, 0)->unsent) {
		world_progress(&world);
		assert_true(tti_now_ns() < deadline);
	}
	assert_int_equal(inside(&world, 0)->alive, 0);
	expect_no_failure(&world);
	world_end(&world);
}

/* A connection that takes with it what was left of ALIVE. */
static void alive_is_lost_with_its_connection(void **state)
{
	const int64_t deadline = tti_deadline(20000);
	struct world world;

	(void)state;
	(void)fill_with_alive(&world);
	shutdown(inside(&world, 0)->conn[0]->fd, SHUT_RDWR);
	while (inside(&world, 0)->unsent) {
		tcp->progress(world.port[0]);
		assert_true(tti_now_ns() < deadline);
	}
	assert_int_equal(world.port[0]->unsent, 0);
	assert_int_equal(inside(&world, 0)->alive, 0);
	world_end(&world);
}

/* Leaving does not wait for long for a peer that reads nothing. */
static void shutdown_gives_up_alive(void **state)
{
	struct world world;

	(void)state;
	(void)fill_with_alive(&world);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_told_with_alive_is_not_told_again),
		cmocka_unit_test(no_call_waits_for_alive),
		cmocka_unit_test(alive_is_lost_with_its_connection),
		cmocka_unit_test(shutdown_gives_up_alive),
	};

	return cmocka_run_group_tests(tests, world_encrypt, NULL);
}
