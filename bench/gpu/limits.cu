/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of one GPU that collectives meet: its memory, copies to and from the host, launches.
 *
 *     limits [SECTION...]      device memory host launch (all) */
#include "gpu.h"

#include <cstring>
#include <functional>
#include <thread>

/* -- The device --------------------------------------------------------------------------- */

static void measure_device()
{
	static const struct {
		const char *name;
		cudaDeviceAttr attribute;
	} attributes[] = {
		{ "multiprocessors", cudaDevAttrMultiProcessorCount },
		{ "L2 bytes", cudaDevAttrL2CacheSize },
		{ "copy engines", cudaDevAttrAsyncEngineCount },
		{ "host may touch managed memory meanwhile", cudaDevAttrConcurrentManagedAccess },
		{ "kernels reach memory of malloc", cudaDevAttrPageableMemoryAccess },
		{ "atomics on host memory", cudaDevAttrHostNativeAtomicSupported },
		{ "cooperative launch", cudaDevAttrCooperativeLaunch },
		{ "memory pools", cudaDevAttrMemoryPoolsSupported },
		{ "IPC of events", cudaDevAttrIpcEventSupport },
	};
	static const struct {
		const char *name;
		CUdevice_attribute attribute;
	} of_driver[] = {
		{ "virtual memory management",
		  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED },
		{ "handles that are file descriptors",
		  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED },
		{ "fabric handles", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED },
		{ "multicast", CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED },
		{ "GPUDirect RDMA", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED },
		{ "GPUDirect RDMA by dma-buf", CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED },
		{ "streams wait for 64-bit values",
		  CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS },
	};
	const auto get = DRIVER(cuDeviceGetAttribute);
	cudaDeviceProp properties;
	int value;

	CHECK(cudaGetDeviceProperties(&properties, 0));
	std::printf("device | name | %s | -\n", properties.name);
	report("device", "compute capability", properties.major * 10 + properties.minor, "-");
	report("device", "memory", static_cast<double>(properties.totalGlobalMem) / (1 << 30),
	       "GiB");
	for (const auto &attribute : attributes) {
		CHECK(cudaDeviceGetAttribute(&value, attribute.attribute, 0));
		report("device", attribute.name, value, "-");
	}
	for (const auto &attribute : of_driver) {
		check_driver(get(&value, attribute.attribute, 0), attribute.name);
		report("device", attribute.name, value, "-");
	}
	CHECK(cudaRuntimeGetVersion(&value));
	report("device", "version of the runtime", value, "-");
	CHECK(cudaDriverGetVersion(&value));
	report("device", "version of CUDA that the driver has", value, "-");
}

/* -- Its memory --------------------------------------------------------------------------- */

#define MOST 8

struct vectors {
	const float4 *from[MOST];
	float4 *to[MOST];
};

