/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator of some ranks of another one, which only those ranks make. They are known from the
 * start, so they meet over the new communicator's own bootstrap, where they first compare their
 * configurations. */
#include <string.h>

#include "boot/boot.h"
#include "boot/watch/callers.h"
#include "core/comm_error.h"
#include "core/family/child.h"
#include "core/handle.h"
#include "core/init/config.h"
#include "core/init/init.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/mem.h"

struct create {
	struct tti_maker maker;
	tutti_comm_t handle; /* of the parent, entered */
	struct tti_callers *callers;
	struct tti_group_call call;
	uint64_t settings;
	int64_t timeout_ms;
	bool has_met; /* all have called */
	int ranks[];
};

static tutti_status on_wait(void *self, int peer, bool is_late)
{
	struct create *create = self;

	if (create->has_met)
		return TUTTI_AGAIN;
	return tti_callers_wait(create->callers, &create->call, create->ranks[peer], is_late,
				create->timeout_ms);
}

static tutti_status check_settings(const struct create *create, const uint64_t *settings)
{
	for (int i = 0; i < create->call.n; i++)
		if (settings[i] != settings[0])
			return tti_fail(TUTTI_EINVAL,
					"ranks %d and %d configure their new communicator "
					"differently: give transport, algo, reproducible and "
					"encrypt alike",
					create->ranks[0], create->ranks[i]);
	return TUTTI_OK;
}

static tutti_status meet(struct create *create, struct tti_comm *comm, struct tti_boot *boot)
{
	uint64_t *settings = tti_calloc((size_t)comm->n, sizeof(*settings));
	tutti_status st;

	if (!settings)
		return tti_fail(TUTTI_ENOMEM, "a communicator of %d ranks: out of memory", comm->n);
	settings[comm->rank] = create->settings;
	st = tti_boot_all_gather(boot, settings, sizeof(*settings));
	create->has_met = st == TUTTI_OK;
	if (st == TUTTI_OK)
		st = check_settings(create, settings);
	tti_free(settings);
	return st;
}

static tutti_status connect_group(struct tti_maker *maker, struct tti_comm *comm,
				  struct tti_boot **boot)
{
	struct create *create = (struct create *)maker;
	const struct tti_boot_config config = { .timeout_ms = comm->boot_timeout.ms,
						.stop = &comm->stop,
						.on_wait = on_wait,
						.self = create };
	tutti_status st;

	*boot = NULL;
	create->timeout_ms = comm->boot_timeout.ms;
	comm->context = create->call.context;
	TTI_TRY(tti_child_come(maker, &config, boot));
	st = meet(create, comm, *boot);
	if (st == TUTTI_OK)
		return st;
	/* Otherwise all find that. */
	if (!create->has_met)
		tti_boot_give_up(*boot);
	tti_boot_close(*boot);
	*boot = NULL;
	return st;
}

static void free_create(struct tti_maker *maker)
{
	struct create *create = (struct create *)maker;

	tti_callers_leave(create->callers, &create->call);
	tti_handle_leave(create->handle);
	tti_free(create);
}

/* From the first such call on, answers ranks that ask who has called. */
static tutti_status get_callers(struct tti_comm *parent, struct tti_callers **out)
{
	tutti_status st = TUTTI_OK;

	pthread_mutex_lock(&parent->lock);
	if (!parent->callers)
		st = tti_callers_create(parent->boot,
					tti_child_context(parent, TTI_CHILD_CALLERS, 0),
					&parent->callers);
	*out = parent->callers;
	pthread_mutex_unlock(&parent->lock);
	return st;
}

/* `own`: this rank's place among them; -1: none. */
static tutti_status check_ranks(const struct tti_comm *parent, const int *ranks, int count, int own)
{
	uint64_t *seen = tti_calloc(TTI_BITSET_WORDS(parent->n), sizeof(*seen));
	tutti_status st = TUTTI_OK;

	if (!seen)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", parent->n);
	for (int i = 0; i < count && st == TUTTI_OK; i++) {
		if (ranks[i] < 0 || ranks[i] >= parent->n)
			st = tti_fail(TUTTI_EINVAL, "ranks[%d] is %d: there are 0 to %d", i,
				      ranks[i], parent->n - 1);
		else if (tti_bit_has(seen, (size_t)ranks[i]))
			st = tti_fail(TUTTI_EINVAL, "ranks[%d] is %d, which is there before", i,
				      ranks[i]);
		else
			tti_bit_set(seen, (size_t)ranks[i]);
	}
	tti_free(seen);
	if (st == TUTTI_OK && own < 0)
		st = tti_fail(TUTTI_EINVAL,
			      "rank %d calls, and is not among the %d ranks: only those do",
			      parent->rank, count);
	return st;
}

