/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between pinned lanes and links. Threads play the kernels of two ranks, over lanes in
 * ordinary memory; one thread runs the proxies of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "core/device/proxy.h"
#include "device/lanes.h"
#include "support/bed.h"
#include "support/sanitizer.h"
#include "util/hash.h"

#define MESSAGES (SANITIZED ? 60 : 300)
#define BLOCKS   4
#define TAG      UINT64_C(0x5eed)

/* What a kernel and the proxy of its rank share. */
struct side {
	void *kernel_memory, *proxy_memory;
	struct tti_dev_lane to_peer[BLOCKS], from_peer[BLOCKS]; /* the kernel's ends */
	struct tti_dev_lane out[BLOCKS], in[BLOCKS];            /* the proxy's       */
	struct tti_proxy proxy;
	struct tti_job job;
	int rank;
	uint32_t nblocks;
	size_t longest;
	pthread_t thread;
	_Atomic int wrong; /* bytes or heads that the kernel did not expect */
	_Atomic bool ended;
};

static void make_side(struct side *side, int rank, const struct tti_lane_shape *shape)
{
	uint64_t kernel, proxy;

	*side = (struct side){ .rank = rank, .nblocks = shape->nblocks };
	side->longest = (size_t)shape->nblocks * shape->slot_bytes;
	side->kernel_memory = calloc(1, tti_lanes_bytes(shape));
	side->proxy_memory = calloc(1, tti_lanes_bytes(shape));
	kernel = (uintptr_t)side->kernel_memory;
	proxy = (uintptr_t)side->proxy_memory;
	for (uint32_t block = 0; block < shape->nblocks; block++) {
		side->to_peer[block] = tti_lane_out(shape, block, kernel, proxy);
		side->from_peer[block] = tti_lane_in(shape, block, kernel, proxy);
		side->out[block] = tti_lane_in(shape, block, proxy, kernel);
		side->in[block] = tti_lane_out(shape, block, proxy, kernel);
	}
}

static void free_side(struct side *side)
{
	tti_proxy_release(&side->proxy);
	free(side->kernel_memory);
	free(side->proxy_memory);
}

/* -- The kernel --------------------------------------------------------------------------- */

/* Odd, as those of calls. */
static uint64_t tag_of(uint64_t number)
{
	return TAG + 2 * number;
}

/* The length of a message and its bytes follow from who sends it and its number. */
static size_t length_of(int rank, uint64_t number, size_t longest)
{
	const uint64_t drawn = tti_hash_mix((uint64_t)rank << 32 | number);

	return number % 7 == 0 ? 0 : number % 5 == 0 ? longest : drawn % (longest + 1);
}

static unsigned char byte_of(int rank, uint64_t number, size_t at)
{
	return (unsigned char)tti_hash_mix((uint64_t)rank << 60 | number << 32 | at);
}

static _Atomic uint64_t *counter_at(uint64_t address)
{
	return (_Atomic uint64_t *)(uintptr_t)address;
}

static struct tti_dev_head *head_at(const struct tti_dev_lane *lane)
{
	return (struct tti_dev_head *)(uintptr_t)lane->heads + lane->seq % lane->nslots;
}

static unsigned char *slot_at(const struct tti_dev_lane *lane)
{
	return (unsigned char *)(uintptr_t)lane->slots +
	       lane->seq % lane->nslots * lane->slot_bytes;
}

static bool kernel_sends(struct side *side, uint32_t block)
{
	struct tti_dev_lane *lane = &side->to_peer[block];
	const size_t nbytes = length_of(side->rank, lane->seq, side->longest);
	const uint64_t first = tti_proxy_edge(nbytes, block, side->nblocks);
	const uint64_t end = tti_proxy_edge(nbytes, block + 1, side->nblocks);

	if (lane->seq == MESSAGES ||
	    lane->seq == atomic_load(counter_at(lane->freed)) + lane->nslots)
		return false;
	for (uint64_t at = first; at < end; at++)
		slot_at(lane)[at - first] = byte_of(side->rank, lane->seq, at);
	*head_at(lane) = (struct tti_dev_head){ tag_of(lane->seq), nbytes };
	lane->seq++;
	atomic_store(counter_at(lane->full), lane->seq);
	return true;
}

static bool kernel_receives(struct side *side, uint32_t block)
{
	struct tti_dev_lane *lane = &side->from_peer[block];
	const int peer = 1 - side->rank;
	const size_t nbytes = length_of(peer, lane->seq, side->longest);
	const uint64_t first = tti_proxy_edge(nbytes, block, side->nblocks);
	const uint64_t end = tti_proxy_edge(nbytes, block + 1, side->nblocks);

	if (lane->seq == MESSAGES || lane->seq == atomic_load(counter_at(lane->full)))
		return false;
	side->wrong += head_at(lane)->tag != tag_of(lane->seq) || head_at(lane)->nbytes != nbytes;
	for (uint64_t at = first; at < end; at++)
		side->wrong += slot_at(lane)[at - first] != byte_of(peer, lane->seq, at);
	lane->seq++;
	atomic_store(counter_at(lane->freed), lane->seq);
	return true;
}

