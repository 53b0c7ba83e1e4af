/* SPDX-License-Identifier: BSD-3-Clause */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "boot/boot.h"
#include "boot/init/id.h"
#include "boot/watch/watch.h"
#include "core/comm_error.h"
#include "core/family/child.h"
#include "core/handle.h"
#include "core/init/config.h"
#include "core/init/init.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/log.h"
#include "util/secret.h"
#include "util/strbuf.h"

/* A communicator of old and new ranks. The old ranks first agree, over a bootstrap of their own, on
 * the number of ranks and the id. Then all ranks, old and new, connect by that id like ranks that
 * have never met: the new ones have no connections, so ring, peer info, topology and plan must be
 * made anyway, and new connections cannot break those of the parent. */

/* What each rank of the parent says. */
struct wish {
	int32_t nranks, rank;
	uint32_t has_id;
	tutti_unique_id id;
};

struct grow {
	struct tti_maker maker;  /* without a parent: nothing of it is derived */
	tutti_comm_t handle;     /* of the parent, entered                     */
	struct tti_comm *parent; /* lives as long                              */
	uint64_t context;        /* of this growth */
	struct wish wish;
};

/* The exchange goes through memory that core dumps contain, so the secret, which is the first half
 * of the id, is masked by what the ranks already share. A second call unmasks it. */
static void mask_id(const struct grow *grow, struct wish *wish)
{
	const uint8_t *key = tti_boot_secret(grow->parent->root->boot);
	const uint64_t context = grow->context;
	uint8_t mask[sizeof(wish->id) / 2];

	if (!wish->has_id)
		return;
	crypto_generichash(mask, sizeof(mask), (const uint8_t *)&context, sizeof(context), key,
			   TTI_SECRET_BYTES);
	for (size_t i = 0; i < sizeof(mask); i++)
		((uint8_t *)&wish->id)[i] ^= mask[i];
	explicit_bzero(mask, sizeof(mask));
}

static tutti_status gather_wishes(struct grow *grow, const struct tti_boot_config *config,
				  struct wish *wishes)
{
	struct tti_boot *boot;
	tutti_status st;

	wishes[grow->parent->rank] = grow->wish;
	mask_id(grow, &wishes[grow->parent->rank]);
	TTI_TRY(tti_child_come(&grow->maker, config, &boot));
	st = tti_boot_all_gather(boot, wishes, sizeof(*wishes));
	for (int rank = 0; rank < grow->parent->n; rank++)
		mask_id(grow, &wishes[rank]);
	if (st != TUTTI_OK)
		tti_boot_give_up(boot);
	tti_boot_close(boot);
	return st;
}

static tutti_status check_numbers(const struct wish *wishes, int n)
{
	for (int rank = 0; rank < n; rank++) {
		if (wishes[rank].nranks != wishes[0].nranks)
			return tti_fail(
				TUTTI_EINVAL,
				"rank 0 wants %d ranks and rank %d wants %d: pass the number "
				"that there will be to all ranks, old and new",
				wishes[0].nranks, rank, wishes[rank].nranks);
		if (wishes[rank].rank != -1 && wishes[rank].rank != rank)
			return tti_fail(
				TUTTI_EINVAL,
				"rank %d wants to be rank %d: an old rank keeps its number, "
				"pass -1",
				rank, wishes[rank].rank);
	}
	if (wishes[0].nranks <= n)
		return tti_fail(TUTTI_EINVAL,
				"a communicator of %d cannot grow to %d ranks: pass the number "
				"of old and new ranks; tutti_comm_dup() makes one of the same "
				"ranks",
				n, wishes[0].nranks);
	return TUTTI_OK;
}

