/* SPDX-License-Identifier: BSD-3-Clause */
/* Gloo over TCP, measured as in batches.h; all_reduce and reduce_scatter in place, since the
 * classes that are fastest have no other form. The ranks meet in an empty directory:
 * THIS OPERATION MODE,... SECONDS BYTES,... hd|ring DIRECTORY NRANKS RANK, once per rank */
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
	/* One for each buffer that is sent, as they know their buffers. */
	std::vector<std::unique_ptr<gloo::Algorithm>> reductions;
	std::unique_ptr<gloo::Algorithm> maximum;
	std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> sends;
	std::unique_ptr<gloo::transport::UnboundBuffer> recv;
	bool halving;
	double values[2];
};

library *of(struct batches *b)
{
	return static_cast<library *>(b->library);
}

std::unique_ptr<gloo::Algorithm> reduction(struct batches *b, float *buffer)
{
	const std::vector<float *> buffers{ buffer };
	const int count = static_cast<int>(b->sent);
	gloo::Algorithm *made;

	if (b->operation == REDUCE_SCATTER)
		made = new gloo::ReduceScatterHalvingDoubling<float>(
			of(b)->context, buffers, count,
			std::vector<int>(static_cast<size_t>(b->nranks),
					 static_cast<int>(b->block)));
	else if (of(b)->halving)
		made = new gloo::AllreduceHalvingDoubling<float>(of(b)->context, buffers, count);
	else
		made = new gloo::AllreduceRingChunked<float>(of(b)->context, buffers, count);
	return std::unique_ptr<gloo::Algorithm>(made);
}

/* What knows the buffers of this size, and only those. */
void prepare(struct batches *b)
{
	library *const lib = of(b);

	lib->reductions.clear();
	lib->sends.clear();
	for (int i = 0; i < b->nsends; i++) {
		float *const buffer = b->sends + static_cast<size_t>(i) * b->stride;

		if (b->operation == SEND_RECV)
			lib->sends.push_back(
				lib->context->createUnboundBuffer(buffer, b->sent * sizeof(float)));
		if (b->operation == ALL_REDUCE || b->operation == REDUCE_SCATTER)
			lib->reductions.push_back(reduction(b, buffer));
	}
	lib->recv = lib->context->createUnboundBuffer(b->recv, b->received * sizeof(float));
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
			auto &send = of(b)->sends[static_cast<size_t>(b->turn)];

			send->send(b->peer, 1);
			send->waitSend();
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
		return of(b)->reductions[static_cast<size_t>(b->turn)]->run();
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
	auto store = std::make_shared<gloo::rendezvous::FileStore>(argv[6]);
	library lib;

	lib.context = std::make_shared<gloo::rendezvous::Context>(b->rank, b->nranks);
	connect(*lib.context, store, device, 0);
	lib.halving = std::string(argv[5]) == "hd";
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

	if (argc != 9)
		return 2;
	b.nranks = atoi(argv[7]);
	b.rank = atoi(argv[8]);
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
