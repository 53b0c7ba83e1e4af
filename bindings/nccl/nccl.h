/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NCCL_H_
#define NCCL_H_

/* The binary interface of NCCL 2.32.3, as Tutti's libnccl.so.2 has it: what a program that was
 * compiled for NCCL passes and gets, byte for byte. The host's part of the device API is in
 * nccl_device.h. functions.def says of each function what it does here, config_layouts.def what
 * ncclConfig_t was in older releases.
 *
 * The include guard is that of NVIDIA's header, so that a program has one of the two. Unlike
 * NVIDIA's header this one includes nothing of CUDA: it compiles where no toolkit is, and with
 * <cuda_runtime.h> before or after it.
 *
 * Every function but ncclResetDebugInitInternal() has a second name, with p in front, which a
 * profiler calls that has taken the first one. */

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__DRIVER_TYPES_H__)
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -- Version ------------------------------------------------------------- */

#define NCCL_MAJOR  2
#define NCCL_MINOR  32
#define NCCL_PATCH  3
#define NCCL_SUFFIX ""

/* Up to 2.8 a version had four digits. */
#define NCCL_VERSION(major, minor, patch)                                    \
	((major) <= 2 && (minor) <= 8 ? (major)*1000 + (minor)*100 + (patch) \
				      : (major)*10000 + (minor)*100 + (patch))
#define NCCL_VERSION_CODE 23203

/* -- Handles and results ------------------------------------------------- */

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct ncclParamHandle *ncclParamHandle_t;

#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclTimeout = 8,
	ncclNumResults = 9
} ncclResult_t;

/* -- Elements and operators ---------------------------------------------- */

typedef enum {
	ncclInt8 = 0,
	ncclChar = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclHalf = 6,
	ncclFloat32 = 7,
	ncclFloat = 7,
	ncclFloat64 = 8,
	ncclDouble = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10,
	ncclFloat8e5m2 = 11,
	ncclNumTypes = 12
} ncclDataType_t;

/* It has the size of ncclRedOp_t. */
typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;

/* Operators that programs make have values from ncclNumOps to ncclMaxRedOp. */
typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5,
	ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

/* When the scalar of an operator is read: by each call, or at once. */
typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

/* -- Settings of a communicator ------------------------------------------ */

/* The value of a field that the program has not set. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT      -1.0f

/* The value of `magic` in all structs with that member but ncclSimInfo_t. */
#define NCCL_API_MAGIC 0xcafebeef

/* CTAPolicy. */
#define NCCL_CTA_POLICY_DEFAULT    0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO       0x02

/* hostCftMode. */
typedef enum {
	ncclHostCftDefault = NCCL_CONFIG_UNDEF_INT,
	ncclHostCftEnable = 1,
	ncclHostCftDisable = 2,
	ncclHostCftFallback = 3
} ncclHostCftMode_t;

/* nvlsHostMode: 0, or what to disable. */
typedef enum {
	ncclNvlsHostModeDefault = NCCL_CONFIG_UNDEF_INT,
	ncclNvlsHostModeEnable = 0,
	ncclNvlsHostModeDisableTransport = 1,
	ncclNvlsHostModeDisableSymmetricMultimem = 2,
	ncclNvlsHostModeDisable = INT_MAX
} ncclNvlsHostMode_t;

/* Begins as NCCL_CONFIG_INITIALIZER. A later release may add members at the end. */
typedef struct ncclConfig_v23100 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
	const char *commName;
	int collnetEnable;
	int CTAPolicy;
	int shrinkShare;
	int nvlsCTAs;
	int nChannelsPerNetPeer;
	int nvlinkCentricSched;
	int graphUsageMode;
	int numRmaCtx;
	int maxP2pPeers;
	int graphStreamOrdering;
	int launchOrderImplicit;
	int numRmaSig;
	int rmaEagerInit;
	int hostCftMode;
	int nvlsHostMode;
} ncclConfig_t;

/* In the order of the members: C++ before C++20 has no names in initialisers. */
#define NCCL_CONFIG_INITIALIZER                                                                 \
	{                                                                                       \
		sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT, \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
			NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
			NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
			NCCL_CONFIG_UNDEF_INT                                                   \
	}

