/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/device.h"

#include <string.h>
#include <unistd.h>

#include "boot/boot.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/facts.h"
#include "core/device/open.h"
#include "core/device/reach.h"
#include "core/handle.h"
#include "core/init/peer_info.h"
#include "gpu/cuda.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/process.h"

/* Ranks with GPUs, at init:
 *
 *     open the GPU ─▶ gather facts ─▶ shape of lanes ─▶ try who reaches whom ─▶ ways to peers
 *
 * A child begins with the facts of its root, and its GPU is opened anew for it. */

/* -- What ranks say --------------------------------------------------------------------- */

/* Whether a rank asks for a device. Ranks decide by what all have gathered. */
static bool is_asked_for(const struct tti_peer_info *info, int n)
{
	for (int rank = 0; rank < n; rank++)
		if (info[rank].device != TTI_NO_DEVICE)
			return true;
	return false;
}

static tutti_status open_own(struct tti_comm *comm, const struct tti_peer_info *info,
			     struct tti_device_fact *fact)
{
	struct tti_gpu_driver *driver;
	int ordinal = info[comm->rank].device;

	if (ordinal == TTI_AUTO_DEVICE) {
		TTI_TRY(tti_gpu_driver(&driver));
		ordinal = tti_device_choose(info, comm->rank, tti_gpu_driver_count(driver));
	}
	if (tti_fault("core.device"))
		return tti_fail(TUTTI_ESYS, "core.device: injected fault");
	TTI_TRY(tti_device_open(ordinal, comm->rank, comm->n, fact, &comm->device));
	fact->ordinal = ordinal;
	fact->host = info[comm->rank].host;
	fact->pid = getpid();
	fact->identity = tti_process_identity(getpid());
	fact->process = tti_hash_combine(fact->identity, (uint64_t)fact->pid);
	return TUTTI_OK;
}

static tutti_status gather(struct tti_comm *comm, const struct tti_peer_info *info,
			   struct tti_device_fact *facts)
{
	struct tti_device_fact *own = &facts[comm->rank];

	own->ordinal = TTI_NO_DEVICE;
	if (info[comm->rank].device != TTI_NO_DEVICE)
		own->status = open_own(comm, info, own);
	TTI_TRY(tti_boot_all_gather(comm->boot, facts, sizeof(*facts)));
	for (int rank = 0; rank < comm->n; rank++)
		if (facts[rank].status != TUTTI_OK)
			return tti_peers_fail(comm->boot, rank, (tutti_status)facts[rank].status);
	return TUTTI_OK;
}

/* -- What follows from it ----------------------------------------------------------------- */

static void find_ways(struct tti_comm *comm)
{
	struct tti_devices *devices = comm->devices;

	devices->all_mapped = tti_devices_find_all_mapped(devices, comm->n);
	if (!comm->device)
		return;
	for (int peer = 0; peer < comm->n; peer++) {
		struct tti_device_peer *to = &comm->device->peers[peer];

		to->way = peer == comm->rank                             ? TTI_DEVICE_SELF
			  : tti_devices_reach(devices, comm->rank, peer) ? TTI_DEVICE_MAPPED
									 : TTI_DEVICE_PINNED;
		to->is_elsewhere = devices->fact[peer].process != devices->fact[comm->rank].process;
		to->pid = devices->fact[peer].pid;
		to->identity = devices->fact[peer].identity;
	}
}

static void report(const struct tti_comm *comm)
{
	const struct tti_device *device = comm->device;
	int nmapped = 0;

	for (int peer = 0; device && peer < comm->n; peer++)
		nmapped += device->peers[peer].way == TTI_DEVICE_MAPPED;
	if (device)
		tti_log(TTI_LOG_INFO, TTI_CORE,
			"rank %d has GPU %d (%s), which reaches those of %d of %d other ranks; "
			"%u blocks of %u threads, %u slots of %u bytes each",
			comm->rank, device->ordinal, tti_gpu_facts(device->gpu)->name, nmapped,
			comm->n - 1, device->shape.nblocks, device->nthreads, device->shape.nslots,
			device->shape.slot_bytes);
}

