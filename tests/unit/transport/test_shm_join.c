/* SPDX-License-Identifier: BSD-3-Clause */
/* Who shares memory with whom, and what may go wrong on the way there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "boot/net/auth.h"
#include "shm_world.h"
#include "util/fault.h"
#include "util/fd.h"

/* A word to every rank of the own domain, and one from each. */
static void greet(struct world *world, struct tti_port *port)
{
	struct tti_link *link;
	size_t nbytes;
	uint64_t tag;

	for (int round = 0; round < 2; round++)
		for (int peer = 0; peer < world->n; peer++) {
			if (peer == port->rank || !world->domain[peer] ||
			    world->domain[peer] != world->domain[port->rank])
				continue;
			CHECK(tti_transport_shm.connect(port, peer, &link) == TUTTI_OK);
			if (round == 0) {
				CHECK(link->ops->reserve(link, 0, 0));
				link->ops->commit(link, 0, (uint64_t)(port->rank + 7));
				continue;
			}
			while (!link->ops->peek(link, &nbytes, &tag))
				sched_yield();
			CHECK(tag == (uint64_t)(peer + 7) && nbytes == 0);
			link->ops->release(link);
		}
}

static void host_ids_make_hosts(void **state)
{
	const uint64_t expected[] = { 1, 2, 1, 2, 1, 0 };
	struct world *const world = world_create(6, greet);

	(void)state;
	for (int rank = 0; rank < 5; rank++)
		world->host_id[rank] = rank % 2 ? "a" : "b";
	world_run_threads(world); /* and rank 5 has no id: it is alone */
	assert_memory_equal(world->domain, expected, sizeof(expected));
	world_free(world);
}

static void leave_alone(struct world *world, int rank)
{
	(void)world;
	if (rank == 2)
		CHECK(!unshare(CLONE_NEWNET));
}

static void other_network_namespaces_are_other_domains(void **state)
{
	const uint64_t expected[] = { 1, 1, 0, 1 };
	struct world *world;

	(void)state;
	if (geteuid() != 0)
		skip();
	world = world_create(4, greet);
	world_run_processes(world, leave_alone);
	assert_memory_equal(world->domain, expected, sizeof(expected));
	world_free(world);
}

/* The lowest rank is the one elsewhere, so another one leads. */
static void leave_namespace_of_the_first(struct world *world, int rank)
{
	(void)world;
	if (rank == 0)
		CHECK(!unshare(CLONE_NEWNET));
}

static void any_rank_may_lead(void **state)
{
	const uint64_t expected[] = { 0, 2, 2 };
	struct world *world;

	(void)state;
	if (geteuid() != 0)
		skip();
	world = world_create(3, greet);
	world_run_processes(world, leave_namespace_of_the_first);
	assert_memory_equal(world->domain, expected, sizeof(expected));
	world_free(world);
}

static void become_another_user(struct world *world, int rank)
{
	(void)world;
	if (rank == 1)
		CHECK(!seteuid(12345));
}

static void other_users_are_other_domains(void **state)
{
	const uint64_t expected[] = { 1, 0, 1 };
	struct world *world;

	(void)state;
	if (geteuid() != 0)
		skip();
	world = world_create(3, greet);
	world_run_processes(world, become_another_user);
	assert_memory_equal(world->domain, expected, sizeof(expected));
	world_free(world);
}

static void one_rank_is_alone(void **state)
{
	struct world *const world = world_create(1, NULL);

	(void)state;
	world->domain[0] = 5;
	world_run_threads(world);
	assert_int_equal(world->domain[0], 0);
	world_free(world);
}

static void the_most_modest_slots_win(struct world *world, struct tti_port *port)
{
	struct tti_link *link;

	CHECK(port->slot_bytes == 4096);
	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &link) == TUTTI_OK);
	CHECK(((struct tti_shm_port *)port)->seg.layout.slots == 2);
	CHECK(((struct tti_shm_link *)link)->tx_room.slots == 2);
	CHECK(link->ops->reserve(link, 4096, 0));
	world_sync(world);
}

