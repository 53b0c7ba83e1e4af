/* SPDX-License-Identifier: BSD-3-Clause */
/* How TCP links come to be: who is let in, and who is not. */
#include "unit/transport/tcp_loopback.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void links_over_either_family(void **state)
{
	(void)state;
	for (int family = 4; family <= 6; family += 2) {
		struct sockaddr_storage who;
		socklen_t size = sizeof(who);
		struct tti_addr addr;
		struct world world;

		world_open(&world, 2, 4, 4096, 2);
		world_start(&world);
		move_to_loopback(&world, family);
		world_join(&world);
		world_link(&world, 0, 1);
		talks(&world, 0, 1);
		assert_int_equal(getpeername(((struct tti_tcp_link *)world.link[1][0])->conn[0]->fd,
					     (struct sockaddr *)&who, &size),
				 0);
		assert_int_equal(tti_addr_from_sock((struct sockaddr *)&who, &addr), TUTTI_OK);
		assert_int_equal(addr.family, family);
		world_end(&world);
	}
}

/* What answers at an address is a rank of this communicator, but not the one
 * that is meant. */
static void another_rank_is_not_taken_for_the_peer(void **state)
{
	struct world world;
	struct tti_tcp_card card;

	(void)state;
	world_open(&world, 3, 4, 4096, 1);
	world.config.timeout_ms = 400;
	world_start(&world);
	move_to_loopback(&world, 4);
	card = read_card(&world, 0);
	card.port = read_card(&world, 2).port;
	tti_tcp_card_put(&card, &world.card[0]);
	world_join(&world);
	while (tcp->connect(world.port[1], 0, &world.link[1][0]) == TUTTI_AGAIN)
		world_progress(&world);
	assert_int_equal(world.port[1]->failure, TUTTI_ETIMEOUT);
	assert_int_equal(world.port[1]->failed_peer, 0);
	assert_error_has("another rank answered");
	assert_true(inside(&world, 2)->dropped > 0);
	assert_null(inside(&world, 2)->link_of[1]);
	world_end(&world);
}

/* By either side: the links to others live. */
static void a_link_may_be_given_up(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, 3, 4, 4096, 1);
	world_start(&world);
	move_to_loopback(&world, 4);
	world_join(&world);
	assert_int_equal(tcp->connect(world.port[2], 0, &world.link[2][0]), TUTTI_AGAIN);
	assert_int_equal(tcp->connect(world.port[0], 2, &world.link[0][2]), TUTTI_AGAIN);
	tcp->progress(world.port[2]);
	tcp->give_up(world.port[2], 0);
	tcp->give_up(world.port[0], 2);
	assert_non_null(
		strstr(world.port[2]->failure_text, "cannot connect to rank 0 (127.0.0.1:"));
	assert_non_null(strstr(world.port[0]->failure_text, "rank 2 did not connect to rank 0"));
	assert_int_equal(tcp->connect(world.port[2], 0, &world.link[2][0]), TUTTI_EPEER);
	for (int rank = 0; rank < 3; rank++)
		assert_int_equal(world.port[rank]->failure, TUTTI_OK);
	world_link(&world, 0, 1);
	world_link(&world, 1, 2);
	talks(&world, 0, 1);
	talks(&world, 1, 2);
	/* One that was up is not given up, nor one that nobody asked for. */
	tcp->give_up(world.port[1], 2);
	tcp->give_up(world.port[1], 1);
	talks(&world, 1, 2);
	world_end(&world);
}

