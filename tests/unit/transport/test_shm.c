/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over shared memory: sizes, order, credits, wrap, fan-out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shm_world.h"
#include "support/pattern.h"

static uint64_t key_of(int from, int to, uint32_t k)
{
	return tti_hash_combine(tti_hash_combine((uint64_t)from, (uint64_t)to), k);
}

/* Every size where something changes, and others. */
static size_t size_of(const struct world *world, uint64_t key)
{
	const size_t edges[] = { 0, 1, 8, 47, 48, 49, 64, 4095, 4096, 4097, 8191 };
	const size_t pick = (size_t)(key % 16);
	size_t nbytes = (size_t)(key >> 8) % (world->slot_bytes + 1);

	if (pick < 11)
		nbytes = edges[pick];
	else if (pick == 11)
		nbytes = world->slot_bytes;
	return nbytes < world->slot_bytes ? nbytes : world->slot_bytes;
}

static bool try_send(const struct world *world, int rank, struct tti_link *link, uint32_t k)
{
	const uint64_t key = key_of(rank, link->peer, k);
	const size_t nbytes = size_of(world, key);
	void *const room = link->ops->reserve(link, nbytes, 0);

	if (!room)
		return false;
	CHECK(link->ops->reserve(link, nbytes, 0) == room);
	pattern_fill(room, nbytes, key);
	link->ops->commit(link, nbytes, key);
	return true;
}

static bool try_recv(const struct world *world, int rank, struct tti_link *link, uint32_t k)
{
	const uint64_t key = key_of(link->peer, rank, k);
	size_t nbytes = 0;
	uint64_t tag = 0;
	const void *const data = link->ops->peek(link, &nbytes, &tag);

	if (!data)
		return false;
	CHECK(link->ops->peek(link, &nbytes, &tag) == data);
	CHECK(tag == key);
	CHECK(nbytes == size_of(world, key));
	CHECK(pattern_is_in(data, nbytes, key));
	link->ops->release(link);
	return true;
}

static uint32_t nmessages = 500;

/* All to all, both directions at once. */
static void all_to_all(struct world *world, struct tti_port *port)
{
	const int rank = port->rank;
	uint32_t *const sent = calloc((size_t)world->n, sizeof(*sent));
	uint32_t *const received = calloc((size_t)world->n, sizeof(*received));
	struct tti_link **const links = calloc((size_t)world->n, sizeof(*links));
	uint64_t left = 2 * (uint64_t)(world->n - 1) * nmessages;
	int idle = 0;

	CHECK(sent && received && links);
	for (int peer = 0; peer < world->n; peer++)
		if (peer != rank)
			CHECK(tti_transport_shm.connect(port, peer, &links[peer]) == TUTTI_OK);
	while (left) {
		const uint64_t before = left;

		for (int peer = 0; peer < world->n; peer++) {
			if (peer == rank)
				continue;
			if (sent[peer] < nmessages &&
			    try_send(world, rank, links[peer], sent[peer])) {
				sent[peer]++;
				left--;
			}
			if (received[peer] < nmessages &&
			    try_recv(world, rank, links[peer], received[peer])) {
				received[peer]++;
				left--;
			}
		}
		CHECK(port->failure == TUTTI_OK && port->unsent == 0);
		if (left != before)
			idle = 0;
		else if (++idle < 20)
			sched_yield();
		else
			tti_transport_shm.sleep->wait(port, 100 * TTI_NS_PER_MS);
	}
	for (int peer = 0; peer < world->n; peer++)
		if (peer != rank)
			tti_transport_shm.close(links[peer]);
	free(sent);
	free(received);
	free(links);
}

static void run_all_to_all(int n, int slots, size_t slot_bytes, uint32_t start, bool processes)
{
	struct world *const world = world_create(n, all_to_all);

	world->slots = slots;
	world->slot_bytes = slot_bytes;
	world->start = start;
	if (processes)
		world_run_processes(world, NULL);
	else
		world_run_threads(world);
	for (int rank = 0; rank < n; rank++)
		assert_int_equal(world->domain[rank], 1);
	world_free(world);
}

static void threads_exchange_all_sizes_in_order(void **state)
{
	const int slots[] = { 1, 2, 3, 8, 64 };

	(void)state;
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		run_all_to_all(2, slots[i], 16384, 0, false);
	run_all_to_all(3, 2, 4096, 0, false);
	run_all_to_all(8, 4, 5000, 0, false);
}

static void processes_exchange_all_sizes_in_order(void **state)
{
	(void)state;
	run_all_to_all(2, 1, 65536, 0, true);
	run_all_to_all(5, 4, 16384, 0, true);
}