/* -- Settings of a call -------------------------------------------------- */

/* One option of a vendor, and the next one. */
typedef struct ncclConfigExt {
	struct ncclConfigExt *next;
	struct {
		int vendorId;
		int optionId;
	} key;
	union {
		int i;
		const char *s;
		void *raw;
	} val;
} ncclConfigExt_t;

/* Begins as NCCL_COLLCONFIG_INITIALIZER; the same on all ranks, but for the event. */
typedef struct ncclCollConfig_v23200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	ncclConfigExt_t *ext;
	int minCTAs;
	int maxCTAs;
	int nvlsCTAs;
	int cgaClusterSize;
	const char *algSelection; /* which algorithms the call may use */
	int forceAlgSelection;    /* not 0: an error if none of them can be used */
	int CTAPolicy;
	uint64_t userProfilerTag;
	cudaEvent_t launchCompletionEvent;
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER                                                             \
	{                                                                                       \
		sizeof(ncclCollConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE,                    \
			NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, 1, \
			NCCL_CONFIG_UNDEF_INT, 0, NCCL_CONFIG_UNDEF_PTR                         \
	}

/* -- The library --------------------------------------------------------- */

ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);

/* NVIDIA's header declares the first one only where NCCL_OS_LINUX is defined, the second one
 * never. */
void ncclResetDebugInit(void);
void ncclResetDebugInitInternal(void);

/* -- Communicators ------------------------------------------------------- */

/* The color of a rank that ncclCommSplit() puts nowhere. */
#define NCCL_SPLIT_NOCOLOR -1

/* ncclCommShrink(): the calls of the communicator end first. */
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT   0x01

/* ncclCommRevoke(). */
#define NCCL_REVOKE_DEFAULT 0x00

/* ncclCommSuspend(). */
#define NCCL_SUSPEND_MEM 0x01

/* What ncclCommMemStats() is asked for, in bytes; the first one is 0 or 1: are they suspended? */
typedef enum {
	ncclStatGpuMemSuspend = 0,
	ncclStatGpuMemSuspended = 1,
	ncclStatGpuMemPersist = 2,
	ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

ncclResult_t ncclGetUniqueId(ncclUniqueId *out);
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *out);

ncclResult_t ncclCommInitRank(ncclComm_t *out, int nranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int nranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config);
ncclResult_t ncclCommInitRankScalable(ncclComm_t *out, int nranks, int rank, int nids,
				      ncclUniqueId *ids, ncclConfig_t *config);
ncclResult_t ncclCommInitAll(ncclComm_t *out, int ndevices, const int *devices);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
			   ncclConfig_t *config);
ncclResult_t ncclCommShrink(ncclComm_t comm, int *without, int nwithout, ncclComm_t *out,
			    ncclConfig_t *config, int flags);
ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
			  ncclComm_t *out, ncclConfig_t *config);

ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags);

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *out);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *out);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *out);

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *out);

/* -- Memory -------------------------------------------------------------- */

/* ncclCommWindowRegister(). */
#define NCCL_WIN_DEFAULT         0x00
#define NCCL_WIN_COLL_SYMMETRIC  0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
#define NCCL_WIN_GIN_ONLY        0x04
#define NCCL_WIN_CFT_COUNTED     0x08

/* The alignment that the memory of a window must have. */
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

ncclResult_t ncclMemAlloc(void **out, size_t nbytes);
ncclResult_t ncclMemFree(void *memory);

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t nbytes, void **out);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t nbytes, ncclWindow_t *out,
				    int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **out);

/* -- Operators that programs make ---------------------------------------- */

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *out, void *scalar, ncclDataType_t type,
				      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/* -- Collectives --------------------------------------------------------- */

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
			   int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
		       cudaStream_t stream);
ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
/* `count` is that of one rank, in the calls below. */
ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
			   ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
			       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
			  ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
			ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
			 ncclComm_t comm, cudaStream_t stream);

/* The same calls with settings; NULL: none. */
ncclResult_t ncclAllReduceConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
				 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
				 const ncclCollConfig_t *config);
ncclResult_t ncclBroadcastConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
				 int root, ncclComm_t comm, cudaStream_t stream,
				 const ncclCollConfig_t *config);
ncclResult_t ncclReduceConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
			      ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
			      const ncclCollConfig_t *config);