static void a_wrong_secret_gets_nowhere(void **state)
{
	struct world world, other;

	(void)state;
	world_open(&world, 2, 4, 4096, 1);
	world_start(&world);
	move_to_loopback(&world, 4);
	world_open(&other, 2, 4, 4096, 1);
	other.secret[0] ^= 1;
	other.config.timeout_ms = 500;
	world_start(&other);
	/* It knows the address, not the secret. */
	other.card[0] = world.card[0];
	world_join(&world);
	world_join(&other);
	while (tcp->connect(other.port[1], 0, &other.link[1][0]) == TUTTI_AGAIN) {
		world_progress(&other);
		world_progress(&world);
	}
	assert_int_equal(other.port[1]->failure, TUTTI_ETIMEOUT);
	assert_true(inside(&world, 0)->dropped > 0);
	assert_int_equal(world.port[0]->failure, TUTTI_OK);
	world_link(&world, 0, 1);
	talks(&world, 0, 1);
	world_end(&world);
	world_end(&other);
}

/* -- Strangers ----------------------------------------------------------------- */

static char log_file[] = "/tmp/tutti-test-XXXXXX";

/* Lines of the log with this text. */
static size_t count_logged(const char *text)
{
	FILE *file = fopen(log_file, "re");
	char line[1024];
	size_t n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, text) != NULL;
	fclose(file);
	return n;
}

#define STRANGERS 300

/* Scanners, noise and half-open connections before, while and after the link
 * comes up. */
static void strangers_do_not_disturb(void **state)
{
	static const char *const noise[] = { "", "GET / HTTP/1.0\r\n\r\n", "\x16\x03\x01", "tutti",
					     NULL };
	struct sockaddr_storage to;
	struct tti_addr addr;
	struct world world;
	int fd[STRANGERS];
	uint8_t junk[4096];
	char told[64];
	uint64_t dropped;
	const int64_t deadline = tti_deadline(60000);

	(void)state;
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)(i * 31 + i / 7);
	const size_t logged = count_logged("connection from");

	world_open(&world, 2, 4, 4096, 2);
	world.options.handshake_ms = 200;
	world_start(&world);
	move_to_loopback(&world, 4);
	world_join(&world);
	addr = loopback(4, read_card(&world, 0).port);
	for (int i = 0; i < STRANGERS; i++) {
		const socklen_t size = tti_addr_to_sock(&addr, &to);
		const char *text = noise[i % 5];

		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fd[i] >= 0);
		assert_int_equal(connect(fd[i], (struct sockaddr *)&to, size), 0);
		if (!text)
			assert_true(send(fd[i], junk, sizeof(junk), MSG_NOSIGNAL) > 0);
		else if (*text)
			assert_true(send(fd[i], text, strlen(text), MSG_NOSIGNAL) > 0);
		if (i % 7 == 0)
			shutdown(fd[i], SHUT_WR);
		if (i == STRANGERS / 2)
			world_link(&world, 0, 1);
	}
	talks(&world, 0, 1);
	while ((inside(&world, 0)->dropped < STRANGERS || inside(&world, 0)->rising.n > 0) &&
	       tti_now_ns() < deadline)
		tcp->sleep->wait(world.port[0], 10 * TTI_NS_PER_MS);
	assert_int_equal(inside(&world, 0)->rising.n, 0);
	/* And rank 1 where it had no turn for the 200 ms, which has come again then. */
	dropped = inside(&world, 0)->dropped;
	assert_in_range(dropped, STRANGERS, STRANGERS + 10);
	(void)snprintf(told, sizeof(told), "%llu connections were dropped",
		       (unsigned long long)dropped);
	assert_int_equal(world.port[0]->failure, TUTTI_OK);
	talks(&world, 0, 1);
	for (int i = 0; i < STRANGERS; i++)
		close(fd[i]);
	world_end(&world);
	assert_int_equal(count_logged("connection from"), logged + 20);
	assert_int_equal(count_logged(told), 1);
}

