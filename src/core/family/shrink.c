/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "boot/boot.h"
#include "boot/watch/agreement.h"
#include "boot/watch/watch.h"
#include "core/comm_error.h"
#include "core/family/child.h"
#include "core/handle.h"
#include "core/init/config.h"
#include "core/init/init.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"

/* -- Revoke ---------------------------------------------------------------------------- */

static void revoke(struct tti_comm *comm)
{
	char text[TTI_FAILURE_TEXT];

	(void)snprintf(text, sizeof(text), "rank %d revoked the communicator", comm->rank);
	tti_comm_notify_failure(comm, TUTTI_EREVOKED, comm->rank, text);
}

tutti_status tutti_comm_revoke(tutti_comm_t handle)
{
	struct tti_comm *comm;
	tutti_status st = TUTTI_OK;

	TTI_TRY(tti_handle_enter(handle, &comm));
	if (atomic_load(&comm->async_error) == 0) {
		st = atomic_load(&comm->init_status) == TUTTI_OK ? TUTTI_OK : tti_comm_usable(comm);
		if (st == TUTTI_OK)
			revoke(comm);
	}
	return tti_handle_end(handle, comm, st);
}

/* -- Shrink ---------------------------------------------------------------------------- */

struct shrink {
	struct tti_maker maker;
	tutti_comm_t handle; /* of the parent, entered */
	int flags;
	/* How many of its kind the parent made before, if ranks are named: of the same ones. */
	uint64_t k;
	int *ranks; /* [parent->n] */
	struct tti_agreement *agreement;
	uint64_t gone[];
};

/* Agreements are kept, as a late rank may still ask for the decision. */
static void keep_agreement(struct tti_comm *root, struct tti_agreement *agreement)
{
	struct tti_agreement *oldest;

	pthread_mutex_lock(&root->lock);
	oldest = root->agreements[root->nagreements % TTI_AGREEMENTS_KEPT];
	root->agreements[root->nagreements++ % TTI_AGREEMENTS_KEPT] = agreement;
	pthread_mutex_unlock(&root->lock);
	tti_agreement_free(oldest);
}

static tutti_status agree(struct shrink *shrink, const struct tti_boot_config *config)
{
	const struct tti_comm *parent = shrink->maker.parent;
	struct tti_agreement *agreement;
	tutti_status st;

	TTI_TRY(tti_agreement_create(parent->boot,
				     tti_child_context(parent, TTI_CHILD_AGREEMENT, shrink->k),
				     shrink->gone, &agreement));
	st = tti_agreement_wait(agreement, config, shrink->gone);
	keep_agreement(parent->root, agreement);
	shrink->agreement = agreement;
	return st;
}

/* While the remaining ranks meet. Later agreements may have replaced this one. */
static tutti_status on_wait(void *self, int peer, bool is_late)
{
	const struct shrink *shrink = self;
	struct tti_comm *root = shrink->maker.parent->root;
	tutti_status st = TUTTI_AGAIN;

	(void)peer;
	(void)is_late;
	pthread_mutex_lock(&root->lock);
	for (int i = 0; i < TTI_AGREEMENTS_KEPT; i++)
		if (shrink->agreement && root->agreements[i] == shrink->agreement)
			st = tti_agreement_check(shrink->agreement);
	pthread_mutex_unlock(&root->lock);
	return st;
}

/* The context has the ranks, so ranks that exclude others are not met. */
static uint64_t context_of(const struct tti_comm *parent, int flags, uint64_t k, uint64_t hash)
{
	return tti_hash_combine(
		tti_child_context(
			parent, flags & TUTTI_SHRINK_FAILED ? TTI_CHILD_REST : TTI_CHILD_SHRINK, k),
		hash);
}

