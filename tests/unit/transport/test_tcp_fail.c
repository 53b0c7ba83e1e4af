/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP links that end: orderly, by death, by nonsense. */
#include "unit/transport/tcp_world.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tti_tcp_link *inside(struct world *world, int rank, int peer)
{
	return (struct tti_tcp_link *)world->link[rank][peer];
}

/* What a process that dies does to a socket. The number stays taken, so that the port closes what
 * is its own. */
static void cut_conn(const struct tti_tcp_conn *conn, bool reset)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (reset)
		setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	assert_true(dup3(null, conn->fd, O_CLOEXEC) >= 0);
	close(null);
}

static void cut(struct world *world, int rank, int peer, bool reset)
{
	const struct tti_tcp_link *link = inside(world, rank, peer);

	for (int i = 0; i < link->nconns; i++)
		cut_conn(link->conn[i], reset);
}

static void pump(struct world *world, int times)
{
	while (times-- > 0)
		world_progress(world);
}

static tutti_status failure_soon(struct world *world, int rank, int peer)
{
	const int64_t deadline = tti_deadline(60000);
	struct tti_link *link = world->link[rank][peer];
	size_t nbytes;
	uint64_t tag;

	while (!world->port[rank]->failure && tti_now_ns() < deadline) {
		assert_null(link->ops->peek(link, &nbytes, &tag));
		tcp->progress(world->port[rank]);
	}
	assert_int_equal(world->port[rank]->failed_peer, peer);
	/* What was said later, about somebody else, is no matter. */
	tti_error_set(world->port[rank]->failure_text);
	return world->port[rank]->failure;
}

static void all_arrives_after_orderly_shutdown(void **state)
{
	static const size_t size[] = { 8, 200, 5000, 262144, 262144, 1, 0, 262144 };

	(void)state;
	for (int sockets = 1; sockets <= 4; sockets *= 2) {
		struct world world;

		world_pair(&world, 8, 262144, sockets);
		/* Unread data on the way to the one that closes: it must not cost
		 * the other what it has yet to read. */
		assert_true(put(world.link[1][0], 1000, 77));
		pump(&world, 20);
		for (uint64_t i = 0; i < 8; i++)
			assert_true(put(world.link[0][1], size[i], i));
		/* The reader takes some of it, as it would in a call. */
		take_soon(&world, world.link[1][0], size[0], 0);
		while (world.port[0]->unsent)
			world_progress(&world);
		tcp->close(world.link[0][1]);
		tcp->shutdown(world.port[0]);
		world.port[0] = NULL;
		world.link[0][1] = NULL;
		/* Giving back sends credits into the closed socket. */
		for (uint64_t i = 1; i < 8; i++)
			take_soon(&world, world.link[1][0], size[i], i);
		assert_int_equal(world.port[1]->failure, TUTTI_OK);
		assert_int_equal(world.port[1]->unsent, 0);
		assert_int_equal(failure_soon(&world, 1, 0), TUTTI_EPEER);
		assert_error_has("rank 0 is gone");
		assert_null(world.link[1][0]->ops->reserve(world.link[1][0], 8, 0));
		world_end(&world);
	}
}

/* A closed connection is no failure until more is wanted. */
static void an_orderly_end_is_no_failure(void **state)
{
	const int64_t deadline = tti_deadline(60000);
	struct world world;

	(void)state;
	world_pair(&world, 4, 4096, 2);
	assert_true(put(world.link[0][1], 8, 1));
	tcp->close(world.link[0][1]);
	tcp->shutdown(world.port[0]);
	world.port[0] = NULL;
	world.link[0][1] = NULL;
	pump(&world, 1000);
	take_soon(&world, world.link[1][0], 8, 1);
	pump(&world, 1000);
	assert_int_equal(world.port[1]->failure, TUTTI_OK);
	while (world.link[1][0]->ops->reserve(world.link[1][0], 8, 0)) {
		world_progress(&world);
		assert_true(tti_now_ns() < deadline);
	}
	assert_int_equal(world.port[1]->failure, TUTTI_EPEER);
	world_end(&world);
}

