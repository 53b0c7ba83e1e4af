/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/init.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "boot/boot.h"
#include "core/call/group.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/device.h"
#include "core/family/child.h"
#include "core/family/follow.h"
#include "core/handle.h"
#include "core/init/config.h"
#include "core/init/meeting.h"
#include "core/init/setup.h"
#include "core/lifetime.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/secret.h"
#include "util/thread.h"

/* Everything an init needs, copied: it may run on a thread of its own. */
struct init {
	struct tti_comm *comm;
	tutti_comm_t handle;     /* of it */
	struct tti_boot *boot;   /* local kind: made beforehand */
	struct tti_maker *maker; /* NULL: it comes up by ids  */
	tutti_config config;
	char *transport, *algo;
	struct tti_meeting *meeting; /* until all have come; NULL: there is none */
	char *secret_path;           /* the file of the secret that the ranks prove; NULL: none */
	int nids;
	tutti_unique_id ids[];
};

static void free_init(struct init *init)
{
	if (init->maker)
		tti_maker_end(init->maker);
	tti_meeting_close(init->meeting, false);
	tti_free(init->secret_path);
	tti_free(init->transport);
	tti_free(init->algo);
	tti_secret_free(init);
}

static tutti_status no_memory(int nranks)
{
	return tti_fail(TUTTI_ENOMEM, "communicator of %d ranks: out of memory", nranks);
}

/* All that it takes of memory is there before other ranks can wait for this one. */
static tutti_status fill_init(struct init *init, int nranks, int rank, const char *secret_path)
{
	const tutti_config config = init->config;

	init->config.name = NULL;
	if (config.transport)
		init->config.transport = init->transport = tti_strdup(config.transport);
	if (config.algo)
		init->config.algo = init->algo = tti_strdup(config.algo);
	if (secret_path && *secret_path)
		init->secret_path = tti_strdup(secret_path);
	if ((config.transport && !init->transport) || (config.algo && !init->algo) ||
	    (secret_path && *secret_path && !init->secret_path))
		return no_memory(nranks);
	init->comm = tti_comm_create(rank, nranks, &config);
	return init->comm ? tti_handle_create(init->comm, &init->handle) : no_memory(nranks);
}

/* With the communicator that is not made. */
static void drop_init(struct init *init)
{
	struct tti_comm *comm = init->comm;

	if (init->handle)
		tti_handle_free(init->handle);
	free_init(init);
	tti_comm_free(comm);
}

/* `by` NULL: not by ids. */
static tutti_status make_init(int nranks, int rank, const struct tti_init_ids *by,
			      const tutti_config *given, struct init **out)
{
	const size_t ids_bytes = by ? (size_t)by->nids * sizeof(*by->ids) : 0;
	tutti_config config;
	struct init *init;
	tutti_status st;

	TTI_TRY(tti_config_read(given, &config));
	init = tti_secret_zalloc(sizeof(*init) + ids_bytes);
	if (!init)
		return no_memory(nranks);
	init->config = config;
	if (by) {
		init->nids = by->nids;
		memcpy(init->ids, by->ids, ids_bytes);
	}
	st = fill_init(init, nranks, rank, by ? by->secret_path : NULL);
	if (st == TUTTI_OK)
		*out = init;
	else
		drop_init(init);
	return st;
}

/* Hosts that do not share the folder may each have made a secret of their own. */
static tutti_status explain_secret(const struct init *init, tutti_status st)
{
	char text[TTI_ERROR_TEXT];

	if (!init->secret_path || (st != TUTTI_EMISMATCH && st != TUTTI_ETIMEOUT))
		return st;
	(void)snprintf(text, sizeof(text), "%s", tti_error_text());
	return tti_fail(st,
			"%s; the ranks prove the secret in %s, of which all hosts need the same "
			"copy, or TUTTI_COMM_SECRET",
			text, init->secret_path);
}

static tutti_status connect_and_setup(struct init *init)
{
	struct tti_comm *comm = init->comm;
	struct tti_boot *boot = init->boot;
	const int64_t began_ns = tti_now_ns();
	tutti_status st;

	tti_log_set_rank(comm->rank);
	if (init->maker) {
		tti_child_follow(init->maker, comm);
		st = init->maker->connect(init->maker, comm, &boot);
		if (st == TUTTI_OK && boot)
			st = tti_comm_setup(comm, boot, &init->config, init->maker, began_ns);
		return tti_child_unfollow(init->maker, comm, st);
	}
	if (!boot) {
		const struct tti_boot_config config = {
			.rank = comm->rank,
			.nranks = comm->n,
			.ids = init->ids,
			.nids = init->nids,
			.timeout_ms = comm->boot_timeout.ms,
			.stop = &comm->stop,
		};

		st = tti_meeting_explain(init->meeting, tti_boot_connect(&config, &boot));
		st = explain_secret(init, st);
		/* Before this rank's peer info, so that no other has ended its init. */
		tti_meeting_close(init->meeting, st == TUTTI_OK);
		init->meeting = NULL;
		TTI_TRY(st);
	}
	return tti_comm_setup(comm, boot, &init->config, NULL, began_ns);
}

