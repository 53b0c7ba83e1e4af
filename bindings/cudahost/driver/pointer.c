/* SPDX-License-Identifier: BSD-3-Clause */
/* What addresses say of themselves, and hints for memory. */
#include <string.h>

#include "driver/driver.h"
#include "engine/memory.h"

enum { LAST = CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE };

/* The answer to one question, of up to 8 bytes. */
struct answer {
	union {
		void *address;
		CUdeviceptr pointer;
		unsigned long long number;
		size_t nbytes;
		int32_t word;
	};
	size_t size;
};

static struct answer word(int value)
{
	return (struct answer){ .word = value, .size = sizeof(int32_t) };
}

static struct answer address(const void *value)
{
	return (struct answer){ .address = (void *)(uintptr_t)value, .size = sizeof(void *) };
}

static struct answer number(unsigned long long value)
{
	return (struct answer){ .number = value, .size = sizeof(value) };
}

static bool is_shared(const void *at)
{
	struct tti_cuda_piece *piece;
	bool is;

	if (tti_cuda_address_piece(at, &piece))
		return false;
	is = tti_cuda_piece_is_shared(piece);
	(void)tti_cuda_piece_release(piece);
	return is;
}

/* What is true of memory; CUDA writes 4 bytes. False: another question. */
static bool answer_flags(CUpointer_attribute attribute, const struct tti_cuda_range *range,
			 const void *at, struct answer *out)
{
	int access = 0;

	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*out = word(false);
		return true;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*out = word(range->type == TTI_CUDA_MANAGED);
		return true;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*out = word(range->type == TTI_CUDA_DEVICE && !range->is_pool &&
			    tti_cuda_address_allowed(at, range->device, &access));
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*out = word(true);
		return true;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*out = number(is_shared(at) ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
					    : CU_MEM_HANDLE_TYPE_NONE);
		return true;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*out = word(false);
		return true;
	default:
		return false;
	}
}

static int answer_memory(CUpointer_attribute attribute, const struct tti_cuda_range *range,
			 const void *at, struct answer *out)
{
	int access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*out = address(tti_driver_context_of(range->device));
		return TTI_CUDA_OK;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: /* managed memory tells that it is a device's */
		*out = word(range->type == TTI_CUDA_HOST ? CU_MEMORYTYPE_HOST
							 : CU_MEMORYTYPE_DEVICE);
		return TTI_CUDA_OK;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*out = address(at);
		return TTI_CUDA_OK;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (range->type == TTI_CUDA_DEVICE)
			return tti_cuda_fail(TTI_CUDA_EINVAL,
					     "%p is memory of a device, which has no host address",
					     at);
		*out = address(at);
		return TTI_CUDA_OK;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*out = number(range->id);
		return TTI_CUDA_OK;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*out = word(range->device);
		return TTI_CUDA_OK;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*out = address(range->base);
		return TTI_CUDA_OK;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*out = number(range->nbytes);
		return TTI_CUDA_OK;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		if (tti_cuda_address_allowed(at, tti_cuda_device_current(), &access))
			access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		*out = word(access);
		return TTI_CUDA_OK;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*out = address(range->pool);
		return TTI_CUDA_OK;
	default:
		return tti_cuda_fail(TTI_CUDA_EINVAL, "attribute %d of an address: there are 1..21",
				     (int)attribute);
	}
}

static int ask(CUpointer_attribute attribute, CUdeviceptr pointer, struct answer *out)
{
	const void *at = tti_driver_address(pointer);
	struct tti_cuda_range range;
	const bool is_known = tti_cuda_memory_find(at, &range);

	if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
		return tti_cuda_fail(
			TTI_CUDA_ENOTSUPPORTED,
			"tokens of GPUDirect RDMA: no network reads memory of a device");
	if (!is_known)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "attribute %d: %p is no memory that CUDA knows",
				     (int)attribute, at);
	if (answer_flags(attribute, &range, at, out))
		return TTI_CUDA_OK;
	return answer_memory(attribute, &range, at, out);
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct answer answer = { .number = 0 };
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = ask(attribute, pointer, &answer);
	if (!bad)
		memcpy(out, &answer, answer.size);
	return tti_driver_result(bad);
}

/* What a question is answered with that an address has no answer to. */
static struct answer nothing(CUpointer_attribute attribute)
{
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return word(-2);
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return number(0);
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: /* CUDA leaves it as it is */
		return (struct answer){ .size = 0 };
	default:
		return word(0);
	}
}

