/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/prepare/transfers.h"

#include <stdio.h>

#include "core/call/args.h"
#include "core/call/call.h"
#include "core/call/counts.h"
#include "core/comm.h"
#include "core/device/flight.h"
#include "core/prepare/layout.h"
#include "core/prepare/memory.h"
#include "core/prepare/programs.h"
#include "core/prepare/signature.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/measured.h"

#define CACHE_LINE 64

void tti_transfers_release(struct tti_transfers *transfers)
{
	tti_vec_release(&transfers->list);
	tti_vec_release(&transfers->steps);
}

static bool has_device(const struct tti_devices *devices, int rank)
{
	return devices->fact[rank].ordinal >= 0;
}

/* Bytes of the messages of a transfer: both its ranks work them out. `args`: of the call. */
static size_t piece_bytes(const struct tti_comm *comm, const struct tti_args *args, int peer,
			  size_t nbytes)
{
	const struct tti_devices *devices = comm->devices;
	const size_t many = nbytes / TTI_TRANSFER_PIECES / CACHE_LINE * CACHE_LINE;
	bool own, other;
	size_t lanes, piece;

	if (!devices || args->part_of)
		return tti_piece_bytes(&comm->engine, peer, nbytes);
	own = has_device(devices, comm->rank);
	other = has_device(devices, peer);
	lanes = own || other ? (size_t)devices->shape.nblocks * devices->shape.slot_bytes
			     : SIZE_MAX;
	if (own && (peer == comm->rank || tti_devices_reach(devices, comm->rank, peer)))
		return lanes;
	/* Between two proxies a message may be longer than a slot of the link, and is so where that
	 * leaves many of them. */
	piece = tti_piece_bytes(&comm->engine, peer, nbytes);
	if (own && other && piece < many)
		piece = many;
	return piece < lanes ? piece : lanes;
}

static void make(const struct tti_comm *comm, const struct tti_args *args, bool is_send, int peer,
		 uintptr_t data, size_t nbytes, uint64_t tag, struct tti_transfer *out)
{
	*out = (struct tti_transfer){
		.step = { .kind = is_send ? TTI_TRANSFER_SEND : TTI_TRANSFER_RECV, .peer = peer },
		.after = -1,
		.extent = { .first = data,
			    .to = data,
			    .count = nbytes,
			    .slice = piece_bytes(comm, args, peer, nbytes),
			    .tag = tag },
	};
}

void tti_transfer_of(const struct tti_comm *comm, const struct tti_args *args, uintptr_t data,
		     struct tti_transfer *out)
{
	make(comm, args, args->is_send, args->root, data, args->count * tutti_type_size(args->type),
	     tti_signature_transfer(args), out);
}

/* -- A list ------------------------------------------------------------------------ */

/* An empty list with room for n. */
static tutti_status begin(struct tti_comm *comm, size_t n)
{
	struct tti_transfers *transfers = &comm->transfers;

	transfers->list.n = 0;
	if (n <= transfers->list.room)
		return TUTTI_OK;
	/* An empty list has one chunk. */
	TTI_TRY(tti_extents_need(&comm->extents, n + 1));
	if (!tti_vec_reserve((void **)&transfers->steps.at, &transfers->steps.room, n,
			     sizeof(*transfers->steps.at)) ||
	    !tti_vec_reserve((void **)&transfers->list.at, &transfers->list.room, n,
			     sizeof(*transfers->list.at)))
		return tti_fail(TUTTI_ENOMEM, "%zu sends and receives: out of memory", n);
	return TUTTI_OK;
}

static struct tti_transfer *next(struct tti_comm *comm)
{
	return &comm->transfers.list.at[comm->transfers.list.n];
}

/* Choose messages or memory for the sends of the list. in_place: receives wait for the sends, so
 * all go by messages: two ranks that offer their data would wait for each other. */
static tutti_status offer(struct tti_comm *comm, bool in_place)
{
	const char *algorithm = "direct";

	for (size_t i = 0; i < comm->transfers.list.n; i++) {
		const struct tti_transfer_step *step = &comm->transfers.list.at[i].step;
		struct tti_extent *extent = &comm->transfers.list.at[i].extent;
		unsigned ways;

		if (step->kind != TTI_TRANSFER_SEND)
			continue;
		TTI_TRY(tti_memory_ways(comm, TUTTI_SEND_RECV, extent->count, &ways));
		if (in_place)
			ways &= ~TTI_SEND_BY_MEMORY;
		TTI_TRY(tti_memory_offer(comm, ways, step->peer, (const void *)extent->first,
					 extent->count, &extent->rndv));
		if (extent->rndv.reach != TTI_REACH_SLOTS)
			algorithm = "memory";
	}
	atomic_store_explicit(&comm->last_algorithm, algorithm, memory_order_relaxed);
	return TUTTI_OK;
}

