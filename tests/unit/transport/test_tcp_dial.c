/* SPDX-License-Identifier: BSD-3-Clause */
/* The rank that connects: which addresses it tries, how long, and what it makes of the answers. */
#include "unit/transport/tcp_loopback.h"

#include <unistd.h>

/* Before the address that works there are one where nobody listens and one that
 * takes the connection and is silent. */
static void finds_the_address_that_works(void **state)
{
	struct world world;
	struct tti_tcp_card card;
	struct tti_tcp_dial *dial;
	uint16_t silent, nobody;
	const int fd = strange_listener(&silent);
	const int64_t begun = tti_now_ns();

	(void)state;
	close(strange_listener(&nobody));
	world_open(&world, 2, 4, 4096, 2);
	/* Which nothing below waits for. */
	world.config.timeout_ms = world.options.handshake_ms = 100000;
	world_start(&world);
	move_to_loopback(&world, 4);
	card = read_card(&world, 0);
	card.naddrs = 4;
	/* No such network: 240.0.0.0/4 is reserved. */
	card.addr[0].ip[0] = 240;
	for (int i = 1; i < 4; i++)
		card.addr[i] = loopback(4, card.port);
	tti_tcp_card_put(&card, &world.card[0]);
	world_join(&world);
	assert_int_equal(tcp->connect(world.port[1], 0, &world.link[1][0]), TUTTI_AGAIN);
	/* A card has one port: the others go into what was read from it. */
	dial = inside(&world, 1)->link_of[0]->dial;
	assert_true(dial->next <= 2);
	dial->addr[1].port = nobody;
	dial->addr[2].port = silent;
	world_link(&world, 0, 1);
	talks(&world, 0, 1);
	world_end(&world);
	close(fd);
	assert_true(tti_now_ns() - begun < 50000 * TTI_NS_PER_MS);
}

static void refusal_by_all_is_an_early_answer(void **state)
{
	struct world world;
	struct tti_tcp_card card;
	const int64_t begun = tti_now_ns();
	uint16_t nobody;

	(void)state;
	close(strange_listener(&nobody));
	world_open(&world, 2, 4, 4096, 1);
	/* Which nothing below waits for. */
	world.config.timeout_ms = world.options.handshake_ms = 100000;
	world_start(&world);
	move_to_loopback(&world, 4);
	card = read_card(&world, 0);
	card.port = nobody;
	tti_tcp_card_put(&card, &world.card[0]);
	world_join(&world);
	while (tcp->connect(world.port[1], 0, &world.link[1][0]) == TUTTI_AGAIN)
		world_progress(&world);
	assert_int_equal(world.port[1]->failure, TUTTI_EPEER);
	assert_error_has("rank 0");
	assert_error_has("127.0.0.1:");
	assert_error_has("Connection refused");
	assert_in_range(tti_now_ns() - begun, 1000 * TTI_NS_PER_MS, 50000 * TTI_NS_PER_MS);
	world_end(&world);
}

/* Where not even a machine answers. */
static void waiting_for_a_machine_has_an_end(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, 2, 4, 4096, 1);
	world.config.timeout_ms = 300;
	world_start(&world);
	move_to_loopback(&world, 4);
	world_join(&world);
	assert_int_equal(tcp->connect(world.port[1], 0, &world.link[1][0]), TUTTI_AGAIN);
	/* Nobody can be connected to by an address of a group. */
	inside(&world, 1)->link_of[0]->dial->addr[0].ip[0] = 224;
	tti_tcp_conn_drop(inside(&world, 1), inside(&world, 1)->rising.at[0]);
	while (tcp->connect(world.port[1], 0, &world.link[1][0]) == TUTTI_AGAIN)
		tcp->sleep->wait(world.port[1], 1000000);
	assert_int_equal(world.port[1]->failure, TUTTI_ETIMEOUT);
	assert_int_equal(world.port[1]->failed_peer, 0);
	assert_error_has("rank 1 cannot connect to rank 0 (224.0.0.1:");
	assert_error_has("Network is unreachable");
	world_end(&world);
}

/* A rank that was stopped finds its time over when it goes on, and has not tried meanwhile. */
static void who_was_stopped_tries_again(void **state)
{
	struct world world;
	struct tti_tcp_dial *dial;
	int64_t deadline;

	(void)state;
	world_open(&world, 2, 4, 4096, 1);
	world_start(&world);
	move_to_loopback(&world, 4);
	world_join(&world);
	assert_int_equal(tcp->connect(world.port[1], 0, &world.link[1][0]), TUTTI_AGAIN);
	dial = inside(&world, 1)->link_of[0]->dial;
	tti_tcp_conn_drop(inside(&world, 1), inside(&world, 1)->rising.at[0]);
	deadline = tti_now_ns() - 1;
	dial->deadline = deadline;
	dial->seen_at = deadline - 60000 * TTI_NS_PER_MS;
	tcp->progress(world.port[1]);
	assert_int_equal(world.port[1]->failure, TUTTI_OK);
	assert_true(dial->deadline >= deadline + 60000 * TTI_NS_PER_MS);
	world_link(&world, 0, 1);
	talks(&world, 0, 1);
	world_end(&world);
}

