/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of the CUDA runtime, as programs that were compiled for CUDA 12 and 13 lay them out:
 * fields, sizes and numbers are the interface of NVIDIA's library, the names are Tutti's own. No
 * toolkit is needed to build with them; tests/abi/test_cuda.c compares them with one.
 *
 * Numbers of errors are in runtime/errors.def, fields of the properties of a device in
 * runtime/properties.def. */
#ifndef TUTTI_CUDAHOST_CUDA_ABI_H
#define TUTTI_CUDAHOST_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Handles. Programs see pointers to types that they do not know. */
typedef struct tti_cuda_stream *tti_cu_stream;
typedef struct tti_cuda_event *tti_cu_event;
typedef struct tti_cuda_graph *tti_cu_graph;
typedef struct tti_cuda_node *tti_cu_node;
typedef struct tti_cuda_exec *tti_cu_exec;
typedef struct tti_cuda_pool *tti_cu_pool;
typedef struct tti_cudart_kernel *tti_cu_kernel;
typedef struct tti_cuda_object *tti_cu_object;

typedef void (*tti_cu_host_fn)(void *arg);
typedef void (*tti_cu_callback)(tti_cu_stream stream, int status, void *arg);

struct tti_cu_dim3 {
	unsigned x, y, z;
};

struct tti_cu_channel {
	int x, y, z, w; /* bits */
	int format;
};

struct tti_cu_uuid {
	char bytes[16];
};

/* Handles that other processes get: of memory, of events. */
struct tti_cu_ipc_handle {
	uint8_t bytes[64];
};

/* -- Memory ------------------------------------------------------------------------------- */

enum {
	TTI_CU_HOST_TO_HOST = 0,
	TTI_CU_HOST_TO_DEVICE = 1,
	TTI_CU_DEVICE_TO_HOST = 2,
	TTI_CU_DEVICE_TO_DEVICE = 3,
	TTI_CU_BY_ADDRESS = 4,
};

struct tti_cu_pointer_attributes {
	int type; /* enum tti_cuda_memory_type */
	int device;
	void *device_pointer;
	void *host_pointer;
	long reserved[8]; /* of CUDA 13: programs of CUDA 12 have 24 bytes */
};
#define TTI_CU_POINTER_ATTRIBUTES_12 24u

struct tti_cu_pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};

struct tti_cu_extent {
	size_t width, height, depth;
};

struct tti_cu_pos {
	size_t x, y, z;
};

struct tti_cu_copy3d {
	void *from_array;
	struct tti_cu_pos from_pos;
	struct tti_cu_pitched from;
	void *to_array;
	struct tti_cu_pos to_pos;
	struct tti_cu_pitched to;
	struct tti_cu_extent extent;
	int kind;
};

struct tti_cu_copy3d_peer {
	void *from_array;
	struct tti_cu_pos from_pos;
	struct tti_cu_pitched from;
	int from_device;
	void *to_array;
	struct tti_cu_pos to_pos;
	struct tti_cu_pitched to;
	int to_device;
	struct tti_cu_extent extent;
};

struct tti_cu_location {
	int type; /* TTI_CU_AT_* */
	int id;
};
enum {
	TTI_CU_AT_NONE = 0,
	TTI_CU_AT_DEVICE = 1,
	TTI_CU_AT_HOST = 2,
	TTI_CU_AT_NUMA = 3,
	TTI_CU_AT_NUMA_CURRENT = 4,
};

struct tti_cu_copy_attributes {
	int from_order; /* TTI_CU_ORDER_* */
	struct tti_cu_location from_hint, to_hint;
	unsigned flags;
};
enum {
	TTI_CU_ORDER_STREAM = 1, /* the source is read in the order of the stream */
	TTI_CU_ORDER_CALL = 2,   /* the source is read before the call returns */
	TTI_CU_ORDER_ANY = 3,
};

struct tti_cu_operand {
	int type; /* 1: an address, 2: an array */
	union {
		struct {
			void *ptr;
			size_t row_length, layer_height; /* 0: those of the extent */
			struct tti_cu_location hint;
		} linear;
		struct {
			void *array;
			struct tti_cu_pos offset;
		} array;
	} op;
};

struct tti_cu_copy3d_op {
	struct tti_cu_operand from, to;
	struct tti_cu_extent extent;
	int from_order;
	unsigned flags;
};

