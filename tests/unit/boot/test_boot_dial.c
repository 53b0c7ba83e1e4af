/* SPDX-License-Identifier: BSD-3-Clause */
/* Dialling an acceptor: of several addresses the one that works is found fast, and who
 * does not belong there stays outside. */
#include "ranks.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/net/acceptor.h"
#include "boot/net/dial.h"
#include "util/fd.h"
#include "util/mem.h"

static const uint8_t secret[32] = { 5 };
static const uint8_t other[32] = { 6 };

/* An acceptor with a thread that serves it: it wants peers that want rank 3. */
struct house {
	struct tti_loop loop;
	struct tti_acceptor acceptor;
	uint16_t port;
	_Atomic int stop, nentered;
	struct tti_tunnel *tunnel;
	pthread_t thread;
};

static bool admit(void *self, enum tti_auth_kind kind, const struct tti_wire_who *who)
{
	(void)self;
	return kind == TTI_AUTH_PEER && who->to == 3;
}

static void on_accept(void *self, struct tti_tunnel *tunnel, enum tti_auth_kind kind,
		      const struct tti_wire_who *who)
{
	struct house *house = self;

	(void)kind;
	(void)who;
	tti_tunnel_close(&house->tunnel);
	house->tunnel = tunnel;
	house->nentered++;
}

static void *serve(void *self)
{
	struct house *house = self;

	while (!house->stop) {
		(void)tti_acceptor_expire(&house->acceptor);
		tti_loop_wait(&house->loop, 5);
	}
	return NULL;
}

static void open_house(struct house *house, size_t most)
{
	memset(house, 0, sizeof(*house));
	house->acceptor = (struct tti_acceptor){ .loop = &house->loop,
						 .secret = secret,
						 .most = most,
						 .self = house,
						 .admit = admit,
						 .on_accept = on_accept };
	CHECK_OK(tti_listen(&house->port, 64, &house->acceptor.listen_fd));
	CHECK_OK(tti_loop_init(&house->loop));
	CHECK_OK(tti_acceptor_open(&house->acceptor));
	pthread_create(&house->thread, NULL, serve, house);
}

static void close_house(struct house *house)
{
	house->stop = 1;
	pthread_join(house->thread, NULL);
	tti_acceptor_close(&house->acceptor);
	tti_loop_release(&house->loop);
	tti_tunnel_close(&house->tunnel);
}

static struct tti_addr loopback(uint16_t port)
{
	return (struct tti_addr){ .family = 4, .port = htons(port), .ip = { 127, 0, 0, 1 } };
}

static void heard(void *self)
{
	(void)self;
}

/* Until it is connected or has failed. */
static tutti_status run(const struct tti_dial_config *config, struct tti_tunnel **out)
{
	struct tti_dial_config own = *config;
	struct tti_dial *dialer = NULL;
	tutti_status status;
	struct tti_loop loop;
	int64_t again_ns;

	own.on_ready = heard;
	CHECK_OK(tti_loop_init(&loop));
	CHECK_OK(tti_dial_start(&loop, &own, &dialer));
	while ((status = tti_dial_step(dialer, out, &again_ns)) == TUTTI_AGAIN)
		tti_loop_wait(&loop, tti_left_ms(again_ns, 60000));
	tti_dial_stop(dialer);
	tti_loop_release(&loop);
	return status;
}

static tutti_status dial(const struct tti_addr *addrs, size_t n, const uint8_t *key, int to,
			 int timeout_ms, bool once)
{
	const struct tti_dial_config config = {
		.addrs = addrs,
		.naddrs = n,
		.kind = TTI_AUTH_PEER,
		.secret = key,
		.who = { 1, to, 8, 0 },
		.deadline_ns = tti_deadline(timeout_ms),
		.give_up_ns = once ? 0 : TTI_NEVER,
	};
	struct tti_tunnel *tunnel = NULL;
	const tutti_status status = run(&config, &tunnel);

	assert_int_equal(status == TUTTI_OK, tunnel != NULL);
	tti_tunnel_close(&tunnel);
	return status;
}

/* A port where connecting gets no answer: its backlog is full. */
static uint16_t hole(int *fds, int nfds)
{
	uint16_t port = 0;

	CHECK_OK(tti_listen(&port, 0, &fds[0]));
	for (int i = 1; i < nfds; i++) {
		struct sockaddr_storage to;
		const struct tti_addr addr = loopback(port);
		const socklen_t len = tti_addr_to_sock(&addr, &to);

		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(fds[i], (struct sockaddr *)&to, len);
	}
	usleep(10000);
	return port;
}

