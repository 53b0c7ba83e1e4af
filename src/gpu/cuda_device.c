/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices of a driver: what they are, and their contexts. */
#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu/cuda.h"
#include "gpu/cuda_impl.h"
#include "util/log.h"
#include "util/mem.h"

/* -- Facts ------------------------------------------------------------------------- */

struct attributes {
#define X(field, number) int field;
	TTI_CUDA_ATTRIBUTE_MAP(X)
#undef X
};

/* An attribute that the driver does not know is 0: it is older than what the attribute tells of. */
static tutti_status ask_attributes(struct tti_gpu_driver *driver, tti_cuda_device device,
				   int ordinal, struct attributes *out)
{
	static const struct {
		int number;
		size_t at;
	} table[] = {
#define X(field, number) { number, offsetof(struct attributes, field) },
		TTI_CUDA_ATTRIBUTE_MAP(X)
#undef X
	};

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int value = 0;
		const int rc = driver->call.device_attribute(&value, table[i].number, device);

		if (rc == TTI_CUDA_INVALID_VALUE)
			value = 0;
		else if (rc)
			return tti_gpu_driver_fail(driver, rc, "cuDeviceGetAttribute",
						   "attribute %d of GPU %d", table[i].number,
						   ordinal);
		memcpy((char *)out + table[i].at, &value, sizeof(value));
	}
	return TUTTI_OK;
}

static tutti_status get_device(struct tti_gpu_driver *driver, int ordinal, tti_cuda_device *out)
{
	int rc;

	if (!driver->count)
		return tti_fail(TUTTI_EINVAL,
				"GPU %d: %s has no device; see nvidia-smi and CUDA_VISIBLE_DEVICES",
				ordinal, driver->path);
	if (ordinal < 0 || ordinal >= driver->count)
		return tti_fail(
			TUTTI_EINVAL,
			"GPU %d: there are 0..%d; CUDA_VISIBLE_DEVICES says which a process "
			"sees, and gives them numbers from 0 on",
			ordinal, driver->count - 1);
	rc = driver->call.device_get(out, ordinal);
	if (rc)
		return tti_gpu_driver_fail(driver, rc, "cuDeviceGet", "GPU %d", ordinal);
	return TUTTI_OK;
}

static void fill_facts(const struct attributes *from, struct tti_gpu_facts *out)
{
	out->capability = 10 * from->capability_major + from->capability_minor;
	out->multiprocessors = from->multiprocessors;
	out->threads_per_multiprocessor = from->threads_per_multiprocessor;
	out->shared_per_block = from->shared_per_block;
	out->mode = from->compute_mode == TTI_CUDA_MODE_PROHIBITED  ? TTI_GPU_PROHIBITED
		    : from->compute_mode == TTI_CUDA_MODE_EXCLUSIVE ? TTI_GPU_ONE_PROCESS
								    : TTI_GPU_SHARED;
	out->has_mps = from->mps != 0;
	out->has_vmm = from->vmm != 0;
	out->has_fd = from->vmm && from->fd;
	out->has_fabric = from->vmm && from->fabric;
	out->has_host_atomic = from->host_atomic != 0;
	out->has_rdma = from->rdma != 0;
	out->has_dma_buf = from->dma_buf != 0;
	out->has_vmm_rdma = from->vmm_rdma != 0;
	out->has_managed = from->concurrent_managed != 0;
	out->has_multicast = from->multicast != 0;
}

