/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/family/local.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/secret.h"
#include "util/strbuf.h"
#include "util/thread.h"

/* -- Waiting and failing ------------------------------------------------------------- */

TUTTI_PRINTF(4, 5)
static tutti_status fail(struct tti_boot_local *local, tutti_status status, int failed_rank,
			 const char *fmt, ...)
{
	struct tti_boot_local_world *world = local->world;
	va_list args;

	if (world->broken.status == 0) {
		world->broken = (struct tti_failure){ .status = status,
						      .failed_rank = failed_rank,
						      .origin = local->base.rank };
		va_start(args, fmt);
		(void)vsnprintf(world->broken.text, sizeof(world->broken.text), fmt, args);
		va_end(args);
		pthread_cond_broadcast(&world->changed);
	}
	return tti_fail((tutti_status)world->broken.status, "%s", world->broken.text);
}

static void nap(struct tti_boot_local_world *world, int64_t deadline_ns)
{
	const int64_t slice_ns = tti_deadline(world->stop ? TTI_BOOT_NAP_MS : 60000);

	tti_cond_wait_until(&world->changed, &world->lock,
			    slice_ns < deadline_ns ? slice_ns : deadline_ns);
}

/* Whether waiting is in vain, apart from the deadline. */
static tutti_status check(struct tti_boot_local *local, const char *what)
{
	struct tti_boot_local_world *world = local->world;

	if (world->broken.status != 0)
		return tti_fail_quiet((tutti_status)world->broken.status, "%s", world->broken.text);
	if (tti_boot_stopped(world->stop))
		return fail(local, TUTTI_EABORTED, -1, "%s was aborted", what);
	return TUTTI_OK;
}

/* -- All-gather ------------------------------------------------------------------------ */

/* The ranks that have not arrived; the first in *first. */
static void format_missing(struct tti_boot_local_world *world,
			   const struct tti_boot_local_gather *gather, char *text, size_t size,
			   int *first, size_t *n)
{
	int *missing = tti_calloc((size_t)world->nranks, sizeof(*missing));

	*n = 0;
	*first = -1;
	for (int rank = 0; rank < world->nranks; rank++) {
		if (gather->has[rank])
			continue;
		if (*first < 0)
			*first = rank;
		if (missing)
			missing[(*n)++] = rank;
	}
	tti_format_ranks(text, size, missing, *n);
	tti_free(missing);
}

static const char *name_of(const struct tti_boot_local_gather *gather)
{
	return gather->root >= 0 ? "broadcast" : gather->nbytes ? "all_gather" : "barrier";
}

/* Bytes of all blobs. */
static size_t total_of(const struct tti_boot_local_world *world,
		       const struct tti_boot_local_gather *gather)
{
	return gather->root >= 0 ? gather->nbytes : (size_t)world->nranks * gather->nbytes;
}

static tutti_status arrive(struct tti_boot_local *local, struct tti_boot_local_gather *gather,
			   const uint8_t *blobs, int root, size_t nbytes)
{
	struct tti_boot_local_world *world = local->world;
	const int rank = local->base.rank;
	const size_t own = root >= 0 ? 0 : (size_t)rank * nbytes;

	if (gather->arrived == 0) {
		gather->nbytes = nbytes;
		gather->root = root;
		gather->blobs = nbytes ? tti_alloc(total_of(world, gather)) : NULL;
		if (nbytes > 0 && !gather->blobs)
			return fail(local, TUTTI_ENOMEM, -1, "no memory for: %s", name_of(gather));
	}
	if (gather->nbytes != nbytes || gather->root != root)
		return fail(local, TUTTI_EPROTO, rank,
			    "%s: rank %d brings %zu bytes, others %zu, or another root",
			    name_of(gather), rank, nbytes, gather->nbytes);
	if (nbytes > 0 && (root < 0 || root == rank))
		memcpy(gather->blobs + own, blobs + own, nbytes);
	gather->has[local->base.rank] = true;
	gather->arrived++;
	if (gather->arrived == world->nranks)
		pthread_cond_broadcast(&world->changed);
	return TUTTI_OK;
}

/* Wait for the others: those who have left will not come. */
static tutti_status await(struct tti_boot_local *local, struct tti_boot_local_gather *gather)
{
	struct tti_boot_local_world *world = local->world;
	const int64_t deadline_ns = tti_deadline(world->timeout_ms);
	const char *what = name_of(gather);
	char text[128];
	int first;
	size_t n;

	while (gather->arrived < world->nranks) {
		TTI_TRY(check(local, what));
		for (int rank = 0; rank < world->nranks; rank++)
			if (world->ranks[rank]->left && !gather->has[rank])
				return fail(local, TUTTI_EPEER, rank, "rank %d left before %s",
					    rank, what);
		if (tti_left_ms(deadline_ns, 1) == 0) {
			format_missing(world, gather, text, sizeof(text), &first, &n);
			return fail(local, TUTTI_ETIMEOUT, first,
				    "%s: rank%s %s of %d did not come within %lld ms", what,
				    n == 1 ? "" : "s", text, world->nranks,
				    (long long)world->timeout_ms);
		}
		nap(world, deadline_ns);
	}
	return TUTTI_OK;
}

