/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/program.h"
#include "gpu/cuda_memory.h"
#include "runtime.h"
#include "util/error.h"
#include "vector.h"

#define RANKS            TTI_DEV_CALLS_MAX
#define CALLS_OF_A_GRAPH 10
#define SECTION          "calls"
/* Up to which calls are short: what one costs is the launch and the way, not the bytes. */
#define SHORT            65536
/* Of the bed: lanes and programs. */
#define AREA_BYTES       ((size_t)1 << 30)

/* A way to carry out a call. */
struct way {
	const char *name, *algorithm;
	bool words;
};

static const struct way short_ways[] = {
	{ "exchange by words", "exchange", true },
	{ "exchange by slots", "exchange", false },
	{ "recursive doubling by words", "recursive_doubling", true },
	{ "recursive doubling by slots", "recursive_doubling", false },
};
static const struct way long_ways[] = {
	{ "ring by slots", "ring", false },
	{ "direct by slots", "direct", false },
	{ "in memory", "memory", false },
};

/* How a launch is cut. */
struct cut {
	uint32_t nblocks, nthreads;
	size_t part_bytes; /* of a block, of a piece */
};

struct bench {
	const struct device_gpu *gpu;
	int n;
	size_t most; /* bytes of a vector */
	uint64_t input[RANKS], output[RANKS];
	void *staging;
	struct tti_dev_launch launch;
	uint32_t nthreads;
	cudaGraphExec_t exec;
	size_t nwrong;
};

static void must(tutti_status status)
{
	if (status != TUTTI_OK)
		give_up("%s\n", tti_error_text());
}

/* -- A launch of all ranks ------------------------------------------------------------------- */

static void compile_one(const struct bench *bench, const struct way *way, int rank,
			struct tti_compiled *out, int *nchunks)
{
	const struct tti_program_spec spec = { .split = { .parts = 1 },
					       .rank = rank,
					       .n = bench->n };
	struct tti_program prog;

	must(tti_program_build(tti_algorithm_find(TUTTI_ALL_REDUCE, way->algorithm), &spec, &prog));
	must(tti_compile(&prog, out));
	*nchunks = prog.nchunks;
	tti_program_release(&prog);
}

static void make_call(const struct bench *bench, struct device_bed *bed, const struct way *way,
		      const struct cut *cut, size_t nbytes, int rank, struct tti_dev_call *out)
{
	const struct tti_dev_buffers mine = { bench->input[rank], bench->output[rank] };
	struct tti_dev_buffers told[RANKS];
	struct tti_compiled compiled;
	struct device_work work = {
		.prog = &compiled,
		.type = TUTTI_FLOAT32,
		.op = TUTTI_SUM,
		.slice_bytes = cut->part_bytes * cut->nblocks,
		.tag = 1000 + nbytes * 2 + (nbytes > (size_t)16 << 20),
	};
	const size_t count = nbytes / sizeof(float);
	int nchunks;

	for (int peer = 0; peer < bench->n; peer++)
		told[peer] = mine;
	compile_one(bench, way, rank, &compiled, &nchunks);
	if (compiled.is_memory)
		work.told = told;
	work.layout = (struct tti_layout){
		.input = (const void *)(uintptr_t)bench->input[rank],
		.output = (void *)(uintptr_t)bench->output[rank],
		.type_size = sizeof(float),
		.parts = nchunks,
		.chunk_count = (count + (size_t)nchunks - 1) / (size_t)nchunks,
		.row_count = count,
	};
	device_call_make(bed, rank, &work, out);
	tti_compiled_release(&compiled);
}

