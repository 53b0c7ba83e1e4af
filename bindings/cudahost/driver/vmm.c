/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and addresses apart. The handle of memory is the engine's piece. */
#include <string.h>

#include "driver/driver.h"
#include "engine/memory.h"

static struct tti_cuda_piece *piece_of(CUmemGenericAllocationHandle handle)
{
	return (struct tti_cuda_piece *)(uintptr_t)handle;
}

static CUmemGenericAllocationHandle handle_of(struct tti_cuda_piece *piece)
{
	return (CUmemGenericAllocationHandle)(uintptr_t)piece;
}

static int need_vmm(const char *what)
{
	if (tti_cuda_device_has_vmm())
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
			     "%s: there is no memory apart from addresses: TUTTI_CUDAHOST_VMM is 0",
			     what);
}

static int begin(const void *address, unsigned long long flags, const char *what)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = need_vmm(what);
	if (!bad)
		bad = tti_driver_need(address, what);
	if (!bad && flags)
		bad = tti_cuda_fail(TTI_CUDA_EINVAL, "%s: flags 0x%llx, not 0", what, flags);
	return bad;
}

static int check_handle_types(CUmemAllocationHandleType types, const char *what)
{
	if (!((unsigned)types & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return TTI_CUDA_OK;
	return tti_cuda_fail(
		TTI_CUDA_ENOTSUPPORTED,
		"%s: handles of type 0x%x: there are file descriptors (1)%s", what, (unsigned)types,
		(unsigned)types & CU_MEM_HANDLE_TYPE_FABRIC ? ", and no fabric (8)" : "");
}

/* Memory of the host is asked for like that of a device, which it is here. */
static int check_location(const CUmemLocation *location, const char *what)
{
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return tti_driver_begin_device(location->id);
	return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
			     "%s: memory at a location of type %d: there are devices (1)", what,
			     (int)location->type);
}

static int check_prop(const CUmemAllocationProp *prop, const char *what)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = need_vmm(what);
	if (!bad)
		bad = tti_driver_need(prop, what);
	if (bad)
		return bad;
	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: memory of type %d: there is 1 (pinned)",
				     what, (int)prop->type);
	bad = check_location(&prop->location, what);
	return bad ? bad : check_handle_types(prop->requestedHandleTypes, what);
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	int bad = tti_driver_need(out, __func__);

	if (!bad)
		bad = check_prop(prop, __func__);
	if (bad)
		return tti_driver_result(bad);
	if ((unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuMemGetAllocationGranularity: option %d of 0, 1",
				       (int)option);
	*out = TTI_CUDA_GRANULARITY;
	return CUDA_SUCCESS;
}

/* -- Memory -------------------------------------------------------------------------------- */

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t nbytes,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct tti_cuda_piece *piece;
	int bad = begin(out, flags, __func__);

	if (!bad)
		bad = check_prop(prop, __func__);
	if (!bad)
		bad = tti_cuda_piece_create(nbytes, prop->location.id, &piece);
	if (bad)
		return tti_driver_result(bad);
	if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
		tti_cuda_piece_share(piece);
	*out = handle_of(piece);
	return tti_driver_result(bad);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	const int bad = tti_driver_begin();

	return tti_driver_result(bad ? bad : tti_cuda_piece_release(piece_of(handle)));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
	struct tti_cuda_piece *piece;
	int bad = begin(out, 0, __func__);

	if (!bad)
		bad = tti_cuda_address_piece(address, &piece);
	if (!bad)
		*out = handle_of(piece);
	return tti_driver_result(bad);
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	int fd, bad = begin(out, flags, __func__);

	if (!bad)
		bad = check_handle_types(type, __func__);
	if (!bad && type == CU_MEM_HANDLE_TYPE_NONE)
		bad = tti_cuda_fail(TTI_CUDA_EINVAL, "cuMemExportToShareableHandle: type 0");
	if (!bad && !tti_cuda_piece_is_shared(piece_of(handle)))
		bad = tti_cuda_fail(TTI_CUDA_EINVAL,
				    "cuMemExportToShareableHandle: 0x%llx is no handle, or "
				    "cuMemCreate() was not asked for handles of other processes",
				    handle);
	if (!bad)
		bad = tti_cuda_piece_export(piece_of(handle), &fd);
	if (!bad)
		memcpy(out, &fd, sizeof(fd));
	return tti_driver_result(bad);
}

