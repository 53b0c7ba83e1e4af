/* SPDX-License-Identifier: BSD-3-Clause */
/* What ends a job that cannot succeed: a rank in another call or with another length, a port that
 * fails, a stop, a link that cannot be made, a rank that never comes. Each with the status and
 * the peer that its owner needs to say why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/program.h"
#include "support/bed.h"
#include "util/error.h"

#define RANKS 6
#define TAG   UINT64_C(0x7a9)
/* Elements of a chunk. */
#define COUNT 20

/* One algorithm on all ranks, each with buffers that are long enough for any layout. */
struct stage {
	const struct tti_algorithm *algo;
	int n, nchunks;
	struct tti_executable *bound[RANKS];
	uint32_t *memory[RANKS];
	struct bed bed;
	/* The rank that is not like the others. */
	int odd;
	uint64_t odd_tag;
	size_t odd_count;
	/* In tti_job_wait(): polls so far, and the one at which something happens. */
	int polls, at;
	void (*happens)(struct stage *stage);
};

static void set_up(struct stage *stage, const struct tti_algorithm *algo, int n,
		   const struct mock_config *mock)
{
	const struct bed_config config = { .n = n, .mock = *mock, .seed = (uint64_t)n };

	*stage = (struct stage){ .algo = algo, .n = n, .odd = -1 };
	bed_init(&stage->bed, &config);
	for (int rank = 0; rank < n; rank++) {
		struct tti_program prog;
		struct tti_compiled compiled;

		assert_int_equal(
			tti_program_build(algo, &(struct tti_program_spec){ .rank = rank, .n = n },
					  &prog),
			TUTTI_OK);
		stage->nchunks = prog.nchunks;
		assert_int_equal(tti_compile(&prog, &compiled), TUTTI_OK);
		tti_program_release(&prog);
		assert_int_equal(tti_executable_create(&stage->bed.engine[rank], &compiled,
						       &stage->bound[rank]),
				 TUTTI_OK);
		stage->memory[rank] = calloc(2 * COUNT * (size_t)stage->nchunks, sizeof(uint32_t));
	}
}

static void tear_down(struct stage *stage)
{
	for (int rank = 0; rank < stage->n; rank++) {
		tti_executable_free(stage->bound[rank]);
		free(stage->memory[rank]);
	}
	bed_release(&stage->bed);
}

/* All chunks in one row, of the input and of the output, as long as the other. */
static void start(void *self, struct bed *bed, int rank, int at)
{
	struct stage *stage = self;
	const size_t count = rank == stage->odd && stage->odd_count ? stage->odd_count : COUNT;
	const struct tti_layout layout = {
		.input = stage->memory[rank],
		.output = stage->memory[rank] + COUNT * (size_t)stage->nchunks,
		.type_size = sizeof(uint32_t),
		.parts = stage->nchunks,
		.chunk_count = count,
		.row_count = count * (size_t)stage->nchunks,
	};
	const struct tti_reducer reducer = tti_reducer_of(TUTTI_UINT32, TUTTI_SUM, stage->n);

	(void)at;
	assert_int_equal(
		tti_job_program(&bed->job[rank], &bed->engine[rank], stage->bound[rank], &layout,
				&reducer, 8 * sizeof(uint32_t),
				rank == stage->odd && stage->odd_tag ? stage->odd_tag : TAG),
		TUTTI_OK);
}

static void for_all(int least, const struct mock_config *mock,
		    void (*body)(const struct tti_algorithm *algo, int n,
				 const struct mock_config *mock))
{
	const struct tti_algorithm *algo;

	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			/* The mock has no memory that ranks share. */
			for (int n = least; n <= RANKS && !algo->needs_memory; n++)
				body(algo, n, mock);
}

static const struct mock_config at_random = { .slot_bytes = 256, .slots = 2, .pace = MOCK_RANDOM };

/* -- Another call ------------------------------------------------------------------------------ */

/* No rank takes a message of the odd one, nor the odd one of any other; who ends with a mismatch
 * names one whose message is another. */
