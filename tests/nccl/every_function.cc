/* SPDX-License-Identifier: BSD-3-Clause */
/* Every function of libnccl.so.2 in C++, on memory and streams of CUDA: three ranks that are threads, each on a
 * device of its own. What only a GPU can do is asked for, too, and has to be refused with a text. */
#include <cstdio>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "nccl/ranks.hh"

namespace
{

std::vector<float> fill(size_t n, float value)
{
	return std::vector<float>(n, value);
}

/* 0, 1, 2 ... */
std::vector<float> everyone()
{
	std::vector<float> values(kRanks);

	std::iota(values.begin(), values.end(), 0.0F);
	return values;
}

void sums_to(ncclComm_t comm, const Stream &stream, int n)
{
	Memory send(fill(8, 1)), got(fill(8, 0));

	OK(ncclAllReduce, send.at(), got.at(), 8, ncclFloat, ncclSum, comm, stream);
	stream.wait();
	EXPECT(got.read() == fill(8, static_cast<float>(n)));
}

/* -- Collectives ------------------------------------------------------------------------------ */

using Call = std::function<void(const void *, void *)>;

/* `on`: the rank that has the result; -1: all. */
void collective(const Rank &self, const std::vector<float> &mine, const std::vector<float> &wanted,
		int on, const Call &call)
{
	Memory send(mine), got(fill(wanted.size(), -1));

	call(send.at(), got.at());
	self.stream.wait();
	if (on < 0 || on == self.rank)
		EXPECT(got.read() == wanted);
}

#define COLLECTIVE(name, mine, wanted, on, count, ...)                                       \
	collective(self, mine, wanted, on, [&](const void *send, void *recv) {               \
		OK(name, send, recv, count, ncclFloat, __VA_ARGS__, self.comm, self.stream); \
	});                                                                                  \
	collective(self, mine, wanted, on, [&](const void *send, void *recv) {               \
		OK(name##Config, send, recv, count, ncclFloat, __VA_ARGS__, self.comm,       \
		   self.stream, &settings);                                                  \
	})

void collectives(const Rank &self)
{
	const ncclCollConfig_t settings = NCCL_COLLCONFIG_INITIALIZER;
	const float rank = static_cast<float>(self.rank);
	std::vector<float> to_all = everyone(), of_all = everyone();

	COLLECTIVE(ncclAllReduce, fill(2, rank), fill(2, 3), -1, 2, ncclSum);
	COLLECTIVE(ncclBroadcast, fill(2, rank), fill(2, 2), -1, 2, 2);
	COLLECTIVE(ncclReduce, fill(2, rank), fill(2, 2), 1, 2, ncclMax, 1);
	COLLECTIVE(ncclReduceScatter, everyone(), fill(1, kRanks * rank), -1, 1, ncclSum);
	COLLECTIVE(ncclGather, fill(1, rank), everyone(), 0, 1, 0);
	COLLECTIVE(ncclScatter, everyone(), fill(1, rank), -1, 1, 2);
	for (int peer = 0; peer < kRanks; peer++) {
		to_all[static_cast<size_t>(peer)] = 10 * rank + static_cast<float>(peer);
		of_all[static_cast<size_t>(peer)] = 10 * static_cast<float>(peer) + rank;
	}
	/* These have no operator and no root. */
	for (const ncclCollConfig_t *config :
	     { static_cast<const ncclCollConfig_t *>(nullptr), &settings }) {
		collective(self, fill(1, rank), everyone(), -1, [&](const void *send, void *recv) {
			OK(ncclAllGatherConfig, send, recv, 1, ncclFloat, self.comm, self.stream,
			   config);
		});
		collective(self, to_all, of_all, -1, [&](const void *send, void *recv) {
			OK(ncclAlltoAllConfig, send, recv, 1, ncclFloat, self.comm, self.stream,
			   config);
		});
	}
	collective(self, fill(1, rank), everyone(), -1, [&](const void *send, void *recv) {
		OK(ncclAllGather, send, recv, 1, ncclFloat, self.comm, self.stream);
	});
	collective(self, to_all, of_all, -1, [&](const void *send, void *recv) {
		OK(ncclAlltoAll, send, recv, 1, ncclFloat, self.comm, self.stream);
	});

	Memory both(fill(1, rank));

	OK(ncclBcast, both.at(), 1, ncclFloat, 1, self.comm, self.stream);
	self.stream.wait();
	EXPECT(both.read() == fill(1, 1));
}

void operators(const Rank &self)
{
	Memory send(fill(1, 2)), got(fill(1, 0));
	float half = 0.5F;
	ncclRedOp_t op;

	OK(ncclRedOpCreatePreMulSum, &op, &half, ncclFloat, ncclScalarHostImmediate, self.comm);
	OK(ncclAllReduce, send.at(), got.at(), 1, ncclFloat, op, self.comm, self.stream);
	OK(ncclRedOpDestroy, op, self.comm);
	self.stream.wait();
	EXPECT(got.read() == fill(1, kRanks));
}

void messages(const Rank &self)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	Memory send(fill(3, static_cast<float>(self.rank))), got(fill(3, -1));

