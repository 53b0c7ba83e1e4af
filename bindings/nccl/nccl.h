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

/* Of the same size as ncclRedOp_t. */
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

/* What a field has that the program has not set. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT      -1.0f

/* What `magic` has in all structs with that member but ncclSimInfo_t. */
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

/* nvlsHostMode: 0, or what is to be disabled. */
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

#ifdef __cplusplus
}
#endif

#endif
