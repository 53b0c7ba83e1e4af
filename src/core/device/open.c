/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/open.h"

#include <string.h>

#include "core/comm.h"
#include "core/device/facts.h"
#include "core/device/flight.h"
#include "core/device/parting.h"
#include "device/kernels.h"
#include "gpu/cuda_memory.h"
#include "gpu/cuda_stream.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/process.h"

/* -- Opening ----------------------------------------------------------------------------- */

/* Where blocks are threads of the host, as many as there are cores would be too many already. */
#define HOST_BLOCKS  2
#define HOST_THREADS 1

static tutti_status find_residents(struct tti_device *device, bool is_host, uint32_t *out)
{
	if (is_host) {
		*out = UINT32_MAX; /* threads of the host all get their turn */
		return TUTTI_OK;
	}
	return tti_kernels_resident(device->kernels, device->gpu, device->nthreads, out);
}

static tutti_status describe(struct tti_device *device, struct tti_device_fact *fact)
{
	const struct tti_param_values *params = tti_params();
	const struct tti_gpu_facts *facts = tti_gpu_facts(device->gpu);
	const bool is_host = tti_gpu_driver_is_host(tti_gpu_driver_of(device->gpu));
	const uint32_t nthreads = (uint32_t)params->cuda_threads;

	device->nthreads = nthreads ? nthreads : is_host ? HOST_THREADS : TTI_DEV_THREADS_MAX;
	fact->capability = facts->capability;
	fact->is_shared = is_host || facts->has_mps;
	memcpy(fact->uuid, facts->uuid, sizeof(fact->uuid));
	fact->at_most = (struct tti_lane_shape){ .nblocks = (uint32_t)params->cuda_blocks,
						 .nslots = (uint32_t)params->cuda_slots,
						 .slot_bytes = (uint32_t)params->cuda_slot,
						 .word_bytes = (uint32_t)params->cuda_words };
	if (is_host && !fact->at_most.nblocks)
		fact->at_most.nblocks = HOST_BLOCKS;
	return find_residents(device, is_host, &fact->nresident);
}

/* What is left of communicators once their last graph is gone. */
static struct {
	pthread_mutex_t lock;
	struct tti_device *first;
} buried = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void release(struct tti_device *device)
{
	tti_device_free_lanes(device);
	tti_device_free_memory(device);
	if (device->gpu) {
		tti_gpu_stream_destroy(device->gpu, device->stream);
		tti_gpu_close(device->gpu);
	}
	tti_free(device->peers);
	tti_free(device);
}

void tti_device_bury(struct tti_device *device)
{
	pthread_mutex_lock(&buried.lock);
	device->next_buried = buried.first;
	buried.first = device;
	pthread_mutex_unlock(&buried.lock);
}

static void free_buried(void)
{
	struct tti_device *device;

	pthread_mutex_lock(&buried.lock);
	device = buried.first;
	buried.first = NULL;
	pthread_mutex_unlock(&buried.lock);
	while (device) {
		struct tti_device *next = device->next_buried;

		(void)tti_flights_free(device);
		release(device);
		device = next;
	}
	tti_parting_free();
}

tutti_status tti_device_open(int ordinal, int rank, int n, struct tti_device_fact *fact,
			     struct tti_device **out)
{
	struct tti_device *device = tti_zalloc(sizeof(*device));
	tutti_status st;

	free_buried();
	if (!device)
		return tti_fail(TUTTI_ENOMEM, "device %d of rank %d: out of memory", ordinal, rank);
	device->ordinal = ordinal;
	device->rank = rank;
	device->n = n;
	device->peers = tti_calloc((size_t)n, sizeof(*device->peers));
	st = device->peers
		     ? tti_gpu_open(ordinal, &device->gpu)
		     : tti_fail(TUTTI_ENOMEM, "device %d of rank %d: out of memory", ordinal, rank);
	if (st == TUTTI_OK)
		st = tti_flights_create(device);
	if (st == TUTTI_OK)
		st = tti_kernels_get(device->gpu, &device->kernels);
	if (st == TUTTI_OK)
		st = describe(device, fact);
	if (st == TUTTI_OK)
		*out = device;
	else
		tti_device_free(device);
	return st;
}

