/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "boot/council.h"
#include "core/child.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"

/* -- Revoke ---------------------------------------------------------------------------- */

static void revoke(struct tti_comm *comm)
{
	char text[TTI_NEWS_TEXT];

	(void)snprintf(text, sizeof(text), "rank %d revoked the communicator", comm->rank);
	tti_comm_tell(comm, TUTTI_EREVOKED, comm->rank, text);
}

tutti_status tutti_comm_revoke(tutti_comm_t handle)
{
	struct tti_comm *comm;
	tutti_status st = TUTTI_OK;

	TTI_TRY(tti_handle_enter(handle, &comm));
	if (atomic_load(&comm->fate) == 0) {
		st = atomic_load(&comm->init_status) == TUTTI_OK ? TUTTI_OK : tti_comm_usable(comm);
		if (st == TUTTI_OK)
			revoke(comm);
	}
	tti_handle_leave(handle);
	return tti_handle_note(handle, st);
}

/* -- Shrink ---------------------------------------------------------------------------- */

struct shrink {
	struct tti_maker maker;
	tutti_comm_t handle; /* of the parent, entered */
	int flags;
	uint64_t k; /* the how many-th of its kind of the parent */
	uint64_t gone[];
};

/* Verdicts that are kept: a rank that comes late may still ask for one. */
static void keep_council(struct tti_comm *root, struct tti_council *council)
{
	struct tti_council *oldest;

	pthread_mutex_lock(&root->lock);
	oldest = root->councils[root->ncouncils % TTI_COUNCILS_KEPT];
	root->councils[root->ncouncils++ % TTI_COUNCILS_KEPT] = council;
	pthread_mutex_unlock(&root->lock);
	tti_council_free(oldest);
}

static tutti_status agree(struct shrink *shrink, const struct tti_boot_config *config)
{
	const struct tti_comm *parent = shrink->maker.parent;
	struct tti_council *council;
	tutti_status st;

	TTI_TRY(tti_council_create(parent->boot,
				   tti_child_context(parent, TTI_CHILD_COUNCIL, shrink->k),
				   shrink->gone, &council));
	st = tti_council_hold(council, config, shrink->gone);
	keep_council(parent->root, council);
	return st;
}

/* Everybody who is left, in their order. */
static tutti_status take_rest(struct shrink *shrink, struct tti_comm *comm, uint64_t *hash)
{
	const struct tti_comm *parent = shrink->maker.parent;
	int *ranks = tti_calloc((size_t)parent->n, sizeof(*ranks));
	int n = 0;

	if (!ranks)
		return tti_fail(TUTTI_ENOMEM, "what is left of %d ranks: out of memory", parent->n);
	for (int rank = 0; rank < parent->n; rank++) {
		if (tti_bit_has(shrink->gone, (size_t)rank))
			continue;
		if (rank == parent->rank)
			comm->rank = n;
		ranks[n++] = rank;
		*hash = tti_hash_combine(*hash, (uint64_t)rank);
	}
	comm->n = n;
	shrink->maker.ranks = ranks;
	return TUTTI_OK;
}

static tutti_status connect_rest(struct tti_maker *maker, struct tti_comm *comm,
				 struct tti_boot **boot)
{
	struct shrink *shrink = (struct shrink *)maker;
	const struct tti_comm *parent = maker->parent;
	const struct tti_boot_config config = { .timeout_ms = comm->boot_timeout.ms,
						.stop = &comm->stop };
	uint64_t hash = 0;

	if (shrink->flags & TUTTI_SHRINK_FAILED)
		TTI_TRY(agree(shrink, &config));
	TTI_TRY(take_rest(shrink, comm, &hash));
	tti_log(TTI_LOG_INFO, TTI_CORE, "%d of %d ranks are left", comm->n, parent->n);
	/* Ranks that leave out others than we do are not met. */
	comm->context = tti_hash_combine(tti_child_context(parent,
							   shrink->flags & TUTTI_SHRINK_FAILED
								   ? TTI_CHILD_REST
								   : TTI_CHILD_SHRINK,
							   shrink->k),
					 hash);
	return tti_boot_sub_create(parent->boot, comm->context, maker->ranks, comm->n, &config,
				   boot);
}

static void free_shrink(struct tti_maker *maker)
{
	struct shrink *shrink = (struct shrink *)maker;

	tti_handle_leave(shrink->handle);
	tti_free(maker->ranks);
	tti_free(shrink);
}

