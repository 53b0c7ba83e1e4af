/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches that do not come to their end: stopped at any moment, of calls that differ, with a rank that
 * never comes; and kernels that forget where memory lies. TEST_CASES=1000: so many stops. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/device_memory.h"
#include "support/device_trial.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "util/clock.h"

#define STOPS      (SANITIZED ? 20 : 100)
/* 100 ms are asked for, of a machine that does nothing else; what it takes is printed. */
#define STOPPED_NS (30000 * TTI_NS_PER_MS)

static struct trial trial;
static struct device_trial on;

static void set_up(tutti_collective coll, const char *name, int n, const struct device_config *with,
		   uint64_t seed)
{
	const struct trial_config config = { .algo = tti_algorithm_find(coll, name),
					     .n = n,
					     .shape = -1,
					     .pair = 1,
					     .has_any_bits = true,
					     .seed = seed };
	const struct bed_config bed = device_plain_bed(n, 256);

	assert_non_null(config.algo);
	trial_init(&trial, &config, &bed);
	assert_true(trial_run(&trial));
	device_trial_init(&on, &trial, with);
}

static void tear_down(void)
{
	device_trial_release(&on);
	trial_release(&trial);
}

/* The same with a first call of so many steps at least. */
static void set_up_long(tutti_collective coll, const char *name, int n,
			const struct device_config *with, uint64_t seed, size_t steps)
{
	set_up(coll, name, n, with, seed);
	while (trial.call[0].count * tutti_type_size(trial.call[0].type) <
	       steps * trial.call[0].slice_bytes * (size_t)trial.nchunks) {
		tear_down();
		seed += 1000;
		set_up(coll, name, n, with, seed);
	}
}

/* -- Stops ----------------------------------------------------------------------------------- */

struct stop {
	int64_t at_ns, stopped_ns; /* when it is to be, and when it was */
	int rank;                  /* -1: all */
};

static void stop_in_time(void *self, struct device_bed *bed)
{
	struct stop *stop = self;

	if (stop->stopped_ns || tti_now_ns() < stop->at_ns)
		return;
	for (int rank = 0; rank < bed->config.n; rank++)
		if (stop->rank < 0 || stop->rank == rank)
			device_stop(bed, rank);
	stop->stopped_ns = tti_now_ns();
}

/* How many threads this process has. */
static int nthreads_now(void)
{
	char line[256];
	int n = 0;
	FILE *status = fopen("/proc/self/status", "re");

	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "Threads: %d", &n) == 1)
			break;
	fclose(status);
	return n;
}

/* Before and after a launch has begun, while all wait for a rank that never comes, and while they
 * work: all threads end, and whoever has not done all says that it was stopped. */
static void every_thread_ends_when_it_is_stopped(void **state)
{
	static const char *const names[] = { "ring", "exchange", "direct", "memory" };
	const char *asked = getenv("TEST_CASES");
	const uint64_t stops = asked ? strtoull(asked, NULL, 10) : STOPS;
	const int before = nthreads_now();
	int64_t longest = 0;
	int stopped = 0;

	(void)state;
	for (uint64_t i = 0; i < stops; i++) {
		uint64_t random = i;
		const int n = 2 + (int)(next_random(&random) % 3);
		const struct device_config with = {
			.n = n,
			.nblocks = 1 + (uint32_t)(next_random(&random) % 3),
			.nthreads = 2 + (uint32_t)(next_random(&random) % 3),
			.nslots = 1 + (uint32_t)(next_random(&random) % 3),
			.words = next_random(&random) % 2,
			.missing = next_random(&random) % 2 ? 1 : 0,
		};
		struct stop stop = { .rank = -1 };
		enum device_end end;

		set_up(TUTTI_ALL_REDUCE, names[i % 4], n, &with, 1 + i % 50);
		stop.at_ns = tti_now_ns() + (int64_t)(next_random(&random) % (4 * TTI_NS_PER_MS));
		end = device_run_watched(&on.bed, on.call, TRIAL_CALLS, stop_in_time, &stop);
		assert_int_not_equal(end, DEVICE_STUCK);
		for (int rank = 0; rank < n; rank++)
			if (rank != with.missing || rank == 0)
				assert_true(device_has_done(on.bed.result[rank]) ||
					    on.bed.result[rank] == TTI_DEV_STOPPED);
		if (end == DEVICE_ENDED) {
			const int64_t took = tti_now_ns() - stop.stopped_ns;

			stopped++;
			longest = took > longest ? took : longest;
			assert_true(took < STOPPED_NS);
		}
		tear_down();
	}
	printf("%d of %d were stopped, the longest took %.3f ms\n", stopped, (int)stops,
	       (double)longest / 1e6);
	assert_true(stopped >= (int)stops / 3);
	assert_int_equal(nthreads_now(), before);
}

struct end {
	uint64_t messages; /* of the lanes of rank 0, when it said that it was done */
	bool seen;
};

