/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap whose ranks are threads of one process: memory only.
 *
 * Owner: the ranks together; the last one to close frees it. Threads: any, under the lock; callbacks
 * run without it. */
#include <pthread.h>
#include <sodium.h>
#include <stdarg.h>
#include <string.h>

#include "boot/base.h"
#include "boot/boot.h"
#include "boot/net/wire.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/secret.h"
#include "util/strbuf.h"
#include "util/thread.h"

struct world;

struct local {
	struct tti_boot base;
	struct world *world;
	bool left; /* closed, or said goodbye */
	uint64_t ngathers;

	/* The watch. */
	bool watching, told;
	int calling; /* callbacks of this rank that are running */
	struct tti_watch_events events;
};

/* An all-gather or a broadcast under way. There are at most two at a time: one of even number, one of odd. */
struct gather {
	uint8_t *blobs;
	size_t nbytes; /* of a blob        */
	int root;      /* the rank with the only blob; -1: each rank has one */
	int arrived, copied;
	bool *has;
};

struct world {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int nranks, nopen;
	int64_t timeout_ms;
	const _Atomic int *stop;
	struct gather gathers[2];
	bool lost;
	struct tti_failure failure;
	struct tti_failure broken; /* of an exchange; status 0: none */
	struct local **ranks;
};

/* -- Waiting and failing ------------------------------------------------------------- */

TUTTI_PRINTF(4, 5)
static tutti_status fail(struct local *local, tutti_status status, int failed_rank, const char *fmt,
			 ...)
{
	struct world *world = local->world;
	va_list args;

	if (world->broken.status == 0) {
		va_start(args, fmt);
		world->broken = tti_failure_vmake(status, failed_rank, local->base.rank, fmt, args);
		va_end(args);
		pthread_cond_broadcast(&world->changed);
	}
	return tti_fail((tutti_status)world->broken.status, "%s", world->broken.text);
}

static void nap(struct world *world, int64_t deadline_ns)
{
	const int64_t slice_ns = tti_deadline(world->stop ? TTI_BOOT_NAP_MS : 60000);

	tti_cond_wait_until(&world->changed, &world->lock,
			    slice_ns < deadline_ns ? slice_ns : deadline_ns);
}

/* Whether waiting has become useless, apart from the deadline. */
static tutti_status check(struct local *local, const char *what)
{
	struct world *world = local->world;

	if (world->broken.status != 0)
		return tti_fail_quiet((tutti_status)world->broken.status, "%s", world->broken.text);
	if (tti_boot_stopped(world->stop))
		return fail(local, TUTTI_EABORTED, -1, "%s was aborted", what);
	return TUTTI_OK;
}

/* -- All-gather ------------------------------------------------------------------------ */

/* The ranks that have not arrived, as text; the first one in *first. */
static void format_missing(struct world *world, const struct gather *gather, char *text,
			   size_t size, int *first, size_t *n)
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

static const char *name_of(const struct gather *gather)
{
	return gather->root >= 0 ? "broadcast" : gather->nbytes ? "all_gather" : "barrier";
}

/* Bytes of all blobs. */
static size_t total_of(const struct world *world, const struct gather *gather)
{
	return gather->root >= 0 ? gather->nbytes : (size_t)world->nranks * gather->nbytes;
}

