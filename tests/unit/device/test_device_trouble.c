/* SPDX-License-Identifier: BSD-3-Clause */
/* Device programs that cannot go on: they are stopped at any moment, a message is of another call, a
 * rank does not come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/algorithms/send_recv.h"
#include "support/device_memory.h"
#include "support/device_sum.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "util/clock.h"
#include "util/error.h"

static struct device_sum sum;

static struct device_config draw_bed(uint64_t *random)
{
	return (struct device_config){
		.n = 2 + (int)(next_random(random) % 3),
		.nblocks = 1 + (uint32_t)(next_random(random) % 3),
		.nthreads = 1 + 3 * (uint32_t)(next_random(random) % 2),
		.nslots = 1 + (uint32_t)(next_random(random) % 3),
		.words = next_random(random) % 2,
		.per_launch = 1 + (int)(next_random(random) % 4),
	};
}

static const char *draw_algorithm(uint64_t *random)
{
	static const char *const algorithms[] = { "ring", "direct", "exchange", "double_tree",
						  "recursive_doubling" };

	return algorithms[next_random(random) % 5];
}

/* Lists with one transfer of so many bytes from rank 0 to rank 1, 10 at a time. */
static void make_transfer(struct device_bed *bed, struct tti_dev_call call[2], size_t nbytes)
{
	struct tti_extent extent = { .count = nbytes, .slice = 10, .tag = 5 };

	for (int rank = 0; rank < 2; rank++) {
		const struct tti_transfer_step step = { .kind = rank ? TTI_TRANSFER_RECV
								     : TTI_TRANSFER_SEND,
							.peer = 1 - rank };
		struct tti_program prog;
		struct tti_compiled compiled;
		struct device_work work = { .prog = &compiled,
					    .type = TUTTI_UINT8,
					    .slice_bytes = 1 };

		assert_int_equal(tti_send_recv_program(&step, 1, 1, rank, 2, &prog), TUTTI_OK);
		assert_int_equal(tti_compile(&prog, &compiled), TUTTI_OK);
		tti_program_release(&prog);
		work.layout = (struct tti_layout){ .extents = &extent,
						   .by_chunk = true,
						   .type_size = 1,
						   .parts = 1,
						   .chunk_count = nbytes,
						   .row_count = nbytes };
		work.layout.input = (const void *)(uintptr_t)device_alloc(bed, nbytes);
		work.layout.output = (void *)(uintptr_t)device_alloc(bed, nbytes);
		device_call_make(bed, rank, &work, &call[rank]);
		tti_compiled_release(&compiled);
	}
}

/* -- Stops ----------------------------------------------------------------------------------- */

/* Addresses that kernels have asked for: a clock that runs where something happens. */
static _Atomic uint64_t asked, stop_at;
/* The rank that is stopped then, and the bed stops those that wait for it once its launch has ended;
 * -1: all at once. */
static int stopped;
static struct device_bed *stopped_bed;

static void *view_and_stop(uint64_t address)
{
	if (atomic_fetch_add(&asked, 1) + 1 == atomic_load(&stop_at))
		for (int rank = 0; rank < stopped_bed->config.n; rank++)
			if (stopped < 0 || stopped == rank)
				device_stop(stopped_bed, rank);
	return (void *)(uintptr_t)address;
}

static tutti_status run_counted(const struct tti_dev_launch *launch,
				const struct tti_dev_host *host)
{
	struct tti_dev_host with = *host;

	with.view = view_and_stop;
	return tti_dev_host_run(launch, &with);
}

static bool is_reset(const struct device_bed *bed, int rank)
{
	static const struct tti_dev_state zero;

	return memcmp(device_view(bed, bed->state[rank]), &zero, sizeof(zero)) == 0;
}

/* Run calls of all ranks with a stop at one of the addresses that they ask for: the last time it was
 * so many. */
static void run_and_stop(struct device_bed *bed, const struct tti_dev_call *call, bool stops,
			 uint64_t *random)
{
	enum device_end end;

	stopped_bed = bed;
	stop_at = stops ? 1 + next_random(random) % asked : UINT64_MAX;
	asked = 0;
	end = device_run(bed, call, 1);
	if (!stops)
		assert_int_equal(end, DEVICE_DONE);
	assert_int_not_equal(end, DEVICE_STUCK);
	for (int rank = 0; rank < bed->config.n; rank++) {
		assert_true(is_reset(bed, rank));
		assert_true(device_has_done(bed->result[rank]) ||
			    (stops && bed->result[rank] == TTI_DEV_STOPPED));
	}
}

