/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _NCCL_DEVICE_H_
#define _NCCL_DEVICE_H_

/* What the host calls of the device API of NCCL 2.32.3, byte for byte: teams of ranks, what a
 * communicator can do, and what a program asks for on behalf of its kernels. What kernels
 * themselves call is not here. The include guard is that of NVIDIA's header. */

#include <stdbool.h>

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Teams --------------------------------------------------------------- */

/* nRanks ranks of a communicator, each `stride` after the one before; `rank` is this one. */
struct ncclTeam {
	int nRanks;
	int rank;
	int stride;
};
typedef struct ncclTeam ncclTeam_t;

typedef enum {
	NCCL_CFT_TEAM_FLAT = 0,
	NCCL_CFT_TEAM_HIER_MULTIMEM = 1,
	NCCL_CFT_TEAM_HIER_LSA = 2
} ncclCftTeamMode_t;

ncclTeam_t ncclTeamWorld(ncclComm_t comm);
ncclTeam_t ncclTeamLsa(ncclComm_t comm);
ncclTeam_t ncclTeamRail(ncclComm_t comm);
#ifdef __cplusplus
ncclTeam_t ncclTeamCft(ncclComm_t comm, ncclCftTeamMode_t mode = NCCL_CFT_TEAM_FLAT);
#else
ncclTeam_t ncclTeamCft(ncclComm_t comm, ncclCftTeamMode_t mode);
#endif
ncclTeam_t ncclTeamCftMultimem(ncclComm_t comm);
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);

/* -- What a communicator can do ------------------------------------------ */

typedef enum {
	NCCL_GIN_CONNECTION_NONE = 0,
	NCCL_GIN_CONNECTION_FULL = 1,
	NCCL_GIN_CONNECTION_RAIL = 2,
	NCCL_GIN_CONNECTION_CUSTOM_STRIDE = 3
} ncclGinConnectionType_t;

typedef enum {
	NCCL_GIN_TYPE_NONE = 0,
	NCCL_GIN_TYPE_PROXY = 2,
	NCCL_GIN_TYPE_GDAKI = 3,
	NCCL_GIN_TYPE_GPI = 4,
	NCCL_GIN_TYPE_EFA_GDA = 5,
	NCCL_GIN_MAX_TYPES = 6
} ncclGinType_t;

typedef enum { NCCL_CFT_NONE = 0, NCCL_CFT = 1, NCCL_CFT_MULTIMEM = 2 } ncclCftCap_t;

/* Begins as NCCL_COMM_PROPERTIES_INITIALIZER; `version` decides which members are written. */
typedef struct ncclCommProperties {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int rank;
	int nRanks;
	int cudaDev;
	int nvmlDev;
	bool deviceApiSupport;
	bool multimemSupport;
	ncclGinType_t ginType;
	int nLsaTeams;
	bool hostRmaSupport;
	ncclGinType_t railedGinType;
	uint64_t commHash;
	int ginMinStride;
	ncclGinConnectionType_t ginConnectionType;
	bool ginSupport[64];
	size_t devCommRuntimeVersionSize;
	bool cftSupport;
	bool cftMulticastSupport;
	bool cftCountedSupport;
} ncclCommProperties_t;

/* All members, so that no compiler warns of those that are left out. */
#define NCCL_COMM_PROPERTIES_INITIALIZER                                                      \
	{                                                                                     \
		sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, 0, 0, 0, 0,  \
			false, false, NCCL_GIN_TYPE_NONE, 0, false, NCCL_GIN_TYPE_NONE, 0, 0, \
			NCCL_GIN_CONNECTION_NONE, { false }, 0, false, false, false           \
	}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *out);

/* -- Names of what kernels use ------------------------------------------- */

#define NCCL_GIN_MAX_CONNECTIONS 4

typedef uint32_t ncclDevResourceHandle;
typedef ncclDevResourceHandle ncclDevResourceHandle_t;
typedef uint32_t ncclGinSignal_t;
typedef uint32_t ncclGinCounter_t;
typedef uint32_t ncclCftLeId;
typedef ncclCftLeId ncclCftLeId_t;

struct ncclMultimemHandle {
	void *mcBasePtr;
};
typedef struct ncclMultimemHandle ncclMultimemHandle_t;

struct ncclLsaBarrierHandle {
	ncclDevResourceHandle_t bufHandle;
	int nBarriers;
};
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;

struct ncclGinBarrierHandle {
	ncclGinSignal_t signal0;
	ncclDevResourceHandle_t unused;
};
typedef struct ncclGinBarrierHandle ncclGinBarrierHandle_t;

struct ncclCftBarrierHandle {
	ncclDevResourceHandle_t bufHandle;
	int nBarriers;
};
typedef struct ncclCftBarrierHandle ncclCftBarrierHandle_t;

struct ncclLLA2AHandle {
	ncclDevResourceHandle_t bufHandle;
	uint32_t nSlots;
};
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;

/* No header of NVIDIA for Linux says what these have. */
struct ncclGinOutboxHandle;
struct ncclGinInboxA2AHandle;

/* -- What kernels ask for ------------------------------------------------ */

typedef struct ncclDevResourceRequirements {
	struct ncclDevResourceRequirements *next;
	size_t bufferSize;
	size_t bufferAlign;
	ncclDevResourceHandle_t *outBufferHandle;
	int ginSignalCount;
	int ginCounterCount;
	ncclGinSignal_t *outGinSignalStart;
	ncclGinCounter_t *outGinCounterStart;
} ncclDevResourceRequirements_t;

typedef struct ncclTeamRequirements {
	struct ncclTeamRequirements *next;
	ncclTeam_t team;
	bool multimem;
	ncclMultimemHandle_t *outMultimemHandle;
} ncclTeamRequirements_t;