static void message_numbers_wrap(void **state)
{
	(void)state;
	run_all_to_all(2, 3, 4096, UINT32_MAX - 200, false);
	run_all_to_all(3, 4, 4096, UINT32_MAX - 65, false);
}

static void many_threads(void **state)
{
	const uint32_t kept = nmessages;

	(void)state;
	nmessages = 10;
	run_all_to_all(64, 2, 4096, 0, false);
	nmessages = kept;
}

static int nsent; /* of rank 0, read by rank 1 behind a barrier */

/* Nobody reads: a ring's worth of short messages fits, and of the longest at least `slots`, but
 * not many; of pieces of those as much together; what is read is room again. */
static void credits(struct world *world, struct tti_port *port)
{
	const size_t sizes[] = { 8, world->slot_bytes, 8192 };
	const size_t least[] = { TTI_SHM_RING, (size_t)world->slots,
				 (size_t)world->slots * world->slot_bytes / 8192 };
	struct tti_link *link;
	size_t nbytes;
	uint64_t tag;

	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &link) == TUTTI_OK);
	for (int kind = 0; kind < 3; kind++) {
		const size_t size = sizes[kind], whole = kind == 2 ? world->slot_bytes : size;
		int sent = 0;

		for (; port->rank == 0 && link->ops->reserve(link, size, whole); sent++)
			link->ops->commit(link, size, (uint64_t)sent);
		if (port->rank == 0)
			nsent = sent;
		CHECK(port->rank == 1 || ((size_t)sent >= least[kind] && sent <= TTI_SHM_RING));
		world_sync(world);
		for (int k = 0; port->rank == 1 && k < nsent; k++) {
			CHECK(link->ops->peek(link, &nbytes, &tag));
			CHECK(tag == (uint64_t)k && nbytes == size);
			link->ops->release(link);
		}
		CHECK(port->rank == 0 || !link->ops->peek(link, &nbytes, &tag));
		world_sync(world);
		CHECK(port->rank == 1 || link->ops->reserve(link, size, whole));
	}
	tti_transport_shm.close(link);
}

static void writers_stop_without_credit(void **state)
{
	(void)state;
	for (int slots = 1; slots < 6; slots++) {
		struct world *const world = world_create(2, credits);

		world->slots = slots;
		world->slot_bytes = 64 << 10;
		world_run_threads(world);
		world_free(world);
	}
}

/* With two slots, and nobody reading: 16 short messages of a link, and 16 to all. */
static void run_ahead(struct world *world, struct tti_port *port)
{
	const struct tti_fanout_ops *const fanout = tti_transport_shm.fanout;
	struct tti_link *link;
	size_t nbytes;
	uint64_t tag;

	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &link) == TUTTI_OK);
	for (uint64_t k = 0; port->rank == 0 && k < 32; k++) {
		void *const room = k % 2 ? fanout->reserve(port, &link, 1, 200 + k)
					 : link->ops->reserve(link, 200 + k, 0);

		CHECK(room);
		pattern_fill(room, 200 + k, k);
		if (k % 2)
			fanout->commit(port, &link, 1, 200 + k, k);
		else
			link->ops->commit(link, 200 + k, k);
	}
	world_sync(world);
	for (uint64_t k = 0; port->rank == 1 && k < 32; k++) {
		const void *const data = link->ops->peek(link, &nbytes, &tag);

		CHECK(data && tag == k && nbytes == 200 + k && pattern_is_in(data, nbytes, k));
		link->ops->release(link);
	}
	world_sync(world);
	CHECK(port->rank == 1 || link->ops->all_released(link));
}

static void short_messages_do_not_wait_for_slots(void **state)
{
	struct world *const world = world_create(2, run_ahead);

	(void)state;
	world->slots = 2;
	world->start = UINT32_MAX - 10;
	world_run_threads(world);
	world_free(world);
}

/* Rank 0 fans out to all; rank 1 is slow and keeps each message a while. Every
 * third message goes over the links one by one, out of line order with the rest. */
#define NFANOUT 300

/* Whether what is for all is a line that all read. */
static bool in_one_line;

static void fan_out_root(struct world *world, struct tti_port *port, struct tti_link **links)
{
	const struct tti_fanout_ops *const fanout = tti_transport_shm.fanout;
	const int n = world->n - 1;
	int refused = 0;

	for (uint32_t k = 0; k < NFANOUT; k++) {
		const uint64_t key = key_of(0, 0, k);
		const size_t nbytes = size_of(world, key);

		for (int i = 0; k % 3 == 2 && i < n; i++) {
			void *room;

			while (!(room = links[i]->ops->reserve(links[i], nbytes, 0)))
				sched_yield();
			pattern_fill(room, nbytes, key);
			links[i]->ops->commit(links[i], nbytes, key);
		}
		if (k % 3 != 2) {
			void *room;

			while (!(room = fanout->reserve(port, links, n, nbytes))) {
				refused++;
				sched_yield();
			}
			CHECK(fanout->reserve(port, links, n, nbytes) == room);
			pattern_fill(room, nbytes, key);
			fanout->commit(port, links, n, nbytes, key);
		}
	}
	CHECK(refused > 0);
}

