/* SPDX-License-Identifier: BSD-3-Clause */
/* all_reduce of a libnccl.so.2, with ranks that are threads of this process and share the GPUs there
 * are: what a call takes, what it costs to queue one, to make communicators, and in memory. Linked
 * to the library of the loader's path, so the same program measures NVIDIA's and Tutti's.
 *
 *     nccl_ranks RANKS [plain|registered|pinned]...      kinds of buffers, one after the other (plain)
 *
 * Several ranks of one GPU need NCCL_MULTI_RANK_GPU_ENABLE=1. */
#include "gpu.h"

#include <barrier>
#include <memory>
#include <thread>

#include <nccl.h>

#define CHECK_NCCL(call) check_nccl((call), #call, __LINE__)

static void check_nccl(ncclResult_t result, const char *call, int line)
{
	if (result == ncclSuccess)
		return;
	std::fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, line, call,
		     ncclGetErrorString(result), ncclGetLastError(nullptr));
	give_up();
}

static const size_t sizes[] = {
	8, 256, 4096, 65536, size_t(1) << 20, size_t(16) << 20, size_t(128) << 20, size_t(1) << 30
};

/* Memory of the host is slower. */
static size_t most_of(const std::string &kind)
{
	return kind == "pinned" ? size_t(128) << 20 : size_t(1) << 30;
}

struct shared {
	int nranks;
	ncclUniqueId id;
	std::unique_ptr<std::barrier<>> all;
	std::vector<double> figures; /* of each rank */
};

struct rank {
	shared *job;
	int number;
	std::string kind; /* of buffers */
	cudaStream_t stream;
	ncclComm_t comm;
	float *input, *output;
	unsigned *wrong; /* pinned */
};

static __global__ void fill(float *values, size_t n, int rank)
{
	for (size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x; at < n;
	     at += size_t(gridDim.x) * blockDim.x)
		values[at] = float(at % 1021) + rank;
}

static __global__ void count_wrong(const float *values, size_t n, int nranks, unsigned *wrong)
{
	for (size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x; at < n;
	     at += size_t(gridDim.x) * blockDim.x)
		if (values[at] != float(at % 1021) * nranks + nranks * (nranks - 1) / 2)
			atomicAdd(wrong, 1);
}

static void all_reduce(const rank &r, size_t nbytes)
{
	CHECK_NCCL(ncclAllReduce(r.input, r.output, nbytes / sizeof(float), ncclFloat32, ncclSum,
				 r.comm, r.stream));
}

/* The largest of what the ranks say, printed by rank 0. */
static double report_most(const rank &r, const std::string &what, double figure, const char *unit)
{
	double most;

	r.job->figures[r.number] = figure;
	r.job->all->arrive_and_wait();
	most = *std::max_element(r.job->figures.begin(), r.job->figures.end());
	if (r.number == 0)
		report("calls", what, most, unit);
	r.job->all->arrive_and_wait();
	return most;
}

static void verify(const rank &r, size_t nbytes)
{
	const size_t n = nbytes / sizeof(float);

	*r.wrong = 0;
	fill<<<256, 256, 0, r.stream>>>(r.input, n, r.number);
	all_reduce(r, nbytes);
	count_wrong<<<256, 256, 0, r.stream>>>(r.output, n, r.job->nranks, r.wrong);
	CHECK(cudaStreamSynchronize(r.stream));
	report_most(r, r.kind + ", " + size_name(nbytes) + ", wrong", *r.wrong, "elements");
}

static void measure_size(const rank &r, size_t nbytes)
{
	const std::string what = r.kind + ", " + size_name(nbytes);
	const int calls = nbytes <= 65536 ? 100 : nbytes <= size_t(16) << 20 ? 20 : 3;
	double us;

	verify(r, nbytes);
	us = report_most(
		r, what,
		device_us(r.stream, 5, calls, [&](cudaStream_t) { all_reduce(r, nbytes); }), "us");
	if (r.number == 0)
		report("calls", what, double(nbytes) / us / 1e3, "GB/s of the vector");
}