static void look_when_done(void *self, struct device_bed *bed)
{
	struct end *end = self;
	const struct tti_dev_lane *lane = device_view(bed, bed->lanes[0]);
	const uint64_t *done = device_view(bed, bed->done[0]);
	const int64_t until = tti_now_ns() + 20 * TTI_NS_PER_MS;

	while (!end->seen && tti_now_ns() < until)
		end->seen = __atomic_load_n(done, __ATOMIC_ACQUIRE) >> 8 == on.call[0].done_value;
	for (int i = 0; end->seen && i < 2 * bed->config.n; i++)
		end->messages += lane[i].seq;
}

/* Whoever sees that a call is done may look at all that its blocks have left, while they end. */
static void what_is_done_is_all_there(void **state)
{
	const struct device_config with = { .n = 4, .nblocks = 2, .nthreads = 4, .nslots = 2 };
	int seen = 0;

	(void)state;
	for (uint64_t i = 0; i < (SANITIZED ? 5 : 20); i++) {
		struct end end = { .seen = false };

		set_up_long(TUTTI_ALL_REDUCE, "direct", 4, &with, 1 + i, 1);
		assert_int_equal(device_run_watched(&on.bed, on.call, 1, look_when_done, &end),
				 DEVICE_DONE);
		seen += end.seen;
		assert_true(!end.seen || end.messages > 0);
		tear_down();
	}
	assert_true(seen > 0);
}

/* Whether all blocks of rank 0 say so. */
static bool all_say(struct device_bed *bed, uint32_t runs)
{
	for (uint32_t block = 0; block < bed->config.nblocks; block++)
		if (__atomic_load_n(&device_control(bed, 0)->runs[block], __ATOMIC_ACQUIRE) != runs)
			return false;
	return true;
}

/* That rank 0 runs. */
static _Atomic bool was_seen;

/* All other ranks begin when it was seen that rank 0 runs. */
static tutti_status run_after_the_first(const struct tti_dev_launch *launch,
					const struct tti_dev_host *host)
{
	const int64_t until = tti_now_ns() + 60000 * TTI_NS_PER_MS;

	while (launch->call[0].control != on.bed.control[0] && !was_seen && tti_now_ns() < until)
		sched_yield();
	return tti_dev_host_run(launch, host);
}

static void look_when_none_runs(void *self, struct device_bed *bed)
{
	struct end *end = self;
	const struct tti_dev_lane *lane = device_view(bed, bed->lanes[0]);
	const int64_t until = tti_now_ns() + 60000 * TTI_NS_PER_MS;

	for (; !end->seen && tti_now_ns() < until; sched_yield()) {
		if (!was_seen)
			was_seen = all_say(bed, 1);
		else
			end->seen = all_say(bed, 0);
	}
	for (int i = 0; end->seen && i < 2 * bed->config.n; i++)
		end->messages += lane[i].seq;
}

/* The same of a call that tells nobody that it is done: its blocks say that they do not run. */
static void what_does_not_run_is_all_there(void **state)
{
	const struct device_config with = { .n = 2,
					    .nblocks = 2,
					    .nthreads = 4,
					    .nslots = 2,
					    .per_launch = 1,
					    .run = run_after_the_first };

	(void)state;
	for (uint64_t i = 0; i < 5; i++) {
		struct end end = { .seen = false };

		set_up_long(TUTTI_ALL_REDUCE, "direct", 2, &with, 1 + i, 1);
		on.call[0].done = 0;
		was_seen = false;
		assert_int_equal(device_run_watched(&on.bed, on.call, 1, look_when_none_runs, &end),
				 DEVICE_ENDED);
		assert_true(end.seen);
		assert_true(end.messages > 0);
		tear_down();
	}
}

/* -- A rank that never comes ----------------------------------------------------------------- */

struct sight {
	bool seen[3][2]; /* of each rank: that it waits for a message of rank 1, for room there */
	int64_t until_ns;
};

static void look_for_the_missing(void *self, struct device_bed *bed)
{
	struct sight *sight = self;
	bool all = sight->seen[2][0] && sight->seen[0][1];

	for (int rank = 0; rank < 3; rank += 2) {
		const struct tti_dev_progress *at = &device_control(bed, rank)->progress[1];

		if (__atomic_load_n(&at->waits_for, __ATOMIC_RELAXED) == 1 + 1)
			sight->seen[rank][__atomic_load_n(&at->is_room, __ATOMIC_RELAXED)] = true;
	}
	if (!all && tti_now_ns() < sight->until_ns)
		return;
	for (int rank = 0; rank < 3; rank++)
		device_stop(bed, rank);
}

/* Who waits for a message names the sender, who has no room the reader. Words that were never written are
 * no message, also not that number 2^32. */