/* Bring the communicator up; the text of an error stays readable on it. */
static tutti_status bring_up(struct init *init)
{
	struct tti_comm *comm = init->comm;
	tutti_status st = tti_comm_note(comm, connect_and_setup(init));

	if (st != TUTTI_OK)
		tti_boot_give_up(comm->boot);
	/* All members get the communicator, whole or lost; ranks that wait for this one see that
	 * its ports are closed. */
	if ((st <= TUTTI_STATUS_LOST || st == TUTTI_ESYS) && comm->boot && init->maker &&
	    init->maker->is_final) {
		tti_comm_mark_failed(comm, st <= TUTTI_STATUS_LOST ? st : TUTTI_EPEER,
				     tti_error_text());
		tti_comm_close_ports(comm);
		atomic_store_explicit(&comm->state, TTI_COMM_READY, memory_order_release);
		st = TUTTI_OK;
	}
	atomic_store_explicit(&comm->init_status, st, memory_order_release);
	return st;
}

static void *bring_up_thread(void *self)
{
	struct init *init = self;
	const tutti_status st = bring_up(init);

	(void)st; /* kept in init_status */
	free_init(init);
	return NULL;
}

static tutti_status bring_up_aside(struct init *init)
{
	struct tti_comm *comm = init->comm;

	comm->has_init_thread = true;
	const tutti_status st =
		tti_thread_start(&comm->init_thread, "tutti-init", bring_up_thread, init);

	if (st != TUTTI_OK)
		comm->has_init_thread = false;
	return st;
}

static tutti_status init_here(struct init *init, tutti_comm_t *out)
{
	struct tti_comm *comm = init->comm;
	tutti_comm_t handle = init->handle;
	const tutti_status st = bring_up(init);

	free_init(init);
	if (st == TUTTI_OK && !comm->is_outsider) {
		*out = handle;
		return TUTTI_OK;
	}
	tti_handle_free(handle);
	tti_comm_free(comm);
	return st;
}

/* Nonblocking, or inside a group: a handle at once, the rest on a thread. A failure leaves `init`. */
static tutti_status init_aside(struct init *init, tutti_comm_t *out)
{
	const bool grouped = tti_group_is_open(), is_outsider = init->comm->is_outsider;
	tutti_comm_t handle = init->handle;
	tutti_status st;

	if (grouped)
		TTI_TRY(tti_group_add_init(handle));
	st = bring_up_aside(init);
	if (st != TUTTI_OK && grouped)
		tti_group_drop_init(handle);
	if (st == TUTTI_OK && !is_outsider)
		*out = handle;
	return st;
}

tutti_status tti_comm_make(struct tti_maker *maker, int nranks, int rank, bool is_member,
			   const tutti_config *config, tutti_comm_t *out)
{
	struct init *init = NULL;
	tutti_status st = TUTTI_OK;

	if (maker->parent && config->device != tti_device_ordinal(maker->parent))
		st = tti_fail(TUTTI_EINVAL,
			      "config.device is %d: the rank's device in the parent is %d (-1: "
			      "none), which a child keeps",
			      config->device, tti_device_ordinal(maker->parent));
	if (st == TUTTI_OK)
		st = make_init(nranks, rank, NULL, config, &init);
	if (st != TUTTI_OK) {
		tti_maker_end(maker);
		return st;
	}
	init->maker = maker;
	init->comm->is_outsider = !is_member;
	if (maker->parent)
		tti_comm_hold(init->comm, maker->parent);
	if ((init->config.blocking || !is_member) && !tti_group_is_open())
		return init_here(init, out);
	st = init_aside(init, out);
	if (st != TUTTI_OK)
		drop_init(init);
	return st;
}

static tutti_status check_shape(const void *out, int nranks, int rank)
{
	if (!out)
		return tti_fail(TUTTI_EINVAL, "out is NULL: pass the address of a tutti_comm_t");
	if (nranks < 1)
		return tti_fail(TUTTI_EINVAL, "nranks is %d: 1 or more", nranks);
	if (nranks > TTI_BOOT_RANKS_MOST)
		return tti_fail(TUTTI_EINVAL, "nranks is %d: at most %d", nranks,
				TTI_BOOT_RANKS_MOST);
	if (rank < 0 || rank >= nranks)
		return tti_fail(TUTTI_EINVAL, "rank is %d: 0 to %d with %d ranks", rank, nranks - 1,
				nranks);
	return TUTTI_OK;
}

/* Until this rank connects, the others learn of a failure only by this. */
static void decline(int nranks, int rank, const struct tti_init_ids *given,
		    const tutti_config *config)
{
	const struct tti_boot_config boot = { .rank = rank,
					      .nranks = nranks,
					      .ids = given->ids,
					      .nids = given->nids,
					      .timeout_ms = tti_timeout_of_boot(config).ms };

	if (given->ids && given->nids > 0)
		tti_boot_decline(&boot, NULL);
}

