/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP links of several lanes that come and go: everything arrives once, in order. The
 * lanes are joined by hand. */
#include "unit/transport/tcp_world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/sanitizer.h"

#define SLOT 40000

static struct tti_tcp_link *inside(struct world *world, int rank)
{
	return (struct tti_tcp_link *)world->link[rank][1 - rank];
}

/* -- Lanes by hand --------------------------------------------------------- */

/* A connection over 127.0.0.(index + 1). */
static void make_pair(int index, int fd[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(at);
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)index);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd[1], (struct sockaddr *)&at, sizeof(at)), 0);
	fd[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd[0] >= 0);
	close(listener);
}

static void join_lane(struct world *world, int index)
{
	static const uint8_t key[TTI_SEAL_KEY] = { 1 };
	int fd[2];

	make_pair(index, fd);
	for (int rank = 0; rank < 2; rank++) {
		struct tti_tcp_port *port = tti_tcp_port_of(world->port[rank]);
		struct tti_tcp_conn *conn;

		assert_int_equal(tti_tcp_conn_tune(port, fd[rank]), TUTTI_OK);
		fcntl(fd[rank], F_SETFL, O_NONBLOCK);
		assert_int_equal(tti_tcp_conn_create(port, fd[rank], &conn), TUTTI_OK);
		tti_seal_init(&conn->in, TTI_SEAL_XCHACHA, key);
		tti_seal_init(&conn->out_seal, TTI_SEAL_XCHACHA, key);
		conn->state = TTI_TCP_PROVEN;
		conn->connector = rank == 1;
		conn->link = inside(world, rank);
		conn->pass.index = (uint8_t)index;
		assert_int_equal(tti_tcp_lane_joins(conn->link, conn), TUTTI_OK);
	}
}

enum cut { RESET, FINISH, HALF, MUTE, NCUTS };

/* The machine of this end hears nothing on that lane any more. */
static void deafen(int fd)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { .len = 1, .filter = &none };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
			 0);
}

static void cut_lane(struct world *world, int rank, int index, enum cut how)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct tti_tcp_conn *conn = inside(world, rank)->conn[index];

	if (!conn)
		return;
	switch (how) {
	case RESET:
		assert_int_equal(connect(conn->fd, &nobody, sizeof(nobody)), 0);
		break;
	case FINISH:
		shutdown(conn->fd, SHUT_RDWR);
		break;
	case HALF:
		shutdown(conn->fd, SHUT_WR);
		break;
	case MUTE:
		deafen(conn->fd);
		conn = inside(world, 1 - rank)->conn[index];
		if (conn)
			deafen(conn->fd);
		break;
	case NCUTS:
		break;
	}
}

static void lanes_open(struct world *world, int slots, size_t slot_bytes, int lanes, int sndbuf)
{
	world_open(world, 2, slots, slot_bytes, 1);
	world->options.sndbuf = sndbuf;
	world_start(world);
	world_join(world);
	world_link(world, 0, 1);
	for (int rank = 0; rank < 2; rank++)
		inside(world, rank)->wanted = true;
	for (int i = 1; i < lanes; i++)
		join_lane(world, i);
	for (int rank = 0; rank < 2; rank++)
		assert_int_equal(inside(world, rank)->nconns, lanes);
}

/* -- Traffic --------------------------------------------------------------- */

struct traffic {
	struct world *world;
	uint64_t seed, state;
	uint64_t messages, put[2], taken[2];
};

static uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15;
	uint64_t z = *state;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static uint64_t roll(struct traffic *traffic, uint64_t n)
{
	return next_random(&traffic->state) % n;
}

/* Small ones, large ones, and all around the places where something changes. */
static size_t size_of(const struct traffic *traffic, int from, uint64_t i)
{
	static const size_t edge[] = { 0, 1, 255, 256, 257, 4064, 4065, 4096, 4097, SLOT };
	uint64_t state = traffic->seed * 1000003 + i * 2 + (uint64_t)from;
	const uint64_t value = next_random(&state);

	if (value % 3 == 0)
		return edge[value / 3 % (sizeof(edge) / sizeof(edge[0]))];
	return value / 3 % (value % 3 == 1 ? 300 : SLOT);
}