static uint32_t least(size_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

static uint32_t whole_16(size_t nbytes)
{
	return (uint32_t)((nbytes + 15) & ~(size_t)15);
}

/* What lanes hold is the limit: the proxy cuts what is longer than a slot of a link. Ranks without a
 * device cannot, so where there are such every message must also fit a slot of a link, and lanes need
 * not hold more. Nobody sends words over the proxy. */
void tti_devices_settle(struct tti_comm *comm)
{
	struct tti_devices *devices = comm->devices;
	struct tti_lane_shape *shape;

	if (!devices)
		return;
	shape = &devices->shape;
	if (!devices->all_mapped)
		shape->word_bytes = 0;
	if (devices->ndevices < comm->n)
		shape->slot_bytes =
			least(whole_16(comm->host_slot_bytes / shape->nblocks), shape->slot_bytes);
	comm->slot_bytes = (size_t)shape->nblocks * shape->slot_bytes;
	if (devices->ndevices < comm->n && comm->slot_bytes > comm->host_slot_bytes)
		comm->slot_bytes = comm->host_slot_bytes;
	if (comm->device)
		comm->device->shape = *shape;
	report(comm);
}

tutti_status tti_devices_begin(struct tti_comm *comm, const struct tti_peer_info *info)
{
	struct tti_device_fact *facts;
	tutti_status st;

	if (!is_asked_for(info, comm->n))
		return TUTTI_OK;
	facts = tti_calloc((size_t)comm->n, sizeof(*facts));
	if (!facts)
		return tti_fail(TUTTI_ENOMEM, "devices of %d ranks: out of memory", comm->n);
	st = gather(comm, info, facts);
	if (st != TUTTI_OK) {
		tti_free(facts);
		return st;
	}
	TTI_TRY(tti_devices_create(facts, comm->n, &comm->devices));
	tti_devices_warn_of_sharing(comm->devices, comm->rank, comm->n);
	tti_devices_warn_of_variables(comm->devices, comm->rank, comm->n);
	TTI_TRY(tti_devices_try(comm));
	find_ways(comm);
	return TUTTI_OK;
}

/* -- Of children ------------------------------------------------------------------------------ */

static void project_pair(struct tti_devices *to, int a, int b, const struct tti_devices *from,
			 const int *in_root)
{
	if (tti_devices_reach(from, in_root[a], in_root[b]))
		tti_devices_set_reach(to, a, b);
	if (tti_devices_is_refused(from, in_root[a], in_root[b]))
		tti_devices_refuse(to, a, b);
}

/* Only between ranks of the host of this one. */
static void project_reach(struct tti_comm *comm)
{
	const struct tti_devices *from = comm->root->devices;
	struct tti_devices *to = comm->devices;

	for (int a = 0; a < comm->n; a++) {
		if (to->first[a] != to->first[comm->rank])
			continue;
		for (int b = 0; b < comm->n; b++)
			if (tti_devices_near(to, a, b))
				project_pair(to, a, b, from, comm->in_root);
	}
}

static tutti_status project(struct tti_comm *comm)
{
	const struct tti_device_fact *from = comm->root->devices->fact;
	struct tti_device_fact *facts = tti_calloc((size_t)comm->n, sizeof(*facts));

	if (!facts)
		return tti_fail(TUTTI_ENOMEM, "devices of %d ranks: out of memory", comm->n);
	for (int rank = 0; rank < comm->n; rank++)
		facts[rank] = from[comm->in_root[rank]];
	TTI_TRY(tti_devices_create(facts, comm->n, &comm->devices));
	project_reach(comm);
	return TUTTI_OK;
}

static bool has_devices(const struct tti_comm *comm)
{
	for (int rank = 0; rank < comm->n; rank++)
		if (comm->root->devices->fact[comm->in_root[rank]].ordinal >= 0)
			return true;
	return false;
}

tutti_status tti_devices_derive(struct tti_comm *comm)
{
	struct tti_device_fact own = { 0 };
	int ordinal;

	if (!comm->root->devices || !has_devices(comm))
		return TUTTI_OK;
	TTI_TRY(project(comm));
	ordinal = comm->devices->fact[comm->rank].ordinal;
	if (ordinal >= 0)
		TTI_TRY(tti_device_open(ordinal, comm->rank, comm->n, &own, &comm->device));
	find_ways(comm);
	return TUTTI_OK;
}

/* -- Questions, the end --------------------------------------------------------------------------- */

void tti_device_close(struct tti_comm *comm)
{
	struct tti_device *device = comm->device;

	pthread_mutex_lock(&comm->lock);
	comm->device = NULL;
	pthread_mutex_unlock(&comm->lock);
	tti_device_free(device);
}

int tti_device_ordinal(const struct tti_comm *comm)
{
	return comm->device ? comm->device->ordinal : TTI_NO_DEVICE;
}

static tutti_status find_device(struct tti_comm *comm, int *out)
{
	TTI_TRY(tti_comm_usable(comm));
	*out = tti_device_ordinal(comm);
	return TUTTI_OK;
}

tutti_status tutti_comm_device(tutti_comm_t handle, int *out)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_check_out(handle, out, "an int"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, find_device(comm, out));
}
