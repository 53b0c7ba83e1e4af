/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/pairs.h"

#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

void tti_pairs_release(struct tti_pairs *pairs)
{
	tti_free(pairs->list);
	tti_free(pairs->heads);
	tti_free(pairs->spare);
	*pairs = (struct tti_pairs){ 0 };
}

static tutti_status make_room(struct tti_comm *comm)
{
	struct tti_pairs *pairs = &comm->pairs;
	const size_t n = 2 * (size_t)comm->n;

	if (!pairs->list)
		pairs->list = tti_calloc(n, sizeof(*pairs->list));
	if (!pairs->heads)
		pairs->heads = tti_calloc(n, sizeof(*pairs->heads));
	if (!pairs->list || !pairs->heads)
		return tti_fail(TUTTI_ENOMEM, "transfers with %d ranks: out of memory", comm->n);
	return TUTTI_OK;
}

/* Counts that only the two know are part of what their messages must agree on. */
static uint64_t tag_of(const struct tti_args *args, uint64_t sign, size_t nbytes)
{
	if (args->coll == TUTTI_ALL_TO_ALL)
		return sign;
	return tti_hash_mix(sign + nbytes * UINT64_C(0xc2b2ae3d27d4eb4f)) | 1;
}

static bool fill(const struct tti_comm *comm, const struct tti_args *args, int peer, bool is_send,
		 struct tti_transfer *out)
{
	const size_t size = tutti_type_size(args->type);
	/* Only read from where it is a send. */
	const uintptr_t buffer = (uintptr_t)(is_send ? args->send : args->recv);
	struct tti_range range;

	if (!tti_pair_range(comm, args, peer, is_send, &range))
		return false;
	*out = (struct tti_transfer){ .peer = peer,
				      .is_send = is_send,
				      .data = (char *)(buffer + range.first * size),
				      .nbytes = range.count * size };
	return true;
}

/* In round k with the k-th rank after this one and the k-th before, as in the program: what
 * goes to one rank comes from all others one after the other. */
tutti_status tti_pairs_start(struct tti_comm *comm, const struct tti_args *args, uint64_t sign,
			     size_t message_bytes, struct tti_job *job)
{
	const bool in_place = args->send == args->recv && args->coll != TUTTI_GATHER_V &&
			      args->coll != TUTTI_SCATTER_V;
	const int n = comm->n;
	const char *algorithm = "direct";
	struct tti_transfer *at;

	TTI_TRY(make_room(comm));
	at = comm->pairs.list;
	for (int round = 1; round < n; round++) {
		const int next = (comm->rank + round) % n, prev = (comm->rank + n - round) % n;

		at += fill(comm, args, next, true, at);
		if (!fill(comm, args, prev, false, at))
			continue;
		/* What goes to that rank is in round n - round. */
		at->after = in_place ? &comm->pairs.list[2 * (n - round - 1)] : NULL;
		at++;
	}
	for (struct tti_transfer *i = comm->pairs.list; i < at; i++) {
		i->tag = tag_of(args, sign, i->nbytes);
		i->message_bytes = message_bytes;
		/* What is sent must be out before something is received in its place, and the
		 * peer may be waiting for the same. */
		if (i->is_send && !in_place &&
		    tti_memory_offers(comm, i->peer, i->data, i->nbytes, &i->name))
			algorithm = "registered";
	}
	tti_job_transfers_apart(job, &comm->engine, comm->pairs.list,
				(int32_t)(at - comm->pairs.list), comm->pairs.heads);
	atomic_store_explicit(&comm->last_algorithm, algorithm, memory_order_relaxed);
	return TUTTI_OK;
}

void tti_pairs_finish(const struct tti_comm *comm, const struct tti_args *args)
{
	struct tti_transfer from, to;

	if (fill(comm, args, comm->rank, true, &from) && fill(comm, args, comm->rank, false, &to) &&
	    from.nbytes > 0 && from.data != to.data)
		memcpy(to.data, from.data, from.nbytes);
}

void tti_pairs_expect(const struct tti_comm *comm, const struct tti_args *args, int peer, char *buf,
		      size_t size)
{
	struct tti_range range = { 0 };

	(void)tti_pair_range(comm, args, peer, false, &range);
	snprintf(buf, size, "rank %d takes %zu elements from rank %d, which sends another number",
		 comm->rank, range.count, peer);
}

tutti_status tti_pairs_set_apart(struct tti_comm *comm, const struct tti_args *args,
				 const void **out)
{
	const size_t nbytes = (size_t)comm->n * args->count * tutti_type_size(args->type);
	struct tti_pairs *pairs = &comm->pairs;

	if (pairs->spare_bytes < nbytes) {
		void *spare = tti_aligned_zalloc(4096, nbytes);

		if (!spare)
			return tti_fail(
				TUTTI_ENOMEM,
				"all_to_all in place needs %zu bytes more with algorithm %s: "
				"out of memory",
				nbytes, atomic_load(&comm->last_algorithm));
		tti_free(pairs->spare);
		pairs->spare = spare;
		pairs->spare_bytes = nbytes;
	}
	if (nbytes > 0)
		memcpy(pairs->spare, args->send, nbytes);
	*out = pairs->spare;
	return TUTTI_OK;
}