static bool is_over(const struct traffic *traffic)
{
	return traffic->taken[0] >= traffic->messages && traffic->taken[1] >= traffic->messages;
}

static void flow(struct traffic *traffic)
{
	struct world *world = traffic->world;

	for (int me = 0; me < 2; me++) {
		struct tti_link *link = world->link[me][1 - me];
		uint64_t *out = &traffic->put[me], *in = &traffic->taken[me];
		uint64_t some = roll(traffic, 6);

		while (some-- && *out < traffic->messages &&
		       put(link, size_of(traffic, me, *out), *out))
			++*out;
		some = roll(traffic, 6);
		while (some-- && *in < traffic->messages &&
		       take(link, size_of(traffic, 1 - me, *in), *in))
			++*in;
		if (world->port[me]->failure)
			fail_msg("seed %llu: %s", (unsigned long long)traffic->seed,
				 world->port[me]->failure_text);
	}
	world_progress(world);
}

static void flow_until_over(struct traffic *traffic)
{
	const int64_t deadline = tti_deadline(200000);

	while (!is_over(traffic)) {
		flow(traffic);
		if (tti_now_ns() > deadline)
			fail_msg("seed %llu: %llu and %llu of %llu messages came",
				 (unsigned long long)traffic->seed,
				 (unsigned long long)traffic->taken[0],
				 (unsigned long long)traffic->taken[1],
				 (unsigned long long)traffic->messages);
	}
}

static void all_is_sent(struct world *world)
{
	const int64_t deadline = tti_deadline(60000);

	while (world->port[0]->unsent || world->port[1]->unsent) {
		world_progress(world);
		assert_true(tti_now_ns() < deadline);
	}
}

/* -- Tests ----------------------------------------------------------------- */

static void lanes_carry_all_sizes(void **state)
{
	static const int slots[] = { 1, 2, 3, 8, 64 };

	(void)state;
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		for (int lanes = 2; lanes <= 16; lanes *= 2) {
			struct world world;
			struct traffic traffic = { &world, .seed = i, .messages = 200 };

			lanes_open(&world, slots[i], SLOT, lanes, i % 2 ? 1 : 0);
			flow_until_over(&traffic);
			all_is_sent(&world);
			world_end(&world);
		}
	}
}

/* Each lane carries its part. */
static void every_lane_is_used(void **state)
{
	struct world world;
	struct traffic traffic = { &world, .seed = 1, .messages = 2000 };
	struct tti_lane_info info;

	(void)state;
	lanes_open(&world, 32, SLOT, 4, 4096);
	flow_until_over(&traffic);
	for (int rank = 0; rank < 2; rank++) {
		uint64_t sum = 0, expected = 0;

		for (uint64_t i = 0; i < traffic.messages; i++)
			expected += size_of(&traffic, rank, i);
		assert_int_equal(tcp->lanes->count(world.link[rank][1 - rank]), 4);
		for (int i = 0; i < 4; i++) {
			tcp->lanes->get(world.link[rank][1 - rank], i, &info);
			assert_true(info.up);
			assert_true(info.sent > 0);
			assert_int_equal(info.losses, 0);
			sum += info.sent;
		}
		assert_int_equal(sum, expected);
	}
	tcp->lanes->get(world.link[0][1], 2, &info);
	assert_non_null(strstr(info.local_addr, "127.0.0.3"));
	world_end(&world);
}

/* A lane that was taken for slow when it got something has none of it left once all of that
 * is acknowledged. */
static void what_is_acknowledged_is_through(void **state)
{
	struct world world;
	struct tti_tcp_link *link;
	struct tti_tcp_pace *pace;

	(void)state;
	lanes_open(&world, 8, SLOT, 2, 0);
	link = inside(&world, 0);
	pace = &link->conn[1]->pace;
	link->lane[1].rate = 1e-5;
	tti_tcp_sched_handed(link->conn[1], 10 << 20);
	assert_true(pace->through_at > tti_deadline(5000));
	link->lane[1].rate = 1;
	assert_non_null(link->base.ops->reserve(&link->base, SLOT, 0));
	link->base.ops->commit(&link->base, SLOT, 0);
	assert_true(pace->through_at < tti_deadline(1000));
	all_is_sent(&world);
	world_end(&world);
}

