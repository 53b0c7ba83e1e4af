/* SPDX-License-Identifier: BSD-3-Clause */
/* How communicators are made. */
#include "binding.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(ncclUniqueId) == sizeof(tutti_unique_id), "an id is the same bytes");

/* One communicator that is to be made. It is kept until the end of a group only if it is
 * nonblocking: for others Tutti's groups wait. */
struct birth {
	enum { BY_IDS, BY_SPLIT, BY_SHRINK, BY_GROW } how;
	ncclComm_t comm;   /* NULL: this rank is in no communicator of a split */
	ncclComm_t parent; /* NULL: none */
	bool has_config;   /* no: all is as the parent's */
	tutti_config config;
	int nranks, rank, color, key, flags;
	int nids; /* also how many ranks are left out by a shrink */
	tutti_unique_id *ids;
	int *excluded;
	char *name, *transport; /* what the config has, if it is kept */
};

static void free_birth(void *work)
{
	struct birth *birth = work;

	free(birth->ids);
	free(birth->excluded);
	free(birth->name);
	free(birth->transport);
	free(birth);
}

static void drop_birth(void *work)
{
	const struct birth *birth = work;

	if (birth->comm)
		birth->comm->failed = ncclInvalidUsage;
	free_birth(work);
}

static bool is_revoked(tutti_comm_t comm)
{
	tutti_status error = TUTTI_OK;

	return tutti_comm_get_async_error(comm, &error) == TUTTI_OK && error == TUTTI_EREVOKED;
}

/* Over a communicator that was revoked its ranks can agree only on who is left, so a shrink comes
 * first and its result is split. That communicator ends with this function, so the new one is made
 * when it returns. */
static ncclResult_t split_revoked(const struct birth *birth)
{
	const tutti_comm_t parent = birth->parent->comm;
	tutti_config now = birth->config;
	tutti_comm_t rest = NULL, none = NULL;
	int nranks = 0, nleft = 0;
	ncclResult_t result;
	tutti_status status;

	now.blocking = 1;
	status =
		tutti_comm_shrink(parent, NULL, 0, &rest,
				  birth->parent->is_nonblocking ? &now : NULL, TUTTI_SHRINK_FAILED);
	if (status == TUTTI_OK)
		status = tutti_comm_count(parent, &nranks);
	if (status == TUTTI_OK)
		status = tutti_comm_count(rest, &nleft);
	if (status == TUTTI_OK && nleft == nranks)
		status = tutti_comm_split(rest, birth->color, birth->key,
					  birth->comm ? &birth->comm->comm : &none,
					  birth->has_config ? &now : NULL);
	if (status == TUTTI_OK && nleft < nranks)
		result = tti_nccl_fail(
			birth->parent, ncclRemoteError,
			"ncclCommSplit(): %d of %d ranks of the communicator are left: "
			"make one of them by ncclCommShrink() and split that",
			nleft, nranks);
	else
		result = tti_nccl_report(birth->parent, status);
	(void)tutti_comm_destroy(rest);
	return result;
}

static tutti_status carry_out(const struct birth *birth)
{
	const tutti_config *config = birth->has_config ? &birth->config : NULL;
	const tutti_comm_t parent = birth->parent ? birth->parent->comm : NULL;
	tutti_comm_t none = NULL, *out = birth->comm ? &birth->comm->comm : &none;

	switch (birth->how) {
	case BY_IDS:
		return tutti_comm_init_rank_scalable(out, birth->nranks, birth->rank, birth->nids,
						     birth->ids, config);
	case BY_SPLIT:
		return tutti_comm_split(parent, birth->color, birth->key, out, config);
	case BY_SHRINK:
		return tutti_comm_shrink(parent, birth->excluded, birth->nids, out, config,
					 birth->flags);
	case BY_GROW:
		break;
	}
	return tutti_comm_grow(parent, birth->nranks, birth->ids, birth->rank, out, config);
}

/* Kernels that cannot be had need not be the end. */
static ncclResult_t report_birth(ncclComm_t about, ncclComm_t comm, tutti_status status)
{
	if (status != TUTTI_EUNSUPPORTED || !comm || !comm->has_kernels)
		return tti_nccl_report(about, status);
	return tti_nccl_fail(about, ncclInvalidUsage,
			     "%s; TUTTI_NCCL_KERNELS=0 does without kernels, and moves pinned and "
			     "managed memory alone",
			     tutti_last_error(NULL));
}

