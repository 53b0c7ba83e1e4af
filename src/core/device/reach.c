/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/reach.h"

#include <string.h>

#include "boot/boot.h"
#include "core/comm.h"
#include "core/device/facts.h"
#include "core/init/peer_info.h"
#include "gpu/cuda_memory.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"

#define MARK_WORDS 32

/* What rank `from` writes for rank `to`; for itself: whose memory it is. */
struct mark {
	uint64_t word[MARK_WORDS];
};

/* What a rank lends: struct mark[nhere], by the places of those who write. */
struct offer {
	struct tti_gpu_name name;
	int32_t status;  /* of making it */
	int32_t is_lent; /* it has a name */
};

struct trial {
	struct tti_comm *comm;
	struct tti_devices *devices;
	struct tti_gpu_memory *own;
	struct offer *offers; /* [n] */
};

static struct mark mark_of(const struct trial *trial, int from, int to)
{
	const struct tti_device_fact *fact = trial->devices->fact;
	uint64_t seed = tti_hash_combine(fact[from].process, (uint64_t)from);
	struct mark mark;

	seed = tti_hash_combine(seed, tti_hash_combine(fact[to].process, (uint64_t)to));
	for (int i = 0; i < MARK_WORDS; i++)
		mark.word[i] = tti_hash_combine(seed, (uint64_t)i);
	return mark;
}

static bool is_mark(const struct trial *trial, const struct mark *mark, int from, int to)
{
	const struct mark expected = mark_of(trial, from, to);

	return memcmp(mark, &expected, sizeof(expected)) == 0;
}

static uint64_t place_in(uint64_t memory, const struct trial *trial, int rank)
{
	return memory + (uint64_t)trial->devices->place[rank] * sizeof(struct mark);
}

/* -- Lend ------------------------------------------------------------------------------ */

static tutti_status make_own(struct trial *trial)
{
	struct tti_comm *comm = trial->comm;
	const struct mark mark = mark_of(trial, comm->rank, comm->rank);
	struct tti_gpu *gpu = comm->device->gpu;

	TTI_TRY(tti_gpu_memory_create(gpu, (size_t)trial->devices->nhere * sizeof(mark),
				      &trial->own));
	return tti_gpu_write(gpu, place_in(trial->own->at, trial, comm->rank), &mark, sizeof(mark));
}

static tutti_status lend(struct trial *trial)
{
	struct tti_comm *comm = trial->comm;
	struct offer *own = &trial->offers[comm->rank];

	if (comm->device) {
		own->status = make_own(trial);
		if (own->status == TUTTI_OK)
			own->is_lent = tti_gpu_memory_export(trial->own, &own->name) == TUTTI_OK;
	}
	TTI_TRY(tti_boot_all_gather(comm->boot, trial->offers, sizeof(*own)));
	for (int rank = 0; rank < comm->n; rank++)
		if (trial->offers[rank].status != TUTTI_OK)
			return tti_peers_fail(comm->boot, rank,
					      (tutti_status)trial->offers[rank].status);
	return TUTTI_OK;
}

/* -- Try ------------------------------------------------------------------------------- */

static void refuse(const struct trial *trial, int peer, const char *what)
{
	const struct tti_device_fact *own = &trial->devices->fact[trial->comm->rank];
	const struct tti_device_fact *fact = &trial->devices->fact[peer];

	tti_devices_refuse(trial->devices, trial->comm->rank, peer);
	tti_log(TTI_LOG_WARN, TTI_CORE,
		"GPU %d of rank %d and GPU %d of rank %d: the driver says that they reach each "
		"other's memory, but %s; their messages go by the host. An IOMMU, or ACS of PCI "
		"bridges, may be in the way: tutti doctor",
		own->ordinal, trial->comm->rank, fact->ordinal, peer, what);
}

/* Read whose memory it is, and write the own pattern there. */
static bool visit(const struct trial *trial, int peer, const struct tti_gpu_memory *theirs)
{
	struct tti_gpu *gpu = trial->comm->device->gpu;
	const int rank = trial->comm->rank;
	const struct mark mark = mark_of(trial, rank, peer);
	struct mark found;

	if (tti_gpu_read(gpu, &found, place_in(theirs->at, trial, peer), sizeof(found)) !=
	    TUTTI_OK) {
		refuse(trial, peer, "reading there fails");
		return false;
	}
	if (!is_mark(trial, &found, peer, peer)) {
		refuse(trial, peer, "what one reads there is not what the other wrote");
		return false;
	}
	if (tti_gpu_write(gpu, place_in(theirs->at, trial, rank), &mark, sizeof(mark)) !=
	    TUTTI_OK) {
		refuse(trial, peer, "writing there fails");
		return false;
	}
	return true;
}

static bool reach(const struct trial *trial, int peer)
{
	struct tti_gpu_memory *theirs;
	bool reached;

	if (tti_fault("core.reach"))
		return false;
	if (tti_gpu_memory_import(trial->comm->device->gpu, &trial->offers[peer].name, &theirs) !=
	    TUTTI_OK) {
		tti_log(TTI_LOG_INFO, TTI_CORE,
			"rank %d does not reach memory of the GPU of rank %d, so messages between "
			"them go by the host: %s",
			trial->comm->rank, peer, tti_error_text());
		return false;
	}
	reached = visit(trial, peer, theirs);
	tti_gpu_memory_free(theirs);
	return reached;
}

static tutti_status gather_rows(struct trial *trial, uint64_t *rows)
{
	return tti_boot_all_gather(trial->comm->boot, rows, tti_devices_row_bytes(trial->devices));
}

static tutti_status visit_all(struct trial *trial)
{
	const struct tti_comm *comm = trial->comm;
	struct tti_devices *devices = trial->devices;

	for (int peer = 0; peer < comm->n; peer++)
		if (tti_devices_near(devices, comm->rank, peer) && trial->offers[peer].is_lent &&
		    reach(trial, peer))
			tti_devices_set_reach(devices, comm->rank, peer);
	return gather_rows(trial, devices->reach);
}

/* -- Look -------------------------------------------------------------------------------- */

/* A rank that cannot read its own memory refuses all. */
static tutti_status look_all(struct trial *trial)
{
	const struct tti_comm *comm = trial->comm;

	for (int peer = 0; comm->device && peer < comm->n; peer++) {
		struct mark found = { { 0 } };

		if (!tti_devices_says_reach(trial->devices, peer, comm->rank))
			continue;
		if (tti_gpu_read(comm->device->gpu, &found, place_in(trial->own->at, trial, peer),
				 sizeof(found)) != TUTTI_OK ||
		    !is_mark(trial, &found, peer, comm->rank))
			refuse(trial, peer, "what one writes there does not arrive");
	}
	return gather_rows(trial, trial->devices->refused);
}

static tutti_status run(struct trial *trial)
{
	const int n = trial->comm->n;

	trial->offers = tti_calloc((size_t)n, sizeof(*trial->offers));
	if (!trial->offers)
		return tti_fail(TUTTI_ENOMEM, "devices of %d ranks: out of memory", n);
	TTI_TRY(lend(trial));
	TTI_TRY(visit_all(trial));
	return look_all(trial);
}

/* Nobody reaches anybody, which needs no proof, if all are on hosts of their own. */
tutti_status tti_devices_try(struct tti_comm *comm)
{
	struct trial trial = { .comm = comm, .devices = comm->devices };
	tutti_status st;

	if (comm->devices->nhere < 2)
		return TUTTI_OK;
	st = run(&trial);
	tti_gpu_memory_free(trial.own);
	tti_free(trial.offers);
	return st;
}
