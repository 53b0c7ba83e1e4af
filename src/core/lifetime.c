/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/lifetime.h"

#include <stdio.h>

#include "boot/boot.h"
#include "boot/watch/agreement.h"
#include "boot/watch/callers.h"
#include "boot/watch/watch.h"
#include "core/call/timeout.h"
#include "core/device/facts.h"
#include "core/device/flight.h"
#include "core/device/lend.h"
#include "core/handoff/handoff.h"
#include "core/handoff/sides.h"
#include "core/init/agree.h"
#include "core/init/tuning.h"
#include "core/message/message.h"
#include "core/prepare/memory.h"
#include "core/prepare/operators.h"
#include "core/prepare/prepared.h"
#include "core/prepare/programs.h"
#include "core/prepare/transfers.h"
#include "core/tend.h"
#include "core/window/window.h"
#include "util/mem.h"
#include "util/params.h"

struct tti_comm *tti_comm_create(int rank, int n, const tutti_config *config)
{
	struct tti_comm *comm = tti_zalloc(sizeof(*comm));

	if (!comm)
		return NULL;
	comm->rank = rank;
	comm->n = n;
	comm->reproducible = tti_params()->reproducible >= 0 ? tti_params()->reproducible == 1
							     : config->reproducible == 1;
	comm->encrypt = tti_params()->encrypt || config->encrypt == 1;
	comm->traffic_class = tti_params()->traffic_class >= 0 ? (int)tti_params()->traffic_class
							       : config->traffic_class;
	comm->device_wish = config->device;
	tti_timeouts_init(&comm->timeouts, config);
	comm->boot_timeout = tti_timeout_of_boot(config);
	comm->config_boot_timeout_ms = config->boot_timeout_ms;
	comm->root = comm;
	atomic_init(&comm->users, 1);
	if (config->name)
		snprintf(comm->name, sizeof(comm->name), "%s", config->name);
	atomic_init(&comm->init_status, TUTTI_AGAIN);
	pthread_mutex_init(&comm->lock, NULL);
	pthread_mutex_init(&comm->tend_lock, NULL);
	comm->stall.suspect = -1;
	return comm;
}

void tti_comm_hold(struct tti_comm *comm, struct tti_comm *relative)
{
	comm->root = relative->root;
	atomic_fetch_add(&comm->root->users, 1);
}

/* What init found out about the machines. */
static void free_findings(struct tti_comm *comm)
{
	tti_agreed_release(&(struct tti_agreed){
		.shape = comm->shape, .wires = comm->wires, .wiring = comm->wiring });
	tti_free(comm->nics);
}

/* The last one of a family frees the root. */
static void leave_family(struct tti_comm *root)
{
	if (atomic_fetch_sub(&root->users, 1) > 1)
		return;
	for (int i = 0; i < TTI_AGREEMENTS_KEPT; i++)
		tti_agreement_free(root->agreements[i]);
	tti_boot_close(root->boot); /* until then it may hear news */
	free_findings(root);
	tti_devices_free(root->devices);
	tti_tuning_release(&root->tuning);
	tti_free(root->texts);
	tti_free(root->answer);
	pthread_mutex_destroy(&root->tend_lock);
	pthread_mutex_destroy(&root->lock);
	tti_free(root);
}

static void drop_current_sides(struct tti_comm *comm)
{
	struct tti_sides *sides;

	pthread_mutex_lock(&comm->lock);
	sides = comm->current.sides;
	comm->current.sides = NULL;
	pthread_mutex_unlock(&comm->lock);
	tti_sides_drop(sides);
}

void tti_comm_close_ports(struct tti_comm *comm)
{
	tti_tend_end(comm);
	if (comm->has_engine)
		tti_engine_release(&comm->engine);
	tti_memory_release(comm);
	for (int i = comm->nports - 1; i >= 0; i--)
		comm->ports[i]->transport->shutdown(comm->ports[i]);
	comm->nports = 0;
	comm->has_engine = false;
}

void tti_comm_free(struct tti_comm *comm)
{
	struct tti_comm *root;

	if (!comm)
		return;
	root = comm->root;
	if (comm->has_init_thread)
		pthread_join(comm->init_thread, NULL);
	tti_channels_release(comm);
	tti_lending_end(comm);
	/* A root's watch goes on while there are children, and answers that the root is closed. */
	atomic_store(&comm->state, TTI_COMM_ZOMBIE);
	if (root != comm || atomic_load(&comm->users) == 1)
		tti_watch_stop(comm->boot);
	tti_prepared_free_all(comm->prepared);
	tti_programs_release(comm);
	tti_handoffs_release(comm);
	tti_operators_release(&comm->operators);
	drop_current_sides(comm);
	tti_timeouts_release(&comm->timeouts);
	tti_transfers_release(&comm->transfers);
	tti_free(comm->extents.at);
	tti_windows_release(comm);
	tti_flights_close(comm);
	tti_device_close(comm);
	tti_comm_close_ports(comm);
	tti_callers_free(comm->callers);
	tti_vec_release(&comm->shrinks.others);
	if (root != comm)
		tti_boot_close(comm->boot);
	tti_free(comm->port_of);
	tti_free(comm->host_of);
	tti_agreed_release(&(struct tti_agreed){ .plan = comm->plan });
	/* Children are derived from those of the root. */
	if (root != comm) {
		free_findings(comm);
		tti_devices_free(comm->devices);
		tti_free(comm->tuning.machine);
		tti_free(comm->in_root);
	}
	tti_free(comm->algo);
	tti_free(comm->transports);
	if (root != comm) {
		tti_free(comm->texts);
		tti_free(comm->answer);
		pthread_mutex_destroy(&comm->tend_lock);
		pthread_mutex_destroy(&comm->lock);
		tti_free(comm);
	}
	leave_family(root);
}