static void fan_out_leaf(struct world *world, struct tti_port *port, struct tti_link *link)
{
	for (uint32_t k = 0; k < NFANOUT; k++) {
		const uint64_t key = key_of(0, 0, k);
		const void *data;
		size_t nbytes;
		uint64_t tag;

		while (!(data = link->ops->peek(link, &nbytes, &tag)))
			tti_transport_shm.sleep->wait(port, 100 * TTI_NS_PER_MS);
		if (port->rank == 1)
			usleep(200);
		CHECK(tag == key && nbytes == size_of(world, key));
		CHECK(pattern_is_in(data, nbytes, key));
		link->ops->release(link);
	}
}

static void fan_out(struct world *world, struct tti_port *port)
{
	struct tti_link *links[WORLD_MOST];

	port->fans_short = in_one_line;
	if (port->rank) {
		CHECK(tti_transport_shm.connect(port, 0, &links[0]) == TUTTI_OK);
		fan_out_leaf(world, port, links[0]);
		return;
	}
	for (int peer = 1; peer < world->n; peer++)
		CHECK(tti_transport_shm.connect(port, peer, &links[peer - 1]) == TUTTI_OK);
	fan_out_root(world, port, links);
	CHECK((((struct tti_shm_port *)port)->for_all > 0) == in_one_line);
}

static void fan_out_waits_for_the_slowest(void **state)
{
	(void)state;
	for (int k = 0; k < 6; k++) {
		struct world *const world = world_create(5, fan_out);

		in_one_line = k >= 3;
		world->slots = 1 << k % 3;
		world->start = world->slots == 2 ? UINT32_MAX - 150 : 0;
		if (world->slots == 4)
			world_run_processes(world, NULL);
		else
			world_run_threads(world);
		world_free(world);
	}
}

/* Rank 0 sends `n` messages to all, which come with their numbers. */
static void send_to_all(struct world *world, struct tti_port *port, struct tti_link **links,
			uint64_t first, uint64_t n)
{
	const struct tti_fanout_ops *const fanout = tti_transport_shm.fanout;
	size_t nbytes;
	uint64_t tag;

	for (uint64_t k = first; k < first + n; k++) {
		if (port->rank == 0) {
			CHECK(fanout->reserve(port, links, 2, 8));
			fanout->commit(port, links, 2, 8, k);
		}
		world_sync(world);
		if (port->rank) {
			CHECK(links[0]->ops->peek(links[0], &nbytes, &tag) && tag == k);
			links[0]->ops->release(links[0]);
			CHECK(!links[0]->ops->peek(links[0], &nbytes, &tag));
		}
		world_sync(world);
	}
}

/* The lines of a link are written anew from time to time, or the numbers of messages, which have
 * 32 bits, would be found in them again. */
static void renew(struct world *world, struct tti_port *port)
{
	struct tti_shm_port *const shm = (struct tti_shm_port *)port;
	struct tti_link *links[2];

	port->fans_short = true;
	for (int i = 0; i < (port->rank ? 1 : 2); i++)
		CHECK(tti_transport_shm.connect(port, port->rank ? 0 : i + 1, &links[i]) ==
		      TUTTI_OK);
	send_to_all(world, port, links, 0, 2 * TTI_SHM_RING);
	CHECK(port->rank || shm->for_all == TTI_SHM_RING);
	/* So many more are pretended, and read by all, that numbers begin anew after ten. */
	shm->fanouts += (UINT32_C(1) << 20) - 2 * TTI_SHM_RING;
	if (port->rank) {
		struct tti_shm_link *const link = (struct tti_shm_link *)links[0];

		link->rx_for_all += UINT32_MAX - 2 * TTI_SHM_RING - 9;
		link->rx_for_all_told = link->rx_for_all;
		atomic_store(&link->rx_done->of_all, link->rx_for_all);
	} else {
		shm->for_all += UINT32_MAX - 2 * TTI_SHM_RING - 9;
	}
	world_sync(world);
	send_to_all(world, port, links, 2 * TTI_SHM_RING, 3 * TTI_SHM_RING);
}

static void numbers_do_not_come_again(void **state)
{
	struct world *const world = world_create(3, renew);

	(void)state;
	world_run_threads(world);
	world_free(world);
}