static __device__ float4 operator+(float4 a, float4 b)
{
	return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* The sum of NFROM vectors to NTO places, four accesses of 16 bytes a vector in flight. A copy is 1, 1; a
 * reduction 2, 1; what a ring does between two neighbours 2, 2. */
template <int NFROM, int NTO>
__global__ void __launch_bounds__(512) combine(const vectors v, size_t n)
{
	const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
	size_t at = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;

	for (; at + 3 * stride < n; at += 4 * stride) {
		float4 sum[4];

#pragma unroll
		for (int i = 0; i < 4; i++)
			sum[i] = v.from[0][at + i * stride];
#pragma unroll
		for (int from = 1; from < NFROM; from++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				sum[i] = sum[i] + v.from[from][at + i * stride];
#pragma unroll
		for (int to = 0; to < NTO; to++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				v.to[to][at + i * stride] = sum[i];
	}
	for (; at < n; at += stride) {
		float4 sum = v.from[0][at];

		for (int from = 1; from < NFROM; from++)
			sum = sum + v.from[from][at];
		for (int to = 0; to < NTO; to++)
			v.to[to][at] = sum;
	}
}

template <int NFROM, int NTO>
static void measure_combine(const vectors &v, size_t nbytes, int blocks, const std::string &what)
{
	const double us = device_us(0, 5, 2, [&](cudaStream_t stream) {
		combine<NFROM, NTO><<<blocks, 512, 0, stream>>>(v, nbytes / sizeof(float4));
	});

	report("memory", what, (NFROM + NTO) * static_cast<double>(nbytes) / us / 1e3,
	       "GB/s read and written");
}

static void measure_memory()
{
	const size_t nbytes = size_t(1) << 30;
	vectors v;
	int multiprocessors;

	CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
	for (int i = 0; i < MOST; i++) {
		char *memory;

		CHECK(cudaMalloc(&memory, nbytes));
		CHECK(cudaMemset(memory, i + 1, nbytes));
		(i < MOST - 2 ? const_cast<float4 *&>(v.from[i]) : v.to[i - MOST + 2]) =
			reinterpret_cast<float4 *>(memory);
	}
	v.from[6] = v.to[0], v.from[7] = v.to[1];
	report("memory", "cudaMemcpyAsync() of 1 GiB",
	       2 * static_cast<double>(nbytes) /
		       device_us(0, 5, 2,
				 [&](cudaStream_t stream) {
					 CHECK(cudaMemcpyAsync(v.to[0], v.from[0], nbytes,
							       cudaMemcpyDeviceToDevice, stream));
				 }) /
		       1e3,
	       "GB/s read and written");
	for (int blocks : { 1, 2, 4, 8, 16, 32, 64, multiprocessors, 2 * multiprocessors,
			    4 * multiprocessors }) {
		/* One block takes 20 GB/s or so: less of it. */
		const size_t some = blocks < 16 ? nbytes / 16 : nbytes;
		const std::string by = ", blocks of 512: " + std::to_string(blocks);

		measure_combine<1, 1>(v, some, blocks, "copy" + by);
		measure_combine<2, 1>(v, some, blocks, "sum of 2 to 1" + by);
		measure_combine<2, 2>(v, some, blocks, "sum of 2 to 2" + by);
	}
	measure_combine<4, 1>(v, nbytes, 4 * multiprocessors, "sum of 4 to 1, many blocks");
	measure_combine<8, 1>(v, nbytes, 4 * multiprocessors, "sum of 8 to 1, many blocks");
	for (size_t small : { size_t(1) << 20, size_t(4) << 20, size_t(16) << 20 })
		measure_combine<2, 1>(v, small, 2 * multiprocessors,
				      "sum of 2 to 1 of " + size_name(small) + ", in L2");
	for (int i = 0; i < MOST - 2; i++)
		CHECK(cudaFree(const_cast<float4 *>(v.from[i])));
	CHECK(cudaFree(v.to[0]));
	CHECK(cudaFree(v.to[1]));
}

/* -- To and from the host ------------------------------------------------------------------- */

static void measure_engine(char *device, char *pinned, size_t nbytes, bool to_device)
{
	const int calls = nbytes > size_t(1) << 20 ? 1 : 20;
	const std::string what = std::string(to_device ? "to" : "from") + " the device, pinned, " +
				 size_name(nbytes);
	const double us = device_us(0, 5, calls, [&](cudaStream_t stream) {
		CHECK(cudaMemcpyAsync(to_device ? device : pinned, to_device ? pinned : device,
				      nbytes, cudaMemcpyDefault, stream));
	});

	report("host", what, us, "us");
	if (calls == 1)
		report("host", what, static_cast<double>(nbytes) / us / 1e3, "GB/s");
}

static void measure_kernel(char *device, char *pinned, size_t nbytes, bool to_device, int blocks)
{
	vectors v;

	v.from[0] = reinterpret_cast<float4 *>(to_device ? pinned : device);
	v.to[0] = reinterpret_cast<float4 *>(to_device ? device : pinned);
	const double us = device_us(0, 3, 1, [&](cudaStream_t stream) {
		combine<1, 1><<<blocks, 512, 0, stream>>>(v, nbytes / sizeof(float4));
	});
	report("host",
	       std::string("a kernel ") + (to_device ? "reads" : "writes") +
		       " pinned memory, blocks of 512: " + std::to_string(blocks),
	       static_cast<double>(nbytes) / us / 1e3, "GB/s");
}

static void measure_pinning(char *pageable, size_t nbytes)
{
	const double made = host_us(3, [&] {
		void *memory;

		CHECK(cudaMallocHost(&memory, nbytes));
		CHECK(cudaFreeHost(memory));
	});
	const double registered = host_us(3, [&] {
		CHECK(cudaHostRegister(pageable, nbytes, cudaHostRegisterDefault));
		CHECK(cudaHostUnregister(pageable));
	});

	report("host", "cudaMallocHost() of 256 MiB and its end", made, "us");
	report("host", "cudaHostRegister() of 256 MiB of malloc and its end", registered, "us");
}

static void measure_host()
{
	const size_t most = size_t(256) << 20;
	char *device, *pinned, *pageable = static_cast<char *>(std::malloc(most));

	if (!pageable)
		give_up();
	std::memset(pageable, 1, most);
	CHECK(cudaMalloc(&device, most));
	CHECK(cudaMallocHost(&pinned, most));
	std::memset(pinned, 1, most);
	for (size_t nbytes : { size_t(8), size_t(64) << 10, size_t(1) << 20, most })
		for (bool to_device : { true, false })
			measure_engine(device, pinned, nbytes, to_device);
	const double us = host_us(
		3, [&] { CHECK(cudaMemcpy(device, pageable, most, cudaMemcpyHostToDevice)); });
	report("host", "to the device, of malloc, 256 MiB", static_cast<double>(most) / us / 1e3,
	       "GB/s");
	for (int blocks : { 1, 8, 32 })
		for (bool to_device : { true, false })
			measure_kernel(device, pinned, most / 4, to_device, blocks);
	measure_pinning(pageable, most);
	CHECK(cudaFree(device));
	CHECK(cudaFreeHost(pinned));
	std::free(pageable);
}

/* -- Launches --------------------------------------------------------------------------------- */

__global__ void nothing()
{
}

static void do_nothing(void *arg)
{
	(void)arg;
}

static cudaGraphExec_t capture(cudaStream_t stream, int kernels)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < kernels; i++)
		nothing<<<1, 32, 0, stream>>>();
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	return exec;
}

/* A stream that awaits a word of the host, and tells it by another one. */
static void measure_words(cudaStream_t stream)
{
	const auto await = DRIVER(cuStreamWaitValue64);
	const auto tell = DRIVER(cuStreamWriteValue64);
	volatile word *words;
	word count = 0;

	CHECK(cudaHostAlloc(const_cast<word **>(&words), 2 * APART * sizeof(word),
			    cudaHostAllocPortable | cudaHostAllocMapped));
	words[0] = 0;
	words[APART] = 0;
	const CUdeviceptr first = reinterpret_cast<CUdeviceptr>(words);
	const double queue = host_us(200, [&] {
		count++;
		check_driver(await(stream, first, count, CU_STREAM_WAIT_VALUE_GEQ), "await");
		check_driver(tell(stream, first + APART * sizeof(word), count, 0), "tell");
		words[0] = count;
		while (words[APART] != count)
			;
	});
	std::vector<double> times;

	for (int round = 0; round < 200; round++) {
		count++;
		check_driver(await(stream, first, count, CU_STREAM_WAIT_VALUE_GEQ), "await");
		check_driver(tell(stream, first + APART * sizeof(word), count, 0), "tell");
		std::this_thread::sleep_for(std::chrono::microseconds(100));
		const double from = now_us();

		words[0] = count;
		while (words[APART] != count)
			;
		times.push_back(now_us() - from);
	}
	report("launch", "queue a stream's wait for a word of the host and its answer, and see it",
	       queue, "us");
	report("launch", "a stream that waits for a word of the host: the word to the answer",
	       median(times), "us");
	report("launch", "queue both (no wait)",
	       host_us(200,
		       [&] {
			       count++;
			       words[0] = count;
			       check_driver(await(stream, first, count, CU_STREAM_WAIT_VALUE_GEQ),
					    "await");
			       check_driver(tell(stream, first + APART * sizeof(word), count, 0),
					    "tell");
		       }),
	       "us");
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaFreeHost(const_cast<word *>(words)));
}

