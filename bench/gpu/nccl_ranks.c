/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h for a libnccl.so.2: that of the loader's path, NVIDIA's or Tutti's. Several ranks of one
 * GPU need NCCL_MULTI_RANK_GPU_ENABLE=1. */
#include "ranks.h"

#include <stdlib.h>

#include <nccl.h>

#define CHECK(call) check((call), #call, __LINE__)

static void check(ncclResult_t result, const char *call, int line)
{
	if (result != ncclSuccess)
		give_up("%s:%d: %s: %s: %s\n", __FILE__, line, call, ncclGetErrorString(result),
			ncclGetLastError(NULL));
}

struct member {
	ncclComm_t comm;
	ncclWindow_t windows[2];
};

static void open_job(struct ranks *job)
{
	static ncclUniqueId id;
	int version;

	CHECK(ncclGetVersion(&version));
	report("calls", "version of NCCL", version, "-");
	CHECK(ncclGetUniqueId(&id));
	job->library = &id;
}

static void init(struct rank *rank)
{
	const ncclUniqueId *id = rank->job->library;
	struct member *member = calloc(1, sizeof(*member));

	if (!member)
		give_up("out of memory\n");
	CHECK(ncclCommInitRank(&member->comm, rank->job->n, *id, rank->number));
	rank->library = member;
}

static void all_reduce(struct rank *rank, size_t nbytes)
{
	const struct member *member = rank->library;

	CHECK(ncclAllReduce(rank->input, rank->output, nbytes / sizeof(float), ncclFloat32, ncclSum,
			    member->comm, rank->stream));
}

static void allocate(struct rank *rank, void **out, size_t nbytes)
{
	(void)rank;
	CHECK(ncclMemAlloc(out, nbytes));
}

static void release(struct rank *rank, void *memory, size_t nbytes)
{
	(void)rank;
	(void)nbytes;
	CHECK(ncclMemFree(memory));
}

static void enroll(struct rank *rank)
{
	struct member *member = rank->library;
	void *const memory[] = { rank->input, rank->output };

	for (int i = 0; i < 2; i++)
		CHECK(ncclCommWindowRegister(member->comm, memory[i], rank->job->most,
					     &member->windows[i], NCCL_WIN_COLL_SYMMETRIC));
}

static void expel(struct rank *rank)
{
	struct member *member = rank->library;

	for (int i = 0; i < 2; i++)
		if (member->windows[i])
			CHECK(ncclCommWindowDeregister(member->comm, member->windows[i]));
}

static size_t memory(struct rank *rank)
{
	const struct member *member = rank->library;
	uint64_t nbytes = 0;

	CHECK(ncclCommMemStats(member->comm, ncclStatGpuMemTotal, &nbytes));
	return nbytes;
}

static void destroy(struct rank *rank)
{
	struct member *member = rank->library;

	CHECK(ncclCommDestroy(member->comm));
	free(member);
}

const struct library library = { .name = "nccl",
				 .open = open_job,
				 .init = init,
				 .all_reduce = all_reduce,
				 .allocate = allocate,
				 .release = release,
				 .enroll = enroll,
				 .expel = expel,
				 .memory = memory,
				 .destroy = destroy };
