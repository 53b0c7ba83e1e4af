/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/transfers.h"

#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

static void forget(struct tti_transfers_program *kept)
{
	tti_bound_free(kept->bound);
	tti_free(kept->step);
	*kept = (struct tti_transfers_program){ 0 };
}

void tti_transfers_release(struct tti_transfers *transfers)
{
	for (int i = 0; i < TTI_TRANSFERS_KEPT; i++)
		forget(&transfers->kept[i]);
	tti_free(transfers->list);
	tti_free(transfers->extents);
	tti_free(transfers->tags);
	tti_free(transfers->lent);
	*transfers = (struct tti_transfers){ 0 };
}

/* -- Programs -------------------------------------------------------------------- */

/* Chunks are numbered in the order of the list; how many. */
static int32_t number_chunks(struct tti_transfer *list, int32_t n)
{
	int32_t nchunks = 0;

	for (int32_t i = 0; i < n; i++)
		list[i].step.chunk = list[i].after < 0 ? nchunks++ : list[list[i].after].step.chunk;
	return nchunks;
}

static uint64_t hash_of(const struct tti_transfer *list, int32_t n)
{
	uint64_t hash = (uint64_t)n;

	for (int32_t i = 0; i < n; i++) {
		const struct tti_transfer_step *step = &list[i].step;

		hash = tti_hash_combine(hash, (uint64_t)step->kind << 62 |
						      (uint64_t)(uint32_t)step->peer << 31 |
						      (uint32_t)step->chunk);
	}
	return hash;
}

static bool is_of(const struct tti_transfers_program *kept, const struct tti_transfer *list,
		  int32_t n, uint64_t hash)
{
	if (!kept->step || kept->hash != hash || kept->n != n)
		return false;
	for (int32_t i = 0; i < n; i++)
		if (kept->step[i].kind != list[i].step.kind ||
		    kept->step[i].peer != list[i].step.peer ||
		    kept->step[i].chunk != list[i].step.chunk)
			return false;
	return true;
}

static tutti_status build(struct tti_comm *comm, const struct tti_transfers_program *kept,
			  int32_t nchunks, struct tti_bound **out)
{
	struct tti_program prog;
	struct tti_compiled compiled;
	tutti_status st;

	TTI_TRY(tti_send_recv_program(kept->step, kept->n, nchunks, comm->rank, comm->n, &prog));
	st = tti_compile(&prog, &compiled);
	tti_program_release(&prog);
	return st == TUTTI_OK ? tti_bound_create(&comm->engine, &compiled, out) : st;
}

/* In the place of the one that was not used for longest, or a free one. */
static tutti_status make(struct tti_comm *comm, const struct tti_transfer *list, int32_t n,
			 int32_t nchunks, uint64_t hash, struct tti_transfers_program **out)
{
	struct tti_transfers *transfers = &comm->transfers;
	struct tti_transfers_program *kept = &transfers->kept[0];
	tutti_status st;

	for (int i = 1; i < TTI_TRANSFERS_KEPT && kept->step; i++)
		if (!transfers->kept[i].step || transfers->kept[i].used < kept->used)
			kept = &transfers->kept[i];
	forget(kept);
	kept->step = tti_calloc((size_t)n, sizeof(*kept->step));
	if (!kept->step)
		return tti_fail(TUTTI_ENOMEM, "%d sends and receives: out of memory", n);
	for (int32_t i = 0; i < n; i++)
		kept->step[i] = list[i].step;
	kept->n = n;
	kept->hash = hash;
	st = build(comm, kept, nchunks, &kept->bound);
	if (st != TUTTI_OK)
		forget(kept);
	*out = kept;
	return st;
}

static tutti_status find(struct tti_comm *comm, const struct tti_transfer *list, int32_t n,
			 int32_t nchunks, struct tti_bound **out)
{
	struct tti_transfers *transfers = &comm->transfers;
	struct tti_transfers_program *kept = NULL;
	const uint64_t hash = hash_of(list, n);

	for (int i = 0; i < TTI_TRANSFERS_KEPT && !kept; i++)
		if (is_of(&transfers->kept[i], list, n, hash))
			kept = &transfers->kept[i];
	if (!kept)
		TTI_TRY(make(comm, list, n, nchunks, hash, &kept));
	kept->used = ++transfers->uses;
	*out = kept->bound;
	return TUTTI_OK;
}

/* -- Starting --------------------------------------------------------------------- */