static void a_dead_peer_is_noticed(void **state)
{
	(void)state;
	for (int sockets = 1; sockets <= 2; sockets++) {
		for (int reset = 0; reset <= 1; reset++) {
			const int64_t deadline = tti_deadline(60000);
			struct world world;

			world_pair(&world, 8, 4096, sockets);
			assert_true(put(world.link[0][1], 8, 0));
			while (!inside(&world, 1, 0)->in.slot[0].tag) {
				world_progress(&world);
				assert_true(tti_now_ns() < deadline);
			}
			cut(&world, 0, 1, reset);
			/* What had arrived stays readable. */
			take_soon(&world, world.link[1][0], 8, 0);
			assert_int_equal(failure_soon(&world, 1, 0), TUTTI_EPEER);
			assert_error_has("rank 0");
			world_end(&world);
		}
	}
}

/* Not by fork(), after which a process does not have the sockets of its parent. */
static pid_t copy_process(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* kill -9 in the middle of sending, from outside. */
static void a_killed_process_is_noticed(void **state)
{
	struct world world;
	const int64_t deadline = tti_deadline(60000);
	pid_t child;
	uint64_t got = 0;

	(void)state;
	world_pair(&world, 4, 262144, 2);
	child = copy_process();
	assert_true(child >= 0);
	if (!child) {
		for (uint64_t i = 0;;) {
			i += put(world.link[0][1], 262144, i);
			tcp->progress(world.port[0]);
		}
	}
	cut(&world, 0, 1, false);
	while (got < 10) {
		tcp->progress(world.port[1]);
		got += take(world.link[1][0], 262144, got);
	}
	kill(child, SIGKILL);
	while (!world.port[1]->failure && tti_now_ns() < deadline) {
		tcp->progress(world.port[1]);
		got += take(world.link[1][0], 262144, got);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(world.port[1]->failure, TUTTI_EPEER);
	assert_int_equal(world.port[1]->failed_peer, 0);
	world_end(&world);
}

/* The sender finds out, too. */
static void sending_to_the_dead_fails(void **state)
{
	struct world world;
	const int64_t deadline = tti_deadline(60000);
	uint64_t i = 0;

	(void)state;
	world_pair(&world, 8, 65536, 1);
	cut(&world, 1, 0, true);
	while (!world.port[0]->failure && tti_now_ns() < deadline) {
		i += put(world.link[0][1], 65536, i);
		tcp->progress(world.port[0]);
	}
	assert_int_equal(world.port[0]->failure, TUTTI_EPEER);
	assert_int_equal(world.port[0]->failed_peer, 1);
	assert_int_equal(world.port[0]->unsent, 0);
	world_end(&world);
}

#define LONG (1 << 20)

/* Two ranks with two lanes. Rank 1 reads the first one last: the system takes little for it there. */
static void lanes_pair(struct world *world)
{
	const int64_t deadline = tti_deadline(60000);
	const int little = 65536;

	world_pair(world, 16, LONG, 2);
	for (int rank = 0; rank < 2; rank++)
		tcp->lanes->open_all(world->link[rank][1 - rank]);
	while (inside(world, 0, 1)->nconns < 2 || inside(world, 1, 0)->nconns < 2) {
		world_progress(world);
		assert_true(tti_now_ns() < deadline);
	}
	assert_int_equal(setsockopt(inside(world, 1, 0)->conn[0]->fd, SOL_SOCKET, SO_RCVBUF,
				    &little, sizeof(little)),
			 0);
}

/* The system has no more room for what rank 0 sends to rank 1, which reads nothing. */
static void fill_up(struct world *world)
{
	const int64_t deadline = tti_deadline(60000);
	uint64_t i = 0;

	while (world->port[0]->unsent == 0 && tti_now_ns() < deadline) {
		i += put(world->link[0][1], LONG, i);
		tcp->progress(world->port[0]);
	}
	assert_true(world->port[0]->unsent > 0);
}

/* Nothing is expected of the peer, so nobody but the event that its reset is can tell: a call that
 * waits for what is unsent has to end. */
static void who_is_blocked_notices_a_reset(void **state)
{
	const int64_t deadline = tti_deadline(60000);
	struct world world;

	(void)state;
	world_pair(&world, 16, LONG, 1);
	fill_up(&world);
	cut(&world, 1, 0, true);
	while (world.port[0]->unsent && tti_now_ns() < deadline)
		tcp->progress(world.port[0]);
	assert_int_equal(world.port[0]->unsent, 0);
	assert_int_equal(world.port[0]->failure, TUTTI_EPEER);
	assert_int_equal(world.port[0]->failed_peer, 1);
	world_end(&world);
}

/* The count of connections that wait for room decides how often epoll is asked: one that is lost while
 * it waits leaves the count, and leaves it once. */
static void a_blocked_lane_that_is_lost_is_counted_once(void **state)
{
	const int64_t deadline = tti_deadline(20000);
	struct pollfd reset = { 0 };
	struct tti_tcp_port *port;
	struct tti_tcp_link *link;
	struct world world;

	(void)state;
	lanes_pair(&world);
	port = tti_tcp_port_of(world.port[0]);
	link = inside(&world, 0, 1);
	tti_tcp_conn_block(port, link->conn[0], true);
	assert_int_equal(port->nblocked, 1);
	cut_conn(inside(&world, 1, 0)->conn[0], true);
	reset.fd = link->conn[0]->fd;
	assert_int_equal(poll(&reset, 1, 10000), 1);
	while (link->nconns > 1 && tti_now_ns() < deadline)
		tcp->progress(world.port[0]);
	assert_int_equal(link->nconns, 1);
	assert_null(link->conn[0]);
	assert_int_equal(port->nblocked, 0);
	world_end(&world);
}

/* A peer that leaves resets both lanes, one after the other. What it had by the first goes again by the
 * second, which is full when it is reset, too: that is owed to nobody any more, and no failure. */
static void nothing_is_owed_again_to_who_has_left(void **state)
{
	enum { N = 14 };
	const int64_t deadline = tti_deadline(60000);
	struct tti_tcp_link *link;
	struct world world;

	(void)state;
	lanes_pair(&world);
	link = inside(&world, 0, 1);
	link->only = 1;
	for (uint64_t i = 0; i < N; i++)
		assert_true(put(world.link[0][1], LONG, i));
	while ((world.port[0]->unsent || !inside(&world, 1, 0)->in.slot[N - 1].tag) &&
	       tti_now_ns() < deadline)
		world_progress(&world);
	link->only = -1;
	tti_tcp_lane_leaves(link, 1, "the test says so");
	assert_int_equal(link->nconns, 1);
	/* Rank 1 reads nothing of it. */
	assert_true(link->conn[0]->blocked);
	assert_true(link->todo != 0);
	cut(&world, 1, 0, true);
	while (world.port[0]->unsent && tti_now_ns() < deadline)
		tcp->progress(world.port[0]);
	assert_int_equal(world.port[0]->unsent, 0);
	assert_int_equal(world.port[0]->failure, TUTTI_OK);
	world_end(&world);
}

/* Who has been lent a slot may write to it and give it back, though the link is
 * lost by then: the engine fills several links from one. */
static void a_lent_slot_outlives_the_link(void **state)
{
	struct world world;
	void *room;

	(void)state;
	world_pair(&world, 4, 4096, 1);
	room = world.link[0][1]->ops->reserve(world.link[0][1], 4096, 0);
	assert_non_null(room);
	cut(&world, 1, 0, true);
	assert_int_equal(failure_soon(&world, 0, 1), TUTTI_EPEER);
	assert_ptr_equal(world.link[0][1]->ops->reserve(world.link[0][1], 4096, 0), room);
	memset(room, 1, 4096);
	world.link[0][1]->ops->commit(world.link[0][1], 4096, 0);
	assert_null(world.link[0][1]->ops->reserve(world.link[0][1], 4096, 0));
	assert_int_equal(world.port[0]->unsent, 0);
	world_end(&world);
}

/* Nothing was owed when the link was reset, so that was no failure. A message that is committed to it
 * afterwards is one: the call that waits until all is sent has to end. */
static void a_message_to_a_reset_link_is_a_failure(void **state)
{
	const int64_t deadline = tti_deadline(20000);
	struct world world;
	void *room;

	(void)state;
	world_pair(&world, 4, 4096, 1);
	room = world.link[0][1]->ops->reserve(world.link[0][1], 4096, 0);
	assert_non_null(room);
	cut(&world, 1, 0, true);
	while (inside(&world, 0, 1)->nconns && tti_now_ns() < deadline)
		tcp->progress(world.port[0]);
	assert_int_equal(inside(&world, 0, 1)->nconns, 0);
	assert_int_equal(world.port[0]->failure, TUTTI_OK);
	memset(room, 1, 4096);
	world.link[0][1]->ops->commit(world.link[0][1], 4096, 0);
	assert_int_equal(world.port[0]->failure, TUTTI_EPEER);
	assert_int_equal(world.port[0]->failed_peer, 1);
	assert_error_has("rank 1 is gone: sending to it failed (Connection reset by peer)");
	assert_int_equal(world.port[0]->unsent, 0);
	world_end(&world);
}

/* -- Nonsense -------------------------------------------------------------- */

struct nonsense {
	struct tti_tcp_frame frame;
	int magic, retry; /* changes to those bytes */
	const char *field;
};

static const struct nonsense NONSENSE[] = {
	{ { .type = TTI_TCP_DATA, .length = 8 }, 1, 0, "magic" },
	{ { .type = TTI_TCP_CREDIT, .consumed = 1 }, 1, 0, "magic" },
	{ { .type = 9 }, 0, 0, "type" },
	{ { .type = TTI_TCP_HELLO }, 0, 0, "type" },
	{ { .type = TTI_TCP_CREDIT, .consumed = 1 }, 0, 1, "retry" },
	{ { .type = TTI_TCP_DATA, .length = 4097 }, 0, 0, "length" },
	{ { .type = TTI_TCP_DATA, .length = UINT32_MAX }, 0, 0, "length" },
	{ { .type = TTI_TCP_CREDIT, .length = 1 }, 0, 0, "length" },
	{ { .type = TTI_TCP_DATA, .length = 8, .seq = 5 }, 0, 0, "seq" },
	{ { .type = TTI_TCP_DATA, .length = 8, .seq = UINT64_MAX }, 0, 0, "seq" },
	{ { .type = TTI_TCP_DATA, .length = 8, .consumed = 1 }, 0, 0, "consumed" },
	{ { .type = TTI_TCP_CREDIT, .consumed = 0 }, 0, 0, "consumed" },
};

static void nonsense_is_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(NONSENSE) / sizeof(NONSENSE[0]); i++) {
		const struct nonsense *bad = &NONSENSE[i];
		const bool sealed = bad->frame.type != TTI_TCP_DATA;
		const size_t nbytes = sealed ? TTI_TCP_SEALED : TTI_TCP_HEADER;
		uint8_t bytes[TTI_TCP_SEALED];
		struct tti_tcp_conn *conn;
		struct world world;

		world_pair(&world, 4, 4096, 1);
		conn = inside(&world, 0, 1)->conn[0];
		tti_tcp_frame_put(bytes, &bad->frame);
		bytes[0] ^= (uint8_t)bad->magic;
		bytes[2] ^= (uint8_t)bad->retry;
		if (sealed)
			tti_tcp_frame_seal(bytes, &conn->out_seal);
		assert_int_equal(send(conn->fd, bytes, nbytes, 0), nbytes);
		assert_int_equal(failure_soon(&world, 1, 0), TUTTI_EPROTO);
		assert_error_has("rank 0");
		assert_error_has(bad->field);
		world_end(&world);
	}
}

