/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP links: messages, credits, order, what is unsent, sleeping. */
#include "unit/transport/tcp_world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"
#include "util/fault.h"

static const size_t SIZES[] = { 0,    1,    7,    8,    31,   32,   33,   255,   256,  257,
				1000, 4063, 4064, 4065, 4096, 8191, 9000, 65535, 65536 };
#define NSIZES (sizeof(SIZES) / sizeof(SIZES[0]))
#define SLOT   65536

/* Straight from memory that is something else right after. */
static bool put_straight(struct tti_link *link, size_t nbytes, uint64_t seed)
{
	static uint8_t data[SLOT];
	bool sent;

	pattern_fill(data, nbytes, seed);
	sent = link->ops->send(link, data, nbytes, seed ^ 0xabcdef);
	memset(data, 0xee, sizeof(data));
	return sent;
}

/* Two of three straight, as far as that is taken. */
static bool put_either(struct tti_link *link, uint64_t seq, int *straight)
{
	const size_t nbytes = SIZES[seq % NSIZES];

	if (seq % 3 && put_straight(link, nbytes, seq)) {
		++*straight;
		return true;
	}
	return put(link, nbytes, seq);
}

/* Messages of all sizes both ways at once, each side as fast as credits allow. */
static int exchange(struct world *world, uint64_t messages)
{
	int straight = 0;
	uint64_t put_by[2] = { 0 }, taken_by[2] = { 0 };
	const int64_t deadline = tti_deadline(30000);

	while (taken_by[0] < messages || taken_by[1] < messages) {
		for (int me = 0; me < 2; me++) {
			struct tti_link *link = world->link[me][1 - me];

			while (put_by[me] < messages && put_either(link, put_by[me], &straight))
				put_by[me]++;
			while (taken_by[me] < messages &&
			       take(link, SIZES[taken_by[me] % NSIZES], taken_by[me]))
				taken_by[me]++;
			assert_int_equal(world->port[me]->failure, TUTTI_OK);
		}
		world_progress(world);
		assert_true(tti_now_ns() < deadline);
	}
	return straight;
}

/* As between hosts with one NIC each; however many there are here. */
static void allow_straight(struct world *world, bool single)
{
	for (int me = 0; me < 2; me++) {
		struct tti_tcp_link *link = (struct tti_tcp_link *)world->link[me][1 - me];

		assert_true(single || !link->single);
		link->single = single;
	}
}

static void moves_all_sizes_in_order(void **state)
{
	static const int slots[] = { 1, 2, 3, 8, 64 }, sockets[] = { 1, 2, 4, 16 };
	struct world world;

	(void)state;
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		for (size_t k = 0; k < sizeof(sockets) / sizeof(sockets[0]); k++) {
			world_pair(&world, slots[i], SLOT, sockets[k]);
			allow_straight(&world, sockets[k] == 1);
			assert_int_equal(exchange(&world, 100) > 0, sockets[k] == 1);
			while (world.port[0]->unsent || world.port[1]->unsent)
				world_progress(&world);
			world_end(&world);
		}
	}
}

/* Sockets that take a few KB at a time: every frame is cut somewhere. */
static void survives_partial_writes(void **state)
{
	struct world world;

	(void)state;
	for (int sockets = 1; sockets <= 4; sockets *= 2) {
		world_open(&world, 2, 8, SLOT, sockets);
		world.options.sndbuf = 1;
		world_start(&world);
		world_join(&world);
		world_link(&world, 0, 1);
		allow_straight(&world, sockets == 1);
		(void)exchange(&world, 60);
		world_end(&world);
	}
}

static void lends_no_more_than_slots(void **state)
{
	const int64_t deadline = tti_deadline(60000);
	struct world world;

	(void)state;
	for (int slots = 1; slots <= 8; slots *= 2) {
		world_pair(&world, slots, 4096, 1);
		for (int i = 0; i < slots; i++)
			assert_true(put(world.link[0][1], 8, (uint64_t)i));
		for (int i = 0; i < 100; i++) {
			world_progress(&world);
			assert_null(world.link[0][1]->ops->reserve(world.link[0][1], 8, 0));
		}
		/* Half of them given back must be enough to go on. */
		for (int i = 0; i < (slots > 1 ? slots / 2 : 1); i++)
			take_soon(&world, world.link[1][0], 8, (uint64_t)i);
		while (!put(world.link[0][1], 8, (uint64_t)slots)) {
			world_progress(&world);
			assert_true(tti_now_ns() < deadline);
		}
		world_end(&world);
	}
}