/* The program of the list, whose chunks are numbered in its order. */
static tutti_status find(struct tti_comm *comm, struct tti_executable **out)
{
	struct tti_transfers *transfers = &comm->transfers;
	struct tti_transfer_step *steps = transfers->steps.at;
	const int32_t n = (int32_t)transfers->list.n;
	const size_t nbytes = (size_t)n * sizeof(*steps);
	struct tti_program prog;
	int32_t nchunks = 0;

	_Static_assert(sizeof(*steps) == 3 * sizeof(int32_t), "a list of steps has no padding");
	for (int32_t i = 0; i < n; i++) {
		struct tti_transfer *transfer = &transfers->list.at[i];

		transfer->step.chunk =
			transfer->after < 0 ? nchunks++ : steps[transfer->after].chunk;
		steps[i] = transfer->step;
	}
	*out = tti_programs_find(comm, TUTTI_SEND_RECV, steps, nbytes);
	if (*out)
		return TUTTI_OK;
	TTI_TRY(tti_send_recv_program(steps, n, nchunks ? nchunks : 1, comm->rank, comm->n, &prog));
	return tti_programs_add(comm, steps, nbytes, &prog, out);
}

/* Start the whole list at once; transfers of a peer in one direction keep their order. */
static tutti_status start(struct tti_comm *comm, bool on_device, struct tti_job *job)
{
	const struct tti_reducer reducer = { 0 };
	struct tti_layout layout = {
		.extents = comm->extents.at, .by_chunk = true, .type_size = 1, .parts = 1
	};
	struct tti_executable *executable;

	TTI_TRY(find(comm, &executable));
	for (size_t i = 0; i < comm->transfers.list.n; i++) {
		const struct tti_transfer *transfer = &comm->transfers.list.at[i];
		const struct tti_extent *extent = &transfer->extent;

		layout.row_count += extent->count;
		if (extent->count > layout.chunk_count)
			layout.chunk_count = extent->count;
		layout.has_rndv |= extent->rndv.reach != TTI_REACH_SLOTS;
		comm->extents.at[transfer->step.chunk] = *extent;
	}
	if (on_device)
		return tti_flight_start(comm, job, executable, &layout, NULL, 1, 0);
	return tti_job_program(job, &comm->engine, executable, &layout, &reducer, 1, 0);
}

/* A kernel has no lanes to its own rank: what the rank sends to itself is copied. The first send goes
 * to the first receive, and so on. */
static tutti_status copy_own(struct tti_comm *comm)
{
	struct tti_transfer *list = comm->transfers.list.at;
	const size_t n = comm->transfers.list.n;
	size_t kept = 0, k = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i].step.peer != comm->rank || list[i].step.kind != TTI_TRANSFER_SEND)
			continue;
		/* The group has as many receives. */
		while (list[k].step.peer != comm->rank || list[k].step.kind != TTI_TRANSFER_RECV)
			k++;
		if (list[i].extent.tag != list[k].extent.tag)
			return tti_fail(TUTTI_EMISMATCH,
					"a send and its receive differ: rank %d sends itself %zu "
					"bytes and receives %zu, or of another type",
					comm->rank, list[i].extent.count, list[k].extent.count);
		list[i].step.kind = TTI_TRANSFER_COPY;
		list[i].extent.to = list[k].extent.to;
		list[i].extent.slice = list[i].extent.count ? list[i].extent.count : 1;
		k++;
	}
	for (size_t i = 0; i < n; i++)
		if (list[i].step.peer != comm->rank || list[i].step.kind == TTI_TRANSFER_COPY)
			list[kept++] = list[i];
	comm->transfers.list.n = kept;
	return TUTTI_OK;
}

tutti_status tti_transfers_start(struct tti_comm *comm, const struct tti_args *args, int n,
				 struct tti_job *job)
{
	const bool on_device = tti_call_is_on_device(comm, args);

	TTI_TRY(begin(comm, (size_t)n));
	for (int i = 0; i < n; i++, comm->transfers.list.n++)
		tti_transfer_of(comm, &args[i],
				(uintptr_t)(args[i].is_send ? args[i].send : args[i].recv),
				next(comm));
	if (on_device)
		TTI_TRY(copy_own(comm));
	TTI_TRY(offer(comm, false));
	return start(comm, on_device, job);
}

