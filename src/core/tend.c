/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/tend.h"

#include "boot/watch/watch.h"
#include "util/clock.h"
#include "util/thread.h"

/* How soon to look again at links that a call uses, whose thread tends them itself. */
#define BUSY_NS (1000 * TTI_NS_PER_MS)
#define NAP_NS  (1 * TTI_NS_PER_MS)

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t tend_ports(struct tti_comm *comm)
{
	int64_t next_ns = TTI_NEVER;

	for (int i = 0; i < comm->nports; i++) {
		struct tti_port *port = comm->ports[i];

		if (port->transport->tend && port->failure == TUTTI_OK)
			next_ns = earlier(next_ns, port->transport->tend(port));
	}
	return next_ns;
}

void tti_tend_begin(struct tti_comm *comm)
{
	struct tti_comm *root = comm->root;

	if (comm->device || tend_ports(comm) == TTI_NEVER || !tti_watch_tick(root->boot))
		return;
	pthread_mutex_lock(&root->tend_lock);
	comm->is_tended = true;
	comm->next_tended = root->tended;
	root->tended = comm;
	pthread_mutex_unlock(&root->tend_lock);
}

void tti_tend_end(struct tti_comm *comm)
{
	struct tti_comm *root = comm->root;

	if (!comm->is_tended)
		return;
	pthread_mutex_lock(&root->tend_lock);
	for (struct tti_comm **link = &root->tended; *link; link = &(*link)->next_tended)
		if (*link == comm) {
			*link = comm->next_tended;
			break;
		}
	comm->is_tended = false;
	pthread_mutex_unlock(&root->tend_lock);
}

void tti_tend_await_links(struct tti_comm *comm)
{
	uint32_t user = TTI_LINKS_FREE;

	while (!atomic_compare_exchange_weak(&comm->links_user, &user, TTI_LINKS_CALL)) {
		if (user != TTI_LINKS_FREE)
			tti_futex_wait(&comm->links_user, user, NAP_NS);
		user = TTI_LINKS_FREE;
	}
}

static int64_t tend(struct tti_comm *comm)
{
	uint32_t user = TTI_LINKS_FREE;
	int64_t next_ns;

	if (atomic_load(&comm->async_error) ||
	    !atomic_compare_exchange_strong(&comm->links_user, &user, TTI_LINKS_WATCH))
		return tti_now_ns() + BUSY_NS;
	next_ns = tend_ports(comm);
	atomic_store(&comm->links_user, TTI_LINKS_FREE);
	tti_futex_wake(&comm->links_user, 1);
	return next_ns;
}

int64_t tti_tend_on_tick(void *self)
{
	struct tti_comm *root = self;
	int64_t next_ns = TTI_NEVER;

	/* A communicator that ends waits for this, so its ports stay. */
	pthread_mutex_lock(&root->tend_lock);
	for (struct tti_comm *comm = root->tended; comm; comm = comm->next_tended)
		next_ns = earlier(next_ns, tend(comm));
	pthread_mutex_unlock(&root->tend_lock);
	return next_ns;
}
