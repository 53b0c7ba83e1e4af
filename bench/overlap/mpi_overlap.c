/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Iallreduce, measured as in overlap.h. mpirun -n N THIS BYTES SECONDS */
#include <mpi.h>

#include "overlap.h"

static MPI_Request request;

static void start(struct overlap *o)
{
	MPI_Iallreduce(o->send, o->recv, (int)(o->bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
		       MPI_COMM_WORLD, &request);
}

static void ask(struct overlap *o)
{
	int done;

	(void)o;
	MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void wait(struct overlap *o)
{
	(void)o;
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void barrier(struct overlap *o)
{
	(void)o;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void maximum(struct overlap *o, double values[2])
{
	(void)o;
	MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct overlap o = {
		.start = start, .ask = ask, .wait = wait, .barrier = barrier, .maximum = maximum
	};
	int bad;

	/* An error of MPI ends the job by itself. */
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &o.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &o.nranks);
	bad = !overlap_prepare(&o, argc, argv) || overlap_run(&o);
	if (bad)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return bad;
}