void tti_device_free(struct tti_device *device)
{
	free_buried();
	if (!device)
		return;
	/* What graphs launch from now on ends at its first wait. */
	tti_device_stop(device);
	if (tti_flights_free(device))
		release(device);
}

/* -- Memory ---------------------------------------------------------------------------------- */

tutti_status tti_device_count_memory(struct tti_device *device, size_t nbytes)
{
	const size_t most = (size_t)tti_params()->cuda_memory;

	const size_t now = atomic_load(&device->device_bytes);

	if (most && (now > most || nbytes > most - now))
		return tti_fail(
			TUTTI_ENOMEM,
			"GPU %d of rank %d: %zu bytes more than the %zu that the "
			"communicator has would exceed TUTTI_CUDA_MEMORY, %zu: raise it, or "
			"lower TUTTI_CUDA_SLOT or TUTTI_CUDA_SLOTS",
			device->ordinal, device->rank, nbytes, now, most);
	device->device_bytes += nbytes;
	return TUTTI_OK;
}

static tutti_status need_piece(struct tti_device *device)
{
	if (!tti_vec_grow(&device->pieces))
		return tti_fail(TUTTI_ENOMEM, "memory of the GPU of rank %d: out of memory",
				device->rank);
	return TUTTI_OK;
}

tutti_status tti_device_alloc(struct tti_device *device, size_t nbytes, uint64_t *out)
{
	tutti_status st;

	TTI_TRY(need_piece(device));
	TTI_TRY(tti_device_count_memory(device, nbytes));
	st = tti_gpu_alloc(device->gpu, nbytes, out);
	if (st != TUTTI_OK)
		device->device_bytes -= nbytes;
	else
		device->pieces.at[device->pieces.n++] =
			(struct tti_device_piece){ .at = *out, .nbytes = nbytes };
	return st;
}

tutti_status tti_device_alloc_pinned(struct tti_device *device, size_t nbytes, void **host,
				     uint64_t *at)
{
	TTI_TRY(need_piece(device));
	TTI_TRY(tti_gpu_pinned_alloc(device->gpu, nbytes, host, at));
	device->pieces.at[device->pieces.n++] =
		(struct tti_device_piece){ .host = *host, .nbytes = nbytes };
	device->pinned_bytes += nbytes;
	return TUTTI_OK;
}

tutti_status tti_device_write(struct tti_device *device, uint64_t to, const void *from,
			      size_t nbytes)
{
	return tti_gpu_write(device->gpu, to, from, nbytes);
}

/* -- Ready for calls --------------------------------------------------------------------------- */

static tutti_status alloc_zeroed(struct tti_device *device, size_t nbytes, uint64_t *out)
{
	TTI_TRY(tti_device_alloc(device, nbytes, out));
	return tti_gpu_zero(device->gpu, *out, nbytes);
}

/* Whoever fails the communicator from now on sees the control. */
static void publish(struct tti_comm *comm, struct tti_dev_control *control)
{
	pthread_mutex_lock(&comm->lock);
	comm->device->control = control;
	if (atomic_load(&comm->stop))
		tti_device_stop(comm->device);
	pthread_mutex_unlock(&comm->lock);
}

/* What a failed try has made stays for the next. */
tutti_status tti_device_make_ready(struct tti_comm *comm)
{
	struct tti_device *device = comm->device;
	const size_t nlanes = (size_t)device->shape.nblocks * 2 * (size_t)device->n;
	void *control;

	if (!device->stream)
		TTI_TRY(tti_gpu_stream_create(device->gpu, false, &device->stream));
	if (!device->state_at)
		TTI_TRY(alloc_zeroed(device, sizeof(struct tti_dev_state), &device->state_at));
	if (!device->lanes_at)
		TTI_TRY(alloc_zeroed(device, nlanes * sizeof(struct tti_dev_lane),
				     &device->lanes_at));
	if (!device->control) {
		TTI_TRY(tti_device_alloc_pinned(device, sizeof(*device->control), &control,
						&device->control_at));
		publish(comm, control);
	}
	return TUTTI_OK;
}

void tti_device_stop(struct tti_device *device)
{
	if (device && device->control)
		__atomic_store_n(&device->control->stop, TTI_DEV_STOP_ALL, __ATOMIC_SEQ_CST);
}