/* A route may be missing for a while. The rest of the peer's addresses may refuse meanwhile: they may
 * be those of other machines, too. */
static void a_missing_route_is_waited_for(void **state)
{
	(void)state;
	for (int others = 0; others < 2; others++) {
		const int64_t deadline = tti_deadline(60000);
		struct world world;
		struct tti_tcp_dial *dial;
		uint16_t nobody;

		close(strange_listener(&nobody));
		world_open(&world, 2, 4, 4096, 1);
		world_start(&world);
		move_to_loopback(&world, 4);
		world_join(&world);
		assert_int_equal(tcp->connect(world.port[1], 0, &world.link[1][0]), TUTTI_AGAIN);
		tti_tcp_conn_drop(inside(&world, 1), inside(&world, 1)->rising.at[0]);
		dial = inside(&world, 1)->link_of[0]->dial;
		/* Nobody can be connected to by an address of a group. */
		dial->addr[0].ip[0] = 224;
		if (others)
			dial->addr[dial->naddrs++] = loopback(4, nobody);
		while (dial->rounds < 20) {
			dial->next_at = 0;
			tcp->progress(world.port[1]);
			assert_int_equal(world.port[1]->failure, TUTTI_OK);
			assert_true(tti_now_ns() < deadline);
		}
		assert_string_equal(dial->why[0], "Network is unreachable");
		assert_string_equal(dial->why[1], others ? "Connection refused" : "");
		dial->addr[0].ip[0] = 127;
		world_link(&world, 0, 1);
		talks(&world, 0, 1);
		world_end(&world);
	}
}

/* Either side may come later than a machine may take to answer. Nothing is dialled but once: what
 * was given up would wait in the queue of the late one's socket. */
static void a_late_rank_is_waited_for(void **state)
{
	(void)state;
	for (int early = 0; early < 2; early++) {
		const int64_t until = tti_deadline(600);
		struct world world;

		world_open(&world, 2, 4, 4096, 1);
		world.config.timeout_ms = 100;
		world_start(&world);
		move_to_loopback(&world, 4);
		world_join(&world);
		for (int i = 0; i < 50 || tti_now_ns() < until; i++) {
			assert_int_equal(tcp->connect(world.port[early], 1 - early,
						      &world.link[early][1 - early]),
					 TUTTI_AGAIN);
			tcp->sleep->wait(world.port[early], 1000000);
		}
		assert_int_equal(world.port[early]->failure, TUTTI_OK);
		if (early == 1) {
			assert_int_equal(inside(&world, 1)->rising.n, 1);
			assert_true(inside(&world, 1)->rising.at[0]->deadline == TTI_NEVER);
			assert_int_equal(inside(&world, 1)->link_of[0]->dial->rounds, 0);
		}
		world_link(&world, 0, 1);
		talks(&world, 0, 1);
		assert_int_equal(inside(&world, 0)->dropped, 0);
		world_end(&world);
	}
}

/* Somebody else takes the connection and is silent, and the peer is reached by an address that
 * failed before. */
static void beside_who_is_silent_others_are_tried_again(void **state)
{
	const int64_t deadline = tti_deadline(60000);
	struct world world;
	struct tti_tcp_card card;
	struct tti_tcp_dial *dial;
	uint16_t silent, nobody, port;
	const int fd = strange_listener(&silent);

	(void)state;
	close(strange_listener(&nobody));
	world_open(&world, 2, 4, 4096, 1);
	world_start(&world);
	move_to_loopback(&world, 4);
	card = read_card(&world, 0);
	port = card.port;
	card.naddrs = 2;
	card.addr[1] = loopback(4, port);
	card.port = silent;
	tti_tcp_card_put(&card, &world.card[0]);
	world_join(&world);
	assert_int_equal(tcp->connect(world.port[1], 0, &world.link[1][0]), TUTTI_AGAIN);
	dial = inside(&world, 1)->link_of[0]->dial;
	dial->addr[1].port = nobody;
	while (strcmp(dial->why[1], "Connection refused") != 0) {
		tcp->progress(world.port[1]);
		assert_true(tti_now_ns() < deadline);
	}
	assert_int_equal(inside(&world, 1)->rising.n, 1);
	dial->addr[1].port = port;
	dial->again_at = 0;
	world_link(&world, 0, 1);
	talks(&world, 0, 1);
	world_end(&world);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_address_that_works),
		cmocka_unit_test(refusal_by_all_is_an_early_answer),
		cmocka_unit_test(waiting_for_a_machine_has_an_end),
		cmocka_unit_test(who_was_stopped_tries_again),
		cmocka_unit_test(a_missing_route_is_waited_for),
		cmocka_unit_test(a_late_rank_is_waited_for),
		cmocka_unit_test(beside_who_is_silent_others_are_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