/* Looks at lane 1, as when there is more to send, until a measurement has ended; some of
 * what it was given is acknowledged after each begins. */
static void measure_lane(struct tti_tcp_link *link)
{
	struct tti_tcp_pace *pace = &link->conn[1]->pace;
	const int64_t deadline = tti_deadline(20000);
	int64_t begun = 0;
	uint64_t seq;
	int lane;

	while (!pace->warm && tti_now_ns() < deadline) {
		/* What a busy machine takes away from this process is not the subject. */
		if (pace->since)
			pace->looked_at = tti_now_ns();
		(void)tti_tcp_sched_next(link, &lane, &seq);
		if (pace->since != begun)
			tti_tcp_sched_handed(link->conn[1], 100000);
		begun = pace->since;
	}
	assert_true(pace->warm);
}

/* A lane that was given little, the last of which is acknowledged late. */
static void what_it_was_given_is_not_what_it_can(void **state)
{
	static const double known[] = { 0, 0.1 };
	struct world world;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct tti_tcp_link *link;
		struct tti_tcp_lane *lane;

		lanes_open(&world, 1, SLOT, 2, 0);
		link = inside(&world, 0);
		lane = &link->lane[1];
		*lane = (struct tti_tcp_lane){ .rate = known[i],
					       .bytes = 4e6 * known[i],
					       .passed = 4e6 };
		tcp->lanes->only(&link->base, 1);
		deafen(inside(&world, 1)->conn[1]->fd);
		assert_non_null(link->base.ops->reserve(&link->base, SLOT, 0));
		link->base.ops->commit(&link->base, SLOT, 0);
		measure_lane(link);
		assert_true(lane->rate == known[i]);
		cut_lane(&world, 0, 1, RESET);
		world_end(&world);
	}
}

static void one_lane_may_be_picked(void **state)
{
	struct world world;
	struct traffic traffic = { &world, .seed = 2, .messages = 200 };
	struct tti_lane_info info;

	(void)state;
	lanes_open(&world, 8, SLOT, 3, 0);
	for (int rank = 0; rank < 2; rank++)
		tcp->lanes->only(world.link[rank][1 - rank], 2);
	flow_until_over(&traffic);
	for (int i = 0; i < 3; i++) {
		tcp->lanes->get(world.link[0][1], i, &info);
		assert_int_equal(info.sent > 0, i == 2);
	}
	/* One that is lost is not insisted on. */
	cut_lane(&world, 0, 2, RESET);
	traffic.messages *= 2;
	flow_until_over(&traffic);
	tcp->lanes->get(world.link[0][1], 2, &info);
	assert_false(info.up);
	assert_int_equal(info.losses, 1);
	assert_true(info.trouble[0] != 0);
	world_end(&world);
}

/* The other lane may have carried all before both have heard of it. */
static void both_lost_once(struct world *world, int index)
{
	const int64_t deadline = tti_deadline(20000);

	for (int rank = 0; rank < 2; rank++) {
		while (!inside(world, rank)->lane[index].losses && tti_now_ns() < deadline)
			world_progress(world);
		assert_int_equal(inside(world, rank)->lane[index].losses, 1);
	}
}

/* One lane of two is cut when so many messages have come: before, within and after a
 * message, on either side, in every way. */
static void a_lane_is_lost_at_any_time(void **state)
{
	(void)state;
	for (int how = RESET; how < MUTE; how++) {
		for (int at = 0; at < 48; at += (SANITIZED ? 7 : 1) * (1 + how)) {
			struct world world;
			struct traffic traffic = { &world, .seed = (uint64_t)(how * 100 + at),
						   .messages = 60 };

			lanes_open(&world, 8, SLOT, 2, at % 3 ? 1 : 0);
			while (traffic.taken[0] < (uint64_t)at)
				flow(&traffic);
			cut_lane(&world, at % 2, at / 2 % 2, (enum cut)how);
			flow_until_over(&traffic);
			all_is_sent(&world);
			both_lost_once(&world, at / 2 % 2);
			world_end(&world);
		}
	}
}

