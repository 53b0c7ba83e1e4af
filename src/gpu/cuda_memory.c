/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/cuda_memory.h"

#include <pthread.h>
#include <string.h>

#include "gpu/cuda_impl.h"
#include "util/mem.h"

/* Wait for what was asked for with `rc`, by *function, which is the one that failed. Also after an error
 * nothing is to be under way: the caller frees what is copied. */
static int finish(const struct tti_gpu *gpu, int rc, const char **function)
{
	if (rc)
		return rc;
	*function = "cuStreamSynchronize";
	rc = gpu->driver->call.stream_wait(gpu->stream);
	if (rc)
		(void)gpu->driver->call.stream_wait(gpu->stream);
	return rc;
}

/* -- Memory of the process alone --------------------------------------------------- */

/* What was set aside. */
struct spare {
	struct spare *next;
	const struct tti_gpu_driver *driver;
	int ordinal;
	bool is_pinned;
	uint64_t at; /* of pinned memory: as the host reaches it */
	size_t nbytes;
};

static struct {
	pthread_mutex_t lock;
	struct spare *first;
} spares = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The first of the device's, of that many bytes, or, if that is 0, of any; 0: there is none. */
static uint64_t take_spare(const struct tti_gpu *gpu, bool is_pinned, size_t nbytes)
{
	struct spare **at = &spares.first, *spare;
	uint64_t found;

	pthread_mutex_lock(&spares.lock);
	while (*at && ((*at)->driver != gpu->driver || (*at)->ordinal != gpu->facts.ordinal ||
		       (*at)->is_pinned != is_pinned || (nbytes && (*at)->nbytes != nbytes)))
		at = &(*at)->next;
	spare = *at;
	if (spare)
		*at = spare->next;
	pthread_mutex_unlock(&spares.lock);
	found = spare ? spare->at : 0;
	tti_free(spare);
	return found;
}

/* False: out of memory. */
static bool add_spare(const struct tti_gpu *gpu, bool is_pinned, uint64_t at, size_t nbytes)
{
	struct spare *spare = tti_alloc(sizeof(*spare));

	if (!spare)
		return false;
	*spare = (struct spare){ .driver = gpu->driver,
				 .ordinal = gpu->facts.ordinal,
				 .is_pinned = is_pinned,
				 .at = at,
				 .nbytes = nbytes };
	pthread_mutex_lock(&spares.lock);
	spare->next = spares.first;
	spares.first = spare;
	pthread_mutex_unlock(&spares.lock);
	return true;
}

int tti_gpu_take(const struct tti_gpu *gpu, size_t nbytes, uint64_t *out)
{
	int rc = TTI_CUDA_SUCCESS;

	*out = take_spare(gpu, false, nbytes);
	if (!*out) {
		rc = gpu->driver->call.alloc(out, nbytes);
		if (!rc)
			tti_gpu_count(&tti_gpu_counts.memories, 1);
	}
	return rc;
}

static int free_at(const struct tti_gpu *gpu, uint64_t at, const char **function)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	int rc;

	*function = "cuMemFreeAsync";
	rc = call->free_in(at, gpu->stream);
	if (rc)
		rc = call->free_in(at, gpu->stream);
	return finish(gpu, rc, function);
}

/* In the order of a stream that has nothing else to do: cuMemAlloc() may wait for all kernels of the
 * process, and cuMemFree() does, one of which may wait for a rank whose thread is here. */
tutti_status tti_gpu_alloc(struct tti_gpu *gpu, size_t nbytes, uint64_t *out)
{
	const char *function = "cuMemAllocAsync", *ignored;
	struct tti_gpu_scope scope;
	int rc;

	*out = 0;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = finish(gpu, gpu->driver->call.alloc_in(out, nbytes, gpu->stream), &function);
	if (rc && *out)
		(void)free_at(gpu, *out, &ignored);
	tti_gpu_leave(gpu, &scope);
	if (rc) {
		*out = 0;
		return tti_gpu_fail(gpu, rc, function, "%zu bytes of its memory", nbytes);
	}
	tti_gpu_count(&tti_gpu_counts.memories, 1);
	return TUTTI_OK;
}