/* The file descriptor is the "address" of the handle. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *handle,
					CUmemAllocationHandleType type)
{
	struct tti_cuda_piece *piece;
	int bad = begin(out, 0, __func__);

	if (!bad)
		bad = check_handle_types(type, __func__);
	if (!bad && type == CU_MEM_HANDLE_TYPE_NONE)
		bad = tti_cuda_fail(TTI_CUDA_EINVAL, "cuMemImportFromShareableHandle: type 0");
	if (bad)
		return tti_driver_result(bad);
	bad = tti_cuda_piece_import((int)(intptr_t)handle, &piece);
	if (!bad)
		*out = handle_of(piece);
	/* CUDA has no better error for a file descriptor that is none of memory. */
	return tti_driver_result(bad == TTI_CUDA_EINVAL ? TTI_CUDA_ESYS : bad);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
						CUmemGenericAllocationHandle handle)
{
	const int bad = begin(out, 0, __func__);

	if (bad)
		return tti_driver_result(bad);
	const int device = tti_cuda_piece_device(piece_of(handle));

	if (device < 0)
		return tti_driver_fail(
			TTI_CUDA_EINVAL,
			"cuMemGetAllocationPropertiesFromHandle: 0x%llx is no handle", handle);
	*out = (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = tti_cuda_piece_is_shared(piece_of(handle))
						? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						: CU_MEM_HANDLE_TYPE_NONE,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, device },
	};
	return CUDA_SUCCESS;
}

/* -- Addresses ----------------------------------------------------------------------------- */

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t nbytes, size_t alignment, CUdeviceptr hint,
			     unsigned long long flags)
{
	void *address;
	int bad = begin(out, flags, __func__);

	if (!bad)
		bad = tti_cuda_address_reserve(nbytes, alignment, tti_driver_address(hint),
					       &address);
	if (!bad)
		*out = tti_driver_pointer(address);
	return tti_driver_result(bad);
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t nbytes)
{
	const int bad = tti_driver_begin();

	return tti_driver_result(bad ? bad
				     : tti_cuda_address_free(tti_driver_address(pointer), nbytes));
}

CUresult cuMemMap(CUdeviceptr pointer, size_t nbytes, size_t offset,
		  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	const size_t all = tti_cuda_piece_bytes(piece_of(handle));
	void *address = tti_driver_address(pointer);
	int bad = begin(address, flags, __func__);

	/* CUDA maps no part of the memory. */
	if (!bad && all && nbytes && (offset || nbytes != all))
		bad = tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				    "cuMemMap: %zu bytes at offset %zu of memory of %zu: it is "
				    "mapped as a whole",
				    nbytes, offset, all);
	return tti_driver_result(
		bad ? bad : tti_cuda_address_map(address, nbytes, offset, piece_of(handle)));
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t nbytes)
{
	const int bad = tti_driver_begin();

	return tti_driver_result(bad ? bad
				     : tti_cuda_address_unmap(tti_driver_address(pointer), nbytes));
}

/* All of them are good, or nothing is set. */
static int check_wishes(const CUmemAccessDesc *wishes, size_t nwishes)
{
	int bad = nwishes ? TTI_CUDA_OK
			  : tti_cuda_fail(TTI_CUDA_EINVAL, "cuMemSetAccess: for 0 devices");

	for (size_t i = 0; !bad && i < nwishes; i++) {
		bad = check_location(&wishes[i].location, "cuMemSetAccess");
		if (bad == TTI_CUDA_EDEVICE)
			bad = TTI_CUDA_EINVAL;
		if (!bad &&
		    (unsigned)wishes[i].flags & ~(unsigned)CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			bad = tti_cuda_fail(TTI_CUDA_EINVAL,
					    "cuMemSetAccess: access 0x%x of 0, 1, 3",
					    (unsigned)wishes[i].flags);
	}
	return bad;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t nbytes, const CUmemAccessDesc *wishes,
			size_t nwishes)
{
	int bad = begin(wishes, 0, __func__);

	if (!bad)
		bad = check_wishes(wishes, nwishes);
	for (size_t i = 0; !bad && i < nwishes; i++)
		bad = tti_cuda_address_allow(tti_driver_address(pointer), nbytes,
					     (int)wishes[i].flags,
					     (uint64_t)1 << wishes[i].location.id);
	return tti_driver_result(bad);
}

CUresult cuMemGetAccess(unsigned long long *out, const CUmemLocation *location, CUdeviceptr pointer)
{
	int access, bad = begin(out, 0, __func__);

	if (!bad)
		bad = tti_driver_need(location, __func__);
	if (!bad)
		bad = check_location(location, __func__);
	if (!bad)
		bad = tti_cuda_address_allowed(tti_driver_address(pointer), location->id, &access);
	if (!bad)
		*out = (unsigned long long)access;
	return tti_driver_result(bad);
}