/* Out of descriptors, a connection waits until there are some. */
static void runs_out_of_descriptors(void **state)
{
	struct sockaddr_storage to;
	struct rlimit limit, low;
	struct tti_addr addr;
	struct world world;
	int fd, next, nsleeps;
	int64_t until;

	(void)state;
	world_open(&world, 1, 4, 4096, 1);
	world_start(&world);
	addr = loopback(4, read_card(&world, 0).port);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, tti_addr_to_sock(&addr, &to)), 0);
	next = dup(fd);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (int i = 0; i < 100; i++)
		world_progress(&world);
	assert_int_equal(inside(&world, 0)->rising.n, 0);
	assert_true(inside(&world, 0)->starved);
	/* It does not keep who sleeps awake. */
	until = tti_deadline(200);
	for (nsleeps = 0; tti_now_ns() < until; nsleeps++)
		tcp->sleep->wait(world.port[0], 10000 * TTI_NS_PER_MS);
	assert_true(nsleeps <= 100);
	assert_int_equal(inside(&world, 0)->rising.n, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	until = tti_deadline(60000);
	while (!inside(&world, 0)->rising.n && tti_now_ns() < until)
		tcp->sleep->wait(world.port[0], 10000 * TTI_NS_PER_MS);
	assert_int_equal(inside(&world, 0)->rising.n, 1);
	assert_int_equal(world.port[0]->failure, TUTTI_OK);
	close(fd);
	world_end(&world);
}

/* The lower rank works on something else while the higher one connects. */
static void links_are_kept_until_asked_for(void **state)
{
	const int64_t deadline = tti_deadline(60000);
	tutti_status status;
	struct world world;

	(void)state;
	world_open(&world, 2, 4, 4096, 3);
	world_start(&world);
	world_join(&world);
	while (tcp->connect(world.port[1], 0, &world.link[1][0]) == TUTTI_AGAIN)
		world_progress(&world);
	assert_non_null(world.link[1][0]);
	assert_true(put(world.link[1][0], 500, 9));
	while ((status = tcp->connect(world.port[0], 1, &world.link[0][1])) == TUTTI_AGAIN &&
	       tti_now_ns() < deadline)
		world_progress(&world);
	assert_int_equal(status, TUTTI_OK);
	take_soon(&world, world.link[0][1], 500, 9);
	world_end(&world);
}

static void the_least_of_all_slots_counts(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, 3, 8, 8192, 1);
	world_start(&world);
	tcp->shutdown(world.port[1]);
	world.config.rank = 1;
	world.config.slots = 2;
	world.config.slot_bytes = 4096;
	assert_int_equal(
		tti_tcp_open(&world.config, &world.options, &world.port[1], &world.card[1]),
		TUTTI_OK);
	world_join(&world);
	for (int rank = 0; rank < 3; rank++) {
		assert_int_equal(world.port[rank]->slot_bytes, 4096);
		assert_int_equal(inside(&world, rank)->slots, 2);
	}
	world_link(&world, 0, 2);
	talks(&world, 0, 2);
	world_end(&world);
}

/* Ask for all lanes until there are n. */
static void open_lanes(struct world *world, int a, int b, int n)
{
	const struct tti_tcp_link *at_a = (struct tti_tcp_link *)world->link[a][b];
	const struct tti_tcp_link *at_b = (struct tti_tcp_link *)world->link[b][a];
	const int64_t deadline = tti_deadline(60000);

	tcp->lanes->open_all(world->link[a][b]);
	tcp->lanes->open_all(world->link[b][a]);
	while (at_a->nconns < n || at_b->nconns < n) {
		world_progress(world);
		assert_true(tti_now_ns() < deadline);
	}
}

static void congestion_control_is_chosen(void **state)
{
	char name[16] = "";
	socklen_t size = sizeof(name);
	struct world world;

	(void)state;
	world_open(&world, 2, 4, 4096, 2);
	world.options.congestion = "reno";
	world_start(&world);
	world_join(&world);
	world_link(&world, 0, 1);
	open_lanes(&world, 0, 1, 2);
	for (int rank = 0; rank < 2; rank++) {
		struct tti_tcp_link *link = (struct tti_tcp_link *)world.link[rank][1 - rank];

		for (int i = 0; i < 2; i++) {
			size = sizeof(name);
			assert_int_equal(getsockopt(link->conn[i]->fd, IPPROTO_TCP, TCP_CONGESTION,
						    name, &size),
					 0);
			assert_string_equal(name, "reno");
		}
	}
	world_end(&world);

	world_open(&world, 1, 4, 4096, 1);
	world.options.congestion = "carrier_pigeon";
	assert_int_equal(
		tti_tcp_open(&world.config, &world.options, &world.port[0], &world.card[0]),
		TUTTI_EINVAL);
	assert_error_has("TUTTI_TCP_CONGESTION=carrier_pigeon");
	assert_error_has("reno");
}