static tutti_status arrive(struct local *local, struct gather *gather, const uint8_t *blobs,
			   int root, size_t nbytes)
{
	struct world *world = local->world;
	const int rank = local->base.rank;
	const size_t own = root >= 0 ? 0 : (size_t)rank * nbytes;

	if (gather->arrived == 0) {
		gather->nbytes = nbytes;
		gather->root = root;
		gather->blobs = nbytes ? tti_alloc(total_of(world, gather)) : NULL;
		if (nbytes > 0 && !gather->blobs)
			return tti_fail(TUTTI_ENOMEM, "no memory for: %s", name_of(gather));
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

/* Wait for the others. A rank that has left will not come. */
static tutti_status await(struct local *local, struct gather *gather)
{
	struct world *world = local->world;
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

/* Copy the blobs of all; the last rank to copy frees them. */
static void copy(struct local *local, struct gather *gather, uint8_t *blobs)
{
	struct world *world = local->world;
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
	struct local *local = (struct local *)boot;
	struct world *world = local->world;
	tutti_status status;

	pthread_mutex_lock(&world->lock);

	/* No rank is two exchanges ahead: the next one begins when all have come to this one. */
	struct gather *gather = &world->gathers[local->ngathers++ % 2];

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

static void give_up(struct tti_boot *boot, const struct tti_failure *failure)
{
	struct world *world = ((struct local *)boot)->world;

	pthread_mutex_lock(&world->lock);
	if (world->broken.status == 0)
		world->broken = *failure;
	pthread_cond_broadcast(&world->changed);
	pthread_mutex_unlock(&world->lock);
}

/* -- The watch -------------------------------------------------------------------------- */

/* A callback runs without the lock, so that it may call back into the watch. Meanwhile its rank counts it
 * as `calling`, and stop waits for that. */
static void begin_call(struct local *local, struct tti_watch_events *events)
{
	local->calling++;
	*events = local->events;
	pthread_mutex_unlock(&local->world->lock);
}

static void end_call(struct local *local)
{
	pthread_mutex_lock(&local->world->lock);
	if (--local->calling == 0)
		pthread_cond_broadcast(&local->world->changed);
}

/* Report the failure to this rank, once. The lock is held. */
static void tell(struct local *local)
{
	struct tti_watch_events events;

	if (!local->watching || local->told)
		return;
	local->told = true;
	begin_call(local, &events);
	if (events.on_lost)
		events.on_lost(events.self, &local->world->failure);
	end_call(local);
}

static tutti_status watch_start(struct tti_boot *boot, const struct tti_watch_events *events)
{
	struct local *local = (struct local *)boot;

	pthread_mutex_lock(&local->world->lock);
	local->events = *events;
	local->watching = true;
	if (local->world->lost)
		tell(local);
	pthread_mutex_unlock(&local->world->lock);
	return TUTTI_OK;
}

static void watch_notify(struct tti_boot *boot, const struct tti_failure *failure)
{
	struct local *local = (struct local *)boot;
	struct world *world = local->world;

	pthread_mutex_lock(&world->lock);
	if (!world->lost && local->watching) {
		world->lost = true;
		world->failure = *failure;
		world->failure.text[TTI_FAILURE_TEXT - 1] = '\0';
		for (int rank = 0; rank < world->nranks; rank++)
			tell(world->ranks[rank]);
	}
	pthread_mutex_unlock(&world->lock);
}

static void watch_ask(struct tti_boot *boot, int peer)
{
	struct local *local = (struct local *)boot;
	struct local *other = local->world->ranks[peer];
	struct tti_watch_events events;
	struct tti_call call = { .waiting_on = -1 };
	bool answered = false;

	pthread_mutex_lock(&local->world->lock);
	/* A rank that has not begun to watch does not answer. */
	if (local->watching && (other->watching || other->left)) {
		if (other->watching) {
			begin_call(other, &events);
			if (events.on_ask)
				events.on_ask(events.self, &call);
			end_call(other);
			answered = true;
		}
		if (local->watching) {
			begin_call(local, &events);
			if (events.on_answer)
				events.on_answer(events.self, peer, answered ? &call : NULL);
			end_call(local);
		}
	}
	pthread_mutex_unlock(&local->world->lock);
}

static void watch_stop(struct tti_boot *boot)
{
	struct local *local = (struct local *)boot;

	pthread_mutex_lock(&local->world->lock);
	local->watching = false;
	local->left = true;
	pthread_cond_broadcast(&local->world->changed);
	while (local->calling > 0)
		pthread_cond_wait(&local->world->changed, &local->world->lock);
	pthread_mutex_unlock(&local->world->lock);
}

/* -- Mail ------------------------------------------------------------------------------ */

static tutti_status send_mail(struct tti_boot *boot, int peer, const struct tti_mail *mail,
			      size_t nbytes)
{
	struct local *local = (struct local *)boot;
	struct local *to = local->world->ranks[peer];
	bool left;

	pthread_mutex_lock(&local->world->lock);
	left = to->left;
	pthread_mutex_unlock(&local->world->lock);
	if (!left)
		tti_dispatcher_take(&to->base, boot->rank, mail, nbytes);
	return TUTTI_OK;
}

static void go_down(struct local *local)
{
	struct world *world = local->world;

	for (int rank = 0; rank < world->nranks; rank++)
		if (rank != local->base.rank)
			tti_dispatcher_down(&world->ranks[rank]->base.dispatcher, local->base.rank,
					    TTI_DOWN_LEFT, true, "left", NULL);
}

/* -- Opening and closing ------------------------------------------------------------------- */

static void free_world(struct world *world)
{
	for (int i = 0; i < world->nranks && world->ranks; i++) {
		struct local *local = world->ranks[i];

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

/* The rank's memory stays until all have closed: others may look at it. */
static void close_rank(struct tti_boot *boot)
{
	struct local *local = (struct local *)boot;
	struct world *world = local->world;
	bool last;

	pthread_mutex_lock(&world->lock);
	local->left = true;
	pthread_mutex_unlock(&world->lock);
	go_down(local);
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
	.give_up = give_up,
	.close = close_rank,
	.watch_start = watch_start,
	.watch_notify = watch_notify,
	.watch_ask = watch_ask,
	.watch_stop = watch_stop,
	.mail = send_mail,
};

static tutti_status fill_world(struct world *world, int nranks)
{
	world->ranks = tti_calloc((size_t)nranks, sizeof(struct local *));
	world->gathers[0].has = tti_calloc((size_t)nranks, sizeof(bool));
	world->gathers[1].has = tti_calloc((size_t)nranks, sizeof(bool));
	if (!world->ranks || !world->gathers[0].has || !world->gathers[1].has)
		return tti_fail(TUTTI_ENOMEM, "no memory for %d ranks", nranks);
	for (int i = 0; i < nranks; i++) {
		struct local *local = tti_secret_zalloc(sizeof(*local));

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
	struct world *world;
	tutti_status status;

	if (nranks < 1)
		return tti_fail(TUTTI_EINVAL, "a bootstrap of %d ranks: at least 1", nranks);
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
