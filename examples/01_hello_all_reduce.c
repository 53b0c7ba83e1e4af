/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest program with Tutti: every process brings a vector, and every
 * process gets the sum of all of them.
 *
 * Build:  cc 01_hello_all_reduce.c -o hello $(pkg-config --cflags --libs tutti)
 * Run:    tutti run -n 4 ./hello
 *
 * Other launchers, as mpirun, srun and torchrun, start it in the same way.
 */
#include <stdio.h>
#include <stdlib.h>

#include <tutti/tutti.h>

#define COUNT 1000

/* Every call returns a status. tutti_last_error() says what was wrong, where,
 * and what helps. */
static void check(tutti_status status, const char *what)
{
	if (status != TUTTI_OK) {
		fprintf(stderr, "%s: %s\n", what, tutti_last_error(NULL));
		exit(1);
	}
}

int main(void)
{
	float send[COUNT], recv[COUNT];
	int rank, nranks, wrong = 0;
	tutti_comm_t comm;

	/* A communicator is a group of processes (its ranks) that work
	 * together. This one has all processes that the launcher started. */
	check(tutti_comm_init_env(&comm, NULL), "tutti_comm_init_env");
	check(tutti_comm_rank(comm, &rank), "tutti_comm_rank");
	check(tutti_comm_count(comm, &nranks), "tutti_comm_count");

	for (int i = 0; i < COUNT; i++)
		send[i] = (float)(rank + i);

	/* All ranks call this with the same count, type and operation. The last
	 * argument is a stream; with NULL the call is done when it returns. */
	check(tutti_all_reduce(send, recv, COUNT, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL),
	      "tutti_all_reduce");

	/* The sum over ranks r of (r + i): whole numbers, so it is exact. */
	for (int i = 0; i < COUNT; i++)
		wrong += recv[i] != (float)(nranks * (nranks - 1) / 2 + nranks * i);
	printf("rank %d of %d: recv[1] = %g, %s\n", rank, nranks, (double)recv[1],
	       wrong ? "WRONG" : "right");

	check(tutti_comm_destroy(comm), "tutti_comm_destroy");
	return wrong != 0;
}
