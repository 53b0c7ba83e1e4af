/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that call different things, ranks that do not come, a rank that is stopped,
 * a deadline, an abort. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/crew.h"

#define SECOND INT64_C(1000000000)

static float data[3][4096];

/* -- Mismatch ------------------------------------------------------------------ */

static int mismatch_kind;

static tutti_status differ(struct crew *crew, int rank, tutti_comm_t comm)
{
	float *a = data[0], *b = data[1];
	const int odd = rank == 1;

	if (atomic_load(&crew->rank[rank].calls) < 3)
		return tutti_all_reduce(a, b, 16, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
	switch (mismatch_kind) {
	case 0: /* count */
		return tutti_all_reduce(a, b, odd ? 17 : 16, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
	case 1: /* type of the same size */
		return tutti_all_reduce(a, b, 16, odd ? TUTTI_INT32 : TUTTI_FLOAT32, TUTTI_SUM,
					comm, NULL);
	case 2: /* operation */
		return tutti_all_reduce(a, b, 16, TUTTI_FLOAT32, odd ? TUTTI_MAX : TUTTI_SUM, comm,
					NULL);
	case 3: /* collective */
		return odd ? tutti_broadcast(a, b, 16, TUTTI_FLOAT32, 0, comm, NULL)
			   : tutti_all_reduce(a, b, 16, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
	case 4: /* roots: both wait, nothing is sent */
		return tutti_broadcast(a, b, 16, TUTTI_FLOAT32, odd ? 0 : 1, comm, NULL);
	case 5: /* large against small */
		return tutti_all_reduce(a, b, odd ? 4096 : 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
	default: /* barrier */
		return odd ? tutti_barrier(comm, NULL)
			   : tutti_all_gather(a, b, 16, TUTTI_FLOAT32, comm, NULL);
	}
}

static void mismatch(const char *transport)
{
	for (mismatch_kind = 0; mismatch_kind < 7; mismatch_kind++) {
		struct crew *crew = crew_create(3, transport, differ);
		const int64_t begin = crew_now_ns();

		assert_int_equal(crew_start(crew), 0);
		assert_int_equal(crew_wait(crew, 60000, -1), 0);
		for (int rank = 0; rank < 3; rank++) {
			const struct crew_rank *own = &crew->rank[rank];

			if (own->status != TUTTI_EMISMATCH ||
			    !strstr(own->text, "called different things"))
				fail_msg("kind %d over %s: rank %d has %d \"%s\" after %.3f s",
					 mismatch_kind, transport, rank, own->status, own->text,
					 (double)(own->failed_ns - begin) / 1e9);
			/* Both calls are in the text. */
			assert_non_null(strstr(own->text, "rank 1"));
		}
		crew_free(crew);
	}
}

static void mismatch_over_shm(void **state)
{
	(void)state;
	mismatch("shm");
}

static void mismatch_over_tcp(void **state)
{
	(void)state;
	mismatch("tcp");
}

/* -- A stopped rank -------------------------------------------------------------- */

static tutti_status reduce_some(struct crew *crew, int rank, tutti_comm_t comm)
{
	(void)crew;
	(void)rank;
	return tutti_all_reduce(data[0], data[1], 1000, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

static void stopped_rank_is_named(const char *transport)
{
	struct crew *crew = crew_create(4, transport, reduce_some);
	int64_t stopped_ns;

	crew->timeout_ms = 2500;
	assert_int_equal(crew_start(crew), 0);
	crew_nap_us(20000);
	kill(crew->rank[2].pid, SIGSTOP);
	stopped_ns = crew_now_ns();
	assert_true(crew_wait(crew, 60000, 2) == 0);
	for (int rank = 0; rank < 4; rank++) {
		const struct crew_rank *own = &crew->rank[rank];

		if (rank == 2)
			continue;
		if (own->status != TUTTI_ETIMEOUT || !strstr(own->text, "rank 2, which does not") ||
		    own->failed_ns - stopped_ns > 20 * SECOND)
			fail_msg("over %s: rank %d has %d \"%s\"", transport, rank, own->status,
				 own->text);
	}
	crew_free(crew);
}

static void stopped_rank(void **state)
{
	(void)state;
	stopped_rank_is_named("shm");
	stopped_rank_is_named("tcp");
}

/* -- A rank that does not come ----------------------------------------------------- */

/* Until the others have given up. */
static void stay_away(struct crew *crew)
{
	for (int ms = 0; ms < 60000 && (!atomic_load(&crew->rank[0].failed_ns) ||
					!atomic_load(&crew->rank[2].failed_ns));
	     ms++)
		crew_nap_us(1000);
}

static tutti_status one_stays_away(struct crew *crew, int rank, tutti_comm_t comm)
{
	if (rank == 1 && atomic_load(&crew->rank[rank].calls) == 2) {
		stay_away(crew);
		return TUTTI_OK;
	}
	return tutti_all_reduce(data[0], data[1], 10, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

static tutti_status one_never_calls(struct crew *crew, int rank, tutti_comm_t comm)
{
	if (rank == 1 && atomic_load(&crew->rank[rank].calls) == 0) {
		stay_away(crew);
		return TUTTI_OK;
	}
	return tutti_all_reduce(data[0], data[1], 10, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

static void must_be_missed(tutti_status (*step)(struct crew *, int, tutti_comm_t), const char *what)
{
	struct crew *crew = crew_create(3, "shm", step);
	char text[128];

	snprintf(text, sizeof(text), "rank 1, which has not come: %s", what);
	crew->timeout_ms = 3000;
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < 3; rank += 2)
		if (!strstr(crew->rank[rank].text, text))
			fail_msg("rank %d: \"%s\"", rank, crew->rank[rank].text);
	crew_free(crew);
}

static void missing_rank_is_named(void **state)
{
	(void)state;
	must_be_missed(one_stays_away, "its last call was 2, all_reduce(10 x float32, sum)");
	must_be_missed(one_never_calls, "it has made no call yet");
}

/* -- Abort ---------------------------------------------------------------------------- */

static tutti_status one_aborts(struct crew *crew, int rank, tutti_comm_t comm)
{
	if (rank == 2 && atomic_load(&crew->rank[rank].calls) == 5) {
		tutti_comm_abort(comm);
		_exit(0);
	}
	return tutti_all_reduce(data[0], data[1], 100, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

static void abort_ends_all(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (int t = 0; t < 2; t++) {
		struct crew *crew = crew_create(4, transports[t], one_aborts);

		assert_int_equal(crew_start(crew), 0);
		assert_int_equal(crew_wait(crew, 60000, -1), 0);
		for (int rank = 0; rank < 4; rank++)
			if (rank != 2 && (crew->rank[rank].status != TUTTI_EPEER ||
					  !strstr(crew->rank[rank].text, ") aborted")))
				fail_msg("over %s, rank %d: %d \"%s\"", transports[t], rank,
					 crew->rank[rank].status, crew->rank[rank].text);
		crew_free(crew);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mismatch_over_shm), cmocka_unit_test(mismatch_over_tcp),
		cmocka_unit_test(stopped_rank),      cmocka_unit_test(missing_rank_is_named),
		cmocka_unit_test(abort_ends_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