static void bad_use_is_refused(void **state)
{
	struct world world;
	struct tti_link *link;
	uint64_t domain;

	(void)state;
	world_open(&world, 2, 4, 4096, 1);
	world_start(&world);
	assert_int_equal(tcp->connect(world.port[0], 1, &link), TUTTI_EINVAL);
	world.card[1].bytes[0] ^= 1;
	assert_int_equal(tcp->join(world.port[0], world.card, &domain), TUTTI_EPROTO);
	assert_error_has("rank 1: magic");
	assert_int_equal(tcp->connect(world.port[0], 1, &link), TUTTI_EINVAL);
	world.card[1].bytes[0] ^= 1;
	tcp->shutdown(world.port[0]);
	world.config.rank = 0;
	world.config.slots = 65;
	assert_int_equal(
		tti_tcp_open(&world.config, &world.options, &world.port[0], &world.card[0]),
		TUTTI_EINVAL);
	world.config.slots = 4;
	assert_int_equal(
		tti_tcp_open(&world.config, &world.options, &world.port[0], &world.card[0]),
		TUTTI_OK);
	world_join(&world);
	assert_int_equal(tcp->connect(world.port[0], 0, &link), TUTTI_EINVAL);
	assert_int_equal(tcp->connect(world.port[0], 2, &link), TUTTI_EINVAL);
	assert_int_equal(tcp->connect(world.port[0], -1, &link), TUTTI_EINVAL);
	world_link(&world, 0, 1);
	tcp->close(world.link[0][1]);
	assert_int_equal(tcp->connect(world.port[0], 1, &link), TUTTI_EUSAGE);
	tcp->shutdown(NULL);
	world_end(&world);
}

/* A rank without any address, or without TCP at all, is in no domain. */
static void no_address_is_no_domain(void **state)
{
	struct world world;
	struct tti_link *link;
	uint64_t domain = 7;

	(void)state;
	world_open(&world, 2, 4, 4096, 1);
	world_start(&world);
	memset(&world.card[0], 0, sizeof(world.card[0]));
	assert_int_equal(tcp->join(world.port[0], world.card, &domain), TUTTI_OK);
	assert_int_equal(domain, 0);
	assert_int_equal(tcp->join(world.port[1], world.card, &domain), TUTTI_OK);
	assert_int_equal(domain, 1);
	assert_int_equal(tcp->connect(world.port[1], 0, &link), TUTTI_EINVAL);
	assert_error_has("no address");
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_over_either_family),
		cmocka_unit_test(another_rank_is_not_taken_for_the_peer),
		cmocka_unit_test(a_link_may_be_given_up),
		cmocka_unit_test(a_wrong_secret_gets_nowhere),
		cmocka_unit_test(strangers_do_not_disturb),
		cmocka_unit_test(runs_out_of_descriptors),
		cmocka_unit_test(links_are_kept_until_asked_for),
		cmocka_unit_test(the_least_of_all_slots_counts),
		cmocka_unit_test(congestion_control_is_chosen),
		cmocka_unit_test(bad_use_is_refused),
		cmocka_unit_test(no_address_is_no_domain),
	};

	const int fd = mkstemp(log_file);
	int failed;

	if (fd < 0 || setenv("TUTTI_DEBUG", "INFO", 1) || setenv("TUTTI_DEBUG_FILE", log_file, 1))
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(log_file);
	return failed;
}