/* Begins as NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER. */
typedef struct ncclDevCommRequirements {
	size_t size;
	unsigned int magic;
	unsigned int version;
	ncclDevResourceRequirements_t *resourceRequirementsList;
	ncclTeamRequirements_t *teamRequirementsList;
	bool lsaMultimem;
	int barrierCount;
	int lsaBarrierCount;
	int railGinBarrierCount;
	int lsaLLA2ABlockCount;
	int lsaLLA2ASlotCount;
	bool ginForceEnable;
	int ginContextCount;
	int ginSignalCount;
	int ginCounterCount;
	ncclGinConnectionType_t ginConnectionType;
	bool ginExclusiveContexts;
	int ginQueueDepth;
	int ginTrafficClass;
	int worldGinBarrierCount;
	bool ginStrongSignalsRequired;
	bool ginVaSignalsRequired;
	int ginCustomStride;
	ncclGinType_t ginType;
	bool useRuntimeVersion;
	int cftCaps;
	int cftBarrierCount;
} ncclDevCommRequirements_t;

#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER                                                    \
	{                                                                                         \
		sizeof(ncclDevCommRequirements_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NULL, NULL, \
			false, 0, 0, 0, 0, 0, false, 4, 0, 0, NCCL_GIN_CONNECTION_NONE, false, 0, \
			NCCL_CONFIG_UNDEF_INT, 0, true, true, 1, NCCL_GIN_TYPE_NONE, false,       \
			NCCL_CFT_NONE, 0                                                          \
	}

ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nbarriers,
					     ncclLsaBarrierHandle_t *handle_out,
					     ncclDevResourceRequirements_t *out);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nbarriers,
					     ncclGinBarrierHandle_t *handle_out,
					     ncclDevResourceRequirements_t *out);
int ncclLLA2ACalcSlots(int max_elements, int max_nbytes);
ncclResult_t ncclLLA2ACreateRequirement(int nblocks, int nslots, ncclLLA2AHandle_t *handle_out,
					ncclDevResourceRequirements_t *out);
ncclResult_t ncclGinOutboxCreateRequirement(int nblocks, int size_log2,
					    struct ncclGinOutboxHandle *handle_out,
					    ncclDevResourceRequirements_t *out);
ncclResult_t ncclGinInboxA2ACreateRequirement(ncclTeam_t peers, int nblocks, int size_log2,
					      struct ncclGinInboxA2AHandle *handle_out,
					      ncclDevResourceRequirements_t *out);

/* -- A communicator for kernels ------------------------------------------ */

typedef struct ncclResourceWindow_vidmem {
	char *lsaFlatBase;
	uint32_t stride4G;
	uint32_t mcOffset4K;
} ncclResourceWindow_vidmem_t;

typedef struct ncclDevCommWindowTable *ncclDevCommWindowTable_t;

struct ncclDevComm {
	unsigned int magic;
	unsigned int version;
	int rank;
	int nRanks;
	uint32_t nRanks_rcp32;
	int lsaRank;
	int lsaSize;
	uint32_t lsaSize_rcp32;
	ncclDevCommWindowTable_t windowTable;
	ncclWindow_t resourceWindow;
	ncclResourceWindow_vidmem_t resourceWindow_inlined;
	ncclGinBarrierHandle_t hybridDenseGinBarrier;
	ncclMultimemHandle_t lsaMultimem;
	ncclLsaBarrierHandle_t lsaBarrier;
	ncclGinBarrierHandle_t railGinBarrier;
	uint8_t ginConnectionCount;
	uint8_t backendIndex;
	uint8_t ginNetDeviceTypes[NCCL_GIN_MAX_CONNECTIONS];
	void *ginHandles[NCCL_GIN_MAX_CONNECTIONS];
	int ginSignalCount;
	int ginCounterCount;
	uint64_t *ginSignalShadows;
	uint32_t ginContextCount;
	int ginConnectionStride;
	int ginContextStride;
	bool ginStrongLegacySignals;
	uint32_t *abortFlag;
	ncclLsaBarrierHandle_t hybridLsaBarrier;
	ncclGinBarrierHandle_t hybridRailGinBarrier;
	ncclGinBarrierHandle_t worldGinBarrier;
	uint32_t ginConnectionStride_rcp32;
	int cftRank;
	int cftSize;
	int cftMultimemRank;
	int cftMultimemSize;
	uint32_t cftMultimemSize_rcp32;
	ncclCftLeId ucLeId;
	ncclCftLeId mcLeId;
	ncclCftBarrierHandle_t cftBarrier;
	ncclCftBarrierHandle_t cftMultimemBarrier;
};
typedef struct ncclDevComm ncclDevComm_t;

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements,
			       ncclDevComm_t *out);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devcomm);

/* -- Addresses in windows ------------------------------------------------ */

/* `offset` is in bytes. */
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int rank, void **out);
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **out);
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **out);
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset,
					  ncclMultimemHandle_t handle, void **out);
ncclResult_t ncclGetMultimemDeviceLeInfo(ncclWindow_t window, size_t offset, ncclCftLeId *id_out,
					 size_t *offset_out);
ncclResult_t ncclGetCftDeviceLeInfo(ncclWindow_t window, size_t offset, int peer, ncclTeam_t team,
				    ncclCftLeId *id_out, size_t *offset_out);
ncclResult_t ncclGetPeerDeviceLeInfo(ncclWindow_t window, size_t offset, int peer,
				     ncclCftLeId *id_out, size_t *offset_out);

#ifdef __cplusplus
}
#endif

#endif
