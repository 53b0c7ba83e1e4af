/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_NVML_ABI_H
#define TTI_GPU_NVML_ABI_H

/* The part of NVIDIA's management interface that detection uses: functions, layouts and numbers
 * as its public header has them since driver 418. tests/unit/gpu/test_nvml_abi.c compares them
 * with that header where it is installed.
 *
 * The functions come by dlsym(). One that an old driver lacks is NULL here. */

typedef void *tti_nvml_dev;

/* What a function returns. Only numbers that detection acts on have names; nvmlErrorString()
 * has words for all. */
enum {
	TTI_NVML_SUCCESS = 0,
	TTI_NVML_INVALID_ARGUMENT = 2,
	TTI_NVML_NOT_SUPPORTED = 3,
	TTI_NVML_NO_PERMISSION = 4,
	TTI_NVML_DRIVER_NOT_LOADED = 9,
	TTI_NVML_GPU_IS_LOST = 15,
	TTI_NVML_RESET_REQUIRED = 16,
};

struct tti_nvml_pci {
	char legacy_busid[16];
	unsigned domain, bus, device;
	unsigned device_id, subsystem_id; /* device << 16 | vendor */
	char busid[32];                   /* "00000000:3B:00.0"    */
};

struct tti_nvml_field {
	unsigned field;
	unsigned scope; /* of NVLink and C2C: which link */
	long long timestamp_us, latency_us;
	unsigned type; /* enum below: which of `value` */
	int rc;
	union {
		double f64;
		unsigned u32;
		unsigned long ulong;
		unsigned long long u64;
		long long i64;
		int i32;
		unsigned short u16;
	} value;
};
enum {
	TTI_NVML_TYPE_F64,
	TTI_NVML_TYPE_U32,
	TTI_NVML_TYPE_ULONG,
	TTI_NVML_TYPE_U64,
	TTI_NVML_TYPE_I64,
	TTI_NVML_TYPE_I32,
	TTI_NVML_TYPE_U16,
};
enum {
	TTI_NVML_FIELD_NVLINK_STATE = 165,
	TTI_NVML_FIELD_C2C_COUNT = 170,
	TTI_NVML_FIELD_C2C_STATE = 171,
	TTI_NVML_FIELD_C2C_MBPS = 172,
};

struct tti_nvml_memory {
	unsigned long long total, free, used;
};

#define TTI_NVML_UUID_BYTES 16
enum {
	TTI_NVML_FABRIC_NONE,
	TTI_NVML_FABRIC_NOT_STARTED,
	TTI_NVML_FABRIC_IN_PROGRESS,
	TTI_NVML_FABRIC_COMPLETED,
};
struct tti_nvml_fabric1 {
	unsigned char cluster[TTI_NVML_UUID_BYTES];
	int rc;
	unsigned clique;
	unsigned char state;
};
struct tti_nvml_fabric2 {
	unsigned version; /* TTI_NVML_FABRIC2_VERSION */
	unsigned char cluster[TTI_NVML_UUID_BYTES];
	int rc;
	unsigned clique;
	unsigned char state;
	unsigned health;
};
#define TTI_NVML_FABRIC2_VERSION ((unsigned)sizeof(struct tti_nvml_fabric2) | 2u << 24)

enum {
	TTI_NVML_CAP_P2P = 0, /* of a link */
};
enum {
	TTI_NVML_REMOTE_GPU = 0,
	TTI_NVML_REMOTE_CPU = 1,
	TTI_NVML_REMOTE_SWITCH = 2,
	TTI_NVML_REMOTE_UNKNOWN = 255,
};
enum {
	TTI_NVML_P2P_READ,
	TTI_NVML_P2P_WRITE,
};
enum {
	TTI_NVML_P2P_OK,
	TTI_NVML_P2P_CHIPSET,
	TTI_NVML_P2P_GPU,
	TTI_NVML_P2P_IOH,
	TTI_NVML_P2P_REGKEY,
	TTI_NVML_P2P_NOT_SUPPORTED,
	TTI_NVML_P2P_UNKNOWN,
};