static ncclResult_t make(const struct birth *birth)
{
	const ncclComm_t about = birth->parent ? birth->parent : birth->comm;
	tutti_status status;

	if (birth->how == BY_SPLIT && is_revoked(birth->parent->comm))
		return split_revoked(birth);
	status = carry_out(birth);
	if (status == TUTTI_OK && birth->comm && birth->comm->is_nonblocking) {
		tutti_status asked = tutti_comm_get_async_error(birth->comm->comm, &status);

		status = asked == TUTTI_OK ? status : asked;
	}
	return report_birth(about, birth->comm, status);
}

static ncclResult_t make_kept(void *work)
{
	struct birth *birth = work;
	const ncclResult_t result = make(birth);

	if (birth->comm && !birth->comm->comm)
		birth->comm->failed = result == ncclSuccess ? ncclInternalError : result;
	free_birth(birth);
	return result;
}

static void *copy(const void *from, size_t nbytes)
{
	void *to = nbytes > 0 ? malloc(nbytes) : NULL;

	if (to)
		memcpy(to, from, nbytes);
	return to;
}

/* Copy all that the caller may take back. */
static ncclResult_t keep_birth(const struct birth *given)
{
	struct birth *birth = copy(given, sizeof(*given));
	const size_t nids = given->ids ? (size_t)given->nids * sizeof(*given->ids) : 0;
	const size_t nexcluded =
		given->excluded ? (size_t)given->nids * sizeof(*given->excluded) : 0;

	if (birth) {
		birth->ids = copy(given->ids, nids);
		birth->excluded = copy(given->excluded, nexcluded);
		birth->name = given->config.name ? strdup(given->config.name) : NULL;
		birth->transport = given->config.transport ? strdup(given->config.transport) : NULL;
		birth->config.name = birth->name;
		birth->config.transport = birth->transport;
		if ((nids && !birth->ids) || (nexcluded && !birth->excluded) ||
		    (given->config.name && !birth->name) ||
		    (given->config.transport && !birth->transport)) {
			free_birth(birth);
			birth = NULL;
		}
	}
	return tti_nccl_job_add(&(struct tti_nccl_job){ TTI_NCCL_INIT, given->parent, make_kept,
							drop_birth, birth });
}

static void inherit(ncclComm_t comm, const struct ncclComm *parent)
{
	comm->device = parent->device;
	comm->has_kernels = parent->has_kernels;
	comm->rma_signals = parent->rma_signals;
	comm->rma_contexts = parent->rma_contexts;
}

/* First the settings and the handle, then the communicator, or what waits for the end of the
 * group. */
static ncclResult_t begin(struct birth *birth, const ncclConfig_t *given, ncclComm_t *out)
{
	ncclConfig_t config;
	ncclResult_t result;

	if (!out)
		return tti_nccl_fail(birth->parent, ncclInvalidArgument,
				     "out is NULL: pass the address of a ncclComm_t");
	result = tti_nccl_config_read(given, &config);
	if (result != ncclSuccess)
		return result;
	tti_nccl_config_use(&config, &birth->config);
	birth->has_config = given || !birth->parent || birth->parent->is_nonblocking;
	if (!given && birth->parent && birth->parent->is_nonblocking)
		birth->config.blocking = 0;
	if (birth->how != BY_SPLIT || birth->color != TUTTI_NOCOLOR) {
		result = tti_nccl_comm_create(&birth->comm);
		if (result != ncclSuccess)
			return result;
		birth->comm->is_nonblocking = birth->has_config && !birth->config.blocking;
		/* A child has the device of its parent, whatever is current. */
		if (birth->comm->has_kernels && !birth->parent)
			birth->config.device = birth->comm->device;
		if (birth->parent)
			inherit(birth->comm, birth->parent);
		if (config.numRmaSig != NCCL_CONFIG_UNDEF_INT)
			birth->comm->rma_signals = config.numRmaSig;
		if (config.numRmaCtx != NCCL_CONFIG_UNDEF_INT)
			birth->comm->rma_contexts = config.numRmaCtx;
	}
	if (tti_nccl_in_group() && birth->has_config && !birth->config.blocking)
		result = keep_birth(birth);
	else
		result = make(birth);
	if (result != ncclSuccess && result != ncclInProgress) {
		if (birth->comm)
			tti_nccl_comm_free(birth->comm);
		return result;
	}
	*out = birth->comm;
	return result;
}