/* Microseconds of the host from `work` to the end of what it queued. */
template <typename Work>
static void report_with_wait(const char *what, cudaStream_t stream, Work work)
{
	const double us = host_us(300, [&] {
		work();
		CHECK(cudaStreamSynchronize(stream));
	});

	CHECK(cudaGetLastError());
	report("launch", what, us, "us");
}

/* One behind another in a stream, without waiting: what each takes on the device. */
template <typename Work>
static void report_in_row(const std::string &what, cudaStream_t stream, Work work)
{
	report("launch", what, device_us(stream, 5, 200, work), "us");
}

static void measure_kernels(cudaStream_t stream)
{
	const double us = host_us(500, [&] { nothing<<<1, 32, 0, stream>>>(); });

	report("launch", "the call that launches a kernel", us, "us");
	report_with_wait("launch a kernel and wait for the stream", stream,
			 [&] { nothing<<<1, 32, 0, stream>>>(); });
	report_in_row("kernel behind kernel in a stream", stream,
		      [](cudaStream_t s) { nothing<<<1, 32, 0, s>>>(); });
	report_in_row("kernel of 132 blocks of 512 behind the same", stream,
		      [](cudaStream_t s) { nothing<<<132, 512, 0, s>>>(); });
	report_in_row("cooperative kernel of 32 blocks of 512 behind the same", stream,
		      [](cudaStream_t s) {
			      const void *kernel = reinterpret_cast<const void *>(nothing);

			      CHECK(cudaLaunchCooperativeKernel(kernel, 32, 512, nullptr, 0, s));
		      });
}