/* -- Pools -------------------------------------------------------------------------------- */

struct tti_cu_pool_props {
	int alloc_type; /* 1: pinned, 2: managed */
	int handle_types;
	struct tti_cu_location location;
	void *security;
	size_t most_bytes;
	unsigned short usage;
	unsigned char reserved[54];
};

struct tti_cu_access {
	struct tti_cu_location location;
	int flags; /* 0 none, 1 read, 3 both */
};

/* -- Graphs ------------------------------------------------------------------------------- */

struct tti_cu_host_node {
	tti_cu_host_fn fn;
	void *arg;
};

struct tti_cu_memset_node {
	void *to;
	size_t pitch;
	unsigned value;
	unsigned element_bytes; /* 1, 2 or 4 */
	size_t width, height;   /* the width in elements */
};

struct tti_cu_memcpy_node {
	int flags;
	int reserved[3];
	struct tti_cu_copy3d copy;
};

struct tti_cu_kernel_node {
	void *function;
	struct tti_cu_dim3 grid, block;
	unsigned shared_bytes;
	void **args;
	void **extra;
};

struct tti_cu_alloc_node {
	struct tti_cu_pool_props props;
	const struct tti_cu_access *access;
	size_t naccess;
	size_t nbytes;
	void *address; /* set by the call */
};

struct tti_cu_node_params {
	int type; /* enum tti_cuda_node_kind */
	int reserved0[3];
	union {
		long long reserved1[29];
		struct tti_cu_kernel_node kernel;
		struct tti_cu_memcpy_node copy;
		struct tti_cu_memset_node set;
		struct tti_cu_host_node host;
		struct {
			tti_cu_graph graph;
			int ownership; /* of CUDA 13; 1: moved */
		} child;
		struct {
			tti_cu_event event;
		} event;
		struct tti_cu_alloc_node alloc;
		struct {
			void *address;
		} free;
	} of;
	long long reserved2;
};

struct tti_cu_edge {
	unsigned char from_port, to_port, type;
	unsigned char reserved[5];
};

struct tti_cu_instantiate_params {
	unsigned long long flags;
	tti_cu_stream upload;
	tti_cu_node error_node;
	int result; /* 0: success, 1: error, 2: the structure */
};

struct tti_cu_update_result {
	int result; /* TTI_CU_UPDATE_* */
	tti_cu_node error_node, error_from;
};
enum {
	TTI_CU_UPDATE_DONE = 0,
	TTI_CU_UPDATE_ERROR = 1,
	TTI_CU_UPDATE_TOPOLOGY = 2,
};

/* -- Kernels ------------------------------------------------------------------------------ */

union tti_cu_launch_value {
	char pad[64];
	int number; /* cooperative, priority, policies */
	struct {
		unsigned x, y, z;
	} cluster;
	struct {
		tti_cu_event event;
		int flags;
	} completion;
};

struct tti_cu_launch_attribute {
	int id; /* TTI_CU_LAUNCH_* */
	char pad[4];
	union tti_cu_launch_value value;
};
enum {
	TTI_CU_LAUNCH_POLICY_WINDOW = 1,
	TTI_CU_LAUNCH_COOPERATIVE = 2,
	TTI_CU_LAUNCH_SYNC_POLICY = 3,
	TTI_CU_LAUNCH_CLUSTER = 4,
	TTI_CU_LAUNCH_EVENT = 7,
	TTI_CU_LAUNCH_PRIORITY = 8,
	TTI_CU_LAUNCH_DOMAIN_MAP = 9,
	TTI_CU_LAUNCH_DOMAIN = 10,
	TTI_CU_LAUNCH_COMPLETION = 12,
};

struct tti_cu_launch_config {
	struct tti_cu_dim3 grid, block;
	size_t shared_bytes;
	tti_cu_stream stream;
	struct tti_cu_launch_attribute *attributes;
	unsigned nattributes;
};

struct tti_cu_function_attributes {
	size_t shared_bytes, const_bytes, local_bytes;
	int threads_most;
	int nregisters;
	int ptx_version, binary_version;
	int cache_mode;
	int dynamic_shared_most;
	int carveout;
	int cluster_must_be_set, cluster_width, cluster_height, cluster_depth;
	int cluster_policy, cluster_nonportable;
	int reserved[16];
};

#endif