/* A credit that the peer did not seal, or sealed and said before. */
static void a_made_up_credit_is_refused(void **state)
{
	const struct tti_tcp_frame frame = { .type = TTI_TCP_CREDIT, .consumed = 1 };

	(void)state;
	for (int again = 0; again < 2; again++) {
		uint8_t bytes[TTI_TCP_SEALED] = { 0 };
		struct tti_tcp_conn *conn;
		struct world world;

		world_pair(&world, 4, 4096, 1);
		conn = inside(&world, 0, 1)->conn[0];
		inside(&world, 1, 0)->in.committed = 2;
		tti_tcp_frame_put(bytes, &frame);
		if (again) {
			tti_tcp_frame_seal(bytes, &conn->out_seal);
			assert_int_equal(send(conn->fd, bytes, sizeof(bytes), 0), sizeof(bytes));
		}
		assert_int_equal(send(conn->fd, bytes, sizeof(bytes), 0), sizeof(bytes));
		assert_int_equal(failure_soon(&world, 1, 0), TUTTI_EPROTO);
		assert_error_has("rank 0: its connection from ");
		assert_error_has("somebody on the network");
		assert_int_equal(inside(&world, 1, 0)->in.credit, again);
		world_end(&world);
	}
}

/* The same message twice: its slot is taken. */
static void a_message_comes_once(void **state)
{
	const struct tti_tcp_frame frame = { .type = TTI_TCP_DATA, .length = 0, .seq = 2 };
	uint8_t bytes[2 * TTI_TCP_HEADER];
	struct world world;

	(void)state;
	world_pair(&world, 4, 4096, 1);
	tti_tcp_frame_put(bytes, &frame);
	tti_tcp_frame_put(bytes + TTI_TCP_HEADER, &frame);
	assert_int_equal(send(inside(&world, 0, 1)->conn[0]->fd, bytes, sizeof(bytes), 0),
			 sizeof(bytes));
	assert_int_equal(failure_soon(&world, 1, 0), TUTTI_EPROTO);
	assert_error_has("sent before");
	world_end(&world);
}

