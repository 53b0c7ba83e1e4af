/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of two and three dimensions. */
#include <string.h>

#include "driver/driver.h"
#include "engine/memory.h"

enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };

/* One side of a copy. */
struct side {
	size_t x, y, z;
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	size_t pitch, height;
};

static int read_side(const struct side *side, const CUDA_MEMCPY3D *copy, const char *which,
		     struct tti_cuda_place *out)
{
	const size_t width = side->x + copy->WidthInBytes;
	char *base;

	if (side->type < CU_MEMORYTYPE_HOST || side->type > CU_MEMORYTYPE_UNIFIED)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "a copy, the %s: memory type %d of 1..4",
				     which, (int)side->type);
	if (side->type == CU_MEMORYTYPE_ARRAY)
		return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				     "a copy, the %s: arrays need a GPU; memory in rows does not",
				     which);
	base = side->type == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)side->host
						: tti_driver_address(side->device);
	out->pitch = side->pitch ? side->pitch : width;
	out->rows = side->height ? side->height : side->y + copy->Height;
	if (!base || (out->pitch < width && copy->Height > 1))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "a copy, the %s: %p, rows of %zu bytes of which %zu are meant",
				     which, (void *)base, out->pitch, width);
	out->address = base + (side->z * out->rows + side->y) * out->pitch + side->x;
	return TTI_CUDA_OK;
}

static int kind_of(CUmemorytype to, CUmemorytype from)
{
	if (to == CU_MEMORYTYPE_UNIFIED || from == CU_MEMORYTYPE_UNIFIED)
		return BY_ADDRESS;
	if (to == CU_MEMORYTYPE_HOST)
		return from == CU_MEMORYTYPE_HOST ? HOST_TO_HOST : DEVICE_TO_HOST;
	return from == CU_MEMORYTYPE_HOST ? HOST_TO_DEVICE : DEVICE_TO_DEVICE;
}

int tti_driver_box(const CUDA_MEMCPY3D *copy, struct tti_cuda_copy *out)
{
	int bad = tti_driver_need(copy, "a copy of rows");

	if (bad)
		return bad;
	const struct side from = { copy->srcXInBytes,   copy->srcY,     copy->srcZ,
				   copy->srcMemoryType, copy->srcHost,  copy->srcDevice,
				   copy->srcPitch,      copy->srcHeight };
	const struct side to = { copy->dstXInBytes,   copy->dstY,     copy->dstZ,
				 copy->dstMemoryType, copy->dstHost,  copy->dstDevice,
				 copy->dstPitch,      copy->dstHeight };

	if (copy->srcLOD || copy->dstLOD)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "a copy of level %zu to level %zu: both are 0", copy->srcLOD,
				     copy->dstLOD);
	*out = (struct tti_cuda_copy){ .width = copy->WidthInBytes,
				       .height = copy->Height,
				       .depth = copy->Depth,
				       .kind = kind_of(copy->dstMemoryType, copy->srcMemoryType) };
	bad = read_side(&from, copy, "source", &out->from);
	return bad ? bad : read_side(&to, copy, "target", &out->to);
}

static CUmemorytype type_of(const void *address)
{
	struct tti_cuda_range range;

	if (!tti_cuda_memory_find(address, &range) || range.type == TTI_CUDA_HOST)
		return CU_MEMORYTYPE_HOST;
	return range.type == TTI_CUDA_MANAGED ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE;
}

void tti_driver_unbox(const struct tti_cuda_copy *copy, CUDA_MEMCPY3D *out)
{
	*out = (CUDA_MEMCPY3D){
		.srcMemoryType = type_of(copy->from.address),
		.srcPitch = copy->from.pitch,
		.srcHeight = copy->from.rows,
		.dstMemoryType = type_of(copy->to.address),
		.dstPitch = copy->to.pitch,
		.dstHeight = copy->to.rows,
		.WidthInBytes = copy->width,
		.Height = copy->height,
		.Depth = copy->depth,
	};
	if (out->srcMemoryType == CU_MEMORYTYPE_HOST)
		out->srcHost = copy->from.address;
	else
		out->srcDevice = tti_driver_pointer(copy->from.address);
	if (out->dstMemoryType == CU_MEMORYTYPE_HOST)
		out->dstHost = copy->to.address;
	else
		out->dstDevice = tti_driver_pointer(copy->to.address);
}