static void *modest_thread(void *arg)
{
	struct world_rank *const self = arg;
	struct world *const world = self->world;
	struct tti_port_config config = world_config(world, self->rank);
	struct tti_port *port = NULL;

	config.slot_bytes = self->rank ? 4096 : 65536;
	config.slots = self->rank ? 8 : 2;
	CHECK(tti_transport_shm.open(&config, &port, &world->cards[self->rank]) == TUTTI_OK);
	world_sync(world);
	CHECK(tti_transport_shm.join(port, world->cards, &world->domain[self->rank]) == TUTTI_OK);
	the_most_modest_slots_win(world, port);
	tti_transport_shm.shutdown(port);
	return NULL;
}

static void different_slots_are_settled(void **state)
{
	struct world *const world = world_create(2, NULL);
	struct world_rank ranks[2];

	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		ranks[rank] = (struct world_rank){ .world = world, .rank = rank };
		CHECK(!pthread_create(&ranks[rank].thread, NULL, modest_thread, &ranks[rank]));
	}
	for (int rank = 0; rank < 2; rank++)
		pthread_join(ranks[rank].thread, NULL);
	world_free(world);
}

/* -- Trouble --------------------------------------------------------------- */

static void join_fails(struct world *world, struct tti_port *port)
{
	const int64_t begin = tti_now_ns();
	const tutti_status st =
		tti_transport_shm.join(port, world->cards, &world->domain[port->rank]);

	CHECK(st != TUTTI_OK && st != TUTTI_ETIMEOUT);
	CHECK(port->failed_peer == 1 - port->rank);
	CHECK(tti_now_ns() - begin < 10000 * TTI_NS_PER_MS);
}

static void another_secret_is_not_let_in(void **state)
{
	struct world *const world = world_create(2, join_fails);

	(void)state;
	world->own_join = true;
	world->secret[1][0] = 1;
	world_run_threads(world);
	world_free(world);
}

static void only_one_joins(struct world *world, struct tti_port *port)
{
	const int absent = world->start ? 0 : 1;

	if (port->rank != absent)
		CHECK(tti_transport_shm.join(port, world->cards, &world->domain[0]) ==
		      TUTTI_ETIMEOUT);
	world_sync(world);
}

static void a_missing_rank_is_waited_for_until_the_deadline(void **state)
{
	(void)state;
	for (uint32_t absent = 0; absent < 2; absent++) {
		struct world *const world = world_create(2, only_one_joins);

		world->own_join = true;
		world->start = absent;
		world->timeout_ms = 150;
		world_run_threads(world);
		world_free(world);
	}
}

/* Any of them may notice first that it is to stop; to the others it is as if it had died. */
static void stopped(struct world *world, struct tti_port *port)
{
	if (port->rank == 2) {
		usleep(1000 * world->start);
		world->stop = 1;
		world_sync(world);
		return;
	}
	/* Rank 0 waits for rank 2, when rank 1 may be through already. */
	const tutti_status st =
		tti_transport_shm.join(port, world->cards, &world->domain[port->rank]);

	CHECK(st == TUTTI_EABORTED || (port->rank == 1 && st == TUTTI_OK));
	CHECK(port->rank || world->stop);
	world_sync(world);
}

static void stop_ends_waiting(void **state)
{
	(void)state;
	for (uint32_t after_ms = 0; after_ms < 50; after_ms++) {
		struct world *const world = world_create(3, stopped);
		const int64_t begin = tti_now_ns();

		world->own_join = true;
		world->start = after_ms % 10 ? after_ms % 10 : after_ms;
		world_run_threads(world);
		assert_true(tti_now_ns() - begin < 10000 * TTI_NS_PER_MS);
		world_free(world);
	}
}

