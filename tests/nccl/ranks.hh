/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks in C++ that are threads, on memory and streams of CUDA, and which functions of NCCL they have called. */
#ifndef TESTS_NCCL_RANKS_HH
#define TESTS_NCCL_RANKS_HH

#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "nccl/nccl_device.h"

extern "C" {
int cudaSetDevice(int device);
int cudaMalloc(void **out, size_t nbytes);
int cudaFree(void *memory);
int cudaMemcpy(void *to, const void *from, size_t nbytes, int kind);
int cudaStreamCreate(cudaStream_t *out);
int cudaStreamDestroy(cudaStream_t stream);
int cudaStreamSynchronize(cudaStream_t stream);
}

namespace
{

const int kRanks = 3, kByAddress = 4;

/* -- What was called ---------------------------------------------------------------------- */

std::mutex guard;
std::set<std::string> called;

void note(const char *name)
{
	std::lock_guard<std::mutex> hold(guard);

	called.insert(name);
}

void expect(bool good, const std::string &what)
{
	if (!good)
		throw std::runtime_error(what + ": \"" + ncclGetLastError(nullptr) + "\"");
}

/* Name the function, call it, and compare its result; a refusal has to have a text. */
#define GIVES(result, name, ...)                                                         \
	(note(#name),                                                                    \
	 expect(name(__VA_ARGS__) == (result) &&                                         \
			((result) == ncclSuccess || *ncclGetLastError(nullptr) != '\0'), \
		#name " does not give " #result))
#define OK(name, ...)      GIVES(ncclSuccess, name, __VA_ARGS__)
#define REFUSED(name, ...) GIVES(ncclInvalidUsage, name, __VA_ARGS__)
#define CUDA(...)          expect((__VA_ARGS__) == 0, #__VA_ARGS__)
#define EXPECT(...)        expect(__VA_ARGS__, #__VA_ARGS__)

/* What a function gives that returns no result. */
#define VALUE(name, ...) (note(#name), name(__VA_ARGS__))

/* -- Ranks, memory, streams ----------------------------------------------------------------- */

/* All ranks come to it before one goes on. */
class Meeting
{
      public:
	void meet()
	{
		std::unique_lock<std::mutex> hold(mutex_);
		const int round = round_;

		if (++waiting_ == kRanks) {
			waiting_ = 0;
			round_++;
			all_are_here_.notify_all();
		}
		all_are_here_.wait(hold, [&] { return round != round_; });
	}

      private:
	std::mutex mutex_;
	std::condition_variable all_are_here_;
	int waiting_ = 0, round_ = 0;
};

Meeting meeting;

/* Floats of the current device. */
class Memory
{
      public:
	explicit Memory(const std::vector<float> &values) : n_(values.size())
	{
		CUDA(cudaMalloc(&at_, n_ * sizeof(float)));
		CUDA(cudaMemcpy(at_, values.data(), n_ * sizeof(float), kByAddress));
	}
	Memory(const Memory &) = delete;
	Memory &operator=(const Memory &) = delete;
	~Memory()
	{
		cudaFree(at_);
	}
	void *at() const
	{
		return at_;
	}
	std::vector<float> read() const
	{
		std::vector<float> values(n_);

		CUDA(cudaMemcpy(values.data(), at_, n_ * sizeof(float), kByAddress));
		return values;
	}

      private:
	size_t n_;
	void *at_ = nullptr;
};

class Stream
{
      public:
	Stream()
	{
		CUDA(cudaStreamCreate(&handle_));
	}
	Stream(const Stream &) = delete;
	Stream &operator=(const Stream &) = delete;
	~Stream()
	{
		cudaStreamDestroy(handle_);
	}
	operator cudaStream_t() const
	{
		return handle_;
	}
	void wait() const
	{
		CUDA(cudaStreamSynchronize(handle_));
	}

      private:
	cudaStream_t handle_ = nullptr;
};

/* One rank, while its thread runs. */
struct Rank {
	int rank;
	ncclComm_t comm;
	const Stream &stream;

	int next() const
	{
		return (rank + 1) % kRanks;
	}
	int previous() const
	{
		return (rank + kRanks - 1) % kRanks;
	}
};

} // namespace

#endif