/* Everybody who is left, in their order. */
static void take_rest(struct shrink *shrink, struct tti_comm *comm)
{
	const struct tti_comm *parent = shrink->maker.parent;
	int *ranks = shrink->ranks, n = 0;
	uint64_t hash = 0;

	for (int rank = 0; rank < parent->n; rank++) {
		if (tti_bit_has(shrink->gone, (size_t)rank))
			continue;
		if (rank == parent->rank)
			comm->rank = n;
		ranks[n++] = rank;
		hash = tti_hash_combine(hash, (uint64_t)rank);
	}
	comm->n = n;
	comm->context = context_of(parent, shrink->flags, shrink->k, hash);
	shrink->maker.ranks = ranks;
}

static tutti_status connect_rest(struct tti_maker *maker, struct tti_comm *comm,
				 struct tti_boot **boot)
{
	struct shrink *shrink = (struct shrink *)maker;
	struct tti_comm *parent = maker->parent;
	const struct tti_boot_config config = { .timeout_ms = comm->boot_timeout.ms,
						.stop = &comm->stop,
						.on_wait = on_wait,
						.self = shrink };

	if (shrink->flags & TUTTI_SHRINK_FAILED)
		TTI_TRY(agree(shrink, &config));
	take_rest(shrink, comm);
	tti_log(TTI_LOG_INFO, TTI_CORE, "%d of %d ranks are left", comm->n, parent->n);
	maker->awaited =
		(struct tti_rendezvous){ parent, comm->context, maker->ranks, comm->n, comm->rank };
	return tti_child_come(maker, &config, boot);
}

static void free_shrink(struct tti_maker *maker)
{
	struct shrink *shrink = (struct shrink *)maker;

	tti_handle_leave(shrink->handle);
	tti_free(shrink->ranks);
	tti_free(shrink);
}

static tutti_status check_excluded(const struct tti_comm *parent, const int *exclude, int n)
{
	if (n < 0 || (n > 0 && !exclude))
		return tti_fail(TUTTI_EINVAL,
				"nexclude is %d and exclude is %p: pass 0, or as many ranks as the "
				"list has",
				n, (const void *)exclude);
	for (int i = 0; i < n; i++) {
		if (exclude[i] < 0 || exclude[i] >= parent->n)
			return tti_fail(TUTTI_EINVAL,
					"rank %d is to be left out: there are 0 to %d", exclude[i],
					parent->n - 1);
		if (exclude[i] == parent->rank)
			return tti_fail(
				TUTTI_EINVAL,
				"rank %d is to be left out, but calls tutti_comm_shrink(): only "
				"ranks that stay call it",
				parent->rank);
	}
	return TUTTI_OK;
}

static bool is_in(const int *list, int n, int rank)
{
	while (n > 0 && list[n - 1] != rank)
		n--;
	return n > 0;
}

/* Of ranks with this hash; NULL: it is the first time, and out of memory. */
static struct tti_shrink_count *find_count(struct tti_shrinks *shrinks, uint64_t hash)
{
	const struct tti_shrink_count fresh = { .ranks = hash };

	if (shrinks->first.times == 0)
		shrinks->first = fresh;
	if (shrinks->first.ranks == hash)
		return &shrinks->first;
	for (size_t i = 0; i < shrinks->others.n; i++)
		if (shrinks->others.at[i].ranks == hash)
			return &shrinks->others.at[i];
	return tti_vec_push(&shrinks->others, fresh) ? &shrinks->others.at[shrinks->others.n - 1]
						     : NULL;
}

/* A rank without memory can still decline, and is in step afterwards, unless it is the first time for
 * these ranks and not the first of all. Excluded ranks are not told, as they do not wait. */
static tutti_status await_rest(struct tti_comm *parent, const int *exclude, int n, uint64_t *k,
			       struct tti_rendezvous *out)
{
	struct tti_rendezvous awaited = { .parent = parent, .n = parent->n };
	struct tti_shrink_count *count;
	uint64_t hash = 0;

	for (int rank = 0; rank < parent->n; rank++) {
		if (is_in(exclude, n, rank))
			continue;
		awaited.rank += rank < parent->rank;
		hash = tti_hash_combine(hash, (uint64_t)rank);
	}
	count = find_count(&parent->shrinks, hash);
	*k = count ? count->times++ : 0;
	awaited.context = context_of(parent, TUTTI_SHRINK_DEFAULT, *k, hash);
	*out = awaited;
	return count ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "a list of ranks: out of memory");
}