ncclResult_t ncclAllGatherConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
				 ncclComm_t comm, cudaStream_t stream,
				 const ncclCollConfig_t *config);
ncclResult_t ncclReduceScatterConfig(const void *send, void *recv, size_t count,
				     ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
				     cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclAlltoAllConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
				ncclComm_t comm, cudaStream_t stream,
				const ncclCollConfig_t *config);
ncclResult_t ncclGatherConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
			      int root, ncclComm_t comm, cudaStream_t stream,
			      const ncclCollConfig_t *config);
ncclResult_t ncclScatterConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
			       int root, ncclComm_t comm, cudaStream_t stream,
			       const ncclCollConfig_t *config);

/* -- Between two ranks --------------------------------------------------- */

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
		      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      cudaStream_t stream);

/* `window` is the one of the peer, `offset` is in bytes. */
ncclResult_t ncclPutSignal(const void *send, size_t count, ncclDataType_t type, int peer,
			   ncclWindow_t window, size_t offset, int signal, int context,
			   unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm,
			cudaStream_t stream);

/* Wait for opCnt signals of one peer. */
typedef struct {
	int opCnt;
	int peer;
	int sigIdx;
	int ctx;
} ncclWaitSignalDesc_t;

ncclResult_t ncclWaitSignal(int nsignals, ncclWaitSignalDesc_t *signals, ncclComm_t comm,
			    cudaStream_t stream);

/* -- Groups -------------------------------------------------------------- */

/* Begins as NCCL_SIM_INFO_INITIALIZER. */
typedef struct ncclSimInfo_v22200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                                      \
	{                                                                              \
		sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT \
	}

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *out);

/* -- Encryption ---------------------------------------------------------- */

typedef enum { NCCL_ENCRYPTION_MODE_NONE = 0, NCCL_ENCRYPTION_MODE_PSK = 1 } ncclEncryptionMode_t;

/* Begins as NCCL_ENCRYPTION_CONFIG_INITIALIZER. */
typedef struct ncclEncryptionConfig_v23200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int mode;
	const char *psk;
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER                                         \
	{                                                                          \
		sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, \
			NCCL_ENCRYPTION_MODE_NONE, NCCL_CONFIG_UNDEF_PTR           \
	}

ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config);

/* -- Variables of the environment ---------------------------------------- */

/* Handles, texts and tables belong to the library. */
ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *name);
ncclResult_t ncclParamGetI8(ncclParamHandle_t param, int8_t *out);
ncclResult_t ncclParamGetI16(ncclParamHandle_t param, int16_t *out);
ncclResult_t ncclParamGetI32(ncclParamHandle_t param, int32_t *out);
ncclResult_t ncclParamGetI64(ncclParamHandle_t param, int64_t *out);
ncclResult_t ncclParamGetU8(ncclParamHandle_t param, uint8_t *out);
ncclResult_t ncclParamGetU16(ncclParamHandle_t param, uint16_t *out);
ncclResult_t ncclParamGetU32(ncclParamHandle_t param, uint32_t *out);
ncclResult_t ncclParamGetU64(ncclParamHandle_t param, uint64_t *out);
ncclResult_t ncclParamGetStr(ncclParamHandle_t param, const char **out);
ncclResult_t ncclParamGet(ncclParamHandle_t param, void *out, int nbytes, int *nbytes_out);
ncclResult_t ncclParamGetParameter(const char *name, const char **out, int *length_out);
ncclResult_t ncclParamGetAllParameterKeys(const char ***out, int *n_out);
void ncclParamDumpAll(void);

/* -- The second names ---------------------------------------------------- */

