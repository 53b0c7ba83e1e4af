/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between two ranks: every rank passes a vector on to the next one, as
 * often as there are ranks, so that each vector comes home again.
 *
 * Run:    tutti run -n 4 ./04_send_recv_ring
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/tutti.h>

#define COUNT 50000

static void check(tutti_status status, const char *what)
{
	if (status != TUTTI_OK) {
		fprintf(stderr, "%s: %s\n", what, tutti_last_error(NULL));
		exit(1);
	}
}

int main(void)
{
	static long long mine[COUNT], received[COUNT];
	int rank, nranks, next, prev, wrong = 0;
	tutti_comm_t comm;

	check(tutti_comm_init_env(&comm, NULL), "tutti_comm_init_env");
	check(tutti_comm_rank(comm, &rank), "tutti_comm_rank");
	check(tutti_comm_count(comm, &nranks), "tutti_comm_count");
	next = (rank + 1) % nranks;
	prev = (rank + nranks - 1) % nranks;

	for (int i = 0; i < COUNT; i++)
		mine[i] = (long long)rank * COUNT + i;

	for (int round = 1; round <= nranks; round++) {
		/* A send may wait for its receive. If all ranks sent first, all
		 * could wait for ever; inside a group both run at once, and the
		 * order in which they are written does not matter. */
		check(tutti_group_start(), "tutti_group_start");
		check(tutti_send(mine, COUNT, TUTTI_INT64, next, comm, NULL), "tutti_send");
		check(tutti_recv(received, COUNT, TUTTI_INT64, prev, comm, NULL), "tutti_recv");
		check(tutti_group_end(), "tutti_group_end");

		/* After `round` rounds this rank has what started so many ranks before it. */
		const int from = (rank + nranks - round) % nranks;

		for (int i = 0; i < COUNT; i++)
			wrong += received[i] != (long long)from * COUNT + i;
		memcpy(mine, received, sizeof(mine));
	}
	printf("rank %d of %d: after %d rounds rank %lld's vector is here, %d wrong\n", rank,
	       nranks, nranks, mine[0] / COUNT, wrong);

	check(tutti_comm_destroy(comm), "tutti_comm_destroy");
	return wrong != 0;
}
