/* SPDX-License-Identifier: BSD-3-Clause */
/* Gloo over TCP between nodes, measured as in measure.h. The ranks meet in an empty directory:
 * THIS OPERATION BYTES SECONDS hd|ring DIRECTORY NRANKS RANK HOST, once per rank */
#include <gloo/allgather.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure.h"

namespace
{

struct library {
	std::shared_ptr<gloo::rendezvous::Context> all;
	/* Of whom gives and all who receive: a broadcast there hands a tensor over. */
	std::shared_ptr<gloo::rendezvous::Context> receivers;
	std::unique_ptr<gloo::transport::UnboundBuffer> send;
	std::unique_ptr<gloo::transport::UnboundBuffer> recv;
	std::unique_ptr<gloo::Algorithm> all_reduce;
	std::unique_ptr<gloo::Algorithm> reduce_scatter;
	std::unique_ptr<gloo::Algorithm> maximum;
	double values[2];
};

library *of(struct measure *m)
{
	return static_cast<library *>(m->library);
}

void send_one_way(struct measure *m, int from, int to)
{
	if (m->rank == from) {
		of(m)->send->send(to, 1);
		of(m)->send->waitSend();
	}
	if (m->rank == to) {
		of(m)->recv->recv(from, 1);
		of(m)->recv->waitRecv();
	}
}

void broadcast(struct measure *m, const std::shared_ptr<gloo::rendezvous::Context> &context)
{
	if (!context)
		return;
	gloo::BroadcastOptions options(context);

	options.setRoot(0);
	options.setOutput(m->rank == 0 ? m->send : m->recv, m->count);
	gloo::broadcast(options);
}

void all_gather(struct measure *m)
{
	gloo::AllgatherOptions options(of(m)->all);

	options.setInput(m->send, m->count);
	options.setOutput(m->recv, m->count * static_cast<size_t>(m->nranks));
	gloo::allgather(options);
}

void all_to_all(struct measure *m)
{
	const size_t n = m->count * static_cast<size_t>(m->nranks);
	gloo::AlltoallOptions options(of(m)->all);

	options.setInput(m->send, n);
	options.setOutput(m->recv, n);
	gloo::alltoall(options);
}

void call(struct measure *m)
{
	switch (m->operation) {
	case SEND_RECV:
		return send_one_way(m, 0, m->nranks - 1);
	case PING_PONG:
		send_one_way(m, 0, m->nranks - 1);
		return send_one_way(m, m->nranks - 1, 0);
	case BROADCAST:
		return broadcast(m, of(m)->all);
	case ALL_REDUCE:
		return of(m)->all_reduce->run();
	case ALL_GATHER:
		return all_gather(m);
	case REDUCE_SCATTER:
		return of(m)->reduce_scatter->run();
	case ALL_TO_ALL:
		return all_to_all(m);
	case HANDOFF:
	case HANDOFF_COPIES:
		return broadcast(m, of(m)->receivers);
	case OPERATIONS:
		return;
	}
}

void barrier(struct measure *m)
{
	gloo::BarrierOptions options(of(m)->all);

	gloo::barrier(options);
}

void maximum(struct measure *m, double values[2])
{
	memcpy(of(m)->values, values, sizeof(of(m)->values));
	of(m)->maximum->run();
	memcpy(values, of(m)->values, sizeof(of(m)->values));
}

void prepare_all_reduce(struct measure *m, bool halving)
{
	const std::vector<float *> buffers{ m->send };
	const int count = static_cast<int>(m->count);
	library *const lib = of(m);

	if (halving)
		lib->all_reduce.reset(
			new gloo::AllreduceHalvingDoubling<float>(lib->all, buffers, count));
	else
		lib->all_reduce.reset(
			new gloo::AllreduceRingChunked<float>(lib->all, buffers, count));
}

void prepare_reduce_scatter(struct measure *m)
{
	const std::vector<int> counts(static_cast<size_t>(m->nranks), static_cast<int>(m->count));

	of(m)->reduce_scatter.reset(new gloo::ReduceScatterHalvingDoubling<float>(
		of(m)->all, { m->send }, static_cast<int>(m->bytes / sizeof(float)), counts));
}

void run(struct measure *m, char **argv)
{
	gloo::transport::tcp::attr attr(argv[8]);
	auto device = gloo::transport::tcp::CreateDevice(attr);
	gloo::rendezvous::FileStore files(argv[5]);
	gloo::rendezvous::PrefixStore all("all", files), receivers("receivers", files);
	const int half = m->nranks / 2;
	library lib;

	m->library = &lib;
	lib.all = std::make_shared<gloo::rendezvous::Context>(m->rank, m->nranks);
	lib.all->connectFullMesh(all, device);
	if (measure_is_handoff(m) && (m->rank == 0 || m->rank >= half)) {
		lib.receivers = std::make_shared<gloo::rendezvous::Context>(
			m->rank == 0 ? 0 : m->rank - half + 1, m->nranks - half + 1);
		lib.receivers->connectFullMesh(receivers, device);
	}
	lib.send = lib.all->createUnboundBuffer(m->send, m->bytes);
	lib.recv = lib.all->createUnboundBuffer(m->recv, m->bytes);
	if (m->operation == ALL_REDUCE)
		prepare_all_reduce(m, std::string(argv[4]) == "hd");
	if (m->operation == REDUCE_SCATTER)
		prepare_reduce_scatter(m);
	lib.maximum.reset(new gloo::AllreduceHalvingDoubling<double>(
		lib.all, std::vector<double *>{ lib.values }, 2,
		gloo::ReductionFunction<double>::max));
	if (measure_run(m))
		throw std::runtime_error("the result is wrong");
	barrier(m);
}

} // namespace

int main(int argc, char **argv)
{
	struct measure m = {};

	if (argc != 9)
		return 2;
	m.nranks = atoi(argv[6]);
	m.rank = atoi(argv[7]);
	/* What it has of these that is worth comparing has no other form. */
	m.in_place = strcmp(argv[1], "all_reduce") == 0 || strcmp(argv[1], "reduce_scatter") == 0;
	m.call = call;
	m.barrier = barrier;
	m.maximum = maximum;
	if (!measure_prepare(&m, argv))
		return 1;
	try {
		run(&m, argv);
	} catch (const std::exception &e) {
		fprintf(stderr, "rank %d: %s\n", m.rank, e.what());
		return 1;
	}
	return 0;
}
