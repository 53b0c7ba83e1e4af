/* SPDX-License-Identifier: BSD-3-Clause */
/* Train on through the death of ranks.
 *
 * Each rank pulls the model w towards its own value; averaged over all, w goes to the mean
 * of their values. Two ranks are killed on the way. A rank that notices revokes the
 * communicator, so that all notice. The survivors shrink it, take the model and the step from
 * the first of them, and go on.
 *
 *     ./07_survive 5 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, usleep() */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/tutti.h>

#define STEPS 300

/* Where the forked ranks find the id that the first of them made. */
struct meeting {
	_Atomic int has_id;
	tutti_unique_id id;
};

struct state {
	double w, step;
};

static tutti_status train(tutti_comm_t comm, int me, int nranks, struct state *state)
{
	while (state->step < STEPS) {
		double pull = me - state->w;
		tutti_status status;

		if ((me == 1 && state->step == 100) || (me == nranks - 2 && state->step == 200))
			raise(SIGKILL);
		status = tutti_all_reduce(&pull, &pull, 1, TUTTI_FLOAT64, TUTTI_AVG, comm, NULL);
		if (status != TUTTI_OK)
			return status;
		state->w += 0.1 * pull;
		state->step++;
	}
	return TUTTI_OK;
}

/* Make a communicator of the survivors, and agree on the step and the model. */
static tutti_status recover(tutti_comm_t *comm, struct state *state)
{
	tutti_comm_t old = *comm;
	tutti_status status = tutti_comm_revoke(old);

	if (status == TUTTI_OK)
		status = tutti_comm_shrink(old, NULL, 0, comm, NULL, TUTTI_SHRINK_FAILED);
	if (status != TUTTI_OK)
		return status;
	tutti_comm_destroy(old);
	return tutti_broadcast(state, state, 2, TUTTI_FLOAT64, 0, *comm, NULL);
}

static int run_rank(int me, int nranks, struct meeting *meeting)
{
	struct state state = { .w = 0, .step = 0 };
	double wanted = nranks * (nranks - 1) / 2.0 - 1 - (nranks - 2);
	tutti_comm_t comm = NULL;
	tutti_status status = TUTTI_OK;
	int left = 0, right;

	if (me == 0) {
		status = tutti_get_unique_id(&meeting->id);
		meeting->has_id = 1;
	}
	while (!meeting->has_id)
		usleep(1000);
	if (status == TUTTI_OK)
		status = tutti_comm_init_rank(&comm, nranks, meeting->id, me);
	if (status == TUTTI_OK)
		status = train(comm, me, nranks, &state);
	while (status <= TUTTI_STATUS_LOST) {
		printf("rank %d, step %.0f: %s\n", me, state.step, tutti_last_error(comm));
		status = recover(&comm, &state);
		if (status == TUTTI_OK)
			status = train(comm, me, nranks, &state);
	}
	if (status != TUTTI_OK || tutti_comm_count(comm, &left) != TUTTI_OK)
		fprintf(stderr, "rank %d: %s\n", me, tutti_last_error(comm));
	tutti_comm_destroy(comm);
	wanted /= nranks - 2;
	right = left == nranks - 2 && state.w > wanted - 0.01 && state.w < wanted + 0.01;
	printf("rank %d, the end: %d ranks, w %.3f, %s\n", me, left, state.w,
	       right ? "right" : "wrong");
	return !right;
}

int main(int argc, char **argv)
{
	const int nranks = argc > 1 ? atoi(argv[1]) : 5;
	struct meeting *meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int killed = 0, good = 0, status;

	if (meeting == MAP_FAILED || nranks < 4)
		return 1;
	for (int rank = 0; rank < nranks; rank++)
		if (fork() == 0)
			return run_rank(rank, nranks, meeting);
	while (wait(&status) > 0) {
		killed += WIFSIGNALED(status);
		good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	return killed == 2 && good == nranks - 2 ? 0 : 1;
}