/* Capture and replay of ten calls. */
static void measure_graph(const rank &r, size_t nbytes)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
	for (int call = 0; call < 10; call++)
		all_reduce(r, nbytes);
	CHECK(cudaStreamEndCapture(r.stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphUpload(exec, r.stream));
	CHECK(cudaStreamSynchronize(r.stream));
	r.job->all->arrive_and_wait();
	report_most(r, r.kind + ", " + size_name(nbytes) + ", of a graph of 10 calls",
		    device_us(r.stream, 5, 10,
			      [&](cudaStream_t stream) { CHECK(cudaGraphLaunch(exec, stream)); }) /
			    10,
		    "us");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void allocate(rank &r)
{
	const size_t most = most_of(r.kind);
	void *memory[2];

	for (auto &one : memory) {
		if (r.kind == "registered")
			CHECK_NCCL(ncclMemAlloc(&one, most));
		else if (r.kind == "pinned")
			CHECK(cudaMallocHost(&one, most));
		else
			CHECK(cudaMalloc(&one, most));
	}
	r.input = static_cast<float *>(memory[0]);
	r.output = static_cast<float *>(memory[1]);
}

static void release(rank &r)
{
	for (float *one : { r.input, r.output }) {
		if (r.kind == "registered")
			CHECK_NCCL(ncclMemFree(one));
		else if (r.kind == "pinned")
			CHECK(cudaFreeHost(one));
		else
			CHECK(cudaFree(one));
	}
}

static void measure_calls(rank &r)
{
	ncclWindow_t windows[2] = { nullptr, nullptr };

	allocate(r);
	if (r.kind == "registered")
		for (int i : { 0, 1 })
			CHECK_NCCL(ncclCommWindowRegister(r.comm, i ? r.output : r.input,
							  most_of(r.kind), &windows[i],
							  NCCL_WIN_COLL_SYMMETRIC));
	/* Making memory may wait for the device, on which a rank that is ahead waits for this one. */
	r.job->all->arrive_and_wait();
	for (size_t nbytes : sizes)
		if (nbytes <= most_of(r.kind))
			measure_size(r, nbytes);
	report_most(r, r.kind + ", the call of 8 B (host)", host_us(200, [&] { all_reduce(r, 8); }),
		    "us");
	CHECK(cudaStreamSynchronize(r.stream));
	report_most(r, r.kind + ", 8 B and wait for the stream",
		    host_us(200,
			    [&] {
				    all_reduce(r, 8);
				    CHECK(cudaStreamSynchronize(r.stream));
			    }),
		    "us");
	if (r.kind != "pinned")
		measure_graph(r, 8);
	r.job->all->arrive_and_wait();
	for (ncclWindow_t window : windows)
		if (window)
			CHECK_NCCL(ncclCommWindowDeregister(r.comm, window));
	release(r);
}

static void run(shared *job, int number, const std::vector<std::string> &kinds)
{
	rank r = {};
	int ndevices;
	size_t before, after, all;

	r.job = job;
	r.number = number;
	CHECK(cudaGetDeviceCount(&ndevices));
	CHECK(cudaSetDevice(number % ndevices));
	CHECK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&r.wrong, sizeof(*r.wrong)));
	CHECK(cudaMemGetInfo(&before, &all));
	job->all->arrive_and_wait();
	const double from = now_us();
	CHECK_NCCL(ncclCommInitRank(&r.comm, job->nranks, job->id, number));
	report_most(r, "ncclCommInitRank()", (now_us() - from) / 1e3, "ms");
	CHECK(cudaMemGetInfo(&after, &all));
	if (number == 0)
		report("calls", "memory of the device that init took, all ranks",
		       double(before - after) / (1 << 20), "MiB");
	for (const std::string &kind : kinds) {
		r.kind = kind;
		job->all->arrive_and_wait();
		measure_calls(r);
	}
	CHECK_NCCL(ncclCommDestroy(r.comm));
	CHECK(cudaFreeHost(r.wrong));
	CHECK(cudaStreamDestroy(r.stream));
}

int main(int argc, char **argv)
{
	std::vector<std::string> kinds(argv + std::min(argc, 2), argv + argc);
	std::vector<std::thread> threads;
	shared job;
	int version;

	job.nranks = argc > 1 ? std::atoi(argv[1]) : 0;
	for (const auto &kind : kinds)
		if (kind != "plain" && kind != "registered" && kind != "pinned")
			job.nranks = 0;
	if (job.nranks < 1) {
		std::fprintf(stderr, "usage: nccl_ranks RANKS [plain|registered|pinned]...\n");
		return 2;
	}
	if (kinds.empty())
		kinds.push_back("plain");
	job.all = std::make_unique<std::barrier<>>(job.nranks);
	job.figures.resize(job.nranks);
	CHECK_NCCL(ncclGetVersion(&version));
	report("calls", "version of NCCL", version, "-");
	CHECK_NCCL(ncclGetUniqueId(&job.id));
	for (int number = 0; number < job.nranks; number++)
		threads.emplace_back(run, &job, number, kinds);
	for (auto &thread : threads)
		thread.join();
	return 0;
}