void tti_gpu_free(struct tti_gpu *gpu, uint64_t at)
{
	struct tti_gpu_scope scope;
	const char *function;
	int rc;

	if (!at)
		return;
	tti_gpu_count(&tti_gpu_counts.memories, -1);
	if (!tti_gpu_enter_again(gpu, &scope))
		return;
	rc = free_at(gpu, at, &function);
	if (rc)
		tti_gpu_not_released(gpu, rc, function);
	tti_gpu_leave(gpu, &scope);
}

static void free_shared(struct tti_gpu *gpu, uint64_t at)
{
	struct tti_gpu_scope scope;

	tti_gpu_count(&tti_gpu_counts.memories, -1);
	if (!tti_gpu_enter_again(gpu, &scope))
		return;
	tti_gpu_give_back_at(gpu, gpu->driver->call.free, at, "cuMemFree");
	tti_gpu_leave(gpu, &scope);
}

void tti_gpu_set_aside(struct tti_gpu *gpu, uint64_t at, size_t nbytes)
{
	if (at && !add_spare(gpu, false, at, nbytes))
		free_shared(gpu, at);
}

static void free_host(const struct tti_gpu *gpu, void *host)
{
	tti_gpu_give_back(gpu, gpu->driver->call.host_free, host, "cuMemFreeHost");
}

void tti_gpu_pinned_set_aside(struct tti_gpu *gpu, void *host, size_t nbytes)
{
	if (host && !add_spare(gpu, true, (uintptr_t)host, nbytes))
		tti_gpu_pinned_free(gpu, host);
}

tutti_status tti_gpu_pinned_alloc(struct tti_gpu *gpu, size_t nbytes, void **host, uint64_t *at)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	const char *function = "cuMemHostAlloc";
	struct tti_gpu_scope scope;
	int rc = TTI_CUDA_SUCCESS;

	*host = NULL;
	*at = 0;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	*host = (void *)(uintptr_t)take_spare(gpu, true, nbytes);
	if (!*host) {
		rc = call->host_alloc(host, nbytes, TTI_CUDA_HOST_PORTABLE | TTI_CUDA_HOST_MAPPED);
		if (!rc)
			tti_gpu_count(&tti_gpu_counts.pinned, 1);
	}
	if (!rc) {
		function = "cuMemHostGetDevicePointer";
		rc = call->host_address(at, *host, 0);
		if (rc)
			tti_gpu_pinned_set_aside(gpu, *host, nbytes);
	}
	tti_gpu_leave(gpu, &scope);
	if (rc) {
		*host = NULL;
		return tti_gpu_fail(gpu, rc, function, "%zu bytes of pinned memory of the host",
				    nbytes);
	}
	memset(*host, 0, nbytes);
	return TUTTI_OK;
}

void tti_gpu_pinned_free(struct tti_gpu *gpu, void *host)
{
	struct tti_gpu_scope scope;

	if (!host)
		return;
	tti_gpu_count(&tti_gpu_counts.pinned, -1);
	if (!tti_gpu_enter_again(gpu, &scope))
		return;
	free_host(gpu, host);
	tti_gpu_leave(gpu, &scope);
}

void tti_gpu_spares_free(struct tti_gpu *gpu)
{
	uint64_t at;

	while ((at = take_spare(gpu, false, 0)))
		free_shared(gpu, at);
	while ((at = take_spare(gpu, true, 0)))
		tti_gpu_pinned_free(gpu, (void *)(uintptr_t)at);
}

static void unregister(struct tti_gpu *gpu, void *host)
{
	tti_gpu_give_back(gpu, gpu->driver->call.host_unregister, host, "cuMemHostUnregister");
}