/* Into *out. */
static int answer_or_nothing(CUpointer_attribute attribute, CUdeviceptr pointer, void *out)
{
	struct answer answer = { .number = 0 };
	int bad = tti_driver_need(out, "cuPointerGetAttributes");

	if (!bad && ((int)attribute < 1 || (int)attribute > LAST))
		bad = tti_cuda_fail(TTI_CUDA_EINVAL, "attribute %d of an address: there are 1..%d",
				    (int)attribute, LAST);
	if (bad)
		return bad;
	if (ask(attribute, pointer, &answer))
		answer = nothing(attribute);
	memcpy(out, &answer, answer.size);
	return TTI_CUDA_OK;
}

/* Unlike cuPointerGetAttribute(), this is no error where the address is not CUDA's. */
CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *attributes, void **out,
				CUdeviceptr pointer)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(attributes, __func__);
	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad && !n)
		bad = tti_cuda_fail(TTI_CUDA_EINVAL, "cuPointerGetAttributes: no attributes");
	for (unsigned i = 0; !bad && i < n; i++)
		bad = answer_or_nothing(attributes[i], pointer, out[i]);
	return tti_driver_result(bad);
}

/* All copies are done in the order of streams, which is what this asks for. */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
			       CUdeviceptr pointer)
{
	struct tti_cuda_range range;
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(value, __func__);
	if (bad)
		return tti_driver_result(bad);
	if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuPointerSetAttribute: attribute %d cannot be set",
				       (int)attribute);
	if (!tti_cuda_memory_find(tti_driver_address(pointer), &range))
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuPointerSetAttribute: %p is no memory that CUDA knows",
				       tti_driver_address(pointer));
	return CUDA_SUCCESS;
}

/* -- Hints -------------------------------------------------------------------------------- */

/* Managed memory is memory of the host that devices use where it is, so that nothing ever moves:
 * hints are checked, and there is nothing to do. */

static int check_managed(CUdeviceptr pointer, size_t nbytes, const char *what)
{
	const void *at = tti_driver_address(pointer);
	struct tti_cuda_range range;
	const int bad = tti_driver_begin();

	if (bad)
		return bad;
	if (!tti_cuda_memory_find(at, &range) || range.type != TTI_CUDA_MANAGED)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: %p is no managed memory", what, at);
	if (!nbytes)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: 0 bytes", what);
	return tti_cuda_memory_check(at, nbytes);
}

/* -1 is the host. */
static int check_place(int device, const char *what)
{
	if (device >= -1 && device < tti_cuda_device_count())
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EDEVICE, "%s: device %d", what, device);
}

static int place_of(CUmemLocation location)
{
	return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
}

static int prefetch(CUdeviceptr pointer, size_t nbytes, int device, CUstream stream)
{
	struct tti_cuda_stream *in;
	int bad = check_managed(pointer, nbytes, "cuMemPrefetchAsync");

	if (!bad)
		bad = check_place(device, "cuMemPrefetchAsync");
	return bad ? bad : tti_driver_stream(stream, &in);
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t nbytes, CUdevice device, CUstream stream)
{
	return tti_driver_result(prefetch(pointer, nbytes, device, stream));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t nbytes, CUmemLocation location,
			       unsigned flags, CUstream stream)
{
	if (flags)
		return tti_driver_fail(TTI_CUDA_EINVAL, "cuMemPrefetchAsync: flags %u, not 0",
				       flags);
	return tti_driver_result(prefetch(pointer, nbytes, place_of(location), stream));
}

static int advise(CUdeviceptr pointer, size_t nbytes, CUmem_advise advice, int device)
{
	const int bad = check_managed(pointer, nbytes, "cuMemAdvise");

	if (bad)
		return bad;
	if ((int)advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "cuMemAdvise: advice %d of 1..6",
				     (int)advice);
	return check_place(device, "cuMemAdvise") ? TTI_CUDA_EINVAL : TTI_CUDA_OK;
}

CUresult cuMemAdvise(CUdeviceptr pointer, size_t nbytes, CUmem_advise advice, CUdevice device)
{
	return tti_driver_result(advise(pointer, nbytes, advice, device));
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t nbytes, CUmem_advise advice,
			CUmemLocation location)
{
	return tti_driver_result(advise(pointer, nbytes, advice, place_of(location)));
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t nbytes, unsigned flags)
{
	struct tti_cuda_stream *in;
	int bad = check_managed(pointer, nbytes ? nbytes : 1, __func__);

	if (!bad)
		bad = tti_driver_stream(stream, &in);
	if (bad || flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
	    flags == CU_MEM_ATTACH_SINGLE)
		return tti_driver_result(bad);
	return tti_driver_fail(TTI_CUDA_EINVAL, "cuStreamAttachMemAsync: flags %u: 1, 2 or 4",
			       flags);
}
