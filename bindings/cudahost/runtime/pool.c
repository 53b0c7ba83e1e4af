/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of memory in the order of streams. */
#include <string.h>

#include "runtime/runtime.h"

int tti_cudaMallocAsync(bool per_thread, void **out, size_t nbytes, tti_cu_stream handle)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	if (!stream)
		return error;
	if (!out)
		return tti_cudart_null("cudaMallocAsync", "place for the address");
	return tti_cuda_pool_alloc(tti_cuda_pool_current(tti_cuda_stream_device(stream)), nbytes,
				   stream, out);
}

int tti_cudaMallocFromPoolAsync(bool per_thread, void **out, size_t nbytes, tti_cu_pool pool,
				tti_cu_stream handle)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	if (!stream)
		return error;
	if (!out || !pool)
		return tti_cudart_null("cudaMallocFromPoolAsync",
				       out ? "pool" : "place for the address");
	return tti_cuda_pool_alloc(pool, nbytes, stream, out);
}

int tti_cudaFreeAsync(bool per_thread, void *address, tti_cu_stream handle)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	if (!stream || !address)
		return error;
	return tti_cuda_pool_free(address, stream);
}

int tti_cudaMemPoolCreate(tti_cu_pool *out, const struct tti_cu_pool_props *props)
{
	int error;

	if (!out || !props)
		return tti_cudart_null("cudaMemPoolCreate",
				       out ? "properties" : "place for the pool");
	if (props->alloc_type < 1 || props->alloc_type > 2 ||
	    props->location.type < TTI_CU_AT_DEVICE || props->handle_types & ~15)
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"cudaMemPoolCreate(): allocation type %d at a location of type "
			"%d, handle types %#x: some are not there",
			props->alloc_type, props->location.type, (unsigned)props->handle_types);
	if (props->alloc_type != 1 || props->location.type != TTI_CU_AT_DEVICE)
		return tti_cuda_fail(
			TTI_CUDA_ENOTSUPPORTED,
			"cudaMemPoolCreate(): allocation type %d at a location of type "
			"%d: pass cudaMemAllocationTypePinned of a device",
			props->alloc_type, props->location.type);
	if (props->handle_types)
		return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				     "cudaMemPoolCreate(): handle types %#x: pools are not shared, "
				     "use cudaIpcGetMemHandle() of memory of cudaMalloc()",
				     (unsigned)props->handle_types);
	error = tti_cudart_check_device("cudaMemPoolCreate", props->location.id);
	if (error)
		return error == TTI_CUDA_EDEVICE ? TTI_CUDA_EINVAL : error;
	error = tti_cuda_pool_create(props->location.id, out);
	if (!error && props->most_bytes)
		tti_cuda_pool_set_most(*out, props->most_bytes);
	return error;
}

static int check_pool(const char *function, const struct tti_cuda_pool *pool)
{
	return pool ? 0 : tti_cudart_null(function, "pool");
}

int tti_cudaMemPoolDestroy(tti_cu_pool pool)
{
	const int error = check_pool("cudaMemPoolDestroy", pool);

	return error ? error : tti_cuda_pool_destroy(pool);
}

int tti_cudaMemPoolTrimTo(tti_cu_pool pool, size_t nbytes)
{
	const int error = check_pool("cudaMemPoolTrimTo", pool);

	return error ? error : tti_cuda_pool_trim(pool, nbytes);
}

/* Attributes 1 to 3 are int, the others 64 bits. */
static size_t attribute_bytes(int attribute)
{
	return attribute <= 3 ? sizeof(int) : sizeof(uint64_t);
}

int tti_cudaMemPoolGetAttribute(tti_cu_pool pool, int attribute, void *out)
{
	int error = check_pool("cudaMemPoolGetAttribute", pool);
	uint64_t value = 0;

	if (!error && !out)
		error = tti_cudart_null("cudaMemPoolGetAttribute", "place for the value");
	if (!error)
		error = tti_cuda_pool_get(pool, attribute, &value);
	if (!error)
		memcpy(out, &value, attribute_bytes(attribute)); /* the low bytes come first */
	return error;
}

int tti_cudaMemPoolSetAttribute(tti_cu_pool pool, int attribute, void *value)
{
	int error = check_pool("cudaMemPoolSetAttribute", pool);
	uint64_t to = 0;

	if (!error && !value)
		error = tti_cudart_null("cudaMemPoolSetAttribute", "value");
	if (error)
		return error;
	memcpy(&to, value, attribute_bytes(attribute));
	if (attribute_bytes(attribute) == sizeof(int))
		to = to != 0;
	return tti_cuda_pool_set(pool, attribute, to);
}