/* One id, of at least one rank. */
static tutti_status find_id(const struct wish *wishes, int n, const tutti_unique_id **out)
{
	int from = -1;

	for (int rank = 0; rank < n; rank++) {
		if (!wishes[rank].has_id)
			continue;
		if (from < 0)
			from = rank;
		else if (memcmp(&wishes[rank].id, &wishes[from].id, sizeof(wishes->id)) != 0)
			return tti_fail(TUTTI_EINVAL,
					"ranks %d and %d pass different ids: one makes it, the "
					"others pass the same or NULL",
					from, rank);
	}
	if (from < 0)
		return tti_fail(TUTTI_EINVAL,
				"no rank passes an id: one makes it with tutti_get_unique_id() and "
				"gives it to those that join");
	*out = &wishes[from].id;
	return TUTTI_OK;
}

/* An id is of no use once all ranks have come, unless it is an address that the user gave. */
static tutti_status check_unused(const struct tti_comm *parent, const tutti_unique_id *id)
{
	const uint8_t *used = tti_boot_secret(parent->root->boot);
	struct tti_id read;
	tutti_status st;

	TTI_TRY(tti_id_decode(id, &read));
	st = (read.flags & TTI_ID_BY_HAND) || memcmp(read.secret, used, sizeof(read.secret)) != 0
		     ? TUTTI_OK
		     : tti_fail(TUTTI_EINVAL,
				"the id is the one that this communicator was made by: make a new "
				"one with tutti_get_unique_id()");
	explicit_bzero(&read, sizeof(read));
	return st;
}

static tutti_status agree(const struct tti_comm *parent, const struct wish *wishes,
			  struct tti_boot_config *config)
{
	if (tti_fault("core.grow"))
		return tti_fail(TUTTI_ESYS, "to meet new ranks: made to fail by TUTTI_FAULT");
	TTI_TRY(check_numbers(wishes, parent->n));
	TTI_TRY(find_id(wishes, parent->n, &config->ids));
	TTI_TRY(check_unused(parent, config->ids));
	config->nranks = wishes[0].nranks;
	tti_log(TTI_LOG_INFO, TTI_CORE, "%d ranks, and %d that join them", parent->n,
		config->nranks - parent->n);
	return TUTTI_OK;
}

/* New ranks hear nothing from the parent: an old rank that leaves because of the parent tells them
 * why. */
static void tell_fate(struct tti_comm *parent, struct tti_failure *failure)
{
	const bool is_vague = failure->status == TUTTI_EABORTED ||
			      (failure->status == TUTTI_EPEER && failure->failed_rank < 0);

	if (!is_vague || atomic_load(&parent->async_error) != TUTTI_EPEER)
		return;
	failure->status = tti_comm_async_error(parent);
	(void)snprintf(failure->text, sizeof(failure->text), "%s", tti_error_text());
}

static void on_broken(void *self, struct tti_failure *failure)
{
	struct grow *grow = self;

	if (failure->failed_rank >= grow->parent->n)
		grow->maker.stranger = failure->failed_rank;
	tell_fate(grow->parent, failure);
}

/* The old ranks give up before they have connected: tell the new ranks, which wait. */
static tutti_status decline(struct tti_comm *parent, const struct wish *wish, tutti_status why)
{
	const struct tti_boot_config config = {
		.rank = parent->rank,
		.nranks = wish->nranks > parent->n ? wish->nranks : parent->n + 1,
		.ids = &wish->id,
		.nids = 1,
	};
	struct tti_failure failure = { .status = why, .failed_rank = -1, .origin = parent->rank };
	char text[TTI_FAILURE_TEXT];

	if (!wish->has_id)
		return why;
	tti_copy_list(failure.text, sizeof(failure.text), tti_error_text());
	memcpy(text, failure.text, sizeof(text));
	tell_fate(parent, &failure);
	if (failure.status > TUTTI_STATUS_LOST || failure.status == TUTTI_EABORTED)
		failure.status = TUTTI_EPEER;
	tti_boot_decline(&config, &failure);
	tti_error_set(text);
	return why;
}