/* A lost parent is fine, but its init must have succeeded. */
static tutti_status check_parent(struct tti_comm *parent, int flags)
{
	if (!(flags & TUTTI_SHRINK_FAILED))
		return tti_comm_usable(parent);
	if (atomic_load(&parent->init_status) != TUTTI_OK ||
	    atomic_load(&parent->state) == TTI_COMM_FINALIZED)
		return tti_fail(TUTTI_EUSAGE, "the communicator is %s: it cannot be shrunk",
				atomic_load(&parent->state) == TTI_COMM_FINALIZED ? "finalized"
										  : "not made yet");
	if (atomic_load(&parent->async_error) == 0)
		revoke(parent);
	return TUTTI_OK;
}

static struct shrink *make_room(const struct tti_comm *parent)
{
	struct shrink *made =
		tti_zalloc(sizeof(*made) + TTI_BITSET_WORDS(parent->n) * sizeof(uint64_t));

	if (made)
		made->ranks = tti_calloc((size_t)parent->n, sizeof(*made->ranks));
	if (made && made->ranks)
		return made;
	tti_free(made);
	return NULL;
}

static tutti_status shrink(tutti_comm_t handle, struct tti_comm *parent, const int *exclude,
			   int nexclude, tutti_comm_t *out, const tutti_config *given, int flags)
{
	const bool agrees = flags & TUTTI_SHRINK_FAILED;
	struct tti_rendezvous awaited = { 0 };
	struct shrink *made = NULL;
	tutti_status st = TUTTI_OK;
	tutti_config config;
	uint64_t k;

	TTI_TRY(check_parent(parent, flags));
	TTI_TRY(check_excluded(parent, exclude, nexclude));
	config = tti_child_config(parent, given);
	/* Count before anything can fail on this rank alone, so that the next one is in step. */
	if (agrees)
		k = parent->nagreement_calls++;
	else
		st = await_rest(parent, exclude, nexclude, &k, &awaited);
	if (st == TUTTI_OK)
		made = make_room(parent);
	/* Until it is made. */
	if (st == TUTTI_OK)
		st = made ? tti_handle_enter(handle, &parent)
			  : tti_fail(TUTTI_ENOMEM, "what is left of %d ranks: out of memory",
				     parent->n);
	if (st != TUTTI_OK) {
		tti_child_decline(&awaited);
		if (made)
			tti_free(made->ranks);
		tti_free(made);
		return st;
	}
	/* With the flag the parent is revoked, so its loss must not end the init. */
	made->maker = (struct tti_maker){ .connect = connect_rest,
					  .free = free_shrink,
					  .parent = parent,
					  .follows = agrees ? NULL : parent,
					  .is_final = agrees,
					  .awaited = awaited };
	made->handle = handle;
	made->flags = flags;
	made->k = k;
	for (int i = 0; i < nexclude; i++)
		tti_bit_set(made->gone, (size_t)exclude[i]);
	return tti_comm_make(&made->maker, parent->n, parent->rank, true, &config, out);
}

tutti_status tutti_comm_shrink(tutti_comm_t handle, const int *exclude, int nexclude,
			       tutti_comm_t *out, const tutti_config *config, int flags)
{
	struct tti_comm *parent;

	TTI_TRY(tti_handle_check_out(handle, out, "a tutti_comm_t"));
	if (flags & ~TUTTI_SHRINK_FAILED)
		return tti_handle_fail(handle, TUTTI_EINVAL,
				       "flags are %#x: TUTTI_SHRINK_DEFAULT or TUTTI_SHRINK_FAILED",
				       (unsigned)flags);
	TTI_TRY(tti_handle_note(handle, tti_config_check(config)));
	TTI_TRY(tti_handle_enter(handle, &parent));
	return tti_handle_end(handle, parent,
			      shrink(handle, parent, exclude, nexclude, out, config, flags));
}