/* The call goes on in `out`, with `call`. */
static tutti_status begin(tutti_comm_t handle, struct tti_comm *parent, struct tti_callers *callers,
			  const struct tti_group_call *call, int own, struct create **out)
{
	const size_t ranks_bytes = (size_t)call->n * sizeof(*call->ranks);
	struct create *create;
	tutti_status st;

	TTI_TRY(check_ranks(parent, call->ranks, call->n, own));
	create = tti_zalloc(sizeof(*create) + ranks_bytes);
	if (!create)
		return tti_fail(TUTTI_ENOMEM, "a communicator of %d ranks: out of memory", call->n);
	memcpy(create->ranks, call->ranks, ranks_bytes);
	create->maker = (struct tti_maker){ .connect = connect_group,
					    .free = free_create,
					    .parent = parent,
					    .ranks = create->ranks,
					    .follows = parent,
					    .follows_deaths = true,
					    .awaited = { parent, call->context, create->ranks,
							 call->n, own } };
	create->handle = handle;
	create->callers = callers;
	/* Until it is made. */
	st = tti_handle_enter(handle, &parent);
	if (st != TUTTI_OK) {
		tti_free(create);
		return st;
	}
	tti_callers_move(callers, call, create->ranks, &create->call);
	*out = create;
	return TUTTI_OK;
}

static int find_own(const struct tti_comm *parent, const int *ranks, int count)
{
	int own = count - 1;

	while (own >= 0 && ranks[own] != parent->rank)
		own--;
	return own;
}

static tutti_status create_group(tutti_comm_t handle, struct tti_comm *parent, const int *ranks,
				 int count, int tag, tutti_comm_t *out, const tutti_config *given)
{
	struct tti_group_call call = { .tag = tag, .n = count, .ranks = ranks };
	struct tti_callers *callers;
	struct create *create = NULL;
	tutti_config config;
	tutti_status st;
	int own;

	TTI_TRY(tti_comm_usable(parent));
	if (!ranks || count < 1 || count > parent->n)
		return tti_fail(
			TUTTI_EINVAL,
			"count is %d and ranks is %p: of a communicator of %d ranks pass 1 to %d",
			count, (const void *)ranks, parent->n, parent->n);
	own = find_own(parent, ranks, count);
	TTI_TRY(get_callers(parent, &callers));
	/* Before anything else can fail on this rank alone, so that the next one is in step. */
	TTI_TRY(tti_callers_enter(callers, &call));
	st = begin(handle, parent, callers, &call, own, &create);
	if (st != TUTTI_OK) {
		tti_callers_leave(callers, &call);
		/* Nobody else passes a list that is wrong. */
		if (st != TUTTI_EINVAL)
			tti_child_decline(&(struct tti_rendezvous){ parent, call.context, ranks,
								    count, own });
		return st;
	}
	config = tti_child_config(parent, given);
	create->settings = tti_child_settings(&config);
	return tti_comm_make(&create->maker, count, own, true, &config, out);
}

tutti_status tutti_comm_create_group(tutti_comm_t handle, const int *ranks, int count, int tag,
				     tutti_comm_t *out, const tutti_config *config)
{
	struct tti_comm *parent;

	TTI_TRY(tti_handle_check_out(handle, out, "a tutti_comm_t"));
	if (tag < 0)
		return tti_handle_fail(handle, TUTTI_EINVAL, "tag is %d: 0 or more", tag);
	TTI_TRY(tti_handle_note(handle, tti_config_check(config)));
	TTI_TRY(tti_handle_enter(handle, &parent));
	return tti_handle_end(handle, parent,
			      create_group(handle, parent, ranks, count, tag, out, config));
}