static struct device_config draw_bed_to_stop(uint64_t *random)
{
	struct device_config config = draw_bed(random);

	config.run = run_counted;
	stopped = config.per_launch > 1 ? -1 : (int)(next_random(random) % (uint64_t)config.n);
	return config;
}

static void a_stop_at_any_moment_ends_all_threads(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= (SANITIZED ? 60 : 150); seed++) {
		uint64_t random = seed;
		const struct device_config config = draw_bed_to_stop(&random);
		const char *algorithm = draw_algorithm(&random);

		for (int pass = 0; pass < 2; pass++) {
			device_sum_init(&sum, &config, algorithm, 1500, 30);
			run_and_stop(&sum.bed, sum.call, pass > 0, &random);
			device_sum_release(&sum);
		}
	}
}

static void lists_are_stopped_as_well(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= (SANITIZED ? 30 : 60); seed++) {
		uint64_t random = seed;
		struct device_config config = draw_bed_to_stop(&random);

		config.n = 2;
		config.slot_bytes = 16;
		stopped = stopped > 1 ? 1 : stopped;
		for (int pass = 0; pass < 2; pass++) {
			struct tti_dev_call call[2];
			struct device_bed bed;

			device_bed_init(&bed, &config);
			make_transfer(&bed, call, 1500);
			run_and_stop(&bed, call, pass > 0, &random);
			device_bed_release(&bed);
		}
	}
}

/* -- Messages of other calls ----------------------------------------------------------------- */

/* One rank has another tag, or other slices. What ranks report is what there was. */
static void differ_once(uint64_t seed)
{
	uint64_t random = seed;
	const struct device_config config = draw_bed(&random);
	const int other = (int)(next_random(&random) % (uint64_t)config.n);
	const bool is_tag = next_random(&random) % 2;
	int reports = 0;

	device_sum_init(&sum, &config, draw_algorithm(&random), 400, 30);
	if (is_tag)
		sum.call[other].tag = 0x9999;
	else
		sum.call[other].slice--;
	assert_int_equal(device_run(&sum.bed, sum.call, 1), DEVICE_ENDED);
	for (int rank = 0; rank < config.n; rank++) {
		const struct tti_dev_report *report = &device_control(&sum.bed, rank)->report;

		assert_true(is_reset(&sum.bed, rank));
		assert_int_equal(report->result == TTI_DEV_MISMATCH,
				 sum.bed.result[rank] == TTI_DEV_MISMATCH);
		if (report->result != TTI_DEV_MISMATCH)
			continue;
		reports++;
		assert_true(rank == other || report->peer == other);
		assert_int_equal(report->tag, sum.call[report->peer].tag);
		assert_int_equal(report->own_tag, sum.call[rank].tag);
		assert_int_equal(report->nbytes == report->own_nbytes, is_tag);
		assert_true(report->nbytes <= sum.slice * sizeof(float));
	}
	assert_true(reports > 0);
	device_sum_release(&sum);
}

static void a_message_of_another_call_is_named(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= (SANITIZED ? 60 : 150); seed++)
		differ_once(seed);
}

/* Each transfer has a tag of its own. */
static void a_transfer_that_differs_is_named(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 16; i++) {
		const struct device_config config = { .n = 2,
						      .nblocks = 1 + i % 2,
						      .nthreads = i / 2 % 2 ? 4 : 1,
						      .nslots = 2,
						      .slot_bytes = 16,
						      .words = i / 4 % 2 };
		const bool is_tag = i / 8;
		const struct tti_dev_report *report;
		struct tti_dev_extent *sent;
		struct tti_dev_call call[2];
		struct device_bed bed;

		device_bed_init(&bed, &config);
		make_transfer(&bed, call, 100);
		sent = device_view(&bed, call[0].extents);
		sent->tag += is_tag;
		sent->slice -= !is_tag;
		assert_int_equal(device_run(&bed, call, 1), DEVICE_ENDED);
		assert_int_equal(bed.result[1], TTI_DEV_MISMATCH);
		report = &device_control(&bed, 1)->report;
		assert_int_equal(report->result, TTI_DEV_MISMATCH);
		assert_int_equal(report->peer, 0);
		assert_int_equal(report->tag, sent->tag);
		assert_int_equal(report->own_tag, 5);
		assert_int_equal(report->nbytes, sent->slice);
		assert_int_equal(report->own_nbytes, 10);
		device_bed_release(&bed);
	}
}