	OK(ncclGroupStart, );
	OK(ncclSend, send.at(), 3, ncclFloat, self.next(), self.comm, self.stream);
	OK(ncclRecv, got.at(), 3, ncclFloat, self.previous(), self.comm, self.stream);
	OK(ncclGroupEnd, );
	self.stream.wait();
	EXPECT(got.read() == fill(3, static_cast<float>(self.previous())));
	OK(ncclGroupStart, );
	OK(ncclAllReduce, send.at(), got.at(), 3, ncclFloat, ncclSum, self.comm, self.stream);
	OK(ncclGroupSimulateEnd, &info);
	EXPECT(info.estimatedTime > 0);
	EXPECT(got.read() == fill(3, static_cast<float>(self.previous())));
}

/* -- Memory ----------------------------------------------------------------------------------- */

void addresses(const Rank &self, ncclWindow_t window, char *memory)
{
	const ncclMultimemHandle_t multimem = {};
	const ncclTeam_t team = { 1, 0, 1 };
	void *at = nullptr;

	OK(ncclWinGetUserPtr, self.comm, window, &at);
	EXPECT(at == memory);
	OK(ncclGetLsaDevicePointer, window, 16, 0, &at);
	EXPECT(at == memory + 16);
	OK(ncclGetPeerDevicePointer, window, 16, self.rank, &at);
	EXPECT(at == memory + 16);
	OK(ncclGetLsaMultimemDevicePointer, window, 0, &at);
	EXPECT(at == nullptr);
	OK(ncclGetMultimemDevicePointer, window, 0, multimem, &at);
	EXPECT(at == nullptr);
	REFUSED(ncclGetMultimemDeviceLeInfo, window, 0, nullptr, nullptr);
	REFUSED(ncclGetCftDeviceLeInfo, window, 0, 0, team, nullptr, nullptr);
	REFUSED(ncclGetPeerDeviceLeInfo, window, 0, 0, nullptr, nullptr);
}

void memory_of_all(const Rank &self)
{
	ncclWaitSignalDesc_t wait = { 2, self.previous(), 0, 0 };
	Memory send({ static_cast<float>(self.rank), 7 });
	ncclWindow_t window = nullptr;
	void *memory = nullptr, *handle = nullptr;

	OK(ncclMemAlloc, &memory, 8192);
	OK(ncclCommRegister, self.comm, memory, 8192, &handle);
	OK(ncclCommDeregister, self.comm, handle);
	OK(ncclCommWindowRegister, self.comm, memory, 4096, &window, NCCL_WIN_COLL_SYMMETRIC);
	addresses(self, window, static_cast<char *>(memory));
	OK(ncclPutSignal, send.at(), 2, ncclFloat, self.next(), window, 64, 0, 0, 0, self.comm,
	   self.stream);
	OK(ncclSignal, self.next(), 0, 0, 0, self.comm, self.stream);
	OK(ncclWaitSignal, 1, &wait, self.comm, self.stream);
	self.stream.wait();

	const float *got = static_cast<const float *>(memory) + 16;

	EXPECT(got[0] == static_cast<float>(self.previous()) && got[1] == 7);
	OK(ncclCommWindowDeregister, self.comm, window);
	meeting.meet();
	OK(ncclMemFree, memory);
}

/* -- What it says of itself ----------------------------------------------------------------- */