tutti_status tti_init_by_ids(tutti_comm_t *out, int nranks, int rank,
			     const struct tti_init_ids *given, const tutti_config *config)
{
	struct init *init = NULL;
	tutti_status st = check_shape(out, nranks, rank);

	if (st == TUTTI_OK && (!given->ids || given->nids < 1 || given->nids > nranks))
		st = tti_fail(TUTTI_EINVAL, "nids is %d and ids is %p: pass 1 to %d unique ids",
			      given->nids, (const void *)given->ids, nranks);
	if (st == TUTTI_OK)
		st = make_init(nranks, rank, given, config, &init);
	if (st == TUTTI_OK) {
		init->meeting = given->meeting;
		if (init->config.blocking && !tti_group_is_open())
			return init_here(init, out);
		st = init_aside(init, out);
	}
	if (st == TUTTI_OK)
		return TUTTI_OK;
	decline(nranks, rank, given, config);
	if (init)
		drop_init(init);
	else
		tti_meeting_close(given->meeting, false);
	return st;
}

tutti_status tutti_comm_init_rank_scalable(tutti_comm_t *out, int nranks, int rank, int nids,
					   const tutti_unique_id *ids, const tutti_config *config)
{
	return tti_init_by_ids(out, nranks, rank, &(struct tti_init_ids){ ids, nids, NULL, NULL },
			       config);
}

tutti_status tutti_comm_init_rank_config(tutti_comm_t *out, int nranks, tutti_unique_id id,
					 int rank, const tutti_config *config)
{
	const tutti_status st = tutti_comm_init_rank_scalable(out, nranks, rank, 1, &id, config);

	explicit_bzero(&id, sizeof(id));
	return st;
}

tutti_status tutti_comm_init_rank(tutti_comm_t *out, int nranks, tutti_unique_id id, int rank)
{
	const tutti_status st = tutti_comm_init_rank_scalable(out, nranks, rank, 1, &id, NULL);

	explicit_bzero(&id, sizeof(id));
	return st;
}

/* -- All ranks in this process --------------------------------------------- */

static tutti_status create_all(struct init **inits, int nranks, const tutti_config *config)
{
	struct tti_boot **boots = tti_calloc((size_t)nranks, sizeof(struct tti_boot *));
	tutti_status st = TUTTI_OK;

	if (!boots)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", nranks);
	st = tti_boot_local_create(nranks, NULL, boots);
	for (int rank = 0; rank < nranks && st == TUTTI_OK; rank++) {
		st = make_init(nranks, rank, NULL, config, &inits[rank]);
		if (st == TUTTI_OK) {
			inits[rank]->boot = boots[rank];
			boots[rank] = NULL;
		}
	}
	for (int rank = 0; rank < nranks; rank++)
		tti_boot_close(boots[rank]);
	tti_free(boots);
	return st;
}

/* All come up at once, each on a thread; all are waited for. Those that were started are no longer among
 * `inits`, but in `out`. */
static tutti_status start_all(tutti_comm_t *out, struct init **inits, int nranks)
{
	tutti_status st = TUTTI_OK;
	int started = 0;

	while (started < nranks && st == TUTTI_OK) {
		out[started] = inits[started]->handle;
		st = bring_up_aside(inits[started]);
		if (st == TUTTI_OK)
			inits[started++] = NULL;
	}
	if (started < nranks)
		tti_boot_give_up(inits[started]->boot);
	for (int rank = 0; rank < started; rank++) {
		struct tti_comm *comm = atomic_load(&out[rank]->comm);

		pthread_join(comm->init_thread, NULL);
		comm->has_init_thread = false;
		if (st == TUTTI_OK)
			st = tti_comm_init_error(comm);
	}
	for (int rank = 0; rank < started && st != TUTTI_OK; rank++) {
		struct tti_comm *comm = atomic_load(&out[rank]->comm);

		tti_handle_free(out[rank]);
		tti_comm_free(comm);
	}
	return st;
}

tutti_status tutti_comm_init_all(tutti_comm_t *out, int nranks, const tutti_config *config)
{
	struct init **inits;
	tutti_comm_t *handles;
	tutti_status st;

	TTI_TRY(check_shape(out, nranks, 0));
	inits = tti_calloc((size_t)nranks, sizeof(struct init *));
	handles = tti_calloc((size_t)nranks, sizeof(tutti_comm_t));
	st = inits && handles ? create_all(inits, nranks, config)
			      : tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", nranks);
	if (st == TUTTI_OK)
		st = start_all(handles, inits, nranks);
	if (st == TUTTI_OK)
		memcpy(out, handles, (size_t)nranks * sizeof(*out));
	for (int rank = 0; inits && rank < nranks; rank++) {
		if (!inits[rank])
			continue;
		tti_boot_close(inits[rank]->boot);
		drop_init(inits[rank]);
	}
	tti_free(inits);
	tti_free(handles);
	return st;
}