static tutti_status connect_grown(struct tti_maker *maker, struct tti_comm *comm,
				  struct tti_boot **boot)
{
	struct grow *grow = (struct grow *)maker;
	const size_t n = (size_t)grow->parent->n;
	struct tti_boot_config config = { .rank = comm->rank,
					  .nids = 1,
					  .timeout_ms = comm->boot_timeout.ms,
					  .stop = &comm->stop,
					  .on_broken = on_broken,
					  .self = grow };
	struct wish *wishes = tti_secret_zalloc(n * sizeof(*wishes));
	tutti_status st;

	if (!wishes)
		return tti_fail(TUTTI_ENOMEM, "%zu ranks that grow: out of memory", n);
	st = gather_wishes(grow, &config, wishes);
	if (st == TUTTI_OK)
		st = agree(grow->parent, wishes, &config);
	if (st != TUTTI_OK) {
		if (!maker->awaited.parent)
			st = decline(grow->parent, &grow->wish, st);
	} else {
		comm->n = config.nranks;
		st = tti_boot_connect(&config, boot);
	}
	tti_secret_free(wishes);
	return st;
}

static void free_grow(struct tti_maker *maker)
{
	struct grow *grow = (struct grow *)maker;

	/* This rank has not even met the old ranks. */
	if (maker->awaited.parent)
		(void)!decline(grow->parent, &grow->wish, TUTTI_ENOMEM);
	tti_handle_leave(grow->handle);
	tti_secret_free(grow);
}

/* All ranks check the arguments together, so that none waits for a rank that was refused. */
static tutti_status grow(tutti_comm_t handle, struct tti_comm *parent, const struct wish *wish,
			 tutti_comm_t *out, const tutti_config *given)
{
	struct tti_rendezvous awaited = { .parent = parent, .n = parent->n, .rank = parent->rank };
	struct grow *made;
	tutti_config config;
	tutti_status st;

	st = tti_comm_usable(parent);
	if (st != TUTTI_OK)
		return decline(parent, wish, st);
	config = tti_child_config(parent, given);
	/* Count before anything can fail on this rank alone, so that the next one is in step. */
	awaited.context = tti_child_context(parent, TTI_CHILD_GROW, parent->ngrows++);
	made = tti_secret_zalloc(sizeof(*made));
	st = made ? tti_handle_enter(handle, &parent)
		  : tti_fail(TUTTI_ENOMEM, "%d ranks that grow: out of memory", parent->n);
	if (st != TUTTI_OK) {
		tti_child_decline(&awaited);
		tti_secret_free(made);
		return decline(awaited.parent, wish, st);
	}
	made->maker = (struct tti_maker){ .connect = connect_grown,
					  .free = free_grow,
					  .follows = parent,
					  .follows_deaths = true,
					  .awaited = awaited };
	made->wish = *wish;
	made->context = awaited.context;
	made->parent = parent;
	made->handle = handle;
	return tti_comm_make(&made->maker, parent->n, parent->rank, true, &config, out);
}

/* A new rank is one like any other. */
static tutti_status join(int nranks, const tutti_unique_id *id, int rank, tutti_comm_t *out,
			 const tutti_config *config)
{
	if (!id)
		return tti_fail(TUTTI_EINVAL,
				"comm and id are NULL: an old rank passes its communicator, a "
				"new one the id that it was given");
	return tutti_comm_init_rank_config(out, nranks, *id, rank, config);
}

tutti_status tutti_comm_grow(tutti_comm_t handle, int nranks, const tutti_unique_id *id, int rank,
			     tutti_comm_t *out, const tutti_config *config)
{
	struct wish wish = { .nranks = nranks, .rank = rank, .has_id = id != NULL };
	struct tti_comm *parent;
	tutti_status st;

	if (!handle)
		return join(nranks, id, rank, out, config);
	TTI_TRY(tti_handle_check_out(handle, out, "a tutti_comm_t"));
	TTI_TRY(tti_handle_note(handle, tti_config_check(config)));
	TTI_TRY(tti_handle_enter(handle, &parent));
	if (id)
		wish.id = *id;
	st = tti_comm_note(parent, grow(handle, parent, &wish, out, config));
	explicit_bzero(&wish.id, sizeof(wish.id));
	tti_handle_leave(handle);
	return st;
}