static void make_launch(struct bench *bench, struct device_bed *bed, const struct way *way,
			const struct cut *cut, size_t nbytes)
{
	const struct device_config config = {
		.n = bench->n,
		.nblocks = cut->nblocks,
		.nthreads = cut->nthreads,
		.nslots = 4,
		.slot_bytes = device_slot_bytes(cut->part_bytes * cut->nblocks, sizeof(float),
						cut->nblocks),
		.words = way->words,
		.is_guarded = true,
	};

	device_bed_init(bed, &config);
	bench->launch =
		(struct tti_dev_launch){ .ncalls = (uint32_t)bench->n, .nblocks = cut->nblocks };
	for (int rank = 0; rank < bench->n; rank++)
		make_call(bench, bed, way, cut, nbytes, rank, &bench->launch.call[rank]);
	bench->launch.noperands = (uint32_t)bed->noperands;
	bench->nthreads = cut->nthreads;
	device_gpu_share(&bench->launch);
	device_gpu_upload(bed);
}

/* -- Times -------------------------------------------------------------------------------------- */

static void launch(void *arg, cudaStream_t stream)
{
	const struct bench *bench = arg;

	must(tti_kernels_launch(bench->gpu->kernels, bench->gpu->gpu, TUTTI_FLOAT32, &bench->launch,
				bench->nthreads, stream));
}

static void launch_graph(void *arg, cudaStream_t stream)
{
	const struct bench *bench = arg;

	CUDA(GraphLaunch(bench->exec, stream));
}

static double graph_us(struct bench *bench, cudaStream_t stream)
{
	cudaGraph_t graph;
	double us;

	CUDA(StreamBeginCapture(stream, CUDA_CAPTURE_THREAD_LOCAL));
	for (int i = 0; i < CALLS_OF_A_GRAPH; i++)
		launch(bench, stream);
	CUDA(StreamEndCapture(stream, &graph));
	CUDA(GraphInstantiate(&bench->exec, graph, 0));
	CUDA(GraphUpload(bench->exec, stream));
	us = device_us(stream, bench->gpu->is_host ? 1 : 5, bench->gpu->is_host ? 1 : 10,
		       launch_graph, bench) /
	     CALLS_OF_A_GRAPH;
	CUDA(GraphExecDestroy(bench->exec));
	CUDA(GraphDestroy(graph));
	return us;
}

/* All elements of shorter vectors, and of longer ones some parts. */
static size_t count_wrong(const struct bench *bench, size_t nbytes, cudaStream_t stream)
{
	size_t nwrong = 0;

	for (int rank = 0; rank < bench->n; rank++)
		nwrong += vector_count_wrong((const void *)(uintptr_t)bench->output[rank], nbytes,
					     bench->n, 4, bench->staging, stream);
	return nwrong;
}

struct times {
	double plain, graph; /* us; of long calls none of a graph */
};

static struct times measure(struct bench *bench, const struct way *way, const struct cut *cut,
			    size_t nbytes)
{
	const bool is_short = nbytes <= SHORT;
	const int ncalls = is_short ? 100 : nbytes <= (size_t)16 << 20 ? 20 : 3;
	cudaStream_t stream = bench->gpu->stream;
	struct times times = { 0 };
	struct device_bed bed;

	make_launch(bench, &bed, way, cut, nbytes);
	for (int rank = 0; rank < bench->n; rank++)
		CUDA(MemsetAsync((void *)(uintptr_t)bench->output[rank], 0xff, nbytes, stream));
	times.plain = device_us(stream, bench->gpu->is_host ? 1 : 5,
				bench->gpu->is_host ? 2 : ncalls, launch, bench);
	if (is_short)
		times.graph = graph_us(bench, stream);
	CUDA(StreamSynchronize(stream));
	if (!device_gpu_is_done(&bench->launch))
		give_up("%s of %zu bytes was not done\n", way->name, nbytes);
	bench->nwrong += count_wrong(bench, nbytes, stream);
	device_bed_release(&bed);
	return times;
}