/* X(needed, result, field, symbol, arguments): without a needed one the library is of no use. */
#define TTI_NVML_FUNCTION_MAP(X)                                                                   \
	X(true, int, init, nvmlInit_v2, (void))                                                    \
	X(true, int, shutdown, nvmlShutdown, (void))                                               \
	X(true, const char *, error_string, nvmlErrorString, (int rc))                             \
	X(true, int, count, nvmlDeviceGetCount_v2, (unsigned *out))                                \
	X(true, int, handle, nvmlDeviceGetHandleByIndex_v2, (unsigned index, tti_nvml_dev *out))   \
	X(false, int, driver, nvmlSystemGetDriverVersion, (char *buf, unsigned size))              \
	X(false, int, name, nvmlDeviceGetName, (tti_nvml_dev dev, char *buf, unsigned size))       \
	X(false, int, uuid, nvmlDeviceGetUUID, (tti_nvml_dev dev, char *buf, unsigned size))       \
	X(false, int, pci, nvmlDeviceGetPciInfo_v3, (tti_nvml_dev dev, struct tti_nvml_pci * out)) \
	X(false, int, pci2, nvmlDeviceGetPciInfo_v2,                                               \
	  (tti_nvml_dev dev, struct tti_nvml_pci * out))                                           \
	X(false, int, capability, nvmlDeviceGetCudaComputeCapability,                              \
	  (tti_nvml_dev dev, int *major_out, int *minor_out))                                      \
	X(false, int, memory, nvmlDeviceGetMemoryInfo,                                             \
	  (tti_nvml_dev dev, struct tti_nvml_memory * out))                                        \
	X(false, int, gen, nvmlDeviceGetCurrPcieLinkGeneration, (tti_nvml_dev dev, unsigned *out)) \
	X(false, int, width, nvmlDeviceGetCurrPcieLinkWidth, (tti_nvml_dev dev, unsigned *out))    \
	X(false, int, max_gen, nvmlDeviceGetMaxPcieLinkGeneration,                                 \
	  (tti_nvml_dev dev, unsigned *out))                                                       \
	X(false, int, max_width, nvmlDeviceGetMaxPcieLinkWidth, (tti_nvml_dev dev, unsigned *out)) \
	X(false, int, mig, nvmlDeviceGetMigMode,                                                   \
	  (tti_nvml_dev dev, unsigned *now_out, unsigned *pending_out))                            \
	X(false, int, persistence, nvmlDeviceGetPersistenceMode, (tti_nvml_dev dev, int *on_out))  \
	X(false, int, fields, nvmlDeviceGetFieldValues,                                            \
	  (tti_nvml_dev dev, int n, struct tti_nvml_field *fields))                                \
	X(false, int, link_state, nvmlDeviceGetNvLinkState,                                        \
	  (tti_nvml_dev dev, unsigned link, int *active_out))                                      \
	X(false, int, link_version, nvmlDeviceGetNvLinkVersion,                                    \
	  (tti_nvml_dev dev, unsigned link, unsigned *out))                                        \
	X(false, int, link_capability, nvmlDeviceGetNvLinkCapability,                              \
	  (tti_nvml_dev dev, unsigned link, int capability, unsigned *out))                        \
	X(false, int, link_pci, nvmlDeviceGetNvLinkRemotePciInfo_v2,                               \
	  (tti_nvml_dev dev, unsigned link, struct tti_nvml_pci *out))                             \
	X(false, int, link_remote, nvmlDeviceGetNvLinkRemoteDeviceType,                            \
	  (tti_nvml_dev dev, unsigned link, int *out))                                             \
	X(false, int, p2p, nvmlDeviceGetP2PStatus,                                                 \
	  (tti_nvml_dev a, tti_nvml_dev b, int capability, int *out))                              \
	X(false, int, fabric1, nvmlDeviceGetGpuFabricInfo,                                         \
	  (tti_nvml_dev dev, struct tti_nvml_fabric1 * out))                                       \
	X(false, int, fabric2, nvmlDeviceGetGpuFabricInfoV,                                        \
	  (tti_nvml_dev dev, struct tti_nvml_fabric2 * out))

struct tti_nvml_functions {
#define X(needed, result, field, symbol, arguments) result(*field) arguments;
	TTI_NVML_FUNCTION_MAP(X)
#undef X
};

/* A library that answers. */
struct tti_nvml {
	void *library;
	struct tti_nvml_functions call;
	unsigned count;
	char driver[80];
};

#endif
