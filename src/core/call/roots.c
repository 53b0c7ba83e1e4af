/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/roots.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "boot/watch/watch.h"
#include "core/call/args.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/prepare/signature.h"
#include "util/error.h"

void tti_roots_note(struct tti_comm *comm, uint64_t packed, size_t count, uint64_t choice)
{
	struct tti_roots *roots = &comm->roots;

	/* Without a device the thread that explains is the one that makes calls. */
	if (comm->device)
		pthread_mutex_lock(&comm->lock);
	roots->newest = (roots->newest + 1) % TTI_ROOTS_KEPT;
	roots->call[roots->newest] = (struct tti_rooted_call){ comm->seq, packed, choice, count };
	if (comm->device)
		pthread_mutex_unlock(&comm->lock);
}

/* The root that a rank named if its messages in such a call have that tag; -1: none. */
static int root_of(const struct tti_comm *comm, uint64_t seq, struct tti_args args, uint64_t choice,
		   uint64_t tag)
{
	const int own = args.root;

	for (args.root = 0; args.root < comm->n; args.root++)
		if (args.root != own &&
		    tti_signature_make(seq, tti_signature_part(&args) + choice) == tag)
			return args.root;
	return -1;
}

bool tti_roots_explain(struct tti_comm *comm, int peer, uint64_t tag, char *buf, size_t size)
{
	struct tti_rooted_call call[TTI_ROOTS_KEPT];

	pthread_mutex_lock(&comm->lock);
	memcpy(call, comm->roots.call, sizeof(call));
	pthread_mutex_unlock(&comm->lock);
	for (int i = 0; i < TTI_ROOTS_KEPT; i++) {
		const uint64_t seq = call[i].seq;
		const struct tti_args args = tti_args_unpack(call[i].packed, call[i].count);
		char text[TTI_CALL_TEXT];
		int root;

		if (seq == 0)
			continue;
		root = root_of(comm, seq, args, call[i].choice, tag);
		if (root < 0)
			continue;
		tti_args_format(&args, NULL, text, sizeof(text));
		snprintf(buf, size,
			 "ranks named different roots: in call %" PRIu64
			 ", %.72s, rank %d named root %d and rank %d root %d",
			 seq, text, comm->rank, args.root, peer, root);
		return true;
	}
	return false;
}

tutti_status tti_roots_check(struct tti_comm *comm)
{
	char text[TTI_FAILURE_TEXT];

	if (!comm->has_engine || comm->roots.call[comm->roots.newest].seq == 0 ||
	    atomic_load(&comm->async_error_is_known))
		return TUTTI_OK;
	/* From now on it is no failure if a peer closes: it may have looked already. */
	for (int i = 0; i < TTI_ENGINE_PORTS; i++)
		if (comm->ports[i])
			comm->ports[i]->parting = true;
	for (int peer = 0; peer < comm->n; peer++) {
		struct tti_link *link = comm->engine.links[peer];
		uint64_t tag;
		size_t nbytes;

		if (!link || !link->ops->peek(link, &nbytes, &tag) ||
		    !tti_roots_explain(comm, peer, tag, text, sizeof(text)))
			continue;
		/* Another rank may have found it first. */
		if (atomic_load(&comm->async_error) == 0)
			tti_comm_notify_failure(comm, TUTTI_EMISMATCH, peer, text);
		return tti_fail_quiet(TUTTI_EMISMATCH, "%s", text);
	}
	return TUTTI_OK;
}