static void a_rank_that_never_comes_is_named(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		const struct device_config with = { .n = 3,
						    .nblocks = 2,
						    .nthreads = 2,
						    .nslots = 1,
						    .words = i > 0,
						    .carried = i > 1 ? UINT32_MAX : 0,
						    .is_unwritten = true,
						    .missing = 1 };
		struct sight sight = { .until_ns = tti_now_ns() + 60000 * TTI_NS_PER_MS };

		/* The only message of the ring to rank 1 that does not need one of rank 1 first
		 * fills the one slot; of a chain each block is one. */
		set_up_long(TUTTI_BROADCAST, "chain", 3, &with, 6, 4);
		assert_int_equal(
			device_run_watched(&on.bed, on.call, 1, look_for_the_missing, &sight),
			DEVICE_ENDED);
		assert_true(sight.seen[2][0]);
		assert_true(sight.seen[0][1]);
		tear_down();
	}
}

/* -- Calls that differ ----------------------------------------------------------------------- */

/* Messages of memory programs have a tag alone, no length of their data; those that carry data are
 * tried by test_device_trouble.c. */
static void calls_of_memory_that_differ_are_found(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		const struct device_config with = {
			.n = 2, .nblocks = 1 + i % 3, .nthreads = 2, .nslots = 2, .words = i / 4
		};
		int found = 0;

		set_up(TUTTI_ALL_REDUCE, "memory", 2, &with, 40 + i);
		on.call[0].tag ^= UINT64_C(1) << 40;
		assert_int_equal(device_run(&on.bed, on.call, 1), DEVICE_ENDED);
		for (int rank = 0; rank < 2; rank++) {
			const struct tti_dev_report *report =
				&device_control(&on.bed, rank)->report;

			if (report->result != TTI_DEV_MISMATCH) {
				assert_int_equal(on.bed.result[rank], TTI_DEV_STOPPED);
				continue;
			}
			found++;
			assert_int_equal(on.bed.result[rank], TTI_DEV_MISMATCH);
			assert_int_equal(report->peer, !rank);
			assert_int_equal(report->own_tag, on.call[rank].tag);
			assert_int_equal(report->tag, on.call[!rank].tag);
			assert_int_equal(report->nbytes, report->own_nbytes);
		}
		assert_true(found > 0);
		tear_down();
	}
}

/* -- Memory that a kernel does not ask for ---------------------------------------------------- */

static uint64_t raw_from, raw_to;

/* Forgets one of the places. */
static void *forgetful_view(uint64_t address)
{
	if (address >= raw_from && address < raw_to)
		return (void *)(uintptr_t)address;
	return device_memory_view(address);
}

static void run_forgetful(void)
{
	struct tti_dev_host host = { .nthreads = 2, .view = forgetful_view };
	struct tti_dev_launch launch = { .ncalls = 2, .nblocks = 2 };

	launch.noperands = (uint32_t)on.bed.noperands;
	memcpy(launch.call, on.call, 2 * sizeof(on.call[0]));
	if (tti_dev_host_run(&launch, &host) != TUTTI_OK)
		_exit(2);
	_exit(0);
}

/* The signal of which a process that reads memory of a GPU there dies; 0: it ends. */
static int signal_of(uint64_t from, size_t nbytes)
{
	int status = 0;
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit none = { 0, 0 };

		/* The sanitizers, too, let it die of the signal. */
		signal(SIGSEGV, SIG_DFL);
		alarm(60);
		setrlimit(RLIMIT_CORE, &none);
		raw_from = from;
		raw_to = from + nbytes;
		run_forgetful();
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static uint64_t place_of(int which)
{
	const struct tti_dev_call *call = &on.call[0];
	const struct tti_dev_lane *lane =
		(const struct tti_dev_lane *)device_view(&on.bed, call->lanes) + 2 * 1;
	const uint64_t places[] = { call->program, call->input, call->output, call->lanes,
				    call->state,   call->done,  lane->slots,  lane->heads,
				    lane->full,    lane->freed };

	return which < (int)(sizeof(places) / sizeof(places[0])) ? places[which] : 0;
}

/* Each place that a call names is asked for, and it would be found if one were not. */
static void memory_is_reached_where_it_lies(void **state)
{
	const struct device_config with = {
		.n = 2, .nblocks = 2, .nthreads = 2, .nslots = 2, .is_guarded = true
	};
	uint64_t place = 1;

	(void)state;
	/* A child leaves lanes as they are when it dies, in memory that it shares. */
	for (int which = -1; place; which++) {
		set_up_long(TUTTI_ALL_REDUCE, "ring", 2, &with, 1, 4);
		place = which < 0 ? 1 : place_of(which);
		assert_int_equal(signal_of(place, 1), place > 1 ? SIGSEGV : 0);
		tear_down();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_reached_where_it_lies),
		cmocka_unit_test(what_is_done_is_all_there),
		cmocka_unit_test(what_does_not_run_is_all_there),
		cmocka_unit_test(calls_of_memory_that_differ_are_found),
		cmocka_unit_test(a_rank_that_never_comes_is_named),
		cmocka_unit_test(every_thread_ends_when_it_is_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