/* The type and count of a send whose only message has that tag; false: there is none. */
static bool find_send(const struct tti_args *recv, uint64_t tag, size_t nbytes,
		      struct tti_args *out)
{
	*out = *recv;
	for (int type = 0; type < TUTTI_TYPE_COUNT; type++) {
		out->type = (tutti_type)type;
		out->count = nbytes / tutti_type_size(out->type);
		if (nbytes % tutti_type_size(out->type) == 0 && tti_signature_transfer(out) == tag)
			return true;
	}
	return false;
}

bool tti_transfers_explain(const struct tti_comm *comm, const struct tti_args *args, int n,
			   const struct tti_job *job, char *buf, size_t size)
{
	const int peer = job->mismatch_peer;
	struct tti_args sent;

	for (int i = 0; i < n; i++) {
		if (args[i].is_send || args[i].root != peer ||
		    !find_send(&args[i], job->mismatch_tag, job->mismatch_bytes, &sent))
			continue;
		snprintf(buf, size,
			 "a send and its receive differ: rank %d sends %zu x %s to rank %d, which "
			 "receives %zu x %s",
			 peer, sent.count, tutti_type_name(sent.type), comm->rank, args[i].count,
			 tutti_type_name(args[i].type));
		return true;
	}
	return false;
}

/* -- By pairs ---------------------------------------------------------------------- */

/* The tag has the count, as only the two ranks know it and must agree on it. */
static uint64_t tag_of(const struct tti_args *args, uint64_t sign, size_t nbytes)
{
	if (args->coll == TUTTI_ALL_TO_ALL)
		return sign;
	return tti_hash_mix(sign + nbytes * UINT64_C(0xc2b2ae3d27d4eb4f)) | 1;
}

/* The transfer to, or from, a peer; false: there is none, not even an empty message. */
static bool find_pair(const struct tti_comm *comm, const struct tti_args *args, uint64_t sign,
		      int peer, bool is_send, struct tti_transfer *out)
{
	const size_t size = tutti_type_size(args->type);
	const uintptr_t buffer = (uintptr_t)(is_send ? args->send : args->recv);
	struct tti_range range;

	if (!tti_pair_range(comm, args, peer, is_send, &range))
		return false;
	make(comm, args, is_send, peer, buffer + range.first * size, range.count * size,
	     tag_of(args, sign, range.count * size), out);
	return true;
}

/* Copy what this rank has for itself, unless it is there already. */
static void add_own(struct tti_comm *comm, const struct tti_args *args)
{
	struct tti_transfer from, *own = next(comm);

	if (!find_pair(comm, args, 0, comm->rank, true, &from) ||
	    !find_pair(comm, args, 0, comm->rank, false, own) || own->extent.count == 0 ||
	    from.extent.first == own->extent.to)
		return;
	own->step.kind = TTI_TRANSFER_COPY;
	own->extent.first = from.extent.first;
	own->extent.slice = own->extent.count;
	comm->transfers.list.n++;
}

/* Round k sends to the k-th rank after this one and receives from the k-th before it, as the
 * program does, so that messages to one rank come from the others one after the other. */
tutti_status tti_pairs_start(struct tti_comm *comm, const struct tti_args *args, uint64_t sign,
			     struct tti_job *job)
{
	const bool in_place = args->coll != TUTTI_GATHER_V && args->coll != TUTTI_SCATTER_V &&
			      tti_args_in_place(comm, args);
	const int n = comm->n;

	TTI_TRY(begin(comm, 2 * (size_t)n));
	for (int round = 1; round < n; round++)
		comm->transfers.list.n +=
			find_pair(comm, args, sign, (comm->rank + round) % n, true, next(comm));
	TTI_TRY(offer(comm, in_place));
	for (int round = 1; round < n; round++) {
		if (!find_pair(comm, args, sign, (comm->rank + n - round) % n, false, next(comm)))
			continue;
		/* The send to that rank is in round n - round. */
		if (in_place)
			next(comm)->after = n - round - 1;
		comm->transfers.list.n++;
	}
	add_own(comm, args);
	return start(comm, tti_call_is_on_device(comm, args), job);
}

void tti_pairs_expect(const struct tti_comm *comm, const struct tti_args *args, int peer, char *buf,
		      size_t size)
{
	struct tti_range range = { 0 };

	(void)tti_pair_range(comm, args, peer, false, &range);
	snprintf(buf, size, "rank %d takes %zu elements from rank %d, which sends another number",
		 comm->rank, range.count, peer);
}