void facts(const Rank &self)
{
	ncclCommProperties_t properties = NCCL_COMM_PROPERTIES_INITIALIZER;
	ncclResult_t result = ncclInternalError;
	uint64_t nbytes = 1;
	int value = -1;

	OK(ncclCommCount, self.comm, &value);
	EXPECT(value == kRanks);
	OK(ncclCommUserRank, self.comm, &value);
	EXPECT(value == self.rank);
	OK(ncclCommCuDevice, self.comm, &value);
	EXPECT(value == self.rank);
	OK(ncclCommGetAsyncError, self.comm, &result);
	EXPECT(result == ncclSuccess);
	OK(ncclCommQueryProperties, self.comm, &properties);
	EXPECT(properties.rank == self.rank && properties.nRanks == kRanks &&
	       !properties.deviceApiSupport);
	OK(ncclCommMemStats, self.comm, ncclStatGpuMemTotal, &nbytes);
	EXPECT(nbytes == 0);
	OK(ncclCommSuspend, self.comm, NCCL_SUSPEND_MEM);
	OK(ncclCommResume, self.comm);

	const ncclTeam_t world = VALUE(ncclTeamWorld, self.comm);

	EXPECT(world.nRanks == kRanks && world.rank == self.rank && world.stride == 1);
	EXPECT(VALUE(ncclTeamLsa, self.comm).nRanks == 1);
	EXPECT(VALUE(ncclTeamRail, self.comm).nRanks == kRanks);
	EXPECT(VALUE(ncclTeamCft, self.comm).nRanks == 1);
	EXPECT(VALUE(ncclTeamCftMultimem, self.comm).nRanks == 1);
	EXPECT(VALUE(ncclTeamRankToWorld, self.comm, world, self.next()) == self.next());
	EXPECT(VALUE(ncclTeamRankToLsa, self.comm, world, self.rank) == 0);
}

void kernels(const Rank &self)
{
	ncclDevCommRequirements_t wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
	const ncclTeam_t team = { 1, 0, 1 };
	ncclDevComm_t devcomm;

	REFUSED(ncclDevCommCreate, self.comm, &wanted, &devcomm);
	REFUSED(ncclDevCommDestroy, self.comm, nullptr);
	REFUSED(ncclLsaBarrierCreateRequirement, team, 1, nullptr, nullptr);
	REFUSED(ncclGinBarrierCreateRequirement, self.comm, team, 1, nullptr, nullptr);
	REFUSED(ncclLLA2ACreateRequirement, 1, 1, nullptr, nullptr);
	REFUSED(ncclGinOutboxCreateRequirement, 1, 1, nullptr, nullptr);
	REFUSED(ncclGinInboxA2ACreateRequirement, team, 1, 1, nullptr, nullptr);
	EXPECT(VALUE(ncclLLA2ACalcSlots, 8, 8) == 0);
}

