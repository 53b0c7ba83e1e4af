/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that sleep for every message: none is woken too seldom, whatever the moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shm_world.h"
#include "transport/shm/shm.h"
#include "util/sanitizer.h"
#include "util/thread.h"

#if TTI_SANITIZED
#define BURSTS 20000
#else
#define BURSTS 50000
#endif
#define LONGEST 12 /* burst */

/* Messages that each rank has sent and rung for. */
static _Atomic uint64_t rung[2];

static uint32_t draw(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

/* The first call arms the bell. Once the third one is made it has been armed for long, and whoever
 * sends must ring it; before, a sender may not have seen it armed. */
static const void *sleep_for(struct tti_port *port, struct tti_link *link, uint64_t number,
			     size_t *nbytes)
{
	const struct tti_shm_port *const shm = (const struct tti_shm_port *)port;
	const struct tti_shm_doorbell *const bell = tti_shm_seg_doorbell(&shm->seg, shm->self);
	uint32_t word = 0;
	const void *data;
	uint64_t tag;

	for (int sleeps = 1; !(data = link->ops->peek(link, nbytes, &tag)); sleeps++) {
		tti_transport_shm.sleep->wait(port, TTI_NEVER);
		sleeps = atomic_load(&bell->word) == word ? sleeps : 1;
		word = atomic_load(&bell->word);
		CHECK(sleeps < 3 || atomic_load(&rung[1 - port->rank]) <= number ||
		      atomic_load(&bell->word) != word);
	}
	CHECK(tag == number);
	return data;
}

static void take_turns(struct world *world, struct tti_port *port)
{
	const int peer = 1 - port->rank;
	uint32_t seed = 7, pauses = (uint32_t)port->rank;
	uint64_t number[2] = { 0 };
	struct tti_link *link;
	size_t nbytes;

	(void)world;
	CHECK(tti_transport_shm.connect(port, peer, &link) == TUTTI_OK);
	for (int burst = 0; burst < BURSTS; burst++) {
		const uint32_t count = 1 + draw(&seed) % LONGEST;
		/* In the line, and in a buffer that has less room than a burst needs. */
		const size_t size = draw(&seed) % 2 ? 8 : 3000;

		for (uint32_t i = 0; i < count; i++) {
			if (burst % 2 != port->rank) {
				(void)sleep_for(port, link, number[peer]++, &nbytes);
				CHECK(nbytes == size);
				link->ops->release(link);
				continue;
			}
			/* The other one is awake, about to sleep, or asleep. */
			for (uint32_t n = draw(&pauses) % 256; n > 0; n--)
				tti_cpu_relax();
			while (!link->ops->reserve(link, size, 0))
				tti_transport_shm.sleep->wait(port, TTI_NEVER);
			link->ops->commit(link, size, number[port->rank]++);
			atomic_store(&rung[port->rank], number[port->rank]);
		}
	}
}

static void no_message_leaves_its_reader_asleep(void **state)
{
	struct world *const world = world_create(2, take_turns);

	(void)state;
	atomic_store(&rung[0], 0);
	atomic_store(&rung[1], 0);
	world_run_threads(world);
	world_free(world);
}

/* Rank 0 sleeps for what rank 2 sends, then for anybody. */
static void sleep_for_one(struct world *world, struct tti_port *port)
{
	struct tti_shm_port *const shm = (struct tti_shm_port *)port;
	const struct tti_shm_doorbell *const bell = tti_shm_seg_doorbell(&shm->seg, shm->self);
	struct tti_link *links[3] = { NULL };

	for (int peer = 0; peer < 3; peer++)
		CHECK(peer == port->rank ||
		      tti_transport_shm.connect(port, peer, &links[peer]) == TUTTI_OK);
	for (int turn = 0; turn < 3; turn++) {
		uint32_t armed = 0;

		if (port->rank == 0) {
			port->missing = turn < 2;
			port->awaited = turn == 0 ? links[2] : turn == 1 ? links[1] : NULL;
			tti_transport_shm.sleep->wait(port, TTI_NEVER);
			armed = atomic_load(&bell->word);
			CHECK(armed & 1);
		}
		world_sync(world);
		if (port->rank == 1) {
			CHECK(links[0]->ops->reserve(links[0], 8, 0));
			links[0]->ops->commit(links[0], 8, 0);
		}
		world_sync(world);
		if (port->rank == 0)
			CHECK((atomic_load(&bell->word) == armed) == (turn == 0));
		world_sync(world);
		if (port->rank == 2) {
			CHECK(links[0]->ops->reserve(links[0], 8, 0));
			links[0]->ops->commit(links[0], 8, 0);
		}
		world_sync(world);
		if (port->rank == 0)
			CHECK(!(atomic_load(&bell->word) & 1));
		world_sync(world);
	}
}

static void send_to(struct tti_link *link, size_t nbytes)
{
	CHECK(link->ops->reserve(link, nbytes, 0));
	link->ops->commit(link, nbytes, 0);
}

static void take_from(struct tti_link *link)
{
	size_t nbytes;
	uint64_t tag;

	while (!link->ops->peek(link, &nbytes, &tag))
		tti_cpu_relax();
	link->ops->release(link);
}

/* Rank 0 has sent to rank 1 and sleeps for two messages: neither what rank 1 has read nor the first
 * message ends that. */
static void sleep_for_two(struct world *world, struct tti_port *port)
{
	struct tti_shm_port *const shm = (struct tti_shm_port *)port;
	const struct tti_shm_doorbell *const bell = tti_shm_seg_doorbell(&shm->seg, shm->self);
	struct tti_link *links[3] = { NULL };

	for (int peer = 0; peer < 3; peer++)
		CHECK(peer == port->rank ||
		      tti_transport_shm.connect(port, peer, &links[peer]) == TUTTI_OK);
	if (port->rank == 0) {
		send_to(links[1], port->inline_bytes + 1);
		port->missing = 2;
		tti_transport_shm.sleep->wait(port, TTI_NEVER);
	}
	world_sync(world);
	if (port->rank == 1) {
		take_from(links[0]);
		send_to(links[0], 8);
	}
	world_sync(world);
	if (port->rank == 0)
		CHECK(atomic_load(&bell->word) & 1);
	world_sync(world);
	if (port->rank == 2)
		send_to(links[0], 8);
	world_sync(world);
	if (port->rank == 0)
		CHECK(!(atomic_load(&bell->word) & 1));
}

static void the_last_of_several_messages_wakes(void **state)
{
	struct world *const world = world_create(3, sleep_for_two);

	(void)state;
	world_run_threads(world);
	world_free(world);
}

static void only_who_is_awaited_wakes(void **state)
{
	struct world *const world = world_create(3, sleep_for_one);

	(void)state;
	world_run_threads(world);
	world_free(world);
}

/* A sleeper is woken by the message, not by the end of its nap, which is 16 ms here. */
static _Atomic int64_t sent_ns;
static _Atomic bool is_prompt;

/* How many of 20 messages the sleeper was awake for at once. */
static int sleep_for_some(struct world *world, struct tti_port *port, struct tti_link *link)
{
	size_t nbytes;
	uint64_t tag;
	int prompt = 0;

	for (int k = 0; k < 20; k++) {
		const int64_t begin = tti_now_ns();
		int calls = 0;

		world_sync(world);
		if (port->rank == 0) {
			nap_ms(25);
			CHECK(link->ops->reserve(link, 8, 0));
			atomic_store(&sent_ns, tti_now_ns());
			link->ops->commit(link, 8, (uint64_t)k);
			continue;
		}
		while (!link->ops->peek(link, &nbytes, &tag)) {
			tti_transport_shm.sleep->wait(port, TTI_NEVER);
			calls++;
		}
		prompt += tti_now_ns() - atomic_load(&sent_ns) < 3 * TTI_NS_PER_MS;
		CHECK(tag == (uint64_t)k);
		/* It sleeps, it does not spin. */
		CHECK(calls < 20 + (tti_now_ns() - begin) / TTI_NS_PER_MS);
		link->ops->release(link);
	}
	return prompt;
}

static void sleep_body(struct world *world, struct tti_port *port)
{
	struct tti_link *link;

	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &link) == TUTTI_OK);
	/* Threads of a busy machine may be late for all of 20; where nobody is woken they always are. */
	for (int tries = 0; tries < 20 && !atomic_load(&is_prompt); tries++) {
		const int prompt = sleep_for_some(world, port, link);

		world_sync(world);
		if (port->rank == 1)
			atomic_store(&is_prompt, prompt > 5);
		world_sync(world);
	}
	CHECK(atomic_load(&is_prompt));
	/* A timeout is obeyed. */
	for (int k = 0; k < 3; k++) {
		const int64_t begin = tti_now_ns();

		tti_transport_shm.sleep->wait(port, TTI_NS_PER_MS / 2);
		CHECK(tti_now_ns() - begin < 60000 * TTI_NS_PER_MS);
	}
}

static void sleepers_are_woken(void **state)
{
	struct world *const world = world_create(2, sleep_body);

	(void)state;
	atomic_store(&is_prompt, false);
	world_run_threads(world);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_message_leaves_its_reader_asleep),
		cmocka_unit_test(only_who_is_awaited_wakes),
		cmocka_unit_test(the_last_of_several_messages_wakes),
		cmocka_unit_test(sleepers_are_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