/* -- By unique ids ----------------------------------------------------------------------- */

ncclResult_t pncclGetUniqueId(ncclUniqueId *out)
{
	if (!out)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "the unique id is NULL");
	return tti_nccl_report(NULL, tutti_get_unique_id((tutti_unique_id *)(void *)out));
}
ALSO_NAMED(ncclGetUniqueId);

ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *out)
{
	ncclResult_t result = tti_nccl_comm_check(comm);

	if (result != ncclSuccess)
		return result;
	if (comm->has_grow_id)
		return tti_nccl_fail(comm, ncclInvalidUsage,
				     "the communicator has given a unique id that ncclCommGrow() "
				     "has not used yet");
	result = pncclGetUniqueId(out);
	comm->has_grow_id = result == ncclSuccess;
	return result;
}
ALSO_NAMED(ncclCommGetUniqueId);

ncclResult_t pncclCommInitRankScalable(ncclComm_t *out, int nranks, int rank, int nids,
				       ncclUniqueId *ids, ncclConfig_t *config)
{
	struct birth birth = { .how = BY_IDS,
			       .nranks = nranks,
			       .rank = rank,
			       .nids = nids,
			       .ids = (tutti_unique_id *)(void *)ids };

	if (!ids || nids < 1)
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "%d unique ids at %p: give 1 or more", nids, (void *)ids);
	return begin(&birth, config, out);
}
ALSO_NAMED(ncclCommInitRankScalable);

ncclResult_t pncclCommInitRankConfig(ncclComm_t *out, int nranks, ncclUniqueId id, int rank,
				     ncclConfig_t *config)
{
	return pncclCommInitRankScalable(out, nranks, rank, 1, &id, config);
}
ALSO_NAMED(ncclCommInitRankConfig);

ncclResult_t pncclCommInitRank(ncclComm_t *out, int nranks, ncclUniqueId id, int rank)
{
	return pncclCommInitRankScalable(out, nranks, rank, 1, &id, NULL);
}
ALSO_NAMED(ncclCommInitRank);

/* -- All ranks of a process ---------------------------------------------------------------- */

static ncclResult_t check_devices(int n, const int *devices)
{
	const char *shared = tti_nccl_variable("NCCL_MULTI_RANK_GPU_ENABLE");

	for (int at = 0; devices && at < n; at++) {
		if (devices[at] < 0)
			return tti_nccl_fail(NULL, ncclInvalidArgument, "there is no device %d",
					     devices[at]);
		for (int before = 0; before < at; before++)
			if (devices[before] == devices[at] && (!shared || !strcmp(shared, "0")))
				return tti_nccl_fail(NULL, ncclInvalidUsage,
						     "ranks %d and %d have device %d: give each "
						     "its own, or set "
						     "NCCL_MULTI_RANK_GPU_ENABLE=1",
						     before, at, devices[at]);
	}
	return ncclSuccess;
}

static ncclResult_t create_handles(ncclComm_t *comms, int n, const int *devices)
{
	ncclResult_t result = ncclSuccess;

	for (int rank = 0; rank < n && result == ncclSuccess; rank++) {
		result = tti_nccl_comm_create(&comms[rank]);
		if (result == ncclSuccess)
			comms[rank]->device = devices ? devices[rank] : rank;
	}
	return result;
}

/* Ranks that have devices of their own are made one by one, in a group. */
static tutti_status init_each(tutti_comm_t *out, const ncclComm_t *comms, int n)
{
	tutti_status status, ended;
	tutti_unique_id id;

	status = tutti_get_unique_id(&id);
	if (status != TUTTI_OK)
		return status;
	status = tutti_group_start();
	if (status != TUTTI_OK)
		return status;
	for (int rank = 0; rank < n && status == TUTTI_OK; rank++) {
		tutti_config config = TUTTI_CONFIG_INIT;

		config.device = comms[rank]->device;
		status = tutti_comm_init_rank_config(&out[rank], n, id, rank, &config);
	}
	ended = tutti_group_end();
	return status != TUTTI_OK ? status : ended;
}

