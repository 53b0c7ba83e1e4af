/* SPDX-License-Identifier: BSD-3-Clause */
/* Several streams and communicators at once, in random schedules: on Tutti's CUDA runtime, and on one whose host
 * functions have one thread for all streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "nccl/fake_cudart.h"
#include "nccl/ranks.h"
#include "support/sanitizer.h"

#define STREAMS   2
#define COMMS     3
#define CALLS     12
#define RANKS     4
#define SCHEDULES (SANITIZED ? 60 : 1000)

static unsigned draw(unsigned *state, unsigned below)
{
	*state = *state * 1103515245u + 12345u;
	return (*state >> 16) % below;
}

/* All ranks draw the same calls in the same order, so that their streams run them in any order beside each
 * other. */
static void run_schedule(const ncclComm_t *comms, const cudaStream_t *streams, int rank, int n,
			 unsigned seed)
{
	int in[CALLS][8], out[CALLS][8], wanted[CALLS];
	unsigned state = seed;

	for (int call = 0; call < CALLS; call++) {
		const ncclComm_t comm = comms[draw(&state, COMMS)];
		const cudaStream_t stream = streams[draw(&state, STREAMS)];
		const bool grouped = draw(&state, 3) == 0;
		const size_t count = 1 + draw(&state, 8);
		const int next = (rank + 1) % n, prev = (rank + n - 1) % n;

		for (int i = 0; i < 8; i++) {
			in[call][i] = call * 10 + rank;
			out[call][i] = -1;
		}
		if (grouped)
			CHECK_OK(ncclGroupStart());
		if (draw(&state, 2) == 0) {
			wanted[call] = n * call * 10 + n * (n - 1) / 2;
			CHECK_OK(ncclAllReduce(in[call], out[call], count, ncclInt32, ncclSum, comm,
					       stream));
		} else {
			wanted[call] = call * 10 + prev;
			if (!grouped)
				CHECK_OK(ncclGroupStart());
			CHECK_OK(ncclSend(in[call], count, ncclInt32, next, comm, stream));
			CHECK_OK(ncclRecv(out[call], count, ncclInt32, prev, comm, stream));
			if (!grouped)
				CHECK_OK(ncclGroupEnd());
		}
		if (grouped)
			CHECK_OK(ncclGroupEnd());
	}
	for (int i = 0; i < STREAMS; i++)
		CHECK(cudaStreamSynchronize(streams[i]) == 0);
	for (int call = 0; call < CALLS; call++)
		CHECK(out[call][0] == wanted[call]);
}

static void schedules(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclComm_t comms[COMMS] = { comm };
	cudaStream_t streams[STREAMS];

	(void)arg;
	for (int i = 1; i < COMMS; i++)
		CHECK_OK(ncclCommSplit(comm, 0, rank, &comms[i], NULL));
	for (int i = 0; i < STREAMS; i++)
		CHECK(cudaStreamCreate(&streams[i]) == 0);
	for (unsigned seed = 1; seed <= SCHEDULES && ranks_failures() == 0; seed++)
		run_schedule(comms, streams, rank, n, seed);
	for (int i = 1; i < COMMS; i++)
		CHECK_OK(ncclCommDestroy(comms[i]));
	for (int i = 0; i < STREAMS; i++)
		CHECK(cudaStreamDestroy(streams[i]) == 0);
	/* The communicator that is left has used them, too. */
	CHECK_OK(ncclCommDestroy(comm));
	ranks_ended();
}

static void random_schedules(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, schedules, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_schedules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