static void check_mismatch(struct stage *stage, enum bed_end end, bool all)
{
	const struct bed *bed = &stage->bed;
	int mismatches = 0;
	uint64_t met = 0;

	for (int rank = 0; rank < stage->n; rank++) {
		const struct tti_job *job = &bed->job[rank];
		const bool is_odd = rank == stage->odd;

		assert_true(job->status == TUTTI_OK || job->status == TUTTI_AGAIN ||
			    job->status == TUTTI_EMISMATCH);
		if (job->status == TUTTI_EMISMATCH) {
			mismatches++;
			assert_true(is_odd ? job->mismatch_peer >= 0 &&
						     job->mismatch_peer < stage->n
					   : job->mismatch_peer == stage->odd);
			assert_int_not_equal(job->mismatch_peer, rank);
		} else {
			assert_int_equal(job->mismatch_peer, -1);
		}
		if (is_odd)
			continue;
		met += bed_sent(bed, stage->odd, rank) + bed_sent(bed, rank, stage->odd);
		if (!all)
			continue;
		assert_int_equal(trace_received(bed->port[0].trace[rank], stage->odd), 0);
		assert_int_equal(trace_received(bed->port[0].trace[stage->odd], rank), 0);
	}
	if (met > 0) {
		assert_int_equal(end, BED_ENDED);
		assert_true(mismatches > 0);
	}
}

static void one_has_another_tag(const struct tti_algorithm *algo, int n,
				const struct mock_config *mock)
{
	static struct stage stage;
	const struct bed_work work = { .n = 1, .start = start, .self = &stage };

	for (int odd = 0; odd < n; odd += n - 1) {
		set_up(&stage, algo, n, mock);
		stage.odd = odd;
		stage.odd_tag = TAG ^ (UINT64_C(1) << (odd ? 63 : 0));
		check_mismatch(&stage, bed_run(&stage.bed, &work), true);
		tear_down(&stage);
	}
}

static void another_call_is_found(void **state)
{
	(void)state;
	for_all(2, &at_random, one_has_another_tag);
}

static void one_has_another_length(const struct tti_algorithm *algo, int n,
				   const struct mock_config *mock)
{
	static struct stage stage;
	const struct bed_work work = { .n = 1, .start = start, .self = &stage };

	/* Shorter within the first block, and in the last one only. */
	for (size_t count = COUNT - 15; count <= COUNT - 1; count += 14) {
		set_up(&stage, algo, n, mock);
		stage.odd = n / 2;
		stage.odd_count = count;
		check_mismatch(&stage, bed_run(&stage.bed, &work), count < 8);
		tear_down(&stage);
	}
}

static void another_length_is_found(void **state)
{
	(void)state;
	for_all(2, &at_random, one_has_another_length);
}

/* -- Waiting for all jobs in one place ------------------------------------------------------------ */

static void on_poll(void *self, int rank)
{
	struct stage *stage = self;

	(void)rank;
	for (int at = 0; at < stage->bed.nports; at++)
		mock_tick(stage->bed.port[at].mock);
	if (stage->happens && ++stage->polls == stage->at)
		stage->happens(stage);
}

static tutti_status wait_for_all(struct stage *stage)
{
	struct tti_job *jobs[RANKS];

	for (int rank = 0; rank < stage->n; rank++) {
		start(stage, &stage->bed, rank, 0);
		jobs[rank] = &stage->bed.job[rank];
	}
	for (int at = 0; at < stage->bed.nports; at++)
		mock_on_idle(stage->bed.port[at].mock, on_poll, stage);
	return tti_job_wait(jobs, stage->n);
}

static const struct mock_config with_progress = {
	.slot_bytes = 256, .slots = 2, .pace = MOCK_RANDOM, .has_progress = true
};