static tutti_status init_all(tutti_comm_t *out, const ncclComm_t *comms, int n)
{
	return comms[0]->has_kernels ? init_each(out, comms, n) : tutti_comm_init_all(out, n, NULL);
}

ncclResult_t pncclCommInitAll(ncclComm_t *out, int ndevices, const int *devices)
{
	ncclComm_t *comms;
	tutti_comm_t *made;
	ncclResult_t result;

	if (!out || ndevices < 1)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "%d communicators at %p: 1 or more",
				     ndevices, (void *)out);
	result = check_devices(ndevices, devices);
	if (result != ncclSuccess)
		return result;
	comms = calloc((size_t)ndevices, sizeof(ncclComm_t));
	made = calloc((size_t)ndevices, sizeof(tutti_comm_t));
	result = comms && made ? create_handles(comms, ndevices, devices)
			       : tti_nccl_fail(NULL, ncclSystemError, "%d ranks: out of memory",
					       ndevices);
	if (result == ncclSuccess)
		result = report_birth(NULL, comms[0], init_all(made, comms, ndevices));
	for (int rank = 0; comms && rank < ndevices; rank++) {
		if (result == ncclSuccess) {
			comms[rank]->comm = made[rank];
			out[rank] = comms[rank];
		} else if (comms[rank]) {
			tti_nccl_comm_free(comms[rank]);
		}
	}
	free(comms);
	free(made);
	return result;
}
ALSO_NAMED(ncclCommInitAll);

/* -- Of others ------------------------------------------------------------------------------ */

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
			    ncclConfig_t *config)
{
	struct birth birth = { .how = BY_SPLIT, .parent = comm, .color = color, .key = key };
	const ncclResult_t result = tti_nccl_comm_check(comm);

	if (result != ncclSuccess)
		return result;
	if (tti_nccl_in_group() && is_revoked(comm->comm))
		return tti_nccl_fail(comm, ncclInvalidUsage,
				     "the communicator was revoked: split it outside of a group, "
				     "each rank by a thread of its own");
	return begin(&birth, config, out);
}
ALSO_NAMED(ncclCommSplit);

ncclResult_t pncclCommShrink(ncclComm_t comm, int *without, int nwithout, ncclComm_t *out,
			     ncclConfig_t *config, int flags)
{
	struct birth birth = { .how = BY_SHRINK,
			       .parent = comm,
			       .nids = nwithout,
			       .excluded = without,
			       .flags = flags == NCCL_SHRINK_ABORT ? TUTTI_SHRINK_FAILED
								   : TUTTI_SHRINK_DEFAULT };
	const ncclResult_t result = tti_nccl_comm_check(comm);

	if (result != ncclSuccess)
		return result;
	if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "flags are %d: NCCL_SHRINK_DEFAULT or NCCL_SHRINK_ABORT",
				     flags);
	if (nwithout < 0 || (nwithout > 0 && !without))
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "%d ranks to exclude at %p: give 0 or more", nwithout,
				     (void *)without);
	if (flags == NCCL_SHRINK_ABORT)
		tti_nccl_let_go(comm);
	return begin(&birth, config, out);
}
ALSO_NAMED(ncclCommShrink);

ncclResult_t pncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
			   ncclComm_t *out, ncclConfig_t *config)
{
	tutti_unique_id ids[1];
	struct birth birth = { .how = BY_GROW,
			       .parent = comm,
			       .nranks = nranks,
			       .rank = rank,
			       .nids = 1,
			       .ids = id ? ids : NULL };

	if (comm) {
		const ncclResult_t result = tti_nccl_comm_check(comm);

		if (result != ncclSuccess)
			return result;
		comm->has_grow_id = false;
	}
	if (id)
		memcpy(ids, id, sizeof(ids));
	return begin(&birth, config, out);
}
ALSO_NAMED(ncclCommGrow);
