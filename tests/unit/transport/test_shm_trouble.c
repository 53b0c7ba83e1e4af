/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that write nonsense into the shared memory, or die while they use it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/random.h>

#include "shm_world.h"

static struct tti_shm_link *shm_link(struct tti_port *port, int peer)
{
	struct tti_link *link;

	CHECK(tti_transport_shm.connect(port, peer, &link) == TUTTI_OK);
	return (struct tti_shm_link *)link;
}

/* What rank 0 does to what rank 1 reads. */
static void scribble(struct tti_shm_link *link, struct tti_shm_entry *entry, int kind)
{
	const uint32_t nlines = (uint32_t)(link->port->seg.layout.bounce_bytes / TTI_SHM_LINE);
	const uint32_t longer = (uint32_t)link->port->seg.layout.slot_bytes + 1;
	/* Behind the buffer; the last line of it; far behind; where a sum would wrap. */
	const uint32_t lines[] = { nlines, nlines - 1, UINT32_MAX - 1, UINT32_MAX };
	const uint32_t line = lines[kind / 2 % 4];

	memset(entry->data, 0, sizeof(entry->data));
	switch (kind) {
	case 0: /* longer than an entry has room for */
		entry->meta = TTI_SHM_IN_ENTRY << 30 | (TTI_SHM_INLINE + 1);
		break;
	case 1: /* longer than the longest */
		entry->meta = TTI_SHM_IN_BOUNCE << 30 | longer;
		break;
	case 2:
		entry->meta = (uint32_t)TTI_SHM_IN_BROADCAST << 30 | longer;
		break;
	case 3: /* a kind that is none */
		entry->meta = UINT32_C(3) << 30 | 8;
		break;
	default: /* not all in the buffer */
		entry->meta =
			(kind % 2 ? (uint32_t)TTI_SHM_IN_BROADCAST : TTI_SHM_IN_BOUNCE) << 30 | 65;
		memcpy(entry->data, &line, sizeof(line));
		break;
	}
	atomic_store(&entry->seq, 1);
}

static void reader_of_nonsense(struct world *world, struct tti_port *port)
{
	const bool for_all = world->n > 2;
	struct tti_shm_link *link;
	size_t nbytes;
	uint64_t tag;

	port->fans_short = for_all;
	link = shm_link(port, port->rank ? 0 : 1);
	if (port->rank == 0)
		scribble(link, for_all ? link->port->broadcast->ring : link->tx_ring,
			 (int)world->timeout_ms % 100);
	world_sync(world);
	if (port->rank) {
		CHECK(!link->base.ops->peek(&link->base, &nbytes, &tag));
		CHECK(port->failure == TUTTI_EPROTO && port->failed_peer == 0);
		CHECK(!link->base.ops->peek(&link->base, &nbytes, &tag));
	}
	world_sync(world);
	CHECK(port->rank || port->failure == TUTTI_OK);
}

static void impossible_messages_break_the_port(void **state)
{
	(void)state;
	for (int k = 0; k < 24; k++) {
		struct world *const world = world_create(2 + k / 12, reader_of_nonsense);

		world->timeout_ms = 30000 + k % 12;
		world_run_threads(world);
		world_free(world);
	}
}

/* Rank 1 claims to have read what it cannot have. */
static void writer_is_told_nonsense(struct world *world, struct tti_port *port)
{
	struct tti_shm_link *const link = shm_link(port, 1 - port->rank);
	/* Lines, messages in the buffer: 65 and 2 are sent, 1 and 1 known to be read. */
	const uint64_t high = UINT64_C(1) << 32;
	const uint64_t lies[] = { 100 + high,   1 + 7 * high,  UINT64_MAX,   0 + high,
				  1 + 0 * high, 66 + 2 * high, 65 + 3 * high };
	const struct tti_link_ops *const ops = link->base.ops;
	size_t nbytes;
	uint64_t tag;

	if (port->rank == 0) {
		CHECK(ops->reserve(&link->base, 4096, 0));
		ops->commit(&link->base, 4096, 0);
	}
	world_sync(world);
	if (port->rank == 1) {
		CHECK(ops->peek(&link->base, &nbytes, &tag));
		ops->release(&link->base);
	}
	world_sync(world);
	CHECK(port->rank == 1 || ops->all_released(&link->base));
	world_sync(world);
	if (port->rank == 1)
		atomic_store(&link->rx_done->count, lies[world->timeout_ms % 100]);
	world_sync(world);
	for (int k = 0; port->rank == 0 && k < TTI_SHM_RING - 1; k++) {
		CHECK(ops->reserve(&link->base, 8, 0));
		ops->commit(&link->base, 8, 0);
	}
	if (port->rank == 0) {
		CHECK(ops->reserve(&link->base, 4096, 0));
		ops->commit(&link->base, 4096, 0);
	}
	CHECK(port->rank == 1 || !ops->reserve(&link->base, 8, 0));
	CHECK(port->rank == 1 || port->failure == TUTTI_EPROTO);
	world_sync(world);
}

static void impossible_counts_break_the_port(void **state)
{
	(void)state;
	for (int lie = 0; lie < 7; lie++) {
		struct world *const world = world_create(2, writer_is_told_nonsense);

		world->timeout_ms = 30000 + lie;
		world_run_threads(world);
		world_free(world);
	}
}