static void one_thread_waits_for_all_jobs(const struct tti_algorithm *algo, int n,
					  const struct mock_config *mock)
{
	static struct stage stage;

	set_up(&stage, algo, n, mock);
	assert_int_equal(wait_for_all(&stage), TUTTI_OK);
	assert_true(bed_is_clean(&stage.bed));
	for (int rank = 0; rank < n; rank++) {
		assert_int_equal(stage.bed.job[rank].status, TUTTI_OK);
		assert_int_equal(mock_port(stage.bed.port[0].mock, rank)->unsent, 0);
		assert_int_equal(stage.bed.engine[rank].waiting_on, -1);
	}
	tear_down(&stage);
}

static void all_jobs_of_a_thread_come_to_their_end(void **state)
{
	(void)state;
	for_all(1, &with_progress, one_thread_waits_for_all_jobs);
}

static void stop_all(struct stage *stage)
{
	atomic_store(&stage->bed.stop, 1);
}

/* Jobs that ended otherwise than well, in all cases of a test. */
static int stopped;

static void one_stops_them(const struct tti_algorithm *algo, int n, const struct mock_config *mock)
{
	static struct stage stage;

	for (int at = 1; at < 40; at += 13) {
		tutti_status st;
		bool aborted = false;

		set_up(&stage, algo, n, mock);
		stage.at = at;
		stage.happens = stop_all;
		st = wait_for_all(&stage);
		for (int rank = 0; rank < n; rank++) {
			const tutti_status own = stage.bed.job[rank].status;

			assert_true(own == TUTTI_OK || own == TUTTI_EABORTED);
			aborted |= own == TUTTI_EABORTED;
		}
		assert_int_equal(st, aborted ? TUTTI_EABORTED : TUTTI_OK);
		stopped += aborted;
		tear_down(&stage);
	}
}

static void a_stop_ends_all_jobs(void **state)
{
	(void)state;
	stopped = 0;
	for_all(2, &with_progress, one_stops_them);
	/* Else it came too late to tell anything. */
	assert_true(stopped > 200);
}

/* The odd rank's port fails; the others are told once its job has ended. */
static void fail_one(struct stage *stage)
{
	struct tti_port *port = mock_port(stage->bed.port[0].mock, stage->odd);

	stage->at++;
	if (port->failure == TUTTI_OK) {
		tti_error_set("the cable is gone");
		tti_port_fail(port, TUTTI_EPEER, 0);
	} else if (stage->bed.job[stage->odd].status != TUTTI_AGAIN) {
		stop_all(stage);
	}
}

static void one_port_fails(const struct tti_algorithm *algo, int n, const struct mock_config *mock)
{
	static struct stage stage;

	for (int at = 2; at < 40; at += 19) {
		struct tti_port *port;

		set_up(&stage, algo, n, mock);
		stage.at = at;
		stage.odd = n - 1;
		stage.happens = fail_one;
		assert_true(wait_for_all(&stage) != TUTTI_AGAIN);
		port = mock_port(stage.bed.port[0].mock, stage.odd);
		for (int rank = 0; rank < n; rank++) {
			const tutti_status own = stage.bed.job[rank].status;

			assert_true(own == TUTTI_OK ||
				    own == (rank == stage.odd ? TUTTI_EPEER : TUTTI_EABORTED));
		}
		assert_true(port->failure == TUTTI_OK || port->failed_peer == 0);
		stopped += stage.bed.job[stage.odd].status == TUTTI_EPEER;
		tear_down(&stage);
	}
}

static void a_failed_port_ends_its_job(void **state)
{
	(void)state;
	stopped = 0;
	for_all(2, &with_progress, one_port_fails);
	assert_true(stopped > 100);
}

/* -- No link, no rank --------------------------------------------------------------------------- */

static void one_link_cannot_be_made(const struct tti_algorithm *algo, int n,
				    const struct mock_config *mock)
{
	static struct stage stage;
	const struct bed_work work = { .n = 1, .start = start, .self = &stage };

	set_up(&stage, algo, n, mock);
	mock_refuse(stage.bed.port[0].mock, 0, n - 1, TUTTI_EPEER);
	bed_run(&stage.bed, &work);
	for (int rank = 0; rank < n; rank++) {
		const tutti_status own = stage.bed.job[rank].status;

		assert_true(own == TUTTI_OK || own == TUTTI_AGAIN ||
			    (rank == 0 && own == TUTTI_EPEER));
	}
	/* Nothing went over what is not there. */
	assert_int_equal(bed_sent(&stage.bed, 0, n - 1), 0);
	stopped += stage.bed.job[0].status == TUTTI_EPEER;
	if (stage.bed.job[0].status != TUTTI_EPEER)
		assert_int_equal(bed_sent(&stage.bed, n - 1, 0), 0);
	tear_down(&stage);
}

