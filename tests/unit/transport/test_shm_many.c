/* SPDX-License-Identifier: BSD-3-Clause */
/* A thousand ranks on one machine: time to join, memory per pair in use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "shm_world.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MANY 96
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define MANY 96
#endif
#endif
#ifndef MANY
#define MANY 1024
#endif

static _Atomic int64_t opened_ns, joined_ns, done_ns;
static _Atomic uint64_t touched_bytes;
static _Atomic int npairs;

/* Exchanges 8 bytes and 1000 bytes, slot after slot, with the ranks at the distances
 * 1, 2, 4, ... as a dissemination barrier does. */
static void disseminate(struct world *world, struct tti_port *port)
{
	const int n = world->n;
	const tutti_status st =
		tti_transport_shm.join(port, world->cards, &world->domain[port->rank]);

	CHECK(st == TUTTI_OK && world->domain[port->rank] == 1);
	world_sync(world);
	atomic_store(&joined_ns, tti_now_ns());
	for (int distance = 1; distance < n; distance *= 2) {
		const int to = (port->rank + distance) % n;
		const int from = (port->rank + n - distance) % n;
		struct tti_link *out, *in;
		size_t nbytes;
		uint64_t tag;

		CHECK(tti_transport_shm.connect(port, to, &out) == TUTTI_OK);
		CHECK(tti_transport_shm.connect(port, from, &in) == TUTTI_OK);
		atomic_fetch_add(&npairs, 1);
		for (int k = 0; k < 2 * world->slots; k++) {
			const size_t size = k % 2 ? 8 : 1000;

			memset(out->ops->reserve(out, size, 0), k, size);
			out->ops->commit(out, size, (uint64_t)k);
			while (!in->ops->peek(in, &nbytes, &tag))
				tti_transport_shm.sleep->wait(port, 50 * TTI_NS_PER_MS);
			CHECK(tag == (uint64_t)k && nbytes == size);
			in->ops->release(in);
		}
	}
	world_sync(world);
	atomic_store(&done_ns, tti_now_ns());
	if (port->rank == 0) {
		struct stat stat;

		CHECK(!fstat(((struct tti_shm_port *)port)->seg.fd, &stat));
		atomic_store(&touched_bytes, (uint64_t)stat.st_blocks * 512);
	}
	world_sync(world);
}

static void a_thousand_ranks_share_memory(void **state)
{
	struct world *const world = world_create(MANY, disseminate);
	uint64_t per_pair;

	(void)state;
	world->own_join = true;
	world->slot_bytes = 256 * 1024;
	world->timeout_ms = 200000;
	atomic_store(&opened_ns, tti_now_ns());
	world_run_threads(world);
	per_pair = atomic_load(&touched_bytes) / (uint64_t)atomic_load(&npairs);
	printf("%d ranks: %.0f ms until joined, %.0f ms to disseminate, %d pairs of %llu KiB\n",
	       MANY, (double)(joined_ns - opened_ns) / TTI_NS_PER_MS,
	       (double)(done_ns - joined_ns) / TTI_NS_PER_MS, atomic_load(&npairs),
	       (unsigned long long)per_pair / 1024);
	assert_true(per_pair < 64 * 1024);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_ranks_share_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
