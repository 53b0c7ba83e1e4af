/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/family/local.h"

/* A callback runs without the lock, so that it may call back into the watch; the
 * rank is marked as calling meanwhile, and stop waits until it is not. */
static void begin_call(struct tti_boot_local *local, struct tti_watch_events *events)
{
	local->calling++;
	*events = local->events;
	pthread_mutex_unlock(&local->world->lock);
}

static void end_call(struct tti_boot_local *local)
{
	pthread_mutex_lock(&local->world->lock);
	if (--local->calling == 0)
		pthread_cond_broadcast(&local->world->changed);
}

/* Tell this rank the news, once; the lock is held. */
static void tell(struct tti_boot_local *local)
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

tutti_status tti_boot_local_watch_start(struct tti_boot *boot,
					const struct tti_watch_events *events)
{
	struct tti_boot_local *local = (struct tti_boot_local *)boot;

	pthread_mutex_lock(&local->world->lock);
	local->events = *events;
	local->watching = true;
	if (local->world->lost)
		tell(local);
	pthread_mutex_unlock(&local->world->lock);
	return TUTTI_OK;
}

void tti_boot_local_watch_notify(struct tti_boot *boot, const struct tti_failure *failure)
{
	struct tti_boot_local *local = (struct tti_boot_local *)boot;
	struct tti_boot_local_world *world = local->world;

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

void tti_boot_local_watch_ask(struct tti_boot *boot, int peer)
{
	struct tti_boot_local *local = (struct tti_boot_local *)boot;
	struct tti_boot_local *other = local->world->ranks[peer];
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

void tti_boot_local_watch_stop(struct tti_boot *boot)
{
	struct tti_boot_local *local = (struct tti_boot_local *)boot;

	pthread_mutex_lock(&local->world->lock);
	local->watching = false;
	local->left = true;
	pthread_cond_broadcast(&local->world->changed);
	while (local->calling > 0)
		pthread_cond_wait(&local->world->changed, &local->world->lock);
	pthread_mutex_unlock(&local->world->lock);
}

/* -- Mail ------------------------------------------------------------------------------ */

tutti_status tti_boot_local_mail(struct tti_boot *boot, int peer, const struct tti_mail *mail,
				 size_t nbytes)
{
	struct tti_boot_local *local = (struct tti_boot_local *)boot;
	struct tti_boot_local *to = local->world->ranks[peer];
	bool left;

	pthread_mutex_lock(&local->world->lock);
	left = to->left;
	pthread_mutex_unlock(&local->world->lock);
	if (!left)
		tti_dispatcher_take(&to->base, boot->rank, mail, nbytes);
	return TUTTI_OK;
}

void tti_boot_local_go_down(struct tti_boot_local *local)
{
	struct tti_boot_local_world *world = local->world;

	for (int rank = 0; rank < world->nranks; rank++)
		if (rank != local->base.rank)
			tti_dispatcher_down(&world->ranks[rank]->base.dispatcher, local->base.rank,
					    TTI_DOWN_LEFT, true, "left", NULL);
}
