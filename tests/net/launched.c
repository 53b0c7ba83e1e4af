/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank that some launcher has started, told by what the launcher says alone.
 *
 *     net_launched NRANKS
 *
 * Makes three communicators, one after the other, of which each must have NRANKS ranks that all hear
 * each other; the second one is destroyed before the third one is made. Rank 0 prints "right". */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <tutti/tutti.h>

#define MOST 64

static bool hears_all(tutti_comm_t comm, int wanted, int kth)
{
	int all[MOST] = { 0 }, rank = -1, n = 0;

	if (tutti_comm_rank(comm, &rank) || tutti_comm_count(comm, &n) || n != wanted)
		return false;

	const int own = 1000 * kth + rank;

	if (tutti_all_gather(&own, all, 1, TUTTI_INT32, comm, NULL) != TUTTI_OK)
		return false;
	for (int i = 0; i < n; i++)
		if (all[i] != 1000 * kth + i)
			return false;
	if (rank == 0 && kth == 2)
		printf("right\n");
	return true;
}

int main(int argc, char **argv)
{
	tutti_comm_t comms[3] = { NULL };
	const int n = argc > 1 ? atoi(argv[1]) : 0;
	bool right = n > 0 && n <= MOST;

	for (int i = 0; i < 3 && right; i++) {
		right = tutti_comm_init_env(&comms[i], NULL) == TUTTI_OK &&
			hears_all(comms[i], n, i);
		if (!right)
			fprintf(stderr, "communicator %d: %s\n", i, tutti_last_error(comms[i]));
		if (right && i == 1) {
			right = tutti_comm_destroy(comms[i]) == TUTTI_OK;
			comms[i] = NULL;
		}
	}
	for (int i = 0; i < 3; i++)
		if (comms[i])
			right = (right ? tutti_comm_destroy(comms[i])
				       : tutti_comm_abort(comms[i])) == TUTTI_OK &&
				right;
	return right ? 0 : 1;
}