tutti_status tti_gpu_pin(struct tti_gpu *gpu, void *host, size_t nbytes, uint64_t *at)
{
	const char *function = "cuMemHostRegister";
	struct tti_gpu_scope scope;
	int rc;

	*at = 0;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = gpu->driver->call.host_register(host, nbytes,
					     TTI_CUDA_HOST_PORTABLE | TTI_CUDA_HOST_MAPPED);
	if (!rc) {
		function = "cuMemHostGetDevicePointer";
		rc = gpu->driver->call.host_address(at, host, 0);
		if (rc)
			unregister(gpu, host);
	}
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, function, "pinning %zu bytes of the host at %p",
				    nbytes, host);
	tti_gpu_count(&tti_gpu_counts.pinned, 1);
	return TUTTI_OK;
}

void tti_gpu_unpin(struct tti_gpu *gpu, void *host)
{
	struct tti_gpu_scope scope;

	if (!host)
		return;
	tti_gpu_count(&tti_gpu_counts.pinned, -1);
	if (!tti_gpu_enter_again(gpu, &scope))
		return;
	unregister(gpu, host);
	tti_gpu_leave(gpu, &scope);
}

/* -- Copies that are waited for ---------------------------------------------------- */

tutti_status tti_gpu_write(struct tti_gpu *gpu, uint64_t to, const void *host, size_t nbytes)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	const char *function = "cuMemcpyHtoDAsync";
	struct tti_gpu_scope scope;
	int rc;

	if (!nbytes)
		return TUTTI_OK;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = finish(gpu, call->write(to, host, nbytes, gpu->stream), &function);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, function, "writing %zu bytes to 0x%llx", nbytes,
				    (unsigned long long)to);
	return TUTTI_OK;
}

tutti_status tti_gpu_read(struct tti_gpu *gpu, void *host, uint64_t from, size_t nbytes)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	const char *function = "cuMemcpyDtoHAsync";
	struct tti_gpu_scope scope;
	int rc;

	if (!nbytes)
		return TUTTI_OK;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = finish(gpu, call->read(host, from, nbytes, gpu->stream), &function);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, function, "reading %zu bytes from 0x%llx", nbytes,
				    (unsigned long long)from);
	return TUTTI_OK;
}

tutti_status tti_gpu_move(struct tti_gpu *gpu, void *to, const void *from, size_t nbytes)
{
	const char *function = "cuMemcpyAsync";
	struct tti_gpu_scope scope;
	int rc;

	if (!nbytes)
		return TUTTI_OK;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = finish(gpu,
		    gpu->driver->call.copy((uintptr_t)to, (uintptr_t)from, nbytes, gpu->stream),
		    &function);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, function, "moving %zu bytes from %p to %p", nbytes,
				    from, to);
	return TUTTI_OK;
}

tutti_status tti_gpu_zero(struct tti_gpu *gpu, uint64_t at, size_t nbytes)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	const char *function = "cuMemsetD8Async";
	struct tti_gpu_scope scope;
	int rc;

	if (!nbytes)
		return TUTTI_OK;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = finish(gpu, call->fill(at, 0, nbytes, gpu->stream), &function);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, function, "clearing %zu bytes at 0x%llx", nbytes,
				    (unsigned long long)at);
	return TUTTI_OK;
}

/* -- Memory of the program --------------------------------------------------------- */

/* Of different sizes, and what the driver leaves out stays 0. */
struct answers {
	uint64_t at, id, base, handles;
	size_t nbytes;
	unsigned type, is_managed, has_ipc;
	int ordinal;
};

static int ask(const struct tti_gpu *gpu, const void *pointer, struct answers *out)
{
	int which[] = { TTI_CUDA_POINTER_TYPE,    TTI_CUDA_POINTER_DEVICE_ADDRESS,
			TTI_CUDA_POINTER_ID,      TTI_CUDA_POINTER_IS_MANAGED,
			TTI_CUDA_POINTER_ORDINAL, TTI_CUDA_POINTER_HAS_IPC,
			TTI_CUDA_POINTER_BASE,    TTI_CUDA_POINTER_NBYTES,
			TTI_CUDA_POINTER_HANDLES };
	void *where[] = { &out->type,    &out->at,   &out->id,     &out->is_managed, &out->ordinal,
			  &out->has_ipc, &out->base, &out->nbytes, &out->handles };

	_Static_assert(sizeof(which) / sizeof(which[0]) == sizeof(where) / sizeof(where[0]),
		       "an answer to each question");
	memset(out, 0, sizeof(*out));
	return gpu->driver->call.pointer_attributes(sizeof(which) / sizeof(which[0]), which, where,
						    (uint64_t)(uintptr_t)pointer);
}