/* -- The functions ------------------------------------------------------------------------- */

static CUresult now(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	struct tti_cuda_copy box;
	struct tti_cuda_stream *in;
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_box(copy, &box);
	if (!bad)
		bad = tti_driver_stream(stream, &in);
	return tti_driver_result(bad ? bad : tti_cuda_copy_wait(&box, in));
}

static CUresult later(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	struct tti_cuda_copy box;
	struct tti_cuda_stream *in;
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_box(copy, &box);
	if (!bad)
		bad = tti_driver_stream(stream, &in);
	return tti_driver_result(bad ? bad : tti_cuda_copy_queue(&box, in));
}

/* A copy of one plane; NULL stays NULL. */
static const CUDA_MEMCPY3D *plane(const CUDA_MEMCPY2D *copy, CUDA_MEMCPY3D *out)
{
	if (!copy)
		return NULL;
	*out = (CUDA_MEMCPY3D){
		.srcXInBytes = copy->srcXInBytes,
		.srcY = copy->srcY,
		.srcMemoryType = copy->srcMemoryType,
		.srcHost = copy->srcHost,
		.srcDevice = copy->srcDevice,
		.srcPitch = copy->srcPitch,
		.dstXInBytes = copy->dstXInBytes,
		.dstY = copy->dstY,
		.dstMemoryType = copy->dstMemoryType,
		.dstHost = copy->dstHost,
		.dstDevice = copy->dstDevice,
		.dstPitch = copy->dstPitch,
		.WidthInBytes = copy->WidthInBytes,
		.Height = copy->Height,
		.Depth = 1,
	};
	return out;
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
	CUDA_MEMCPY3D box;

	return now(plane(copy, &box), CU_STREAM_LEGACY);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *copy)
{
	CUDA_MEMCPY3D box;

	return now(plane(copy, &box), CU_STREAM_PER_THREAD);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
	return cuMemcpy2D_v2(copy);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *copy)
{
	return cuMemcpy2D_v2_ptds(copy);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	CUDA_MEMCPY3D box;

	return later(plane(copy, &box), stream);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
	return now(copy, CU_STREAM_LEGACY);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *copy)
{
	return now(copy, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return later(copy, stream);
}

/* -- From one context to another ----------------------------------------------------------- */

static int between(const CUDA_MEMCPY3D_PEER *copy, CUDA_MEMCPY3D *out)
{
	int device, bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(copy, "cuMemcpy3DPeer");
	if (!bad)
		bad = tti_driver_device_of(copy->srcContext, &device);
	if (!bad)
		bad = tti_driver_device_of(copy->dstContext, &device);
	if (bad)
		return bad;
	_Static_assert(sizeof(*copy) == sizeof(*out) && offsetof(CUDA_MEMCPY3D_PEER, Depth) ==
								offsetof(CUDA_MEMCPY3D, Depth),
		       "they differ in what is reserved");
	memcpy(out, copy, sizeof(*out));
	return TTI_CUDA_OK;
}

static CUresult peer_now(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	CUDA_MEMCPY3D box;
	const int bad = between(copy, &box);

	return bad ? tti_driver_result(bad) : now(&box, stream);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy)
{
	return peer_now(copy, CU_STREAM_LEGACY);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *copy)
{
	return peer_now(copy, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	CUDA_MEMCPY3D box;
	const int bad = between(copy, &box);

	return bad ? tti_driver_result(bad) : later(&box, stream);
}
