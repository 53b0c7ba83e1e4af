/* SPDX-License-Identifier: BSD-3-Clause */
/* Flights whose program reads and writes memory of peers. */
#include "core/call/args.h"
#include "core/comm.h"
#include "core/device/flight.h"
#include "core/device/lend.h"
#include "core/device/open.h"
#include "core/prepare/layout.h"
#include "core/prepare/memory.h"
#include "core/prepare/prepared.h"
#include "util/error.h"
#include "util/mem.h"

_Static_assert(TUTTI_COLLECTIVE_COUNT < TTI_DEV_KINDS_MAX, "each collective is a kind of calls");

/* Those of both programs, each once. */
static tutti_status find_peers(struct tti_flight *flight)
{
	const struct tti_device_program *const programs[] = { flight->main.program,
							      flight->fallback.program };
	const size_t n = (size_t)flight->comm->n;
	bool *seen = tti_calloc(n, sizeof(*seen));

	flight->peers = tti_calloc(n, sizeof(*flight->peers));
	for (int i = 0; seen && flight->peers && i < 2; i++)
		for (int k = 0; k < programs[i]->npeers; k++) {
			const int32_t peer = programs[i]->peers[k];

			if (!seen[peer])
				flight->peers[flight->npeers++] = peer;
			seen[peer] = true;
		}
	tti_free(seen);
	if (!seen || !flight->peers)
		return tti_fail(TUTTI_ENOMEM, "a call of rank %d: out of memory",
				flight->comm->rank);
	return TUTTI_OK;
}

/* Of all blocks, once a communicator. */
static tutti_status need_told(struct tti_device *device)
{
	if (device->told_at)
		return TUTTI_OK;
	return tti_device_alloc(
		device, device->shape.nblocks * (size_t)device->n * sizeof(struct tti_dev_buffers),
		&device->told_at);
}

/* *reached: whether all peers reach a buffer, or need not. */
static tutti_status lend(struct tti_flight *flight, int which, uint64_t buffer, size_t nbytes,
			 bool *reached)
{
	if (nbytes == 0)
		return TUTTI_OK;
	TTI_TRY(tti_lend(flight->comm, buffer, nbytes, &flight->lent[which]));
	*reached &= flight->lent[which] != NULL;
	return TUTTI_OK;
}

static tutti_status set_buffers(struct tti_flight *flight, const struct tti_flight_buffers *buffers)
{
	struct tti_dev_call *call = &flight->main.call;
	const struct tti_lent *const *lent = flight->lent;
	bool reached = true;

	TTI_TRY(lend(flight, 0, buffers->input, buffers->input_bytes, &reached));
	TTI_TRY(lend(flight, 1, buffers->output, buffers->output_bytes, &reached));
	if (!reached) {
		call->inputs = TTI_DEV_UNREACHED;
		return TUTTI_OK;
	}
	if (lent[0]) {
		call->inputs = lent[0]->table;
		call->input_shift = call->input - lent[0]->base;
	}
	if (lent[1]) {
		call->outputs = lent[1]->table;
		call->output_shift = call->output - lent[1]->base;
	}
	return TUTTI_OK;
}

static tutti_status prefer(struct tti_flight *flight, const struct tti_args *args,
			   const struct tti_prepared *prepared)
{
	struct tti_comm *comm = flight->comm;
	struct tti_dev_call *call = &flight->main.call;
	const uint64_t tag = call->tag;
	const int nchunks = tti_executable_nchunks(prepared->memory);
	struct tti_flight_buffers buffers;
	struct tti_layout layout;

	flight->fallback = flight->main;
	flight->main = (struct tti_flight_part){ 0 };
	tti_memory_touched(comm, args, &buffers);
	/* Steps of as much as a message holds, the same on all ranks. */
	TTI_TRY(tti_layout_of(comm, args, nchunks, comm->slot_bytes, &layout));
	TTI_TRY(tti_flight_fill(flight, &flight->main, prepared->memory, &layout, args,
				comm->slot_bytes, tag));
	TTI_TRY(find_peers(flight));
	TTI_TRY(need_told(comm->device));
	TTI_TRY(set_buffers(flight, &buffers));
	call->told = comm->device->told_at;
	call->has_fallback = 1;
	call->kind = prepared->is_forced ? 0 : (int16_t)(1 + args->coll);
	if (args->coll == TUTTI_ALL_GATHER_V)
		call->by_row = nchunks / comm->n;
	return TUTTI_OK;
}

void tti_flight_prefer_memory(struct tti_job *job, const struct tti_args *args,
			      const struct tti_prepared *prepared)
{
	tutti_status st;

	/* A memory program reads the inputs of others, but only their ranks know the scalars. */
	if (!prepared->maps || args->custom || job->status != TUTTI_AGAIN)
		return;
	st = prefer(tti_flight_of(job), args, prepared);
	if (st != TUTTI_OK)
		job->status = st;
}