/* port->unsent is what the system has not taken, to the byte. */
static void counts_what_is_unsent(void **state)
{
	struct world world;
	size_t before;

	(void)state;
	world_open(&world, 2, 64, SLOT, 1);
	world.options.sndbuf = 1;
	world_start(&world);
	world_join(&world);
	world_link(&world, 0, 1);
	assert_int_equal(world.port[0]->unsent, 0);
	assert_true(put(world.link[0][1], 8, 0));
	assert_int_equal(world.port[0]->unsent, 0);
	/* More than all buffers hold, and nobody reads. */
	for (uint64_t i = 1; i < 64; i++)
		assert_true(put(world.link[0][1], SLOT, i));
	assert_true(world.port[0]->unsent > 0);
	before = world.port[0]->unsent;
	assert_null(world.link[0][1]->ops->reserve(world.link[0][1], SLOT, 0));
	assert_int_equal(world.port[0]->unsent, before);
	take_soon(&world, world.link[1][0], 8, 0);
	for (uint64_t i = 1; i < 64; i++)
		take_soon(&world, world.link[1][0], SLOT, i);
	assert_int_equal(world.port[0]->unsent, 0);
	world_end(&world);
}

static void nothing_comes_of_nothing(void **state)
{
	struct world world;
	size_t nbytes;
	uint64_t tag;

	(void)state;
	world_pair(&world, 2, 4096, 1);
	for (int i = 0; i < 1000; i++) {
		world_progress(&world);
		assert_null(world.link[1][0]->ops->peek(world.link[1][0], &nbytes, &tag));
	}
	assert_null(world.link[0][1]->ops->reserve(world.link[0][1], 4097, 0));
	assert_int_equal(world.port[0]->failure, TUTTI_OK);
	world_end(&world);
}

/* -- Threads --------------------------------------------------------------- */

struct rank {
	struct world *world;
	pthread_barrier_t *through;
	int rank;
	uint64_t messages;
	bool ok;
};

static bool all_links(struct world *world, int rank)
{
	const int64_t deadline = tti_deadline(100000);

	for (int peer = 0; peer < world->n; peer++) {
		tutti_status status = TUTTI_AGAIN;

		while (peer != rank && status == TUTTI_AGAIN && tti_now_ns() < deadline) {
			status = tcp->connect(world->port[rank], peer, &world->link[rank][peer]);
			tcp->progress(world->port[rank]);
			if (status == TUTTI_AGAIN)
				tcp->sleep->wait(world->port[rank], 1000000);
		}
		if (peer != rank && status)
			return false;
	}
	return true;
}

/* All to all: every rank sends to all others and checks what it gets. */
static void *run_rank(void *arg)
{
	struct rank *self = arg;
	struct world *world = self->world;
	const int me = self->rank;
	uint64_t sent[WORLD_MOST] = { 0 }, got[WORLD_MOST] = { 0 };
	const int64_t deadline = tti_deadline(100000);
	const bool has_links = all_links(world, me);
	bool busy = true;

	while (has_links && busy && tti_now_ns() < deadline && !world->port[me]->failure) {
		bool moved = false;

		busy = world->port[me]->unsent > 0;
		for (int peer = 0; peer < world->n; peer++) {
			struct tti_link *link = world->link[me][peer];
			const uint64_t mine = (uint64_t)me * 1000, its = (uint64_t)peer * 1000;

			if (peer == me)
				continue;
			if (sent[peer] < self->messages &&
			    put(link, SIZES[sent[peer] % NSIZES], mine + sent[peer]))
				sent[peer]++, moved = true;
			if (got[peer] < self->messages &&
			    take(link, SIZES[got[peer] % NSIZES], its + got[peer]))
				got[peer]++, moved = true;
			busy |= sent[peer] < self->messages || got[peer] < self->messages;
		}
		tcp->progress(world->port[me]);
		if (!moved && busy)
			tcp->sleep->wait(world->port[me], 1000000);
	}
	self->ok = !busy;
	/* A rank that reads nothing for a second is not waited for. */
	pthread_barrier_wait(self->through);
	for (int peer = 0; peer < world->n; peer++)
		tcp->close(world->link[me][peer]);
	tcp->shutdown(world->port[me]);
	world->port[me] = NULL;
	return NULL;
}

static void run_threads(int n, int slots, int sockets, uint64_t messages)
{
	struct world world;
	pthread_t thread[WORLD_MOST];
	struct rank rank[WORLD_MOST];
	pthread_barrier_t through;

	world_open(&world, n, slots, SLOT, sockets);
	world_start(&world);
	world_join(&world);
	pthread_barrier_init(&through, NULL, (unsigned)n);
	for (int i = 0; i < n; i++) {
		rank[i] = (struct rank){ &world, &through, i, messages, false };
		assert_int_equal(pthread_create(&thread[i], NULL, run_rank, &rank[i]), 0);
	}
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&through);
	for (int i = 0; i < n; i++)
		assert_true(rank[i].ok);
}

static void threads_exchange_with_all(void **state)
{
	(void)state;
	for (int n = 2; n <= 8; n++)
		run_threads(n, n % 2 ? 2 : 8, n % 3 + 1, 40);
	run_threads(4, 1, 2, 40);
}

/* -- Sleeping -------------------------------------------------------------- */