static void *kernel(void *self)
{
	struct side *side = self;
	uint64_t left = (uint64_t)side->nblocks * MESSAGES * 2, drawn = (uint64_t)side->rank;

	while (left > 0) {
		uint32_t block;

		drawn = tti_hash_mix(drawn + 1);
		block = (uint32_t)(drawn >> 8) % side->nblocks;
		if (drawn & 1 ? kernel_sends(side, block) : kernel_receives(side, block))
			left--;
		else
			sched_yield();
	}
	atomic_store(&side->ended, true);
	return NULL;
}

/* -- The proxies ----------------------------------------------------------------------------- */

static bool poll(struct tti_job *job)
{
	struct side *side = job->self;
	const bool moved = tti_proxy_poll(&side->proxy, job);

	if (job->status == TUTTI_AGAIN && tti_proxy_is_done(&side->proxy) &&
	    atomic_load(&side->ended))
		job->status = TUTTI_OK;
	return moved;
}

static void begin(struct side *side, struct bed *bed)
{
	struct tti_engine *engine = &bed->engine[side->rank];
	struct tti_proxy_queue queue = { .peer = 1 - side->rank, .left = MESSAGES };

	tti_proxy_begin(&side->proxy, engine, side->nblocks);
	queue.lanes = side->in;
	assert_int_equal(tti_proxy_add(&side->proxy, &queue), TUTTI_OK);
	queue.is_send = true;
	queue.lanes = side->out;
	assert_int_equal(tti_proxy_add(&side->proxy, &queue), TUTTI_OK);
	tti_job_polled(&side->job, engine, poll, side);
}

static void tick(void *self, int rank)
{
	(void)rank;
	mock_tick(((struct bed *)self)->port[0].mock);
}

/* Messages of the link for those that a rank sends: what is longer than a slot has one more, which
 * says its length. */
static uint64_t sent_by(const struct side *side, size_t slot_bytes)
{
	uint64_t sent = 0;

	for (uint64_t number = 0; number < MESSAGES; number++) {
		const size_t nbytes = length_of(side->rank, number, side->longest);

		sent += nbytes <= slot_bytes ? 1 : 1 + (nbytes + slot_bytes - 1) / slot_bytes;
	}
	return sent;
}

static void exchange(const struct tti_lane_shape *shape, const struct mock_config *mock)
{
	static struct side sides[2];
	static struct bed bed;
	struct tti_job *const jobs[] = { &sides[0].job, &sides[1].job };

	bed_init(&bed, &(struct bed_config){ .n = 2, .mock = *mock, .seed = shape->nslots });
	mock_on_idle(bed.port[0].mock, tick, &bed);
	for (int rank = 0; rank < 2; rank++) {
		make_side(&sides[rank], rank, shape);
		begin(&sides[rank], &bed);
	}
	for (int rank = 0; rank < 2; rank++)
		assert_int_equal(pthread_create(&sides[rank].thread, NULL, kernel, &sides[rank]),
				 0);
	assert_int_equal(tti_job_wait(jobs, 2), TUTTI_OK);
	for (int rank = 0; rank < 2; rank++) {
		pthread_join(sides[rank].thread, NULL);
		assert_int_equal(sides[rank].wrong, 0);
		assert_int_equal(bed_sent(&bed, rank, 1 - rank),
				 sent_by(&sides[rank], mock->slot_bytes));
	}
	while (mock_flush(bed.port[0].mock)) {}
	assert_true(bed_is_clean(&bed));
	for (int rank = 0; rank < 2; rank++)
		free_side(&sides[rank]);
	bed_release(&bed);
}

static void exchange_all(size_t slot_bytes)
{
	for (uint32_t nblocks = 1; nblocks <= BLOCKS; nblocks++)
		for (uint32_t nslots = 1; nslots <= 8; nslots *= 2) {
			const struct tti_lane_shape shape = { nblocks, nslots, 64, 0 };
			const struct mock_config mock = {
				.slot_bytes = slot_bytes,
				.slots = (int)(9 - nslots),
				.pace = (enum mock_pace)((nblocks + nslots) % MOCK_PACES),
			};

			exchange(&shape, &mock);
		}
}

static void messages_go_through_both_proxies(void **state)
{
	(void)state;
	exchange_all(64 * BLOCKS);
}

/* Segments that are longer than the part of a block, end amid it, or with it. */
static void long_messages_go_in_segments(void **state)
{
	(void)state;
	exchange_all(100);
	exchange_all(64);
	exchange_all(24);
}

/* -- What does not fit -------------------------------------------------------------------- */

/* A message of a peer; `whole`: that it begins with. */
struct message {
	size_t nbytes;
	uint64_t tag, whole;
};

