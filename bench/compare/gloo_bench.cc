/* SPDX-License-Identifier: BSD-3-Clause */
/* An all-reduce of Gloo over TCP, measured as in batches.h; in place, since its
 * classes have no other form. The
 * ranks meet in an empty directory:
 * THIS BYTES SECONDS hd|ring DIRECTORY NRANKS RANK, once per rank */
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
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
	std::unique_ptr<gloo::Algorithm> all_reduce;
	std::unique_ptr<gloo::Algorithm> maximum;
	double values[2];
};

library *of(struct batches *b)
{
	return static_cast<library *>(b->library);
}

void call(struct batches *b)
{
	of(b)->all_reduce->run();
}

void barrier(struct batches *b)
{
	gloo::BarrierOptions options(of(b)->context);

	gloo::barrier(options);
}

void maximum(struct batches *b, double values[2])
{
	memcpy(of(b)->values, values, sizeof(of(b)->values));
	of(b)->maximum->run();
	memcpy(values, of(b)->values, sizeof(of(b)->values));
}

} // namespace

static void measure(struct batches *b, char **argv)
{
	gloo::transport::tcp::attr attr("localhost");
	auto device = gloo::transport::tcp::CreateDevice(attr);
	gloo::rendezvous::FileStore store(argv[4]);
	const int count = static_cast<int>(b->bytes / sizeof(float));
	library lib;

	lib.context = std::make_shared<gloo::rendezvous::Context>(b->rank, b->nranks);
	lib.context->connectFullMesh(store, device);
	if (std::string(argv[3]) == "hd")
		lib.all_reduce.reset(new gloo::AllreduceHalvingDoubling<float>(
			lib.context, std::vector<float *>{ b->send }, count));
	else
		lib.all_reduce.reset(new gloo::AllreduceRingChunked<float>(
			lib.context, std::vector<float *>{ b->send }, count));
	lib.maximum.reset(new gloo::AllreduceHalvingDoubling<double>(
		lib.context, std::vector<double *>{ lib.values }, 2,
		gloo::ReductionFunction<double>::max));
	b->library = &lib;
	if (batches_run(b))
		throw std::runtime_error("the sum is wrong");
	barrier(b);
}

int main(int argc, char **argv)
{
	struct batches b = {};

	if (argc != 7)
		return 2;
	b.nranks = atoi(argv[5]);
	b.rank = atoi(argv[6]);
	b.in_place = 1;
	b.call = call;
	b.barrier = barrier;
	b.maximum = maximum;
	if (!batches_prepare(&b, argv))
		return 1;
	try {
		measure(&b, argv);
	} catch (const std::exception &e) {
		fprintf(stderr, "rank %d: %s\n", b.rank, e.what());
		return 1;
	}
	return 0;
}
