/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/family/child.h"

#include <string.h>

#include "boot/boot.h"
#include "coll/shape.h"
#include "core/device/device.h"
#include "core/init/nics.h"
#include "core/init/tuning.h"
#include "core/init/wiring.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

uint64_t tti_child_context(const struct tti_comm *parent, enum tti_child_kind kind, uint64_t k)
{
	return tti_hash_combine(tti_hash_combine(parent->context, kind), k);
}

tutti_config tti_child_config(const struct tti_comm *parent, const tutti_config *given)
{
	tutti_config config = TUTTI_CONFIG_INIT;

	if (given)
		memcpy(&config, given, given->size < sizeof(config) ? given->size : sizeof(config));
	config.size = sizeof(config);
	if (!config.transport)
		config.transport = parent->transports;
	if (!config.algo)
		config.algo = parent->algo;
	if (!config.boot_timeout_ms)
		config.boot_timeout_ms = parent->config_boot_timeout_ms;
	if (!config.traffic_class)
		config.traffic_class = parent->traffic_class;
	if (config.device < 0)
		config.device = tti_device_ordinal(parent);
	/* A parent's encryption stays, even if the configuration is of a version without the
	 * field. */
	if (parent->encrypt)
		config.encrypt = 1;
	if (!given) {
		config.timeout_ms = atomic_load(&parent->timeouts.config_ms);
		config.reproducible = parent->reproducible;
	}
	return config;
}

/* -- Where it is made ----------------------------------------------------------------- */

tutti_status tti_child_come(struct tti_maker *maker, const struct tti_boot_config *config,
			    struct tti_boot **boot)
{
	struct tti_rendezvous *at = &maker->awaited;

	TTI_TRY(tti_boot_sub_create(at->parent->boot, at->context, at->ranks, at->n, config, boot));
	at->parent = NULL;
	return TUTTI_OK;
}

void tti_child_decline(const struct tti_rendezvous *awaited)
{
	if (awaited->parent)
		tti_boot_sub_decline(awaited->parent->boot, awaited->context, awaited->ranks,
				     awaited->n, awaited->rank);
}

void tti_maker_end(struct tti_maker *maker)
{
	tti_child_decline(&maker->awaited);
	maker->free(maker);
}

static uint64_t hash_text(const char *text)
{
	return text ? tti_hash_bytes(text, strlen(text)) : 0;
}

uint64_t tti_child_settings(const tutti_config *config)
{
	return tti_hash_combine(hash_text(config->transport), hash_text(config->algo)) ^
	       (uint64_t)(config->reproducible + 2 * config->encrypt);
}

/* -- What it goes by ------------------------------------------------------------------ */

tutti_status tti_child_descend(struct tti_comm *comm, const struct tti_comm *parent,
			       const int *ranks)
{
	comm->in_root = tti_calloc((size_t)comm->n, sizeof(*comm->in_root));
	if (!comm->in_root)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", comm->n);
	for (int rank = 0; rank < comm->n; rank++)
		comm->in_root[rank] = parent->in_root ? parent->in_root[ranks[rank]] : ranks[rank];
	return TUTTI_OK;
}

static bool has_all_in_order(const struct tti_comm *comm)
{
	int rank = 0;

	while (rank < comm->n && comm->in_root[rank] == rank)
		rank++;
	return rank == comm->root->n;
}

/* A child on one host of several has nothing to choose, like a job on one host. */
static tutti_status derive_shape(struct tti_comm *comm)
{
	const struct tti_comm *root = comm->root;

	if (!root->shape || comm->n == 1 || (comm->nhosts == 1 && root->nhosts > 1))
		return TUTTI_OK;
	if (has_all_in_order(comm)) {
		comm->shape = tti_shape_hold(root->shape);
		return TUTTI_OK;
	}
	return tti_shape_project(root->shape, comm->in_root, (uint32_t)comm->n, &comm->shape);
}

tutti_status tti_child_derive(struct tti_comm *comm)
{
	const struct tti_comm *root = comm->root;

	/* The root's other ranks run on the same cores. */
	comm->oversubscribed_here = root->oversubscribed_here;
	comm->oversubscribed_somewhere = root->oversubscribed_somewhere;
	TTI_TRY(derive_shape(comm));
	TTI_TRY(tti_wiring_project(root->wiring, comm->in_root, comm->n, &comm->wiring));
	TTI_TRY(tti_nics_copy(root->nics, &comm->nics));
	TTI_TRY(tti_nics_rewire(&root->wires, comm->in_root, comm->n, &comm->wires));
	return tti_tuning_derive(&root->tuning, comm->nhosts > 1 ? comm->shape : NULL,
				 &comm->tuning);
}