#define NCCL_SECOND_NAME(name) extern __typeof__(name) p##name
NCCL_SECOND_NAME(ncclGetVersion);
NCCL_SECOND_NAME(ncclGetErrorString);
NCCL_SECOND_NAME(ncclGetLastError);
NCCL_SECOND_NAME(ncclResetDebugInit);
NCCL_SECOND_NAME(ncclGetUniqueId);
NCCL_SECOND_NAME(ncclCommGetUniqueId);
NCCL_SECOND_NAME(ncclCommInitRank);
NCCL_SECOND_NAME(ncclCommInitRankConfig);
NCCL_SECOND_NAME(ncclCommInitRankScalable);
NCCL_SECOND_NAME(ncclCommInitAll);
NCCL_SECOND_NAME(ncclCommSplit);
NCCL_SECOND_NAME(ncclCommShrink);
NCCL_SECOND_NAME(ncclCommGrow);
NCCL_SECOND_NAME(ncclCommFinalize);
NCCL_SECOND_NAME(ncclCommDestroy);
NCCL_SECOND_NAME(ncclCommAbort);
NCCL_SECOND_NAME(ncclCommRevoke);
NCCL_SECOND_NAME(ncclCommGetAsyncError);
NCCL_SECOND_NAME(ncclCommCount);
NCCL_SECOND_NAME(ncclCommUserRank);
NCCL_SECOND_NAME(ncclCommCuDevice);
NCCL_SECOND_NAME(ncclCommSuspend);
NCCL_SECOND_NAME(ncclCommResume);
NCCL_SECOND_NAME(ncclCommMemStats);
NCCL_SECOND_NAME(ncclMemAlloc);
NCCL_SECOND_NAME(ncclMemFree);
NCCL_SECOND_NAME(ncclCommRegister);
NCCL_SECOND_NAME(ncclCommDeregister);
NCCL_SECOND_NAME(ncclCommWindowRegister);
NCCL_SECOND_NAME(ncclCommWindowDeregister);
NCCL_SECOND_NAME(ncclWinGetUserPtr);
NCCL_SECOND_NAME(ncclRedOpCreatePreMulSum);
NCCL_SECOND_NAME(ncclRedOpDestroy);
NCCL_SECOND_NAME(ncclAllReduce);
NCCL_SECOND_NAME(ncclBroadcast);
NCCL_SECOND_NAME(ncclBcast);
NCCL_SECOND_NAME(ncclReduce);
NCCL_SECOND_NAME(ncclAllGather);
NCCL_SECOND_NAME(ncclReduceScatter);
NCCL_SECOND_NAME(ncclAlltoAll);
NCCL_SECOND_NAME(ncclGather);
NCCL_SECOND_NAME(ncclScatter);
NCCL_SECOND_NAME(ncclAllReduceConfig);
NCCL_SECOND_NAME(ncclBroadcastConfig);
NCCL_SECOND_NAME(ncclReduceConfig);
NCCL_SECOND_NAME(ncclAllGatherConfig);
NCCL_SECOND_NAME(ncclReduceScatterConfig);
NCCL_SECOND_NAME(ncclAlltoAllConfig);
NCCL_SECOND_NAME(ncclGatherConfig);
NCCL_SECOND_NAME(ncclScatterConfig);
NCCL_SECOND_NAME(ncclSend);
NCCL_SECOND_NAME(ncclRecv);
NCCL_SECOND_NAME(ncclPutSignal);
NCCL_SECOND_NAME(ncclSignal);
NCCL_SECOND_NAME(ncclWaitSignal);
NCCL_SECOND_NAME(ncclGroupStart);
NCCL_SECOND_NAME(ncclGroupEnd);
NCCL_SECOND_NAME(ncclGroupSimulateEnd);
NCCL_SECOND_NAME(ncclSetEncryption);
NCCL_SECOND_NAME(ncclParamBind);
NCCL_SECOND_NAME(ncclParamGetI8);
NCCL_SECOND_NAME(ncclParamGetI16);
NCCL_SECOND_NAME(ncclParamGetI32);
NCCL_SECOND_NAME(ncclParamGetI64);
NCCL_SECOND_NAME(ncclParamGetU8);
NCCL_SECOND_NAME(ncclParamGetU16);
NCCL_SECOND_NAME(ncclParamGetU32);
NCCL_SECOND_NAME(ncclParamGetU64);
NCCL_SECOND_NAME(ncclParamGetStr);
NCCL_SECOND_NAME(ncclParamGet);
NCCL_SECOND_NAME(ncclParamGetParameter);
NCCL_SECOND_NAME(ncclParamGetAllParameterKeys);
NCCL_SECOND_NAME(ncclParamDumpAll);
#undef NCCL_SECOND_NAME

#ifdef __cplusplus
}
#endif

#endif
