/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs that measure a GPU share: errors, times, and the form of what they print, one
 * figure a line, "section | what | figure | unit", which scripts/gpu_day makes tables of. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>

/* At once: other threads may be in calls of CUDA that end only with the process. */
[[noreturn]] static inline void give_up()
{
	std::fflush(nullptr);
	std::_Exit(1);
}

#define CHECK(call) check((call), #call, __FILE__, __LINE__)

static inline void check(cudaError_t error, const char *call, const char *file, int line)
{
	if (error == cudaSuccess)
		return;
	std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
	give_up();
}

typedef unsigned long long word; /* a flag: 64 bits that one side writes and the other awaits */

/* So that flags and what waits for them are on lines of their own. */
#define APART 32

/* Some functions of the driver, found through the runtime: no library to link to. */
template <typename Function> static Function driver(const char *name)
{
	void *function = nullptr;
	cudaDriverEntryPointQueryResult found;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
	if (!function) {
		std::fprintf(stderr, "the driver has no %s()\n", name);
		give_up();
	}
	return reinterpret_cast<Function>(function);
}
#define DRIVER(name) driver<decltype(&name)>(#name)

static inline void check_driver(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	std::fprintf(stderr, "%s: error %d of the driver\n", what, static_cast<int>(result));
	give_up();
}

static inline void report(const char *section, const std::string &what, double figure,
			  const char *unit)
{
	std::printf("%s | %s | %.6g | %s\n", section, what.c_str(), figure, unit);
	std::fflush(stdout);
}

static inline double now_us()
{
	using namespace std::chrono;

	return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

static inline double median(std::vector<double> values)
{
	std::sort(values.begin(), values.end());
	return values[values.size() / 2];
}

/* "8 B", "64 KiB": sizes as the tables name them. */
static inline std::string size_name(size_t nbytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	int unit = 0;

	for (; nbytes >= 1024 && nbytes % 1024 == 0 && unit < 3; unit++)
		nbytes /= 1024;
	return std::to_string(nbytes) + " " + units[unit];
}

/* Microseconds of work(stream) on the device: the median of `rounds` after one that does not count,
 * each of `calls` calls between two events. */
template <typename Work> double device_us(cudaStream_t stream, int rounds, int calls, Work work)
{
	std::vector<double> times;
	cudaEvent_t from, to;

	CHECK(cudaEventCreate(&from));
	CHECK(cudaEventCreate(&to));
	for (int round = 0; round <= rounds; round++) {
		float ms;

		CHECK(cudaEventRecord(from, stream));
		for (int call = 0; call < calls; call++)
			work(stream);
		CHECK(cudaEventRecord(to, stream));
		CHECK(cudaEventSynchronize(to));
		CHECK(cudaEventElapsedTime(&ms, from, to));
		CHECK(cudaGetLastError());
		if (round > 0)
			times.push_back(ms * 1e3 / calls);
	}
	CHECK(cudaEventDestroy(from));
	CHECK(cudaEventDestroy(to));
	return median(times);
}

/* Microseconds that work() takes on the host: the median of `rounds` after some that do not count. What
 * after() does behind each does not count either. */
template <typename Work, typename After> double host_us(int rounds, Work work, After after)
{
	std::vector<double> times;

	for (int round = -3; round < rounds; round++) {
		const double from = now_us();

		work();
		if (round >= 0)
			times.push_back(now_us() - from);
		after();
	}
	return median(times);
}

template <typename Work> double host_us(int rounds, Work work)
{
	return host_us(rounds, work, [] {});
}

#endif
