/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket of a process that has no file descriptor left for one more connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/net/acceptor.h"
#include "boot/net/iface.h"
#include "util/clock.h"

#define LOOK_MS 500
/* It looks again each 20 ms: a busy machine has fewer looks. */
#define LOOKS   100

static const uint8_t secret[32] = { 1 };

static bool admit(void *self, enum tti_auth_kind kind, const struct tti_wire_who *who)
{
	(void)self;
	(void)kind;
	(void)who;
	return false;
}

static void on_accept(void *self, struct tti_tunnel *tunnel, enum tti_auth_kind kind,
		      const struct tti_wire_who *who)
{
	(void)self;
	(void)tunnel;
	(void)kind;
	(void)who;
	fail_msg("nobody has proven anything");
}

static struct tti_loop loop;
static struct tti_acceptor acceptor;
static uint16_t port;

static void set_up(void)
{
	acceptor = (struct tti_acceptor){
		.loop = &loop, .secret = secret, .most = 8, .admit = admit, .on_accept = on_accept
	};
	port = 0;
	assert_int_equal(tti_loop_init(&loop), TUTTI_OK);
	assert_int_equal(tti_listen(&port, 8, &acceptor.listen_fd), TUTTI_OK);
	assert_int_equal(tti_acceptor_open(&acceptor), TUTTI_OK);
	assert_true(tti_acceptor_expire(&acceptor) == TTI_NEVER);
}

static void tear_down(void)
{
	tti_acceptor_close(&acceptor);
	assert_true(tti_acceptor_expire(&acceptor) == TTI_NEVER);
	tti_loop_release(&loop);
}

static int connect_to(void)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* Turns of the loop until so many connections are pending, or the time is over. */
static int turns(size_t pending, int64_t ms)
{
	const int64_t deadline_ns = tti_deadline(ms);
	int n = 0;

	while (acceptor.n != pending && tti_now_ns() < deadline_ns) {
		int64_t next_ns = tti_acceptor_expire(&acceptor);

		next_ns = next_ns < deadline_ns ? next_ns : deadline_ns;
		tti_loop_wait(&loop, tti_loop_left(next_ns));
		n++;
	}
	return n;
}

static void who_has_no_descriptor_left_waits_for_one(void **state)
{
	struct rlimit before, none;
	int client;

	(void)state;
	set_up();
	client = connect_to();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_in_range(turns(1, LOOK_MS), 2, LOOKS);
	assert_int_equal(acceptor.n, 0);
	assert_true(acceptor.starved);

	/* What waited is let in once there is one. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	(void)turns(1, 60000);
	assert_int_equal(acceptor.n, 1);

	close(client);
	tear_down();
}

/* A connection that has proven nothing yet makes room. */
static void the_oldest_that_proves_nothing_makes_room(void **state)
{
	struct rlimit before, none;
	int client[2];
	char byte;

	(void)state;
	set_up();
	client[0] = connect_to();
	(void)turns(1, 60000);
	client[1] = connect_to();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (acceptor.dropped == 0)
		tti_loop_wait(&loop, tti_loop_left(tti_acceptor_expire(&acceptor)));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	(void)turns(1, 60000);
	assert_int_equal(acceptor.n, 1);
	while (recv(client[0], &byte, 1, 0) > 0) /* what an acceptor says first */
		;
	close(client[0]);
	close(client[1]);
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_no_descriptor_left_waits_for_one),
		cmocka_unit_test(the_oldest_that_proves_nothing_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
