/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce, measured as in batches.h. mpirun -n N THIS BYTES SECONDS */
#include <mpi.h>

#include "batches.h"

static void call(struct batches *b)
{
	MPI_Allreduce(b->send, b->recv, (int)(b->bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
		      MPI_COMM_WORLD);
}

static void barrier(struct batches *b)
{
	(void)b;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void maximum(struct batches *b, double values[2])
{
	(void)b;
	MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct batches b = { .call = call, .barrier = barrier, .maximum = maximum };
	int bad;

	/* An error of MPI ends the job by itself. */
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b.nranks);
	bad = argc != 3 || !batches_prepare(&b, argv) || batches_run(&b);
	if (bad)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return bad;
}
