/* SPDX-License-Identifier: BSD-3-Clause */
/* Gloo over TCP, measured as in batches.h; all_reduce and reduce_scatter in place, since the
 * classes that are fastest have no other form. The ranks meet in an empty directory:
 * THIS OPERATION SECONDS BYTES,... hd|ring DIRECTORY NRANKS RANK, once per rank */
#include <gloo/allgather.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "batches.h"

namespace
{

struct library {
	std::shared_ptr<gloo::rendezvous::Context> context;
	std::unique_ptr<gloo::Algorithm> reduction;
	std::unique_ptr<gloo::Algorithm> maximum;
	std::unique_ptr<gloo::transport::UnboundBuffer> send;
	std::unique_ptr<gloo::transport::UnboundBuffer> recv;
	bool halving;
	double values[2];
};

library *of(struct batches *b)
{
	return static_cast<library *>(b->library);
}

/* What knows the buffers of this size, and only those. */
void prepare(struct batches *b)
{
	const std::vector<float *> buffers{ b->send };
	const int count = static_cast<int>(b->sent);
	library *const lib = of(b);

	lib->reduction.reset();
	lib->send = lib->context->createUnboundBuffer(b->send, b->sent * sizeof(float));
	lib->recv = lib->context->createUnboundBuffer(b->recv, b->received * sizeof(float));
	if (b->operation == REDUCE_SCATTER)
		lib->reduction.reset(new gloo::ReduceScatterHalvingDoubling<float>(
			lib->context, buffers, count,
			std::vector<int>(static_cast<size_t>(b->nranks),
					 static_cast<int>(b->block))));
	else if (b->operation == ALL_REDUCE && lib->halving)
		lib->reduction.reset(
			new gloo::AllreduceHalvingDoubling<float>(lib->context, buffers, count));
	else if (b->operation == ALL_REDUCE)
		lib->reduction.reset(
			new gloo::AllreduceRingChunked<float>(lib->context, buffers, count));
}

void broadcast(struct batches *b)
{
	gloo::BroadcastOptions options(of(b)->context);

	options.setRoot(0);
	options.setOutput(b->recv, b->block);
	gloo::broadcast(options);
}

void all_gather(struct batches *b)
{
	gloo::AllgatherOptions options(of(b)->context);

	options.setInput(b->send, b->sent);
	options.setOutput(b->recv, b->received);
	gloo::allgather(options);
}

void all_to_all(struct batches *b)
{
	gloo::AlltoallOptions options(of(b)->context);

	options.setInput(b->send, b->sent);
	options.setOutput(b->recv, b->received);
	gloo::alltoall(options);
}

void ping_pong(struct batches *b)
{
	const int receives_first = b->rank % 2;

	for (int i = 0; b->peer >= 0 && i < 2; i++) {
		if (i == receives_first) {
			of(b)->send->send(b->peer, 1);
			of(b)->send->waitSend();
		} else {
			of(b)->recv->recv(b->peer, 1);
			of(b)->recv->waitRecv();
		}
	}
}

void barrier(struct batches *b)
{
	gloo::BarrierOptions options(of(b)->context);

	gloo::barrier(options);
}

void call(struct batches *b)
{
	switch (b->operation) {
	case ALL_REDUCE:
	case REDUCE_SCATTER:
		return of(b)->reduction->run();
	case BROADCAST:
		return broadcast(b);
	case ALL_GATHER:
		return all_gather(b);
	case ALL_TO_ALL:
		return all_to_all(b);
	case SEND_RECV:
		return ping_pong(b);
	case BARRIER:
		return barrier(b);
	case OPERATIONS:
		return;
	}
}

void maximum(struct batches *b, double values[2])
{
	memcpy(of(b)->values, values, sizeof(of(b)->values));
	of(b)->maximum->run();
	memcpy(values, of(b)->values, sizeof(of(b)->values));
}

/* Who connects takes a store by pointer, in older versions by reference: whichever compiles. */
template <class Context, class Store, class Device>
auto connect(Context &context, std::shared_ptr<Store> store, Device &device, int)
	-> decltype(context.connectFullMesh(store, device))
{
	return context.connectFullMesh(store, device);
}

template <class Context, class Store, class Device>
void connect(Context &context, std::shared_ptr<Store> store, Device &device, long)
{
	context.connectFullMesh(*store, device);
}

void measure(struct batches *b, char **argv)
{
	gloo::transport::tcp::attr attr("localhost");
	auto device = gloo::transport::tcp::CreateDevice(attr);
	auto store = std::make_shared<gloo::rendezvous::FileStore>(argv[5]);
	library lib;

	lib.context = std::make_shared<gloo::rendezvous::Context>(b->rank, b->nranks);
	connect(*lib.context, store, device, 0);
	lib.halving = std::string(argv[4]) == "hd";
	lib.maximum.reset(new gloo::AllreduceHalvingDoubling<double>(
		lib.context, std::vector<double *>{ lib.values }, 2,
		gloo::ReductionFunction<double>::max));
	b->library = &lib;
	if (batches_run(b, argv))
		throw std::runtime_error("no good result");
	barrier(b);
}

} // namespace

int main(int argc, char **argv)
{
	struct batches b = {};

	if (argc != 8)
		return 2;
	b.nranks = atoi(argv[6]);
	b.rank = atoi(argv[7]);
	b.in_place = strcmp(argv[1], "all_reduce") == 0 || strcmp(argv[1], "reduce_scatter") == 0;
	b.prepare = prepare;
	b.call = call;
	b.barrier = barrier;
	b.maximum = maximum;
	try {
		measure(&b, argv);
	} catch (const std::exception &e) {
		fprintf(stderr, "rank %d: %s\n", b.rank, e.what());
		return 1;
	}
	return 0;
}