static void *put_later(void *arg)
{
	struct world *world = arg;

	nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
	put(world->link[1][0], 8, 5);
	return NULL;
}

static void sleeps_until_something_comes(void **state)
{
	struct world world;
	pthread_t thread;
	int64_t begun, slept;

	(void)state;
	world_pair(&world, 4, 4096, 1);
	for (int i = 0; i < 20; i++)
		world_progress(&world);
	begun = tti_now_ns();
	tcp->sleep->wait(world.port[0], 20 * TTI_NS_PER_MS);
	slept = tti_now_ns() - begun;
	assert_in_range(slept, 15 * TTI_NS_PER_MS, 50000 * TTI_NS_PER_MS);

	begun = tti_now_ns();
	assert_int_equal(pthread_create(&thread, NULL, put_later, &world), 0);
	while (!take(world.link[0][1], 8, 5)) {
		tcp->sleep->wait(world.port[0], 50000 * TTI_NS_PER_MS);
		assert_true(tti_now_ns() - begun < 50000 * TTI_NS_PER_MS);
	}
	assert_in_range(tti_now_ns() - begun, 20 * TTI_NS_PER_MS, 40000 * TTI_NS_PER_MS);
	pthread_join(thread, NULL);
	world_end(&world);
}

/* -- Memory ---------------------------------------------------------------- */

static void no_memory_for_a_link_is_said(void **state)
{
	struct world world;
	struct tti_link *link;
	tutti_status status;

	(void)state;
	world_open(&world, 2, 4, SLOT, 1);
	world_start(&world);
	world_join(&world);
	tti_fault_set("tcp.mmap:1");
	do {
		status = tcp->connect(world.port[1], 0, &link);
		(void)!tcp->connect(world.port[0], 1, &link);
		world_progress(&world);
	} while (!world.port[0]->failure && !world.port[1]->failure);
	tti_fault_set(NULL);
	(void)status;
	assert_error_has("TUTTI_TCP_SLOT");
	world_end(&world);
}

/* Whatever allocation fails, opening and linking end with an error or work. */
static void any_allocation_may_fail(void **state)
{
	(void)state;
	for (int nth = 1; nth < 40; nth++) {
		struct world world;
		struct tti_link *link;
		char list[32];
		int64_t deadline;

		world_open(&world, 2, 4, 4096, 2);
		world_start(&world);
		snprintf(list, sizeof(list), "mem:%d", nth);
		tti_fault_set(list);
		for (int rank = 0; rank < 2; rank++) {
			uint64_t domain;

			if (tcp->join(world.port[rank], world.card, &domain))
				goto out;
		}
		deadline = tti_deadline(60000);
		while (tti_now_ns() < deadline) {
			const tutti_status a = tcp->connect(world.port[1], 0, &link);
			const tutti_status b = tcp->connect(world.port[0], 1, &link);

			world_progress(&world);
			if (a < 0 || b < 0 || (!a && !b))
				break;
		}
		assert_true(tti_now_ns() < deadline);
	out:
		tti_fault_set(NULL);
		world_end(&world);
	}
}

/* Each look takes a part of them only, or a flood of strangers would never let a call see its links
 * and its timeout. */
static void a_flood_is_let_in_by_and_by(void **state)
{
	enum { MOST = 64, FLOOD = 5 * MOST / 2 };
	const int64_t deadline = tti_deadline(20000);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct tti_tcp_port *port;
	struct world world;
	int fd[FLOOD];

	(void)state;
	world_open(&world, 1, 4, 4096, 1);
	world_start(&world);
	port = tti_tcp_port_of(world.port[0]);
	to.sin_port = htons(port->listen_port);
	for (int i = 0; i < FLOOD; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fd[i] >= 0);
		assert_int_equal(connect(fd[i], (struct sockaddr *)&to, sizeof(to)), 0);
	}
	while (port->rising.n < FLOOD) {
		const size_t before = port->rising.n;

		tti_tcp_poll(port, 0);
		assert_in_range(port->rising.n, before, before + MOST);
		assert_true(tti_now_ns() < deadline);
	}
	for (int i = 0; i < FLOOD; i++)
		close(fd[i]);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_all_sizes_in_order),
		cmocka_unit_test(survives_partial_writes),
		cmocka_unit_test(lends_no_more_than_slots),
		cmocka_unit_test(counts_what_is_unsent),
		cmocka_unit_test(nothing_comes_of_nothing),
		cmocka_unit_test(threads_exchange_with_all),
		cmocka_unit_test(sleeps_until_something_comes),
		cmocka_unit_test(no_memory_for_a_link_is_said),
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(a_flood_is_let_in_by_and_by),
	};

	/* All of it once more, with what is sent sealed. */
	return cmocka_run_group_tests_name("plain", tests, NULL, NULL) +
	       cmocka_run_group_tests_name("encrypted", tests, world_encrypt, NULL);
}