static void what_does_not_answer_costs_little(void **state)
{
	struct house house;
	struct tti_addr addrs[3];
	int fds[6];
	int64_t start_ns;

	(void)state;
	open_house(&house, 100);
	addrs[0] = addrs[1] = loopback(hole(fds, 6));
	addrs[2] = loopback(house.port);
	start_ns = tti_now_ns();
	CHECK_OK(dial(addrs, 3, secret, 3, 20000, true));
	assert_in_range((tti_now_ns() - start_ns) / TTI_NS_PER_MS, 150, 15000);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
	for (int i = 0; i < 4000 && house.nentered < 1; i++)
		usleep(5000);
	assert_int_equal(house.nentered, 1);
	close_house(&house);
}

static void all_that_failed_is_said(void **state)
{
	struct house house;
	struct tti_addr addrs[2];

	(void)state;
	open_house(&house, 100);
	addrs[0] = loopback(1);
	addrs[1] = loopback(house.port);
	assert_int_equal(dial(addrs, 2, other, 3, 60000, true), TUTTI_EPEER);
	assert_non_null(strstr(tti_error_text(), "127.0.0.1:1: Connection refused"));
	assert_non_null(strstr(tti_error_text(), "another secret"));
	assert_int_equal(dial(addrs, 2, secret, 4, 60000, true), TUTTI_EPEER);
	assert_non_null(strstr(tti_error_text(), "another rank"));
	assert_int_equal(dial(addrs, 1, secret, 3, 200, false), TUTTI_ETIMEOUT);
	assert_int_equal(dial(addrs, 0, secret, 3, 200, true), TUTTI_EPEER);
	assert_int_equal(house.nentered, 0);
	close_house(&house);
	assert_int_equal(house.acceptor.dropped, 2);
}

static int nheard;

static void handle(struct tti_event_handler *handler, uint32_t events)
{
	(void)handler;
	(void)events;
	nheard++;
}

/* As a child of fork() has it. */
static void nothing_is_heard_of_what_is_closed(void **state)
{
	struct tti_event_handler *handler = tti_zalloc(sizeof(*handler));
	struct tti_loop loop;
	int fds[2], copy;

	(void)state;
	CHECK_OK(tti_loop_init(&loop));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	copy = dup(fds[0]);
	handler->handle = handle;
	CHECK_OK(tti_loop_add(&loop, fds[0], EPOLLIN, handler));
	assert_int_equal(write(fds[1], "a", 1), 1);
	tti_loop_wait(&loop, 1000);
	assert_int_equal(nheard, 1);
	tti_loop_close(&loop, &fds[0]);
	assert_int_equal(fds[0], -1);
	tti_loop_wait(&loop, 10);
	assert_int_equal(nheard, 1);
	tti_loop_free_later(&loop, handler);
	tti_loop_release(&loop);
	close(fds[1]);
	close(copy);
}

/* Lets in whoever comes and closes, for a while; then nobody listens any more. Nobody else can, either. */
static void *close_up(void *self)
{
	struct pollfd door = { .fd = *(int *)self, .events = POLLIN };
	const int64_t end_ns = tti_deadline(100);

	while (tti_now_ns() < end_ns) {
		if (poll(&door, 1, 5) > 0)
			close(accept(door.fd, NULL, NULL));
	}
	shutdown(door.fd, SHUT_RDWR);
	return NULL;
}

/* On a port that was asked for, which the system does not give to others while the descriptor is open. */
static uint16_t listen_and_keep(int *fd)
{
	uint16_t port;

	do {
		port = 0;
		CHECK_OK(tti_listen(&port, 64, fd));
		close(*fd);
	} while (tti_listen(&port, 64, fd) != TUTTI_OK);
	return port;
}

/* Whatever the other addresses do. */
static void a_proven_address_that_refuses_says_it_all(void **state)
{
	struct tti_addr addrs[2];
	pthread_t thread;
	int fds[6], fd;

	(void)state;
	addrs[0] = loopback(listen_and_keep(&fd));
	addrs[1] = loopback(hole(fds, 6));
	for (int round = 0; round < 2; round++) {
		struct tti_dial_config config = { .addrs = addrs,
						  .naddrs = 2,
						  .nproven = 1,
						  .kind = TTI_AUTH_PEER,
						  .secret = secret,
						  .who = { 1, 3, 8, 0 },
						  .deadline_ns = tti_deadline(20000),
						  .give_up_ns = TTI_NEVER };
		const int64_t start_ns = tti_now_ns();
		struct tti_tunnel *out = NULL;

		if (round == 0)
			pthread_create(&thread, NULL, close_up, &fd);
		assert_int_equal(run(&config, &out), TUTTI_EPEER);
		assert_non_null(strstr(tti_error_text(), "Connection refused"));
		assert_in_range((tti_now_ns() - start_ns) / TTI_NS_PER_MS, round ? 0 : 90, 15000);
		if (round == 0)
			pthread_join(thread, NULL);
	}
	close(fd);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
}

