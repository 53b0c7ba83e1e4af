/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators made of others, between hosts.
 *
 *     net_comms ID_FILE             a rank of a job, told by the environment
 *     net_comms ID_FILE RANK N      a rank that joins: RANK of N
 *
 * All ranks split, by number and by half; then the second to last one kills itself, the others
 * shrink to what is left; rank 0 of that writes an id to ID_FILE, and what is left grows to as many
 * as before, which split again. Each step is checked by what all ranks gather. A rank that is right
 * to the end prints "right". */
#define _DEFAULT_SOURCE /* usleep() */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tutti/tutti.h>

#define MOST 16

static int failed(tutti_comm_t comm, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, tutti_last_error(comm));
	return 1;
}

/* All ranks of it say `value`: in their order these are first, first + step ... */
static bool gathers(tutti_comm_t comm, int value, int n, int first, int step, const char *what)
{
	int all[MOST] = { 0 }, count = 0;

	if (tutti_comm_count(comm, &count) != TUTTI_OK || count != n) {
		fprintf(stderr, "%s: %d ranks, not %d\n", what, count, n);
		return false;
	}
	if (tutti_all_gather(&value, all, 1, TUTTI_INT32, comm, NULL) != TUTTI_OK)
		return !failed(comm, what);
	for (int rank = 0; rank < n; rank++)
		if (all[rank] != first + rank * step) {
			fprintf(stderr, "%s: rank %d says %d, not %d\n", what, rank, all[rank],
				first + rank * step);
			return false;
		}
	return true;
}

/* Even and odd ranks; and the halves, backwards. */
static bool splits(tutti_comm_t comm, int rank, int n)
{
	const int parity = rank % 2, upper = rank >= n / 2;
	tutti_comm_t some = NULL, half = NULL;
	bool right;

	if (tutti_comm_split(comm, parity, 0, &some, NULL) != TUTTI_OK ||
	    tutti_comm_split(comm, upper, -rank, &half, NULL) != TUTTI_OK)
		return !failed(comm, "split");
	right = gathers(half, rank, upper ? n - n / 2 : n / 2, upper ? n - 1 : n / 2 - 1, -1,
			"a half") &&
		gathers(some, rank, (n + 1 - parity) / 2, parity, 2, "every other rank") &&
		gathers(comm, rank, n, 0, 1, "the parent");
	tutti_comm_destroy(some);
	tutti_comm_destroy(half);
	return right;
}

static bool write_id(const char *path, tutti_unique_id *id)
{
	char beside[500];
	FILE *file;
	bool good;

	if (tutti_get_unique_id(id) != TUTTI_OK)
		return !failed(NULL, "id");
	snprintf(beside, sizeof(beside), "%s.new", path);
	file = fopen(beside, "w");
	good = file && fwrite(id, sizeof(*id), 1, file) == 1;
	if (file)
		good &= fclose(file) == 0;
	return good && rename(beside, path) == 0;
}

static int check_grown(tutti_comm_t comm, int rank, int n)
{
	if (!gathers(comm, 7 * rank, n, 0, 7, "what has grown") || !splits(comm, rank, n))
		return 1;
	if (tutti_comm_finalize(comm) != TUTTI_OK)
		return failed(comm, "finalize");
	tutti_comm_destroy(comm);
	printf("right\n");
	return 0;
}

static int run_new(const char *path, int rank, int n)
{
	tutti_comm_t comm = NULL;
	tutti_unique_id id;
	FILE *file;

	while (!(file = fopen(path, "r")))
		usleep(10000);
	if (fread(&id, sizeof(id), 1, file) != 1)
		return 1;
	fclose(file);
	if (tutti_comm_grow(NULL, n, &id, rank, &comm, NULL) != TUTTI_OK)
		return failed(NULL, "join");
	return check_grown(comm, rank, n);
}

/* Back to n ranks. */
static int grow(tutti_comm_t rest, int n, const char *path)
{
	tutti_comm_t grown = NULL;
	tutti_unique_id id;
	int rank = -1;

	if (tutti_comm_rank(rest, &rank) != TUTTI_OK || (rank == 0 && !write_id(path, &id)))
		return failed(rest, "the id");
	if (tutti_comm_grow(rest, n, rank == 0 ? &id : NULL, -1, &grown, NULL) != TUTTI_OK)
		return failed(rest, "grow");
	if (!gathers(rest, rank, n - 1, 0, 1, "what was left"))
		return 1;
	tutti_comm_destroy(rest);
	return check_grown(grown, rank, n);
}

static int run_old(const char *path)
{
	tutti_comm_t comm = NULL, rest = NULL;
	int rank = -1, n = 0, victim;
	tutti_status st;

	if (tutti_comm_init_env(&comm, NULL) != TUTTI_OK ||
	    tutti_comm_rank(comm, &rank) != TUTTI_OK || tutti_comm_count(comm, &n) != TUTTI_OK)
		return failed(comm, "init");
	if (!splits(comm, rank, n))
		return 1;
	victim = n - 2;
	/* It dies when all have what they gathered, if not all are through this barrier then. */
	st = tutti_barrier(comm, NULL);
	if (rank == victim)
		raise(SIGKILL);
	if (st == TUTTI_OK)
		st = tutti_barrier(comm, NULL);
	if (st != TUTTI_EPEER)
		return failed(comm, "a barrier with a dead rank");
	if (tutti_comm_shrink(comm, NULL, 0, &rest, NULL, TUTTI_SHRINK_FAILED) != TUTTI_OK)
		return failed(comm, "shrink");
	tutti_comm_destroy(comm);
	if (!gathers(rest, rank - (rank > victim), n - 1, 0, 1, "what is left"))
		return 1;
	return grow(rest, n, path);
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return run_old(argv[1]);
	return argc == 4 ? run_new(argv[1], atoi(argv[2]), atoi(argv[3])) : 2;
}