/* The blobs of all others; the last one to copy frees them. */
static void copy(struct tti_boot_local *local, struct tti_boot_local_gather *gather, uint8_t *blobs)
{
	struct tti_boot_local_world *world = local->world;
	const size_t total = total_of(world, gather);

	if (total > 0) {
		pthread_mutex_unlock(&world->lock);
		memcpy(blobs, gather->blobs, total);
		pthread_mutex_lock(&world->lock);
	}
	if (++gather->copied < world->nranks)
		return;
	tti_free(gather->blobs);
	gather->blobs = NULL;
	gather->arrived = gather->copied = 0;
	memset(gather->has, 0, (size_t)world->nranks * sizeof(*gather->has));
}

static tutti_status exchange(struct tti_boot *boot, int root, void *blobs, size_t nbytes)
{
	struct tti_boot_local *local = (struct tti_boot_local *)boot;
	struct tti_boot_local_world *world = local->world;
	tutti_status status;

	pthread_mutex_lock(&world->lock);

	/* Nobody can be two ahead: the next one begins when all have come to this. */
	struct tti_boot_local_gather *gather = &world->gathers[local->ngathers++ % 2];

	status = check(local, root < 0 ? "all_gather" : "broadcast");
	if (status == TUTTI_OK)
		status = arrive(local, gather, blobs, root, nbytes);
	if (status == TUTTI_OK)
		status = await(local, gather);
	if (status == TUTTI_OK)
		copy(local, gather, blobs);
	pthread_mutex_unlock(&world->lock);
	return status;
}

static tutti_status all_gather(struct tti_boot *boot, void *blobs, size_t nbytes)
{
	return exchange(boot, -1, blobs, nbytes);
}

static tutti_status broadcast(struct tti_boot *boot, int root, void *data, size_t nbytes)
{
	return exchange(boot, root, data, nbytes);
}

/* -- Opening and closing ------------------------------------------------------------------- */

static void free_world(struct tti_boot_local_world *world)
{
	for (int i = 0; i < world->nranks && world->ranks; i++) {
		struct tti_boot_local *local = world->ranks[i];

		if (!local)
			continue;
		tti_dispatcher_release(&local->base.dispatcher);
		tti_secret_free(local);
	}
	for (int i = 0; i < 2; i++) {
		tti_free(world->gathers[i].blobs);
		tti_free(world->gathers[i].has);
	}
	pthread_cond_destroy(&world->changed);
	pthread_mutex_destroy(&world->lock);
	tti_free(world->ranks);
	tti_free(world);
}

/* The rank itself stays until all have closed: others may look at it. */
static void close_rank(struct tti_boot *boot)
{
	struct tti_boot_local *local = (struct tti_boot_local *)boot;
	struct tti_boot_local_world *world = local->world;
	bool last;

	pthread_mutex_lock(&world->lock);
	local->left = true;
	pthread_mutex_unlock(&world->lock);
	tti_boot_local_go_down(local);
	pthread_mutex_lock(&world->lock);
	last = --world->nopen == 0;
	pthread_cond_broadcast(&world->changed);
	pthread_mutex_unlock(&world->lock);
	if (last)
		free_world(world);
}

static const struct tti_boot_ops local_ops = {
	.all_gather = all_gather,
	.broadcast = broadcast,
	.close = close_rank,
	.watch_start = tti_boot_local_watch_start,
	.watch_notify = tti_boot_local_watch_notify,
	.watch_ask = tti_boot_local_watch_ask,
	.watch_stop = tti_boot_local_watch_stop,
	.mail = tti_boot_local_mail,
};

static tutti_status fill_world(struct tti_boot_local_world *world, int nranks)
{
	world->ranks = tti_calloc((size_t)nranks, sizeof(struct tti_boot_local *));
	world->gathers[0].has = tti_calloc((size_t)nranks, sizeof(bool));
	world->gathers[1].has = tti_calloc((size_t)nranks, sizeof(bool));
	if (!world->ranks || !world->gathers[0].has || !world->gathers[1].has)
		return tti_fail(TUTTI_ENOMEM, "no memory for %d ranks", nranks);
	for (int i = 0; i < nranks; i++) {
		struct tti_boot_local *local = tti_secret_zalloc(sizeof(*local));

		if (!local)
			return tti_fail(TUTTI_ENOMEM, "no memory for %d ranks", nranks);
		local->base.ops = &local_ops;
		local->base.rank = i;
		local->base.nranks = nranks;
		local->base.local = true;
		if (i == 0)
			randombytes_buf(local->base.secret, TTI_SECRET_BYTES);
		else
			memcpy(local->base.secret, world->ranks[0]->base.secret, TTI_SECRET_BYTES);
		local->world = world;
		world->ranks[i] = local;
		TTI_TRY(tti_dispatcher_init(&local->base.dispatcher, nranks));
	}
	return TUTTI_OK;
}

tutti_status tti_boot_local_create(int nranks, const _Atomic int *stop, struct tti_boot **out)
{
	struct tti_boot_local_world *world;
	tutti_status status;

	if (nranks < 1)
		return tti_fail(TUTTI_EINVAL, "%d ranks", nranks);
	tti_assert(sodium_init() >= 0);
	world = tti_zalloc(sizeof(*world));
	if (!world)
		return tti_fail(TUTTI_ENOMEM, "no memory for %d ranks", nranks);
	pthread_mutex_init(&world->lock, NULL);
	tti_cond_init(&world->changed);
	world->nranks = world->nopen = nranks;
	world->stop = stop;
	world->timeout_ms = tti_params()->boot_timeout_ms;
	status = fill_world(world, nranks);
	if (status != TUTTI_OK) {
		free_world(world);
		return status;
	}
	for (int i = 0; i < nranks; i++)
		out[i] = &world->ranks[i]->base;
	return TUTTI_OK;
}
