/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "boot/boot.h"
#include "core/comm_error.h"
#include "core/family/child.h"
#include "core/handle.h"
#include "core/init/config.h"
#include "core/init/init.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* What each rank of the parent says. */
struct vote {
	int32_t color, key;
	uint64_t settings;
};

struct entry {
	int key, rank;
};

struct split {
	struct tti_maker maker;
	tutti_comm_t handle; /* of the parent, entered */
	struct vote vote;
	uint64_t k; /* how many splits the parent made before */
	/* [parent->n] each; allocated first, so that nothing can fail after the vote. */
	struct vote *votes;
	struct entry *entries;
	int *ranks;
};

static int by_key(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->rank - b->rank;
}

static tutti_status make_room(struct split *split)
{
	const size_t n = (size_t)split->maker.parent->n;

	split->votes = tti_calloc(n, sizeof(*split->votes));
	split->entries = tti_calloc(n, sizeof(*split->entries));
	split->ranks = tti_calloc(n, sizeof(*split->ranks));
	return split->votes && split->entries && split->ranks
		       ? TUTTI_OK
		       : tti_fail(TUTTI_ENOMEM, "a split of %zu ranks: out of memory", n);
}

/* The ranks of this colour, by key, then by rank. */
static void take_ranks(struct split *split, struct tti_comm *comm)
{
	const struct tti_comm *parent = split->maker.parent;
	struct entry *entries = split->entries;
	int n = 0;

	for (int rank = 0; rank < parent->n; rank++)
		if (split->votes[rank].color == split->vote.color)
			entries[n++] = (struct entry){ split->votes[rank].key, rank };
	qsort(entries, (size_t)n, sizeof(*entries), by_key);
	split->maker.ranks = split->ranks;
	comm->n = n;
	for (int rank = 0; rank < n; rank++) {
		split->ranks[rank] = entries[rank].rank;
		if (entries[rank].rank == parent->rank)
			comm->rank = rank;
	}
}

static tutti_status check_settings(const struct split *split)
{
	const struct tti_maker *maker = &split->maker;
	const struct vote *votes = split->votes;

	for (int rank = 0; rank < maker->parent->n; rank++)
		if (votes[rank].color == split->vote.color &&
		    votes[rank].settings != split->vote.settings)
			return tti_fail(TUTTI_EINVAL,
					"ranks %d and %d of colour %d configure their new "
					"communicator differently: give transport, algo, "
					"reproducible and encrypt alike",
					maker->parent->rank, rank, split->vote.color);
	return TUTTI_OK;
}

/* All ranks of the parent exchange votes, over a bootstrap of its own, so that calls on the parent
 * go on. */
static tutti_status gather_votes(struct split *split, const struct tti_boot_config *config)
{
	struct tti_boot *boot;
	tutti_status st;

	split->votes[split->maker.parent->rank] = split->vote;
	TTI_TRY(tti_child_come(&split->maker, config, &boot));
	st = tti_boot_all_gather(boot, split->votes, sizeof(*split->votes));
	if (st != TUTTI_OK)
		tti_boot_give_up(boot);
	tti_boot_close(boot);
	return st;
}

static tutti_status connect_split(struct tti_maker *maker, struct tti_comm *comm,
				  struct tti_boot **boot)
{
	struct split *split = (struct split *)maker;
	struct tti_comm *parent = maker->parent;
	const struct tti_boot_config config = { .timeout_ms = comm->boot_timeout.ms,
						.stop = &comm->stop };

	*boot = NULL;
	TTI_TRY(make_room(split));
	TTI_TRY(gather_votes(split, &config));
	if (split->vote.color == TUTTI_NOCOLOR)
		return TUTTI_OK;
	take_ranks(split, comm);
	TTI_TRY(check_settings(split));
	comm->context = tti_hash_combine(tti_child_context(parent, TTI_CHILD_OF_COLOR, split->k),
					 (uint64_t)split->vote.color);
	maker->awaited =
		(struct tti_rendezvous){ parent, comm->context, maker->ranks, comm->n, comm->rank };
	return tti_child_come(maker, &config, boot);
}

static void free_split(struct tti_maker *maker)
{
	struct split *split = (struct split *)maker;

	tti_handle_leave(split->handle);
	tti_free(split->votes);
	tti_free(split->entries);
	tti_free(split->ranks);
	tti_free(split);
}

static tutti_status check_arguments(int color, const void *out, const tutti_config *given)
{
	if (!out)
		return tti_fail(TUTTI_EINVAL, "out is NULL: pass the address of a tutti_comm_t");
	if (color < 0 && color != TUTTI_NOCOLOR)
		return tti_fail(TUTTI_EINVAL, "color is %d: 0 or more, or TUTTI_NOCOLOR", color);
	return tti_config_check(given);
}

static tutti_status split(tutti_comm_t handle, struct tti_comm *parent, int color, int key,
			  tutti_comm_t *out, const tutti_config *given)
{
	struct tti_rendezvous awaited = { .parent = parent, .n = parent->n, .rank = parent->rank };
	struct split *made = NULL;
	tutti_config config;
	uint64_t k;
	tutti_status st;

	TTI_TRY(tti_comm_usable(parent));
	/* Count before anything can fail on this rank alone, so that the next one is in step. */
	k = parent->nsplits++;
	awaited.context = tti_child_context(parent, TTI_CHILD_SPLIT, k);
	st = check_arguments(color, out, given);
	if (st == TUTTI_OK) {
		made = tti_zalloc(sizeof(*made));
		/* Until it is made. */
		st = made ? tti_handle_enter(handle, &parent)
			  : tti_fail(TUTTI_ENOMEM, "a split: out of memory");
	}
	if (st != TUTTI_OK) {
		tti_child_decline(&awaited);
		tti_free(made);
		return st;
	}
	config = tti_child_config(parent, given);
	if (color == TUTTI_NOCOLOR)
		*out = NULL;
	made->maker = (struct tti_maker){ .connect = connect_split,
					  .free = free_split,
					  .parent = parent,
					  .follows = parent,
					  .follows_deaths = true,
					  .awaited = awaited };
	made->vote = (struct vote){
		.color = color,
		.key = key,
		.settings = tti_child_settings(&config),
	};
	made->k = k;
	made->handle = handle;
	return tti_comm_make(&made->maker, parent->n, parent->rank, color != TUTTI_NOCOLOR, &config,
			     out);
}

tutti_status tutti_comm_split(tutti_comm_t handle, int color, int key, tutti_comm_t *out,
			      const tutti_config *config)
{
	struct tti_comm *parent;

	TTI_TRY(tti_handle_enter(handle, &parent));
	return tti_handle_end(handle, parent, split(handle, parent, color, key, out, config));
}

tutti_status tutti_comm_dup(tutti_comm_t handle, tutti_comm_t *out, const tutti_config *config)
{
	return tutti_comm_split(handle, 0, 0, out, config);
}