/* 127.0.0.1 is on every host: a refusal there says nothing of a peer that has another address. */
static void who_is_elsewhere_does_not_refuse_here(void **state)
{
	/* Without a scope there is no way to it. */
	const struct tti_addr addrs[2] = {
		loopback(1), { .family = 6, .port = 1, .ip = { 0xfe, 0x80, [15] = 1 } }
	};
	struct tti_loop loop;

	(void)state;
	CHECK_OK(tti_loop_init(&loop));
	for (size_t n = 1; n <= 2; n++) {
		const struct tti_dial_config config = { .addrs = addrs,
							.naddrs = n,
							.kind = TTI_AUTH_PEER,
							.secret = secret,
							.who = { 1, 3, 8, 0 },
							.deadline_ns = tti_deadline(20000) };
		tutti_status status = TUTTI_AGAIN;
		struct tti_dial *dial;
		int64_t again_ns;
		struct tti_tunnel *tunnel = NULL;

		CHECK_OK(tti_dial_start(&loop, &config, &dial));
		while (status == TUTTI_AGAIN) {
			usleep(1000);
			status = tti_dial_step(dial, &tunnel, &again_ns);
		}
		assert_int_equal(status, TUTTI_EPEER);
		assert_int_equal(tti_dial_is_refused(dial), n == 1);
		tti_dial_stop(dial);
	}
	tti_loop_release(&loop);
}

/* A port that was closed may be given to another job, or to another rank of this one. Only where the
 * peer is known to have listened before: a root by hand may be yet to come. */
static void who_lives_at_the_address_now_is_not_the_peer(void **state)
{
	struct house house;
	struct tti_addr addr;
	struct tti_loop loop;

	(void)state;
	open_house(&house, 8);
	addr = loopback(house.port);
	CHECK_OK(tti_loop_init(&loop));
	for (int i = 0; i < 6; i++) {
		const bool listened = i < 4;
		const struct tti_dial_config config = {
			.addrs = &addr,
			.naddrs = 1,
			.kind = i < 2 ? TTI_AUTH_PEER : TTI_AUTH_ROOT,
			.secret = i & 1 ? other : secret,
			.who = { 1, 4, 8, 0 },
			.deadline_ns = tti_deadline(20000),
			.give_up_ns = listened ? TTI_NEVER : 0,
			.listens = listened,
			.on_ready = heard,
		};
		tutti_status status = TUTTI_AGAIN;
		struct tti_dial *dial;
		int64_t again_ns;
		struct tti_tunnel *tunnel = NULL;

		CHECK_OK(tti_dial_start(&loop, &config, &dial));
		while ((status = tti_dial_step(dial, &tunnel, &again_ns)) == TUTTI_AGAIN)
			tti_loop_wait(&loop, tti_left_ms(again_ns, 60000));
		assert_int_equal(status, TUTTI_EPEER);
		assert_int_equal(tti_dial_is_refused(dial), listened);
		tti_dial_stop(dial);
	}
	tti_loop_release(&loop);
	close_house(&house);
}

/* Those who prove nothing fill the house; the oldest goes, a friend gets in. */
static void the_oldest_stranger_goes(void **state)
{
	struct house house;
	struct tti_addr addr;
	struct sockaddr_storage to;
	int fds[20];
	char c;

	(void)state;
	open_house(&house, 8);
	addr = loopback(house.port);
	for (int i = 0; i < 20; i++) {
		const socklen_t len = tti_addr_to_sock(&addr, &to);

		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&to, len), 0);
	}
	assert_int_equal(recv(fds[0], &c, 1, 0), 0);
	CHECK_OK(dial(&addr, 1, secret, 3, 60000, true));
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	close_house(&house);
	assert_true(house.acceptor.dropped >= 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_answer_costs_little),
		cmocka_unit_test(all_that_failed_is_said),
		cmocka_unit_test(nothing_is_heard_of_what_is_closed),
		cmocka_unit_test(a_proven_address_that_refuses_says_it_all),
		cmocka_unit_test(who_is_elsewhere_does_not_refuse_here),
		cmocka_unit_test(who_lives_at_the_address_now_is_not_the_peer),
		cmocka_unit_test(the_oldest_stranger_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