/* A rank that is gone before it joins, or dies in the middle of it. */
static void left_before_join(struct world *world, struct tti_port *port)
{
	if (port->rank == (int)world->start) {
		tti_transport_shm.shutdown(port);
		world_sync(world);
		world_sync(world);
		_exit(0);
	}
	world_sync(world);
	CHECK(tti_transport_shm.join(port, world->cards, &world->domain[port->rank]) == TUTTI_OK);
	world_sync(world);
}

static void a_rank_that_left_is_not_in_the_domain(void **state)
{
	(void)state;
	for (uint32_t left = 0; left < 3; left++) {
		struct world *const world = world_create(3, left_before_join);

		world->own_join = true;
		world->start = left;
		world->domain[left] = 0;
		world_run_processes(world, NULL);
		for (uint32_t rank = 0; rank < 3; rank++)
			assert_int_equal(world->domain[rank], rank == left ? 0 : left ? 1 : 2);
		world_free(world);
	}
}

static int connect_to(const struct tti_card *cards, int rank)
{
	const struct tti_shm_card card = tti_shm_card_get(cards, rank);
	int fd = -1;

	CHECK(tti_shm_reach(card.name, &fd) == TUTTI_OK && fd >= 0);
	return fd;
}

/* Strangers at every rank's socket: mute, talking nonsense, gone at once, too many,
 * and one who knows the secret but is not who it says. */
static void besieged(struct world *world, struct tti_port *port)
{
	static const char nonsense[200] = "GET / HTTP/1.1\r\n\r\n";
	int fds[64];
	int n = 0;

	for (int peer = 0; peer < world->n; peer++)
		for (int k = 0; k < 12; k++) {
			fds[n] = connect_to(world->cards, peer);
			if (k % 3 == 1)
				CHECK(send(fds[n], nonsense, sizeof(nonsense), MSG_NOSIGNAL) > 0);
			if (k % 3 == 2)
				close(fds[n]);
			else
				n++;
		}
	world_sync(world);
	CHECK(tti_transport_shm.join(port, world->cards, &world->domain[port->rank]) == TUTTI_OK);
	world_sync(world);
	greet(world, port);
	while (n)
		close(fds[--n]);
}

static void strangers_do_not_disturb(void **state)
{
	struct world *const world = world_create(3, besieged);

	(void)state;
	world->own_join = true;
	world_run_threads(world);
	for (int rank = 0; rank < 3; rank++)
		assert_int_equal(world->domain[rank], 1);
	world_free(world);
}

static _Atomic bool was_turned_away;

static void *pretend(void *arg)
{
	struct world *const world = arg;
	const uint32_t claim[2] = { 2, 1 };
	struct tti_auth auth;
	int fd = connect_to(world->cards, 1);
	uint8_t byte;

	tti_auth_init(&auth, true, TTI_AUTH_SHM, world->secret[2], claim, sizeof(claim));
	CHECK(tti_auth_run(&auth, fd, tti_deadline(30000), NULL) == TUTTI_OK);
	CHECK(tti_fd_recv_all(fd, &byte, 1, tti_deadline(30000), NULL) == TUTTI_EPEER);
	close(fd);
	atomic_store(&was_turned_away, true);
	return NULL;
}

static void impostor(struct world *world, struct tti_port *port)
{
	pthread_t thread;

	if (port->rank == 2)
		CHECK(!pthread_create(&thread, NULL, pretend, world));
	/* Rank 1 hears as long as it waits for the others. */
	while (port->rank != 1 && !atomic_load(&was_turned_away))
		nap_ms(1);
	CHECK(tti_transport_shm.join(port, world->cards, &world->domain[port->rank]) == TUTTI_OK);
	if (port->rank == 2)
		pthread_join(thread, NULL);
	world_sync(world);
	greet(world, port);
}

static void a_rank_that_is_not_the_leader_is_turned_away(void **state)
{
	struct world *const world = world_create(3, impostor);

	(void)state;
	was_turned_away = false;
	world->own_join = true;
	world_run_threads(world);
	world_free(world);
}