/* -- Ranks that do not come ------------------------------------------------------------------ */

/* Whether every block of every rank but the late one says that it waits for that. */
static bool all_wait(const struct device_bed *bed, int late, uint32_t is_room)
{
	for (int rank = 0; rank < bed->config.n; rank++)
		for (uint32_t block = 0; rank != late && block < bed->config.nblocks; block++) {
			struct tti_dev_progress *at = &device_control(bed, rank)->progress[block];

			if (__atomic_load_n(&at->waits_for, __ATOMIC_RELAXED) !=
				    1 + (uint32_t)late ||
			    __atomic_load_n(&at->is_room, __ATOMIC_RELAXED) != is_room)
				return false;
		}
	return true;
}

/* A rank that comes once all others say that they wait for it. */
static struct {
	struct device_bed *bed;
	int rank;
	uint32_t is_room;
	bool was_named;
} late;

static tutti_status run_late(const struct tti_dev_launch *launch, const struct tti_dev_host *host)
{
	const int64_t until = tti_now_ns() + 60000 * TTI_NS_PER_MS;

	while (launch->call[0].control == late.bed->control[late.rank] && !late.was_named &&
	       tti_now_ns() < until) {
		late.was_named = all_wait(late.bed, late.rank, late.is_room);
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
	}
	return tti_dev_host_run(launch, host);
}

/* Nobody waits any more. */
static void assert_none_waits(const struct device_bed *bed)
{
	for (int rank = 0; rank < bed->config.n; rank++)
		for (uint32_t block = 0; block < bed->config.nblocks; block++)
			assert_int_equal(device_control(bed, rank)->progress[block].waits_for, 0);
}

static void who_is_waited_for_is_named(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		const struct device_config config = { .n = 4,
						      .nblocks = 1 + i % 2,
						      .nthreads = i / 2 % 2 ? 4 : 1,
						      .nslots = 2,
						      .words = i / 4,
						      .per_launch = 1,
						      .run = run_late };

		/* Messages of all others have come. */
		device_sum_init(&sum, &config, "exchange", 10, 10);
		late.bed = &sum.bed;
		late.rank = (int)(i % 4);
		late.is_room = 0;
		late.was_named = false;
		assert_int_equal(device_run(&sum.bed, sum.call, 1), DEVICE_DONE);
		assert_true(late.was_named);
		assert_int_equal(device_sum_wrong(&sum), 0);
		assert_none_waits(&sum.bed);
		device_sum_release(&sum);
	}
}

/* In a list a block looks at its queues; it names the one that holds it up. */
static void lists_name_who_is_waited_for(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 16; i++) {
		const struct device_config config = { .n = 2,
						      .nblocks = 1 + i % 2,
						      .nthreads = i / 2 % 2 ? 4 : 1,
						      .nslots = 2,
						      .slot_bytes = 16,
						      .words = i / 4 % 2,
						      .per_launch = 1,
						      .run = run_late };
		struct tti_dev_call call[2];
		struct device_bed bed;

		device_bed_init(&bed, &config);
		make_transfer(&bed, call, 100);
		late.bed = &bed;
		late.rank = (int)(i / 8);
		late.is_room = late.rank == 1;
		late.was_named = false;
		assert_int_equal(device_run(&bed, call, 1), DEVICE_DONE);
		assert_true(late.was_named);
		assert_none_waits(&bed);
		device_bed_release(&bed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_at_any_moment_ends_all_threads),
		cmocka_unit_test(lists_are_stopped_as_well),
		cmocka_unit_test(a_message_of_another_call_is_named),
		cmocka_unit_test(a_transfer_that_differs_is_named),
		cmocka_unit_test(who_is_waited_for_is_named),
		cmocka_unit_test(lists_name_who_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