tutti_status tti_gpu_facts_of(struct tti_gpu_driver *driver, int ordinal, struct tti_gpu_facts *out)
{
	struct attributes attributes;
	tti_cuda_device device;
	size_t nbytes = 0;
	int rc;

	*out = (struct tti_gpu_facts){ .ordinal = ordinal };
	TTI_TRY(get_device(driver, ordinal, &device));
	rc = driver->call.device_name(out->name, (int)sizeof(out->name), device);
	if (rc)
		return tti_gpu_driver_fail(driver, rc, "cuDeviceGetName", "GPU %d", ordinal);
	out->name[sizeof(out->name) - 1] = '\0';
	rc = driver->call.device_uuid(out->uuid, device);
	if (rc)
		return tti_gpu_driver_fail(driver, rc, "cuDeviceGetUuid", "GPU %d", ordinal);
	rc = driver->call.device_busid(out->busid, (int)sizeof(out->busid), device);
	if (rc)
		return tti_gpu_driver_fail(driver, rc, "cuDeviceGetPCIBusId", "GPU %d", ordinal);
	for (char *at = out->busid; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	rc = driver->call.device_memory(&nbytes, device);
	if (rc)
		return tti_gpu_driver_fail(driver, rc, "cuDeviceTotalMem", "GPU %d", ordinal);
	out->memory_bytes = nbytes;
	TTI_TRY(ask_attributes(driver, device, ordinal, &attributes));
	fill_facts(&attributes, out);
	return TUTTI_OK;
}

tutti_status tti_gpu_access_of(struct tti_gpu_driver *driver, int from, int to,
			       struct tti_gpu_access *out)
{
	tti_cuda_device user, owner;
	int can = 0, atomic = 0, rc;

	*out = (struct tti_gpu_access){ false, false };
	TTI_TRY(get_device(driver, from, &user));
	TTI_TRY(get_device(driver, to, &owner));
	if (from == to) {
		*out = (struct tti_gpu_access){ true, true };
		return TUTTI_OK;
	}
	rc = driver->call.device_access(&can, user, owner);
	if (rc)
		return tti_gpu_driver_fail(driver, rc, "cuDeviceCanAccessPeer",
					   "whether GPU %d reaches memory of GPU %d", from, to);
	if (can && !driver->call.device_p2p(&atomic, TTI_CUDA_P2P_ATOMIC, user, owner))
		out->has_atomic = atomic != 0;
	out->is_possible = can != 0;
	return TUTTI_OK;
}

/* -- Contexts ---------------------------------------------------------------------- */

/* Quiet. */
static int set_context(const struct tti_gpu *gpu, struct tti_gpu_scope *scope,
		       const char **function)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	int rc;

	*function = "cuCtxGetCurrent";
	rc = call->context_get(&scope->before);
	if (rc)
		return rc;
	scope->is_other = scope->before != gpu->context;
	*function = "cuCtxSetCurrent";
	return scope->is_other ? call->context_set(gpu->context) : TTI_CUDA_SUCCESS;
}

static int enter(const struct tti_gpu *gpu, bool is_relaxed, struct tti_gpu_scope *out,
		 const char **function)
{
	int rc;

	*out = (struct tti_gpu_scope){ .mode = TTI_CUDA_CAPTURE_RELAXED };
	rc = set_context(gpu, out, function);
	if (rc || !is_relaxed)
		return rc;
	*function = "cuThreadExchangeStreamCaptureMode";
	rc = gpu->driver->call.capture_mode(&out->mode);
	out->is_relaxed = !rc;
	if (rc)
		tti_gpu_leave(gpu, out);
	return rc;
}

tutti_status tti_gpu_enter(const struct tti_gpu *gpu, bool is_relaxed, struct tti_gpu_scope *out)
{
	const char *function;
	const int rc = enter(gpu, is_relaxed, out, &function);

	return rc ? tti_gpu_fail(gpu, rc, function, "making its context that of the thread")
		  : TUTTI_OK;
}

bool tti_gpu_enter_again(const struct tti_gpu *gpu, struct tti_gpu_scope *out)
{
	const char *function;
	int rc = enter(gpu, true, out, &function);

	if (rc)
		rc = enter(gpu, true, out, &function);
	if (rc)
		tti_gpu_not_released(gpu, rc, function);
	return !rc;
}

void tti_gpu_leave(const struct tti_gpu *gpu, const struct tti_gpu_scope *scope)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	int mode = scope->mode, rc = TTI_CUDA_SUCCESS;

	if (scope->is_relaxed && call->capture_mode(&mode)) {
		mode = scope->mode;
		rc = call->capture_mode(&mode);
	}
	if (rc)
		tti_gpu_not_released(gpu, rc, "cuThreadExchangeStreamCaptureMode");
	rc = TTI_CUDA_SUCCESS;
	if (scope->is_other && call->context_set(scope->before))
		rc = call->context_set(scope->before);
	if (rc)
		tti_gpu_not_released(gpu, rc, "cuCtxSetCurrent");
}