tutti_status tti_gpu_pointer(struct tti_gpu *gpu, const void *pointer, struct tti_gpu_pointer *out)
{
	struct tti_gpu_scope scope;
	struct answers answers;
	int rc;

	*out = (struct tti_gpu_pointer){ .kind = TTI_GPU_PAGEABLE, .ordinal = -1 };
	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	rc = ask(gpu, pointer, &answers);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuPointerGetAttributes", "what is at %p", pointer);
	if (!answers.type)
		return TUTTI_OK;
	*out = (struct tti_gpu_pointer){
		.kind = answers.is_managed                       ? TTI_GPU_MANAGED
			: answers.type == TTI_CUDA_MEMORY_DEVICE ? TTI_GPU_DEVICE
								 : TTI_GPU_PINNED,
		.ordinal = answers.ordinal,
		.at = answers.at ? answers.at : (uint64_t)(uintptr_t)pointer,
		.base = answers.base,
		.nbytes = answers.nbytes,
		.id = answers.id,
	};
	out->has_fd = out->kind == TTI_GPU_DEVICE && answers.handles & TTI_CUDA_HANDLE_FD;
	out->has_ipc = out->kind == TTI_GPU_DEVICE && !out->has_fd && answers.has_ipc;
	return TUTTI_OK;
}

/* Memory apart from addresses may be several allocations side by side, which are one buffer. Whether
 * the driver's answer is of one of them or of all its releases do not agree on, so the other end is
 * asked for too. */
static tutti_status check_end(struct tti_gpu *gpu, const void *pointer, size_t nbytes,
			      const char *what, const struct tti_gpu_pointer *begin)
{
	const uint64_t address = (uint64_t)(uintptr_t)pointer;
	struct tti_gpu_pointer end = { .kind = TTI_GPU_PAGEABLE };

	if (!begin->nbytes || !nbytes ||
	    (address >= begin->base && nbytes <= begin->nbytes &&
	     address - begin->base <= begin->nbytes - nbytes))
		return TUTTI_OK;
	if (!begin->has_ipc)
		TTI_TRY(tti_gpu_pointer(gpu, (const char *)pointer + nbytes - 1, &end));
	if (end.kind == begin->kind && end.ordinal == begin->ordinal && end.base != begin->base)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL,
			"%s, %p, of %zu bytes leaves its allocation, %zu bytes at 0x%llx", what,
			pointer, nbytes, begin->nbytes, (unsigned long long)begin->base);
}

tutti_status tti_gpu_buffer(struct tti_gpu *gpu, const void *pointer, size_t nbytes,
			    const char *what, struct tti_gpu_pointer *out)
{
	TTI_TRY(tti_gpu_pointer(gpu, pointer, out));
	if (out->kind == TTI_GPU_PAGEABLE)
		return tti_fail(TUTTI_EINVAL,
				"%s, %p, is ordinary memory of the host, which kernels of GPU %d "
				"(%s) do not reach: allocate it with cudaMalloc() or "
				"cudaMallocHost(), or pin it with cudaHostRegister()",
				what, pointer, gpu->facts.ordinal, gpu->facts.name);
	if (out->kind == TTI_GPU_DEVICE && out->ordinal != gpu->facts.ordinal)
		return tti_fail(TUTTI_EINVAL,
				"%s, %p, is memory of GPU %d, and the communicator's is GPU %d "
				"(%s): allocate it there, or copy it",
				what, pointer, out->ordinal, gpu->facts.ordinal, gpu->facts.name);
	return check_end(gpu, pointer, nbytes, what, out);
}
