/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/transfers.h"

#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

void tti_transfers_release(struct tti_transfers *transfers)
{
	tti_free(transfers->list);
	tti_free(transfers->steps);
	tti_free(transfers->extents);
	tti_free(transfers->tags);
	tti_free(transfers->lent);
	*transfers = (struct tti_transfers){ 0 };
}

tutti_status tti_transfers_list(struct tti_comm *comm, int32_t n, struct tti_transfer **out)
{
	struct tti_transfers *transfers = &comm->transfers;
	const size_t room = (size_t)n + 1; /* an empty list has one chunk */

	if (transfers->room <= n) {
		tti_transfers_release(transfers);
		*transfers = (struct tti_transfers){
			.list = tti_calloc(room, sizeof(*transfers->list)),
			.steps = tti_calloc(room, sizeof(*transfers->steps)),
			.extents = tti_calloc(room, sizeof(*transfers->extents)),
			.tags = tti_calloc(room, sizeof(*transfers->tags)),
			.lent = tti_calloc(room, sizeof(*transfers->lent)),
			.room = n + 1,
		};
	}
	if (!transfers->list || !transfers->steps || !transfers->extents || !transfers->tags ||
	    !transfers->lent) {
		tti_transfers_release(transfers);
		return tti_fail(TUTTI_ENOMEM, "%d sends and receives: out of memory", n);
	}
	*out = transfers->list;
	return TUTTI_OK;
}

struct tti_transfer tti_transfer_of(const struct tti_args *args, uintptr_t data)
{
	return (struct tti_transfer){
		.step = { .kind = args->is_send ? TTI_TRANSFER_SEND : TTI_TRANSFER_RECV,
			  .peer = args->root },
		.data = (char *)data, /* only read from where it is a send */
		.nbytes = args->count * tutti_type_size(args->type),
		.tag = tti_call_transfer_tag(args),
		.after = -1,
	};
}

struct tti_extent tti_transfer_extent(const struct tti_comm *comm,
				      const struct tti_transfer *transfer)
{
	const bool copies = transfer->step.kind == TTI_TRANSFER_COPY;
	const size_t slice =
		copies ? transfer->nbytes
		       : tti_piece_bytes(&comm->engine, transfer->step.peer, transfer->nbytes);

	return (struct tti_extent){
		.first = (uintptr_t)(copies ? transfer->from : transfer->data),
		.to = (uintptr_t)transfer->data,
		.count = transfer->nbytes,
		.slice = slice ? slice : 1,
	};
}

/* -- Starting --------------------------------------------------------------------- */

/* The program of the list, whose chunks are numbered in its order. */
static tutti_status find(struct tti_comm *comm, int32_t n, struct tti_bound **out)
{
	struct tti_transfer *list = comm->transfers.list;
	struct tti_transfer_step *steps = comm->transfers.steps;
	const size_t nbytes = (size_t)n * sizeof(*steps);
	struct tti_program prog;
	int32_t nchunks = 0;

	_Static_assert(sizeof(*steps) == 3 * sizeof(int32_t), "a list of steps has no padding");
	for (int32_t i = 0; i < n; i++) {
		list[i].step.chunk = list[i].after < 0 ? nchunks++ : steps[list[i].after].chunk;
		steps[i] = list[i].step;
	}
	*out = tti_programs_find(comm, TUTTI_SEND_RECV, steps, nbytes);
	if (*out)
		return TUTTI_OK;
	TTI_TRY(tti_send_recv_program(steps, n, nchunks ? nchunks : 1, comm->rank, comm->n, &prog));
	return tti_programs_add(comm, steps, nbytes, &prog, out);
}

tutti_status tti_transfers_start(struct tti_comm *comm, int32_t n, struct tti_job *job)
{
	const struct tti_transfers *transfers = &comm->transfers;
	const struct tti_reducer reducer = { 0 };
	struct tti_layout layout = { .extents = transfers->extents,
				     .by_chunk = true,
				     .tags = transfers->tags,
				     .type_size = 1,
				     .parts = 1 };
	struct tti_bound *bound;

	TTI_TRY(find(comm, n, &bound));
	for (int32_t i = 0; i < n; i++) {
		const struct tti_transfer *transfer = &transfers->list[i];
		const int32_t chunk = transfer->step.chunk;

		layout.row_count += transfer->nbytes;
		if (transfer->nbytes > layout.chunk_count)
			layout.chunk_count = transfer->nbytes;
		transfers->extents[chunk] = tti_transfer_extent(comm, transfer);
		transfers->tags[chunk] = transfer->tag;
		transfers->lent[chunk] = transfer->name;
		if (transfer->name.address)
			layout.lent = transfers->lent;
	}
	return tti_job_program(job, &comm->engine, bound, &layout, &reducer, 1, 0);
}