static void an_end_within_a_message_is_a_failure(void **state)
{
	const struct tti_tcp_frame frame = { .type = TTI_TCP_DATA, .length = 100 };
	uint8_t bytes[TTI_TCP_HEADER + 100] = { 0 };

	(void)state;
	tti_tcp_frame_put(bytes, &frame);
	for (size_t n = 1; n < sizeof(bytes); n += 33) {
		struct world world;

		world_pair(&world, 4, 4096, 1);
		assert_int_equal(send(inside(&world, 0, 1)->conn[0]->fd, bytes, n, 0), n);
		cut(&world, 0, 1, false);
		assert_int_equal(failure_soon(&world, 1, 0), TUTTI_EPEER);
		assert_error_has("within a message");
		world_end(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_arrives_after_orderly_shutdown),
		cmocka_unit_test(an_orderly_end_is_no_failure),
		cmocka_unit_test(a_dead_peer_is_noticed),
		cmocka_unit_test(a_killed_process_is_noticed),
		cmocka_unit_test(sending_to_the_dead_fails),
		cmocka_unit_test(who_is_blocked_notices_a_reset),
		cmocka_unit_test(a_blocked_lane_that_is_lost_is_counted_once),
		cmocka_unit_test(nothing_is_owed_again_to_who_has_left),
		cmocka_unit_test(a_lent_slot_outlives_the_link),
		cmocka_unit_test(a_message_to_a_reset_link_is_a_failure),
		cmocka_unit_test(nonsense_is_refused_by_name),
		cmocka_unit_test(a_made_up_credit_is_refused),
		cmocka_unit_test(a_message_comes_once),
		cmocka_unit_test(an_end_within_a_message_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