static void a_link_that_cannot_be_made_ends_the_job(void **state)
{
	(void)state;
	stopped = 0;
	for_all(2, &at_random, one_link_cannot_be_made);
	assert_true(stopped > 50);
}

struct witness {
	int peer;
	tutti_status status;
};

static tutti_status on_wait(void *self, int64_t since_ns, int peer)
{
	struct witness *witness = self;

	(void)since_ns;
	witness->peer = peer;
	return TUTTI_ETIMEOUT;
}

/* All but one have begun and done what they can. */
static void start_but_one(void *self, struct bed *bed, int rank, int at)
{
	struct stage *stage = self;

	if (rank != stage->odd)
		start(self, bed, rank, at);
	else
		bed->job[rank] =
			(struct tti_job){ .engine = &bed->engine[rank], .status = TUTTI_EABORTED };
}

/* Whoever is asked says for whom it waits, and from there on one comes to who is missing. */
static void who_is_missing_is_found_by(const struct tti_algorithm *algo, int n)
{
	static struct stage stage;
	const struct bed_work work = { .n = 1, .start = start_but_one, .self = &stage };
	struct witness witness[RANKS] = { 0 };
	int blamed[RANKS];

	set_up(&stage, algo, n, &at_random);
	stage.odd = n - 1;
	assert_int_equal(bed_run(&stage.bed, &work), BED_ENDED);
	for (int rank = 0; rank < n; rank++) {
		struct tti_job *job = &stage.bed.job[rank];

		blamed[rank] = rank == stage.odd ? rank : -1;
		if (job->status != TUTTI_AGAIN)
			continue;
		stage.bed.engine[rank].config.events = (struct tti_engine_events){
			.self = &witness[rank],
			.on_wait = on_wait,
		};
		assert_int_equal(tti_job_wait(&job, 1), TUTTI_ETIMEOUT);
		blamed[rank] = witness[rank].peer;
		assert_in_range(blamed[rank], 0, n - 1);
	}
	for (int rank = 0; rank < n; rank++) {
		int at = rank;

		for (int i = 0; i < n && at >= 0 && at != stage.odd; i++)
			at = blamed[at];
		if (blamed[rank] >= 0)
			assert_int_equal(at, stage.odd);
	}
	tear_down(&stage);
}

static void who_is_missing_is_found(void **state)
{
	static const struct {
		tutti_collective coll;
		const char *name;
		int n;
	} cases[] = {
		{ TUTTI_ALL_REDUCE, "exchange", 3 }, { TUTTI_ALL_REDUCE, "ring", 4 },
		{ TUTTI_ALL_REDUCE, "direct", 3 },   { TUTTI_ALL_REDUCE, "recursive_doubling", 4 },
		{ TUTTI_REDUCE, "binomial", 4 },     { TUTTI_BROADCAST, "chain", 4 },
		{ TUTTI_ALL_TO_ALL, "direct", 3 },   { TUTTI_BARRIER, "dissemination", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		who_is_missing_is_found_by(tti_algorithm_find(cases[i].coll, cases[i].name),
					   cases[i].n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_call_is_found),
		cmocka_unit_test(another_length_is_found),
		cmocka_unit_test(all_jobs_of_a_thread_come_to_their_end),
		cmocka_unit_test(a_stop_ends_all_jobs),
		cmocka_unit_test(a_failed_port_ends_its_job),
		cmocka_unit_test(a_link_that_cannot_be_made_ends_the_job),
		cmocka_unit_test(who_is_missing_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