/* Nothing comes back on a lane: it is found out in some 300 ms. */
static void a_silent_lane_is_given_up(void **state)
{
	(void)state;
	for (int index = 0; index < 2; index++) {
		struct world world;
		struct traffic traffic = { &world, .seed = 3 + (uint64_t)index, .messages = 2000 };
		int64_t begun;

		lanes_open(&world, 8, SLOT, 2, 1);
		while (traffic.taken[0] < 100)
			flow(&traffic);
		cut_lane(&world, 0, index, MUTE);
		begun = tti_now_ns();
		flow_until_over(&traffic);
		all_is_sent(&world);
		/* The kernel alone would try for a quarter of an hour. */
		assert_in_range(tti_now_ns() - begun, 0, 150000 * TTI_NS_PER_MS);
		for (int rank = 0; rank < 2; rank++) {
			assert_int_equal(inside(&world, rank)->lane[1 - index].losses, 0);
			assert_non_null(inside(&world, rank)->conn[1 - index]);
		}
		world_end(&world);
	}
}

static void a_lane_comes_back(void **state)
{
	struct world world;
	struct traffic traffic = { &world, .seed = 5, .messages = 100 };
	const int64_t deadline = tti_deadline(60000);

	(void)state;
	lanes_open(&world, 8, SLOT, 3, 4096);
	for (int round = 0; round < 20; round++) {
		const int index = round % 3;
		uint64_t before;

		while (traffic.taken[0] + 60 < traffic.messages)
			flow(&traffic);
		/* Every second time it is still there. */
		if (round % 2)
			cut_lane(&world, round % 2, index, (enum cut)(round / 2 % 3));
		flow(&traffic);
		inside(&world, 0)->lane[index].rate = 1e-9; /* while it died */
		join_lane(&world, index);
		before = inside(&world, 0)->lane[index].sent;
		traffic.messages += 200;
		flow_until_over(&traffic);
		/* One that was lost is opened anew in between. */
		while (inside(&world, 0)->nconns < 3 && tti_now_ns() < deadline)
			world_progress(&world);
		assert_int_equal(inside(&world, 0)->nconns, 3);
		assert_true(inside(&world, 0)->lane[index].sent > before + 50000);
		assert_string_equal(inside(&world, 0)->lane[index].trouble, "");
	}
	world_end(&world);
}

static void the_error_names_all_lanes(void **state)
{
	(void)state;
	for (int how = RESET; how < MUTE; how++) {
		struct world world;
		struct tti_link *link;
		const int64_t deadline = tti_deadline(60000);
		size_t nbytes;
		uint64_t tag;

		lanes_open(&world, 8, SLOT, 3, 0);
		for (int i = 0; i < 3; i++)
			cut_lane(&world, 0, i, (enum cut)how);
		link = world.link[1][0];
		while (!world.port[1]->failure && tti_now_ns() < deadline) {
			assert_null(link->ops->peek(link, &nbytes, &tag));
			tcp->progress(world.port[1]);
		}
		assert_int_equal(world.port[1]->failure, TUTTI_EPEER);
		assert_int_equal(world.port[1]->failed_peer, 0);
		assert_error_has("rank 0 is gone");
		assert_error_has("lane 0, ");
		assert_error_has("lane 1, 127.0.0.1 to 127.0.0.2: ");
		assert_error_has("lane 2, 127.0.0.1 to 127.0.0.3: ");
		assert_null(link->ops->reserve(link, 8, 0));
		assert_int_equal(world.port[1]->unsent, 0);
		world_end(&world);
	}
}

/* What was put before shutdown arrives, though a lane dies on the way. */
static void closing_repairs_what_it_can(void **state)
{
	(void)state;
	for (int how = RESET; how <= MUTE; how++) {
		struct world world;

		lanes_open(&world, 8, SLOT, 3, 0);
		for (uint64_t i = 0; i < 8; i++)
			assert_true(put(world.link[0][1], i % 2 ? SLOT : 10, i));
		take_soon(&world, world.link[1][0], 10, 0);
		cut_lane(&world, how == MUTE ? 0 : 1, 1, (enum cut)how);
		tcp->close(world.link[0][1]);
		tcp->shutdown(world.port[0]);
		world.port[0] = NULL;
		world.link[0][1] = NULL;
		for (uint64_t i = 1; i < 8; i++)
			take_soon(&world, world.link[1][0], i % 2 ? SLOT : 10, i);
		assert_int_equal(world.port[1]->failure, TUTTI_OK);
		assert_int_equal(world.port[1]->unsent, 0);
		world_end(&world);
	}
}

