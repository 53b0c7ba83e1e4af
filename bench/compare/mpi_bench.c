/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI, measured as in batches.h: mpirun -n N THIS OPERATION MODE,... SECONDS BYTES,... */
#include <mpi.h>

#include "batches.h"

static void ping_pong(struct batches *b)
{
	const int receives_first = b->rank % 2;

	for (int i = 0; b->peer >= 0 && i < 2; i++) {
		if (i == receives_first)
			MPI_Send(b->send, (int)b->sent, MPI_FLOAT, b->peer, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(b->recv, (int)b->received, MPI_FLOAT, b->peer, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
	}
}

static void call(struct batches *b)
{
	const int count = (int)b->block;

	switch (b->operation) {
	case ALL_REDUCE:
		MPI_Allreduce(b->send, b->recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case BROADCAST:
		MPI_Bcast(b->recv, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
		break;
	case ALL_GATHER:
		MPI_Allgather(b->send, count, MPI_FLOAT, b->recv, count, MPI_FLOAT, MPI_COMM_WORLD);
		break;
	case REDUCE_SCATTER:
		MPI_Reduce_scatter_block(b->send, b->recv, count, MPI_FLOAT, MPI_SUM,
					 MPI_COMM_WORLD);
		break;
	case ALL_TO_ALL:
		MPI_Alltoall(b->send, count, MPI_FLOAT, b->recv, count, MPI_FLOAT, MPI_COMM_WORLD);
		break;
	case SEND_RECV:
		ping_pong(b);
		break;
	case BARRIER:
		MPI_Barrier(MPI_COMM_WORLD);
		break;
	case OPERATIONS:
		break;
	}
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
	bad = argc != 5 || batches_run(&b, argv);
	if (bad)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return bad;
}