static void cards_that_lie(struct world *world, struct tti_port *port)
{
	if (port->rank == 0) {
		struct tti_shm_card card = tti_shm_card_get(world->cards, 1);

		card.slots = world->start == 0 ? 0 : 1u << 31;
		card.slot_bytes = world->start < 2 ? card.slot_bytes : SIZE_MAX;
		memcpy(world->cards[1].bytes, &card, sizeof(card));
	}
	world_sync(world);
	if (port->rank == 0)
		CHECK(tti_transport_shm.join(port, world->cards, &world->domain[0]) ==
		      TUTTI_EPROTO);
	world_sync(world);
}

static void broken_cards_are_refused(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < 3; kind++) {
		struct world *const world = world_create(2, cards_that_lie);

		world->own_join = true;
		world->start = kind;
		world_run_threads(world);
		world_free(world);
	}
}

/* -- Faults ---------------------------------------------------------------- */

/* Everything may fail once: an error or success on each rank, nothing left over. */
static void *faulty_thread(void *arg)
{
	struct world_rank *const self = arg;
	struct world *const world = self->world;
	const struct tti_port_config config = world_config(world, self->rank);
	struct tti_port *port = NULL;
	struct tti_link *link;
	tutti_status st;

	st = tti_transport_shm.open(&config, &port, &world->cards[self->rank]);
	CHECK(st == TUTTI_OK || !port);
	if (st != TUTTI_OK)
		world->stop = 1;
	world_sync(world);
	if (port && !world->stop) {
		st = tti_transport_shm.join(port, world->cards, &world->domain[self->rank]);
		if (st == TUTTI_OK)
			st = tti_transport_shm.connect(port, 1 - self->rank, &link);
	}
	CHECK(st <= 0);
	CHECK(st == TUTTI_OK || *tti_error_text());
	tti_transport_shm.shutdown(port);
	return NULL;
}

static void run_faulty(const char *fault)
{
	struct world *const world = world_create(2, NULL);
	struct world_rank ranks[2];

	world->timeout_ms = 2000;
	tti_fault_set(fault);
	for (int rank = 0; rank < 2; rank++) {
		ranks[rank] = (struct world_rank){ .world = world, .rank = rank };
		CHECK(!pthread_create(&ranks[rank].thread, NULL, faulty_thread, &ranks[rank]));
	}
	for (int rank = 0; rank < 2; rank++)
		pthread_join(ranks[rank].thread, NULL);
	tti_fault_set(NULL);
	world_free(world);
}

static void failures_are_errors_and_leave_nothing(void **state)
{
	static const char *const points[] = { "mem", "shm.socket", "shm.mmap", "shm.memfd" };
	const int before = count_fds();

	(void)state;
	run_faulty(NULL);
	assert_int_equal(count_fds(), before);
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		for (int pass = 1; pass <= 12; pass++) {
			char fault[32];

			snprintf(fault, sizeof(fault), "%s:%d", points[i], pass);
			run_faulty(fault);
			assert_int_equal(count_fds(), before);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_ids_make_hosts),
		cmocka_unit_test(other_network_namespaces_are_other_domains),
		cmocka_unit_test(any_rank_may_lead),
		cmocka_unit_test(other_users_are_other_domains),
		cmocka_unit_test(one_rank_is_alone),
		cmocka_unit_test(different_slots_are_settled),
		cmocka_unit_test(another_secret_is_not_let_in),
		cmocka_unit_test(a_missing_rank_is_waited_for_until_the_deadline),
		cmocka_unit_test(stop_ends_waiting),
		cmocka_unit_test(a_rank_that_left_is_not_in_the_domain),
		cmocka_unit_test(strangers_do_not_disturb),
		cmocka_unit_test(a_rank_that_is_not_the_leader_is_turned_away),
		cmocka_unit_test(broken_cards_are_refused),
		cmocka_unit_test(failures_are_errors_and_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
