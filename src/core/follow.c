/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/child.h"
#include "util/error.h"

/* A child that is being made waits for ranks of its parent. What tells those that they need
 * not come, tells the child that it need not wait. */

static bool concerns(const struct tti_comm *child, tutti_status fate)
{
	return fate == TUTTI_EREVOKED || (fate == TUTTI_EPEER && child->follows_deaths);
}

/* An abort of the child's own comes first. */
static void end(struct tti_comm *child, tutti_status fate)
{
	int none = 0;

	if (concerns(child, fate))
		(void)atomic_compare_exchange_strong(&child->stop, &none, (int)fate);
}

void tti_child_end_followers(struct tti_comm *comm, tutti_status status)
{
	for (struct tti_comm *child = comm->followers; child; child = child->next_follower)
		end(child, status);
}

static void follow(struct tti_comm *whom, struct tti_comm *child)
{
	pthread_mutex_lock(&whom->lock);
	child->next_follower = whom->followers;
	whom->followers = child;
	end(child, (tutti_status)atomic_load(&whom->fate));
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

tutti_status tti_child_connect(struct tti_maker *maker, struct tti_comm *comm,
			       struct tti_boot **boot)
{
	struct tti_comm *const whom = maker->follows;
	tutti_status st;

	if (!whom)
		return maker->connect(maker, comm, boot);
	*boot = NULL;
	comm->follows_deaths = maker->follows_deaths;
	follow(whom, comm);
	st = maker->connect(maker, comm, boot);
	leave(whom, comm);
	if (atomic_load(&comm->stop) >= 0)
		return st;
	tti_boot_close(*boot);
	*boot = NULL;
	return tti_comm_fate(whom);
}