/* More than 2^31 messages after the last fan-out (here they are pretended: all that
 * was sent is read, so both sides may count on) its slot is still free. */
static void count_on(struct world *world, struct tti_port *port)
{
	const uint32_t many = (UINT32_C(1) << 31) + TTI_SHM_RING;
	struct tti_shm_link *shm;
	struct tti_link *link;
	size_t nbytes;
	uint64_t tag;

	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &link) == TUTTI_OK);
	shm = (struct tti_shm_link *)link;
	for (int k = 0; k < 3; k++) {
		if (port->rank == 0) {
			CHECK(tti_transport_shm.fanout->reserve(port, &link, 1, 100));
			tti_transport_shm.fanout->commit(port, &link, 1, 100, (uint64_t)k);
			world_sync(world);
			world_sync(world);
			shm->tx_entries += many;
			shm->tx_entries_back += many;
		} else {
			world_sync(world);
			CHECK(link->ops->peek(link, &nbytes, &tag) && tag == (uint64_t)k);
			link->ops->release(link);
			shm->rx_entries += many;
			shm->rx_entries_told += many;
			atomic_store(&shm->rx_done->count, (uint64_t)shm->rx_entries);
			world_sync(world);
		}
	}
}

static void an_old_fan_out_holds_no_slot(void **state)
{
	struct world *const world = world_create(2, count_on);

	(void)state;
	world->slots = 1;
	world_run_threads(world);
	world_free(world);
}

/* What is sent before the sender leaves, and before the receiver connects, comes. */
static void leave_early(struct world *world, struct tti_port *port)
{
	struct tti_link *link;
	const void *data;
	size_t nbytes;
	uint64_t tag;

	if (port->rank == 0) {
		const uint64_t keys[] = { 3, 4, 5 };

		CHECK(tti_transport_shm.connect(port, 1, &link) == TUTTI_OK);
		pattern_fill(link->ops->reserve(link, 40, 0), 40, keys[0]);
		link->ops->commit(link, 40, keys[0]);
		pattern_fill(link->ops->reserve(link, 4000, 0), 4000, keys[1]);
		link->ops->commit(link, 4000, keys[1]);
		pattern_fill(tti_transport_shm.fanout->reserve(port, &link, 1, 9000), 9000,
			     keys[2]);
		tti_transport_shm.fanout->commit(port, &link, 1, 9000, keys[2]);
		tti_transport_shm.close(link);
		tti_transport_shm.shutdown(port);
		world_sync(world);
		_exit(0);
	}
	world_sync(world);
	CHECK(tti_transport_shm.connect(port, 0, &link) == TUTTI_OK);
	for (uint64_t k = 3; k <= 5; k++) {
		data = link->ops->peek(link, &nbytes, &tag);
		CHECK(data && tag == k && pattern_is_in(data, nbytes, k));
		link->ops->release(link);
	}
}

static void what_was_sent_arrives_after_the_sender_left(void **state)
{
	struct world *const world = world_create(2, leave_early);

	(void)state;
	world_run_processes(world, NULL);
	world_free(world);
}

static void properties(struct world *world, struct tti_port *port)
{
	struct tti_link *link = NULL, *again = NULL;

	CHECK(port->transport == &tti_transport_shm && port->nranks == world->n);
	CHECK(port->inline_bytes == TTI_SHM_INLINE && port->failed_peer == -1);
	CHECK(tti_transport_shm.connect(port, port->rank, &link) == TUTTI_EINVAL);
	CHECK(tti_transport_shm.connect(port, world->n, &link) == TUTTI_EINVAL);
	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &link) == TUTTI_OK);
	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &again) == TUTTI_OK);
	CHECK(link == again && link->peer == 1 - port->rank);
	CHECK((uintptr_t)link->ops->reserve(link, 4000, 0) % 4096 == 0);
	CHECK(((uintptr_t)link->ops->reserve(link, 8, 0) - 16) % 64 == 0);
}

static void ports_say_what_they_are(void **state)
{
	(void)state;
	world_run_two(properties);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_exchange_all_sizes_in_order),
		cmocka_unit_test(processes_exchange_all_sizes_in_order),
		cmocka_unit_test(message_numbers_wrap),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(writers_stop_without_credit),
		cmocka_unit_test(short_messages_do_not_wait_for_slots),
		cmocka_unit_test(fan_out_waits_for_the_slowest),
		cmocka_unit_test(numbers_do_not_come_again),
		cmocka_unit_test(an_old_fan_out_holds_no_slot),
		cmocka_unit_test(what_was_sent_arrives_after_the_sender_left),
		cmocka_unit_test(ports_say_what_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