static tutti_status make_room(struct tti_transfers *transfers, int32_t nchunks)
{
	const size_t n = (size_t)nchunks;

	if (transfers->room >= nchunks)
		return TUTTI_OK;
	tti_free(transfers->extents);
	tti_free(transfers->tags);
	tti_free(transfers->lent);
	transfers->extents = tti_calloc(n, sizeof(*transfers->extents));
	transfers->tags = tti_calloc(n, sizeof(*transfers->tags));
	transfers->lent = tti_calloc(n, sizeof(*transfers->lent));
	transfers->room = nchunks;
	if (transfers->extents && transfers->tags && transfers->lent)
		return TUTTI_OK;
	transfers->room = 0;
	return tti_fail(TUTTI_ENOMEM, "%d sends and receives: out of memory", nchunks);
}

/* Where the chunk of a transfer lies, counted in bytes from address 0, and how it is cut. */
static struct tti_extent extent_of(const struct tti_comm *comm, const struct tti_transfer *transfer)
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

tutti_status tti_transfers_start(struct tti_comm *comm, struct tti_transfer *list, int32_t n,
				 struct tti_job *job)
{
	const int32_t nchunks = number_chunks(list, n);
	struct tti_transfers *transfers = &comm->transfers;
	const struct tti_reducer reducer = { 0 };
	struct tti_layout layout = { .by_chunk = true, .type_size = 1, .parts = 1 };
	struct tti_bound *bound;
	bool lends = false;

	TTI_TRY(make_room(transfers, nchunks ? nchunks : 1));
	TTI_TRY(find(comm, list, n, nchunks ? nchunks : 1, &bound));
	for (int32_t i = 0; i < n; i++) {
		const int32_t chunk = list[i].step.chunk;

		layout.row_count += list[i].nbytes;
		if (list[i].nbytes > layout.chunk_count)
			layout.chunk_count = list[i].nbytes;
		transfers->extents[chunk] = extent_of(comm, &list[i]);
		transfers->tags[chunk] = list[i].tag;
		transfers->lent[chunk] = list[i].name;
		lends |= list[i].name.address != 0;
	}
	layout.extents = transfers->extents;
	layout.tags = transfers->tags;
	layout.lent = lends ? transfers->lent : NULL;
	return tti_job_program(job, &comm->engine, bound, &layout, &reducer, 1, 0);
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

static tutti_status make_list(struct tti_comm *comm)
{
	if (!comm->transfers.list)
		comm->transfers.list =
			tti_calloc(2 * (size_t)comm->n, sizeof(*comm->transfers.list));
	if (!comm->transfers.list)
		return tti_fail(TUTTI_ENOMEM, "transfers with %d ranks: out of memory", comm->n);
	return TUTTI_OK;
}

/* In round k with the k-th rank after this one and the k-th before, as in the program: what
 * goes to one rank comes from all others one after the other. */
tutti_status tti_pairs_start(struct tti_comm *comm, const struct tti_args *args, uint64_t sign,
			     struct tti_job *job)
{
	const bool in_place = args->coll != TUTTI_GATHER_V && args->coll != TUTTI_SCATTER_V &&
			      (args->coll == TUTTI_ALL_TO_ALL ? args->send == args->recv
							      : tti_counts_in_place(comm, args));
	const char *algorithm = "direct";
	const int n = comm->n;
	struct tti_transfer *list, *at;

	TTI_TRY(make_list(comm));
	at = list = comm->transfers.list;
	for (int round = 1; round < n; round++)
		at += fill(comm, args, sign, (comm->rank + round) % n, true, at);
	for (struct tti_transfer *i = list; i < at; i++)
		if (!in_place &&
		    tti_memory_offers(comm, i->step.peer, i->data, i->nbytes, &i->name))
			algorithm = "memory";
	for (int round = 1; round < n; round++) {
		if (!fill(comm, args, sign, (comm->rank + n - round) % n, false, at))
			continue;
		/* What goes to that rank is in round n - round. */
		if (in_place)
			at->after = n - round - 1;
		at++;
	}
	at += fill_own(comm, args, at);
	atomic_store_explicit(&comm->last_algorithm, algorithm, memory_order_relaxed);
	return tti_transfers_start(comm, list, (int32_t)(at - list), job);
}

void tti_pairs_expect(const struct tti_comm *comm, const struct tti_args *args, int peer, char *buf,
		      size_t size)
{
	struct tti_range range = { 0 };

	(void)tti_pair_range(comm, args, peer, false, &range);
	snprintf(buf, size, "rank %d takes %zu elements from rank %d, which sends another number",
		 comm->rank, range.count, peer);
}