/* Rank 1 claims to have read what was sent to nobody. */
static void writer_is_told_too_much(struct world *world, struct tti_port *port)
{
	struct tti_shm_link *link;

	port->fans_short = true;
	link = shm_link(port, port->rank ? 0 : 1);
	if (port->rank == 1)
		atomic_store(&link->rx_done->of_all, 1);
	world_sync(world);
	if (port->rank == 0) {
		CHECK(link->base.ops->reserve(&link->base, 8, 0));
		link->base.ops->commit(&link->base, 8, 0);
		CHECK(!link->base.ops->all_released(&link->base));
		CHECK(port->failure == TUTTI_EPROTO && port->failed_peer == 1);
	}
	world_sync(world);
}

static void impossible_counts_of_all_break_the_port(void **state)
{
	struct world *const world = world_create(3, writer_is_told_too_much);

	(void)state;
	world_run_threads(world);
	world_free(world);
}

static void table_is_nonsense(struct world *world, struct tti_port *port)
{
	struct tti_shm_port *const shm = (struct tti_shm_port *)port;
	uint32_t *const table = (uint32_t *)(shm->seg.base + shm->seg.layout.table_at);
	struct tti_link *link = NULL;

	if (port->rank == 0)
		table[1] = 1000;
	world_sync(world);
	CHECK(tti_transport_shm.connect(port, 1 - port->rank, &link) == TUTTI_EPROTO);
	world_sync(world);
}

static void an_impossible_region_is_refused(void **state)
{
	struct world *const world = world_create(2, table_is_nonsense);

	(void)state;
	world_run_threads(world);
	world_free(world);
}

/* Random bytes over all of the pair, its slots left out: no crash, no endless loop. */
static void noise(struct world *world, struct tti_port *port)
{
	struct tti_shm_link *const link = shm_link(port, 1 - port->rank);
	size_t nbytes;
	uint64_t tag;

	for (int round = 0; round < 200; round++) {
		if (port->rank == 0) {
			CHECK(getrandom(link->pair, 256, 0) == 256);
			for (size_t at = 0; at < sizeof(link->pair->ring); at += 256)
				CHECK(getrandom((uint8_t *)link->pair->ring + at, 256, 0) == 256);
			for (uint32_t k = 0; k < TTI_SHM_RING; k++)
				if (round % 2)
					atomic_store(&link->tx_ring[k].seq, k + 1);
		}
		world_sync(world);
		for (int k = 0; port->rank == 1 && k < 2 * TTI_SHM_RING; k++) {
			const uint8_t *const data =
				link->base.ops->peek(&link->base, &nbytes, &tag);
			void *room;

			if (data && nbytes)
				CHECK(data[0] + data[nbytes - 1] < 512);
			if (data)
				link->base.ops->release(&link->base);
			room = link->base.ops->reserve(&link->base, 4096, 0);
			if (room)
				link->base.ops->commit(&link->base, 4096, 0);
		}
		world_sync(world);
	}
}

static void noise_does_no_harm(void **state)
{
	struct world *const world = world_create(2, noise);

	(void)state;
	world_run_threads(world);
	world_free(world);
}

/* Rank 1 is killed in the middle of a stream in both directions; rank 0 goes on as
 * far as it can, sleeps, closes. */
static void victim(struct world *world, struct tti_port *port)
{
	struct tti_shm_link *const link = shm_link(port, 1 - port->rank);
	int64_t quiet_since = tti_now_ns();
	size_t nbytes;
	uint64_t tag;

	for (;;) {
		bool moved = false;
		void *const room = link->base.ops->reserve(&link->base, 3000, 0);

		if (room) {
			memset(room, 1, 3000);
			link->base.ops->commit(&link->base, 3000, 0);
			moved = true;
		}
		if (link->base.ops->peek(&link->base, &nbytes, &tag)) {
			link->base.ops->release(&link->base);
			moved = true;
		}
		if (moved)
			quiet_since = tti_now_ns();
		else
			tti_transport_shm.sleep->wait(port, 5 * TTI_NS_PER_MS);
		if (port->rank == 1)
			world->stop = 1;
		else if (tti_now_ns() - quiet_since > 100 * TTI_NS_PER_MS)
			break;
	}
	CHECK(port->failure == TUTTI_OK);
	tti_transport_shm.close(&link->base);
}

static void a_killed_peer_leaves_memory_usable(void **state)
{
	(void)state;
	for (int round = 0; round < 8; round++) {
		struct world *const world = world_create(2, victim);
		pid_t pids[2];
		int status;

		for (int rank = 0; rank < 2; rank++) {
			pids[rank] = fork();
			CHECK(pids[rank] >= 0);
			if (!pids[rank]) {
				world_rank_run(world, rank);
				_exit(0);
			}
		}
		while (!world->stop)
			sched_yield();
		usleep((useconds_t)(round * 313));
		kill(pids[1], SIGKILL);
		CHECK(waitpid(pids[1], &status, 0) == pids[1] && WIFSIGNALED(status));
		CHECK(waitpid(pids[0], &status, 0) == pids[0]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(impossible_messages_break_the_port),
		cmocka_unit_test(impossible_counts_break_the_port),
		cmocka_unit_test(impossible_counts_of_all_break_the_port),
		cmocka_unit_test(an_impossible_region_is_refused),
		cmocka_unit_test(noise_does_no_harm),
		cmocka_unit_test(a_killed_peer_leaves_memory_usable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
