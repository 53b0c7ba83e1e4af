/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/family/follow.h"

#include <stdio.h>
#include <time.h>

#include "core/comm_error.h"
#include "core/family/child.h"
#include "util/clock.h"
#include "util/error.h"

#define REASON_NS (500 * TTI_NS_PER_MS)

static void follow(struct tti_comm *whom, struct tti_comm *child)
{
	pthread_mutex_lock(&whom->lock);
	child->next_follower = whom->followers;
	whom->followers = child;
	tti_comm_stop_follower(child, (tutti_status)atomic_load(&whom->async_error));
	pthread_mutex_unlock(&whom->lock);
}

static void leave(struct tti_comm *whom, struct tti_comm *child)
{
	struct tti_comm **link = &whom->followers;

	pthread_mutex_lock(&whom->lock);
	while (*link != child)
		link = &(*link)->next_follower;
	*link = child->next_follower;
	pthread_mutex_unlock(&whom->lock);
}

static bool may_be_a_death(tutti_status status)
{
	return status == TUTTI_EPEER || status == TUTTI_ESYS || status == TUTTI_EPROTO;
}

/* A rank that learns earlier that the parent is lost leaves the init, which looks as if it had
 * died: wait a moment for the real reason. */
static void await_reason(const struct tti_comm *whom, const struct tti_comm *child)
{
	const int64_t deadline = tti_now_ns() + REASON_NS;
	const struct timespec nap = { .tv_nsec = 500 * 1000 };

	while (atomic_load(&child->stop) == 0 && atomic_load(&whom->async_error) == 0 &&
	       tti_now_ns() < deadline)
		nanosleep(&nap, NULL);
}

/* The parent has not heard of the death, so the text has numbers of the new communicator. */
static tutti_status say_numbers(tutti_status status)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "%s", tti_error_text());
	return tti_fail_quiet(status, "%s (by its number in the communicator that was being made)",
			      text);
}

void tti_child_follow(const struct tti_maker *maker, struct tti_comm *comm)
{
	comm->follows_deaths = maker->follows_deaths;
	if (maker->follows)
		follow(maker->follows, comm);
}

tutti_status tti_child_unfollow(const struct tti_maker *maker, struct tti_comm *comm,
				tutti_status status)
{
	struct tti_comm *const whom = maker->follows;

	if (!whom)
		return status;
	if (may_be_a_death(status) && !maker->stranger)
		await_reason(whom, comm);
	leave(whom, comm);
	if (atomic_load(&comm->stop) < 0 ||
	    (may_be_a_death(status) && atomic_load(&whom->async_error) == TUTTI_EPEER))
		return tti_comm_async_error(whom);
	return status == TUTTI_EPEER && maker->ranks ? say_numbers(status) : status;
}
