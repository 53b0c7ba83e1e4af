/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank that some launcher has started, told by what the launcher says alone.
 *
 *     net_launched NRANKS            makes three communicators, one after the other, of which each must have
 *                                    NRANKS ranks that all hear each other; the second one is destroyed
 *                                    before the third one is made. Rank 0 prints "right".
 *     net_launched NRANKS survive    the last rank kills itself, and the others go on without it. Rank 0
 *                                    prints "survived". */
#define _DEFAULT_SOURCE /* usleep() */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	return true;
}

static int failed(tutti_comm_t comm, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, tutti_last_error(comm));
	return 1;
}

static int survive(int n)
{
	tutti_comm_t comm = NULL, rest = NULL;
	int rank = -1;

	if (tutti_comm_init_env(&comm, NULL) != TUTTI_OK || !hears_all(comm, n, 0) ||
	    tutti_comm_rank(comm, &rank) != TUTTI_OK)
		return failed(comm, "init");
	/* The last one dies when all have heard all, if not all are through this barrier then. */
	if (tutti_barrier(comm, NULL) != TUTTI_OK && rank == n - 1)
		return failed(comm, "a barrier");
	if (rank == n - 1)
		raise(SIGKILL);
	while (tutti_barrier(comm, NULL) == TUTTI_OK)
		;
	if (tutti_comm_shrink(comm, NULL, 0, &rest, NULL, TUTTI_SHRINK_FAILED) != TUTTI_OK)
		return failed(comm, "shrink");
	tutti_comm_destroy(comm);
	/* For as long as a launcher that ends them may take. */
	for (int i = 0; i < 15; i++) {
		if (!hears_all(rest, n - 1, i))
			return failed(rest, "the rest");
		usleep(100000);
	}
	tutti_comm_destroy(rest);
	if (rank == 0)
		printf("survived\n");
	return 0;
}

static int make_three(int n)
{
	tutti_comm_t comms[3] = { NULL };
	int rank = -1, code = 0;

	for (int i = 0; i < 3; i++) {
		if (tutti_comm_init_env(&comms[i], NULL) != TUTTI_OK ||
		    !hears_all(comms[i], n, i) || tutti_comm_rank(comms[i], &rank) != TUTTI_OK)
			return failed(comms[i], "a communicator");
		if (i == 1 && tutti_comm_destroy(comms[i]) != TUTTI_OK)
			return failed(NULL, "destroy");
	}
	for (int i = 0; i < 3; i += 2)
		code |= tutti_comm_destroy(comms[i]) != TUTTI_OK;
	if (rank == 0 && code == 0)
		printf("right\n");
	return code;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 0;

	if (n < 1 || n > MOST)
		return 2;
	return argc > 2 && strcmp(argv[2], "survive") == 0 ? survive(n) : make_three(n);
}