static int check_location(const char *function, const struct tti_cu_location *at)
{
	if (!at)
		return tti_cudart_null(function, "location");
	if (at->type != TTI_CU_AT_DEVICE)
		return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				     "%s(): a location of type %d: pass a device", function,
				     at->type);
	return tti_cudart_check_device(function, at->id);
}

int tti_cudaMemPoolGetAccess(int *out, tti_cu_pool pool, struct tti_cu_location *at)
{
	int error = check_pool("cudaMemPoolGetAccess", pool);

	if (!error && !out)
		error = tti_cudart_null("cudaMemPoolGetAccess", "place for the access");
	if (!error && at && at->type == TTI_CU_AT_HOST) {
		*out = 0; /* the host has no access to memory of a device */
		return 0;
	}
	if (!error)
		error = check_location("cudaMemPoolGetAccess", at);
	if (!error)
		*out = 3;
	return error;
}

int tti_cudaMemPoolSetAccess(tti_cu_pool pool, const struct tti_cu_access *access, size_t n)
{
	int error = check_pool("cudaMemPoolSetAccess", pool);

	if (!error && n && !access)
		error = tti_cudart_null("cudaMemPoolSetAccess", "list");
	for (size_t at = 0; !error && at < n; at++) {
		error = check_location("cudaMemPoolSetAccess", &access[at].location);
		if (!error && access[at].flags != 0 && access[at].flags != 3)
			error = tti_cuda_fail(access[at].flags == 1 ? TTI_CUDA_ENOTSUPPORTED
								    : TTI_CUDA_EINVAL,
					      "cudaMemPoolSetAccess(): there is no access %d: pass "
					      "0 or 3",
					      access[at].flags);
		if (!error && access[at].flags == 0 &&
		    access[at].location.id == tti_cuda_pool_device(pool))
			error = tti_cuda_fail(
				TTI_CUDA_EDEVICE,
				"cudaMemPoolSetAccess(): device %d cannot lose access "
				"to its own pool",
				access[at].location.id);
	}
	return error;
}

/* -- Those of devices --------------------------------------------------------------------- */

static int get_pool(const char *function, tti_cu_pool *out, int device, bool is_default)
{
	const int error = tti_cudart_check_device(function, device);

	if (error)
		return error;
	if (!out)
		return tti_cudart_null(function, "place for the pool");
	*out = is_default ? tti_cuda_pool_default(device) : tti_cuda_pool_current(device);
	return *out ? 0 : tti_cuda_fail(TTI_CUDA_ENOMEM, "%s(): no memory for a pool", function);
}

int tti_cudaDeviceGetDefaultMemPool(tti_cu_pool *out, int device)
{
	return get_pool("cudaDeviceGetDefaultMemPool", out, device, true);
}

int tti_cudaDeviceGetMemPool(tti_cu_pool *out, int device)
{
	return get_pool("cudaDeviceGetMemPool", out, device, false);
}

static int set_pool(const char *function, int device, tti_cu_pool pool)
{
	int error = tti_cudart_check_device(function, device);

	if (!error)
		error = check_pool(function, pool);
	return error ? error : tti_cuda_pool_set_current(device, pool);
}

int tti_cudaDeviceSetMemPool(int device, tti_cu_pool pool)
{
	return set_pool("cudaDeviceSetMemPool", device, pool);
}

#if TTI_CUDART_MAJOR >= 13
static int check_type(const char *function, const struct tti_cu_location *at, int type)
{
	if (type != 1)
		return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				     "%s(): allocation type %d: pass cudaMemAllocationTypePinned",
				     function, type);
	return check_location(function, at);
}

int tti_cudaMemGetDefaultMemPool(tti_cu_pool *out, struct tti_cu_location *at, int type)
{
	const int error = check_type("cudaMemGetDefaultMemPool", at, type);

	return error ? error : get_pool("cudaMemGetDefaultMemPool", out, at->id, true);
}

int tti_cudaMemGetMemPool(tti_cu_pool *out, struct tti_cu_location *at, int type)
{
	const int error = check_type("cudaMemGetMemPool", at, type);

	return error ? error : get_pool("cudaMemGetMemPool", out, at->id, false);
}

int tti_cudaMemSetMemPool(struct tti_cu_location *at, int type, tti_cu_pool pool)
{
	const int error = check_type("cudaMemSetMemPool", at, type);

	return error ? error : set_pool("cudaMemSetMemPool", at->id, pool);
}
#endif