/* -- Devices ----------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	struct tti_gpu *first;
} opened = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void enlist(struct tti_gpu *gpu)
{
	pthread_mutex_lock(&opened.lock);
	gpu->next = opened.first;
	opened.first = gpu;
	pthread_mutex_unlock(&opened.lock);
}

/* Whether it was the last of its device. */
static bool strike_off(struct tti_gpu *gpu)
{
	struct tti_gpu **at = &opened.first, *other;

	pthread_mutex_lock(&opened.lock);
	while (*at != gpu)
		at = &(*at)->next;
	*at = gpu->next;
	other = opened.first;
	while (other &&
	       (other->driver != gpu->driver || other->facts.ordinal != gpu->facts.ordinal))
		other = other->next;
	pthread_mutex_unlock(&opened.lock);
	return !other;
}

static void release_context(struct tti_gpu *gpu)
{
	int rc = gpu->driver->call.context_release(gpu->device);

	if (rc)
		rc = gpu->driver->call.context_release(gpu->device);
	if (rc)
		tti_gpu_not_released(gpu, rc, "cuDevicePrimaryCtxRelease");
}

static tutti_status make_stream(struct tti_gpu *gpu)
{
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = gpu->driver->call.stream_create(&gpu->stream, TTI_CUDA_STREAM_NON_BLOCKING, 0);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuStreamCreateWithPriority",
				    "making a stream for copies");
	return TUTTI_OK;
}

tutti_status tti_gpu_open_by(struct tti_gpu_driver *driver, int ordinal, struct tti_gpu **out)
{
	struct tti_gpu *gpu;
	tutti_status status;
	int rc;

	*out = NULL;
	gpu = tti_zalloc(sizeof(*gpu));
	if (!gpu)
		return tti_fail(TUTTI_ENOMEM, "GPU %d: out of memory of the host", ordinal);
	gpu->driver = driver;
	status = tti_gpu_facts_of(driver, ordinal, &gpu->facts);
	if (status == TUTTI_OK)
		status = get_device(driver, ordinal, &gpu->device);
	if (status == TUTTI_OK && gpu->facts.mode == TTI_GPU_PROHIBITED)
		status = tti_fail(TUTTI_EUNSUPPORTED,
				  "GPU %d (%s): its compute mode lets nobody use it; nvidia-smi -i "
				  "%s -c DEFAULT does",
				  ordinal, gpu->facts.name, gpu->facts.busid);
	if (status != TUTTI_OK) {
		tti_free(gpu);
		return status;
	}
	rc = driver->call.context_retain(&gpu->context, gpu->device);
	if (rc) {
		status = tti_gpu_fail(gpu, rc, "cuDevicePrimaryCtxRetain", "opening it");
		tti_free(gpu);
		return status;
	}
	status = make_stream(gpu);
	if (status != TUTTI_OK) {
		release_context(gpu);
		tti_free(gpu);
		return status;
	}
	tti_gpu_count(&tti_gpu_counts.gpus, 1);
	atomic_init(&gpu->users, 1);
	enlist(gpu);
	*out = gpu;
	return TUTTI_OK;
}

tutti_status tti_gpu_open(int ordinal, struct tti_gpu **out)
{
	struct tti_gpu_driver *driver;

	*out = NULL;
	TTI_TRY(tti_gpu_driver(&driver));
	return tti_gpu_open_by(driver, ordinal, out);
}

void tti_gpu_close(struct tti_gpu *gpu)
{
	struct tti_gpu_scope scope;

	if (!gpu || atomic_fetch_sub(&gpu->users, 1) > 1)
		return;
	if (strike_off(gpu))
		tti_gpu_spares_free(gpu);
	if (tti_gpu_enter_again(gpu, &scope)) {
		tti_gpu_give_back(gpu, gpu->driver->call.stream_destroy, gpu->stream,
				  "cuStreamDestroy");
		tti_gpu_leave(gpu, &scope);
	}
	release_context(gpu);
	tti_gpu_count(&tti_gpu_counts.gpus, -1);
	tti_free(gpu);
}

const struct tti_gpu_facts *tti_gpu_facts(const struct tti_gpu *gpu)
{
	return &gpu->facts;
}

int tti_gpu_ordinal(const struct tti_gpu *gpu)
{
	return gpu->facts.ordinal;
}

struct tti_gpu_driver *tti_gpu_driver_of(const struct tti_gpu *gpu)
{
	return gpu->driver;
}

tutti_status tti_gpu_health(struct tti_gpu *gpu)
{
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = gpu->driver->call.stream_query(gpu->stream);
	tti_gpu_leave(gpu, &scope);
	if (rc && rc != TTI_CUDA_NOT_READY)
		return tti_gpu_fail(gpu, rc, "cuStreamQuery", "it has failed");
	return TUTTI_OK;
}