#define NUMBER(letter, type)                              \
	do {                                              \
		type number = 0;                          \
		OK(ncclParamGet##letter, slots, &number); \
		EXPECT(number == 2);                      \
	} while (0)

void parameters()
{
	ncclParamHandle_t slots = nullptr;
	const char *text = nullptr, **names = nullptr;
	char room[8];
	int n = 0;

	OK(ncclParamBind, &slots, "TUTTI_SHM_SLOTS");
	NUMBER(I8, int8_t);
	NUMBER(I16, int16_t);
	NUMBER(I32, int32_t);
	NUMBER(I64, int64_t);
	NUMBER(U8, uint8_t);
	NUMBER(U16, uint16_t);
	NUMBER(U32, uint32_t);
	NUMBER(U64, uint64_t);
	OK(ncclParamGetStr, slots, &text);
	EXPECT(std::string(text) == "2");
	OK(ncclParamGet, slots, room, sizeof(room), &n);
	EXPECT(std::string(room) == "2" && n == 2);
	OK(ncclParamGetParameter, "TUTTI_SHM_SLOTS", &text, &n);
	EXPECT(std::string(text) == "2" && n == 1);
	OK(ncclParamGetAllParameterKeys, &names, &n);
	EXPECT(n > 50 && std::set<std::string>(names, names + n).count("TUTTI_SHM_SLOTS") == 1);
	VALUE(ncclParamDumpAll, );
}

void library()
{
	ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
	std::set<std::string> texts;
	int version = 0;

	OK(ncclGetVersion, &version);
	EXPECT(version == NCCL_VERSION_CODE);
	for (int result = ncclSuccess; result < ncclNumResults; result++)
		texts.insert(VALUE(ncclGetErrorString, static_cast<ncclResult_t>(result)));
	EXPECT(texts.size() == ncclNumResults);
	VALUE(ncclGetLastError, nullptr);
	VALUE(ncclResetDebugInit, );
	VALUE(ncclResetDebugInitInternal, );
	OK(ncclSetEncryption, &config);
	config.mode = NCCL_ENCRYPTION_MODE_PSK;
	config.psk = "a key";
	REFUSED(ncclSetEncryption, &config);
}

/* -- Communicators ------------------------------------------------------------------------------ */

/* What one rank has made, for all. */
ncclUniqueId shared[4];

void families(const Rank &self)
{
	const bool is_in_pair = self.rank < 2, comes_anew = !is_in_pair;
	ncclComm_t pair = nullptr, grown = nullptr, rest = nullptr;
	int without[] = { 2 };

	OK(ncclCommSplit, self.comm, is_in_pair ? 0 : NCCL_SPLIT_NOCOLOR, self.rank, &pair,
	   nullptr);
	EXPECT((pair != nullptr) == is_in_pair);
	if (is_in_pair)
		sums_to(pair, self.stream, 2);
	if (self.rank == 0)
		OK(ncclCommGetUniqueId, pair, &shared[3]);
	meeting.meet();
	OK(ncclCommGrow, pair, kRanks, self.rank == 1 ? nullptr : &shared[3],
	   comes_anew ? self.rank : -1, &grown, nullptr);
	sums_to(grown, self.stream, kRanks);
	if (is_in_pair) {
		OK(ncclCommShrink, grown, without, 1, &rest, nullptr, NCCL_SHRINK_DEFAULT);
		sums_to(rest, self.stream, 2);
		OK(ncclCommFinalize, rest);
		OK(ncclCommDestroy, rest);
		OK(ncclCommDestroy, pair);
	}
	meeting.meet();
	OK(ncclCommRevoke, grown, NCCL_REVOKE_DEFAULT);
	OK(ncclCommAbort, grown);
}

void inits(const Rank &self)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t result = ncclInProgress;
	ncclComm_t comm = nullptr;

	config.blocking = 0;
	note("ncclCommInitRankConfig");
	EXPECT(ncclCommInitRankConfig(&comm, kRanks, shared[1], self.rank, &config) <=
	       ncclInProgress);
	while (result == ncclInProgress) {
		std::this_thread::yield();
		OK(ncclCommGetAsyncError, comm, &result);
	}
	EXPECT(result == ncclSuccess);
	sums_to(comm, self.stream, kRanks);
	OK(ncclCommDestroy, comm);
	OK(ncclCommInitRankScalable, &comm, kRanks, self.rank, 1, &shared[2], nullptr);
	sums_to(comm, self.stream, kRanks);
	OK(ncclCommDestroy, comm);
	OK(ncclCommInitAll, &comm, 1, nullptr);
	sums_to(comm, self.stream, 1);
	OK(ncclCommDestroy, comm);
}

/* An exception of one rank ends the program: the others may wait for it. */
void run(int rank)
{
	ncclComm_t comm = nullptr;

	CUDA(cudaSetDevice(rank));

	const Stream stream;

	OK(ncclCommInitRank, &comm, kRanks, shared[0], rank);

	const Rank self = { rank, comm, stream };

	facts(self);
	collectives(self);
	operators(self);
	messages(self);
	memory_of_all(self);
	kernels(self);
	families(self);
	OK(ncclCommDestroy, comm);
	inits(self);
}

/* All names that functions.def has. */
const char *const names[] = {
#define FUNCTION(name, since, how, text)   #name,
#define UNPROFILED(name, since, how, text) #name,
#include "nccl/functions.def"
#undef FUNCTION
#undef UNPROFILED
};

} // namespace

int main()
{
	std::vector<std::thread> ranks;
	int nleft = 0;

	library();
	parameters();
	for (int at = 0; at < 3; at++)
		OK(ncclGetUniqueId, &shared[at]);
	for (int rank = 0; rank < kRanks; rank++)
		ranks.emplace_back(run, rank);
	for (std::thread &rank : ranks)
		rank.join();
	for (const char *name : names)
		if (!called.count(name)) {
			std::fprintf(stderr, "%s was not called\n", name);
			nleft++;
		}
	std::printf("%zu functions\n", called.size());
	return nleft ? 1 : 0;
}