/* The peer sends what no call of this shape has; the last message is what the error tells of. */
static void refuses(const struct message *messages, int n, uint64_t tag, uint64_t nbytes)
{
	const struct tti_lane_shape shape = { 2, 2, 64, 0 };
	const struct mock_config mock = { .slot_bytes = 1024, .slots = 4 };
	static struct side side;
	static struct bed bed;
	struct tti_port *peer;
	struct tti_link *link;
	bool moved;

	bed_init(&bed, &(struct bed_config){ .n = 2, .mock = mock });
	make_side(&side, 0, &shape);
	begin(&side, &bed);
	peer = mock_port(bed.port[0].mock, 1);
	assert_int_equal(peer->transport->connect(peer, 0, &link), TUTTI_OK);
	for (int i = 0; i < n; i++) {
		void *room = link->ops->reserve(link, messages[i].nbytes, messages[i].nbytes);

		assert_non_null(room);
		if (messages[i].nbytes >= sizeof(messages[i].whole))
			memcpy(room, &messages[i].whole, sizeof(messages[i].whole));
		link->ops->commit(link, messages[i].nbytes, messages[i].tag);
	}
	moved = tti_job_poll(&side.job);
	assert_int_equal(moved, n > 1);
	assert_int_equal(side.job.status, TUTTI_EMISMATCH);
	assert_int_equal(side.job.mismatch_peer, 1);
	assert_int_equal(side.job.mismatch_tag, tag);
	assert_int_equal(side.job.mismatch_bytes, nbytes);
	peer->transport->close(link);
	free_side(&side);
	bed_release(&bed);
}

static void a_message_that_does_not_fit_is_of_another_call(void **state)
{
	const struct message too_long[] = { { 600, 77, 0 } };
	const struct message says_too_much[] = { { 8, 76, 1 << 20 } };
	const struct message says_nothing[] = { { 600, 76, 0 } };
	const struct message amid_segments[] = { { 8, 76, 100 }, { 60, 77, 0 }, { 40, 79, 0 } };
	const struct message past_its_end[] = { { 8, 76, 100 }, { 60, 77, 0 }, { 50, 77, 0 } };
	const struct message twice[] = { { 8, 76, 100 }, { 8, 76, 100 } };

	(void)state;
	refuses(too_long, 1, 77, 600);
	refuses(says_too_much, 1, 77, 1 << 20);
	refuses(says_nothing, 1, 76, 600);
	refuses(amid_segments, 3, 79, 40);
	refuses(past_its_end, 3, 77, 50);
	refuses(twice, 2, 76, 8);
}

static void it_says_whom_it_waits_for(void **state)
{
	const struct tti_lane_shape shape = { 2, 2, 64, 0 };
	const struct mock_config mock = { .slot_bytes = 1024, .slots = 2 };
	static struct side side;
	static struct bed bed;

	(void)state;
	bed_init(&bed, &(struct bed_config){ .n = 2, .mock = mock });
	make_side(&side, 0, &shape);
	begin(&side, &bed);
	assert_false(tti_job_poll(&side.job));
	assert_int_equal(side.proxy.waiting_on, 1);
	assert_false(tti_proxy_is_done(&side.proxy));
	free_side(&side);
	bed_release(&bed);
}

/* -- How many messages ---------------------------------------------------------------------- */

static void messages_are_those_of_the_operations(void **state)
{
	static struct {
		struct tti_dev_program program;
		struct tti_dev_operation op[3];
		int32_t queue_of[5];
	} flat = {
		.program = { .noperations = 3, .nqueues = 3 },
		/* One that receives and sends on, one that sends to two, one without queues. */
		.op = { { .chunk = 0, .nin = 1, .in = 0, .nout = 1, .out = 1 },
			{ .chunk = 1, .nout = 2, .out = 2 },
			{ .chunk = 2 } },
		.queue_of = { 0, 1, 1, 2 },
	};
	const struct tti_dev_extent extents[] = { { .count = 10, .slice = 4 },
						  { .count = 0, .slice = 4 },
						  { .count = 4, .slice = 4 } };
	uint64_t messages[3];

	(void)state;
	flat.program.operations = (uint32_t)((char *)flat.op - (char *)&flat);
	flat.program.queue_of = (uint32_t)((char *)flat.queue_of - (char *)&flat);
	tti_proxy_count(&flat.program, NULL, 5, messages);
	assert_int_equal(messages[0], 5);
	assert_int_equal(messages[1], 10);
	assert_int_equal(messages[2], 5);
	tti_proxy_count(&flat.program, extents, 5, messages);
	assert_int_equal(messages[0], 3);
	assert_int_equal(messages[1], 4); /* what is empty is a message, too */
	assert_int_equal(messages[2], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_go_through_both_proxies),
		cmocka_unit_test(long_messages_go_in_segments),
		cmocka_unit_test(a_message_that_does_not_fit_is_of_another_call),
		cmocka_unit_test(it_says_whom_it_waits_for),
		cmocka_unit_test(messages_are_those_of_the_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
