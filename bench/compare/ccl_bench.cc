/* SPDX-License-Identifier: BSD-3-Clause */
/* oneCCL on host memory, measured as in batches.h; MPI starts it and tells the ranks of each
 * other: mpirun -n N THIS OPERATION MODE,... SECONDS BYTES,... */
#include <mpi.h>
#include <oneapi/ccl.hpp>

#include <exception>

#include "batches.h"

namespace
{

const ccl::communicator &of(struct batches *b)
{
	return *static_cast<ccl::communicator *>(b->library);
}

void ping_pong(struct batches *b)
{
	const int receives_first = b->rank % 2;

	for (int i = 0; b->peer >= 0 && i < 2; i++) {
		if (i == receives_first)
			ccl::send(b->send, b->sent, ccl::datatype::float32, b->peer, of(b)).wait();
		else
			ccl::recv(b->recv, b->received, ccl::datatype::float32, b->peer, of(b))
				.wait();
	}
}

void barrier(struct batches *b)
{
	ccl::barrier(of(b)).wait();
}

void call(struct batches *b)
{
	const ccl::datatype type = ccl::datatype::float32;

	switch (b->operation) {
	case ALL_REDUCE:
		ccl::allreduce(b->send, b->recv, b->block, type, ccl::reduction::sum, of(b)).wait();
		break;
	case BROADCAST:
		ccl::broadcast(b->recv, b->block, type, 0, of(b)).wait();
		break;
	case ALL_GATHER:
		ccl::allgather(b->send, b->recv, b->block, type, of(b)).wait();
		break;
	case REDUCE_SCATTER:
		ccl::reduce_scatter(b->send, b->recv, b->block, type, ccl::reduction::sum, of(b))
			.wait();
		break;
	case ALL_TO_ALL:
		ccl::alltoall(b->send, b->recv, b->block, type, of(b)).wait();
		break;
	case SEND_RECV:
		ping_pong(b);
		break;
	case BARRIER:
		barrier(b);
		break;
	case OPERATIONS:
		break;
	}
}

void maximum(struct batches *b, double values[2])
{
	ccl::allreduce(values, values, 2, ccl::datatype::float64, ccl::reduction::max, of(b))
		.wait();
}

int measure(struct batches *b, char **argv)
{
	ccl::kvs::address_type address;
	ccl::shared_ptr_class<ccl::kvs> kvs;

	ccl::init();
	if (b->rank == 0) {
		kvs = ccl::create_main_kvs();
		address = kvs->get_address();
	}
	MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
	if (b->rank != 0)
		kvs = ccl::create_kvs(address);
	ccl::communicator all = ccl::create_communicator(b->nranks, b->rank, kvs);

	b->library = &all;
	return batches_run(b, argv);
}

} // namespace

int main(int argc, char **argv)
{
	struct batches b = {};
	int bad = 1, level;

	/* oneCCL has a thread that calls MPI, too. */
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b.nranks);
	b.call = call;
	b.barrier = barrier;
	b.maximum = maximum;
	try {
		bad = argc != 5 || measure(&b, argv);
	} catch (const std::exception &e) {
		fprintf(stderr, "rank %d: %s\n", b.rank, e.what());
	}
	if (bad)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return bad;
}