static tutti_status name_excluded(const struct tti_comm *parent, const int *exclude, int n,
				  uint64_t *gone)
{
	if (n < 0 || (n > 0 && !exclude))
		return tti_fail(TUTTI_EINVAL, "%d ranks to leave out, at %p", n,
				(const void *)exclude);
	for (int i = 0; i < n; i++) {
		if (exclude[i] < 0 || exclude[i] >= parent->n)
			return tti_fail(TUTTI_EINVAL,
					"rank %d is to be left out: there are 0 to %d", exclude[i],
					parent->n - 1);
		if (exclude[i] == parent->rank)
			return tti_fail(TUTTI_EINVAL,
					"rank %d is to be left out and calls itself: only those "
					"that stay do",
					parent->rank);
		tti_bit_set(gone, (size_t)exclude[i]);
	}
	return TUTTI_OK;
}

/* Lost or not: but it must have been there once. */
static tutti_status check_parent(struct tti_comm *parent, int flags)
{
	if (!(flags & TUTTI_SHRINK_FAILED))
		return tti_comm_usable(parent);
	if (atomic_load(&parent->init_status) != TUTTI_OK ||
	    atomic_load(&parent->state) == TTI_COMM_FINALIZED)
		return tti_fail(TUTTI_EUSAGE, "the communicator is %s: it cannot be shrunk",
				atomic_load(&parent->state) == TTI_COMM_FINALIZED ? "finalized"
										  : "not made yet");
	if (atomic_load(&parent->fate) == 0)
		revoke(parent);
	return TUTTI_OK;
}

static tutti_status start(tutti_comm_t handle, struct tti_comm *parent, struct shrink *shrink,
			  tutti_comm_t *out, const tutti_config *given)
{
	const tutti_config config = tti_child_config(parent, given);

	shrink->maker = (struct tti_maker){ .connect = connect_rest,
					    .free = free_shrink,
					    .is_final = shrink->flags & TUTTI_SHRINK_FAILED };
	/* With the flag it is made because the parent is revoked. */
	if (!(shrink->flags & TUTTI_SHRINK_FAILED))
		shrink->maker.follows = parent;
	shrink->handle = handle;
	shrink->k =
		shrink->flags & TUTTI_SHRINK_FAILED ? parent->ncouncil_calls++ : parent->nshrinks++;
	if (tti_handle_enter(handle, &shrink->maker.parent) != TUTTI_OK) {
		tti_free(shrink);
		return TUTTI_EUSAGE;
	}
	return tti_comm_make(&shrink->maker, parent->n, parent->rank, true, &config, out);
}

static tutti_status shrink(tutti_comm_t handle, struct tti_comm *parent, const int *exclude,
			   int nexclude, tutti_comm_t *out, const tutti_config *config, int flags)
{
	struct shrink *made;
	tutti_status st;

	TTI_TRY(check_parent(parent, flags));
	made = tti_zalloc(sizeof(*made) + TTI_BITSET_WORDS(parent->n) * sizeof(uint64_t));
	if (!made)
		return tti_fail(TUTTI_ENOMEM, "what is left of %d ranks: out of memory", parent->n);
	made->flags = flags;
	st = name_excluded(parent, exclude, nexclude, made->gone);
	if (st == TUTTI_OK)
		return start(handle, parent, made, out, config);
	tti_free(made);
	return st;
}

tutti_status tutti_comm_shrink(tutti_comm_t handle, const int *exclude, int nexclude,
			       tutti_comm_t *out, const tutti_config *config, int flags)
{
	struct tti_comm *parent;
	tutti_status st;

	if (!out)
		return tti_handle_fail(handle, TUTTI_EINVAL,
				       "out is NULL: pass the address of a tutti_comm_t");
	if (flags & ~TUTTI_SHRINK_FAILED)
		return tti_handle_fail(handle, TUTTI_EINVAL,
				       "flags are %#x: TUTTI_SHRINK_DEFAULT or TUTTI_SHRINK_FAILED",
				       (unsigned)flags);
	TTI_TRY(tti_handle_note(handle, tti_config_check(config)));
	TTI_TRY(tti_handle_enter(handle, &parent));
	st = shrink(handle, parent, exclude, nexclude, out, config, flags);
	tti_handle_leave(handle);
	return tti_handle_note(handle, st);
}