static void measure_graphs(cudaStream_t stream)
{
	for (int kernels : { 1, 10, 100 }) {
		cudaGraphExec_t exec = capture(stream, kernels);
		const std::string what = "a graph of kernels: " + std::to_string(kernels);
		const double us = host_us(
			200, [&] { CHECK(cudaGraphLaunch(exec, stream)); },
			[&] { CHECK(cudaStreamSynchronize(stream)); });

		report("launch", "the call that launches " + what, us, "us");
		CHECK(cudaStreamSynchronize(stream));
		report_in_row(what + ", behind the same", stream,
			      [&](cudaStream_t s) { CHECK(cudaGraphLaunch(exec, s)); });
		CHECK(cudaGraphExecDestroy(exec));
	}
}

static void measure_launch()
{
	cudaStream_t stream, other;
	cudaEvent_t event;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	measure_kernels(stream);
	measure_graphs(stream);
	report_in_row("host function behind host function in a stream", stream,
		      [](cudaStream_t s) { CHECK(cudaLaunchHostFunc(s, do_nothing, nullptr)); });
	report_with_wait("host function and wait for the stream", stream,
			 [&] { CHECK(cudaLaunchHostFunc(stream, do_nothing, nullptr)); });
	report_with_wait("event of one stream awaited by another, and wait for that", other, [&] {
		CHECK(cudaEventRecord(event, stream));
		CHECK(cudaStreamWaitEvent(other, event, 0));
	});
	measure_words(stream);
	CHECK(cudaEventDestroy(event));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaStreamDestroy(other));
}

int main(int argc, char **argv)
{
	const std::vector<std::string> names(argv + 1, argv + argc);
	const std::vector<std::pair<std::string, std::function<void()>>> sections = {
		{ "device", measure_device },
		{ "memory", measure_memory },
		{ "host", measure_host },
		{ "launch", measure_launch },
	};

	for (const auto &name : names)
		if (std::none_of(sections.begin(), sections.end(),
				 [&](const auto &section) { return section.first == name; })) {
			std::fprintf(stderr,
				     "usage: limits [device|memory|host|launch]..., not '%s'\n",
				     name.c_str());
			return 2;
		}
	for (const auto &section : sections)
		if (names.empty() ||
		    std::find(names.begin(), names.end(), section.first) != names.end())
			section.second();
	return 0;
}
