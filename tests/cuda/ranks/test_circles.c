/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of one GPU on one stream of the program, called outside of a group: the second kernel is behind the first, which
 * waits for it. That is an error, and ranks that are only late are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"
#include "ranks.h"

#define MOST  3
#define COUNT 2000

/* Ten times what the slowest machine needs. */
#define PATIENCE_MS 60000

/* Ranks of this thread. */
struct crew {
	int n;
	tutti_comm_t comm[MOST];
	struct gpu_buffer buffer[MOST];
	struct gpu_stream stream[MOST]; /* NULL: that of rank 0 */
};

static tutti_stream_t stream_of(const struct crew *crew, int rank)
{
	return crew->stream[rank].tutti ? crew->stream[rank].tutti : crew->stream[0].tutti;
}

static void call(const struct crew *crew, int rank)
{
	assert_int_equal(tutti_all_reduce(crew->buffer[rank].memory, crew->buffer[rank].memory,
					  COUNT, TUTTI_UINT32, TUTTI_SUM, crew->comm[rank],
					  stream_of(crew, rank)),
			 TUTTI_OK);
}

static void call_in_a_group(const struct crew *crew, int first, int end)
{
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int rank = first; rank < end; rank++)
		call(crew, rank);
	assert_int_equal(tutti_group_end(), TUTTI_OK);
}

static void wait_for_all(const struct crew *crew)
{
	for (int rank = 0; rank < crew->n; rank++)
		if (crew->stream[rank].tutti)
			gpu_stream_wait(&crew->stream[rank]);
}

/* Ranks 0 and 1 are on GPU 1 and have one stream, rank 2 is on GPU 2. All lanes are made. */
static void open_crew(struct crew *crew, int n)
{
	static const int devices[MOST] = { 1, 1, 2 };
	struct ranks ranks;

	memset(crew, 0, sizeof(*crew));
	ranks_make(&ranks, n, devices, false);
	crew->n = n;
	for (int rank = 0; rank < n; rank++) {
		crew->comm[rank] = ranks.comm[rank];
		gpu_alloc(&crew->buffer[rank], devices[rank], COUNT * sizeof(uint32_t));
		if (rank != 1)
			gpu_stream_open(&crew->stream[rank], &crew->buffer[rank]);
	}
	call_in_a_group(crew, 0, n);
	wait_for_all(crew);
}

static void close_crew(struct crew *crew)
{
	for (int rank = 0; rank < crew->n; rank++) {
		assert_int_equal(tutti_comm_destroy(crew->comm[rank]), TUTTI_OK);
		if (crew->stream[rank].tutti)
			(void)gpu_stream_close(&crew->stream[rank]);
		gpu_free(&crew->buffer[rank]);
	}
}

/* Streams may end before a rank has heard why. */
static tutti_status await_error(tutti_comm_t comm)
{
	tutti_status st = TUTTI_OK;

	for (int ms = 0; ms < PATIENCE_MS && st == TUTTI_OK; ms++) {
		assert_int_equal(tutti_comm_get_async_error(comm, &st), TUTTI_OK);
		(void)usleep(1000);
	}
	return st;
}

static void behind_another(int n)
{
	struct crew crew;

	open_crew(&crew, n);
	for (int rank = 0; rank < n; rank++)
		call(&crew, rank);
	wait_for_all(&crew);
	for (int rank = 0; rank < n; rank++) {
		assert_true(await_error(crew.comm[rank]) < 0);
		assert_non_null(strstr(tutti_last_error(crew.comm[rank]),
				       "the kernel of rank 1 is behind that of rank 0 in one "
				       "stream, which waits for it"));
	}
	close_crew(&crew);
	ranks_assert_nothing_held();
}

static void a_rank_behind_one_that_waits_for_it_is_an_error(void **state)
{
	(void)state;
	behind_another(2);
}

/* Rank 0 waits for rank 2, which waits for rank 1. */
static void ranks_between_the_two_are_seen_through(void **state)
{
	(void)state;
	behind_another(3);
}

/* Longer than it takes to find a circle. */
static void be_late(void)
{
	const struct timespec late = { .tv_sec = 2 };

	nanosleep(&late, NULL);
}

static void ranks_that_are_late_are_no_error(void **state)
{
	struct crew crew;
	tutti_status st;

	(void)state;
	open_crew(&crew, 3);
	call_in_a_group(&crew, 0, 2);
	be_late();
	call(&crew, 2);
	wait_for_all(&crew);
	for (int rank = 0; rank < 3; rank++) {
		assert_int_equal(tutti_comm_get_async_error(crew.comm[rank], &st), TUTTI_OK);
		assert_int_equal(st, TUTTI_OK);
	}
	close_crew(&crew);
	ranks_assert_nothing_held();
}

/* Ranks 0 and 1 of two communicators wait in a stream for each. The GPU is said to run fewer blocks than they have. */
static void crowd(void)
{
	const char *path = strchr(getenv("TUTTI_DEBUG_FILE"), '/');
	struct crew crew[2];
	static char text[1 << 16];
	FILE *log;

	for (int i = 0; i < 2; i++) {
		struct tti_comm *comm;

		open_crew(&crew[i], 3);
		comm = ranks_inside(crew[i].comm[0]);
		comm->devices->fact[0].nresident = 4 * comm->device->shape.nblocks - 1;
	}
	for (int i = 0; i < 2; i++)
		call_in_a_group(&crew[i], 0, 2);
	for (int ms = 0; ms < PATIENCE_MS && !strstr(text, "and it runs 7 at a time"); ms++) {
		(void)usleep(1000);
		log = fopen(path, "r");
		if (log)
			text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
		if (log)
			(void)fclose(log);
	}
	assert_non_null(strstr(text, "on GPU 1 have 8 blocks, and it runs 7 at a time"));
	for (int i = 0; i < 2; i++) {
		call(&crew[i], 2);
		wait_for_all(&crew[i]);
	}
	for (int i = 0; i < 2; i++)
		close_crew(&crew[i]);
	ranks_assert_nothing_held();
}

static void more_blocks_than_the_gpu_runs_are_warned_of(void **state)
{
	char file[] = "/tmp/tutti_circles_XXXXXX", variable[64];
	const char *const variables[] = { "TUTTI_STALL_MS=1000", "TUTTI_CUDA_BLOCKS=2", variable,
					  NULL };
	const int fd = mkstemp(file);

	(void)state;
	assert_true(fd >= 0);
	(void)snprintf(variable, sizeof(variable), "TUTTI_DEBUG_FILE=%s", file);
	in_child(crowd, variables);
	(void)close(fd);
	(void)unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: its child has read no variable yet. */
		cmocka_unit_test(more_blocks_than_the_gpu_runs_are_warned_of),
		cmocka_unit_test(a_rank_behind_one_that_waits_for_it_is_an_error),
		cmocka_unit_test(ranks_between_the_two_are_seen_through),
		cmocka_unit_test(ranks_that_are_late_are_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