/* A message waits on one lane of a peer that has left, while the peer is told over the other
 * what was taken: that lane breaks by it, and takes nothing with it. */
static void who_left_takes_nothing_with_it(void **state)
{
	enum { FIRST = 4, SIZE = 17000 }; /* two of them are worth a credit */
	const int64_t deadline = tti_deadline(60000);
	struct world world;

	(void)state;
	lanes_open(&world, 16, SLOT, 2, 0);
	inside(&world, 0)->only = 0;
	for (uint64_t i = 0; i < FIRST; i++)
		assert_true(put(world.link[0][1], SIZE, i));
	while (!inside(&world, 1)->in.slot[FIRST - 1].tag || world.port[0]->unsent) {
		world_progress(&world);
		assert_true(tti_now_ns() < deadline);
	}
	inside(&world, 0)->only = 1;
	assert_true(put(world.link[0][1], SIZE, FIRST));
	tcp->close(world.link[0][1]);
	tcp->shutdown(world.port[0]);
	world.port[0] = NULL;
	world.link[0][1] = NULL;
	for (uint64_t i = 0; i <= FIRST; i++)
		take_soon(&world, world.link[1][0], SIZE, i);
	assert_int_equal(world.port[1]->failure, TUTTI_OK);
	assert_int_equal(world.port[1]->unsent, 0);
	world_end(&world);
}

static int well_at_both(struct world *world)
{
	int n = 0;

	for (int i = 0; i < TTI_TCP_LANES_MOST; i++)
		n += inside(world, 0)->conn[i] && inside(world, 1)->conn[i];
	return n;
}

/* Lanes die and return at random. One always lives: lane 0. */
static void storm(uint64_t seed, enum cut ncuts, uint64_t messages)
{
	struct world world;
	struct traffic traffic = { &world, .seed = seed, .state = seed, .messages = messages };
	const int lanes = 2 + (int)roll(&traffic, 5);
	const int64_t deadline = tti_deadline(100000);

	lanes_open(&world, 1 + (int)roll(&traffic, 16), SLOT, lanes,
		   roll(&traffic, 2) ? 0 : 1 + (int)roll(&traffic, 30000));
	while (!is_over(&traffic)) {
		const int index = 1 + (int)roll(&traffic, (uint64_t)lanes - 1);

		flow(&traffic);
		if (!roll(&traffic, 12) && well_at_both(&world) > 1)
			cut_lane(&world, (int)roll(&traffic, 2), index,
				 (enum cut)roll(&traffic, ncuts));
		else if (!roll(&traffic, 12))
			join_lane(&world, index);
		if (tti_now_ns() > deadline)
			fail_msg("seed %llu has no end", (unsigned long long)seed);
	}
	all_is_sent(&world);
	world_end(&world);
}

static void storms_are_weathered(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= (SANITIZED ? 5 : 40); seed++)
		storm(seed, MUTE, 400);
	for (uint64_t seed = 100; seed <= (SANITIZED ? 101 : 103); seed++)
		storm(seed, NCUTS, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_carry_all_sizes),
		cmocka_unit_test(every_lane_is_used),
		cmocka_unit_test(what_is_acknowledged_is_through),
		cmocka_unit_test(what_it_was_given_is_not_what_it_can),
		cmocka_unit_test(one_lane_may_be_picked),
		cmocka_unit_test(a_lane_is_lost_at_any_time),
		cmocka_unit_test(a_silent_lane_is_given_up),
		cmocka_unit_test(a_lane_comes_back),
		cmocka_unit_test(the_error_names_all_lanes),
		cmocka_unit_test(closing_repairs_what_it_can),
		cmocka_unit_test(who_left_takes_nothing_with_it),
		cmocka_unit_test(storms_are_weathered),
	};

	/* All of it once more, with what is sent sealed. */
	return cmocka_run_group_tests_name("plain", tests, NULL, NULL) +
	       cmocka_run_group_tests_name("encrypted", tests, world_encrypt, NULL);
}