tutti_status tti_transfers_offer(struct tti_comm *comm, struct tti_transfer *list, int32_t n,
				 bool in_place)
{
	const char *algorithm = "direct";

	for (int32_t i = 0; i < n; i++) {
		struct tti_transfer *transfer = &list[i];
		unsigned ways;

		if (transfer->step.kind != TTI_TRANSFER_SEND)
			continue;
		TTI_TRY(tti_memory_ways(comm, TUTTI_SEND_RECV, transfer->nbytes, &ways));
		if (in_place)
			ways &= ~TTI_SEND_BY_MEMORY;
		TTI_TRY(tti_memory_offer(comm, ways, transfer->step.peer, transfer->data,
					 transfer->nbytes, &transfer->name));
		if (transfer->name.address)
			algorithm = "memory";
	}
	atomic_store_explicit(&comm->last_algorithm, algorithm, memory_order_relaxed);
	return TUTTI_OK;
}

/* The type and count of a send whose one message has that tag; false: of none. */
static bool find_send(const struct tti_args *recv, uint64_t tag, size_t nbytes,
		      struct tti_args *out)
{
	*out = *recv;
	for (int type = 0; type < TUTTI_TYPE_COUNT; type++) {
		out->type = (tutti_type)type;
		out->count = nbytes / tutti_type_size(out->type);
		if (nbytes % tutti_type_size(out->type) == 0 && tti_call_transfer_tag(out) == tag)
			return true;
	}
	return false;
}

bool tti_transfers_explain(const struct tti_comm *comm, const struct tti_args *args, int n,
			   int peer, uint64_t tag, size_t nbytes, char *buf, size_t size)
{
	struct tti_args sent;

	for (int i = 0; i < n; i++) {
		if (args[i].is_send || args[i].root != peer ||
		    !find_send(&args[i], tag, nbytes, &sent))
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

/* Counts that only the two know are part of what their messages must agree on. */
static uint64_t tag_of(const struct tti_args *args, uint64_t sign, size_t nbytes)
{
	if (args->coll == TUTTI_ALL_TO_ALL)
		return sign;
	return tti_hash_mix(sign + nbytes * UINT64_C(0xc2b2ae3d27d4eb4f)) | 1;
}

/* What goes to, or comes from, a peer; false: nothing, not even an empty message. */
static bool fill(const struct tti_comm *comm, const struct tti_args *args, uint64_t sign, int peer,
		 bool is_send, struct tti_transfer *out)
{
	const size_t size = tutti_type_size(args->type);
	/* Only read from where it is a send. */
	const uintptr_t buffer = (uintptr_t)(is_send ? args->send : args->recv);
	struct tti_range range;

	if (!tti_pair_range(comm, args, peer, is_send, &range))
		return false;
	*out = (struct tti_transfer){
		.step = { .kind = is_send ? TTI_TRANSFER_SEND : TTI_TRANSFER_RECV, .peer = peer },
		.data = (char *)(buffer + range.first * size),
		.nbytes = range.count * size,
		.tag = tag_of(args, sign, range.count * size),
		.after = -1,
	};
	return true;
}

/* What this rank has for itself, unless it is there already. */
static bool fill_own(const struct tti_comm *comm, const struct tti_args *args,
		     struct tti_transfer *out)
{
	struct tti_transfer from;

	if (!fill(comm, args, 0, comm->rank, true, &from) ||
	    !fill(comm, args, 0, comm->rank, false, out) || out->nbytes == 0 ||
	    from.data == out->data)
		return false;
	out->step.kind = TTI_TRANSFER_COPY;
	out->from = from.data;
	return true;
}

/* In round k with the k-th rank after this one and the k-th before, as in the program: what
 * goes to one rank comes from all others one after the other. */
tutti_status tti_pairs_start(struct tti_comm *comm, const struct tti_args *args, uint64_t sign,
			     struct tti_job *job)
{
	const bool in_place = args->coll != TUTTI_GATHER_V && args->coll != TUTTI_SCATTER_V &&
			      tti_args_in_place(comm, args);
	const int n = comm->n;
	struct tti_transfer *list, *at;

	TTI_TRY(tti_transfers_list(comm, 2 * n, &list));
	at = list;
	for (int round = 1; round < n; round++)
		at += fill(comm, args, sign, (comm->rank + round) % n, true, at);
	TTI_TRY(tti_transfers_offer(comm, list, (int32_t)(at - list), in_place));
	for (int round = 1; round < n; round++) {
		if (!fill(comm, args, sign, (comm->rank + n - round) % n, false, at))
			continue;
		/* What goes to that rank is in round n - round. */
		if (in_place)
			at->after = n - round - 1;
		at++;
	}
	at += fill_own(comm, args, at);
	return tti_transfers_start(comm, (int32_t)(at - list), job);
}

void tti_pairs_expect(const struct tti_comm *comm, const struct tti_args *args, int peer, char *buf,
		      size_t size)
{
	struct tti_range range = { 0 };

	(void)tti_pair_range(comm, args, peer, false, &range);
	snprintf(buf, size, "rank %d takes %zu elements from rank %d, which sends another number",
		 comm->rank, range.count, peer);
}