/* What of all cuts is best, and each of them as it was tried. */
static void measure_way(struct bench *bench, const struct way *way, size_t nbytes,
			const struct cut *cuts, size_t ncuts)
{
	struct times best = { INFINITY, INFINITY };
	char what[128];

	for (size_t i = 0; i < ncuts; i++) {
		const struct cut *cut = &cuts[i];
		struct times times;

		if (cut->nblocks * (uint32_t)bench->n > device_gpu_resident(cut->nthreads))
			continue;
		times = measure(bench, way, cut, nbytes);
		(void)snprintf(what, sizeof(what), "%s, %s, %u blocks of %u threads, parts of %s",
			       size_name(nbytes).text, way->name, cut->nblocks, cut->nthreads,
			       size_name(cut->part_bytes).text);
		report("tried", what, times.plain, "us");
		best.plain = fmin(best.plain, times.plain);
		best.graph = fmin(best.graph, times.graph);
	}
	(void)snprintf(what, sizeof(what), "%s, %s", size_name(nbytes).text, way->name);
	report(SECTION, what, best.plain, "us");
	if (nbytes > SHORT)
		return;
	(void)snprintf(what, sizeof(what), "%s, %s, of a graph", size_name(nbytes).text, way->name);
	report(SECTION, what, best.graph, "us");
}

/* On host memory just enough to try it. */
static void measure_short(struct bench *bench, size_t nbytes)
{
	const bool is_host = bench->gpu->is_host;
	const uint32_t few = is_host ? 1 : 64, many = is_host ? 2 : 512;
	const uint32_t blocks = is_host ? 1 : nbytes < 4096 ? 1 : nbytes < SHORT ? 4 : 8;
	const struct cut cuts[] = {
		{ 1, few, nbytes },
		{ 1, many, nbytes },
		{ blocks, many, nbytes / blocks },
		{ 2 * blocks, many, nbytes / blocks / 2 },
	};
	size_t ncuts = nbytes < 4096 ? 2 : sizeof(cuts) / sizeof(cuts[0]);

	for (size_t i = 0; i < sizeof(short_ways) / sizeof(short_ways[0]); i++)
		measure_way(bench, &short_ways[i], nbytes, is_host ? &cuts[ncuts - 1] : cuts,
			    is_host ? 1 : ncuts);
}

static void measure_long(struct bench *bench, size_t nbytes)
{
	static const struct cut cuts[] = {
		{ 8, 512, (size_t)64 << 10 },  { 16, 512, (size_t)16 << 10 },
		{ 16, 512, (size_t)64 << 10 }, { 32, 512, (size_t)16 << 10 },
		{ 32, 512, (size_t)64 << 10 },
	};
	static const struct cut of_host = { 2, 1, (size_t)64 << 10 };
	const bool is_host = bench->gpu->is_host;

	for (size_t i = 0; i < sizeof(long_ways) / sizeof(long_ways[0]); i++)
		measure_way(bench, &long_ways[i], nbytes, is_host ? &of_host : cuts,
			    is_host ? 1 : sizeof(cuts) / sizeof(cuts[0]));
}

int device_times(const struct device_gpu *gpu, int n, bool is_small)
{
	static const size_t sizes[] = { 8,
					256,
					4096,
					SHORT,
					(size_t)1 << 20,
					(size_t)16 << 20,
					(size_t)128 << 20,
					(size_t)1 << 30 };
	static struct bench bench;

	bench = (struct bench){ .gpu = gpu, .n = n, .most = (size_t)1 << (is_small ? 20 : 30) };
	CUDA(MallocHost(&bench.staging, VECTOR_STAGING));
	for (int rank = 0; rank < n; rank++) {
		must(tti_gpu_alloc(gpu->gpu, bench.most, &bench.input[rank]));
		must(tti_gpu_alloc(gpu->gpu, bench.most, &bench.output[rank]));
		vector_fill((void *)(uintptr_t)bench.input[rank], bench.most, rank, bench.staging,
			    gpu->stream);
	}
	device_gpu_lend(false, is_small ? AREA_BYTES / 8 : AREA_BYTES);
	device_gpu_expect(true);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i] <= SHORT)
			measure_short(&bench, sizes[i]);
		else if (sizes[i] <= bench.most)
			measure_long(&bench, sizes[i]);
	report(SECTION, "wrong", (double)bench.nwrong, "elements");
	return bench.nwrong ? 1 : 0;
}
