/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI between nodes, measured as in measure.h. mpirun -n N THIS OPERATION BYTES SECONDS */
#include <mpi.h>

#include "measure.h"

/* Of whom gives and all who receive: MPI's way to hand a tensor over is a broadcast there. */
static MPI_Comm receivers = MPI_COMM_NULL;

static void send_one_way(struct measure *m, int from, int to)
{
	if (m->rank == from)
		MPI_Send(m->send, (int)m->count, MPI_FLOAT, to, 0, MPI_COMM_WORLD);
	if (m->rank == to)
		MPI_Recv(m->recv, (int)m->count, MPI_FLOAT, from, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

static void broadcast(struct measure *m, MPI_Comm comm)
{
	if (comm != MPI_COMM_NULL)
		MPI_Bcast(m->rank == 0 ? m->send : m->recv, (int)m->count, MPI_FLOAT, 0, comm);
}

static void call(struct measure *m)
{
	switch (m->operation) {
	case SEND_RECV:
		send_one_way(m, 0, m->nranks - 1);
		break;
	case PING_PONG:
		send_one_way(m, 0, m->nranks - 1);
		send_one_way(m, m->nranks - 1, 0);
		break;
	case BROADCAST:
		broadcast(m, MPI_COMM_WORLD);
		break;
	case ALL_REDUCE:
		MPI_Allreduce(m->send, m->recv, (int)m->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case ALL_GATHER:
		MPI_Allgather(m->send, (int)m->count, MPI_FLOAT, m->recv, (int)m->count, MPI_FLOAT,
			      MPI_COMM_WORLD);
		break;
	case REDUCE_SCATTER:
		MPI_Reduce_scatter_block(m->send, m->recv, (int)m->count, MPI_FLOAT, MPI_SUM,
					 MPI_COMM_WORLD);
		break;
	case ALL_TO_ALL:
		MPI_Alltoall(m->send, (int)m->count, MPI_FLOAT, m->recv, (int)m->count, MPI_FLOAT,
			     MPI_COMM_WORLD);
		break;
	case HANDOFF:
	case HANDOFF_COPIES:
		broadcast(m, receivers);
		break;
	case OPERATIONS:
		break;
	}
}

static void barrier(struct measure *m)
{
	(void)m;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void maximum(struct measure *m, double values[2])
{
	(void)m;
	MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct measure m = { .call = call, .barrier = barrier, .maximum = maximum };
	int bad;

	/* An error of MPI ends the job by itself. */
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &m.nranks);
	MPI_Comm_split(MPI_COMM_WORLD, m.rank == 0 || m.rank >= m.nranks / 2 ? 0 : MPI_UNDEFINED,
		       m.rank, &receivers);
	bad = argc != 4 || !measure_prepare(&m, argv) || measure_run(&m);
	if (bad)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return bad;
}
